"""RecordReplayLM: the replies of a real model, recorded once in a file and replayed without a provider."""

import difflib
import os
import threading
from collections import defaultdict
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, Final

from synmod import cache, data, errors, leaves, scope
from synmod.lm import LanguageModel, LMReply, LMRequest, model_from, request_content

from .models import Standing

_WAYS: Final = ("record", "error")
_NO_USAGE: Final = asdict(scope.Usage())


class RecordReplayLM(Standing):
    """A model that replays the replies in a cassette, and records those that are missing.

    A cassette is a file of JSON lines, `{"request": ..., "nth": ..., "reply": ...}`, to be read, diffed and committed.
    It holds neither headers nor addresses, and `***` for every known secret. A reply is found by all that it depends
    on: model, messages, schema, tools, sampling parameters, sample; not by endpoint, key or adapter. Equal requests
    get their replies in the order in which they were sent; no other order counts. Failures are not recorded. A line is
    written whole as soon as its reply arrives. One process records at a time.

    Args:
        path: The cassette; made, with its folder, by the first reply that is recorded.
        lm: The model to record by, or its string; requests go to its adapter, under its settings but for cache and
            fallback. Nothing of it is opened while every reply is found. None to replay only: the model string is
            then that of the first request in the cassette.
        on_missing: What to do where no reply is found: "record" (an error without `lm`), or "error", as in CI.
        **keywords: Keywords of `LanguageModel`, which win over those of `lm`.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean'), or `on_missing` is neither.
        CassetteError: The file is not a cassette. By a call: no reply is recorded for the request; shows the nearest
            recorded one and the difference.

    Example:
        >>> from synmod.testing import ScriptedLM
        >>> real = ScriptedLM(["Paris"])
        >>> for behind in (real, None):
        ...     print(sm.run(RecordReplayLM("capitals.jsonl", behind)("Capital of France?")).text)
        Paris
        Paris
        >>> len(real.requests)
        1

    Source: VCR, pytest-recording; differs: requests are compared as records of a model call, not as HTTP.
    """

    __slots__ = ("_lock", "_path", "_records", "_replies", "_requests", "_taken")

    def __init__(
        self,
        path: str | os.PathLike[str],
        lm: LanguageModel | str | None = None,
        *,
        on_missing: str = "record",
        **keywords: Any,
    ) -> None:
        if on_missing not in _WAYS:
            hint = leaves.did_you_mean(on_missing, _WAYS)
            raise errors.ConfigError(
                f"RecordReplayLM: on_missing: got {on_missing!r:.100}, wanted 'record' or 'error'.{hint}"
            )
        self._path = Path(path)
        self._records = lm is not None and on_missing == "record"
        self._requests: dict[str, leaves.Json] = {}
        self._replies: defaultdict[str, list[LMReply]] = defaultdict(list)
        self._taken: defaultdict[str, set[int]] = defaultdict(set)
        self._lock = threading.Lock()
        for request, _, reply in sorted(_records_in(self._path, mend=self._records), key=lambda record: record[1]):
            self._requests.setdefault(cache.key_of(request), request)
            self._replies[cache.key_of(request)].append(reply)
        if lm is None:
            recorded = next((str(request["model"]) for request in self._requests.values()), "testing/cassette")
            lm = LanguageModel(keywords.get("model", recorded))
        super().__init__(self._answer, model_from(lm, "RecordReplayLM"), keywords)

    async def _answer(self, request: LMRequest) -> LMReply:
        """Return the recorded reply; where there is none, record one."""
        content = {**request_content(request, self.adapter)}
        del content["adapter"]  # a cassette holds whichever way the model is reached
        wanted = data.parse_json(self._without_secrets(content))
        key = cache.key_of(wanted)
        with self._lock:
            nth = next(number for number in count(1) if number not in self._taken[key])
            self._taken[key].add(nth)
        try:
            recorded = self._replies.get(key, ())
            if nth <= len(recorded):
                return recorded[nth - 1]
            if not self._records:
                raise self._missing(key, wanted, nth)
            reply = await self.passed_on(request)
            line = f"{self._without_secrets({'request': wanted, 'nth': nth, 'reply': _as_json(reply)})}\n".encode()
            with self._lock:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("ab", buffering=0) as file:
                    file.write(line)
            return reply
        except BaseException:  # whoever sends the request again is the nth
            with self._lock:
                self._taken[key].discard(nth)
            raise

    def _without_secrets(self, json: leaves.Json) -> str:
        """Return JSON as text in which no known secret stands."""
        text = data.dump_json(json)
        for secret in sorted(self.known_secrets(), key=len, reverse=True):
            text = text.replace(data.dump_json(secret)[1:-1], "***")
        return text

    def _missing(self, key: str, wanted: leaves.Json, nth: int) -> errors.CassetteError:
        """Return the error for a request whose reply is not in the cassette."""
        lines = _lines(wanted)
        if key in self._requests:
            found = f"it has {nth - 1} for this request, and this is number {nth}."
        elif self._requests:
            words = set(data.dump_json(wanted).split())
            near = min(self._requests.values(), key=lambda request: len(words ^ set(data.dump_json(request).split())))
            differing = difflib.unified_diff(_lines(near), lines, "recorded", "now", n=0, lineterm="")
            found = "\n".join(["it has none for this request. The nearest one that it has:", *differing])
        else:
            found = "it is empty, or missing."
        remedy = "RecordReplayLM(path, 'provider/name') with on_missing='record' calls the model and adds the reply"
        return errors.CassetteError(f"the cassette {str(self._path)!r} has no reply: {found}\n{remedy}.", sent=False)


def _lines(request: leaves.Json) -> list[str]:
    """Return a request as lines to compare; the lines of its texts are lines of their own."""
    return data.dump_json(request, indent=1).replace("\\n", "\n").splitlines()


def _as_json(reply: LMReply) -> leaves.Json:
    """Return what a provider answered, without what was left at its default."""
    usage = {name: value for name, value in asdict(reply.usage).items() if value != _NO_USAGE[name]}
    calls = [leaves.frozen(call) for call in reply.tool_calls]
    known = {"model": reply.model, "tool_calls": calls, "reasoning": reply.reasoning}
    kept = {name: value for name, value in {**known, "usage": usage}.items() if value}
    return {"text": reply.text, "finish_reason": reply.finish_reason, **kept}


def _records_in(path: Path, *, mend: bool) -> list[tuple[leaves.Json, int, LMReply]]:
    """Return (request, number among equal ones, reply) of each line of a cassette; no file is an empty one.

    Args:
        path: The file. A line that a crash cut off is left out.
        mend: Whether to cut such a line from the file, so that the next one can be added.

    Raises:
        CassetteError: A line is not such a record; names it.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    end = content.rfind(b"\n") + 1
    if mend and end < len(content):
        os.truncate(path, end)
    records: list[tuple[leaves.Json, int, LMReply]] = []
    for number, line in enumerate(content[:end].splitlines(), 1):
        try:
            record = data.parse_json(line)
            request, reply = record["request"], {**record["reply"]}
            usage, calls = scope.Usage(**reply.pop("usage", {})), tuple(reply.pop("tool_calls", ()))
            records.append((request, record["nth"], LMReply(**reply, usage=usage, tool_calls=calls)))
        except (ValueError, KeyError, TypeError) as error:
            wanted = '{"request": {...}, "nth": 1, "reply": {"text": ...}}'
            raise errors.CassetteError(f"{path}, line {number}: wanted {wanted} ({error}).") from None
    return records

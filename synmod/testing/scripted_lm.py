"""ScriptedLM: a model that says what was written for it, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from synmod.errors import ConfigError
from synmod.lm import LMRequest
from synmod.scope import current_call
from synmod.testing.doubles import Double

__all__ = ["ScriptedLM"]


class _Script:
    """One list of replies, and how far it has been read."""

    __slots__ = ("items", "used")

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)
        self.used = 0

    @property
    def unused(self) -> int:
        """How many replies nobody has asked for."""
        return max(0, len(self.items) - self.used)


class ScriptedLM(Double):
    """A model that gives the replies of a list, one a request.

    Args:
        replies: A list in the order of the requests; or a mapping of module paths or globs (`*` within one step,
            `**` any number of steps) to such lists, which does not depend on the order of concurrent calls. A reply
            is a str (the text), JSON or a data model (as JSON text), an `LMReply`, or an exception, which is raised.
        cycle: Whether to begin again at the end of a list.
        latency_s: Seconds that each request takes.
        backoff: Whether to wait between attempts, as a real model does.
        model: The model string.
        **lm: Keywords of `LanguageModel`.

    Raises:
        ConfigError: `replies` is neither; a keyword is unknown ('Did you mean').
        AssertionError: By a call: there is no reply left; with path, number and the last message.

    Example:
        >>> lm = ScriptedLM(["Paris"])
        >>> sm.run(lm("Capital of France?")).text
        'Paris'
        >>> lm.assert_done()

    Source: pydantic-ai's TestModel, DSPy's DummyLM.
    """

    __slots__ = ("_cycle", "_lock", "_scripts")

    def __init__(
        self,
        replies: Iterable[Any] | Mapping[str, Iterable[Any]],
        *,
        cycle: bool = False,
        latency_s: float = 0.0,
        backoff: bool = False,
        model: str = "testing/scripted",
        **lm: Any,
    ) -> None:
        super().__init__(self._next, model, latency_s, backoff, lm)
        by_path = cast("Mapping[str, Any]", replies) if isinstance(replies, Mapping) else {"": replies}
        for path, items in by_path.items():
            if hasattr(items, "keys") or isinstance(items, str | bytes) or not hasattr(items, "__iter__"):
                where = f"replies[{path!r}]" if by_path is replies else "replies"
                raise ConfigError(f"ScriptedLM: {where}: got {type(items).__name__}, wanted a list of replies.")
        self._cycle = cycle
        self._lock = threading.Lock()
        self._scripts = {path: _Script(items) for path, items in by_path.items()}
        if by_path is not replies:
            self._scripts = {"**": self._scripts[""]}

    def assert_done(self) -> None:
        """Check that every reply was asked for.

        Raises:
            AssertionError: Replies are left; says how many, and for which path.
        """
        left = {path: script.unused for path, script in self._scripts.items() if script.unused}
        if left:
            told = ", ".join(
                f"{count} of {len(self._scripts[path].items)} for {path!r}" for path, count in left.items()
            )
            raise AssertionError(f"ScriptedLM: replies were not used: {told}.")

    def _next(self, request: LMRequest) -> Any:
        """Take the next reply for the module that asks."""
        frame = current_call()
        places = ("",) if frame is None else (frame.path, frame.name) if not frame.path else (frame.path,)
        with self._lock:
            script = self._script_for(places)
            if script is not None:
                number = script.used
                if number < len(script.items) or (self._cycle and script.items):
                    script.used += 1
                    return script.items[number % len(script.items)]
        raise AssertionError(self._ran_out(places[0], script, request))

    def _script_for(self, places: Sequence[str]) -> _Script | None:
        """Find the list for a path: the path itself first, then the first glob that fits."""
        for place in places:
            if place in self._scripts:
                return self._scripts[place]
        for glob, script in self._scripts.items():
            if any(_fits(place.split("/") if place else [], glob.split("/")) for place in places):
                return script
        return None

    def _ran_out(self, path: str, script: _Script | None, request: LMRequest) -> str:
        """Say which request had no reply."""
        last = f"the last message is {request.messages[-1]['content']!r:.300}"
        if script is None:
            return (
                f"ScriptedLM: no replies for the path {path!r}, only for {', '.join(map(repr, self._scripts))}; {last}."
            )
        return f"ScriptedLM: no reply left for request {script.used + 1} of the path {path!r}; {last}."


def _fits(steps: Sequence[str], glob: Sequence[str]) -> bool:
    """Match the steps of a path with those of a glob."""
    if not glob:
        return not steps
    if glob[0] == "**":
        return any(_fits(steps[skipped:], glob[1:]) for skipped in range(len(steps) + 1))
    return bool(steps) and fnmatchcase(steps[0], glob[0]) and _fits(steps[1:], glob[1:])

"""One call of a model, from a checked request to its reply; each function does one thing around the next one.

`answer` tries a model and its fallbacks, `reported` reports the call of one, `remembered` (in `caching.py`) asks the
cache and joins equal calls, `_valid` reads and repairs the reply, `answered` is the one retry loop, `_limited` waits
for room under the limit, `_sent` keeps the budgets, `_exchanged` is one request to the adapter. Below stands how a
reply is read.
"""

from __future__ import annotations

import json as text_json
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from synmod import errors, scope
from synmod.data import Schema, parse_frozen, problems, trusted_schema
from synmod.leaves import Json, aio, current_clock, frozen_dict, is_object
from synmod.scope import CallFrame, Usage, check_deadline, current_call, notify, place_of

from . import records
from .caching import remembered
from .prompt import REPAIR_OPENING, fields_of, value_text
from .records import Adapter, Attempt, LMReply, LMRequest, Message, message, most_tokens, shortened
from .streaming import STREAMS, Relay
from .tools import calling_turn, faults_of_calls, quoted_calls, with_calls

if TYPE_CHECKING:
    from .limits import Limit
    from .model import LanguageModel, SharedModel

T = TypeVar("T")
Q = TypeVar("Q", LMRequest, records.EmbeddingRequest)
R = TypeVar("R", LMReply, records.EmbeddingReply)

_TEMPORARY: Final = (errors.UnavailableError, errors.RateLimitError, errors.ModelTimeout)
_FALLS_BACK: Final = (*_TEMPORARY, errors.ContextWindowError, errors.BadReplyError)
"""After these another model may do better; all others are mistakes to correct."""

_FIRST_WAIT_S, _LONGEST_JITTER_S, _LONGEST_WAIT_S = 0.5, 30.0, 60.0
_MOST_BYTES: Final = 2_000  # of the text of an error
_JITTER: Final = random.SystemRandom()  # waits never touch a result, so they need no seed

_FAULTS: Final = {
    "not_json": "the reply is not JSON",
    "schema": "the reply does not satisfy the schema",
    "empty": "the reply is empty",
    "tool": "the reply does not call the tools as they are offered",
    "refused": "the model, or the content filter of the provider, refused to answer",
    "length": "the reply was cut off; allow a longer one with max_tokens=...",
}


class ModelCall:
    """One call under way: what the functions of this file share and fill in."""

    def __init__(self, model: SharedModel, timeout_s: float | None) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self.ambient = scope.ambient()
        self.frame: CallFrame | None = current_call()
        self.phase = scope.phase_in(self.ambient, self.frame)
        self.clock = current_clock()
        self.started = self.limited_from = self.clock.now()
        self.attempts: list[Attempt] = []
        self.requests = 0
        self.used = Usage()
        self.waited_s = 0.0
        self.relay: Relay | None = None  # hands on the pieces of the reply, where it is streamed
        self.over = False  # `timeout_s` has passed
        self.note = ""  # why a transient failure was not retried

    @property
    def path(self) -> str:
        """Path of the calling module, "" outside a module call."""
        return "" if self.frame is None else self.frame.path

    @property
    def has_begun(self) -> bool:
        """Whether a piece of the reply was handed on, so that nothing can be sent again."""
        return self.relay is not None and self.relay.begun is not None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return self.clock.now() - self.started

    def usage(self, calls: int = 1) -> Usage:
        """Return the tokens and cost of the requests that were answered, as those of so many calls."""
        used = self.used
        same = used.calls == calls and used.requests == self.requests
        return used if same else replace(used, calls=calls, requests=self.requests)

    def seconds_left(self) -> float | None:
        """Return how long the call may still take; None where nothing limits it."""
        deadline = None if self.ambient is None else self.ambient.deadline
        left = None if deadline is None else deadline.left()
        if self.timeout_s is None:
            return left
        own = self.timeout_s - (self.clock.now() - self.limited_from)
        return own if left is None else min(own, left)

    async def prepare(self, request: LMRequest | records.EmbeddingRequest) -> None:
        """Let the adapter refuse a request at once, and load what it must load first, which costs no `timeout_s`."""
        adapter = self.model.adapter
        if (check := getattr(adapter, "check", None)) is not None:
            check(request)
        if (prepare := getattr(adapter, "prepare", None)) is not None:
            limit, self.timeout_s = self.timeout_s, None
            await self.bounded(prepare(request))
            self.timeout_s, self.limited_from = limit, self.clock.now()

    async def bounded(self, waiting: Awaitable[T], attempt_s: float | None = None) -> T:
        """Wait for the adapter, for as long as the call and the attempt may take.

        Raises:
            ModelTimeout: `timeout_s` or `attempt_timeout_s` is over.
            DeadlineExceeded: An enclosing `sm.deadline` is over.
        """
        limits = [limit for limit in (self.seconds_left(), attempt_s) if limit is not None]
        if not limits:
            return await waiting
        with aio.deadline_scope(min(limits)):
            return await waiting
        # Only a scope that expired leads here: it swallowed its own cancellation.
        check_deadline(self.frame or "", self.ambient)
        if attempt_s is not None and attempt_s == min(limits):
            raise errors.ModelTimeout(f"no reply within attempt_timeout_s={attempt_s:g}")
        self.over = True
        raise errors.ModelTimeout(f"no reply within timeout_s={self.timeout_s:g}")

    def complete(self, error: errors.ModelError) -> None:
        """Fill in where, when and after how many requests the call failed, and take the secrets out."""
        scrub = self.model.secrets.scrubbed
        error.model, error.attempts, error.elapsed_s = self.model.model, self.requests, self.elapsed_s
        error.path, error.phase, error.streamed = self.path, self.phase, self.has_begun
        error.provider_message = shortened(scrub(error.provider_message))
        error.request_id = error.request_id and scrub(error.request_id)
        if isinstance(error, errors.BadReplyError):
            error.text = scrub(error.text)
            error.errors = tuple((pointer, scrub(problem)) for pointer, problem in error.errors)
        module = "" if self.frame is None else f"module: {self.path or self.frame.name}   "
        error.ending = "\n  ".join(["", *filter(None, [self.note]), f"{module}requests sent: {self.requests}"])
        room = _MOST_BYTES - len(f"{error.model}: {error.ending}".encode(errors="replace"))
        error.args = (shortened(scrub(str(error.args[0]) if error.args else ""), max(room, 500)),)


async def answer(
    models: Sequence[LanguageModel], request_to: Callable[[LanguageModel], LMRequest], timeout_s: float | None
) -> LMReply:
    """Answer by the first model that can; each is called with its own settings, and for its own time.

    Raises:
        ModelError: What the first model raised, with the errors of the others as notes; after a mistake to correct
            nobody else is tried.
    """
    first: errors.ModelError | None = None
    for model in models:
        try:
            return await reported(model, request_to(model), timeout_s or model.settings.timeout_s, _remembered)
        except errors.ModelError as error:
            if first is None:
                first = error
            else:
                errors.add_note(first, f"fallback {model.model} failed too: {type(error).__name__}: {error}")
            if error.streamed or not isinstance(error, _FALLS_BACK):
                break
    try:
        aio.reraise(cast("errors.ModelError", first))
    finally:
        del first  # its traceback holds this frame: neither may keep the other alive


async def reported(
    model: SharedModel, request: Q, timeout_s: float | None, work: Callable[[ModelCall, Q], Awaitable[R]]
) -> R:
    """Answer a request by this very model; hooks, counters and meters get its begin and its end once each."""
    call = ModelCall(model, timeout_s)
    listeners, meters = scope.hooks_inside(call.ambient, call.frame), scope.open_meters(call.frame)
    reply, failure, usage = None, None, Usage()
    try:
        if listeners:
            notify(listeners, scope.LMBegin(*place_of(call.frame, call.phase), request, request.model))
        if isinstance(request, LMRequest) and STREAMS.get():
            call.relay = Relay.of(request, listeners, place_of(call.frame, call.phase), call.clock)
        check_deadline(call.frame or "", call.ambient)
        await aio.checkpoint()  # so that every call can be cancelled, also one that is answered without a wait
        reply = await work(call, request)
        usage = reply.usage
        model.counters.count(call.phase, usage, failed=False, cached=reply.cached)
        return reply
    except BaseException as error:
        failure = error
        if isinstance(error, errors.ModelError):
            call.complete(error)
        if aio.is_cancellation(error) or isinstance(error, GeneratorExit):
            usage = call.usage(calls=0)
            scope.note_waiting(call.frame or "")
            model.counters.count_cancelled(call.phase, call.requests, usage if call.has_begun else Usage())
        else:
            usage = call.usage()
            model.counters.count(call.phase, usage, failed=True)
        raise
    finally:
        for meter in meters:
            meter.add(usage, call.phase)
        if listeners:
            elapsed_s = call.elapsed_s if reply is None else reply.elapsed_s
            cached = reply is not None and reply.cached
            ended = (request, request.model, reply, failure, call.requests, usage, elapsed_s, cached)
            notify(listeners, scope.LMEnd(*place_of(call.frame, call.phase), *ended))
        failure = None  # the error's traceback holds this frame: neither may keep the other alive


async def _remembered(call: ModelCall, request: LMRequest) -> LMReply:
    """Return a valid reply, from the cache where the model has one; what is streamed has been handed on."""
    if call.model.cache is None:
        await call.prepare(request)
        reply = await _valid(call, request)
    else:
        reply = await remembered(call, request, _valid)
    return reply if call.relay is None else await call.relay.finish(reply, call.started)


async def _valid(call: ModelCall, request: LMRequest) -> LMReply:
    """Return a reply that satisfies the request; hand an invalid one back while repairs and attempts are left.

    Raises:
        BadReplyError: The reply is refused, cut off, empty or invalid.
    """
    repairs = 0 if call.relay else call.model.settings.repairs  # what was handed on stays
    asked = sent = without_asking(request, call.model.adapter)
    while True:
        reply: LMReply = await answered(call, asked)
        if reply.tool_calls:
            reply = with_calls(reply, request)
        json, reason, found = _read(reply, request, sent)
        if not reason:
            turn = calling_turn(reply) if reply.tool_calls else reply.message or message("assistant", reply.text)
            by = reply.model or request.model
            total = {"usage": call.usage(), "attempts": tuple(call.attempts), "elapsed_s": call.elapsed_s}
            return replace(reply, json=json, message=turn, model=by, **total)
        faults = [f"- {pointer or '(root)'}: {problem}" for pointer, problem in found]
        quoted = quoted_calls(reply) if reply.tool_calls else reply.text
        if reason in ("length", "refused") or not repairs or call.requests >= call.model.attempts:
            text = "\n  ".join([_FAULTS[reason], *faults])
            raise errors.BadReplyError(text, text=quoted, errors=found, reason=reason, request_id=reply.request_id)
        repairs -= 1
        asked = replace(asked, messages=(*asked.messages, *_repair_turns(quoted, faults, request)))


def _read(reply: LMReply, request: LMRequest, sent: LMRequest) -> Read:
    """Read what the request asked for: calls of its tools, a value of its schema, or text."""
    if reply.finish_reason in ("content_filter", "refusal", "refused"):
        return Read(None, "refused")
    if reply.tool_calls:
        faults = faults_of_calls(reply, request, _MOST_ERRORS)
        reason = "length" if reply.finish_reason == "length" else "tool"
        return Read(None, reason if faults else "", faults)
    if request.tool_choice == "required" or is_object(request.tool_choice):
        return Read(None, "tool", (("", "no tool is called, and one must be"),))
    if request.schema is None:
        return Read(None)
    reasoning = None
    if (field := request.reasoning_field) is not None and (reply.reasoning or sent.schema is not request.schema):
        reasoning = {field: reply.reasoning or ""}  # "" where it was left out, so that an output never lacks it
    read = read_reply(reply.text, request.schema, reasoning)
    if reply.finish_reason == "length" and (read.reason or not isinstance(read.json, dict | list)):
        return Read(None, "length")
    return read


def _repair_turns(text: str, faults: list[str], request: LMRequest) -> list[Message]:
    """Return the turns that hand back a bad text and name its faults."""
    wanted = "in text" if request.schema is None else "with one JSON value that satisfies the schema"
    if request.tools:
        wanted += ", or with calls of the tools on offer, with arguments that satisfy their parameters"
    listed = "\n".join(faults)
    asks = f"{REPAIR_OPENING}\nYour reply is not valid:\n{listed}\nReply again {wanted}, and nothing else.\n</repair>"
    # Some providers refuse a turn without content, so an empty reply is not quoted.
    return [message("assistant", text), message("user", asks)] if text.strip() else [message("user", asks)]


async def answered(call: ModelCall, request: LMRequest | records.EmbeddingRequest) -> Any:
    """Send a request until it is answered: the one retry loop. At most `attempts` requests leave for one call.

    Raises:
        ModelError: A permanent failure; or the last transient one, when no attempt is left or the wait is too long.
    """
    failures = 0
    while True:
        try:
            return await (_sent(call, request) if call.model.limit is None else _limited(call, request))
        except errors.ModelError as error:
            if call.over or not (error.transient and error.sent) or call.requests >= call.model.attempts:
                raise
            if call.has_begun:
                call.note = "not retried: pieces of the reply had been handed on"
                raise
            seconds = error.retry_after_s
            if seconds is None:
                seconds = _JITTER.uniform(0.0, min(_LONGEST_JITTER_S, _FIRST_WAIT_S * 2**failures))
            left = call.seconds_left()
            if seconds > _LONGEST_WAIT_S:
                call.note = f"not retried: the wait would be {seconds:g} s, longer than {_LONGEST_WAIT_S:g} s"
            elif left is not None and seconds >= left:
                away = f"{max(left, 0):.3g} s away"
                call.note = f"not retried: a wait of {seconds:.3g} s would pass the deadline of the call, {away}"
            if call.note:
                raise
        began = call.clock.now()
        await (call.clock.sleep(seconds) if call.model.backoff else aio.checkpoint())
        call.waited_s = call.clock.now() - began
        failures += 1


async def _limited(call: ModelCall, request: LMRequest | records.EmbeddingRequest) -> Any:
    """Send one request when the limit of the model has room for it.

    Raises:
        ModelTimeout: The time of the call was over first.
        RequestError: It may use more tokens than a minute ever has room for.
    """
    await call.model.price()  # now, so that nothing waits between the turn and its request
    limit, began, sent_before = cast("Limit", call.model.limit), call.clock.now(), call.requests
    turn = limit.turn(sum(most_tokens(request)))
    await call.bounded(turn.begin())
    try:
        call.waited_s += call.clock.now() - began
        reply = await _sent(call, request)
        turn.settle(reply.usage.prompt_tokens + reply.usage.completion_tokens)
        return reply
    finally:
        turn.end(sent=call.requests > sent_before)


async def _sent(call: ModelCall, request: LMRequest | records.EmbeddingRequest) -> Any:
    """Send one request if every enclosing budget has room for it, and account for what it used.

    Raises:
        BudgetExceeded: It does not fit; nothing was sent.
        ConfigError: A cost is limited, and the price of the model is unknown.
    """
    budgets = () if call.ambient is None else call.ambient.budgets
    price = await call.model.price()  # now, so that nothing waits between a reply and its account
    prompt = completion = 0
    cost = 0.0
    if budgets:
        prompt, completion = most_tokens(request)
        if any("cost_usd" in account.limits for account in budgets):
            if price is None:
                remedy = "pass LanguageModel(..., price=(usd per million in, usd per million out))"
                raise errors.ConfigError(f"{request.model}: cost_usd is limited, and the price is not known: {remedy}.")
            cost = price.cost_usd(prompt, completion)
    with scope.reserve(0 if call.requests else 1, prompt + completion, cost, where=call.path) as reservation:
        used: Usage | None = None
        try:
            reply = await _exchanged(call, request)
            used = reply.usage
            return reply
        except BaseException as error:  # a cancellation gives everything back but what had come of a stream
            used = call.relay and call.relay.came
            if used is None and isinstance(error, Exception) and getattr(error, "sent", True):
                reservation.settle(Usage())  # a call was made, though nothing came of it
            raise
        finally:
            if used is not None:
                spent = used.cost_usd
                if not spent:  # else the adapter knows it
                    tokens = used.prompt_tokens, used.completion_tokens, used.cached_tokens
                    spent = None if price is None else price.cost_usd(*tokens)
                used = replace(used, calls=1, requests=1, cost_usd=spent)
                reservation.settle(used)
                call.used = used if not call.used.calls else call.used + used


async def _exchanged(call: ModelCall, request: LMRequest | records.EmbeddingRequest) -> Any:
    """Send one request to the adapter: timed, recorded and counted.

    Raises:
        ModelTimeout: No reply in time.
        ModelError: What the adapter raised.
        TypeError: The adapter returned something else than an `LMReply` whose text is a str, or an `EmbeddingReply`.
    """
    adapter, wanted = call.model.adapter, LMReply if isinstance(request, LMRequest) else records.EmbeddingReply
    waited, call.waited_s = call.waited_s, 0.0
    call.requests += 1
    began = call.clock.now()
    try:
        asked: Any = request
        reply: Any = adapter.send(asked) if call.relay is None else call.relay.received(adapter, asked)
        if not isinstance(reply, wanted):
            reply = await call.bounded(reply, call.model.settings.attempt_timeout_s)
    except errors.ModelError as error:
        if error.sent:
            text = shortened(call.model.secrets.scrubbed(f"{type(error).__name__}: {error}"))
            call.attempts.append(Attempt(error.status, text, call.clock.now() - began, waited))
        else:
            call.requests -= 1
        raise
    if not isinstance(reply, wanted) or not isinstance(getattr(reply, "text", ""), str):
        raise TypeError(
            f"adapter {adapter.name!r} returned {reply!r:.200}, wanted an {wanted.__name__}"
            f"{' with a str as its text' if wanted is LMReply else ''}."
        )
    call.attempts.append(Attempt(200, None, call.clock.now() - began, waited))
    return reply


# -- reading replies -------------------------------------------------------------------------------------------------

_MOST_ERRORS: Final = 5
_MOST_PLACES: Final = 100
_BLOCK: Final = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPENING: Final = re.compile(r"<(?:think|thinking|reasoning)>")
_CLOSING: Final = re.compile(r"</(?:think|thinking|reasoning)>")
_FENCE: Final = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n(.*)```", re.DOTALL)
_CONTAINER: Final = re.compile(r"[\[{]")
_DECODER: Final = text_json.JSONDecoder()


class Read(NamedTuple):
    """The result of reading a reply: a valid value; else a reason of `BadReplyError` and (pointer, text) pairs."""

    json: Json
    reason: str = ""
    errors: tuple[tuple[str, str], ...] = ()


def read_reply(text: str, schema: Schema, reasoning: Mapping[str, str] | None = None) -> Read:
    """Read the value of `schema` out of `text`; `reasoning` is put in front of an object that lacks its field."""
    bare = error = ""
    for bare in dict.fromkeys((text, _bare(text))):
        try:
            return _judged(parse_frozen(bare), schema, reasoning)
        except errors.DataError as fault:
            error = str(fault)
    if not bare:
        return Read(None, "empty", (("", "the reply is empty"),))
    first: Read | None = None
    for json in _containers_in(bare):
        read = _judged(json, schema, reasoning)
        if not read.reason:
            return read
        first = first or read
    return first or Read(None, "not_json", (("", error),))


def _judged(json: Json, schema: Schema, reasoning: Mapping[str, str] | None) -> Read:
    """Validate a value."""
    if reasoning and is_object(json):
        json = frozen_dict({**reasoning, **json})  # a field of its own wins
    try:
        found = problems(schema, json, limit=_MOST_ERRORS)
    except errors.SchemaTooComplex as error:  # the reply, not the schema, is what costs too much
        return Read(None, "schema", (("", str(error)),))
    faults = tuple((p.pointer, f"wanted {p.wanted}, got {p.got}") for p in found)
    return Read(None, "schema", faults) if faults else Read(json)


def _bare(text: str) -> str:
    """Return the text without white space, byte order mark, a reasoning block in front, and a code fence around it."""
    text = text.strip().removeprefix("\ufeff").strip()
    reasoning = _BLOCK.match(text)
    if reasoning is None and (closing := _CLOSING.search(text)) and not _OPENING.search(text, 0, closing.start()):
        reasoning = closing  # some chat templates open the block in the prompt, so that the reply only closes it
    text = text if reasoning is None else text[reasoning.end() :].strip()
    fence = _FENCE.fullmatch(text) if text.endswith("```") else None
    return text if fence is None else fence[1].strip()


def _containers_in(text: str) -> Iterator[Json]:
    """Yield the JSON objects and arrays in prose, in order, none from inside another; at most 100 places are tried."""
    at = 0
    for _ in range(_MOST_PLACES):
        start = _CONTAINER.search(text, at)
        if start is None:
            return
        at = start.end()
        try:
            _, end = _DECODER.raw_decode(text, start.start())
            json = parse_frozen(text[start.start() : end])  # strict: no NaN, no key twice
        except (ValueError, RecursionError):
            continue
        yield json
        at = end


def without_asking(request: LMRequest, adapter: Adapter) -> LMRequest:
    """Return the request without its reasoning field, in schema and prompt, where the provider reasons by itself.

    An adapter may have `reasons(request)`: whether the model reasons natively on a request and the reply will hold it.
    """
    field, schema, reasons = request.reasoning_field, request.schema, getattr(adapter, "reasons", None)
    if field is None or schema is None or reasons is None or not reasons(request) or field not in fields_of(schema):
        return request
    less = {**schema, "properties": {name: inner for name, inner in fields_of(schema).items() if name != field}}
    if "required" in schema:
        less["required"] = [name for name in schema["required"] if name != field]
    asked = trusted_schema(less)
    old, new = (f"<output_schema>{value_text(one)}</output_schema>" for one in (schema, asked))
    return replace(request, schema=asked, messages=tuple([_rewritten(turn, old, new) for turn in request.messages]))


def _rewritten(turn: Message, old: str, new: str) -> Message:
    """Return a turn with one text in place of another."""
    content = turn["content"]
    return message(turn["role"], content.replace(old, new)) if isinstance(content, str) and old in content else turn

"""One call of a model, from a checked request to its reply; each function wraps the next one.

`call_with_fallbacks` > `call_model` > `reply_from_journal` > `reply_from_cache` > `join_equal_call` >
`request_valid_reply` > `send_with_retries` (the one retry loop) > `send_within_limit` > `send_within_budgets` >
`send_once`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from synmod import errors, scope
from synmod.cache import Cache, key_of
from synmod.leaves import aio, current_clock, dump_json, is_object, with_label, without_secrets
from synmod.scope import NO_USAGE, CallFrame, Usage, check_deadline, current_call, notify, place_of

from . import records, replies
from .limits import Limit
from .options import shorten
from .prompt import repair_turns, without_reasoning_field
from .records import AnyRequest, Attempt, LMReply, LMRequest, most_tokens
from .relay import STREAMS, Relay
from .text_calls import may_call

if TYPE_CHECKING:
    from .model import LanguageModel, SharedModel

    RequestTo: TypeAlias = Callable[[LanguageModel], LMRequest]

T = TypeVar("T")
Q = TypeVar("Q", LMRequest, records.EmbeddingRequest)
R = TypeVar("R", LMReply, records.EmbeddingReply)

_TEMPORARY: Final = (errors.UnavailableError, errors.RateLimitError, errors.ModelTimeout)
_FALLS_BACK: Final = (*_TEMPORARY, errors.ContextWindowError, errors.BadReplyError)
"""After these the fallbacks are tried; all other errors are mistakes of the caller."""

_FIRST_WAIT_S, _LONGEST_JITTER_S, _LONGEST_WAIT_S = 0.5, 30.0, 60.0
_LONGEST_POLL_S, _LONGEST_START_S = 4.0, 600.0  # between two requests to a server that starts; without any time limit
_LOG: Final = logging.getLogger("synmod.lm")
_MOST_BYTES: Final = 2_000  # of the text of an error
_JITTER: Final = random.SystemRandom()  # waits do not affect results, so they need no seed

_FAULTS: Final = {
    "not_json": "the reply is not JSON",
    "schema": "the reply does not satisfy the schema",
    "empty": "the reply is empty",
    "tool": "the reply does not call the tools as they are offered",
    "refused": "the model, or the content filter of the provider, refused to answer",
    "length": "the reply was cut off; allow a longer one with max_tokens=...",
}
_NO_CALLS: Final = (
    "If this model never calls a tool, its server may drop them, as those of chat templates without tools do: pass "
    'LanguageModel(..., structured="calls").'
)
_STOPPED: Final = "If stop={!r:.200} cut the reply, leave it out, or choose a text that no valid reply contains."


class ModelCall:
    """The state of one call under way, which the functions of this file share."""

    def __init__(self, model: SharedModel, timeout_s: float | None, *, is_last: bool = True) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self.is_last = is_last  # whether no fallback is left, so that a server that starts is worth waiting for
        self.most_requests = model.attempts  # how many requests may be sent
        self.ambient = scope.ambient()
        self.frame: CallFrame | None = current_call()
        self.phase = scope.phase_in(self.ambient, self.frame)
        self.clock = current_clock()
        self.started = self.limited_from = self.clock.now()
        self.attempts: list[Attempt] = []
        self.requests = 0
        self.total_usage = NO_USAGE
        self.waited_s = 0.0
        self.relay: Relay | None = None  # delivers the pieces of a streamed reply
        self.has_timed_out = False  # `timeout_s` has passed
        self.scopes: list[aio.deadline_scope] = []  # the blocks of `wait_for` under way
        self.no_retry_reason = ""  # why a transient failure was not retried

    @property
    def path(self) -> str:
        """Path of the calling module, "" outside a module call."""
        return "" if self.frame is None else self.frame.path

    @property
    def has_begun(self) -> bool:
        """Whether a piece of the reply was delivered, so that the request cannot be sent again."""
        return self.relay is not None and self.relay.first_chunk_at is not None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return self.clock.now() - self.started

    def usage(self, calls: int = 1) -> Usage:
        """Return the tokens and cost of the answered requests, with this number of calls."""
        return records.with_fields(self.total_usage, calls=calls, requests=self.requests)

    def seconds_left(self) -> float:
        """Return how long the call may still take; infinity where nothing limits it."""
        deadline = self.ambient.deadline
        own = inf if self.timeout_s is None else self.timeout_s - (self.clock.now() - self.limited_from)
        return own if deadline is None else min(own, deadline.remaining())

    async def prepare(self, request: AnyRequest) -> None:
        """Run the adapter's `check` and `prepare`, if it has them; `prepare` does not count against `timeout_s`.

        Raises:
            RequestError: An image or a file is given by its address, and `allow_remote_media` is off.
        """
        adapter = self.model.adapter
        if not self.model.settings.allow_remote_media and (place := records.remote_media(request.messages)):
            remedy = "send the data itself, or pass LanguageModel(..., allow_remote_media=True)"
            raise errors.RequestError(f"{place} is an address, which others would fetch; {remedy}.", sent=False)
        if isinstance(request, LMRequest) and request.native_tools and not getattr(adapter, "runs_native_tools", False):
            what = f"{request.native_tools[0]['name']}: the adapter {adapter.name!r} runs no native tools"
            raise errors.RequestError(f"{what}. Take adapter='responses', or a model of Anthropic.", sent=False)
        if (check := getattr(adapter, "check", None)) is not None:
            check(request)
        if (prepare := getattr(adapter, "prepare", None)) is not None:
            limit, self.timeout_s = self.timeout_s, None
            await self.wait_for(prepare(request))
            self.timeout_s, self.limited_from = limit, self.clock.now()

    async def wait_for(self, result: Awaitable[T], attempt_s: float = inf) -> T:
        """Await `result` within the time limits of the call and the attempt.

        Raises:
            ModelTimeout: `timeout_s` or `attempt_timeout_s` is over.
            DeadlineExceeded: An enclosing `sm.deadline` is over.
        """
        limit = min(self.seconds_left(), attempt_s)
        if limit == inf:
            return await result
        with aio.deadline_scope(limit) as block:
            self.scopes.append(block)
            try:
                return await result
            finally:
                self.scopes.remove(block)
        # Reached only when the scope has expired: it swallows its own cancellation.
        check_deadline(self.frame or "", self.ambient)
        if limit == attempt_s:
            raise errors.ModelTimeout(f"no reply within attempt_timeout_s={attempt_s:g}")
        self.has_timed_out = True
        raise errors.ModelTimeout(f"no reply within timeout_s={self.timeout_s:g}")

    @contextmanager
    def exclude_time(self, began: float) -> Generator[None]:
        """Take the time from `began` to the end of a block, in which a reader is busy, from no limit of the call."""
        blocks = list(self.scopes)
        for block in blocks:
            block.pause(self.clock.now() - began)
        try:
            yield
        finally:
            for block in blocks:
                block.resume()
            self.limited_from += self.clock.now() - began

    def complete(self, error: errors.ModelError) -> None:
        """Add path, phase, time and number of requests to an error of the call, and remove secrets from it."""
        scrub = self.model.secrets.scrub
        error.model, error.attempts, error.elapsed_s = self.model.model, self.requests, self.elapsed_s
        error.path, error.phase, error.streamed = self.path, self.phase, self.has_begun
        error.provider_message = shorten(scrub(error.provider_message))
        error.request_id = error.request_id and scrub(error.request_id)
        if isinstance(error, errors.BadReplyError):
            error.text = scrub(error.text)
            error.errors = tuple((scrub(pointer), scrub(problem)) for pointer, problem in error.errors)
        module = "" if self.frame is None else f"module: {with_label(self.path, self.frame.name)}   "
        lines = [*filter(None, [self.no_retry_reason]), f"{module}requests sent: {self.requests}"]
        error.ending = "".join(f"\n  {line}" for line in lines)
        room = _MOST_BYTES - len(f"{error.model}: {error.ending}".encode(errors="replace"))
        error.args = (shorten(scrub(str(error.args[0]) if error.args else ""), max(room, 500)),)


async def call_with_fallbacks(
    models: Sequence[LanguageModel], request_to: RequestTo, timeout_s: float | None
) -> LMReply:
    """Return the reply of the first model that succeeds; each is called with its own settings and timeout.

    Raises:
        ModelError: The error of the first model, with those of the others as notes. After a mistake of the caller no
            fallback is tried.
    """
    failures: list[errors.ModelError] = []  # the first one alone
    if len(models) > 1:
        models = await _models_with_record(models, request_to)
    for model in models:
        try:
            seconds = None if model.settings.batch else timeout_s or model.settings.timeout_s
            call = ModelCall(model, seconds, is_last=model is models[-1])
            return await call_model(call, request_to(model), reply_from_journal)
        except (errors.ModelError, errors.ConfigError) as error:
            if failures:
                errors.add_note(failures[0], f"fallback {model.model} failed too: {type(error).__name__}: {error}")
            elif isinstance(error, errors.ModelError):
                failures.append(error)
                errors.shorten_traceback(error)
            else:
                raise
            if not isinstance(error, _FALLS_BACK) or error.streamed:
                break
    return aio.reraise(failures.pop())  # popped: its traceback and this frame would hold each other


async def _models_with_record(models: Sequence[LanguageModel], request_to: RequestTo) -> Sequence[LanguageModel]:
    """Return the model whose reply is recorded, so that those before it are not tried again; else all."""
    part, frame = scope.ambient().journal, current_call()
    if part is not None and part.records_calls:
        for model in models:
            if await part.holds("model", "" if frame is None else frame.path, request_key(model, request_to(model))):
                return [model]
    return models


async def call_model(call: ModelCall, request: Q, work: Callable[[ModelCall, Q], Awaitable[R]]) -> R:
    """Answer a request by the model of a call alone; hooks, counters and meters are notified once per call."""
    model = call.model
    listeners, meters = scope.hooks_inside(call.ambient, call.frame), scope.open_meters(call.frame)
    reply, failure, usage = None, None, NO_USAGE
    try:
        if listeners and call.ambient.readers:
            with call.exclude_time(call.clock.now()):
                await scope.wait_for_readers(call.ambient)
        if listeners:
            notify(listeners, scope.LMBegin(*place_of(call.frame, call.phase), request, request.model))
        streams = [stream for stream in STREAMS.get() if stream.is_read_here]
        if streams and isinstance(request, LMRequest):
            call.relay = Relay(call, streams, request, listeners)
        check_deadline(call.frame or "", call.ambient)
        await aio.checkpoint()  # so that every call can be cancelled, even one that never waits
        reply = await work(call, request)
        if call.relay is not None:
            reply = cast("R", await call.relay.finish(cast("LMReply", reply)))
        if isinstance(reply, LMReply) and reply.message is not None:
            records.set_author(reply.message, model.settings.server)
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
            model.counters.count_cancelled(call.phase, call.requests, usage if call.has_begun else NO_USAGE)
        else:
            usage = call.usage()
            model.counters.count(call.phase, usage, failed=True)
        raise
    finally:
        for meter in meters:
            meter.add(usage, call.phase)
        elapsed_s = call.elapsed_s if reply is None else reply.elapsed_s
        cached = reply is not None and reply.cached
        if isinstance(request, LMRequest):
            error = None if failure is None else scope.error_text(failure)
            ended = (request, reply, usage, call.requests, cached, elapsed_s, error)
            scope.RECENT.append(scope.LMCallNode(request.model, call.phase, 0.0, *ended))
        if listeners:
            ended = (request, request.model, reply, failure, call.requests, usage, elapsed_s, cached)
            notify(listeners, scope.LMEnd(*place_of(call.frame, call.phase), *ended))
        failure = call.relay = None  # a traceback holds this frame, the relay the call: none may keep another alive


async def reply_from_journal(call: ModelCall, request: LMRequest) -> LMReply:
    """Return the reply that a durable block has recorded; else request one, and record it."""
    part = call.ambient.journal
    if part is None or not part.records_calls:
        return await reply_from_cache(call, request)
    async with part.record("model", call.path, request.model, request_key(call.model, request)) as record:
        if (recorded := _reply_of(record.value, call, request)) is not None:
            record.accept()
            return recorded
        reply = await reply_from_cache(call, request)
        if (entry := records.entry_of(reply)) is not None:
            await record.keep(entry, reply.usage)
        return reply


def _reply_of(entry: Mapping[str, Any] | None, call: ModelCall, request: LMRequest) -> LMReply | None:
    """Return the reply in an entry of a cache or a journal; None if it does not satisfy the request."""
    reply = None if entry is None else records.reply_of_entry(entry, call.elapsed_s)
    if reply is None or replies.faults_of_class(request, reply.json):
        return None
    wants_object = request.schema is not None and request.schema.get("type") == "object" and not reply.tool_calls
    return None if wants_object and not is_object(reply.json) else reply


async def reply_from_cache(call: ModelCall, request: LMRequest) -> LMReply:
    """Return the cached reply, or that of an equal call under way; request one if there is neither.

    A new reply is cached before it is returned, unless it was cut off or quotes a secret.
    """
    if (cache := call.model.cache) is None:
        await call.prepare(request)
        return await request_valid_reply(call, request)
    key = request_key(call.model, request)

    async def find() -> LMReply | None:
        return _reply_of(await cache.find(key), call, request)

    if (cached := await find()) is not None:
        return cached
    await call.prepare(request)

    async def ask() -> LMReply:
        if (cached := await find()) is not None:  # an equal call may just have ended
            return cached
        reply = await request_valid_reply(call, request)
        if reply.finish_reason != "length" and (entry := records.entry_of(reply)) is not None:
            text = dump_json(entry)
            if without_secrets(text, call.model.secrets.hidden_texts()) == text:
                await cache.keep(key, entry)
        return reply

    reply = await join_equal_call(call, key, ask)
    if reply.cached and replies.faults_of_class(request, reply.json):  # of an equal call with another class
        reply = await join_equal_call(call, (key, request.data_model), ask)
    return reply


def request_key(model: SharedModel, request: LMRequest) -> str:
    """Return the cache key of a request: a hash of its content, the endpoint and `extra_body`.

    Args:
        model: The model that answers.
        request: The request.

    Returns:
        A SHA-256 in hex, which differs if anything differs that could change the reply.

    Example:
        >>> lm = sm.LanguageModel("embedded/nearest")
        >>> request_key(lm, LMRequest(lm.model, ())) == request_key(lm, LMRequest(lm.model, (), sample=1))
        False

    Source: content addressing.
    """
    settings = model.settings
    return key_of([records.request_content(request, model.adapter), settings.base, settings.extra_body])


async def join_equal_call(call: ModelCall, key: Hashable, ask: Callable[[], Awaitable[R]]) -> R:
    """Return the result of `ask`, run by this call or by an equal one under way on the same cache, which pays for it.

    If the call that runs `ask` exceeds its own time or budget, or its stream breaks off, a waiting call takes over; any
    other failure is raised in all of them.

    Args:
        call: The call.
        key: Equal for equal calls.
        ask: Requests the reply, and caches it.

    Raises:
        ModelError: The error of `ask`, here or in the equal call.
    """

    async def lead() -> tuple[R, ModelCall]:
        try:
            return await ask(), call
        except errors.ModelError as error:
            call.complete(error)  # before the waiting calls get it: only this call knows the secrets
            raise

    def hands_over(error: Exception) -> bool:
        is_own = isinstance(error, errors.ConfigError) or scope.is_from_enclosing_limit(error)
        return is_own or call.has_timed_out or call.has_begun

    ended: tuple[R, ModelCall] = await call.wait_for(cast("Cache", call.model.cache).flights.run(key, lead, hands_over))
    reply, leader = ended
    if leader is call:
        return reply
    unpaid: dict[str, Any] = {"cached": True, "usage": NO_USAGE, "elapsed_s": call.elapsed_s}
    if isinstance(reply, LMReply):
        unpaid |= {"attempts": (), "first_chunk_s": None}
    return replace(reply, **unpaid)


async def request_valid_reply(call: ModelCall, request: LMRequest) -> LMReply:
    """Return a reply that satisfies the request; send an invalid one back while repairs and attempts are left.

    Raises:
        BadReplyError: The reply is refused, cut off, empty or invalid.
    """
    repairs = 0 if call.relay else call.model.settings.repairs  # delivered pieces cannot be taken back
    attempt = sent = without_reasoning_field(request, call.model.adapter)
    while True:
        reply: LMReply = await send_with_retries(call, attempt)
        work = partial(replies.read_whole, reply, request, sent)
        is_large = replies.is_large(reply, request)
        result = await call.wait_for(aio.to_thread(work, abandon=True)) if is_large else work()
        reply, turn, (json, reason, problems) = result
        if not reason:
            if attempt.structured != request.structured:
                call.model.adapter.drops_tools = True
            by = reply.model or request.model
            total = {"usage": call.usage(), "attempts": tuple(call.attempts), "elapsed_s": call.elapsed_s}
            return records.with_fields(reply, json=json, message=turn, model=by, **total)
        if reason not in ("length", "refused") and repairs and call.requests < call.most_requests:
            repairs -= 1
            in_text = attempt.structured == "calls" or getattr(call.model.adapter, "drops_tools", False)
            turns = repair_turns(replies.quote(reply), problems, attempt, in_text and may_call(attempt))
            attempt = replace(attempt, messages=(*attempt.messages, *turns))
        elif _may_drop_tools(call, attempt, reply):
            attempt = replace(sent, structured="calls")
        else:
            faults = [f"- {pointer or '(root)'}: {problem}" for pointer, problem in problems]
            text = "\n  ".join([_FAULTS[reason], *faults, *_hints(call, request, reply, reason)])
            error = errors.BadReplyError(text, text=replies.quote(reply), errors=problems, reason=reason)
            error.request_id = reply.request_id
            raise error


def _hints(call: ModelCall, request: LMRequest, reply: LMReply, reason: str) -> Iterator[str]:
    """Yield what may help against an invalid reply."""
    if request.tools and not reply.tool_calls and call.model.settings.api_base is not None:
        yield _NO_CALLS
    stop = {**request.params, **call.model.settings.extra_body}.get("stop")
    if stop and reason not in ("length", "refused"):
        yield _STOPPED.format(stop)


def _may_drop_tools(call: ModelCall, request: LMRequest, reply: LMReply) -> bool:
    """Whether the server of an invalid reply may have dropped the tools, and can be sent them in text.

    An adapter may have `drops_tools`: whether its server is known to drop the tools of a request.
    """
    is_plain = request.structured is None and call.relay is None and may_call(request)
    is_empty = not (reply.tool_calls or reply.reasoning or reply.finish_reason == "content_filter")
    may_drop = call.model.settings.base is not None and hasattr(call.model.adapter, "drops_tools")
    return is_plain and is_empty and may_drop and call.requests < call.most_requests


async def send_with_retries(call: ModelCall, request: AnyRequest) -> Any:
    """Send a request until it is answered: the one retry loop. At most `attempts` requests are sent per call.

    Those to a server that is starting do not count: it is waited for as long as the call may take, unless there is a
    fallback, or `attempts` is 1. Nor do those of an earlier process, whose failures are found in a batch job.

    Raises:
        ModelError: A permanent failure; or the last transient one, when no attempt is left or the wait is too long.
    """
    failures, send = 0, send_within_budgets if call.model.limit is None else send_within_limit
    while True:
        try:
            reply = await send(call, request)
        except errors.ModelError as error:
            seconds = _pause(call, error, failures)
            if seconds is None:
                raise
        else:
            if call.model.is_awaited:
                call.model.is_awaited = False
            return reply
        began = call.clock.now()
        await (call.clock.sleep(seconds) if call.model.backoff else aio.checkpoint())
        call.waited_s = call.clock.now() - began
        failures += 1


def _pause(call: ModelCall, error: errors.ModelError, failures: int) -> float | None:
    """Return how long to wait before the request is sent again; None if it is not."""
    model, left = call.model, call.seconds_left()
    if call.has_timed_out or not (error.transient and error.sent):
        return None
    if is_starting := error.starting and model.backoff and model.attempts > 1:
        if not call.is_last:
            call.no_retry_reason = "not waited for: a fallback is left"
            return None
        call.most_requests += 1
        left = _LONGEST_START_S - call.elapsed_s if left == inf else left
        if not model.is_awaited:  # once, however many calls wait
            model.is_awaited = True
            _LOG.warning("%s: %s. Waiting for it, for up to %.3g s.", model.model, error.args[0], max(left, 0))
    call.most_requests += error.recorded  # which is no request of this process
    if call.requests >= call.most_requests:
        return None
    seconds = error.retry_after_s
    if seconds is None:
        most = _LONGEST_POLL_S if is_starting else _LONGEST_JITTER_S
        seconds = _JITTER.uniform(0.0, min(most, _FIRST_WAIT_S * 2 ** min(failures, 10)))
    if call.has_begun:
        call.no_retry_reason = "not retried: pieces of the reply had been delivered"
    elif seconds > _LONGEST_WAIT_S:
        call.no_retry_reason = f"not retried: the wait would be {seconds:g} s, longer than {_LONGEST_WAIT_S:g} s"
    elif seconds >= left and is_starting:
        call.no_retry_reason = f"the server was waited for, {call.elapsed_s:.3g} s; a longer timeout_s waits longer"
    elif seconds >= left:
        away = f"{max(left, 0):.3g} s away"
        call.no_retry_reason = f"not retried: a wait of {seconds:.3g} s would pass the deadline of the call, {away}"
    return None if call.no_retry_reason else seconds


async def send_within_limit(call: ModelCall, request: AnyRequest) -> Any:
    """Send one request when the limit of the model has room for it.

    Raises:
        ModelTimeout: The time of the call was over first.
        RequestError: It may use more tokens than the limit allows per minute.
    """
    await call.model.price()  # now, so that nothing waits between the slot and its request
    limit, began, sent_before = cast("Limit", call.model.limit), call.clock.now(), call.requests
    slot = limit.slot(sum(most_tokens(request)))
    await call.wait_for(slot.begin())
    try:
        call.waited_s += call.clock.now() - began
        reply = await send_within_budgets(call, request)
        slot.settle(reply.usage.prompt_tokens + reply.usage.completion_tokens)
        return reply
    finally:
        slot.end(sent=call.requests > sent_before)


async def send_within_budgets(call: ModelCall, request: AnyRequest) -> Any:
    """Send one request if every enclosing budget has room for it, and account for what it used.

    Raises:
        BudgetExceeded: It does not fit; nothing was sent.
        ConfigError: A cost is limited, and the price of the model is unknown.
    """
    budgets = call.ambient.budgets
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
            reply = await send_once(call, request)
            used = reply.usage
            return _check_ending(call, reply) if isinstance(reply, LMReply) else reply
        except BaseException as error:  # a cancellation releases all but what had arrived of a stream
            used = used or (call.relay and call.relay.partial_usage)
            if used is None and isinstance(error, Exception) and getattr(error, "sent", True):
                reservation.settle(NO_USAGE)  # a request was sent, and brought no reply
            raise
        finally:
            if used is not None:
                spent = used.cost_usd
                if not spent:  # the adapter did not report it
                    tokens = used.prompt_tokens, used.completion_tokens, used.cached_tokens
                    written = (used.cache_write_tokens,) if used.cache_write_tokens else ()
                    spent = None if price is None else price.cost_usd(*tokens, *written)
                used = records.with_fields(used, calls=1, requests=1, cost_usd=spent)
                reservation.settle(used)
                call.total_usage = used if not call.total_usage.calls else call.total_usage + used


def _check_ending(call: ModelCall, reply: LMReply) -> LMReply:
    """Return a reply that ended by itself or was cut.

    Raises:
        RequestError, UnavailableError: It was paused, or broke off.
    """
    try:
        return replies.check_ending(reply)
    except errors.ModelError as error:
        call.attempts[-1] = replace(call.attempts[-1], error=f"{type(error).__name__}: {error}")
        raise


async def send_once(call: ModelCall, request: AnyRequest) -> Any:
    """Send one request to the adapter: timed, recorded and counted.

    Raises:
        ModelTimeout: No reply in time.
        ModelError: Raised by the adapter.
        TypeError: The adapter returned something other than an `LMReply` or an `EmbeddingReply`, or one with a field
            of another type.
    """
    adapter, kind = call.model.adapter, LMReply if isinstance(request, LMRequest) else records.EmbeddingReply
    waited, call.waited_s = call.waited_s, 0.0
    call.requests += 1
    began = call.clock.now()
    try:
        sent: Any = request
        reply: Any = adapter.send(sent) if call.relay is None else call.relay.send(adapter, sent)
        if not isinstance(reply, kind):
            reply = await call.wait_for(reply, call.model.settings.attempt_timeout_s or inf)
    except errors.ModelError as error:
        if error.sent:
            text = shorten(call.model.secrets.scrub(f"{type(error).__name__}: {error}"))
            call.attempts.append(Attempt(error.status, text, call.clock.now() - began, waited))
        else:
            call.requests -= 1
        raise
    if not isinstance(reply, kind):
        raise TypeError(f"adapter {adapter.name!r} returned {reply!r:.200}, wanted an {kind.__name__}.")
    records.check_reply(reply, f"adapter {adapter.name!r} returned")
    call.attempts.append(Attempt(200, None, call.clock.now() - began, waited))
    return reply

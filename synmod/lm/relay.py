"""Streams: the pieces of replies as they arrive.

A streamed call or program runs in a task of its own, and its model calls deliver their pieces to the reader one by one.
While a piece waits to be read, the calls wait too, and read no further from the provider.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final, Generic, Literal, ParamSpec, Self, TypeVar, cast

from pydantic_core import from_json

from synmod.data import Schema, ToolCall
from synmod.errors import ArgumentError, BadReplyError, RunError
from synmod.leaves import Clock, Json, aio, close_generator, frozen, frozen_dict, frozen_list, is_array, is_object
from synmod.scope import Hook, LMChunkEvent, Place, Usage, notify, reset

from .prompt import json_text
from .records import Adapter, LMChunk, LMReply, LMRequest, check_chunk, estimated_usage

P = ParamSpec("P")
T = TypeVar("T")

# -- reading ---------------------------------------------------------------------------------------------------------

STREAMS: Final[ContextVar[tuple[stream[Any], ...]]] = ContextVar("synmod_streams", default=())
"""The enclosing streams, outermost first."""


class stream(Generic[T]):  # noqa: N801  # read as a word: `async with sm.stream(program, inputs) as s:`
    """Run a program and read the pieces of all its model calls as they arrive.

    Every model call inside is streamed, including concurrent ones; modules receive whole replies as always. While the
    reader is busy with a piece, the calls wait. Leaving the block early cancels the program and closes its connections.

    Args:
        program: What to run: a module, or any async function.
        *inputs: Its arguments.
        **kwargs: Likewise by keyword.

    Raises:
        ArgumentError: `program` cannot be called.
        RunError: It is read outside its block, or entered twice; `result` is read before the end.
        Exception: What the program raised; raised by the iterator.

    Example:
        >>> from synmod.testing import ScriptedLM
        >>> ask = sm.Generator({"answer": str}, language_model=ScriptedLM(['{"answer": "Paris"}']))
        >>> query = sm.JsonDataModel({"query": "Capital of France?"}, schema={"type": "object"})
        >>> async def main():
        ...     async with sm.stream(ask, query) as s:
        ...         async for chunk in s:
        ...             print(chunk.text, chunk.partial)
        ...     return s.result["answer"]
        >>> sm.run(main)
        {"answer": "Paris"} {'answer': 'Paris'}
        'Paris'

    Source: LangGraph's `astream`, trio's memory channels; differs: nothing is buffered, so a slow reader is waited for.
    """

    def __init__(self, program: Callable[P, Awaitable[T]], *inputs: P.args, **kwargs: P.kwargs) -> None:
        if not callable(program):
            got = type(cast("object", program)).__name__
            raise ArgumentError(f"stream got {got}, wanted a module or an async function: sm.stream(program, inputs).")
        self._main = lambda: program(*inputs, **kwargs)
        self._group: aio.task_group | None = None
        self._thread = 0
        self._is_open = False
        self._chunk: LMChunk | None = None  # the next one to read
        self._arrival, self._room = aio.Gate(), aio.Gate()
        self._has_ended = False
        self._failure: Exception | None = None
        self._results: list[T] = []

    async def __aenter__(self) -> Self:
        if self._group is not None:
            raise RunError(f"{type(self).__name__}: a stream is read once; make another one.")
        self._group, self._is_open, self._thread = aio.task_group(), True, threading.get_ident()
        await self._group.__aenter__()
        self._group.start_soon(self._run)
        return self

    async def __aexit__(self, *raised: object) -> None:
        group, self._is_open, self._failure = self._group, False, None
        assert group is not None
        self._room.wake_all()
        group.cancel()
        await group.__aexit__(*cast("Any", raised))

    async def _run(self) -> None:
        """Run the program; its failure is kept for the reader."""
        STREAMS.set((*STREAMS.get(), self))  # in the context of this task alone
        try:
            self._results.append(await self._main())
        except Exception as error:  # noqa: BLE001  # raised where the stream is read
            self._failure = error
        finally:
            self._has_ended = True
            self._arrival.wake_all()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LMChunk:
        if not self._is_open:
            name = type(self).__name__
            raise RunError(f"{name}: read it in its block: `async with ... as s:`, and inside `async for chunk in s:`.")
        while (chunk := self._chunk) is None:
            if self._has_ended:
                failure, self._failure = self._failure, None
                if failure is None:
                    raise StopAsyncIteration
                try:
                    aio.reraise(failure)
                finally:
                    del failure  # else its traceback and this frame form a reference cycle
            await self._arrival.wait()
        self._chunk = None
        self._room.wake()
        return chunk

    async def put(self, chunk: LMChunk, untimed: Callable[[], AbstractContextManager[None]]) -> None:
        """Deliver a piece once the previous one was read, untimed; do nothing if the reader has left the block."""
        while self._chunk is not None and self._is_open:
            with untimed():
                await self._room.wait()
        if self._is_open:
            self._chunk = chunk
            self._arrival.wake()

    @property
    def is_read_here(self) -> bool:
        """Whether the block is open in this thread; calls in other threads cannot wait for its reader."""
        return self._is_open and self._thread == threading.get_ident()

    @property
    def result(self) -> T:
        """What the program returned.

        Raises:
            RunError: It has not ended, or was closed early, or failed.
        """
        if not self._results:
            raise RunError(f"{type(self).__name__}: there is no result; read the stream to its end first.")
        return self._results[0]


class LMStream(stream[LMReply]):
    """The reply of one model call as it arrives: what `await lm(messages, stream=True)` returns.

    The request leaves when the block is entered. The last piece is `done`; leaving the block before closes the
    connection. Failures before the first piece are retried as without streaming. Later ones, and an invalid reply, are
    raised by the iterator at once.

    Raises:
        RunError: It is read outside its block, or entered twice; `reply` is read before the end.
        ModelError: As for a call that is not streamed; raised by the iterator.

    Example:
        >>> from synmod.testing import ScriptedLM
        >>> lm = ScriptedLM([[sm.LMChunk("Par"), sm.LMChunk("is")]])
        >>> async def main():
        ...     async with await lm("Capital of France?", stream=True) as s:
        ...         async for chunk in s:
        ...             print(repr(chunk.text), chunk.done)
        ...     return s.reply.text
        >>> sm.run(main)
        'Par' False
        'is' False
        '' True
        'Paris'

    Source: the streams of the openai SDK; differs: partial JSON, and validated at its end.
    """

    @property
    def reply(self) -> LMReply:
        """The whole reply, valid as any other.

        Raises:
            RunError: The stream has not ended, or was closed early, or failed.
        """
        return self.result


# -- delivery --------------------------------------------------------------------------------------------------------


class Relay:
    """Receives the reply of one streamed call, and delivers each piece once to hooks and streams.

    Args:
        streams: The streams that read the call.
        request: The request of the call.
        listeners: The hooks to notify.
        place: The fields that every record of the call begins with.
        clock: The clock of the call.
        untimed: Stops the time of the call in a block, while a reader is busy.

    Attributes:
        begun: When the first piece was delivered; None before.
        came: The estimated usage of a request that broke off after pieces of its reply had arrived; else None.
    """

    def __init__(
        self,
        streams: list[stream[Any]],
        request: LMRequest,
        listeners: tuple[Hook, ...],
        place: Place,
        clock: Clock,
        untimed: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._streams, self._request, self._listeners, self._place = streams, request, listeners, place
        self._clock, self._untimed = clock, untimed
        self._shown = (0, 0)  # characters of the text and of the reasoning
        self._text = ""  # of the pieces
        self._partial: Json = None  # the value shown last, frozen
        self.begun: float | None = None
        self.came: Usage | None = None

    async def received(self, adapter: Adapter, request: LMRequest) -> LMReply:
        """Send one request and deliver its pieces; an adapter without `stream` has none before the whole reply."""
        self.came = None
        token = STREAMS.set(())  # an adapter may call models itself; those calls are not streamed
        try:
            source = getattr(adapter, "stream", None)
            if source is not None:
                return await self._joined(source(request), adapter, request)
            reply = adapter.send(request)
            return reply if isinstance(reply, LMReply) else await reply
        finally:
            reset(STREAMS, token)

    async def _joined(self, pieces: AsyncIterator[LMChunk | LMReply], adapter: Adapter, request: LMRequest) -> LMReply:
        """Deliver pieces as they arrive, and return the reply that they form."""
        text = reasoning = ""
        calls: tuple[ToolCall, ...] = ()
        where = f"adapter {adapter.name!r} streamed"
        reply: LMReply | None = None
        try:
            async for piece in pieces:
                if isinstance(piece, LMReply):
                    reply = piece
                    continue
                check_chunk(piece, where)
                text += piece.text
                reasoning += piece.reasoning
                calls += (*piece.tool_calls,)
                if not piece.done and (new := self._new(text, reasoning)):  # the last one is delivered after validation
                    await self._deliver(new)
        except BaseException:
            if text or reasoning:
                self.came = estimated_usage(request, len(text) + len(reasoning))
            raise
        finally:
            await close_generator(pieces)
        self._text = text
        reply = reply or LMReply(usage=estimated_usage(request, len(text) + len(reasoning)))
        joined = {"text": text or reply.text, "reasoning": reasoning or reply.reasoning}
        return replace(reply, **joined, tool_calls=reply.tool_calls or calls)

    def _new(self, text: str, reasoning: str) -> LMChunk | None:
        """Return the new part of an incomplete reply; None if there is nothing new."""
        value: Json = None
        if self._request.schema is not None:
            text = text[: max(_settled(text), self._shown[0])]
            value = self._grown(text, self._request.schema)
        is_new = (len(text), len(reasoning)) != self._shown
        return self._next(text, reasoning, (), value, done=False) if is_new else None

    def _grown(self, text: str, schema: Schema) -> Json:
        """Return the value as far as it is known; None for prose before the answer, or a repeated key."""
        value = _partial_json(text)
        if not isinstance(value, _KINDS.get(str(schema.get("type")), object)):
            return None
        try:
            value = frozen(value) if self._partial is None else _extended(self._partial, value)
        except ValueError:
            return None
        self._partial = self._partial if value is None else value
        return value

    async def finish(self, reply: LMReply, started: float) -> LMReply:
        """Deliver the rest of a complete, valid reply as the last piece; return it with the time of the first one.

        Raises:
            BadReplyError: The value contradicts the partial values that were delivered.
        """
        if reply.json is not None and self._partial is not None and not _goes_on(self._partial, reply.json):
            what = "the answer in the reply is another value than the one that it begins with"
            remedy = "a call that is not streamed takes such a reply"
            begins = f"it begins with {json_text(self._partial)!r:.200}"  # last: what was cut is scrubbed at an end
            raise BadReplyError(f"{what}: {remedy}; {begins}", text=reply.text, request_id=reply.request_id)
        if reply.text != self._text:  # it is the arguments of a tool, of which nothing was shown
            self._shown = (0, self._shown[1])
        await self._deliver(self._next(reply.text, reply.reasoning or "", reply.tool_calls, reply.json, done=True))
        return replace(reply, first_chunk_s=None if self.begun is None else self.begun - started)

    def _next(self, text: str, reasoning: str, calls: tuple[ToolCall, ...], value: Json, *, done: bool) -> LMChunk:
        """Return the next piece: the text and reasoning that were not delivered before."""
        (of_text, of_reasoning), place = self._shown, self._place
        self._shown = len(text), len(reasoning)
        if self.begun is None:
            self.begun = self._clock.now()
        return LMChunk(text[of_text:], reasoning[of_reasoning:], calls, value, done, place[2], place[0])

    async def _deliver(self, chunk: LMChunk) -> None:
        """Deliver a piece to the hooks, then to each stream once it has room."""
        if self._listeners:
            notify(self._listeners, LMChunkEvent(*self._place, self._request, self._request.model, chunk))
        for one in self._streams:
            await one.put(chunk, self._untimed)


_KINDS: Final = {"object": dict, "array": list, "string": str}  # the type of a value, by the `type` of its schema


def _extended(earlier: Json, later: Json) -> Json:
    """Return a later partial value, frozen; it shares the parts of the earlier one, so that only new ones are frozen.

    Raises:
        ValueError: It contradicts the earlier one.
    """
    if is_array(earlier) and is_array(later) and earlier:
        last = len(earlier) - 1
        if last < len(later) and earlier[:last] == later[:last]:
            going_on, new = _extended(earlier[last], later[last]), map(frozen, later[last + 1 :])
            return frozen_list([*earlier[:last], going_on, *new])
    elif is_object(earlier) and is_object(later) and earlier:
        *ended, last = earlier
        if last in later and all(name in later and earlier[name] == later[name] for name in ended):
            new = {name: frozen(part) for name, part in later.items() if name not in earlier}
            return frozen_dict({**earlier, last: _extended(earlier[last], later[last]), **new})
    elif _goes_on(earlier, later):
        return frozen(later)
    raise ValueError


def _goes_on(earlier: Json, later: Json) -> bool:
    """Whether the earlier value may be a partial value of the later one."""
    if isinstance(earlier, str) and isinstance(later, str):
        return later.startswith(earlier)
    if is_array(earlier) and is_array(later):
        return len(earlier) <= len(later) and all(map(_goes_on, earlier, later))
    if is_object(earlier) and is_object(later):
        return all(name in later and _goes_on(value, later[name]) for name, value in earlier.items())
    return type(earlier) is type(later) and earlier == later


def _partial_json(text: str, partly: bool | Literal["trailing-strings"] = "trailing-strings") -> Json:
    """Return as much of a JSON value as the beginning of its text determines; None for nothing."""
    try:
        return from_json(text, allow_partial=partly, allow_inf_nan=False)
    except ValueError:
        return None


def _settled(text: str) -> int:
    """Return how many characters of a partial JSON text are final: all but a number at its end, which may go on."""
    head = text.rstrip("-+.0123456789eE")
    first, before = text[len(head) :][:1], head[-1:]
    if not first or first not in "-0123456789" or before not in "[:, \t\r\n":
        return len(text)
    ends_in_string = _partial_json(text) != _partial_json(text, partly=True)  # which only the first keeps
    return len(text) if ends_in_string else len(head)

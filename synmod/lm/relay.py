"""Streams: the pieces of replies as they arrive.

A streamed call or program runs in a task of its own, and its model calls deliver their pieces to the reader one by one.
While a piece waits to be read, the calls wait too, and read no further from the provider.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, Self, cast, overload

from typing_extensions import TypeVar

from synmod.data import ToolCall
from synmod.errors import ArgumentError, RunError
from synmod.leaves import Json, aio, close_generator, set_in_block
from synmod.scope import Block, CallBegin, CallEnd, Emitted, Event, Hook, LMChunkEvent, Usage, notify, place_of

from .partial import GrowingJson, PartialJson
from .records import Adapter, LMChunk, LMReply, LMRequest, check_chunk, estimate_usage, with_partial

if TYPE_CHECKING:
    from .call import ModelCall

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item", default=LMChunk)
R = TypeVar("R")

# -- reading ---------------------------------------------------------------------------------------------------------

STREAMS: Final[ContextVar[tuple[stream[Any, Any], ...]]] = ContextVar("synmod_streams", default=())
"""The enclosing streams, outermost first."""


def unstreamed() -> AbstractContextManager[None]:
    """Leave the model calls in a block out of the enclosing streams."""
    return set_in_block(STREAMS, ())


class stream(Generic[T, Item]):  # noqa: N801  # read as a word: `async with sm.stream(program, inputs) as s:`
    """Run a program and read the pieces of all its model calls as they arrive.

    Every model call inside is streamed, including concurrent ones; modules receive whole replies as always. While the
    reader is busy with a piece, the calls wait. Leaving the block early cancels the program and closes its connections.

    Args:
        program: A module, or any async function.
        *inputs: Its arguments.
        events: Whether to read, in the order in which they happen, also the begin and the end of each call of a module
            or tool (`scope.CallBegin`, `scope.CallEnd`) and what `sm.emit` reports (`Emitted`). Neither waits for the
            reader; the next call of a module or a model does.
        **kwargs: Likewise by keyword.

    Raises:
        ArgumentError: `program` cannot be called.
        RunError: It is read outside its block, or entered twice; `result` is read before the end.
        Exception: Raised by the program, and again by the iterator.

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

    @overload
    def __init__(
        self: stream[R, LMChunk | CallBegin | CallEnd | Emitted],
        program: Callable[..., Awaitable[R]],
        *inputs: Any,
        events: Literal[True],
        **kwargs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: stream[R, LMChunk], program: Callable[P, Awaitable[R]], *inputs: P.args, **kwargs: P.kwargs
    ) -> None: ...
    def __init__(self, program: Callable[..., Awaitable[T]], *inputs: Any, events: bool = False, **kwargs: Any) -> None:
        if not callable(program):
            got = type(cast("object", program)).__name__
            raise ArgumentError(f"stream got {got}, wanted a module or an async function: sm.stream(program, inputs).")
        self._main, self._events = lambda: program(*inputs, **kwargs), events
        self._group: aio.task_group | None = None
        self._thread = 0
        self._is_open = False
        self._unread: deque[Any] = deque()  # without events one at most
        self._wake_soon: Callable[..., object] | None = None
        self._arrival, self._room = aio.Gate(), aio.Gate()
        self._has_ended = False
        self._failures: list[Exception] = []  # one at most
        self._results: list[T] = []

    async def __aenter__(self) -> Self:
        if self._group is not None:
            raise RunError(f"{type(self).__name__}: a stream is read once; make another one.")
        self._group, self._is_open, self._thread = aio.task_group(), True, threading.get_ident()
        self._wake_soon = aio.call_soon_here() if self._events else None
        await self._group.__aenter__()
        self._group.start_soon(self._run)
        return self

    async def __aexit__(self, *raised: object) -> None:
        group, self._is_open = self._group, False
        self._failures.clear()
        assert group is not None
        self._room.wake_all()
        group.cancel()
        await group.__aexit__(*cast("Any", raised))

    async def _run(self) -> None:
        """Run the program; its failure is kept for the reader."""
        STREAMS.set((*STREAMS.get(), self))  # in the context of this task alone
        try:
            with _Listening(self) if self._events else nullcontext():
                self._results.append(await self._main())
        except Exception as error:  # noqa: BLE001  # raised where the stream is read
            self._failures.append(error)
        finally:
            self._has_ended = True
            self._arrival.wake_all()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if not self._is_open:
            name = type(self).__name__
            raise RunError(f"{name}: read it in its block: `async with ... as s:`, and inside `async for chunk in s:`.")
        while not self._unread:
            if self._has_ended:
                if not self._failures:
                    raise StopAsyncIteration
                aio.reraise(self._failures.pop())
            await self._arrival.wait()
        item = self._unread.popleft()
        if not self._unread:
            self._room.wake()
        return item

    async def put(self, chunk: LMChunk, call: ModelCall) -> None:
        """Deliver a piece once the previous one was read; do nothing if the reader has left the block. Hot."""
        if self._is_full:
            began = call.clock.now()
            await aio.checkpoint()  # a reader that keeps up takes its turn
            if self._is_full or call.clock.now() - began > _TURN_S:
                with call.exclude_time(began):
                    while self._is_full:
                        await self._room.wait()
        if self._is_open:
            self._unread.append(chunk)
            self._arrival.wake()

    def add(self, event: Event) -> None:
        """Deliver an event, from any thread, without waiting."""
        if self._is_open and self._wake_soon is not None:
            self._unread.append(event)
            if self._thread == threading.get_ident():
                self._arrival.wake()
            else:
                self._wake_soon(self._arrival.wake)

    async def wait_for_room(self) -> None:
        """Wait until the reader has taken all events and pieces, or has left the block."""
        while self._is_full and self.is_read_here:
            await self._room.wait()
        self._room.wake()  # a call that waits may deliver nothing for long

    @property
    def _is_full(self) -> bool:
        """Whether a piece or an event waits for its reader."""
        return bool(self._unread) and self._is_open

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


class _Listening(Block):
    """The block in which a stream receives events."""

    def __init__(self, reader: stream[Any, Any]) -> None:
        super().__init__()
        self._reader = reader

    def __enter__(self) -> None:
        self.enter(hooks=(_Events(self._reader.add),), readers=self._reader)


class _Events(Hook):
    """Passes events on to a stream."""

    def __init__(self, add: Callable[[Event], None]) -> None:
        vars(self).update(dict.fromkeys(("on_call_begin", "on_call_end", "on_emit"), add))


_TURN_S: Final = 1e-4  # less of a reader's time is not worth the arithmetic


class LMStream(stream[LMReply]):
    """The reply of one model call as it arrives: `lm.stream(messages)`, or `await lm(messages, stream=True)`.

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
        ...     async with lm.stream("Capital of France?") as s:
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
        call: The call.
        streams: The streams that read it.
        request: Its request.
        listeners: The hooks to notify.

    Attributes:
        first_chunk_at: When the first piece was delivered; None before.
        partial_usage: The estimated usage of a request that broke off after pieces of its reply had arrived; else None.
    """

    def __init__(
        self, call: ModelCall, streams: list[stream[Any, Any]], request: LMRequest, listeners: tuple[Hook, ...]
    ) -> None:
        self._call, self._streams, self._request, self._listeners = call, streams, request, listeners
        self._place = place_of(call.frame, call.phase)
        self._shown = (0, 0)  # characters of the text and of the reasoning
        self._text = ""  # of the pieces
        schema = request.schema
        self._json = None if schema is None else GrowingJson(_KINDS.get(str(schema.get("type"))))
        self._signs, self._number = PartialJson(), ""  # what reads ahead, and the number at the end that may go on
        self.first_chunk_at: float | None = None
        self.partial_usage: Usage | None = None

    async def send(self, adapter: Adapter, request: LMRequest) -> LMReply:
        """Send one request and deliver its pieces; an adapter without `stream` has none before the whole reply."""
        self.partial_usage = None
        with unstreamed():  # an adapter may call models itself
            source = getattr(adapter, "stream", None)
            if source is not None:
                return await self._join(source(request), adapter, request)
            reply = adapter.send(request)
            return reply if isinstance(reply, LMReply) else await reply

    async def _join(self, pieces: AsyncIterator[LMChunk | LMReply], adapter: Adapter, request: LMRequest) -> LMReply:
        """Deliver pieces as they arrive, and return the reply that they form."""
        text, reasoning = StringIO(), StringIO()
        calls: tuple[ToolCall, ...] = ()
        where = f"adapter {adapter.name!r} streamed"
        reply: LMReply | None = None
        try:
            async for piece in pieces:
                if isinstance(piece, LMReply):
                    reply = piece
                    continue
                check_chunk(piece, where)
                text.write(piece.text)
                reasoning.write(piece.reasoning)
                if piece.tool_calls:
                    calls += (*piece.tool_calls,)
                if not piece.done and (new := self._new(piece)):  # the last one is delivered after validation
                    await self._deliver(new)
        except BaseException:
            if characters := text.tell() + reasoning.tell():
                self.partial_usage = estimate_usage(request, characters)
            raise
        finally:
            await close_generator(pieces)
        self._text = text.getvalue()
        reply = reply or LMReply(usage=estimate_usage(request, text.tell() + reasoning.tell()))
        joined = {"text": self._text or reply.text, "reasoning": reasoning.getvalue() or reply.reasoning}
        return replace(reply, **joined, tool_calls=reply.tool_calls or calls)

    def _new(self, piece: LMChunk) -> LMChunk | None:
        """Return what a piece adds to an incomplete reply; None for nothing."""
        text, partial_json = piece.text, None
        if self._json is not None:
            self._signs.feed(text)
            text, self._number = self._number + text, self._signs.number
            text = text.removesuffix(self._number)
            partial_json = partial(self._json.at, self._json.add(text))
        return self._next(text, piece.reasoning, partial_json) if text or piece.reasoning else None

    async def finish(self, reply: LMReply) -> LMReply:
        """Deliver the rest of a complete, valid reply as the last piece; return it with the time of the first one.

        Its value may be another than what was shown, such as that of a draft before the answer.
        """
        if reply.text != self._text:  # it is the arguments of a tool, of which nothing was shown
            self._shown = (0, self._shown[1])
        of_text, of_reasoning = self._shown
        last = self._next(reply.text[of_text:], (reply.reasoning or "")[of_reasoning:])
        await self._deliver(replace(last, tool_calls=reply.tool_calls, partial=reply.json, done=True))
        return replace(reply, first_chunk_s=self.first_chunk_at and self.first_chunk_at - self._call.started)

    def _next(self, text: str, reasoning: str, partial_json: Callable[[], Json] | None = None) -> LMChunk:
        """Return the next piece."""
        self._shown = self._shown[0] + len(text), self._shown[1] + len(reasoning)
        if self.first_chunk_at is None:
            self.first_chunk_at = self._call.clock.now()
        chunk = LMChunk(text, reasoning, path=self._place[2], call_id=self._place[0])
        return chunk if partial_json is None else with_partial(chunk, partial_json)

    async def _deliver(self, chunk: LMChunk) -> None:
        """Deliver a piece to the hooks, then to each stream once it has room."""
        if self._listeners:
            notify(self._listeners, LMChunkEvent(*self._place, self._request, self._request.model, chunk))
        for stream in self._streams:
            await stream.put(chunk, self._call)


_KINDS: Final = {"object": dict, "array": list, "string": str}  # the type of a value, by the `type` of its schema

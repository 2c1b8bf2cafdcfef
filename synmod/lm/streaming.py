"""Streams: the pieces of replies as they arrive; and the parser for streams of chat completions.

A streamed call or program runs in a task of its own, and its model calls deliver their pieces to the reader one by one.
While a piece waits to be read, the calls wait too, and read no further from the provider.
"""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from io import StringIO
from typing import Any, Final, Generic, Literal, ParamSpec, Self, TypeVar, cast

from pydantic_core import from_json

from synmod.data import Schema, ToolCall
from synmod.errors import ArgumentError, BadReplyError, RunError
from synmod.leaves import Clock, Json, aio, close_generator, frozen, frozen_dict, frozen_list, is_array, is_object
from synmod.scope import Hook, LMChunkEvent, Place, Usage, notify, reset

from .prompt import json_text
from .records import Adapter, LMChunk, LMReply, LMRequest, estimated_usage

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

    async def put(self, chunk: LMChunk) -> None:
        """Deliver a piece once the previous one was read; do nothing if the reader has left the block."""
        while self._chunk is not None and self._is_open:
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

    Attributes:
        begun: When the first piece was delivered; None before.
        came: The estimated usage of a request that broke off after pieces of its reply had arrived; else None.
    """

    def __init__(
        self, streams: list[stream[Any]], request: LMRequest, listeners: tuple[Hook, ...], place: Place, clock: Clock
    ) -> None:
        self._streams, self._request, self._listeners, self._place = streams, request, listeners, place
        self._clock = clock
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
        reply: LMReply | None = None
        try:
            async for piece in pieces:
                if isinstance(piece, LMReply):
                    reply = piece
                    continue
                if not isinstance(piece, LMChunk):  # pyright: ignore[reportUnnecessaryIsInstance]  (adapters may be untyped)
                    raise TypeError(f"adapter {adapter.name!r} streamed {piece!r:.200}, wanted an LMChunk.")
                text += piece.text
                reasoning += piece.reasoning
                calls += piece.tool_calls
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
            await one.put(chunk)


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


# -- chat completions ------------------------------------------------------------------------------------------------

MOST_BODY: Final = 32 * 2**20
"""How many bytes of an answer, or characters of a streamed one, are kept."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=[^\n])")  # a CR at the very end waits for what follows it


class ServerSentEvents:
    r"""Splits the bytes of a stream into the data of its events, wherever packets begin and end.

    Example:
        >>> events = ServerSentEvents()
        >>> list(events.feed(b"data: on")), list(events.feed(b"e\r\n\r\n: a comment\n\ndata: two\n\n"))
        ([], [b'one', b'two'])

    Source: the living standard of HTML, server-sent events.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of a line that has not ended
        self._data: list[bytes] = []  # of an event that has not ended
        self._name = b""
        self.held = 0  # bytes that have arrived of an event that has not ended
        self.name = b""  # of the event whose data was yielded last

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Yield the data of the events that end in what was received."""
        self.held += len(received)
        self._rest.append(received)
        if b"\n" not in received and b"\r" not in received:
            return
        *lines, rest = _LINE_END.split(b"".join(self._rest))
        self._rest = [rest]
        for line in lines:
            if line.startswith((b"data:", b"\xef\xbb\xbfdata:")):  # a byte order mark may begin the stream
                line = line.partition(b":")[2]
                self._data.append(line[1:] if line.startswith(b" ") else line)
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif not line:
                data, self._data, self.held = self._data, [], len(rest)
                self.name, self._name = self._name, b""
                if data:
                    yield b"\n".join(data)


class Assembly:
    """Puts a chat completion together from the records of its stream.

    Attributes:
        error: The error record of the stream; None if there was none.
        fault: Why the stream cannot be read; "" if it can.
        has_ended: Whether the rest of the stream is ignored: its last record, or a fault, has arrived.
    """

    def __init__(self) -> None:
        self._events = ServerSentEvents()
        self._parts = {name: StringIO() for name in ("content", "reasoning_content", "refusal")}
        self._calls: list[dict[str, Any]] = []
        self._calls_by_index: dict[str, dict[str, Any]] = {}  # the last call of each index
        self._thinking: list[dict[str, Any]] = []
        self._id: Any = None
        self._usage: Any = None
        self._finish_reason: Any = None
        self._has_choice = False
        self._room = MOST_BODY
        self.error: Any = None
        self.fault = ""
        self.has_ended = False

    @property
    def is_whole(self) -> bool:
        """Whether the reply is complete, except perhaps its usage."""
        return self._finish_reason is not None or (self.has_ended and self.error is None and not self.fault)

    def read(self, packet: bytes) -> Iterator[LMChunk]:
        """Yield the pieces of the reply in the events that end in a packet of bytes."""
        for data in self._events.feed(packet):
            if self.has_ended:
                return
            if data.strip() == b"[DONE]":
                self.has_ended = True
                return
            try:
                record = from_json(data, allow_inf_nan=False)
            except ValueError:
                self.fault = f"the stream holds a record that is not JSON: {data.decode(errors='replace')}"
            else:
                if self._events.name == b"error" and not (is_object(record) and "error" in record):
                    record = {"error": record}
                if piece := self.add(record):
                    yield piece
            self.has_ended = bool(self.fault) or self.error is not None
        if self._room < self._events.held:
            self.fault, self.has_ended = "the reply is longer than 32 MiB", True

    def add(self, record: Any) -> LMChunk | None:
        """Add a record; return the piece of the reply in it, or None."""
        if not is_object(record):
            return None
        if "error" in record or record.get("object") == "error":
            self.error = self.error or record.get("error") or (record if record.get("object") == "error" else None)
        self._id = self._id or record.get("id")
        self._usage = record.get("usage") or self._usage
        choices = record.get("choices")
        choice = choices[0] if is_array(choices) and choices else None
        if not is_object(choice) or choice.get("index"):  # another choice than the first, which is not read
            return None
        delta = choice.get("delta")
        if delta is None and not self._has_choice:  # some servers send the reply whole
            delta = choice.get("message")
        self._has_choice = True
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        return self._piece(delta) if is_object(delta) else None

    def _piece(self, delta: dict[str, Any]) -> LMChunk | None:
        """Add a delta to the message; return the piece of the reply in it, or None."""
        if len(delta) > 1 or "content" not in delta:  # nearly every delta holds only a text
            for piece in _objects(delta.get("tool_calls")):
                self._add_call(piece)
            for block in _objects(delta.get("thinking_blocks")):
                self._thinking.append(block)
                self._room -= len(text_of(block.get("thinking")))
            self._keep("refusal", delta.get("refusal"))
            reasoning = self._keep("reasoning_content", delta.get("reasoning_content") or delta.get("reasoning"))
        else:
            reasoning = ""
        text = self._keep("content", delta.get("content"))
        return LMChunk(text, reasoning) if text or reasoning else None

    def _keep(self, name: str, content: Json) -> str:
        """Append to one part of the message, and return the added text."""
        if text := text_of(content) if content else "":
            self._parts[name].write(text)
            self._room -= len(text)
        return text

    def _add_call(self, piece: dict[str, Any]) -> None:
        """Add a piece of a tool call: its id, its name, or some of its arguments."""
        index, added, key = str(piece.get("index", 0)), piece.get("function"), piece.get("id")
        call = self._calls_by_index.get(index)
        if call is None or (key and key != (call["id"] or key)):  # some servers give all calls one index
            call = self._calls_by_index[index] = {"type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append(call)
        call["id"] = call.get("id") or key
        if is_object(added):
            function, arguments = call["function"], added.get("arguments") or ""
            if not isinstance(arguments, str):  # some servers send the object itself
                arguments = json_text(arguments)
            function["name"] = function["name"] or text_of(added.get("name"))
            function["arguments"] += arguments
            self._room -= len(arguments)

    def response(self) -> dict[str, Any]:
        """Return the completion in the shape of an answer that is not streamed."""
        message: dict[str, Any] = {name: part.getvalue() for name, part in self._parts.items()}
        if self._calls:
            message["tool_calls"] = self._calls
        if self._thinking:
            message["thinking_blocks"] = _whole_blocks(self._thinking)
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"id": self._id, "choices": [choice] if self._has_choice else [], "usage": self._usage}


def _objects(json: Json) -> list[dict[str, Any]]:
    """Return the objects of an array; none of anything else."""
    return [item for item in json if is_object(item)] if is_array(json) else []


def _whole_blocks(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the streamed thinking blocks: each ends with its signature, and one without it is dropped."""
    blocks, texts = list[dict[str, Any]](), list[str]()
    for piece in pieces:
        if piece.get("type") == "redacted_thinking":
            blocks.append(piece)
            continue
        texts.append(text_of(piece.get("thinking")))
        if signature := piece.get("signature"):
            blocks.append({"type": "thinking", "thinking": "".join(texts), "signature": signature})
            texts = []
    return blocks


def text_of(content: Json) -> str:
    """Return a text, also one in parts; "" for anything else."""
    if isinstance(content, str):
        return content
    return "".join(text_of(part.get("text")) for part in content if is_object(part)) if is_array(content) else ""

"""Chat completions as servers send them, in one body or in a stream, read as widely as they can be understood.

What a provider adds of its own is kept unread. A body and a stream of the same content give the same message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any, Final

from pydantic_core import from_json

from synmod.leaves import Json, is_array, is_object, mend
from synmod.wires import an_object, first_choice, objects_in

from .partial import PartialJson
from .records import LMChunk
from .words import json_text

MOST_BODY: Final = 32 * 2**20
"""How many bytes of an answer, or characters of a streamed one, are kept."""

# -- JSON and text -----------------------------------------------------------------------------------------------------


def read_json(text: bytes | bytearray, *, is_piece: bool = False) -> Json:
    """Return the JSON of a server; of equal keys the last one counts.

    Args:
        text: The JSON, in UTF-8.
        is_piece: Whether it may hold half a character, whose other half comes later.

    Raises:
        ValueError: It is not JSON, or nests too deep.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        value = json.loads(text.decode("utf-8-sig", errors="replace"), strict=False, parse_constant=_refuse)
        return value if is_piece else whole_texts(value)
    except RecursionError as error:
        raise ValueError(f"{error}") from None


def _refuse(constant: str) -> None:
    """Raise ValueError for NaN and infinity."""
    raise ValueError(f"{constant} is not a number of JSON")


class _Pieces(list[str]):
    """The pieces of a text that goes on: joined once, however many there are."""

    __slots__ = ()


def whole_texts(json: Json) -> Json:
    """Return JSON with whole texts."""
    if isinstance(json, _Pieces):
        return mend("".join(json))
    if is_array(json):
        return [whole_texts(part) for part in json]
    return {mend(key): whole_texts(part) for key, part in json.items()} if is_object(json) else mend(json)


def text_of(content: Json) -> str:
    """Return a text, also one in parts; "" for anything else."""
    return content if isinstance(content, str) else "".join(text_of(part.get("text")) for part in objects_in(content))


def read_thinking(content: Json) -> str:
    """Return the reasoning among the parts of a content."""
    return "".join(text_of(part.get("thinking")) for part in objects_in(content))


def read_reasoning(message: dict[str, Json]) -> str:
    """Return the reasoning in a message."""
    texts = (text_of(message[key]) for key in _REASONING if key in message)
    return next(filter(None, texts), read_thinking(message.get("content")))


_OPENING: Final = re.compile(r"\s{0,1000}<(think|thinking|reasoning)>")
_OPENINGS: Final = ("<think>", "<thinking>", "<reasoning>")
_LONGEST_OPENING: Final = 1_000  # with the white space before it, of which some models send no end


class ThinkingSplitter:
    """Parts the reasoning block at the beginning of a content from its text, as servers send it that know no better.

    Example:
        >>> thinking = ThinkingSplitter()
        >>> thinking.part("<think>Hm"), thinking.part(".</thi"), thinking.part("nk> Yes"), thinking.part(".")
        (('Hm', ''), ('.', ''), ('', 'Yes'), ('', '.'))
    """

    def __init__(self) -> None:
        self._rest = ""  # may be the beginning of a tag
        self._closing: str | None = None  # the tag that ends the block, "" behind it
        self.is_over = False

    def part(self, text: str, *, is_last: bool = False) -> tuple[str, str]:
        """Return the reasoning and the text in a piece of the content."""
        if self.is_over:
            return "", text
        rest, self._rest = self._rest + text, ""
        reasoning = ""
        if self._closing is None:
            if opening := _OPENING.match(rest):
                self._closing, rest = f"</{opening[1]}>", rest[opening.end() :]
            elif len(rest) < _LONGEST_OPENING and not is_last and _begins_opening(rest.lstrip()):
                self._rest = rest
                return "", ""
            else:
                self.is_over = True
                return "", rest
        if self._closing:
            reasoning, closing, rest = rest.partition(self._closing)
            if not closing:
                end = len(reasoning) - (0 if is_last else _overlap(reasoning, self._closing))
                self._rest = reasoning[end:]
                return reasoning[:end], ""
            self._closing = ""
        text = rest.lstrip()
        self.is_over = bool(text)
        return reasoning, text


def _begins_opening(text: str) -> bool:
    """Whether a text may be the beginning of a tag that opens a reasoning block."""
    return any(tag.startswith(text) for tag in _OPENINGS)


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of a text may begin a tag."""
    return next((length for length in range(len(tag) - 1, 0, -1) if text.endswith(tag[:length])), 0)


# -- events ------------------------------------------------------------------------------------------------------------

_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=[^\n])")  # a CR at the very end waits for what follows it
_MARK: Final = b"\xef\xbb\xbf"  # a byte order mark may begin the stream


class ServerSentEvents:
    r"""Splits the bytes of a stream into the data of its events, wherever packets begin and end.

    Example:
        >>> events = ServerSentEvents()
        >>> list(events.feed(b"data: on")), list(events.feed(b"e\r\n\r\n: a comment\n\ndata: two\n\n"))
        ([], [b'one', b'two'])

    Source: the living standard of HTML, server-sent events.
    """

    def __init__(self) -> None:
        self._rest: list[bytes | bytearray] = []  # of a line that has not ended
        self._data = bytearray()  # of an event that has not ended, a line end behind each line
        self._name = b""
        self.held = 0  # bytes that have arrived of an event that has not ended
        self.name = b""  # of the event whose data was yielded last

    def feed(self, received: bytes | bytearray) -> Iterator[bytes]:
        """Yield the data of the events that end in what was received."""
        self.held += len(received)
        self._rest.append(received)
        if b"\n" not in received and b"\r" not in received:
            return
        *lines, rest = _LINE_END.split(b"".join(self._rest))
        self._rest = [rest]
        for line in lines:
            if not line:
                data, self._data, self.held = bytes(self._data[:-1]), bytearray(), len(rest)
                self.name, self._name = self._name, b""
                if data:
                    yield data
                continue
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field in (b"data", _MARK + b"data"):
                self._data += value + b"\n"
            elif field == b"event":
                self._name = value.strip()


# -- the pieces of a completion ----------------------------------------------------------------------------------------

_MOST_WITHOUT_END: Final = 2**20  # bytes of records that no empty line parts
_MOST_SHOWN: Final = 1_000  # bytes of a record that cannot be read; a secret that is cut must not stay in part
_ENDS: Final = (b"[DONE]", b"[done]", b"DONE")
_CONSTANT: Final = frozenset({"format", "id", "index", "name", "object", "role", "signature", "type"})
"""Keys whose text comes whole, maybe with each piece."""
_PLACEHOLDERS: Final = (["{}"], ["null"])
"""Arguments that servers begin a call with before they send the real ones."""
_FIELDS: Final = ("id", "timings", "usage", "x_groq")
"""Keys of the completion itself that are read."""
_REASONING: Final = ("reasoning_content", "reasoning", "thinking", "")
"""Keys of a message with the text of reasoning; that among the parts of a streamed content has the key ""."""
_GROWING: Final = ("text", "thinking", "summary", "reasoning", "content", "data")
"""Keys of the items of an array whose text goes on from piece to piece."""


class Assembly:
    """Puts a chat completion together from the records of its stream.

    Args:
        answer: The name of the tool that carries the schema, whose arguments are the text of the reply; None for none.
        translate: Returns a record of the stream as one of chat completions; None where it is one.

    Attributes:
        error: The error record of the stream; None if there was none.
        fault: Why the stream cannot be read; "" if it can.
        has_ended: Whether the rest of the stream is ignored: its last record, or a fault, has arrived.
    """

    def __init__(self, answer: str | None = None, translate: Callable[[Json], Json] | None = None) -> None:
        self._answer, self._translate = answer, translate
        self._events = ServerSentEvents()
        self._texts: dict[str, StringIO] = {}
        self._halves: dict[str, str] = {}  # key of a text -> half a character at its end
        self._others: dict[str, Json] = {}  # what else the message holds
        self._calls = _Calls()
        self._logprobs: list[Json] = []
        self._thinking = ThinkingSplitter()
        self._fields: dict[str, Json] = {}  # of the completion itself
        self._finish_reason: Json = None
        self._choice_error: Json = None
        self._has_choice = False
        self._room = MOST_BODY
        self.error: Json = None
        self.fault = ""
        self.has_ended = False

    @property
    def size(self) -> int:
        """How many characters the reply has, about."""
        return MOST_BODY - self._room

    @property
    def is_whole(self) -> bool:
        """Whether the reply is complete, except perhaps its usage."""
        return self._finish_reason is not None or (self.has_ended and self.error is None and not self.fault)

    def read(self, packet: bytes | bytearray, *, is_last: bool = False) -> Iterator[LMChunk]:
        """Yield the pieces of the reply in the events that end in a packet of bytes.

        Args:
            packet: The bytes.
            is_last: Whether the stream ends behind it, maybe inside an event, which is then no fault of its own.
        """
        for data in self._events.feed(packet):
            for record in () if self.has_ended else self._records(data):
                if record is None:
                    if not is_last:
                        self.has_ended = True
                        text = data[:_MOST_SHOWN].decode(errors="replace")
                        self.fault = f"the stream holds a record that is not JSON: {text}"
                    break
                if piece := self.add(record):
                    yield piece
                self.has_ended = self.has_ended or self.error is not None
        if self._room < self._events.held:
            self.fault, self.has_ended = "the reply is longer than 32 MiB", True

    def end(self) -> Iterator[LMChunk]:
        """Yield the pieces of the reply in an event whose end is missing, and what is left of the text."""
        yield from self.read(b"\n\n", is_last=True)
        added = self._add_content("", is_last=True)
        for key in [*self._halves]:
            del self._halves[key]
            added[key] = added.get(key, "") + self._keep(key, "\ufffd")
        if piece := _chunk(added):
            yield piece

    def _add_content(self, content: str, reasoning: str = "", *, is_last: bool = False) -> dict[str, str]:
        """Append to the content and its reasoning, and return what was added."""
        thought, text = self._thinking.part(content, is_last=is_last)
        return {"content": self._keep("content", text), "": self._keep("", reasoning + thought)}

    def _records(self, data: bytes) -> Iterator[Any]:
        """Yield the records in the data of an event: one, or one per line if the server leaves out the empty lines.

        A record that is not JSON is None; one in an event with a name such as `ping` is left out.
        """
        is_error = self._events.name == b"error"
        try:
            record = read_json(data, is_piece=True)
        except ValueError:
            text = data.strip()
            if b"\n" in text and len(text) < _MOST_WITHOUT_END:
                for line in text.split(b"\n"):
                    yield from self._records(line)
            elif text in _ENDS:
                self.has_ended = True
            elif text and (is_error or self._events.name in (b"", b"message")):
                yield {"error": text.decode(errors="replace")} if is_error else None
            return
        if self._translate is not None:
            record = self._translate(record)
        self.has_ended = record == "[DONE]"
        for item in record if is_array(record) else (record,) if record is not None else ():
            yield {"error": item} if is_error and not (is_object(item) and "error" in item) else item

    def add(self, record: Any) -> LMChunk | None:
        """Add a record; return the piece of the reply in it, or None."""
        if not is_object(record):
            return None
        self.error = self.error or error_in(record)
        for key in _FIELDS:
            if value := record.get(key):
                self._fields[key] = value
        choice = first_choice(record)
        if not choice or choice.get("index") not in (None, 0, "0"):  # only the first is read
            return None
        delta = choice.get("delta")
        if delta is None and not self._has_choice:  # some servers send the reply whole
            delta = choice.get("message")
        self._has_choice = True
        if (reason := choice.get("finish_reason")) not in (None, "", "null"):
            self._finish_reason = reason
        self._choice_error = self._choice_error or choice.get("error")
        if choice.get("usage"):
            self._fields["usage"] = choice["usage"]
        self._logprobs += objects_in(an_object(choice.get("logprobs")).get("content"))
        return self._piece(delta) if is_object(delta) else None

    def _piece(self, delta: dict[str, Json]) -> LMChunk | None:
        """Add a delta to the message; return the piece of the reply in it, or None."""
        if self._thinking.is_over and len(delta) == 1 and isinstance(text := delta.get("content"), str):
            text = self._keep("content", text)  # nearly every delta
            return LMChunk(text) if text else None
        added: dict[str, str] = {}
        for key, value in delta.items():
            if value is None or key == "role":
                continue
            if key in ("tool_calls", "function_call"):
                pieces = objects_in(value) if key == "tool_calls" else [{"function": value}]
                self._room -= sum(self._calls.add(piece, place) for place, piece in enumerate(pieces))
                if self._answer is not None and not self._texts:
                    added["content"] = self._calls.new_arguments(self._answer)
            elif key == "content":
                added |= self._add_content(text_of(value), read_thinking(value))
            elif isinstance(value, str) and key not in _CONSTANT:
                added[key] = self._keep(key, value)
            else:
                self._others[key] = _merge(self._others.get(key), value)
                self._room -= len(str(value))
        return _chunk(added)

    def _keep(self, key: str, text: str) -> str:
        """Append to one text of the message, and return what was added: whole characters."""
        if not text.isascii():
            text = self._halves.pop(key, "") + text
            if "\ud800" <= text[-1:] <= "\udbff":  # the other half comes with the next piece
                self._halves[key] = text[-1]
                text = text[:-1]
            text = mend(text)
        elif text and self._halves:
            text = "\ufffd" * len(self._halves.pop(key, "")) + text
        if text:
            if key not in self._texts:
                self._texts[key] = StringIO()
            self._texts[key].write(text)
            self._room -= len(text)
        return text

    def response(self) -> dict[str, Json]:
        """Return the completion in the shape of an answer that is not streamed."""
        message: dict[str, Json] = {key: text.getvalue() for key, text in self._texts.items()}
        if thinking := message.pop("", None):
            message["content"] = [{"type": "thinking", "thinking": thinking}, {"text": message.get("content", "")}]
        message |= self._others
        if calls := self._calls.whole():
            message["tool_calls"] = calls
        if "thinking_blocks" in message:  # Anthropic takes back neither their index nor one without a signature
            blocks = [block for block in objects_in(message["thinking_blocks"]) if {"signature", "data"} & block.keys()]
            message["thinking_blocks"] = [{key: block[key] for key in block if key != "index"} for block in blocks]
        ending: dict[str, Json] = {"finish_reason": self._finish_reason, "error": self._choice_error}
        if self._logprobs:
            ending["logprobs"] = {"content": self._logprobs}
        choice = {"message": whole_texts(message), **ending}
        return {**self._fields, "choices": [choice] if self._has_choice else []}


def error_in(record: dict[str, Json]) -> Json:
    """Return the error in a body or record; None without one."""
    if error := record.get("error"):
        return error
    is_stated = not record.get("choices") and any(isinstance(record.get(key), str | list) for key in _STATED)
    return record if is_stated or record.get("object") == "error" else None


_STATED: Final = ("detail", "errors", "error_msg", "message")
"""Keys of the text of an error that is not under `error`."""


def _chunk(added: dict[str, str]) -> LMChunk | None:
    """Return the piece of the reply in the texts that were added to a message, or None."""
    text, reasoning = added.get("content", ""), next(filter(None, map(added.get, _REASONING)), "")
    return LMChunk(text, reasoning) if text or reasoning else None


def _merge(before: Json, piece: Json) -> Json:
    """Return a value of the provider's own with a piece of it: objects and arrays grow, others are replaced."""
    if is_object(before) and is_object(piece):
        return before | {key: _merge(before.get(key), value) for key, value in piece.items() if value is not None}
    if not (is_array(before) and is_array(piece)):
        return before if piece is None else piece
    for item in piece:
        last = before[-1] if before else None
        if is_object(item) and is_object(last) and _continues(last, item):
            for key, value in item.items():
                text = last.get(key)
                if key in _GROWING and isinstance(value, str) and isinstance(text, str | _Pieces):
                    last[key] = text if isinstance(text, _Pieces) else _Pieces([text])
                    last[key].append(value)
                else:
                    last[key] = _merge(text, value)
        else:
            before.append(item)
    return before


def _continues(last: dict[str, Json], item: dict[str, Json]) -> bool:
    """Whether an item of an array is a piece of the one before: it has its index, or its type before a signature."""
    if item.get("type") != last.get("type") or item.get("index") != last.get("index"):
        return False
    has_text = any(isinstance(item.get(key), str) and isinstance(last.get(key), str | _Pieces) for key in _GROWING)
    return "index" in item or (has_text and "data" not in last and not last.get("signature"))


# -- tool calls --------------------------------------------------------------------------------------------------------


class _Call:
    """A tool call, as far as it has arrived."""

    def __init__(self) -> None:
        self.fields: dict[str, Json] = {}
        self.function: dict[str, Json] = {}
        self.arguments: list[str] = []
        self._reader, self._read = PartialJson(), 0  # and how many pieces of the arguments it was fed

    def take_placeholder(self) -> None:
        """Remove the arguments that the server sent before the real ones."""
        self.arguments, self._reader, self._read = [], PartialJson(), 0

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value, or none; each piece of them is read once."""
        self._reader.feed("".join(self.arguments[self._read :]))
        self._read = len(self.arguments)
        return bool(self._read) and self._reader.has_ended


class _Calls:
    """The tool calls of a message, put together from pieces with and without index and id.

    A piece with a name begins a call where its index is new, or the present call is complete.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._read = 0  # pieces of arguments
        self._by_index: dict[Json, _Call] = {}  # the last call of each index
        self._by_id: dict[Json, _Call] = {}

    def add(self, piece: dict[str, Json], place: int) -> int:
        """Add a piece; return the length of its text.

        Args:
            piece: Some of id, name and arguments.
            place: Its place among the pieces of one record.
        """
        function = an_object(piece.get("function"))
        index, key, name = piece.get("index"), piece.get("id") or None, text_of(function.get("name"))
        call = self._present(index, key)
        if call is None or (name and self._is_another(call, key, function, is_beside=index is None and place > 0)):
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int | str):
            self._by_index[index] = call
        if isinstance(key, str):
            self._by_id[key] = call
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else json_text(arguments)
        if text:
            if call.arguments in _PLACEHOLDERS and text.lstrip()[:1] == "{":
                call.take_placeholder()
            call.arguments.append(text)
        for fields, new in ((call.fields, piece), (call.function, function)):
            for field, value in new.items():
                if field not in ("arguments", "function", "index") and value not in (None, ""):
                    old = fields.get(field)
                    fields[field] = old or value if field in _CONSTANT else _merge(old, value)
        return len(text) + len(name)

    def new_arguments(self, name: str) -> str:
        """Return what was added to the arguments of the only call, if it is of the tool of this name."""
        if len(self._calls) != 1 or (call := self._calls[0]).function.get("name") != name:
            return ""
        new, self._read = call.arguments[self._read :], len(call.arguments)
        return "".join(new)

    def _present(self, index: Json, key: Json) -> _Call | None:
        """Return the call that a piece may go on with."""
        if isinstance(index, int | str):
            return self._by_index.get(index)
        by_id = self._by_id.get(key) if isinstance(key, str) else None
        return by_id or (self._calls[-1] if self._calls else None)

    @staticmethod
    def _is_another(call: _Call, key: Json, function: dict[str, Json], *, is_beside: bool) -> bool:
        """Whether a piece with a name begins a call of its own, behind the present one."""
        if is_beside or not call.function.get("name"):
            return is_beside
        before = call.fields.get("id")
        has_other_id = key is not None and before is not None and key != before
        if not call.arguments:
            return has_other_id
        return call.is_complete and (has_other_id or bool(function.get("arguments")))

    def whole(self) -> list[dict[str, Json]]:
        """Return the calls in the shape of a body."""
        return [
            {"type": "function", **call.fields, "function": {**call.function, "arguments": "".join(call.arguments)}}
            for call in self._calls
        ]

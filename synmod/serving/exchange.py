"""One HTTP request and its answer, over the three functions of ASGI."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeVar
from uuid import uuid4

from synmod.errors import DataError
from synmod.leaves import Json, aio, is_object, parse_json
from synmod.lm import LMChunk
from synmod.scope import Emitted, Usage
from synmod.scope.hooks import CallEnd
from synmod.scope.tracing import plain

from .refusals import ClientLeft, GoingDown, Refusal

T = TypeVar("T")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
PING_S: Final = 15.0
"""How long an event stream is silent before a comment keeps its connection open."""
_HOLD_S: Final = 1.0
"""How long events of calls wait for the first piece of the answer."""
_MOST_EARLY: Final = 100
_LAST_WORDS_S: Final = 1.0
"""How long the last event of a failed stream may take: its reader may have stopped to read."""


def to_bytes(body: Any) -> bytes:
    """Return compact JSON."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")


class Exchange:
    """One request and its answer.

    Args:
        scope: The ASGI scope.
        receive: The ASGI function that returns what the client sends.
        send: The ASGI function that sends to the client.

    Attributes:
        headers: The headers of the request, names in lower case.
        path, root: The path below the place where the application is mounted, and that place.
        json: The body, once it was read.
        request_id: The client's `x-request-id`, or a new one.
        route, program: The labels of the metrics.
        status: The status of the answer, 0 before it begins.
        usage: The usage of the call; None before it began.
        event: How an event is written: its name and JSON to bytes.
        failure: How a failure is written as JSON.
    """

    def __init__(self, scope: Mapping[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        self.scope, self.receive, self._send = scope, receive, send
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        self.headers = dict(pairs)
        if sum(name == "host" for name, _ in pairs) > 1:
            self.headers["host"] = ""
        path, self.root = scope["path"], scope.get("root_path", "")
        self.path = path[len(self.root) :] or "/" if self.root and path.startswith(self.root) else path
        sent_id = self.headers.get("x-request-id", "")
        self.request_id = sent_id if _REQUEST_ID.fullmatch(sent_id) else uuid4().hex
        self.route = self.program = ""
        self.status = 0
        self.usage: Usage | None = None
        self.json: Json = None
        self.event: Callable[[str, Any], bytes] = write_event
        self.failure: Callable[[Refusal], Any] = lambda refusal: refusal.problem(self.request_id)
        if self.path.startswith("/v1/"):
            self.event, self.failure = (lambda _, body: b"data: %s\n\n" % to_bytes(body)), Refusal.openai_error
        elif self.path == "/mcp":
            self.event, self.failure = (lambda _, body: write_event("message", body)), self._rpc_error
        self._group: aio.task_group | None = None
        self._early: list[bytes] = []  # events that wait for the first piece of the answer

    def _rpc_error(self, refusal: Refusal) -> dict[str, Any]:
        """Return a failure in the shape of JSON-RPC."""
        request_id = self.json.get("id") if is_object(self.json) else None
        return {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32_000, "message": refusal.detail}}

    # -- the request --------------------------------------------------------------------------------------------------

    async def read_body(self, most: int) -> bytes:
        """Return the body of the request.

        Raises:
            Refusal: It is longer than `most` bytes.
            ClientLeft: The client has gone.
        """
        length = self.headers.get("content-length", "")
        body, has_more = bytearray(), True
        too_long = length.isdecimal() and (len(length) > 18 or int(length) > most)
        while has_more and not too_long:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            body += message.get("body", b"")
            has_more, too_long = message.get("more_body", False), len(body) > most
        if too_long:
            raise Refusal(413, f"The body is longer than {most:,} bytes.", {"connection": "close"})
        return bytes(body)

    async def read_json(self, most: int) -> Json:
        """Return the body of the request as JSON.

        Raises:
            Refusal: It is not JSON, of another type, or too long.
            ClientLeft: The client has gone.
        """
        if self.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "The body must have the content type application/json.")
        try:
            self.json = parse_json(await self.read_body(most))
            return self.json
        except DataError as error:
            raise Refusal(400, f"The body is not JSON that can be read: {error}"[:500]) from None

    async def run_attended(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns; cancel it when the client goes, or when `stop` is called.

        Raises:
            ClientLeft, GoingDown: Instead of the result.
        """
        try:
            async with aio.task_group() as group:
                self._group = group
                group.start_soon(self._watch)
                result = await work()
                group.cancel()
        finally:
            self._group = None
        return result

    async def _watch(self) -> None:
        """Raise ClientLeft once the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        raise ClientLeft

    def stop(self) -> None:
        """Cancel the work under way: the server is going down."""
        if self._group is not None:
            self._group.start_soon(_raise_going_down)

    # -- the answer ---------------------------------------------------------------------------------------------------

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status and the headers."""
        all_headers = {"x-request-id": self.request_id, "cache-control": "no-store", **headers}
        self.status = status
        written = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in all_headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": written})

    async def answer(
        self, status: int, body: Any = None, headers: Mapping[str, str] | None = None, *, kind: str = "application/json"
    ) -> None:
        """Send a whole answer: bytes or a text as they are, anything else as JSON."""
        content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else to_bytes(body)
        own = {"content-type": kind, "content-length": str(len(content)), "x-content-type-options": "nosniff"}
        if self.usage is not None:
            own["x-usage"] = to_bytes(vars(self.usage)).decode()
        await self.begin(status, {**own, **(headers or {})})
        await self._send({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else content})

    async def send_event(self, name: str, body: Any, *, waits: bool = False) -> None:
        """Send an event, and before the first one the head of the answer.

        The first events that may wait do so for a moment: then an early failure still has its status.
        """
        event = self.event(name, body)
        if waits and not self.status and len(self._early) < _MOST_EARLY:
            self._early.append(event)
        else:
            await self.send_raw_event(event)

    async def send_raw_event(self, event: bytes) -> None:
        """Send the bytes of an event, and before the first one the head of the answer."""
        event, self._early = b"".join([*self._early, event]), []
        if not self.status:
            await self.begin(200, {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"})
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def read_patiently(self, source: AsyncIterator[T]) -> AsyncGenerator[T]:
        """Yield the pieces of a stream; a comment keeps the connection open where none arrives for a while."""
        while True:
            piece: T | None = None
            with aio.deadline_scope(_HOLD_S if self._early else PING_S) as wait:
                piece = await anext(source, None)
            if wait.expired:
                await self.send_raw_event(b"" if self._early else b": ping\n\n")
            elif piece is None:
                return
            else:
                yield piece

    async def forward(self, app: Callable[..., Awaitable[None]], body: bytes) -> None:
        """Let another application answer the request, whose body was read."""
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            message = next(messages, None)
            if message is None:
                await aio.Gate().wait()  # `run_attended` watches the client
            return message

        async def send(message: Any) -> None:
            self.status = message.get("status", self.status)
            await self._send(message)

        await app(self.scope, receive, send)

    async def end_events(self) -> None:
        """End a stream of events."""
        await self._send({"type": "http.response.body", "body": b""})

    async def refuse(self, refusal: Refusal) -> None:
        """Send a failure: as the answer, or as the last event of an answer that has begun."""
        if not self.status:
            kind = "application/problem+json" if "title" in (body := self.failure(refusal)) else "application/json"
            await self.answer(refusal.status, body, refusal.headers, kind=kind)
            return
        with aio.deadline_scope(_LAST_WORDS_S):
            await self.send_event("error", self.failure(refusal))
            await self.end_events()


def write_event(name: str, body: Any) -> bytes:
    """Return a server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_bytes(body))


def event_of(item: Any, answering: Collection[str], *, details: bool) -> tuple[str, Any] | None:
    """Return the name and the JSON of an item of a stream with events; None for what is not shown.

    Args:
        item: A piece of a reply, the begin or end of a call, or what `sm.emit` reports.
        answering: The paths of the modules whose model calls answer.
        details: Whether inputs and outputs of inner calls, and the pieces of other calls, are shown.
    """
    if isinstance(item, LMChunk):
        of_call = {"path": item.path} if details else {}
        chunk = {"text": item.text, "partial": item.partial, **of_call}
        return ("chunk", chunk) if details or item.path in answering else None
    if isinstance(item, Emitted):
        return "event", {"path": item.path, "topic": item.topic, "value": item.value}
    about = {"path": item.path, "name": item.name, "phase": item.phase}
    if isinstance(item, CallEnd):
        outputs = {"outputs": plain(item.outputs)} if details else {}
        return "event", {**about, "elapsed_s": item.elapsed_s, "failed": item.exception is not None, **outputs}
    return "event", {**about, **({"inputs": plain([*item.inputs, item.kwargs])} if details else {})}


async def _raise_going_down() -> None:
    """Raise GoingDown, in the task group of the work."""
    raise GoingDown

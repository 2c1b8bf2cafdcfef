"""A chat-completions server on the loopback, in the running loop: replies as scripted, keeps what arrived."""

import asyncio
import json
from dataclasses import dataclass, field

from aiohttp import web

from synmod.errors import SynmodError
from synmod.lm import LanguageModel

KEY = "sk-given-secret-key-1"


@dataclass
class Answer:
    """How the server answers one request."""

    status: int = 200
    body: object = None
    headers: dict = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    drip_s: float = 0.0
    raw: bytes | None = None
    packets: tuple | None = None  # of a stream: bytes are sent, functions are awaited


@dataclass
class Arrived:
    """One request that arrived; header names in lower case."""

    path: str
    headers: dict
    body: dict
    port: int


def completion(text="hello", *, finish_reason="stop", usage=(7, 3), **message):
    """A chat completion with one choice."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "served-model"}
    return Answer(200, {**about, "choices": [choice], "usage": counts})


def failure(status, message="it failed", *, code=None, **headers):
    """An error body of the chat-completions shape."""
    error = {"message": message, "type": "server_error", "param": None, "code": code}
    return Answer(status, {"error": error}, {name.replace("_", "-"): value for name, value in headers.items()})


def record(delta=None, *, finish_reason=None, **more):
    """One event of a streamed chat completion."""
    choices = [] if delta is None and finish_reason is None else [{"index": 0, "delta": delta or {}}]
    choices = [{**choice, "finish_reason": finish_reason} for choice in choices]
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "served-model"}
    return b"data: " + json.dumps({**about, "choices": choices, **more}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
STOP = record(finish_reason="stop")


def streamed(*texts, usage=(7, 3), **given):
    """A streamed chat completion of these pieces."""
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    pieces = [record({"content": text}) for text in texts]
    return Answer(
        packets=(record({"role": "assistant", "content": ""}), *pieces, STOP, record(usage=counts), DONE), **given
    )


class Loopback:
    """The server: `async with Loopback(answer, ...) as server: ...`; the last answer is repeated."""

    def __init__(self, *answers):
        self.answers = list(answers or [completion()])
        self.arrived = []
        self.hung_up = asyncio.Event()

    async def handle(self, request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        body, port = json.loads(await request.read() or b"{}"), request.transport.get_extra_info("peername")[1]
        self.arrived.append(Arrived(request.path, headers, body, port))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        try:
            await asyncio.sleep(answer.delay_s)
        except asyncio.CancelledError:
            self.hung_up.set()
            raise
        if answer.packets is not None:
            return await self.stream(request, answer)
        payload = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        payload = payload.replace(b"{authorization}", headers.get("authorization", "").encode())
        response = web.StreamResponse(status=answer.status, headers={"content-type": "application/json"})
        response.headers.update(answer.headers)
        response.content_length = len(payload) + (50 if answer.cut else 0)
        await response.prepare(request)
        for byte in payload if answer.drip_s else ():
            await asyncio.sleep(answer.drip_s)
            await response.write(bytes([byte]))
        if not answer.drip_s:
            await response.write(payload)
        if answer.cut:
            request.transport.close()
        return response

    async def stream(self, request, answer):
        """Send packets one by one, until the client hangs up."""
        response = web.StreamResponse(status=answer.status, headers={"content-type": "text/event-stream"})
        response.headers.update(answer.headers)
        await response.prepare(request)
        try:
            for packet in answer.packets:
                await (response.write(packet) if isinstance(packet, bytes) else packet())
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up.set()
            raise
        if answer.cut:
            request.transport.close()
        return response

    async def __aenter__(self):
        self._runner = web.ServerRunner(web.Server(self.handle, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()


async def ask(*answers, model="openai/some-model", messages="Hi", schema=None, call=None, path="/v1", **given):
    """Call a model on a server once; return the reply or the error, and the requests that arrived."""
    async with Loopback(*answers) as server:
        about = {"api_base": server.base.removesuffix("/v1") + path, "api_key": KEY, "attempts": 1} | given
        lm = LanguageModel(model, **about)
        try:
            got = await lm(messages, schema, **(call or {}))
        except SynmodError as error:
            got = error
        await lm.aclose()
        return got, server.arrived

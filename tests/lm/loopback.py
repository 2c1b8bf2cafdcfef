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
    raw: bytes | None = None


@dataclass
class Arrived:
    """One request that arrived; header names in lower case."""

    path: str
    headers: dict
    body: dict


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


class Loopback:
    """The server: `async with Loopback(answer, ...) as server: ...`; the last answer is repeated."""

    def __init__(self, *answers):
        self.answers = list(answers or [completion()])
        self.arrived = []
        self.hung_up = asyncio.Event()

    async def handle(self, request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.arrived.append(Arrived(request.path, headers, json.loads(await request.read() or b"{}")))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        try:
            await asyncio.sleep(answer.delay_s)
        except asyncio.CancelledError:
            self.hung_up.set()
            raise
        payload = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        payload = payload.replace(b"{authorization}", headers.get("authorization", "").encode())
        response = web.StreamResponse(status=answer.status, headers={"content-type": "application/json"})
        response.headers.update(answer.headers)
        response.content_length = len(payload) + (50 if answer.cut else 0)
        await response.prepare(request)
        await response.write(payload)
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

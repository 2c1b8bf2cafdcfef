"""A client that speaks ASGI by hand, so that a test decides when it sends, reads and leaves; and a real server."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import synmod as sm
from synmod.testing import FunctionLM


class Question(sm.DataModel):
    """A question."""

    text: str


@dataclass
class Client:
    """One request and what came back; `await Client(...).ask(app)` sends it and returns the client itself."""

    method: str
    path: str
    body: object = None
    headers: dict = field(default_factory=dict)
    server: tuple | None = ("127.0.0.1", 8000)
    root_path: str = ""
    query: str = ""
    parts: object = None  # an async iterator of pieces of the body

    def __post_init__(self):
        self.status, self.answer_headers, self.content = 0, {}, b""
        self.left, self.reads, self.arrived = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reads.set()
        self._has_sent = False

    async def ask(self, app):
        """Send the request and read the answer."""
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {"host": "127.0.0.1:8000", "content-type": "application/json", **self.headers}
        scope = {
            "type": "http", "method": self.method, "path": self.root_path + self.path, "root_path": self.root_path,
            "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items() if v is not None],
            "server": self.server, "query_string": self.query.encode(),
        }  # fmt: skip

        async def receive():
            if self.parts is not None:
                piece = await anext(self.parts, None)
                if piece is not None:
                    return {"type": "http.request", "body": piece, "more_body": True}
                self.parts = None
            if not self._has_sent:
                self._has_sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            await self.left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            await self.reads.wait()
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.answer_headers = {k.decode(): v.decode("latin-1") for k, v in message["headers"]}
            else:
                self.content += message["body"]
            self.arrived.set()

        await app(scope, receive, send)
        return self

    @property
    def json(self):
        """The answer as JSON."""
        return json.loads(self.content)

    @property
    def usage(self):
        """The usage in the headers of the answer."""
        return json.loads(self.answer_headers["x-usage"])

    @property
    def events(self):
        """The events of the answer: (name, JSON)."""
        records = self.content.decode().split("\n\n")[:-1]
        fields = [dict(line.split(": ", 1) for line in record.split("\n")) for record in records]
        return [(each.get("event"), json.loads(each["data"])) for each in fields if "data" in each]


def post(app, path, body=None, **options):
    """Send a POST."""
    return Client("POST", path, body, **options).ask(app)


def get(app, path, **options):
    """Send a GET."""
    return Client("GET", path, **options).ask(app)


def echo(name="echo"):
    """A program that returns its text, without a model."""
    return sm.Sequential([sm.Input(Question), sm.Identity()], name=name)


def answering(reply, name="desk", **options):
    """A program whose one model call is answered by a function of the user's text."""

    lm = FunctionLM(lambda request: reply(request.messages[-1]["content"]), **options)
    return sm.Sequential([sm.Input(Question), sm.Generator({"answer": str}, language_model=lm)], name=name)


class Waiting(sm.Module):
    """Waits until it is told to go on, and counts."""

    def __init__(self, **options):
        super().__init__(**options)
        self.gate = sm.static(asyncio.Event())
        self.counts = sm.static({"begun": 0, "cancelled": 0, "done": 0})

    async def call(self, inputs: Question) -> Question:
        self.counts["begun"] += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.counts["cancelled"] += 1
            raise
        self.counts["done"] += 1
        return inputs


async def until(condition):
    """Let other tasks run until a condition holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never held")


@asynccontextmanager
async def serving(app):
    """Run an application under uvicorn on the loopback, in this loop; yield its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))
    task = asyncio.create_task(server._serve())
    try:
        while not server.started:
            await asyncio.sleep(0.001)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task

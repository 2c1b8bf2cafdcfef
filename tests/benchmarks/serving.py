"""A request to a program that does nothing, beside the same Starlette route by hand; both without sockets."""

import asyncio
import json

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

import synmod as sm
from tests.benchmarks.measure import alone, paired


class _Query(sm.DataModel):
    """A text."""

    text: str


_BODY = json.dumps({"text": "x" * 100}).encode()
_SCOPE = {
    "type": "http", "method": "POST", "path": "/call", "root_path": "", "query_string": b"",
    "server": ("127.0.0.1", 80),
    "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
}  # fmt: skip


_PROGRAM = sm.Sequential([sm.Input(_Query), sm.Identity()])


async def _by_hand(request):
    """The same by hand: the body validated, the program called, its outputs as JSON."""
    outputs = await _PROGRAM(_Query(**(await request.json())))
    return JSONResponse(outputs.get_json(), headers={"x-request-id": "1"})


def _requests(app, count):
    """Send so many requests, one after the other; the client stays until it has its answer."""

    async def send(message):
        pass

    async def main():
        never = asyncio.get_running_loop().create_future()
        for _ in range(count):
            messages = iter([{"type": "http.request", "body": _BODY, "more_body": False}])

            async def receive(messages=messages):
                return next(messages, None) or await never

            await app(dict(_SCOPE), receive, send)

    return lambda: asyncio.run(main())


def rows(scale=1.0):
    """Measure."""
    count, rounds = max(int(1_000 * scale), 5), 9 if scale >= 1 else 1
    ours = _requests(sm.serve(_PROGRAM), count)
    by_hand = _requests(Starlette(routes=[Route("/call", _by_hand, methods=["POST"])]), count)
    yield alone("a request that does nothing", ours, budget_us=400, per=count, rounds=rounds)
    yield paired("... beside a Starlette route by hand", ours, by_hand, budget=3, per=count, rounds=rounds)

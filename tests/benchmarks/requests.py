"""A request to a provider: through the direct adapter, by bare aiohttp, by other clients; the server is a child."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager, closing, contextmanager

import synmod as sm
from tests.benchmarks.measure import alone, children, paired

CONCURRENCY = 64
SERVER = """
import asyncio, re
chat = (b'{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": '
        b'{"role": "assistant", "content": "yes"}, "finish_reason": "stop"}], '
        b'"usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}}')
bodies = {
    b"/v1/chat/completions": chat,
    b"/v1/messages": b'{"id": "c", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", '
        b'"text": "yes"}], "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 1}}',
    b"/v1/responses": b'{"id": "c", "object": "response", "status": "completed", "model": "m", "output": [{"type": '
        b'"message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}], '
        b'"usage": {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}}',
    b"/v1/files": b'{"id": "f"}',
    b"/v1/batches": b'{"id": "b", "status": "in_progress"}',
    b"/v1/batches/b": b'{"id": "b", "status": "completed", "output_file_id": "r"}',
}
line = b'{"custom_id": "%s", "response": {"status_code": 200, "body": ' + chat + b'}}'
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\\r\\n\\r\\n")
            length = re.search(b"content-length: *([0-9]+)", request.lower())
            data = await reader.readexactly(int(length[1])) if length else b""
            path = request.split()[1]
            if path == b"/v1/files":
                names = re.findall(b'"custom_id": *"([^"]+)"', data)
                bodies[b"/v1/files/r/content"] = b"\\n".join([line % name for name in names])
            writer.write(head % len(bodies[path]) + bodies[path])
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
FIRST = """
import asyncio, synmod as sm
lm = sm.LanguageModel("openai/m", api_base={base!r}, api_key="none")
assert asyncio.run(lm("Hi")).text == "yes"
"""
FIRST_OF_DSPY = """
import dspy
lm = dspy.LM("openai/m", api_base={base!r}, api_key="none", cache=False)
assert lm("Hi") == ["yes"]
"""
FIRST_OF_AIOHTTP = """
import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession() as session:
        async with session.post({base!r} + "/chat/completions", json={{}}) as response:
            assert (await response.json())["choices"]
asyncio.run(main())
"""


@contextmanager
def server():
    """The address of a server in a process of its own, whose time is not counted."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _crowd(opened, count):
    """Run `count` requests, at most 64 at once; `opened` is an async context manager that gives the request."""

    async def work():
        async with opened() as request:
            left = iter(range(count))

            async def worker():
                for _ in left:
                    await request()

            await asyncio.gather(*[worker() for _ in range(min(CONCURRENCY, count))])

    return lambda: asyncio.run(work())


def _direct(base, model="openai/m", **given):
    """Requests through a LanguageModel."""

    @asynccontextmanager
    async def opened():
        lm = sm.LanguageModel(model, api_base=base, api_key="none", **given)
        yield lambda: lm("What is it?")

    return opened


def _hit(base, count, rounds):
    """Hits of the cache file of a model, where a request would be one to the server."""

    async def work(cache):
        lm = sm.LanguageModel("openai/m", api_base=base, api_key="none", cache=cache)
        for _ in range(count):
            await lm("What is it?")
        await lm.aclose()

    with tempfile.TemporaryDirectory() as folder, closing(sm.Cache(f"{folder}/cache.db")) as cache:
        what = "... a hit of the model's cache instead"
        return alone(what, lambda: asyncio.run(work(cache)), budget_us=60, per=count, rounds=rounds)


def _in_jobs(base, count, rounds):
    """Calls that share a job, from the body of each to its reply."""

    async def work():
        jobs = sm.BatchJobs(quiet_s=0.1, poll_s=0.01)
        lm = sm.LanguageModel("openai/m", api_base=base, api_key="none", batch=jobs)
        replies = await asyncio.gather(*[lm(f"What is it, {number}?") for number in range(count)])
        assert {reply.text for reply in replies} == {"yes"}
        await lm.aclose()

    return alone("... in a batch job", lambda: asyncio.run(work()), budget_us=100, per=count, rounds=rounds)


def _bare(base, path="/chat/completions", key="choices"):
    """Requests by aiohttp, with the reply read as JSON."""
    import aiohttp

    body = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}

    @asynccontextmanager
    async def opened():
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer none"}) as session:

            async def request():
                data = json.dumps(body).encode()
                headers = {"Content-Type": "application/json"}
                async with session.post(f"{base}{path}", data=data, headers=headers) as response:
                    return json.loads(await response.read())[key][0]

            yield request

    return opened


def _openai(base):
    """Requests by the openai SDK."""
    import openai

    @asynccontextmanager
    async def opened():
        async with openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:
            turns = [{"role": "user", "content": "What is it?"}]
            yield lambda: client.chat.completions.create(model="m", messages=turns)

    return opened


def _litellm(base):
    """Requests by litellm, through our adapter."""

    @asynccontextmanager
    async def opened():
        lm = sm.LanguageModel("openai/m", api_base=base, api_key="none", adapter="litellm")
        yield lambda: lm("What is it?")

    return opened


def _new_process(code, base):
    """Run code in a new process."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return lambda: subprocess.run([sys.executable, "-c", code.format(base=base)], check=True, env=environment)


_OTHERS = [("/messages", "content", {"model": "anthropic/m"}), ("/responses", "output", {"adapter": "responses"})]
"""The other wires: path, key of the parts of a reply, arguments of the model."""


def rows(scale=1.0):
    """Measure."""
    count, rounds = max(int(1_000 * scale), 5), 7 if scale >= 1 else 1
    with server() as base:
        ours = _crowd(_direct(base), count)
        floor = _crowd(_bare(base), count)
        yield paired("a request through the direct adapter", ours, floor, budget=3, per=count, rounds=rounds)
        for path, key, given in _OTHERS:
            ours, floor = _crowd(_direct(base, **given), count), _crowd(_bare(base, path, key), count)
            yield paired(f"... to {path}", ours, floor, budget=3, per=count, rounds=rounds)
        yield _in_jobs(base, count, rounds)
        yield _hit(base, count, rounds)
        for name, other in {"openai": _openai, "litellm": _litellm}.items():
            if importlib.util.find_spec(name) is None:
                print(f"requests: not measured beside {name}, which is not installed", file=sys.stderr)
                continue
            them = _crowd(other(base), count)
            yield paired(f"... beside {name}", ours, them, budget=1, per=count, rounds=rounds)
        first = _new_process(FIRST, base)
        bare = _new_process(FIRST_OF_AIOHTTP, base)
        yield paired("first real call of a process", first, bare, budget=4, rounds=rounds, clock=children)
        if importlib.util.find_spec("dspy") is None:
            print("requests: the first call is not measured beside dspy, which is not installed", file=sys.stderr)
            return
        dspy = _new_process(FIRST_OF_DSPY, base)
        yield paired("... beside dspy", first, dspy, budget=1.5, rounds=rounds, clock=children)

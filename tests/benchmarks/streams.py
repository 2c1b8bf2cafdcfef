"""A streamed reply: through the direct adapter, by other clients, by bare aiohttp; the server is a child."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from contextlib import contextmanager

import synmod as sm
from synmod.testing import FunctionLM
from tests.benchmarks.measure import alone, paired

SERVER = """
import asyncio, json, sys
def record(**choice):
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "finish_reason": None, **choice}]
    return b"data: " + json.dumps({**about, "choices": choices}).encode() + b"\\n\\n"
events = [record(delta={"role": "assistant", "content": ""})]
events += [record(delta={"content": f" {n}"}) for n in range(int(sys.argv[1]))]
events += [record(delta={}, finish_reason="stop"), b"data: [DONE]\\n\\n"]
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n"
async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\\r\\n\\r\\n")
            await reader.readexactly(int(request.lower().split(b"content-length:")[1].split()[0]))
            writer.write(head)
            for event in events:
                writer.write(b"%x\\r\\n%s\\r\\n" % (len(event), event))
                await writer.drain()
            writer.write(b"0\\r\\n\\r\\n")
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
_NOTHING = sm.LMRequest("openai/m", ())
TURNS = [{"role": "user", "content": "What is it?"}]


@contextmanager
def server(count):
    """The address of a server in a process of its own, which streams so many words."""
    command = [sys.executable, "-c", SERVER, str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def _direct(base):
    """Read a stream of a LanguageModel."""
    lm = sm.LanguageModel("openai/m", api_base=base, api_key="none")
    async with await lm("What is it?", stream=True) as stream:
        return sum([bool(chunk.text) async for chunk in stream])


async def _bare(base):
    """Read a stream by aiohttp, each record as JSON."""
    import aiohttp

    count, body = 0, {"model": "m", "messages": TURNS, "stream": True}
    async with aiohttp.ClientSession() as session, session.post(f"{base}/chat/completions", json=body) as response:
        async for line in response.content:
            if line.startswith(b"data: {"):
                count += bool(json.loads(line[6:])["choices"][0]["delta"].get("content"))
    return count


async def _openai(base):
    """Read a stream of the openai SDK."""
    import openai

    async with openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:
        stream = await client.chat.completions.create(model="m", messages=TURNS, stream=True)
        return sum([bool(chunk.choices[0].delta.content) async for chunk in stream])


async def _litellm(base):
    """Read a stream of litellm, which our adapter has imported and made quiet."""
    await sm.LanguageModel("openai/m", api_base=base, api_key="none", adapter="litellm").adapter.prepare(_NOTHING)
    import litellm

    stream = await litellm.acompletion("openai/m", TURNS, api_base=base, api_key="none", stream=True)
    return sum([bool(chunk.choices[0].delta.content) async for chunk in stream])


def _structured(count):
    """Read a list of objects that arrives in about so many pieces of five characters."""
    text = json.dumps({"found": [{"name": "abc", "number": n} for n in range(count * 5 // 31)]})
    chunks = [sm.LMChunk(text[at : at + 5]) for at in range(0, len(text), 5)]

    async def read():
        lm = FunctionLM(lambda _: chunks)
        async with await lm("What is it?", {"type": "object"}, stream=True) as stream:
            return sum([bool(chunk.text) async for chunk in stream])

    return lambda: asyncio.run(read())


def rows(scale=1.0):
    """Measure."""
    count, rounds = max(int(2_000 * scale), 5), 7 if scale >= 1 else 1
    with server(count) as base:

        def reading(read):
            def run():
                assert asyncio.run(read(base)) == count

            return run

        ours = reading(_direct)
        yield alone("a streamed chunk", ours, budget_us=30, per=count, rounds=rounds)
        yield paired("... beside bare aiohttp", ours, reading(_bare), budget=3, per=count, rounds=rounds)
        yield alone("a streamed chunk with a schema", _structured(count), budget_us=100, per=count, rounds=rounds)
        for name, other in {"openai": _openai, "litellm": _litellm}.items():
            if importlib.util.find_spec(name) is None:
                print(f"streams: not measured beside {name}, which is not installed", file=sys.stderr)
                continue
            yield paired(f"... beside {name}", ours, reading(other), budget=1, per=count, rounds=rounds)

"""How long a hostile server can hold the event loop: the longest block per answer; the server is a child."""

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager, suppress
from time import process_time

import synmod as sm
from synmod.testing import FunctionLM
from tests.benchmarks.measure import Row, paired

BUDGET_US = 50_000
TICK_S = 0.001
TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}
SERVER = """
import asyncio, json, sys
SIZE = int(sys.argv[1])
COUNT = SIZE // 3_000
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": "1"}'}}
def whole(message, status=200, reason="stop"):
    return status, [json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": reason}]}).encode()]
def records(deltas):
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\\n\\n"
    yield b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\\n\\ndata: [DONE]\\n\\n'
LONG = {"function": {"name": "f", "arguments": json.dumps({"x": "a" * SIZE})}}
def arguments():
    yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x": "'}}]}
    piece = {"tool_calls": [{"index": 0, "function": {"arguments": "a" * 1_000}}]}
    yield from [piece] * (SIZE // 1_000)
    yield {"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]}
ANSWERS = {
    "calls with one id": lambda: whole({"content": None, "tool_calls": [CALL] * COUNT}),
    "streamed calls with one id": lambda: (200, records({"tool_calls": [CALL]} for _ in range(COUNT))),
    "streamed arguments": lambda: (200, records(arguments())),
    "an error body": lambda: (500, [json.dumps({"error": {"message": "x" * SIZE}}).encode()]),
    "an error of many parts": lambda: (400, [json.dumps({"error": [{"a": n} for n in range(SIZE // 12)]}).encode()]),
    "a text": lambda: whole({"content": "a" * SIZE}),
    "a streamed text": lambda: (200, records({"content": "a" * 1_000} for _ in range(SIZE // 1_000))),
    "a value of many parts": lambda: whole({"content": json.dumps([{"a": n} for n in range(SIZE // 30)])}),
    "arguments of one call": lambda: whole({"tool_calls": [{**CALL, **LONG}]}),
    "lines of data": lambda: (200, [b"data:x\\n" * 1_000] * (SIZE // 7_000)),
}
async def serve(reader, writer):
    request = await reader.readuntil(b"\\r\\n\\r\\n")
    body = await reader.readexactly(int(request.lower().split(b"content-length:")[1].split()[0]))
    status, parts = ANSWERS[json.loads(body)["messages"][0]["content"]]()
    writer.write(b"HTTP/1.1 %d OK\\r\\nconnection: close\\r\\n\\r\\n" % status)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
ANSWERS = {
    "calls with one id": {"tools": [TOOL]},
    "streamed calls with one id": {"tools": [TOOL], "stream": True},
    "streamed arguments": {"tools": [TOOL], "stream": True},
    "an error body": {},
    "an error of many parts": {},
    "a text": {},
    "a streamed text": {"stream": True},
    "a value of many parts": {"schema": {"type": "array"}},
    "arguments of one call": {"tools": [TOOL]},
    "lines of data": {"stream": True},
}
"""What the server sends -> the arguments of the call."""


@contextmanager
def server(size):
    """The address of a server in a process of its own, whose answers have about this many bytes."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(size)], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def longest_block(base, name):
    """Seconds of CPU, in any thread of the process, for which one call held the loop at most."""
    lm = sm.LanguageModel("openai/m", api_base=base, api_key="none", attempts=1, repairs=0)
    longest, is_over = 0.0, False

    async def tick():
        nonlocal longest
        while not is_over:
            before = process_time()
            await asyncio.sleep(TICK_S)
            longest = max(longest, process_time() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    with suppress(sm.ModelError):
        if ANSWERS[name].get("stream"):
            async with await lm(name, **ANSWERS[name]) as stream:
                async for _ in stream:
                    pass
        else:
            await lm(name, **ANSWERS[name])
    is_over = True
    await ticking
    await lm.aclose()
    return longest


def _structured(text, schema, size):
    """Read a text in pieces of five characters, and each partial value."""
    chunks = [sm.LMChunk(text[at : at + 5]) for at in range(0, size, 5)]

    async def read():
        lm = FunctionLM(lambda _: chunks, repairs=0)
        with suppress(sm.BadReplyError):
            async with await lm("What is it?", schema, stream=True) as stream:
                async for chunk in stream:
                    assert chunk.partial is not None or schema is None or chunk.done

    return lambda: asyncio.run(read())


def rows(scale=1.0):
    """Measure."""
    rounds = 5 if scale >= 1 else 1
    with server(max(int(30_000_000 * scale), 10_000)) as base:
        for name in ANSWERS:
            asyncio.run(longest_block(base, name))
            block_us = min(asyncio.run(longest_block(base, name)) for _ in range(rounds)) * 1e6  # neighbours only add
            yield Row(f"the longest block: {name}", block_us, None, BUDGET_US, block_us, "µs")
    text = json.dumps({"found": [{"name": "abc", "number": n} for n in range(2_400)]})
    size = max(int(len(text) * scale), 50)
    ours, floor = _structured(text, {"type": "object"}, size), _structured(text, None, size)
    yield paired("a structured stream of 76 kB beside one of text", ours, floor, budget=3, per=size // 5, rounds=rounds)

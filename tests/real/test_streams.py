"""What passes over an open connection: pieces and partial values, cancelling, and many calls at once."""

import asyncio
import json
import socket
from itertools import pairwise
from typing import Literal

import aiohttp
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

import synmod as sm
from synmod.errors import BadReplyError, ModelTimeout
from tests.real.server import SLOTS

pytestmark = pytest.mark.real

ENDLESS = {"max_tokens": 4_000, "extra_body": {"ignore_eos": True}}


class Pet(sm.DataModel):
    name: str = sm.Field(max_length=12)
    kind: Literal["cat", "dog"]
    toys: list[Literal["ball", "mouse"]] = sm.Field(min_length=1, max_length=2)


async def test_a_stream_brings_what_a_whole_reply_has(model):
    """The pieces are the text, the partial values grow into the reply, and it equals the whole one."""
    whole = await model()("Describe a pet.", Pet)
    async with await model()("Describe a pet.", Pet, stream=True) as stream:
        pieces = [piece async for piece in stream]
    reply = stream.reply
    assert "".join(piece.text for piece in pieces) == reply.text == whole.text
    assert (reply.json, reply.finish_reason) == (whole.json, whole.finish_reason)
    partial = [piece.partial for piece in pieces if piece.partial]
    assert len({str(value) for value in partial}) > 3
    assert all(later["name"].startswith(value.get("name", "")) for value, later in pairwise(partial))
    assert (partial[-1], [piece.done for piece in pieces].count(True), pieces[-1].done) == (reply.json, 1, True)
    assert 0 < reply.first_chunk_s < reply.elapsed_s


async def test_a_cut_stream_ends_as_a_whole_reply_does(model):
    """With the same error, after the pieces that came."""
    pieces = []
    with pytest.raises(BadReplyError, match="max_tokens") as raised:
        async with await model(max_tokens=8)("Describe a pet.", Pet, stream=True) as stream:
            async for piece in stream:
                pieces.append(piece)
    assert (raised.value.reason, raised.value.attempts, len(pieces) > 3) == ("length", 1, True)


async def cancel(task):
    """Cancel a task, and wait for its end."""
    task.cancel()
    await asyncio.wait([task])


async def read(lm, begun=None):
    """Read an endless stream; set the event at its first piece."""
    async with await lm("Count to a million.", stream=True) as stream:
        async for _ in stream:
            if begun is not None:
                begun.set()


async def test_a_cancelled_stream_frees_its_slot_at_once(model, server, until):
    """Within 300 ms, by the server's own account; else it would write for a minute."""
    lm, seconds = model(**ENDLESS), []
    for _ in range(6):
        begun = asyncio.Event()
        task = asyncio.create_task(read(lm, begun))
        await begun.wait()
        assert await asyncio.to_thread(server.busy) == 1
        await cancel(task)
        seconds.append(await until(lambda: not server.busy()))
    assert min(seconds) < 0.3
    assert lm.counters.cancelled == 6


@pytest.mark.parametrize("leave", ["break", "deadline", "timeout_s"])
async def test_each_way_out_of_a_stream_frees_its_slot(model, server, until, leave):
    """Leaving the loop, and limits of time."""
    lm = model(**ENDLESS)
    if leave == "break":
        async with await lm("Count to a million.", stream=True) as stream:
            async for _ in stream:
                break
    elif leave == "deadline":
        with pytest.raises(TimeoutError), sm.deadline(1.0):
            await read(lm)
    else:
        with pytest.raises(ModelTimeout):
            async with await lm("Count to a million.", stream=True, timeout_s=1.0) as stream:
                [piece async for piece in stream]
    assert await until(lambda: not server.busy()) < 10


async def test_a_browser_that_hangs_up_frees_the_slot(model, server, until):
    """From our own HTTP endpoint, through the program, to the server of the model."""
    writer, app = sm.Generator(language_model=model(**ENDLESS)), FastAPI()

    @app.get("/pets")
    async def get_pets() -> StreamingResponse:
        async def events():
            async with sm.stream(writer, Pet(name="Tom", kind="cat", toys=["ball"])) as stream:
                async for piece in stream:
                    yield f"data: {json.dumps(piece.text)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        web = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(web.serve(sockets=[listening]))
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{listening.getsockname()[1]}/pets") as response:
                assert (await response.content.readline()).startswith(b"data: ")
                assert await asyncio.to_thread(server.busy) == 1
            assert await until(lambda: not server.busy()) < 10
        web.should_exit = True
        await serving


async def test_a_cancelled_call_hangs_up(model, server, until):
    """llama.cpp looks for hung up clients of whole replies once a second, if no other slot is at work."""

    def hang_ups():
        return server.log.read_text(errors="replace").count("cancel task")

    before = hang_ups()
    task = asyncio.create_task(model(**ENDLESS)("Count to a million."))
    await until(server.busy)
    await cancel(task)
    await until(lambda: hang_ups() > before)
    await until(lambda: not server.busy())


@pytest.mark.parametrize("limit", [None, SLOTS])
async def test_more_calls_than_slots_are_all_answered(model, limit):
    """Sixteen calls, with and without a limit, each with its own reply; one of them cancelled, one cut."""
    lm = model(max_tokens=24, limit=limit)
    whole = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

    def schema(number):
        return {**whole, "properties": {"number": {"const": number}}, "additionalProperties": False}

    calls = [asyncio.create_task(lm(f"Number {number}?", schema(number))) for number in range(16)]
    cut = asyncio.create_task(lm("Number?", schema(99), max_tokens=1))
    await asyncio.sleep(0)
    await cancel(calls.pop())
    replies = await asyncio.gather(*calls)
    assert [reply["number"] for reply in replies] == [*range(15)]
    with pytest.raises(BadReplyError):
        await cut
    assert (lm.counters.cancelled, lm.cumulated_failed_calls) == (1, 1)


async def test_readers_at_once_each_get_their_own_stream(model):
    """Pieces of eight streams over four slots do not mix."""
    lm = model(max_tokens=32)

    async def read(number):
        schema = {"type": "object", "properties": {"number": {"const": number}}, "required": ["number"]}
        async with await lm(f"Number {number}?", schema, stream=True) as stream:
            text = "".join([piece.text async for piece in stream])
        return text == stream.reply.text and stream.reply["number"]

    assert await asyncio.gather(*map(read, range(8))) == [*range(8)]

"""What a server may send to hold the loop or fill the memory: the work grows with what it sends, and not faster."""

import gc
import json
import sys
import tracemalloc

import pytest

import synmod as sm
from synmod.lm import LMReply, LMRequest, turns
from synmod.lm.replies import with_calls
from synmod.lm.streaming import Assembly, ServerSentEvents
from synmod.testing import ScriptedLM
from tests.lm.loopback import Answer, ask, completion

REQUEST = LMRequest("openai/m", turns("Hi"))
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}


def record(delta):
    """One event of a stream."""
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def stream(*deltas):
    """Assemble a stream of these deltas."""
    assembly = Assembly()
    for delta in deltas:
        for _ in assembly.read(record(delta)):
            pass
    assert not assembly.fault
    return assembly.response()


def pieces_of_one_call(count):
    """A call whose every piece repeats the name, and may end an object."""
    yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a": [{}'}}]}
    yield from [{"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ', {"x": 1}'}}]}] * count


WORK = {
    "calls with one id": lambda count: with_calls(LMReply(tool_calls=(CALL,) * count), REQUEST),
    "calls with ids that are taken": lambda count: with_calls(
        LMReply(tool_calls=tuple({**CALL, "id": f"c_{n}" if n % 2 else "c"} for n in range(count))), REQUEST
    ),
    "streamed calls with one id": lambda count: stream(*[{"tool_calls": [CALL]}] * count),
    "streamed pieces of one call": lambda count: stream(*pieces_of_one_call(count)),
    "streamed details": lambda count: stream(*[{"details": [{"index": 0, "text": "word"}]}] * count),
    "a tag that never ends": lambda count: stream(*[{"content": "<think></thin"}] * count),
    "lines of data": lambda count: list(ServerSentEvents().feed(b"data: x\n" * count + b"\n")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_the_work_grows_with_what_arrives(name):
    """Twice as much costs about twice the calls."""

    def calls(count):
        total = 0

        def profile(frame, event, argument):
            nonlocal total
            total += event in ("call", "c_call")

        gc.disable()  # other tests may have left callbacks of the collector
        sys.setprofile(profile)
        try:
            WORK[name](count)
        finally:
            sys.setprofile(None)
            gc.enable()
        return total

    WORK[name](10)
    assert calls(1_600) < 2.2 * calls(800)


def test_endless_white_space_is_passed_on():
    """Some models send nothing else until they are cut: it is not held back, in case a tag follows, for ever."""
    assembly = Assembly()
    pieces = [piece.text for _ in range(3_000) for piece in assembly.read(record({"content": "\n"}))]
    assert len(pieces) > 1_000 and "".join(pieces) == "\n" * 3_000


async def test_an_endless_number_is_passed_on():
    """It is not held back for ever because it may go on."""
    pieces = ['{"n": ', *["1"] * 3_000]
    texts = []
    with pytest.raises(sm.BadReplyError):
        async with ScriptedLM([[sm.LMChunk(piece) for piece in pieces]]).stream("Hi", {"type": "object"}) as s:
            async for chunk in s:
                texts.append(chunk.text)
    assert len(texts) > 1_000 and "".join(texts) == "".join(pieces)


def test_an_event_of_many_lines_takes_little_more_memory_than_its_bytes():
    """They are joined as they arrive."""
    events, packet = ServerSentEvents(), b"data:xy\n" * 8_000
    tracemalloc.start()
    try:
        for _ in range(30):
            assert not list(events.feed(packet))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 30 * len(packet)


async def test_only_the_beginning_of_an_error_is_read():
    """The rest of 30 MB is neither decoded nor searched."""
    error, _ = await ask(Answer(400, raw=b'{"error": {"message": "no such field ' + b"x" * 30_000_000 + b'"}}'))
    assert isinstance(error, sm.RequestError)
    assert "no such field" in str(error)
    assert len(error.provider_message) < 2_500


async def test_a_large_reply_is_read_like_a_small_one():
    """In a worker thread: many calls, long arguments, a long value, whole and streamed."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}
    reply, _ = await ask(completion(None, tool_calls=[CALL] * 200), call={"tools": [tool]})
    assert len({call.id for call in reply.tool_calls}) == len(reply.message["tool_calls"]) == 200
    long = json.dumps({"x": "y" * 200_000})
    reply, _ = await ask(completion(long), schema={"type": "object"})
    assert reply.json == json.loads(long)
    error, _ = await ask(completion(long), schema={"type": "array"}, repairs=0)
    assert (type(error), error.reason) == (sm.BadReplyError, "schema")
    packets = [record({"content": long[at : at + 50_000]}) for at in range(0, len(long), 50_000)]
    reply, _ = await ask(Answer(raw=b"".join([*packets, b"data: [DONE]\n\n"])), schema={"type": "object"})
    assert reply.json == json.loads(long)


async def test_a_value_of_too_many_parts_is_not_read():
    """It would stop the process whenever the garbage is collected."""
    error, _ = await ask(completion(json.dumps([[]] * 100_000)), schema={"type": "array"}, repairs=0)
    assert (error.reason, error.errors) == ("schema", (("", "the reply has more than 100,000 objects and arrays"),))
    reply, _ = await ask(completion(json.dumps([[]] * 99_999)), schema={"type": "array"}, repairs=0)
    assert len(reply.json) == 99_999

"""What a provider adds to a turn or call of its own: it stays unread, and goes back to that provider alone."""

import json

import pytest

import synmod as sm
from synmod.data import ChatMessage, ChatMessages, ToolCall
from tests.lm.loopback import DONE, STOP, Answer, Loopback, ask, completion, record

ADD = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
SIGNED = {"extra_content": {"google": {"thought_signature": "SIG"}}}
OWN = {
    "a signature of the call": {"tool_calls": [{**CALL, **SIGNED}]},
    "a signature of the function": {"tool_calls": [{**CALL, "function": {**CALL["function"], "signature": "SIG"}}]},
    "details": {"tool_calls": [CALL], "reasoning_details": [{"type": "reasoning.encrypted", "data": "SIG"}]},
    "reasoning": {"tool_calls": [CALL], "reasoning": "SIG"},
    "reasoning content": {"tool_calls": [CALL], "reasoning_content": "SIG"},
    "a signature of the turn": {"tool_calls": [CALL], **SIGNED},
}


def streamed_turn(message):
    """A stream of a message in one record."""
    calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", ()))]
    return Answer(packets=(record({**message, **({"tool_calls": calls} if calls else {})}), STOP, DONE))


async def turn(message, *, stream):
    """The turn in the reply of a server that sends a message."""
    answer = streamed_turn(message) if stream else completion(None, **message)
    if not stream:
        reply, _ = await ask(answer, call={"tools": [ADD]})
        return reply.message
    async with Loopback(answer) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base, attempts=1)
        async with await lm("Hi", tools=[ADD], stream=True) as pieces:
            async for _ in pieces:
                pass
        await lm.aclose()
    return pieces.reply.message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", OWN)
async def test_they_stay_in_the_turn_and_go_back_unchanged(name, stream):
    """Whole and streamed alike, and through JSON."""
    got = await turn(OWN[name], stream=stream)
    assert got == {"role": "assistant", "content": None, **OWN[name]}
    for message in (got, json.loads(json.dumps(got))):
        result = {"role": "tool", "tool_call_id": "c1", "content": "2"}
        _, (arrived,) = await ask(completion(), messages=[{"role": "user", "content": "Hi"}, message, result])
        assert arrived.body["messages"][1] == got


async def test_pieces_of_them_are_put_together():
    """Texts go on, also those of items with one index; the rest of an item and of an object is replaced."""
    item = {"type": "reasoning.text", "index": 0, "format": "f"}
    packets = (
        record({"reasoning": "Le", "reasoning_details": [{**item, "text": "Le"}]}),
        record({"reasoning": "t me", "reasoning_details": [{**item, "text": "t me"}]}),
        record({"reasoning_details": [{**item, "signature": "SIG"}, {"type": "reasoning.encrypted", "data": "D"}]}),
        record({"content": "2", "extra_content": {"google": {"thought_signature": "a"}}}),
        record({"content": "", "extra_content": {"google": {"thought_signature": "b"}, "more": None}}),
    )
    async with Loopback(Answer(packets=(*packets, STOP, DONE))) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base)
        async with await lm("Hi", stream=True) as pieces:
            assert "".join([piece.reasoning async for piece in pieces]) == "Let me"
        await lm.aclose()
    assert pieces.reply.message == {
        "role": "assistant",
        "content": "2",
        "reasoning": "Let me",
        "reasoning_details": [
            {**item, "text": "Let me", "signature": "SIG"},
            {"type": "reasoning.encrypted", "data": "D"},
        ],
        "extra_content": {"google": {"thought_signature": "b"}},
    }


async def test_keys_that_hold_nothing_are_left_out():
    """As OpenAI sends them with each reply."""
    assert await turn({"annotations": [], "audio": None, "tool_calls": [CALL]}, stream=False) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [CALL],
    }


async def test_a_fallback_gets_the_known_keys_alone():
    """What one provider wrote is not for another, also where it was the fallback that wrote it."""
    first = completion(None, tool_calls=[{**CALL, **SIGNED}], reasoning_details=[{"data": "SIG"}])
    down = Answer(503, {"error": "down"})

    class Query(sm.DataModel):
        q: str

    def add(a: int) -> int:
        return a + 1

    async def bodies(*, ours, theirs):
        async with Loopback(*ours) as one, Loopback(*theirs) as two:
            other = sm.LanguageModel("openai/n", api_base=two.base, attempts=1)
            lm = sm.LanguageModel("openai/m", api_base=one.base, attempts=1, fallback=other)
            await sm.Agent([add], language_model=lm)(Query(q="1 + 1?"))
            await lm.aclose()
            await other.aclose()
        return [["SIG" in json.dumps(arrived.body) for arrived in server.arrived] for server in (one, two)]

    assert await bodies(ours=[first, down], theirs=[completion("2")]) == [[False, True], [False]]
    assert await bodies(ours=[down], theirs=[first, completion("2")]) == [[False, False], [False, True]]


def test_they_come_into_messages_by_dicts_alone():
    """A misspelt keyword stays an error, and only the turns of an assistant have any."""
    given = {"role": "assistant", "content": None, "reasoning_details": [1], "tool_calls": [{**CALL, **SIGNED}]}
    conversation = ChatMessages([given]).to_json_data_model()
    assert {name: conversation["messages"][0][name] for name in given} == given
    assert conversation.to().messages[0].tool_calls[0].model_extra == SIGNED
    for wrong in (
        lambda: ChatMessage("assistant", "x", reasoning_detail=[1]),
        lambda: ToolCall("1", "add", {}, signature="x"),
        lambda: ChatMessages([{**given, "role": "user"}]),
    ):
        with pytest.raises(ValueError):
            wrong()

"""The conversation of an Agent as data: in its result, given back, with calls that are still open."""

import json
import re

import pytest

import synmod as sm
from synmod.testing import FunctionLM, ScriptedLM
from tests.lm.loopback import Loopback, completion


class Query(sm.DataModel):
    """What is asked."""

    question: str


class Answer(sm.DataModel):
    """What is answered."""

    answer: int


RUNS = []


@pytest.fixture(autouse=True)
def _no_runs():
    RUNS.clear()


def add(a: int, b: int) -> int:
    """Add two numbers."""
    RUNS.append((a, b))
    return a + b


def calling(call_id="1", name="add", **arguments):
    """A call of a tool."""
    return sm.ToolCall(call_id, name, arguments if arguments or name != "add" else {"a": 1, "b": 2})


def user(text):
    """A turn of the user."""
    return {"role": "user", "content": text}


def calls(*tool_calls):
    """The turn of an assistant that calls tools."""
    return {"role": "assistant", "content": None, "tool_calls": [call.get_json() for call in tool_calls]}


def result(text, call_id="1"):
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def talk(*turns):
    """A conversation."""
    return sm.ChatMessages(list(turns))


def chat(replies, *tools, **options):
    """An agent that returns its conversation, and its model."""
    lm = ScriptedLM(replies)
    return sm.Agent([*tools] or [add], language_model=lm, **{"return_messages": True, **options}), lm


# -- in the result -----------------------------------------------------------------------------------------------------


async def test_the_conversation_follows_the_answer():
    """The turns given, each call and result, the last turn; neither the system turn nor examples."""
    examples = [{"inputs": {"question": "2 + 2?"}, "outputs": {"answer": 4}}]
    agent, _ = chat([calling(), {"answer": 3}], data_model=Answer, examples=examples)
    output = await agent(Query(question="1 + 2?"))
    assert list(output.get_json()) == ["answer", "messages"]
    assert output["answer"] == 3
    last = {"role": "assistant", "content": '{"answer": 3}'}
    assert output["messages"] == [user("1 + 2?"), calls(calling()), result("3"), last]
    assert agent.output_spec.get_schema() == output.get_schema()


async def test_without_a_data_model_it_is_the_output():
    """Of the class ChatMessages, after the inputs where they are returned."""
    agent, _ = chat([calling(), "3."])
    output = await agent(Query(question="1 + 2?"))
    assert isinstance(output.to(), sm.ChatMessages)
    assert [turn.role for turn in output.to().messages] == ["user", "assistant", "tool", "assistant"]
    agent, _ = chat([calling(), "3."], return_inputs=True)
    assert list((await agent(Query(question="1 + 2?"))).get_json()) == ["question", "messages"]


async def test_an_answer_with_messages_of_its_own_is_refused():
    """When the agent is made."""
    with pytest.raises(sm.ConfigError, match="field 'messages' of its own"):
        sm.Agent([add], {"messages": str}, return_messages=True)


async def test_it_holds_what_was_said_and_requests_hold_it_guarded():
    """A tag in a text of the user or of a tool closes nothing in a prompt, and is a tag in the conversation."""

    def read() -> str:
        """Read."""
        return "</inputs>"

    agent, lm = chat([calling("1", "read"), "ok"], read)
    output = await agent(talk(user("<inputs>")))
    assert [turn["content"] for turn in output["messages"]] == ["<inputs>", None, "</inputs>", "ok"]
    assert [turn["content"] for turn in lm.requests[1].messages[1:]] == ["\\u003cinputs>", None, "\\u003c/inputs>"]


async def test_media_stand_in_the_result_and_are_sent_where_the_model_takes_them():
    """As parts of the result in the conversation; to most providers in a turn of the user after all results."""
    picture = sm.Image.from_bytes(b"x", "image/png")
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}

    def draw() -> sm.Image:
        """Draw."""
        return picture

    agent, lm = chat([[calling("1", "draw"), calling("2")], "ok"], draw, add)
    output = await agent(Query(question="1 + 2?"))
    drawn = {**result(None), "content": [{"type": "text", "text": "(image 1)"}, part]}
    assert output["messages"][2:4] == [drawn, result("3", "2")]
    where = {"type": "text", "text": "In the result of draw, call 1:"}
    after = {"role": "user", "content": [where, part]}
    assert lm.requests[1].messages[3:] == (result("(image 1)"), result("3", "2"), after)
    arrived = []

    class Adapter:
        name, version, takes_media_in_results = "own", 1, True

        async def send(self, request):
            arrived.append(request.messages)
            return sm.LMReply("ok")

    await sm.LanguageModel("own/m", adapter=Adapter())(output["messages"][:4])
    assert arrived == [tuple(output["messages"][:4])]


async def test_repair_turns_are_not_part_of_it():
    """Only the reply that was valid is."""
    agent, lm = chat([calling(name="nothing"), calling(), {"answer": 3}], data_model=Answer)
    output = await agent(Query(question="1 + 2?"))
    assert len(lm.requests[1].messages) == 4
    assert [turn["role"] for turn in output["messages"]] == ["user", "assistant", "tool", "assistant"]


def solve(request):
    """Call `add` for the sum that was asked for last, then answer with its result."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return f"It is {last['content']}."
    a, b = map(int, re.findall(r"\d+", last["content"]))
    return sm.ToolCall(f"call_{len(request.messages)}", "add", {"a": a, "b": b})


async def test_ten_turns_of_a_chat_through_json():
    """Each request holds every earlier call and result, and JSON in between changes nothing."""
    lm = FunctionLM(solve)
    agent = sm.Agent([add], language_model=lm, return_messages=True)
    history = []
    for n in range(10):
        output = await agent(talk(*history, user(f"{n} + {n}?")))
        assert output["messages"][: len(history)] == history
        history = json.loads(json.dumps(output.get_json()))["messages"]
        assert history == output["messages"]
        assert sm.ChatMessages(history).get_json() == output.to().get_json()
    assert len(history) == 40
    assert [list(request.messages[1:]) for request in lm.requests] == [
        history[: 4 * (at // 2) + (1, 3)[at % 2]] for at in range(20)
    ]
    assert RUNS == [(n, n) for n in range(10)]


def test_every_loop_returns_conversations(any_loop):
    """asyncio and trio."""

    async def main():
        agent, _ = chat([calling(), "3."])
        return len((await agent(Query(question="1 + 2?")))["messages"])

    assert any_loop(main) == 4


# -- what a provider added ---------------------------------------------------------------------------------------------

OWN = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{**calling().get_json(), "extra_content": {"google": {"thought_signature": "SIG"}}}],
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "SIG", "index": 0}],
}
KNOWN = calls(calling())


async def test_keys_of_a_provider_go_back_to_it_alone_also_from_json():
    """Byte for byte, whatever process the conversation went through; another provider gets the known keys."""
    own = {name: value for name, value in OWN.items() if name not in ("role", "content")}
    answers = (
        completion(None, finish_reason="tool_calls", **own),
        completion("3."),
        completion("Yes."),
        completion("No."),
    )
    async with Loopback(*answers) as server:
        first = sm.LanguageModel("openai/m", api_base=server.base)
        other = sm.LanguageModel("mistral/m", api_base=server.base)
        agent = sm.Agent([add], language_model=first, return_messages=True)
        output = await agent(Query(question="1 + 2?"))
        assert output["messages"][1].items() >= OWN.items()
        history = json.loads(json.dumps(output.get_json()))["messages"]
        await agent(talk(*history, user("Sure?")))
        await sm.Agent([add], language_model=other)(talk(*history, user("Sure?")))
        await first.aclose()
        await other.aclose()
    sent = [arrived.body["messages"] for arrived in server.arrived]
    for turn in sent[1][2], sent[2][2]:
        assert turn == OWN
        assert all(json.dumps(turn[name]) == json.dumps(OWN[name]) for name in own)
    assert sent[3][2] == KNOWN


# -- calls that are still open -----------------------------------------------------------------------------------------


async def test_open_calls_do_not_run_unless_they_may():
    """An appended turn runs no tool that no model called."""
    agent, lm = chat(["3."])
    with pytest.raises(sm.DataError, match=r"messages\[1\]: tool calls without a result: add \(1\).*resume_calls=True"):
        await agent(talk(user("?"), calls(calling())))
    assert (RUNS, lm.requests) == ([], [])


async def test_resumed_calls_run_first():
    """Those without a result, in order; the model reads all of them."""
    agent, lm = chat(["3."], resume_calls=True, tool_choice="required")
    both = calls(calling("1"), calling("2", a=3, b=4), calling("3", a=5, b=6))
    output = await agent(talk(user("?"), both, result("7", "2")))
    assert sorted(RUNS) == [(1, 2), (5, 6)]
    assert output["messages"] == [
        user("?"), both, result("7", "2"), result("3", "1"), result("11", "3"), {"role": "assistant", "content": "3."}
    ]  # fmt: skip
    assert lm.requests[0].tool_choice == "auto"


async def test_resumed_calls_need_approval_and_count():
    """As if the model had just called them."""
    tool = sm.Tool(add, approve=lambda name, arguments: False)
    agent, _ = chat(["no"], tool, resume_calls=True)
    output = await agent(talk(user("?"), calls(calling())))
    assert (RUNS, output["messages"][2]["content"]) == ([], "ToolError: add: this run was not approved.")
    agent, _ = chat(["no"], resume_calls=True, max_tool_calls=1)
    with pytest.raises(sm.AgentLimitError, match="1 more than are left"):
        await agent(talk(user("?"), calls(calling("1"), calling("2"))))


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        ([calls(calling()), user("Well?")], r"messages\[1\]: tool calls without a result: add \(1\)"),
        (
            [calls(calling(), calling("2")), result("3", "2"), user("!"), calls(calling())],
            r"messages\[1\]: .*add \(1\);",
        ),
        ([calls(calling(name="delete"))], r"messages\[1\]: tool_calls\[0\]/name cannot be run: no tool is called"),
        (
            [calls(calling(), calling("2", a="x", b=1)), result("3")],
            r"messages\[1\]: tool_calls\[1\]/arguments/a cannot",
        ),
    ],
)
async def test_calls_that_cannot_be_resumed_are_named(turns, text):
    """Those in the middle, of unknown tools, and with arguments that the schema refuses; nothing runs."""
    agent, lm = chat(["3."], resume_calls=True)
    with pytest.raises(sm.DataError, match=text):
        await agent(talk(user("?"), *turns))
    assert (RUNS, lm.requests) == ([], [])


async def test_equal_ids_are_answered_in_order():
    """Some servers number the calls of each turn alike."""
    agent, _ = chat(["3."], resume_calls=True)
    twice = calls(calling("0"), calling("0", a=3, b=4))
    await agent(talk(user("?"), calls(calling("0")), result("3", "0"), twice, result("3", "0")))
    assert RUNS == [(3, 4)]

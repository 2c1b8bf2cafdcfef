"""Compact: a conversation that nears the window of its model is shortened by a summary of its middle."""

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.blocks.conversation import Conversation, open_calls
from synmod.lm import turns as lm_turns
from synmod.testing import FunctionLM, ScriptedLM

HEADING = "Summary of the conversation so far:\n"


def user(text):
    """A turn of the user."""
    return {"role": "user", "content": text}


def says(text):
    """A turn of the assistant."""
    return {"role": "assistant", "content": text}


def calls(*ids):
    """The turn of an assistant that calls a tool, with these ids."""
    return {"role": "assistant", "content": None, "tool_calls": [sm.ToolCall(n, "add", {}).get_json() for n in ids]}


def result(call_id, text="3"):
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def talk(*turns):
    """A conversation."""
    return sm.ChatMessages(list(turns))


LONG = [user("First."), *(says(f"{n} " * 40) if n % 2 else user(f"{n} " * 40) for n in range(1, 8)), user("Last?")]


def is_summary(request):
    """Whether a request asks for a summary."""
    return request.messages[0]["content"].startswith("Summarize")


def summarizing(answer="Yes.", summary="Short."):
    """A model that summarizes, and answers everything else."""
    return FunctionLM(lambda request: summary if is_summary(request) else answer)


async def test_the_middle_becomes_a_summary():
    """The first turn of the user and the last turns stay; the model reads the middle, and then all of it."""
    lm = summarizing()
    chat = sm.Generator(instructions="Be brief.", compact=sm.Compact(window=220, keep=3), language_model=lm)
    assert (await chat(talk(*LONG)))["content"] == "Yes."
    summary, request = lm.requests
    text = summary.messages[1]["content"]
    assert all(f"{n} {n}" in text for n in range(1, 6)) and "6 6" not in text and "First" not in text
    assert [turn["content"][:9] for turn in request.messages] == [
        "Be brief.", "First.", "Summary o", "6 6 6 6 6", "7 7 7 7 7", "Last?"
    ]  # fmt: skip
    assert request.messages[2] == user(f"{HEADING}Short.")


async def test_a_short_conversation_and_other_inputs_stay_as_they_are():
    """Nothing is paid for; without a known window only a refusal compacts."""
    for compact, turns in (
        (sm.Compact(window=9_000), LONG),
        (sm.Compact(), LONG),
        (sm.Compact(window=9), [user("Hi")]),
    ):
        lm = summarizing()
        await sm.Generator(compact=compact, language_model=lm)(talk(*turns))
        assert [len(request.messages) for request in lm.requests] == [len(turns)]
    lm = summarizing()
    await sm.Generator(compact=sm.Compact(window=9), language_model=lm)(sm.Thinking(thinking="a " * 99))
    assert len(lm.requests) == 1


async def test_a_prompt_that_is_refused_as_too_long_is_compacted():
    """Also where no window is known, as long as it gets shorter; else the error of the provider is raised."""

    def refuse(request):
        if is_summary(request):
            return "Short."
        if sum(len(str(turn["content"])) for turn in request.messages) > most:
            raise sm.ContextWindowError("too long")
        return "Yes."

    most, lm = 300, FunctionLM(refuse)
    chat = sm.Generator(compact=sm.Compact(keep=2), language_model=lm)
    assert (await chat(talk(*LONG)))["content"] == "Yes."
    assert [is_summary(request) for request in lm.requests] == [False, True, False]
    most, lm = 10, FunctionLM(refuse)
    with pytest.raises(sm.ContextWindowError):
        await sm.Generator(compact=sm.Compact(keep=2), language_model=lm)(talk(*LONG))
    assert [is_summary(request) for request in lm.requests] == [False, True, False]


async def test_a_middle_that_no_request_can_hold_is_summarized_piece_by_piece():
    """Each request fits into the window, known or not; a single turn that is too long is cut in its middle."""

    def refuse(request):
        if sum(len(turn["content"]) for turn in request.messages) > 1_200:
            raise sm.ContextWindowError("too long")
        return "Short." if is_summary(request) else "Yes."

    turns = [user("First."), *(says(f"{n} " * 100) for n in range(20)), says("x" * 9_000), user("Last?")]
    for window in (400, None):
        lm = FunctionLM(refuse)
        chat = sm.Generator(compact=sm.Compact(window=window, keep=1), language_model=lm)
        assert (await chat(talk(*turns)))["content"] == "Yes."
        assert [turn["content"] for turn in lm.requests[-1].messages] == ["First.", f"{HEADING}Short.", "Last?"]


async def test_a_summary_that_is_no_shorter_changes_nothing():
    """It is asked for once before the request, and the request is sent as it is."""
    lm = summarizing(summary="long " * 999)
    await sm.Generator(compact=sm.Compact(window=100, keep=1), language_model=lm)(talk(*LONG))
    assert [is_summary(request) for request in lm.requests] == [True, False]
    assert len(lm.requests[1].messages) == len(LONG)


async def test_an_agent_compacts_between_its_steps_and_returns_what_is_left():
    """The summary has a path, usage, and counts to the budget of the run; traces have seen all turns."""

    def read(page: int) -> str:
        """Read a page."""
        return f"page {page} " * 40

    pages = iter(range(9))

    def reply(request):
        if is_summary(request):
            return "Read it."
        page = next(pages)
        return "Done." if page == 8 else sm.ToolCall(f"c{page}", "read", {"page": page})

    lm = FunctionLM(reply, price=(1, 1))
    agent = sm.Agent(
        [read], max_steps=9, compact=sm.Compact(window=400, keep=2), return_messages=True, language_model=lm
    )
    with sm.trace() as trace, sm.budget(calls=99) as account:
        output = await agent(talk(user("Read all.")))
    messages = output["messages"]
    assert messages[:2] == [user("Read all."), user(f"{HEADING}Read it.")]
    assert messages[-1] == says("Done.")
    assert open_calls(lm_turns(messages), (), resume=False) == []
    assert len(messages) < 10
    summaries = [call for call in trace.roots[0].children if call.path == "compact"]
    assert summaries and all(call.usage.prompt_tokens > 0 and call.usage.cost_usd > 0 for call in summaries)
    assert account.used.calls == 9 + len(summaries)
    short = sm.Agent([read], compact=sm.Compact(window=50, keep=1), language_model=summarizing(), budget={"calls": 1})
    with pytest.raises(sm.AgentLimitError):
        await short(talk(*LONG))


async def test_the_model_of_the_summary():
    """That of the Agent or Generator, also the default of its context; another one where it is given."""
    own, other = summarizing(), summarizing(summary="Other.")
    compact = sm.Compact(window=230, keep=2, language_model=other, instructions="Summarize in French.")
    with sm.default_language_model(own):
        await sm.Generator(compact=sm.Compact(window=230, keep=2))(talk(*LONG))
        assert len(own.requests) == 2
        await sm.Generator(compact=compact)(talk(*LONG))
    assert [request.messages[0]["content"] for request in other.requests] == ["Summarize in French."]
    assert own.requests[-1].messages[1]["content"] == f"{HEADING}Other."


async def test_the_window_is_that_of_the_price_list():
    """By the name of the model; unknown where a server of one's own answers."""
    assert await sm.LanguageModel("openai/gpt-4o-mini").context_window() == 128_000
    assert await sm.LanguageModel("openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1").context_window() is None
    assert await ScriptedLM([]).context_window() is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"at": 0}, "at is 0"),
        ({"at": 2}, "share"),
        ({"keep": 0}, "keep"),
        ({"window": -1}, "window"),
        ({"max": 1}, "max"),
    ],
)
def test_what_cannot_be_is_refused(options, says):
    """When it is made; so is what is not a Compact."""
    with pytest.raises((sm.ConfigError, sm.ArgumentError), match=says):
        sm.Compact(**options)
    with pytest.raises(sm.ConfigError, match=r"sm\.Compact"):
        sm.Generator(compact=True)


@st.composite
def conversations(draw):
    """Conversations with calls in any number, each with its results, and open ends."""
    turns = [says("Hello.")] if draw(st.booleans()) else []
    text = st.text("ab ", max_size=200)
    for n in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "tools"]))
        if kind == "tools":
            ids = [f"{n}_{place}" if draw(st.booleans()) else "0" for place in range(draw(st.integers(1, 3)))]
            turns += [calls(*ids), *(result(call_id, draw(text)) for call_id in ids)]
        else:
            turns.append(user(draw(text)) if kind == "user" else says(draw(text)))
    return turns


@pytest.mark.slow
@given(conversations(), st.integers(1, 400), st.integers(1, 9), st.sampled_from(["", "s", "sum " * 50]))
@settings(max_examples=2_000, deadline=None)
def test_no_call_is_parted_from_its_results(turns, window, keep, summary):
    """What is left is a valid conversation that ends as it ended, with the first turn of the user, and no longer."""
    compact = sm.Compact(window=window, keep=keep)
    conversation = Conversation((), lm_turns(turns) if turns else (), True)
    before = conversation.turns()

    async def ask(messages):
        return sm.LMReply("ok")

    async def main():
        lm = FunctionLM(lambda request: summary or sm.LMReply("."))
        await compact.reply(conversation, ask, lm)

    sm.run(main)
    after = conversation.turns()
    assert open_calls(after, (), resume=False) == []
    summaries = [turn for turn in after if str(turn["content"]).startswith(HEADING)]
    assert len(summaries) <= 1
    if summaries:
        at = after.index(summaries[0])
        left = len(after) - at - 1
        assert after[:at] == before[:at]
        assert after[at + 1 :] == before[len(before) - left :]
        assert left >= min(keep, len(before) - at)
        assert any(turn["role"] == "user" for turn in before[:at]) or not any(t["role"] == "user" for t in before)
        assert after[at + 1]["role"] != "tool"
    else:
        assert after == before

"""Agents whose model is a real one: they call their tools, whatever the type of the answer."""

import json
from typing import Literal

import pytest

import synmod as sm

pytestmark = pytest.mark.real


class Question(sm.DataModel):
    question: str


class Report(sm.DataModel):
    weather: Literal["sunny", "rainy", "unknown"]


CITIES = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Tokyo", "Bern", "Perth", "Quito", "Delhi"]


@pytest.fixture
def calls():
    """The cities that the tool was called with."""
    return []


@pytest.fixture
def weather(calls):
    """A tool."""

    async def weather(city: str) -> str:
        """Return the weather in a city."""
        calls.append(city)
        return "It is sunny."

    return weather


async def test_a_typed_agent_calls_its_tool_before_it_answers(model, weather, calls):
    """In ten of ten runs: the grammar of the typed answer leaves room for the call, and the model reads its result."""
    agent, answers = sm.Agent([weather], Report, language_model=model(extra_body={}), max_steps=6), []
    for city in CITIES:
        calls.clear()
        answers.append(await agent(Question(question=f"What is the weather in {city}?")))
        assert calls
    assert [answer["weather"] for answer in answers].count("sunny") > 7


async def test_an_agent_calls_its_tool_on_a_server_that_drops_tools(plain, weather, calls):
    """After the first reply without a call its tools go out in text, and it comes to an end each time."""
    lm = sm.LanguageModel("openai/smollm2", api_base=plain.base, temperature=0, max_tokens=64)
    agent, runs = sm.Agent([weather], Report, language_model=lm, max_steps=6), 0
    for city in CITIES:
        calls.clear()
        await agent(Question(question=f"What is the weather in {city}?"))
        runs += bool(calls)
    assert runs > 6


async def test_an_agent_streams_its_run(model, weather, calls):
    """The pieces of all its turns arrive under its path, the calls of tools among them, and the result is the same."""
    agent = sm.Agent([weather], Report, language_model=model(extra_body={}), max_steps=4)
    question = Question(question="What is the weather in Rome?")
    async with sm.stream(agent, question) as stream:
        pieces = [piece async for piece in stream]
    called = [call for piece in pieces for call in piece.tool_calls]
    assert [call.arguments["city"] for call in called] == calls != []
    assert [piece.done for piece in pieces].count(True) == len(calls) + 1
    assert {piece.path for piece in pieces} == {agent.path or ""}
    assert stream.result.get_json() == {"weather": "sunny"} == (await agent(question)).get_json()


@pytest.mark.parametrize("choice", ["required", "weather"])
async def test_a_chosen_tool_is_called(model, weather, choice):
    """By the word, and by its name, which llama.cpp itself does not know."""
    tool = sm.Tool(weather)
    reply = await model(extra_body={})("What is the weather in Rome?", tools=[tool], tool_choice=choice)
    (call,) = reply.tool_calls
    assert (call.name, call.arguments, reply.finish_reason) == ("weather", {"city": "Rome"}, "tool_calls")


async def test_the_model_answers_after_a_tool_that_fails(model):
    """It reads the error, and the run goes on."""
    tries = []

    async def weather(city: str) -> str:
        """Return the weather in a city."""
        tries.append(city)
        raise ValueError("the service is down: unknown")

    agent = sm.Agent([weather], Report, language_model=model(extra_body={}), max_steps=4, on_tool_error="report")
    report = await agent(Question(question="What is the weather in Rome?"))
    assert report["weather"] in ("sunny", "rainy", "unknown") and tries


async def test_ten_turns_of_a_chat_hold_every_call_and_result(model, weather, calls):
    """Each request begins with the whole conversation so far, through JSON; a long one is compacted by the model."""
    sent = []

    class Sent(sm.Hook):
        def on_lm_begin(self, event):
            sent.append([turn for turn in event.request.messages if turn["role"] != "system"])

    lm = model(extra_body={})
    options = {"tool_choice": "weather", "max_steps": 6, "return_messages": True}
    agent = sm.Agent([weather], Report, language_model=lm, **options)
    history = []
    for city in CITIES:
        sent.clear()
        question = {"role": "user", "content": f"What is the weather in {city}?"}
        with sm.hooks(Sent()):
            output = await agent(sm.ChatMessages([*history, question]))
        assert [turns[: len(history) + 1] for turns in sent] == [[*history, question]] * len(sent)
        assert sent[-1] == output["messages"][:-1]
        history = json.loads(json.dumps(output.get_json()))["messages"]
        assert history == output["messages"]
    assert len(calls) >= len(CITIES)
    assert [turn["role"] for turn in history].count("tool") == len(calls)
    compact = sm.Compact(window=300, keep=4, language_model=model(max_tokens=48))
    brief = sm.Agent([weather], Report, language_model=lm, compact=compact, **options)
    with sm.trace() as trace:
        output = await brief(sm.ChatMessages([*history, {"role": "user", "content": "What is the weather in Oslo?"}]))
    summaries = [call for call in trace.roots[0].children if call.path == "compact"]
    assert all(summary.usage.completion_tokens > 0 for summary in summaries)
    assert len(output["messages"]) < len(history)
    assert output["messages"][1]["content"].endswith(summaries[-1].outputs["summary"])

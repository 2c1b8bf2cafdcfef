"""ChainOfThought and Decision: generators whose output is made for them."""

import pytest
from pydantic import Field

from synmod.blocks import ChainOfThought, Decision, Generator, Thinking
from synmod.data import DataModel
from synmod.errors import ArgumentError, BadReplyError, ConfigError
from synmod.lm import LMReply
from synmod.testing import FunctionLM, ScriptedLM


class Query(DataModel):
    question: str


class Answer(DataModel):
    """The answer."""

    answer: str = Field(description="in one word")


class Diary(DataModel):
    thinking: str
    mood: str


THOUGHT = {"thinking": "It is a capital.", "answer": "Paris"}


async def test_thinking_comes_first():
    """The model reasons before the fields of the output model, and both are returned."""
    lm = ScriptedLM([THOUGHT])
    cot = ChainOfThought(Answer, language_model=lm)
    out = await cot(Query(question="?"))
    assert list(out.get_json()) == ["thinking", "answer"]
    assert Thinking in out
    assert out.to(Answer) == Answer(answer="Paris")
    assert list(lm.requests[0].schema["properties"]) == ["thinking", "answer"]
    assert (await cot(Query.to_symbolic_data_model())).keys() == ("thinking", "answer")


async def test_thinking_can_be_left_out():
    """`return_thinking=False` asks for it and keeps it back; the output is the output model's."""
    lm = ScriptedLM([THOUGHT], cycle=True)
    cot = ChainOfThought(Answer, return_thinking=False, language_model=lm)
    out = await cot(Query(question="?"))
    assert out.to() == Answer(answer="Paris")
    assert "thinking" in lm.requests[0].schema["properties"]
    assert (await cot(Query.to_symbolic_data_model())).get_schema() == Answer.get_schema()
    both = ChainOfThought(Answer, return_thinking=False, return_inputs=True, language_model=lm)
    assert (await both(Query(question="?"))).get_json() == {"question": "?", "answer": "Paris"}


async def test_native_reasoning_is_the_thinking():
    """Where the provider returns what its model thought, the output has it; also in a Decision."""
    lm = FunctionLM(lambda request: LMReply('{"answer": "Paris"}', reasoning="It is a capital."))
    assert (await ChainOfThought(Answer, language_model=lm)(Query(question="?"))).get_json() == THOUGHT
    hidden = ChainOfThought(Answer, return_thinking=False, language_model=lm)
    assert (await hidden(Query(question="?"))).get_json() == {"answer": "Paris"}
    lm = FunctionLM(lambda request: LMReply('{"choice": "ham"}', reasoning="Lunch."))
    chosen = await Decision(["spam", "ham"], with_thinking=True, language_model=lm)(Query(question="?"))
    assert chosen.get_json() == {"thinking": "Lunch.", "choice": "ham"}


async def test_a_thinking_of_the_answers_own_is_never_filled():
    """Reasoning fills the thinking that the block added; that of the output model is the model's to write."""
    said = LMReply('{"thinking_1": "b", "mood": "c"}', reasoning="a")
    out = await ChainOfThought(Diary, language_model=ScriptedLM([said]))(Query(question="?"))
    assert out.get_json() == {"thinking": "a", "thinking_1": "b", "mood": "c"}


def test_models_are_told_what_thinking_is_and_nothing_else():
    """The schema has the first words of the docstring, not its example for people."""
    assert Thinking.get_schema()["description"] == "Think step by step, then answer."
    assert "Example" not in str(ChainOfThought(Answer).render(Query(question="?")))


async def test_an_output_model_with_thinking_of_its_own():
    """Its field is renamed by the merge, and stays when the model's thinking goes."""
    lm = ScriptedLM([{"thinking": "a", "thinking_1": "b", "mood": "c"}], cycle=True)
    assert (await ChainOfThought(Diary, language_model=lm)(Query(question="?"))).keys() == {
        "thinking",
        "thinking_1",
        "mood",
    }
    out = await ChainOfThought(Diary, return_thinking=False, language_model=lm)(Query(question="?"))
    assert out.get_json() == {"thinking_1": "b", "mood": "c"}


async def test_it_is_a_generator():
    """Params, options and rendering are those of a generator; the output model is needed."""
    cot = ChainOfThought(Answer, instructions="Think.", examples=[{"inputs": {}, "outputs": THOUGHT}], temperature=1)
    assert isinstance(cot, Generator)
    assert cot.instructions.value == "Think."
    assert "step by step" in ChainOfThought(Answer).instructions.value
    assert "The answer." in ChainOfThought(Answer).instructions.value
    assert ChainOfThought(schema=Answer.get_schema()).render(Query(question="?"))
    with pytest.raises(ArgumentError):
        ChainOfThought()
    with pytest.raises(ConfigError, match="Did you mean 'return_thinking'"):
        ChainOfThought(Answer, return_thinkin=False)


async def test_a_decision_is_one_of_the_labels():
    """`choice` is a label, after the thinking if that is asked for; another reply is invalid like any other."""
    lm = ScriptedLM([{"thinking": "", "choice": "not a/b"}])
    out = await Decision(["x", "not a/b"], with_thinking=True, language_model=lm)(Query(question="?"))
    assert out["choice"] == "not a/b"
    assert list(out) == ["thinking", "choice"]
    assert (await Decision(["x"])(Query.to_symbolic_data_model())).keys() == ("choice",)
    with pytest.raises(BadReplyError):
        lm = ScriptedLM([{"choice": "y"}], cycle=True)
        await Decision(["x"], language_model=lm)(Query(question="?"))


async def test_several_labels():
    """`choices` holds distinct labels, at least one."""
    lm = ScriptedLM([{"choices": ["b", "a"]}])
    decision = Decision(["a", "b"], multiple=True, with_thinking=False, language_model=lm)
    assert (await decision(Query(question="?"))).get_json() == {"choices": ["b", "a"]}
    for bad in ([], ["a", "a"], ["c"]):
        lm = ScriptedLM([{"choices": bad}], cycle=True)
        with pytest.raises(BadReplyError):
            await Decision(["a", "b"], multiple=True, with_thinking=False, language_model=lm)(Query(question="?"))
    assert (await decision(Query.to_symbolic_data_model())).keys() == ("choices",)


async def test_question_and_meanings_reach_the_model():
    """What is asked, and what the labels mean, stand in instructions and schema."""
    decision = Decision({"spam": "prize, lottery", "ham": "lunch"}, question="Is it spam?")
    assert "Is it spam?" in decision.instructions.value
    assert "- spam: prize, lottery" in decision.instructions.value
    schema = str(decision.render(Query(question="?"))[0].content)
    assert schema.count("Is it spam?") == 2
    assert "spam (prize, lottery)" in schema
    own = Decision(["a"], question="Which?", instructions="Choose.")
    assert own.instructions.value == "Choose."
    assert "Which?" in str(own.render(Query(question="?"))[0].content)


async def test_meanings_are_rules_for_the_embedded_model():
    """A newcomer's first decision works without a key."""
    decision = Decision({"spam": "prize, lottery", "ham": "lunch"}, language_model="embedded/nearest")
    assert (await decision(Query(question="You won the lottery")))["choice"] == "spam"
    assert (await decision(Query(question="lunch at noon?")))["choice"] == "ham"


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([], "empty"),
        ({}, "empty"),
        (["a", "b", "a"], "'a' is repeated"),
        (["a", 3], "label 3, or"),
        ({"a": 3}, "'a'"),
        ({1: "a"}, "label 1, or"),
        ("ab", "labels is 'ab'"),
        (None, "labels is None"),
    ],
)
def test_labels_are_checked(labels, says):
    """What cannot be chosen from is refused where it is written, by name."""
    with pytest.raises(ConfigError) as caught:
        Decision(labels)
    assert says in str(caught.value)


def test_a_decision_has_no_other_output():
    """Its output is made of its labels; its question is a text."""
    with pytest.raises(ConfigError, match="question must be a str, got 3"):
        Decision(["a"], question=3)
    with pytest.raises(ConfigError, match="data_model"):
        Decision(["a"], data_model=Answer)
    with pytest.raises(ConfigError, match="Did you mean 'temperature'"):
        Decision(["a"], temperatur=1)

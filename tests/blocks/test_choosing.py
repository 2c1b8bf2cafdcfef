"""Choices: Variables in the place of models, parameters and numbers, read at each call."""

import pytest

import synmod as sm
from synmod.errors import ArgumentError, ConfigError
from synmod.testing import FunctionLM


class Query(sm.DataModel):
    question: str


QUERY = Query(question="Why?")


def named(name, *, price=None):
    """A model that answers its name and temperature."""
    return FunctionLM(lambda request: {"answer": f"{name} {request.params.get('temperature')}"}, name=name, price=price)


def generator(**given):
    models = sm.Choice({"cheap": named("cheap"), "good": named("good")})
    return sm.Generator({"answer": str}, language_model=models, **given)


def set_to(program, values):
    """An overlay of a program."""
    return sm.using(program, sm.state(program, sm.Param).replace(values))


async def test_a_model_and_a_parameter_may_be_chosen():
    """The value is read at each call, also from an overlay; only the names are values."""
    ask = generator(temperature=sm.Choice([0, 1], index=1))
    assert (await ask(QUERY))["answer"] == "cheap 1"
    with set_to(ask, {"language_model": "good", "temperature": 0}):
        assert (await ask(QUERY))["answer"] == "good 0"
    assert sm.state(ask).to_json()["language_model"] == "cheap"
    ask.language_model.assign("good")
    assert (await ask(QUERY))["answer"] == "good 1"


async def test_it_is_saved_and_cloned():
    """A file has the name; the models are supplied as elsewhere."""
    ask = generator(temperature=sm.Choice([0, 1]))
    ask.language_model.assign("good")
    text = sm.dumps(ask)
    again = sm.loads(text, language_models={"cheap": named("cheap"), "good": named("good")})
    assert (await again(QUERY))["answer"] == "good 0"
    assert (await sm.clone(ask)(QUERY))["answer"] == "good 0"


async def test_one_of_several_modules_runs():
    """The one that the choice names."""
    way = sm.Choice(["loud", "plain"])
    loud = sm.Lambda(lambda query: Query(question=query["question"].upper()), output=Query)
    ask = sm.Choose(way, {"loud": loud, "plain": sm.Identity()})
    assert (await ask(QUERY))["question"] == "WHY?"
    way.assign("plain")
    assert (await ask(QUERY))["question"] == "Why?"


async def test_numbers_may_be_chosen():
    """`n` of Majority, here."""
    lm = FunctionLM(lambda request: {"answer": "x"})
    vote = sm.Majority(sm.Generator({"answer": str}, language_model=lm), sm.Choice([3, 1]))
    await vote(QUERY)
    with set_to(vote, {"n": 1}):
        await vote(QUERY)
    assert len(lm.requests) == 4


def test_wrong_choices_are_refused():
    """Each option is checked where it stands; keys of Choose are the options."""
    with pytest.raises(ArgumentError, match="at least one"):
        sm.Choice([])
    with pytest.raises(ArgumentError, match="index is 2"):
        sm.Choice([1, 2], index=2)
    with pytest.raises(ConfigError, match="temperature"):
        sm.Generator(temperature=sm.Choice(["hot"]))
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        sm.Majority(sm.Identity(), sm.Choice([0, 1]))
    with pytest.raises(ConfigError, match="Did you mean 'plain'"):
        sm.Choose(sm.Choice(["plain"]), {"plian": sm.Identity()})
    with pytest.raises(ConfigError, match="language_model"):
        sm.Generator(language_model=sm.Choice({"a": 3}))

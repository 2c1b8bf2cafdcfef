"""Which output is taken: one that a function accepts, one that most samples agree on; and how sure that is."""

import pytest

import synmod as sm
from synmod.errors import ConfigError
from synmod.testing import ScriptedLM


class Query(sm.DataModel):
    question: str


def model(*answers):
    """A generator that gives these answers in turn."""
    return sm.Generator({"answer": str}, language_model=ScriptedLM([{"answer": answer} for answer in answers]))


@pytest.mark.parametrize(("first", "second", "answer"), [("yes", "no", "yes"), ("", "no", "no"), ("", " ", " ")])
async def test_a_fallback_goes_on_unless_an_output_is_accepted(first, second, answer):
    """If none is accepted, the last output is returned."""
    chain = sm.Fallback(model(first), model(second), unless=lambda output: output["answer"].strip())
    assert (await chain(Query(question="?")))["answer"] == answer


async def test_the_last_member_is_not_asked_about():
    """It needs no field that the function reads: a large model after a small one has no confidence."""

    class Sure(sm.DataModel):
        answer: str
        confidence: float

    small = sm.Constant(Sure(answer="a", confidence=0.4))
    chain = sm.Fallback(small, model("b"), unless=lambda output: output["confidence"] > 0.5)
    assert (await chain(Query(question="?")))["answer"] == "b"


async def test_a_failure_behind_a_refused_output_is_no_failure():
    """The output is returned, since there is one."""

    def fail(query):
        raise sm.UnavailableError("down")

    chain = sm.Fallback(model("no"), sm.Lambda(fail, output=Query), unless=lambda output: False)
    assert (await chain(Query(question="?")))["answer"] == "no"
    with pytest.raises(ConfigError, match="unless"):
        sm.Fallback(model("x"), unless="answer")


async def test_a_majority_may_return_its_share():
    """Of the samples that agree, in a field of its own, which is declared."""
    vote = sm.Majority(model("a", "b", "a", "a"), 4, return_share=True)
    output = await vote(Query(question="?"))
    assert (output["answer"], output["share"]) == ("a", 0.75)
    symbol = await vote(Query.to_symbolic_data_model())
    assert list(symbol.keys()) == ["answer", "share"]


class Judged(sm.DataModel):
    confidence: float
    right: bool


async def test_calibration_is_the_distance_of_confidence_from_truth():
    """Of each bin, weighted by its rows."""
    rows = [Judged(confidence=0.95, right=at < 5) for at in range(10)] + [Judged(confidence=0.05, right=False)] * 10
    evaluation = await sm.evaluate(
        sm.Identity(), rows, reward=lambda outputs: float(outputs["right"]), metrics=[sm.metrics.Calibration()]
    )
    assert evaluation.metrics["calibration"] == pytest.approx((0.45 * 10 + 0.05 * 10) / 20)

"""Rewards and metrics ask by parameter name for what they judge."""

import pytest
from anyio import create_task_group

import synmod as sm
from synmod.scope import BoundReward

OFFERED = {"inputs": "in", "outputs": "out", "target": "wanted", "example_id": "7"}


class Judge:
    """Like a module: a method `call`, and a range."""

    range = (-1, 1)

    async def call(self, y_pred, strict=False):
        """Return the phase."""
        assert not strict
        return sm.current_phase() == "reward" and y_pred == "out"


@pytest.mark.parametrize(
    ("reward", "asks_for"),
    [
        (lambda inputs, outputs: (inputs, outputs) == ("in", "out"), {"inputs", "outputs"}),
        (lambda y_true, y_pred: (y_true, y_pred) == ("wanted", "out"), {"target", "outputs"}),
        (lambda example_id, *, target, **_: (example_id, target) == ("7", "wanted"), {"example_id", "target"}),
        (lambda outputs, /, digits=2: outputs == "out" and digits == 2, {"outputs"}),
        (lambda: True, set()),
        (Judge(), {"outputs"}),
    ],
)
async def test_a_reward_gets_what_its_parameters_name(reward, asks_for):
    """In any order, under either of two names, in phase `reward`; a number becomes a Feedback."""
    bound = BoundReward(reward, OFFERED)
    assert bound.asks_for == asks_for
    assert await bound(**OFFERED) == sm.Feedback(1.0)
    assert bound.lowest == (-1.0 if isinstance(reward, Judge) else 0.0)


@pytest.mark.parametrize(
    ("reward", "text"),
    [
        (lambda output: 1, "'output'.*Did you mean 'outputs'"),
        (lambda target: 1, "'target'.*it may take inputs, outputs, y_pred"),
        (3, "is 3"),
        (min, "cannot be read"),
    ],
)
def test_a_reward_that_asks_for_something_else(reward, text):
    """An ArgumentError when it is bound, with the names there are."""
    with pytest.raises(sm.ArgumentError, match=text):
        BoundReward(reward, ["inputs", "outputs"])


@pytest.mark.parametrize(
    "result", ["good", None, float("nan"), 10**400, sm.Feedback(1, objectives={"x": float("inf")})]
)
async def test_a_reward_returns_finite_numbers(result):
    """Anything else is a CallError that shows it."""
    with pytest.raises(sm.CallError, match="the reward is"):
        await BoundReward(lambda: result, [])()


async def test_the_only_failure_in_a_task_group_of_a_reward_is_raised_as_itself():
    """As out of a module: a row that fails by it names the error, not its group."""

    async def fail():
        raise KeyError("team")

    async def judge(outputs):
        async with create_task_group() as group:
            group.start_soon(fail)
        return 1.0

    with pytest.raises(KeyError, match="team"):
        await BoundReward(judge, OFFERED)(**OFFERED)


async def test_a_feedback_goes_through():
    """Scores become floats, the rest stays; no score stays none."""
    full = sm.Feedback(True, critique="fine", target={"a": 1}, objectives={"length": 3}, parts={"a": "b"})
    assert (await BoundReward(lambda: full, [])()).to_json() == {**full.to_json(), "score": 1.0}
    assert (await BoundReward(lambda: sm.Feedback(None), [])()).score is None


@pytest.mark.parametrize("wrong", [{"critique": 3}, {"parts": {"a": None}}])
async def test_words_of_a_feedback_are_text(wrong):
    """Anything else is a CallError, where the reward is, rather than in a file later."""
    with pytest.raises(sm.CallError, match="critique and parts of a Feedback are text"):
        await BoundReward(lambda: sm.Feedback(1.0, **wrong), [])()

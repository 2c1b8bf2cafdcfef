"""assert_not_worse: a planted loss is found, equal programs pass, and what is not known is a failure."""

import random

import pytest

import synmod as sm
from synmod.testing import FunctionLM, assert_not_worse
from synmod.testing.comparing import bounds


class Row(sm.DataModel):
    number: str


def program(text, share, noise):
    """A generator that is right on a share of the rows."""

    def reply(request):
        number = request.messages[-1]["content"]
        return {"answer": "yes" if random.Random(f"{noise}/{number}").random() < share else "no"}

    return sm.Generator({"answer": str}, instructions=text, language_model=FunctionLM(reply))


def is_right(outputs):
    """Reward: the answer is yes."""
    return float(outputs["answer"] == "yes")


def rows(count=400):
    return [Row(number=str(at)) for at in range(count)]


async def test_a_planted_loss_is_found():
    """Of 0.1 on 400 rows, in 20 of 20 seeds; the message has the diff and the rows."""
    for seed in range(20):
        new, old = program("Be quick.", 0.7, seed), program("Be careful.", 0.8, seed)
        with pytest.raises(AssertionError, match="worse") as raised:
            await assert_not_worse(new, old, rows(), reward=is_right, budget=800, seed=seed)
    assert "instructions: was 'Be careful.', is 'Be quick.'" in str(raised.value)
    assert "row " in str(raised.value)


async def test_equal_programs_pass():
    """When all rows were run, or before with a margin."""
    for seed in range(20):
        same = program("Be careful.", 0.8, seed)
        await assert_not_worse(same, same.clone(), rows(40), reward=is_right, seed=seed)
    lm = same.language_model
    before = len(lm.requests)
    await assert_not_worse(same, same, rows(), reward=is_right, margin=0.2)
    assert len(lm.requests) - before < 400


async def test_equal_programs_pass_within_a_margin_by_half_of_the_rows():
    """Of 0.05, on 400 rows, by the budget that is the default."""
    for seed in range(3):
        same = program("Be careful.", 0.8, seed)
        await assert_not_worse(same, same.clone(), rows(), reward=is_right, margin=0.05, seed=seed)


async def test_the_margin_has_the_units_of_the_reward():
    """Of one from 0 to 10: bounds and margin are ten times as wide."""
    same, ten = program("Be careful.", 0.8, 0), sm.rewards.RewardFunction(lambda y_pred: 10.0, range=(0, 10))
    await assert_not_worse(same, same, rows(), reward=ten, margin=0.5)
    with pytest.raises(
        AssertionError, match=r"95 % bounds -0\.4076 and \+0\.4076\), allowed -0\.05, on 200 of 400 rows"
    ):
        await assert_not_worse(same, same, rows(), reward=ten, margin=0.05)


async def test_a_row_without_a_score_proves_nothing():
    """It is no loss of the program, and no proof: the failure gives the reason."""
    same = program("Be careful.", 0.8, 0)

    def reward(outputs, example_id):
        return float("nan") if example_id == "3" else 1.0

    examples = [sm.Example(row.number, row, None) for row in rows(10)]
    with pytest.raises(AssertionError, match=r"some rows have no score: .* on 9 of 10 rows"):
        await assert_not_worse(same, same, examples, reward=reward)


async def test_what_is_not_known_is_a_failure():
    """The budget is over before the bounds tell."""
    with pytest.raises(AssertionError, match="the budget is over"):
        await assert_not_worse(program("a", 0.8, 1), program("b", 0.8, 2), rows(), reward=is_right, budget=40)


async def test_rows_may_be_a_file(tmp_path):
    """As for `sm.load_examples`."""
    path, same = tmp_path / "rows.jsonl", program("Be careful.", 0.8, 0)
    path.write_text("".join(f'{{"number": "{at}", "answer": "yes"}}\n' for at in range(10)), encoding="utf-8")
    asked = sm.Sequential([sm.Input(Row), same])
    await assert_not_worse(asked, asked, path, reward=is_right)
    assert len(same.language_model.requests) == 20


async def test_recorded_calls_are_not_paid_again(tmp_path):
    """With the same folder, an unchanged program costs nothing."""
    old = program("Be careful.", 0.8, 0)
    for _ in range(2):
        await assert_not_worse(old, old, rows(10), reward=is_right, run=tmp_path / "ci")
    assert len(old.language_model.requests) == 20


def test_the_bounds_hold_at_all_times():
    """For a mean of 0 the lower bound exceeds it at some time in less than 5 % of the runs."""
    wrong = 0
    for seed in range(200):
        draw = random.Random(seed)
        numbers = [draw.choice([-1.0, 0.0, 0.0, 1.0]) for _ in range(120)]
        wrong += any(bounds(numbers[:at])[0] > 0 for at in range(10, 121, 10))
    assert wrong <= 10

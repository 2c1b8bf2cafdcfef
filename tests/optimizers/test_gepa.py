"""Gepa, and what it shares with Omega and Reflect: proposals, tests, races, patience."""

import pytest

import synmod as sm
from synmod.errors import TrainerError
from synmod.optimizers import Gepa, Omega, Reflect
from synmod.testing.tasks import RuleProposer, RuleTask
from synmod.train import Batch, Trainer
from tests.optimizers.doubles import Chance, Constant, Failing, Numbered, Scripted, answer, run

ALL = pytest.mark.parametrize("optimizer", [Gepa, Omega, Reflect])


def batch_of(optimizer):
    """The size of batches that suits an optimizer."""
    return 8 if optimizer is Reflect else 40


@ALL
async def test_a_task_is_solved_within_its_budget(optimizer):
    """Rules are found and kept; no rollout is run beyond the budget, and the program holds what is best."""
    history, trainer = await run(
        optimizer(proposer=RuleProposer()), RuleTask(rows=20), budget=300, batch=batch_of(optimizer)
    )
    assert history.best.score > 0.6 > history.candidates[0].score
    assert history.spent.rollouts <= 300
    assert history.best.state.to_json().items() <= trainer.get_params()[0].to_json().items()


@ALL
@pytest.mark.parametrize("reward", [Constant(), Chance()], ids=["constant", "chance"])
async def test_rewards_that_teach_nothing_end_by_patience(optimizer, reward):
    """Nothing gains under a constant; under chance a new best one gets rarer with each."""
    made = optimizer(proposer=Numbered(), patience=3)
    history, _ = await run(made, RuleTask(rows=12), reward=reward, batch=12, budget=None)
    assert history.stopped == "done"
    assert history.best.score >= history.candidates[0].score


@ALL
async def test_a_proposer_out_of_order_ends_the_run_after_three_steps(optimizer):
    """The error is shown."""
    with pytest.raises(TrainerError, match="in 3 steps the proposer gave nothing but errors, such as ModelError: no"):
        await run(optimizer(proposer=Failing()), RuleTask(rows=12), batch=12)


@ALL
async def test_a_program_that_is_right_is_left_alone(optimizer):
    """Nothing is asked where nothing fails."""

    class Right(Constant):
        async def call(self, y_pred):
            return 1.0

    proposer = Scripted([])
    history, _ = await run(optimizer(proposer=proposer, patience=2), RuleTask(rows=12), reward=Right(), batch=12)
    assert {line["word"] for line in history.lines} == {"perfect"}
    assert not proposer.hints


async def test_values_that_cannot_be_used_are_asked_for_once_more():
    """The second question says why; a third one is not asked."""
    seed, too_long = "Work by these rules.", "rule a0\n" * 1000
    proposer = Scripted([3, too_long, seed, "rule a0"])
    made = Gepa(proposer=proposer, width=1, patience=2)
    history, _ = await run(made, RuleTask(stages=1, rows=12), budget=None)
    assert [line["word"] for line in history.lines][:3] == ["invalid", "invalid", "duplicate"]
    assert [hint.partition(":")[0] for hint in proposer.hints][:4] == [
        "",
        "Your last answer misses its schema",
        "",
        "Your last answer was tried before",
    ]


async def test_the_module_that_parts_address_is_mended():
    """Two stages of one schema: what only the second one lacks changes the second one."""

    class Second(Constant):
        async def call(self, y_pred):
            missing = y_pred["missing"][1]
            return sm.Feedback(float(not missing), parts={"1": f"missing: {missing}"} if missing else {})

    history, _ = await run(Gepa(proposer=RuleProposer()), RuleTask(rows=16), reward=Second(), budget=180)
    assert history.best.score > history.candidates[0].score
    assert {tuple(line["paths"]) for line in history.lines} <= {(), ("1/instructions",)}


@ALL
async def test_rows_that_fail_are_evidence(optimizer):
    """A row that raises has the lowest score, its error as critique, and blames what it reached."""
    seen = []

    class Read(sm.Module):
        async def call(self, inputs):
            seen.extend(record["critique"] for record in inputs["records"] if record["outputs"] is None)
            return answer("steady")

    def say(request):
        if "steady" not in str(request.messages):
            raise ValueError("shaky")
        return {"answer": "yes"}

    class Text(sm.DataModel):
        text: str

    class Answer(sm.DataModel):
        answer: str

    lm = sm.testing.FunctionLM(say, attempts=1)
    program = sm.Sequential([sm.Input(Text), sm.Generator(Answer, language_model=lm)])
    rows = [Batch([{"text": str(n)} for n in range(8)], [{"answer": "yes"} for _ in range(8)])]
    trainer = Trainer(program, reward="exact_match", label_names=["answer"])
    history = await trainer.fit(rows, eval_data=rows, optimizer=optimizer(proposer=Read(), patience=1), budget=200)
    assert history.candidates[0].score == 0.0
    assert history.best.score == 1.0
    assert all("shaky" in critique for critique in seen)


async def test_settings_are_checked():
    """A number below 1 is a mistake."""
    with pytest.raises(TrainerError, match="Gepa: width must be a whole number of at least 1, got 0"):
        Gepa(width=0)
    for wrong in ({"joint_after": -1}, {"wide_after": 1.5}, {"lcb": float("nan")}, {"seed": "a"}, {"proposer": 3}):
        with pytest.raises(TrainerError, match=next(iter(wrong))):
            Gepa(**wrong)

"""Optimizers of users: each mistake that their authors make is named, and none costs a result or hangs."""

import asyncio
import logging
import random
import re
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import RuleTask
from synmod.train import Batch, Race, Trainer

PATH = "0/instructions"
TEXTS = [f"rule a{i}\nrule a{j}" for i in range(4) for j in range(4)]


class OneStep(sm.optimizers.Optimizer):
    """Tries one text per step; the mistakes below derive from it."""

    kinds = ("instruction",)
    ends = True

    async def try_text(self, state, bench, text=None):
        child = state.replace({PATH: TEXTS[bench.step % len(TEXTS)] if text is None else text})
        return child, await bench.race(child, state, block=4)

    async def update(self, state, feedback, bench):
        child, race = await self.try_text(state, bench)
        self.note(race.won)
        bench.log("try", [PATH], race.word, race.gain, race.rows)
        return child if race.won else state


async def fit(optimizer, *, rewarded=True, concurrency=64, reward=None, **options):
    """Train the one stage of a RuleTask."""
    task = RuleTask(stages=1, rows=12)
    reward = (reward or (lambda it: it))(task.reward) if rewarded else None
    trainer = Trainer(task.program, reward=reward, concurrency=concurrency)
    batches, options = [Batch(list(task.train))], {"budget": 200, **options}
    return await trainer.fit(batches, eval_data=list(task.validation), optimizer=optimizer, **options)


class PlainUpdate(OneStep):
    def update(self, state, feedback, bench):
        return state


class PlainFinish(OneStep):
    def finish(self, state, bench):
        return state


class UnknownWord(OneStep):
    async def update(self, state, feedback, bench):
        bench.log("try", [PATH], "acepted")
        return state


class UnknownPathInTheLog(OneStep):
    async def update(self, state, feedback, bench):
        bench.log("try", ["0/instruction"], "accepted")
        return state


class NoAnswer(OneStep):
    async def update(self, state, feedback, bench):
        await self.try_text(state, bench)


class AnswersText(OneStep):
    async def update(self, state, feedback, bench):
        return "rule a0"


class UnknownTarget(OneStep):
    async def update(self, state, feedback, bench):
        return {"0/instruction": "rule a0"}


class ReplacesUnknownTarget(OneStep):
    async def update(self, state, feedback, bench):
        return state.replace({"0/instruction": "rule a0"})


class EvaluatesUnknownTarget(OneStep):
    async def update(self, state, feedback, bench):
        await bench.evaluate(sm.State({("nowhere",): state[PATH]}), bench.validation)
        return state


class FinishesWithUnknownTarget(OneStep):
    patience = 1

    async def finish(self, state, bench):
        return {"0/instruction": "rule a0"}


class CostIsNoNumber(OneStep):
    def step_cost(self, bench):
        return None


class NeverEnds(OneStep):
    ends = False


@pytest.mark.parametrize(
    ("optimizer", "options", "error", "text"),
    [
        (OneStep, {"rewarded": False}, sm.TrainerError, "OneStep compares scores: give a reward"),
        (PlainUpdate, {}, sm.TrainerError, r"PlainUpdate\.update is a plain function; write `async def`"),
        (PlainFinish, {}, sm.TrainerError, r"PlainFinish\.finish is a plain function; write `async def`"),
        (UnknownWord, {}, sm.TrainerError, r"bench\.log: word .* got 'acepted'\. Did you mean 'accepted'\?"),
        (UnknownPathInTheLog, {}, sm.TrainerError, r"bench\.log: path .* Did you mean '0/instructions'\?"),
        (NoAnswer, {}, sm.TrainerError, r"NoAnswer\.update returned None; return a sm\.State"),
        (AnswersText, {}, sm.TrainerError, r"AnswersText\.update returned 'rule a0'; return a sm\.State"),
        (UnknownTarget, {}, sm.StateError, r"0/instruction\b.* Did you mean '?0/instructions"),
        (ReplacesUnknownTarget, {}, sm.StateError, r"0/instruction\b.* Did you mean '?0/instructions"),
        (EvaluatesUnknownTarget, {}, sm.StateError, "nowhere"),
        (FinishesWithUnknownTarget, {}, sm.StateError, r"0/instruction\b.* Did you mean '?0/instructions"),
        (CostIsNoNumber, {}, sm.TrainerError, r"CostIsNoNumber\.step_cost must be a whole number of at least 0, got N"),
        (NeverEnds, {"budget": None}, sm.TrainerError, "NeverEnds does not end by itself"),
    ],
)  # fmt: skip
def test_a_mistake_of_an_author_is_named(optimizer, options, error, text):
    """By the class, what was written, and what to write in its place."""
    with pytest.raises(error, match=text):
        asyncio.run(fit(optimizer(patience=1), **options))


class AcceptsTies(OneStep):
    """The values tie, and each is taken: the State changes in every step."""

    async def update(self, state, feedback, bench):
        child, race = await self.try_text(state, bench, ["rule a0\nfoo", "rule a0\nbar"][bench.step % 2])
        self.note(race.kept)
        return child if race.kept else state


class NeverDone(OneStep):
    """Runs all texts again and again, and notes nothing."""

    async def update(self, state, feedback, bench):
        await self.try_text(state, bench)
        return state


class TriesNothing(OneStep):
    async def update(self, state, feedback, bench):
        return state


@pytest.mark.parametrize("optimizer", [AcceptsTies, NeverDone, TriesNothing])
@pytest.mark.parametrize("budget", [None, 1_000])
def test_steps_that_try_nothing_new_end_a_fit(optimizer, budget, caplog):
    """Even where the State changes from step to step; the log names what to call."""
    with caplog.at_level(logging.WARNING, "synmod.train"):
        history = asyncio.run(fit(optimizer(), budget=budget))
    assert history.stopped == "done"
    assert f"the last 100 steps of {optimizer.__name__} had no new State" in caplog.text
    assert "race.won" in caplog.text


@pytest.mark.parametrize(
    ("race", "won", "word"),
    [
        (Race(True, 1.0, 4), True, "accepted"),
        (Race(True, 0.0, 4), False, "no_gain"),
        (Race(True, -0.25, 4), False, "no_gain"),
        (Race(False, -3.0, 4), False, "worse"),
    ],
)
def test_a_race_is_won_by_a_gain(race, won, word):
    """A tie is not one."""
    assert (race.won, race.word) == (won, word)


class WholeChildren(OneStep):
    """Runs a child per step on all validation rows, and says nothing of what it costs."""

    rows = 12

    async def update(self, state, feedback, bench):
        child = state.replace({PATH: TEXTS[1 + bench.step]})
        await bench.evaluate(child, bench.validation[: self.rows])
        new, old = bench.scores(child), bench.scores(state)
        return child if sum(new.values()) > sum(old.values()) else state


class PartsOfChildren(WholeChildren):
    rows = 5


class OneLongStep(OneStep):
    async def update(self, state, feedback, bench):
        for text in TEXTS:
            await bench.evaluate(state.replace({PATH: text}), bench.validation[:6])
        return state


class OneWideStep(OneStep):
    async def update(self, state, feedback, bench):
        children = [state.replace({PATH: text}) for text in TEXTS]
        await bench.gather(*(bench.evaluate(child, bench.validation) for child in children))
        return state


@pytest.mark.parametrize("optimizer", [WholeChildren, PartsOfChildren, OneLongStep, OneWideStep])
@pytest.mark.parametrize("budget", [30, 41, 77])
def test_the_end_is_paid_whatever_a_step_costs(optimizer, budget):
    """The seed and the State that is left have all validation rows: no better State is lost for want of a proof."""
    history = asyncio.run(fit(optimizer(), budget=budget))
    scores = {candidate.id: candidate.scores.get("validation", {}) for candidate in history.candidates}
    assert history.spent.rollouts <= budget
    assert len(scores["c0"]) == len(scores[history.best.id]) == 12
    whole = [candidate.score for candidate in history.candidates if len(scores[candidate.id]) == 12]
    assert history.best.score == max(whole)
    assert len(whole) > 1 or optimizer is OneWideStep


@pytest.mark.parametrize("limit", [{"lm_calls": 30}, {"tokens": 12_000}])
def test_the_end_is_paid_from_calls_and_tokens_too(limit):
    """As far as the average of a rollout foretells it."""
    history = asyncio.run(fit(WholeChildren(), budget=sm.Budget(**limit)))
    assert len(history.seed.scores["validation"]) == len(history.best.scores["validation"]) == 12


class SlowReward(sm.rewards.Reward):
    """Another reward, after some turns of the loop that differ from row to row."""

    needs_target = False

    def __init__(self, judge, dice, **options):
        super().__init__(**options)
        self.judge, self.dice = judge, dice

    async def call(self, y_pred):
        for _ in range(self.dice.randrange(20)):
            await asyncio.sleep(0)
        return await self.judge.call(y_pred=y_pred)


class ParallelRaces(OneStep):
    """Races two children at once, in branches of several evaluations each."""

    async def update(self, state, feedback, bench):
        texts = bench.rng("texts").sample(TEXTS, 2)
        children = [state.replace({PATH: text}) for text in texts]
        races = await bench.gather(*(bench.race(child, state, block=3) for child in children))
        best = max(range(2), key=lambda number: races[number].gain)
        self.note(races[best].won)
        return children[best] if races[best].won else state


@pytest.mark.parametrize("optimizer", [WholeChildren, PartsOfChildren, OneLongStep, ParallelRaces])
def test_what_fits_into_a_budget_depends_neither_on_concurrency_nor_on_a_restart(optimizer, tmp_path):
    """Nor on latency; a run that is resumed calls nothing again."""
    histories = []
    for number, concurrency in enumerate((1, 8, 64, 64)):
        dice = random.Random(number)
        history = asyncio.run(
            fit(
                optimizer(patience=3),
                budget=61,
                concurrency=concurrency,
                reward=lambda judge, dice=dice: SlowReward(judge, dice),
                run=tmp_path / str(min(number, 2)),
            )
        )
        histories.append(history.to_json())
    assert histories[1:] == histories[:1] * 3


class Writes(sm.optimizers.Optimizer):
    """Keeps whatever a model writes that wins a race."""

    kinds = ("instruction",)
    ends = True

    async def update(self, state, feedback, bench):
        rollouts = await bench.evaluate(state, bench.train[:6], split="train", calls=True)
        text = await bench.propose(state, PATH, rollouts, hint="Be brief.")
        child = state if text is None else state.replace({PATH: text})
        race = await bench.race(child, state, block=6)
        self.note(race.won)
        return child if race.won else state


def test_a_plain_optimizer_gets_better_values_from_a_model():
    """By `bench.propose`, from its own proposer; a value that was tried is requested once more."""
    history = asyncio.run(fit(Writes(proposer=RuleTask(stages=1, rows=12).proposer, patience=3)))
    assert history.best.score > history.seed.score


class NoAnswers(sm.Module):
    async def call(self, inputs):
        raise sm.BadReplyError("nonsense")


def test_three_steps_with_nothing_but_failed_proposals_end_a_run():
    """With what failed."""
    with pytest.raises(sm.TrainerError, match="Writes: in 3 steps the proposer gave nothing but errors.*nonsense"):
        asyncio.run(fit(Writes(proposer=NoAnswers(), patience=20)))


async def test_propose_names_a_path_that_is_not_a_target():
    """With those that are."""

    class Misspelt(Writes):
        async def update(self, state, feedback, bench):
            await bench.propose(state, "0/instruction", ())
            return state

    with pytest.raises(sm.TrainerError, match=r"bench\.propose: path .* Did you mean '0/instructions'"):
        await fit(Misspelt())


def test_the_page_names_what_the_bench_has():
    """Each name in the table of the docs is one of the bench, or of the optimizer."""
    benches = []

    class Looks(OneStep):
        async def update(self, state, feedback, bench):
            benches.append(bench)
            return await super().update(state, feedback, bench)

    asyncio.run(fit(Looks(patience=1)))
    page = Path(__file__).parents[2].joinpath("docs/pages/ideas/own-optimizers.md").read_text()
    table = page.partition("## What the bench offers")[2].partition("\n## ")[0]
    names = re.findall(r"`(?:bench\.)?([a-z_]+)[`(]", table)
    assert len(names) > 25
    optimizer = sm.optimizers.Optimizer
    assert [name for name in names if not (hasattr(benches[0], name) or hasattr(optimizer, name))] == []

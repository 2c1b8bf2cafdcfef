"""The bench: rollouts in order and counted once, races, questions, and what stands in it of who did what."""

import asyncio

import pytest

import synmod as sm
from synmod.testing import RuleTask
from synmod.train import Trainer


def made(rows=12, room=None, **options):
    """A bench on a RuleTask, bound; `(bench, ledger, task)`."""
    task = RuleTask(stages=2, rules=2, rows=rows, **options)
    trainer = Trainer(task.program, reward=task.reward)
    optimizer = sm.optimizers.Gepa(proposer=task.proposer)

    async def main():
        await trainer.bind(Case)
        await trainer.init_params()
        splits = {"train": {each.id: each for each in wrapped(task.train)},
                  "validation": {each.id: each for each in wrapped(task.validation)}}  # fmt: skip
        return trainer.open_run(optimizer, splits, sm.Budget(rollouts=room))

    bench, ledger = asyncio.run(main())
    ledger.begin(0)
    return bench, ledger, task


def wrapped(rows):
    """The inputs as data models."""
    return [sm.Example(each.id, sm.JsonDataModel(each.inputs, data_model=Case)) for each in rows]


class Case(sm.DataModel):
    row: str
    needs: list[list[str]]
    missing: list[str]
    read: str


def with_rules(seed, *rules):
    """A State whose first stage has rules."""
    return seed.replace({"0/instructions": "\n".join(rules)})


def test_rollouts_come_in_the_order_of_ids_and_are_counted_once():
    """Needed again, also at the same time, they are free."""
    bench, *_ = made()
    ids = bench.validation[::-1]

    async def main():
        one, two = await bench.gather(bench.evaluate(bench.seed, ids), bench.evaluate(bench.seed, ids[:5]))
        again = await bench.evaluate(bench.seed, ids, samples=2)
        return one, two, again

    one, two, again = asyncio.run(main())
    assert [rollout.id for rollout in one] == list(ids)
    assert two == one[:5]
    assert [(rollout.id, rollout.sample) for rollout in again] == [(row, n) for row in ids for n in (0, 1)]
    assert bench.rollouts == 24
    assert set(bench.scores(bench.seed)) == set(ids)


def test_rollouts_hold_calls_on_request():
    """Those of modules that own a target."""
    bench, *_ = made()

    async def main():
        return [
            await bench.evaluate(bench.seed, bench.train[:1], split="train", calls=calls) for calls in (True, False)
        ]

    (full,), (bare,) = asyncio.run(main())
    assert [call.path for call in full.calls] == ["0", "1"]
    assert bare.calls == ()


def test_what_does_not_fit_into_the_room_is_not_begun():
    """All or nothing, and the others of a gather end first."""
    bench, *_ = made(room=20)
    better = with_rules(bench.seed, "rule a0")

    async def main():
        with pytest.raises(sm.BudgetExceeded, match="12 rollouts do not fit: 8 are left, and the end needs 0"):
            await bench.gather(bench.evaluate(bench.seed, bench.validation), bench.evaluate(better, bench.validation))
        await bench.evaluate(bench.seed, bench.validation[:8], samples=2)

    asyncio.run(main())
    assert (bench.rollouts, bench.room) == (20, 0)


def test_the_end_keeps_what_it_will_cost():
    """A candidate runs only where it can be completed beside the seed; the last step may spend what was kept."""
    bench, ledger, _ = made(room=20)
    better = with_rules(bench.seed, "rule a0")

    async def main():
        assert bench.room == 8
        with pytest.raises(sm.BudgetExceeded, match="1 rollouts do not fit: 20 are left, and the end needs 23"):
            await bench.evaluate(better, bench.validation[:1])
        await bench.evaluate(better, bench.train[:8], split="train")
        ledger.begin(1, is_last=True)
        assert bench.room == 12
        await bench.evaluate(bench.seed, bench.validation)

    asyncio.run(main())
    assert bench.rollouts == 20


def test_a_step_may_take_what_it_asked_for():
    """The rollouts of `step_cost` are its own; only what goes beyond them must leave the end its part."""
    bench, ledger, _ = made(room=20)
    better = with_rules(bench.seed, "rule a0")
    ledger.pledge(8)
    asyncio.run(bench.evaluate(better, bench.validation[:8]))
    assert bench.rollouts == 8


def test_a_race_ends_as_soon_as_it_is_lost():
    """Pairs of the same rows, block by block."""
    bench, *_ = made(rows=40)
    good = with_rules(bench.seed, "rule a0", "rule a1").replace({"1/instructions": "rule b0\nrule b1"})
    lost = asyncio.run(bench.race(bench.seed, good, block=5))
    assert not lost.kept
    assert lost.rows < 40
    assert lost.gain < 0
    won = asyncio.run(bench.race(good, bench.seed, block=5))
    assert (won.kept, won.rows) == (True, 40)


def test_a_tie_goes_to_the_older_one():
    """Higher mean, more rows, fewer tokens, the older one."""
    bench, ledger, _ = made()

    async def main():
        for name in ("b", "a"):
            await bench.evaluate(with_rules(bench.seed, f"line {name}"), bench.validation)

    asyncio.run(main())
    assert [known.state["0/instructions"].value for known in ledger.pool.best_first()] == ["line b", "line a"]
    assert [each.id for each in ledger.pool.candidates()] == ["c0", "c1", "c2"]


def test_what_is_known_does_not_depend_on_who_was_faster():
    """A State of this step is not known yet; one of an earlier step is."""
    bench, ledger, _ = made()
    new = with_rules(bench.seed, "new")

    async def slot(wait):
        await asyncio.sleep(wait)
        bench.candidate(new, bench.seed, operator=f"slot {wait}")
        return bench.knows(new)

    for waits in ((0.0, 0.01), (0.01, 0.0)):
        bench, ledger, _ = made()
        found = asyncio.run(bench.gather(*(slot(wait) for wait in waits)))
        assert found == [False, False]
        assert ledger.pool.find(new).operator == f"slot {waits[0]}"
        ledger.begin(1)
        assert bench.knows(new)


def test_a_question_is_asked_once_per_place():
    """In phase `optimizer`, and drawn anew at the next place."""
    bench, ledger, _ = made()
    asked = []

    class Asked(sm.Module):
        async def call(self, inputs: Case) -> Case:
            asked.append(inputs)
            return inputs

    async def main():
        module, inputs = Asked(), bench.example(bench.train[0]).inputs
        return [await bench.ask(module, inputs) for _ in range(2)]

    one, two = asyncio.run(main())
    assert one == two
    assert len(asked) == 2
    assert ledger.pieces == 2


def test_lines_stand_by_place_not_by_time():
    """Concurrent work is logged in the order in which it was asked for."""
    bench, ledger, _ = made()

    async def slot(number):
        await asyncio.sleep(0.01 * (3 - number))
        bench.log("try", ["0/instructions"], "no_gain", rows=number)

    asyncio.run(bench.gather(*(slot(number) for number in range(3))))
    bench.log("last", [], "perfect")
    ledger.end()
    assert [line["rows"] for line in ledger.lines] == [0, 1, 2, 0]


def test_rows_and_blocks_that_cannot_be():
    """Ids that are those of no row, and a block of no rows, which would race without an end."""
    bench, *_ = made()

    async def main():
        with pytest.raises(sm.TrainerError, match="'x' name no train row"):
            await bench.evaluate(bench.seed, [*bench.train, "x"], split="train")
        for block in (0, -1):
            with pytest.raises(sm.TrainerError, match="race: block"):
                await bench.race(bench.seed, bench.seed, block=block)

    asyncio.run(main())
    assert bench.rollouts == 0


async def test_a_part_that_names_no_module_ends_the_run():
    """Also where no feedback is routed."""
    task = RuleTask(stages=2, rules=2, rows=6)
    task.program.compile(
        lambda: sm.Feedback(0.0, parts={"frist": "shorter"}), sm.optimizers.Gepa(proposer=task.proposer)
    )
    with pytest.raises(sm.TrainerError, match="part of a Feedback must be .*, got 'frist'") as caught:
        await task.program.fit(task.train, verbose=0)
    assert not getattr(caught.value, "__notes__", [])


def test_an_unknown_path_is_refused():
    """A State may have targets alone."""
    bench, *_ = made()
    with pytest.raises(sm.StateError):
        asyncio.run(bench.evaluate(sm.State({"nowhere": bench.seed["0/instructions"]}), bench.validation))

"""Overlays of a live program: a thousand candidates at once, and nothing of the program moves."""

import asyncio
import json

import pytest

import synmod as sm
from tests.module.models import Query


@sm.register(package="tests_overlays")
class Remember(sm.Module):
    """Writes what it is asked into its memory, between its awaits."""

    def __init__(self):
        super().__init__()
        self.style = sm.Param("plain", name="style")
        self.seen = sm.Memory([], schema={"type": "array"}, name="seen")

    async def build(self, inputs):
        self.count = self.add_variable(0, schema={"type": "integer"}, name="count", type=sm.Stat)

    async def call(self, inputs: Query) -> Query:
        question = f"{self.style.value}:{inputs['question']}"
        await asyncio.sleep(0)
        self.seen.assign([*self.seen.value, question])
        await asyncio.sleep(0)
        self.count.assign(self.count.value + 1)
        return Query(question=question)


class Chain(sm.Module):
    """Two of them, one after the other; the second twice at once."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Remember(), Remember()

    async def call(self, inputs: Query) -> Query:
        said = await self.first(inputs)
        left, _ = await asyncio.gather(self.second(said), self.second(said))
        return left


@pytest.fixture
async def program():
    """Built, so that its structure is sealed."""
    chain = Chain()
    await sm.build(chain, Query)
    return chain


def picture(program):
    """Values and versions of everything that is live."""
    return [(path, v.value, v.version) for path, v in sm.variables(program).items()]


async def evaluate(program, number):
    """One candidate with a nested one, in child tasks; every seventh is cancelled midway."""
    with sm.using(program, {"first/style": f"c{number}"}) as overlay:
        task = asyncio.create_task(program(Query(question="q")))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        if number % 7 == 0:
            task.cancel()
            await asyncio.wait([task])
        else:
            assert (await task)["question"] == f"plain:c{number}:q"
            with sm.using(program.second, {"style": f"n{number}"}) as inner:
                assert (await program(Query(question="q")))["question"] == f"n{number}:c{number}:q"
            seen = [f"plain:c{number}:q"] * 2 + [f"n{number}:c{number}:q"] * 2
            assert inner.changes.to_json() == {"seen": seen, "count": 4}
            assert program.second.style.value == "plain"
        return overlay, task.cancelled()


@pytest.mark.slow
async def test_a_thousand_overlays_at_once(program):
    """Writes inside, nesting, child tasks, cancellation: each reads its own, nothing of the live program moves."""
    before = picture(program)
    results = await asyncio.gather(*(evaluate(program, number) for number in range(1_000)))
    assert picture(program) == before
    assert any(cancelled for _, cancelled in results)
    for number, (overlay, cancelled) in enumerate(results):
        assert overlay.state["first/style"].value == f"c{number}"
        if not cancelled:
            assert overlay.changes["first/seen"].value == [f"c{number}:q"] * 2
            assert overlay.changes["first/count"].value == 2
            assert overlay.changes["second/count"].value == 2  # the nested candidate kept its own writes


async def test_what_a_first_call_inside_builds_is_live():
    """What `build` makes inside the block is live, and so is what the call writes to it."""
    program = Chain()
    with sm.using(program, {"first/style": "new"}) as overlay:
        await program(Query(question="q"))
    assert program.first.built
    assert program.first.count.value == 1
    assert "first/count" not in overlay.changes


@pytest.mark.parametrize("first", ["the overlay", "the live program"])
async def test_a_build_inside_reads_and_writes_what_is_live(first):
    """What `build` assigns is there for every caller, and a failed one leaves the overlay as it was."""

    class Fitted(sm.Module):
        fails = True

        def __init__(self):
            super().__init__()
            self.style, self.seen = sm.Param("plain"), sm.Param([])

        async def build(self, inputs):
            self.seen.assign([self.style.value, *inputs.keys()])
            await asyncio.sleep(0)
            if self.fails:
                raise ValueError("late")

        async def call(self, inputs: Query) -> Query:
            return Query(question=f"{self.style.value} {self.seen.value}")

    program = Fitted()

    async def candidate():
        with sm.using(program, {"style": "new"}) as overlay:
            return (await program(Query(question="q")))["question"], overlay.changes

    async def live():
        return (await program(Query(question="q")))["question"], None

    with sm.using(program, {"style": "new"}) as overlay:
        with pytest.raises(ValueError, match="late"):
            await program(Query(question="q"))
        assert (program.seen.value, dict(overlay.changes)) == ([], {})
    Fitted.fails = False
    callers = [candidate(), live()] if first == "the overlay" else [live(), candidate()]
    replies = dict(await asyncio.gather(*callers))
    assert replies == {"new ['plain', 'question']": sm.State(), "plain ['plain', 'question']": None}
    assert program.seen.value == ["plain", "question"]


async def test_snapshots_copies_and_files_read_the_overlay(program, tmp_path):
    """`state`, `split`, `clone`, `save` and `save_variables` take what is overlaid."""
    part = program.first
    with sm.using(part, {"style": "candidate"}):
        assert sm.state(part)["style"].value == "candidate"
        assert sm.split(part)[1]["style"].value == "candidate"
        copy = part.clone()
        sm.save(part, tmp_path / "part.json")
        text = sm.dumps(part)
    assert copy.style.value == "candidate"
    assert sm.load(tmp_path / "part.json").style.value == "candidate"
    assert json.loads(text)["state"]["style"] == "candidate"
    assert part.style.value == "plain"


async def test_changes_can_be_kept(program):
    """`update` with the overlay's state writes given and written values, and nothing else moves."""
    with sm.using(program, {"first/style": "kept"}) as overlay:
        await program.first(Query(question="q"))
    assert set(sm.update(program, overlay.state)) == {("first", "style"), ("first", "seen"), ("first", "count")}
    assert program.first.seen.value == ["kept:q"]

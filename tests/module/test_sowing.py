"""sow and capture: intermediate values by call, never in the module."""

import asyncio

import pytest

import synmod as sm
from tests.module.models import Query

Q = Query(question="q")


class Thinker(sm.Module):
    """Sows what it is asked, after as many turns of the loop as the question says."""

    def __init__(self, kind=sm.Intermediate):
        super().__init__()
        self.kind, self.answers = kind, []

    async def call(self, inputs: Query) -> Query:
        for _ in range(int(inputs["question"]) if inputs["question"].isdecimal() else 0):
            await asyncio.sleep(0)
        self.answers.append(self.sow(self.kind, "thought", inputs["question"]))
        return inputs


class Team(sm.Module):
    """Asks its members at once, each something else."""

    def __init__(self, members):
        super().__init__()
        self.members = {"list": list(members)}

    async def call(self, inputs: Query) -> Query:
        count = len(self.members["list"])
        calls = [each(Query(question=str(count - n))) for n, each in enumerate(self.members["list"])]
        await asyncio.gather(*calls)
        return inputs


async def test_what_is_sown_is_collected_by_path_and_name():
    """As lists, under exact steps; sow tells that somebody wanted it; the module is untouched."""
    team = Team([Thinker(), Thinker()])
    before = list(vars(team.members["list"][0]))
    with sm.capture(sm.Intermediate) as cap:
        await team(Q)
    assert list(cap.state) == [("members", "list", 0, "thought"), ("members", "list", 1, "thought")]
    assert cap.state.to_json() == {"members/list/0/thought": ["2"], "members/list/1/thought": ["1"]}
    leaf = cap.state["members"]["list"][0]["thought"]
    assert (leaf.type, leaf.schema, leaf.trainable) == (sm.Intermediate, {"type": "array"}, False)
    assert team.members["list"][0].answers == [True]
    assert list(vars(team.members["list"][0])) == before


async def test_values_come_in_the_order_in_which_calls_began():
    """Not in the order of completion; of one call, as they were sown."""
    shared = Thinker()
    with sm.capture(sm.Intermediate) as cap:
        await Team([shared] * 4)(Q)
    assert cap.state.to_json() == {"members/list/0/thought": ["4", "3", "2", "1"]}
    assert cap.state["members/list/0/thought"].value == ["4", "3", "2", "1"]


async def test_without_an_open_capture_of_the_type_nothing_happens():
    """sow returns False: outside of captures, of another type, outside of calls, after the block."""
    thinker = Thinker()
    await thinker(Q)
    with sm.capture(sm.Stat) as other:
        await thinker(Q)
    assert thinker.sow(sm.Intermediate, "thought", 1) is False
    with sm.capture(sm.Intermediate) as cap:
        assert thinker.sow(sm.Intermediate, "thought", 1) is False
    await thinker(Q)
    assert thinker.answers == [False, False, False]
    assert (len(other.state), len(cap.state), dict(cap.by_call)) == (0, 0, {})
    assert thinker.sow(sm.Intermediate, "no name", object()) is False


async def test_five_concurrent_samples_give_five_captures():
    """`by_call` has each entry call's own State by its id, in the order of their starts; `state` has all."""

    class Sampler(sm.Module):
        def __init__(self):
            super().__init__()
            self.inner = Thinker()

        async def call(self, inputs: Query) -> Query:
            ids.append(sm.current_call().id)
            return await self.inner(inputs)

    ids = []
    program = Sampler()
    await program(Q)
    ids.clear()
    with sm.capture(sm.Intermediate) as cap:
        await asyncio.gather(*(program(Query(question=str(5 - n))) for n in range(5)))
    assert list(cap.by_call) == ids
    assert [state.to_json() for state in cap.by_call.values()] == [{"inner/thought": [str(5 - n)]} for n in range(5)]
    assert cap.state.to_json() == {"inner/thought": ["5", "4", "3", "2", "1"]}


async def test_captures_nest_and_choose_by_type():
    """Each gets what is sown in it, subclasses too; without a type all."""

    class Scratch(sm.Intermediate):
        """A subclass."""

    with sm.capture() as everything, sm.capture(sm.Intermediate) as outer:
        await Thinker()(Q)
        with sm.capture(Scratch, sm.Stat) as inner:
            await Thinker(Scratch)(Q)
        await Thinker(sm.Stat)(Q)
    assert everything.state["thought"].value == ["q"] * 3
    assert outer.state["thought"].value == ["q", "q"]
    assert inner.state["thought"].type is Scratch


async def test_values_are_json_or_data_models():
    """Frozen at once; anything else is an error that names the place."""

    class Sow(sm.Module):
        async def call(self, inputs: Query) -> Query:
            notes = {"lines": [1]}
            self.sow(sm.Intermediate, "notes", notes)
            notes["lines"].append(2)
            self.sow(sm.Intermediate, "query", inputs)
            self.sow(sm.Intermediate, "model", Query(question="m"))
            self.sow(sm.Intermediate, "bad", object())
            return inputs

    with sm.capture(sm.Intermediate) as cap, pytest.raises(sm.DataError, match="bad"):
        await Sow()(Q)
    assert cap.state.to_json() == {
        "notes": [{"lines": [1]}], "query": [{"question": "q"}], "model": [{"question": "m"}]
    }  # fmt: skip


async def test_wrong_arguments_are_named():
    """Types that are none, names that are none."""

    class Sow(sm.Module):
        async def call(self, inputs: Query) -> Query:
            self.sow(sm.Intermediate, "no name", 1)
            return inputs

    with pytest.raises(sm.ArgumentError, match="Variable types"):
        sm.capture(int)
    with sm.capture(), pytest.raises(sm.BadNameError):
        await Sow()(Q)


async def test_a_trace_sows_nothing():
    """`sow` returns False."""

    class Traced(sm.Module):
        def __init__(self):
            super().__init__()
            self.answers = []

        async def call(self, inputs):
            self.answers.append(self.sow(sm.Intermediate, "x", 1))
            return inputs

    program = Traced()
    with sm.capture() as cap:
        await sm.build(program, Query)
    assert program.answers == [False]
    assert len(cap.state) == 0


async def test_cancelled_calls_keep_what_they_have_sown():
    """And nothing of another call."""

    class Slow(sm.Module):
        async def call(self, inputs: Query) -> Query:
            self.sow(sm.Intermediate, "step", inputs["question"])
            await asyncio.Event().wait()
            return inputs

    with sm.capture(sm.Intermediate) as cap:
        tasks = [asyncio.create_task(Slow()(Query(question=str(n)))) for n in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert [state.to_json() for state in cap.by_call.values()] == [{"step": ["0"]}, {"step": ["1"]}, {"step": ["2"]}]


async def test_a_module_made_inside_a_call_sows_below_its_caller():
    """Its path is the caller's and its own name."""

    class Maker(sm.Module):
        async def call(self, inputs: Query) -> Query:
            return await Thinker()(inputs)

    with sm.capture() as cap:
        await Team([Maker()])(Q)
    assert list(cap.state) == [("members", "list", 0, "thinker", "thought")]


def test_sowing_works_on_every_loop(any_loop):
    """Captures are inherited by what runs inside."""
    with sm.capture() as cap:
        any_loop(Thinker(), Q)
    assert cap.state.to_json() == {"thought": ["q"]}

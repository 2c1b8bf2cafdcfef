"""None: the branch not taken."""

import pytest

from synmod.module import Module
from tests.module.models import Answer, Echo, Query, Reply

q = Query(question="x")


async def test_a_call_with_none_is_not_taken():
    """It returns None without frame, event, count or build."""

    class Never(Module):
        async def build(self, inputs):
            raise AssertionError

        async def call(self, inputs):
            raise AssertionError

    never = Never()
    for nothing in (None, [None], (None, [None]), {"a": None}):
        assert await never(nothing) is None
    assert not never.built
    assert never.counters.invocations == 0


async def test_the_declared_structure_is_filled_with_none():
    """A call that is not taken returns its declared outputs, all None."""

    class Pair(Module):
        async def call(self, inputs) -> tuple[Answer, Query]:
            raise AssertionError

    assert await Pair()(None) == (None, None)


@pytest.mark.parametrize("how", ["default", "annotation", "accepts"])
async def test_a_parameter_may_take_none(how):
    """By a default of None, by its annotation, or by the class."""

    class Default(Module):
        async def call(self, inputs=None):
            return q

    class Annotated(Module):
        async def call(self, inputs: Query | None):
            return q

    class Accepts(Module):
        accepts_none = True

        async def call(self, inputs):
            return q

    module = {"default": Default, "annotation": Annotated, "accepts": Accepts}[how]()
    assert (await module(None))["question"] == "x"
    assert module.counters.invocations == 1


async def test_none_beside_data_is_passed_on():
    """A nest that holds data is taken, with its None; an empty nest is data."""
    seen = []

    class Look(Module):
        async def call(self, inputs):
            seen.append(inputs)
            return q

    await Look()([q, None])
    await Look()([])
    assert seen[0][1] is None
    assert seen[1] == []


async def test_star_inputs_count_as_one_nest():
    """`*inputs` is skipped only when all of it is None."""
    seen = []

    class Many(Module):
        async def call(self, *inputs):
            seen.append(inputs)
            return q

    many = Many()
    assert await many(None, None) is None
    await many(q, None)
    assert len(seen) == 1


async def test_none_flows_through_a_chain():
    """Modules need no guard."""
    assert await Reply()(await Echo()(None)) is None

"""Phases: three words, inherited by what a block starts."""

import asyncio

import pytest

from synmod.errors import CallError
from synmod.scope import current_call, current_phase, phase
from tests.scope.part import Part


@pytest.mark.parametrize("name", ["inference", "reward", "optimizer"])
def test_a_phase_holds_in_its_block(any_loop, name):
    """Calls that begin inside belong to it, and so do the calls below them."""
    seen = []

    async def leaf(_):
        seen.append((current_call().phase, current_phase()))

    async def main():
        with phase(name):
            await Part("top", lambda _: Part("leaf", leaf)())()
        return current_phase()

    assert any_loop(main) == "inference"
    assert seen == [(name, name)]


@pytest.mark.parametrize("name", ["rewards", "Reward", "", None, 3, "x" * 10_000])
def test_another_word_is_refused(name):
    """An unknown phase is told at the line that writes it."""
    with pytest.raises(CallError, match="phase"):
        phase(name)


def test_a_misspelt_phase_says_which_was_meant():
    """The text helps."""
    with pytest.raises(CallError, match="Did you mean 'reward'"):
        phase("rewrad")


async def test_a_call_belongs_to_the_phase_in_which_it_began():
    """A call that outlives the block of its phase stays in it, and so does what it calls."""
    seen, go = [], asyncio.Event()

    async def leaf(_):
        seen.append(current_call().phase)

    async def top(_):
        await go.wait()
        seen.append(current_call().phase)
        await Part("leaf", leaf)()

    with phase("reward"):
        task = asyncio.create_task(Part("top", top)())
        await asyncio.sleep(0)
    go.set()
    await task
    assert seen == ["reward", "reward"]

"""Blocks: restored on every exit, inherited by tasks, over when they have ended."""

import asyncio
import contextlib
import contextvars
import threading

import pytest

from synmod.errors import CallError
from synmod.leaves.aio import sleep, task_group
from synmod.scope import (
    AMBIENT,
    NO_BLOCKS,
    Hook,
    NameScope,
    ambient,
    budget,
    current_call,
    current_phase,
    deadline,
    hooks,
    phase,
    time_left,
    trace,
    track_rewards,
    track_usage,
)
from tests.scope.part import Part

BLOCKS = {
    "phase": lambda: phase("reward"),
    "hooks": lambda: hooks(Hook()),
    "deadline": lambda: deadline(60),
    "budget": lambda: budget(calls=3),
    "track_usage": track_usage,
    "track_rewards": track_rewards,
    "trace": trace,
    "name_scope": lambda: NameScope(Part("p")),
}


@pytest.fixture(params=sorted(BLOCKS))
def block(request):
    """Makes one block of each kind."""
    return BLOCKS[request.param]


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, GeneratorExit])
def test_every_exit_restores_what_was(any_loop, block, error):
    """Return, error and closing leave nothing behind."""

    async def main():
        before = AMBIENT.get()
        with pytest.raises(error) if error is not None else contextlib.nullcontext(), block():
            assert AMBIENT.get() is not before
            await sleep(0)
            if error is not None:
                raise error
        assert AMBIENT.get() is before

    any_loop(main)


def test_plain_code_may_use_every_block(block):
    """No block needs a loop."""
    with block():
        assert ambient() is not NO_BLOCKS
    assert AMBIENT.get() is None


async def test_a_cancellation_restores_what_was(block):
    """A cancelled task leaves its block like any other."""
    seen = []

    async def waits():
        try:
            with block():
                await asyncio.sleep(60)
        finally:
            seen.append(ambient())

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert seen == [NO_BLOCKS]


async def test_tasks_inherit_a_block_and_lose_it_when_it_ends(block):
    """A task that outlives the block is not under it any more."""
    seen, ended = [], asyncio.Event()

    async def outlives():
        seen.append(ambient() is not NO_BLOCKS)
        await ended.wait()
        seen.append(ambient() is not NO_BLOCKS)
        with phase("optimizer"):
            seen.append(current_phase())
        seen.append(ambient())

    with block():
        task = asyncio.create_task(outlives())
        await asyncio.sleep(0)
    ended.set()
    await task
    assert seen == [True, False, "optimizer", NO_BLOCKS]


async def test_siblings_never_see_a_block(block):
    """What one task opens another does not have."""
    opened, checked = asyncio.Event(), asyncio.Event()

    async def opens():
        with block():
            opened.set()
            await checked.wait()

    task = asyncio.create_task(opens())
    await opened.wait()
    assert AMBIENT.get() is None
    checked.set()
    await task


def test_a_block_left_in_another_context_restores_and_raises_nothing(block):
    """A generator that somebody else closes touches nobody's context."""

    def held():
        with block():
            yield

    def enter():
        next(generator)
        return AMBIENT.get()

    generator = held()
    inside = contextvars.copy_context()
    assert inside.run(enter) is not None
    with phase("optimizer"):
        generator.close()
        assert current_phase() == "optimizer"
    assert inside.run(ambient) is NO_BLOCKS  # it is over, so it does not hold where it was entered either


async def test_an_async_generator_closed_by_another_task_raises_nothing(block):
    """A dying loop or the collector closes generators wherever it is."""

    async def held():
        with block():
            yield 1

    generator = held()
    assert await anext(generator) == 1
    await asyncio.create_task(generator.aclose())
    assert ambient() is NO_BLOCKS


def test_blocks_left_out_of_order_leave_no_trace(block):
    """Two generators, closed in the order in which they were opened."""

    def held(make):
        with make():
            yield

    first, second = held(block), held(lambda: phase("reward"))
    next(first)
    next(second)
    first.close()
    assert current_phase() == "reward"
    second.close()
    assert current_phase() == "inference"
    assert AMBIENT.get() is None


async def test_tasks_may_share_one_block_object(block):
    """Each entry is its own, whoever leaves first."""
    shared, seen = block(), []

    async def uses(delay):
        with shared:
            await asyncio.sleep(delay)
            seen.append(ambient() is not NO_BLOCKS)
        seen.append(ambient())

    async with asyncio.TaskGroup() as group:
        for delay in (0.03, 0.01, 0.02):
            group.create_task(uses(delay))
    assert seen == [True, NO_BLOCKS] * 3


def test_a_block_may_be_entered_again_inside_itself(block):
    """Nesting one object in itself is two entries."""
    shared = block()
    with shared:
        outer = AMBIENT.get()
        with shared:
            assert AMBIENT.get() is not outer
        assert AMBIENT.get() is outer
    assert AMBIENT.get() is None


def test_a_thread_starts_without_blocks(block):
    """Ambient state is in ContextVars, which a new thread does not inherit."""
    seen = []
    with block():
        thread = threading.Thread(target=lambda: seen.append(ambient()))
        thread.start()
        thread.join()
    assert seen == [NO_BLOCKS]


def test_what_is_left_of_several_blocks_holds():
    """When the middle one of three ends, the outer and the inner still hold."""

    def held(make):
        with make():
            yield

    outer, middle, inner = held(lambda: phase("reward")), held(lambda: budget(calls=1)), held(lambda: hooks(Hook()))
    for one in (outer, middle, inner):
        next(one)
    middle.close()
    left = ambient()
    assert (left.phase, len(left.budgets), len(left.hooks)) == ("reward", 0, 1)
    inner.close()
    outer.close()


def test_long_lived_tasks_do_not_collect_ended_blocks(any_loop):
    """Ten thousand blocks later the context is as small as before."""

    async def main():
        async def works():
            for _ in range(10_000):
                with phase("reward"):
                    pass
            record, depth = AMBIENT.get(), 0
            while record is not None:
                record, depth = record.parent, depth + 1
            assert depth <= 1

        async with task_group() as group:
            with deadline(60):
                group.start_soon(works)
                await sleep(0)

    any_loop(main)


def test_the_innermost_phase_holds(any_loop):
    """Blocks nest at will."""

    async def main():
        with phase("reward"), deadline(60), phase("optimizer"):
            assert current_phase() == "optimizer"
            assert time_left() > 50
        assert current_phase() == "inference"

    any_loop(main)


# -- phases ------------------------------------------------------------------------------------------------------------


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

"""Branches: several calls at once, the first failure for all."""

import asyncio
import contextlib
import dataclasses
import gc
import weakref

import pytest

from synmod.flow import together
from synmod.leaves import aio


def test_results_come_in_the_order_of_the_calls(any_loop):
    """Whoever finishes first, the first call's result is first."""

    async def main():
        async def after(turns, result):
            for _ in range(turns):
                await aio.sleep(0)
            return result

        return await together(lambda: after(3, "a"), lambda: after(0, "b"))

    assert any_loop(main) == ["a", "b"]


async def test_a_single_call_runs_in_place_and_none_is_fine():
    """One call costs no task; no call gives no result."""

    async def task():
        return asyncio.current_task()

    assert await together(task) == [asyncio.current_task()]
    assert await together() == []


async def test_the_traceback_of_a_failure_leads_to_its_line():
    """The error is raised as itself, its traceback kept."""

    async def fail():
        await asyncio.sleep(0)
        raise LookupError("here")

    with pytest.raises(LookupError) as caught:
        await together(fail, fail)
    assert any(entry.name == "fail" for entry in caught.traceback)


async def test_the_same_error_in_two_branches_is_no_note_on_itself():
    """An exception object that reaches two branches is raised once, without a note."""
    shared = LookupError("shared")

    async def fail():
        await asyncio.sleep(0)
        raise shared

    with pytest.raises(LookupError) as caught:
        await together(fail, fail)
    assert not getattr(caught.value, "__notes__", [])


async def test_system_exit_is_never_swallowed():
    """SystemExit in a branch leaves as itself."""

    def main():
        async def leave():
            await asyncio.sleep(0)
            raise SystemExit(3)

        async def wait():
            await asyncio.sleep(60)

        asyncio.run(together(leave, wait))

    with pytest.raises(SystemExit) as caught:
        await asyncio.to_thread(main)
    assert caught.value.code == 3


async def test_failures_that_refuse_attributes_are_noted_too():
    """Frozen exceptions, or ones with notes of their own kind, break nothing."""

    @dataclasses.dataclass(frozen=True)
    class Frozen(Exception):
        x: int

    class Odd(Exception):
        __notes__ = 3

    async def fail(error):
        raise error

    with pytest.raises(Frozen) as caught:
        await together(lambda: fail(Frozen(1)), lambda: fail(Frozen(2)), lambda: fail(Odd("odd")))
    assert [note.split(":")[0] for note in caught.value.__notes__] == ["another task failed too"] * 2


@pytest.mark.parametrize("fails", [False, True])
async def test_results_are_freed_by_counting(fails):
    """Nothing of an ended group waits for the collector."""

    class Value:
        pass

    async def make():
        value = Value()
        refs.append(weakref.ref(value))
        return value

    async def fail():
        value = await make()
        if fails:
            raise LookupError(value)

    refs = []
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(LookupError):
            await together(make, fail)
        await asyncio.sleep(0)
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()

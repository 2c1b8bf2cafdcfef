"""Frames: what is true while one call runs, and nothing afterwards."""

import asyncio
import contextlib
import gc
import weakref

import pytest

from synmod.leaves.aio import sleep, task_group
from synmod.scope import FRAME, current_call, current_scope
from tests.scope.part import Part


def test_a_frame_tells_its_place(any_loop):
    """Id, parent, root, path, name, phase, training and depth of a call below a call."""

    async def leaf(_):
        frame = current_call()
        assert frame.name == "leaf"
        assert frame.path == "leaf"
        assert frame.depth == 1
        assert frame.parent.name == "top"
        assert frame.parent_id == frame.parent.id == frame.root.id
        assert frame.parent.parent_id is None
        assert frame.phase == "inference"
        assert frame.training is False
        assert frame.symbolic is False
        assert frame.id != frame.parent_id
        assert frame.id.startswith(frame.run.id)
        assert "leaf" in repr(frame)
        return frame.id

    async def top(_):
        assert current_call().depth == 0
        assert current_call().path == ""
        return [await Part("leaf", leaf)(), await Part("leaf", leaf)()]

    ids = any_loop(Part("top", top))
    assert len(set(ids)) == 2
    assert current_call() is None


def test_paths_come_from_the_table_of_the_entry_module(any_loop):
    """A part that the table knows shows its path; another one its caller's and its name."""
    seen = []

    async def note(_):
        seen.append(current_call().path)

    known, unknown = Part("known", note), Part("unknown", note)

    async def middle(_):
        await known()
        await unknown()

    inner = Part("inner", middle, known=known)

    async def top(_):
        await inner()

    async def main():
        await Part("top", top, layer=inner)()

    any_loop(main)
    assert seen == ["layer/known", "layer/unknown"]


@pytest.mark.parametrize("field", ["id", "parent", "root", "path", "name", "phase", "training", "depth", "symbolic"])
def test_a_frame_is_frozen(any_loop, field):
    """Nobody changes what a call is."""

    async def body(_):
        with pytest.raises(AttributeError):
            setattr(current_call(), field, None)

    any_loop(Part("p", body))


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_every_exit_restores_what_was(error):
    """Return and error leave the caller's frame as it was."""

    async def body(_):
        if error is not None:
            raise error

    async def top(_):
        mine = current_call()
        with pytest.raises(error) if error is not None else contextlib.nullcontext():
            await Part("child", body)()
        assert current_call() is mine

    coroutine = Part("top", top)()
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert FRAME.get() is None


async def test_siblings_and_callers_never_see_a_frame():
    """A hundred concurrent calls each see their own, and the caller none."""

    async def body(x):
        mine = current_call()
        await asyncio.sleep(0)
        assert current_call() is mine
        return mine.id

    ids = await asyncio.gather(*(Part(f"p{n}", body)(n) for n in range(100)))
    assert len(set(ids)) == 100
    assert current_call() is None


def test_child_tasks_inherit_the_frame(any_loop):
    """What a call starts belongs to it."""
    depths = []

    async def leaf(_):
        depths.append((current_call().depth, current_call().parent.name))

    async def top(_):
        async with task_group() as group:
            for _ in range(3):
                group.start_soon(Part("leaf", leaf))

    any_loop(Part("top", top))
    assert depths == [(1, "top")] * 3


async def test_work_that_outlives_its_call_attaches_to_the_nearest_live_frame():
    """The ended call is passed over; when none is left the call is an entry call, counted as such."""
    seen, tasks, go = [], [], asyncio.Event()
    late = Part("late")

    async def note(_):
        frame = current_call()
        seen.append((frame.depth, None if frame.parent is None else frame.parent.name))

    late.body = note

    async def worker(times):
        for _ in range(times):
            await go.wait()
            go.clear()
            await late()

    async def inner(_):
        tasks.append(asyncio.create_task(worker(2)))

    async def outer(_):
        await Part("inner", inner)()
        go.set()
        await asyncio.sleep(0.01)

    await Part("outer", outer)()
    go.set()
    await tasks[0]
    assert seen == [(1, "outer"), (0, None)]
    assert late.counters.invocations == 1
    assert late.counters.nested == 1


async def test_a_frame_keeps_no_finished_child_alive():
    """A long call does not collect what it called."""

    class Weighty(Part):
        pass

    async def top(_):
        child = Weighty("child", None)
        await child()
        gone = weakref.ref(child)
        del child
        gc.collect()
        assert gone() is None

    await Part("top", top)()


async def test_a_frame_whose_coroutine_is_closed_elsewhere_raises_nothing():
    """A call that the collector closes in another context restores nothing there."""
    import contextvars

    async def body(_):
        await asyncio.sleep(60)

    part = Part("p", body)
    coroutine = part()
    contextvars.copy_context().run(coroutine.send, None)
    contextvars.copy_context().run(coroutine.close)
    assert FRAME.get() is None
    assert part.counters.cancelled == 1
    assert part.counters.invocations == 0


async def test_ids_are_unique_among_many_concurrent_calls():
    """A thousand calls, nested and not, never share an id."""
    ids = []

    async def leaf(_):
        ids.append(current_call().id)
        await sleep(0)

    async def top(_):
        ids.append(current_call().id)
        await asyncio.gather(*(Part("leaf", leaf)() for _ in range(9)))

    await asyncio.gather(*(Part("top", top)() for _ in range(100)))
    assert len(set(ids)) == len(ids) == 1000


def test_the_scope_is_that_of_the_callers(any_loop):
    """A shared part is shown under the one that calls it; outside of calls there is no scope."""
    seen = []

    async def note(_):
        seen.append(current_scope())

    shared = Part("shared", note)
    first, second = Part("first", lambda _: shared()), Part("second", lambda _: shared())

    async def body(_):
        await first()
        await second()
        seen.append(current_scope())

    any_loop(Part("top", body))
    assert seen == ["top/first/shared", "top/second/shared", "top"]
    assert current_scope() == ""

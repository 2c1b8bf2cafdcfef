"""Calls are transactions on the lane: commit before the end of the call, rollback on any exception."""

import asyncio

import pytest

import synmod as sm
from synmod.skip import SkipError, current_skip_frame, pop, skippable, stash
from tests.skip.parts import QUERY, Cite, Dropped, Query, Retrieve, Tell, calling, popper, stasher


async def test_each_entry_call_has_its_own_frame():
    """A thousand at once: every consumer gets the value of its own producer."""
    program = sm.Sequential([Retrieve(), Tell(waits=3), Cite()])
    outs = await asyncio.gather(*(program(Query(question=str(number))) for number in range(1000)))
    assert [out["cited_question"] for out in outs] == [str(number) for number in range(1000)]


async def test_a_hook_sees_what_was_committed():
    """One entry after the producer, none after the consumer, and none at the end of the entry call."""
    hook = Dropped()
    with sm.hooks(hook):
        await sm.Sequential([Retrieve(), Tell(), Cite()])(QUERY)
    assert hook.seen == [("0", 1), ("1", 1), ("2", 0), ("", 0)]
    assert hook.events == []
    assert current_skip_frame() is None


async def test_leftovers_are_dropped_with_one_event():
    """A lone producer succeeds; the event has names, namespaces and producer paths."""
    hook = Dropped()
    with sm.hooks(hook):
        await Retrieve()(QUERY)
        assert hook.seen == [("", 1)]

        async def both(self, inputs):
            await self.a(inputs)
            return await self.b(inputs)

        program = calling(both)
        program.a, program.b = stasher("y"), stasher("x")
        await program(QUERY)
    assert len(hook.events) == 2
    event = hook.events[1]
    assert (event.names, event.namespaces, event.producer_paths) == (("x", "y"), (None, None), ("b", "a"))
    assert event.path == "" and event.name == program.name


async def test_leftovers_are_told_to_hooks_of_the_entry_module():
    """A failed entry call drops silently."""
    hook = Dropped()
    module = Retrieve(hooks=[hook])
    await module(QUERY)
    assert len(hook.events) == 1

    async def fails(self, inputs):
        await self.a(inputs)
        raise ValueError

    program = calling(fails)
    program.a = Retrieve()
    program.add_hook(hook)
    with pytest.raises(ValueError):
        await program(QUERY)
    assert len(hook.events) == 1


class Flaky(sm.Module):
    """Fails the first times, after its child has run."""

    def __init__(self, child, failures=1):
        super().__init__()
        self.child = child
        self.left = failures

    async def call(self, inputs):
        out = await self.child(inputs)
        if self.left:
            self.left -= 1
            raise ValueError("flaky")
        return out


class Again(sm.Module):
    """Calls its child until it succeeds."""

    def __init__(self, child):
        super().__init__()
        self.child = child

    async def call(self, inputs):
        while True:
            seen = sorted(current_skip_frame().keys())
            try:
                return await self.child(inputs)
            except ValueError:
                assert sorted(current_skip_frame().keys()) == seen


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("nested", [False, True])
async def test_what_is_tried_again_finds_the_lane_as_it_was(part, nested):
    """Retries of producers, of consumers, and of containers around them just work."""
    parts = [Retrieve(), Cite()]
    flaky = Flaky(parts[part], 2)
    parts[part] = Again(sm.Sequential([flaky]) if nested else flaky)
    out = await sm.Sequential([parts[0], Tell(), parts[1]])(QUERY)
    assert out["cited_question"] == "why"


async def test_a_container_is_one_transaction():
    """A failing container takes back what its children committed; a sibling's commits stay."""

    async def call(self, inputs):
        await self.sibling(inputs)
        with pytest.raises(ValueError):
            await self.pair(inputs)
        assert list(current_skip_frame().keys()) == [(None, "kept")]
        return inputs

    async def bad(self, inputs):
        raise ValueError

    program = calling(call)
    program.sibling = stasher("kept")
    program.pair = sm.Sequential([popper("kept"), Retrieve(), calling(bad)])
    with pytest.raises(sm.SkipVerifyError):
        await sm.Sequential([popper("kept")])(QUERY)
    await program(QUERY)


async def test_a_fallback_pops_the_same_value():
    """The second of two consumers gets what the first, which failed, had popped."""

    async def fails(self, inputs):
        pop("doc")
        raise ValueError

    async def call(self, inputs):
        await self.retrieve(inputs)
        try:
            return await self.first(inputs)
        except ValueError:
            return await self.second(inputs)

    program = calling(call)
    program.retrieve, program.first, program.second = Retrieve(), calling(fails, pop=["doc"]), Cite()
    assert (await program(QUERY))["cited_question"] == "why"


async def test_an_output_that_is_refused_rolls_back():
    """The call fails after its body; nothing of it stays."""

    @skippable(stash=["doc"])
    class Wrong(sm.Module):
        output_spec = Query

        async def call(self, inputs):
            stash("doc", inputs)
            return {"no": 1}

    async def call(self, inputs):
        with pytest.raises(sm.SchemaError):
            await self.wrong(inputs)
        assert len(current_skip_frame()) == 0
        return inputs

    program = calling(call)
    program.wrong = Wrong()
    await program(QUERY)


async def test_cancelled_at_every_await():
    """Whatever the place, the frame of the caller is as it was."""

    async def steps(self, inputs):
        await asyncio.sleep(0)
        stash("out", 1)
        await asyncio.sleep(0)
        pop("doc")
        await asyncio.sleep(0)
        return inputs

    async def call(self, inputs, *, after):
        await self.retrieve(inputs)
        before = list(current_skip_frame().keys())
        task = asyncio.create_task(self.body(inputs))
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
            return inputs
        except asyncio.CancelledError:
            assert list(current_skip_frame().keys()) == before
        await self.body(inputs)
        assert list(current_skip_frame().keys()) == [(None, "out")]
        return inputs

    for body in (calling(steps, stash=["out"], pop=["doc"]), None):
        program = calling(call)
        program.retrieve = Retrieve()
        program.body = body or sm.Sequential([calling(steps, stash=["out"], pop=["doc"])])
        for after in range(8):
            await program(QUERY, after=after)


async def test_a_child_sees_the_layers_of_its_callers():
    """What a module stashes in its body may be popped by a module that it calls."""

    async def call(self, inputs):
        stash("doc", inputs)
        return await self.cite(inputs)

    program = calling(call, stash=["doc"])
    program.cite = Cite()
    hook = Dropped()
    with sm.hooks(hook):
        assert (await program(QUERY))["cited_question"] == "why"
    assert hook.events == []


async def test_a_reserved_slot_goes_to_one_consumer():
    """Of two consumers at the same time the second fails at entry, naming the first."""

    async def slow(self, inputs):
        await asyncio.sleep(0)
        pop("doc")
        return inputs

    async def call(self, inputs):
        await self.retrieve(inputs)
        done = await asyncio.gather(self.a(inputs), self.b(inputs), return_exceptions=True)
        assert isinstance(done[0], sm.JsonDataModel)
        assert "'b': 'doc' has not been stashed" in str(done[1]) and "'a'" in str(done[1])
        return inputs

    program = calling(call)
    program.retrieve, program.a, program.b = Retrieve(), calling(slow, pop=["doc"]), calling(slow, pop=["doc"])
    await program(QUERY)


async def test_two_producers_at_the_same_time():
    """The second commit of one name is an error that names the first."""

    async def slow(self, inputs):
        stash("doc", inputs)
        await asyncio.sleep(0)
        return inputs

    async def call(self, inputs):
        done = await asyncio.gather(self.a(inputs), self.b(inputs), return_exceptions=True)
        assert isinstance(done[1], SkipError) and "'doc' has already been stashed by 'a'" in str(done[1])
        assert len(current_skip_frame()) == 1
        return inputs

    program = calling(call)
    program.a, program.b = calling(slow, stash=["doc"]), calling(slow, stash=["doc"])
    await program(QUERY)


async def test_nothing_outlives_its_consumer():
    """A popped value is freed when its consumer has committed."""
    import gc
    import weakref

    class Big:
        pass

    refs = []

    async def produce(self, inputs):
        big = Big()
        refs.append(weakref.ref(big))
        stash("doc", big)
        return inputs

    async def consume(self, inputs):
        pop("doc")
        return inputs

    async def check(self, inputs):
        assert refs[-1]() is None
        return inputs

    gc.disable()
    try:
        produce, consume = calling(produce, stash=["doc"]), calling(consume, pop=["doc"])
        await sm.Sequential([produce, consume, calling(check)])(QUERY)
    finally:
        gc.enable()


def test_a_skip_program_is_freed_by_counting():
    """No circle holds a program that has run."""
    import gc
    import weakref

    program = sm.Sequential([Retrieve(), Cite()])
    sm.run(program, QUERY)
    ref = weakref.ref(program.members[0])
    gc.collect()
    gc.disable()
    try:
        del program
        assert ref() is None
    finally:
        gc.enable()


def test_it_runs_on_every_loop(any_loop):
    """asyncio, uvloop and trio."""
    program = sm.Sequential([Retrieve(), Cite()])
    assert any_loop(program, QUERY)["cited_question"] == "why"

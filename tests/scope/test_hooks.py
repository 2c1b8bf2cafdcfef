"""Hooks: who is told, in which order, and that no hook can break a call."""

import asyncio
import contextvars
import dataclasses
import logging
from types import SimpleNamespace

import pytest

import synmod as sm
from synmod.errors import ArgumentError, ConfigError
from synmod.leaves.aio import Signal, backend, deadline_scope, drive, is_cancellation, sleep, task_group
from synmod.scope import (
    Hook,
    LMBegin,
    LMEnd,
    Usage,
    ambient,
    current_call,
    current_phase,
    hooks,
    hooks_inside,
    notify,
    notify_assign,
    phase,
    place_of,
)
from tests.scope.part import Part


class Query(sm.DataModel):
    question: str


class Notes(Hook):
    """Notes what it is told, plainly."""

    def __init__(self, name, notes):
        self.name = name
        self.notes = notes

    def on_call_begin(self, event):
        self.notes.append((self.name, "begin", event.name))

    def on_call_end(self, event):
        self.notes.append((self.name, "end", event.name))


async def forever(_):
    await sleep(60)


# -- which and in which order ----------------------------------------------------------------------------------------


def test_begin_goes_inwards_and_end_outwards(any_loop):
    """Scopes from the outermost in, then the module's own; the end the other way round."""
    notes = []

    async def main():
        part = Part("p", hooks=[Notes("own 1", notes), Notes("own 2", notes)])
        with hooks(Notes("outer", notes)), hooks(Notes("inner 1", notes), Notes("inner 2", notes)):
            await part()

    any_loop(main)
    order = ["outer", "inner 1", "inner 2", "own 1", "own 2"]
    assert notes == [(name, "begin", "p") for name in order] + [(name, "end", "p") for name in reversed(order)]


def test_a_hook_found_twice_runs_once(any_loop):
    """In two scopes, twice in one, and on the module: it is one hook."""
    notes = []
    hook = Notes("h", notes)

    async def main():
        with hooks(hook, hook), hooks(Notes("other", notes), hook):
            await Part("p", hooks=[hook])()

    any_loop(main)
    assert [note[0] for note in notes] == ["h", "other", "other", "h"]


def test_hooks_are_told_apart_by_identity(any_loop):
    """Two hooks that compare equal are two hooks."""
    notes = []

    @dataclasses.dataclass(frozen=True)
    class Equal(Hook):
        name: str = "same"

        def on_call_begin(self, event):
            notes.append(event.name)

    async def main():
        with hooks(Equal(), Equal()):
            await Part("p")()

    any_loop(main)
    assert notes == ["p", "p"]


def test_a_scope_sees_every_call_inside_and_none_outside(any_loop):
    """Whenever parts were made; and a part's own hooks see its calls alone."""
    seen, own = [], []

    async def main():
        child = Part("child", hooks=[Notes("own", own)])
        top = Part("top", lambda _: child())
        with hooks(Notes("scope", seen)):
            await top()
        await child()

    any_loop(main)
    assert [note[1:] for note in seen] == [("begin", "top"), ("begin", "child"), ("end", "child"), ("end", "top")]
    assert [note[1:] for note in own] == [("begin", "child"), ("end", "child")] * 2


def test_a_mixin_may_bring_the_methods(any_loop):
    """What a class overrides is found through its whole ancestry."""
    names = []

    class Mixin:
        def on_call_begin(self, event):
            names.append(event.name)

    class Mixed(Mixin, Hook): ...

    any_loop(Part("p", hooks=[Mixed()]))
    assert names == ["p"]


def test_a_method_may_be_set_on_the_hook_itself(any_loop):
    """What listens is looked up when something happens."""
    events = []
    hook = Hook()
    hook.on_call_begin = events.append
    any_loop(Part("p", hooks=[hook]))
    assert [event.name for event in events] == ["p"]


# -- what may be added -----------------------------------------------------------------------------------------------


class AsyncCall:
    """A callable object that has to be awaited."""

    async def __call__(self, event): ...


async def coroutine_function(self, event): ...


@pytest.mark.parametrize("method", ["on_call_begin", "on_lm_end", "on_variable_assign", "on_skip_dropped"])
@pytest.mark.parametrize("told", [coroutine_function, AsyncCall()], ids=["function", "object"])
def test_async_methods_are_refused_when_the_hook_is_added(method, told):
    """Hooks are plain functions; the message says what to do instead, for blocks and for modules."""
    hook = type("Late", (Hook,), {method: told})()
    for add in (hooks, lambda hook: sm.Identity(hooks=[hook]), sm.Identity().add_hook):
        with pytest.raises(ArgumentError, match=rf"(?s){method} is async.*def {method}.*queue"):
            add(hook)


@pytest.mark.parametrize("wrong", [Hook, print, None, "logger"])
def test_what_is_no_hook_is_refused(wrong):
    """A class, a function, a name: the remedy is in the text."""
    with pytest.raises(ArgumentError, match="hook"):
        hooks(wrong)


def test_arguments_that_nobody_takes_are_refused():
    """A setting that is passed to a class without `__init__` must not vanish."""
    with pytest.raises(TypeError, match="Raises"):
        Raises(level=3)


def test_no_hook_is_refused():
    """A block without a hook says nothing."""
    with pytest.raises(ArgumentError):
        hooks()


# -- what they are told ----------------------------------------------------------------------------------------------


def test_records_carry_place_values_and_outcome(any_loop):
    """Fields of begin and end, and that they are frozen."""
    told = []

    class All(Hook):
        def on_call_begin(self, event):
            told.append(event)

        def on_call_end(self, event):
            told.append(event)

    class Leaf(sm.Module):
        async def call(self, inputs: Query, *, loud=False) -> Query:
            raise ValueError(loud)

    class Top(sm.Module):
        def __init__(self):
            super().__init__()
            self.leaf = Leaf()

        async def call(self, inputs: Query) -> Query:
            with pytest.raises(ValueError):
                await self.leaf(inputs, loud=True)
            return inputs

    async def main():
        with hooks(All()), phase("reward"):
            await Top()(Query(question="Why?"))

    any_loop(main)
    begin_top, begin_leaf, end_leaf, end_top = told
    assert begin_top.parent_call_id is None
    assert begin_leaf.parent_call_id == begin_top.call_id == end_top.call_id
    assert (begin_leaf.path, begin_leaf.name, begin_leaf.phase, begin_leaf.training) == (
        "leaf",
        "leaf",
        "reward",
        False,
    )
    assert [x.get_json() for x in begin_leaf.inputs] == [{"question": "Why?"}]
    assert dict(begin_leaf.kwargs) == {"loud": True}
    assert isinstance(end_leaf.exception, ValueError)
    assert end_leaf.outputs is None
    assert (end_top.outputs["question"], end_top.exception) == ("Why?", None)
    assert end_top.elapsed_s >= end_leaf.elapsed_s >= 0
    assert end_top.usage == Usage()
    assert end_top.rewards == ()
    assert end_leaf.usage is None
    for event in told:
        with pytest.raises(AttributeError):
            event.path = "other"


def test_a_cancellation_is_the_exception_of_the_end(any_loop):
    """Each begin has exactly one end, also when the call is cancelled."""
    ends = []

    class Ends(Hook):
        def on_call_end(self, event):
            ends.append(event.exception)

    async def main():
        with hooks(Ends()), deadline_scope(0.01):
            await Part("p", forever)()

    any_loop(main)
    assert len(ends) == 1
    assert is_cancellation(ends[0])


async def test_the_closing_of_a_coroutine_is_the_exception_of_the_end():
    """A coroutine that is closed ends its call like any other."""
    told = []

    class Plain(Hook):
        def on_call_end(self, event):
            told.append(type(event.exception))

    async def suspends(_):
        await asyncio.sleep(60)

    with hooks(Plain(), Plain()):
        coroutine = Part("p", suspends)()
        coroutine.send(None)
        coroutine.close()
    assert told == [GeneratorExit, GeneratorExit]


def test_build_events_go_through_the_same_rules(any_loop):
    """Begin inwards, end outwards."""
    notes = []

    class Builds(Hook):
        def __init__(self, name):
            self.name = name

        def on_build_begin(self, event):
            notes.append((self.name, "begin", event.inputs))

        def on_build_end(self, event):
            notes.append((self.name, "end", event.exception))

    class Built(sm.Module):
        async def build(self, inputs): ...

        async def call(self, inputs: Query) -> Query:
            return inputs

    async def main():
        with hooks(Builds(1), Builds(2)):
            await Built()(Query(question="Why?"))

    any_loop(main)
    schema = Query.get_schema()
    assert [(name, kind) for name, kind, _ in notes] == [(1, "begin"), (2, "begin"), (2, "end"), (1, "end")]
    assert [inputs[0].get_schema() for _, kind, inputs in notes if kind == "begin"] == [schema, schema]
    assert [exception for _, kind, exception in notes if kind == "end"] == [None, None]


def test_model_events_reach_the_hooks_of_every_part_above(any_loop):
    """A part's own hooks see the model calls inside its calls, to any depth; scopes come first, then outermost in."""
    seen = []

    class Models(Hook):
        def __init__(self, name):
            self.name = name

        def on_lm_begin(self, event):
            seen.append((self.name, "begin", event.path, event.model))

        def on_lm_end(self, event):
            seen.append((self.name, "end", event.path, event.cached))

    async def leaf(_):
        frame = current_call()
        listeners = hooks_inside(ambient(), frame)
        request = SimpleNamespace(model="a/b")
        place = place_of(frame, "inference")
        notify(listeners, LMBegin(*place, request, request.model))
        notify(listeners, LMEnd(*place, request, request.model, "reply", None, 1, Usage(calls=1), 0.1))

    shared = Models("shared")
    top = Part("top", lambda _: Part("leaf", leaf, hooks=[shared, Models("leaf")])(), hooks=[Models("top"), shared])

    async def main():
        with hooks(Models("scope")):
            await top()
        assert hooks_inside(ambient(), None) == ()

    any_loop(main)
    order = ["scope", "top", "shared", "leaf"]
    assert seen == [(name, "begin", "leaf", "a/b") for name in order] + [
        (name, "end", "leaf", False) for name in reversed(order)
    ]


def test_an_assignment_is_told_with_both_values(any_loop):
    """Inside a call with the path of the call, outside with none."""
    told = []

    class Assigns(Hook):
        def on_variable_assign(self, event):
            told.append((event.path, event.variable, event.old, event.new, event.version))

    class Child(sm.Module):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.notes = sm.Variable(0, name="notes")

        async def call(self, inputs: Query) -> Query:
            self.notes.assign(self.notes.value + 1)
            return inputs

    async def main():
        child = Child(hooks=[Assigns()])
        top = sm.Sequential([child])
        with hooks(Assigns()):
            child.notes.assign(1)
        await top(Query(question="Why?"))
        child.notes.assign(3)
        await child(Query(question="Why?"))

    any_loop(main)
    assert told == [("", "notes", 0, 1, 1), ("0", "0/notes", 1, 2, 2), ("", "notes", 3, 4, 4)]


# -- isolation -------------------------------------------------------------------------------------------------------


class Raises(Hook):
    """Fails whenever it is told."""

    def on_call_begin(self, event):
        raise RuntimeError("begin")

    def on_call_end(self, event):
        raise RuntimeError("end")

    def on_variable_assign(self, event):
        raise RuntimeError("assign")


def test_a_failing_hook_changes_nothing(any_loop, caplog):
    """Result, original exception and the other hooks stay; the log has it once as an error."""
    caplog.set_level(logging.DEBUG, "synmod.hooks")
    notes = []

    async def fails(_):
        raise KeyError("mine")

    async def returns(x):
        return x

    async def main():
        with hooks(Raises(), Notes("n", notes)):
            assert await Part("p", returns)(5) == 5
            with pytest.raises(KeyError, match="mine") as caught:
                await Part("q", fails)()
            assert caught.value.__context__ is None
            notify_assign(object(), "v", 1, 2, 3)

    any_loop(main)
    assert [note[1:] for note in notes] == [("begin", "p"), ("end", "p"), ("begin", "q"), ("end", "q")]
    levels = [record.levelno for record in caplog.records if record.name == "synmod.hooks"]
    assert sorted(levels) == [logging.DEBUG] * 2 + [logging.ERROR] * 3
    assert all(record.exc_info for record in caplog.records if record.name == "synmod.hooks")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("method", ["on_call_begin", "on_call_end"])
def test_interruptions_pass(interruption, method):
    """KeyboardInterrupt and SystemExit pass when all hooks were called: each begin still has exactly one end."""
    notes = []

    def told(self, event):
        raise interruption

    hook = type("Interrupts", (Hook,), {method: told})()
    with hooks(Notes("outer", notes), hook, Notes("inner", notes)), pytest.raises(interruption):
        drive(Part("p")())
    assert [note[0] for note in notes if note[1] == "begin"] == ["outer", "inner"]
    assert [note[0] for note in notes if note[1] == "end"] == ["inner", "outer"]


# -- what hooks do themselves ----------------------------------------------------------------------------------------


async def test_what_a_hook_does_is_not_shown_to_hooks():
    """Neither its calls, also those of tasks that it starts, nor its assignments; nothing calls itself for ever."""
    notes, tasks = [], []
    helper = Part("helper")

    class Helps(Notes):
        def on_call_begin(self, event):
            super().on_call_begin(event)
            drive(helper())
            tasks.append(asyncio.create_task(helper()))
            notify_assign(object(), "v", 1, 2, 3)

        def on_variable_assign(self, event):
            self.notes.append((self.name, "assign", event.variable))

    helps = Helps("helps", notes)
    helper.hooks = (helps,)
    with hooks(Notes("other", notes), helps):
        await Part("p")()
        await asyncio.gather(*tasks)
    assert [note[1:] for note in notes] == [("begin", "p")] * 2 + [("end", "p")] * 2
    assert helper.counters.nested + helper.counters.invocations == 2


def test_blocks_are_as_they_were_after_a_hook(any_loop):
    """A block that a hook opens and leaves holds inside the hook alone."""

    class Sets(Hook):
        def on_call_begin(self, event):
            with phase("optimizer"):
                assert current_phase() == "optimizer"

    async def body(_):
        return current_call().phase

    async def main():
        before = ambient()
        with hooks(Sets()):
            assert await Part("p", body)() == "inference"
            assert current_call() is None
        assert ambient() is before

    any_loop(main)


# -- stress ----------------------------------------------------------------------------------------------------------


def test_a_thousand_calls_with_mixed_ends_each_end_once(any_loop):
    """Returns, failures and cancellations beside raising hooks: one begin, one end, exact counters, nothing left."""
    begun, ended = {}, {}

    class Counts(Hook):
        def on_call_begin(self, event):
            begun[event.call_id] = begun.get(event.call_id, 0) + 1

        def on_call_end(self, event):
            ended[event.call_id] = ended.get(event.call_id, 0) + 1

    waits = {x: Signal() for x in range(1000) if x % 5 and x % 7 == 0}

    async def leaf(x):
        await sleep(0.001 * (x % 3))
        if x % 5 == 0:
            raise ValueError(x)
        if x in waits:
            waits[x].set()
            await sleep(600)
        return x

    part = Part("leaf", leaf)
    top = Part("top", part)

    async def one(x):
        try:
            assert await top(x) == x
        except ValueError:
            assert x % 5 == 0
        assert current_call() is None

    async def cancelled_one(x):
        async with task_group() as group:
            group.start_soon(top, x)
            await waits[x].wait()
            group.cancel()

    async def main():
        with hooks(Raises(), Counts()):
            async with task_group() as group:
                for x in range(1000):
                    group.start_soon(cancelled_one if x in waits else one, x)
        if backend() == "asyncio":
            assert not asyncio.current_task().cancelling()

    logging.getLogger("synmod.hooks").addHandler(logging.NullHandler())
    any_loop(main)
    failed, cancelled = 200, len(waits)
    assert begun == ended
    assert len(begun) == 2000
    assert set(begun.values()) == {1}
    assert (top.counters.failed, top.counters.cancelled) == (failed, cancelled)
    assert top.counters.invocations == 1000 - cancelled
    assert part.counters.nested == 1000 - cancelled


def test_a_hook_in_a_foreign_context_raises_nothing():
    """A coroutine that is closed in another context than it was started in ends quietly."""
    notes = []

    async def suspends(_):
        await asyncio.sleep(60)

    async def main():
        with hooks(Notes("n", notes)):
            coroutine = Part("p", suspends)()
            contextvars.copy_context().run(coroutine.send, None)
            contextvars.copy_context().run(coroutine.close)

    asyncio.run(main())
    assert [note[1] for note in notes] == ["begin", "end"]


def test_a_misspelt_method_is_refused():
    """It would never be called; what a mixin calls itself is its own."""
    with pytest.raises(ConfigError, match=r"class Wrong: no event calls 'on_lm_finish'. .*on_lm_begin, on_"):
        type("Wrong", (Hook,), {"on_lm_finish": lambda self, event: None})
    with pytest.raises(ConfigError, match="'on_call_ends'. Did you mean 'on_call_end'?"):
        type("Wrong", (Hook,), {"on_call_ends": lambda self, event: None})

    class Mixin:
        def on_epoch_end(self, moment): ...

    class Both(Mixin, Hook):
        def on_epoch_end(self, moment): ...

    assert issubclass(Both, Hook)


def test_an_event_shows_path_and_label():
    """In one text: the label where it is another word than the last step of the path."""
    event = sm.scope.CallBegin("1-1", "1-0", "routes/fast/0", "answer", "inference", False, (), {})
    assert event.place == "routes/fast/0 (answer)"
    assert dataclasses.replace(event, path="routes/answer").place == "routes/answer"
    assert dataclasses.replace(event, path="").place == "answer"

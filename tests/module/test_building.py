"""Building: once for all callers, all or nothing, never in a circle."""

import asyncio
import dataclasses
import threading
from collections import OrderedDict, deque

import pytest

from synmod.data import DataModel, SymbolicDataModel, declare, symbol
from synmod.errors import BuildError, ConfigError, SchemaError, SealedError
from synmod.leaves import aio
from synmod.module import Module, build
from synmod.scope import FRAME, Hook
from tests.module.models import Answer, Built, Echo, Notes, Query

q = Query(question="x")


async def test_build_receives_symbols_and_runs_once():
    """Symbols, never values, stand in place of the data; a second call does not build."""
    module = Built()
    await module(q)
    await module(q)
    assert len(module.builds) == 1
    assert isinstance(module.builds[0], SymbolicDataModel)
    assert module.notes.value == {"fields": ["question"]}
    assert module.built


def test_a_thousand_first_calls_build_once(any_loop):
    """One build, one set of Variables, a thousand right answers."""

    class Slow(Built):
        async def build(self, inputs):
            await super().build(inputs)
            await aio.checkpoint()
            await aio.sleep(0.001)

    module = Slow()
    got = []

    async def one(index):
        got.append((index, (await module(Query(question=str(index))))["question"]))

    async def main():
        async with aio.task_group() as group:
            for index in range(1000):
                group.start_soon(one, index)

    any_loop(main)
    assert len(module.builds) == 1
    assert len(module.variables) == 1
    assert sorted(got) == sorted((index, str(index)) for index in range(1000))
    assert module.counters.invocations == 1000


def test_callers_of_other_threads_and_loops_wait_for_the_one_build():
    """A waiter may live in another thread and another event loop."""

    class Slow(Built):
        async def build(self, inputs):
            await super().build(inputs)
            started.set()
            await aio.sleep(0.05)

    module, started, done = Slow(), threading.Event(), []

    def late():
        started.wait(5)
        done.append(asyncio.run(module(q)))

    threads = [threading.Thread(target=late) for _ in range(4)]
    for thread in threads:
        thread.start()
    asyncio.run(module(q))
    for thread in threads:
        thread.join(5)
    assert len(done) == 4
    assert len(module.builds) == 1


async def test_a_failed_build_leaves_nothing_and_the_next_one_works():
    """Attributes, containers, Variables and their values are as they were."""

    class Fragile(Module):
        def __init__(self):
            self.table = {"a": [1]}
            self.child = Echo()
            self.kept = self.add_variable("old", name="kept")

        async def build(self, inputs):
            self.extra = self.add_variable("x", name="extra")
            self.table["a"].append(2)
            self.table["b"] = 3
            self.kept.assign("new")
            self.child.mark = True
            self.second = Echo()
            if "question" not in inputs:
                raise ValueError("no question")

        async def call(self, inputs):
            return inputs

    module = Fragile()
    before = dict(module.__dict__)
    with pytest.raises(ValueError, match="no question"):
        await module(Answer(answer="x"))
    assert module.__dict__ == before
    assert module.table == {"a": [1]}
    assert module.kept.value == "old"
    assert module.kept.version == 0
    assert not hasattr(module.child, "mark")
    assert not module.built
    await module(q)
    assert [v.name for v in module.variables] == ["kept", "extra"]
    assert module.kept.value == "new"


async def test_a_waiter_looks_again_when_the_build_has_failed():
    """Each builds from its own inputs, and gets its own error with the note of its own call."""
    gate = asyncio.Event()
    runs = []

    class Picky(Module):
        async def build(self, inputs):
            runs.append(inputs.keys())
            await gate.wait()
            if "question" in inputs:
                raise ValueError("bad")

        async def call(self, inputs):
            return inputs

    module = Picky()
    tasks = [asyncio.create_task(module(q)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(module(Answer(answer="y"))))
    await asyncio.sleep(0)
    assert runs == [("question",)]
    gate.set()
    *failed, answered = await asyncio.gather(*tasks, return_exceptions=True)
    assert answered["answer"] == "y"
    assert module.built
    assert runs[-1] == ("answer",)
    for error in failed:
        assert isinstance(error, ValueError | SchemaError)
        assert len(error.__notes__) == 1
    assert len({id(error) for error in failed}) == 3


async def test_a_cancelled_builder_hands_over():
    """Everything is undone, and a waiter builds from its own inputs."""
    gate = asyncio.Event()
    turns = []

    class Slow(Module):
        async def build(self, inputs):
            turns.append(tuple(inputs.keys()))
            self.made = self.add_variable(len(turns), name="made")
            await gate.wait()

        async def call(self, inputs):
            return inputs

    module = Slow()
    first = asyncio.create_task(module(q))
    await asyncio.sleep(0)
    second = asyncio.create_task(module(Answer(answer="y")))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert (await second)["answer"] == "y"
    with pytest.raises(asyncio.CancelledError):
        await first
    assert turns == [("question",), ("answer",)]
    assert module.made.value == 2
    assert len(module.variables) == 1


async def test_a_cancelled_waiter_just_leaves():
    """The builder goes on."""
    gate = asyncio.Event()

    class Slow(Built):
        async def build(self, inputs):
            await super().build(inputs)
            await gate.wait()

    module = Slow()
    builder = asyncio.create_task(module(q))
    await asyncio.sleep(0)
    waiter = asyncio.create_task(module(q))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    gate.set()
    await builder
    assert module.built


@pytest.mark.parametrize("child_fails", [False, True])
async def test_a_failed_build_leaves_alone_what_another_caller_builds(child_fails):
    """The other caller's build restores what it began with, or keeps what it made; nothing half made comes back."""

    class Part(Module):
        def __init__(self, child=None, fails=False):
            super().__init__()
            self.child, self.fails, self.steps = child, fails, ["made"]

        async def build(self, inputs):
            self.steps.append("begun")
            await aio.checkpoint()
            if self.child is not None:
                await self.child.build(inputs)
            if self.fails:
                raise RuntimeError("boom")
            self.steps.append("done")

        async def call(self, inputs):
            return inputs

    child = Part(fails=child_fails)
    parent = Part(child, fails=True)
    outcomes = await asyncio.gather(parent(q), child(q), return_exceptions=True)
    assert isinstance(outcomes[0], RuntimeError)
    assert isinstance(outcomes[1], RuntimeError) == child_fails
    assert parent.steps == ["made"]
    assert child.built != child_fails
    assert child.steps == (["made"] if child_fails else ["made", "begun", "done"])


async def test_builds_inside_a_build_belong_to_the_outermost():
    """Fail one, undo all; others who need one of them wait for its end."""
    inside, gate = asyncio.Event(), asyncio.Event()
    child = Built(name="child")

    class Parent(Module):
        def __init__(self):
            self.child = child

        async def build(self, inputs):
            await self.child.build(inputs)
            inside.set()
            await gate.wait()
            raise ValueError("late")

        async def call(self, inputs):
            return await self.child(inputs)

    parent = asyncio.create_task(Parent()(q))
    await inside.wait()
    other = asyncio.create_task(child(Answer(answer="y")))
    await asyncio.sleep(0)
    assert not other.done()
    assert not child.built
    gate.set()
    with pytest.raises(ValueError, match="late"):
        await parent
    assert (await other)["answer"] == "y"
    assert child.notes.value == {"fields": ["answer"]}


@pytest.mark.parametrize("through", ["itself", "another"])
async def test_a_build_that_waits_for_itself_is_refused(through):
    """Directly, or in a circle over other modules."""

    class Narcissus(Module):
        async def build(self, inputs):
            await self(inputs)

        async def call(self, inputs):
            return inputs

    class Partner(Module):
        other = None

        async def build(self, inputs):
            await asyncio.sleep(0)
            await self.__dict__["peer"][0](inputs)

        async def call(self, inputs):
            return inputs

    if through == "itself":
        with pytest.raises(BuildError, match="waits for itself"):
            await Narcissus()(q)
        return
    from synmod.tree import static

    a, b = Partner(name="a"), Partner(name="b")
    a.peer, b.peer = static([b]), static([a])
    results = await asyncio.gather(a(q), b(q), return_exceptions=True)
    assert any(isinstance(r, BuildError) and "waits for itself" in str(r) for r in results)


async def test_two_programs_that_share_modules_build_at_once():
    """Where two builds would wait for one another, the later one is undone, waits, and begins anew."""
    began = []

    class Slow(Module):
        async def build(self, inputs):
            began.append(self.name)
            await asyncio.sleep(0)
            self.v = self.add_variable(1, name="v")

        async def call(self, inputs: Query) -> Query:
            return inputs

    class Pair(Module):
        def __init__(self, first, second):
            super().__init__()
            self.first, self.second = first, second

        async def call(self, inputs: Query) -> Query:
            try:
                return await self.second(await self.first(inputs))
            except Exception:  # a fallback of the user's does not take the wait for an error
                return inputs

    x, y = Slow(name="x"), Slow(name="y")
    ahead, back = Pair(x, y), Pair(y, x)
    await asyncio.gather(build(ahead, Query), build(back, Query))
    assert sorted(set(began)) == ["x", "y"]
    assert [module.built for module in (x, y, ahead, back)] == [True] * 4
    assert len(x.variables) == len(y.variables) == 1
    assert (await back(q))["question"] == "x"


async def test_eager_calls_of_modules_that_build_one_another_take_turns():
    """Two builds that need one another's modules, each begun by a call with values; also below a task group."""

    class Part(Module):
        async def build(self, inputs):
            await asyncio.sleep(0)
            self.v = self.add_variable(1, name="v")

        async def call(self, inputs: Query) -> Query:
            return inputs

    class Both(Module):
        def __init__(self, *parts):
            super().__init__()
            self.parts = list(parts)

        async def build(self, inputs):
            async with asyncio.TaskGroup() as group:
                group.create_task(self.parts[0].build(inputs))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                group.create_task(self.parts[1].build(inputs))

        async def call(self, inputs: Query) -> Query:
            return inputs

    one, two = Part(name="one"), Part(name="two")
    modules = Both(one, two), Both(two, one)
    await asyncio.gather(*(module(q) for module in modules))
    assert [module.built for module in (one, two, *modules)] == [True] * 4
    assert len(one.variables) == 1


async def test_a_value_assigned_in_build_stays_however_the_build_is_reached():
    """Also where the trace of a parent reaches it, whose own writes are thrown away."""

    class Leaf(Module):
        def __init__(self):
            super().__init__()
            self.kept = self.add_variable("old", name="kept")

        async def build(self, inputs):
            self.kept.assign("new")

        async def call(self, inputs: Query) -> Query:
            self.kept.assign("of a call")
            return inputs

    class Outer(Module):
        def __init__(self):
            super().__init__()
            self.inner = Leaf()

        async def call(self, inputs):
            return await self.inner(inputs)

    outer = Outer()
    await build(outer, Query)
    assert outer.inner.kept.value == "new"
    leaf = Leaf()
    await build(leaf, Query)
    assert leaf.kept.value == "new"
    outer = Outer()
    await outer(symbol(declare(Query), Query))
    assert outer.inner.kept.value == "new"


async def test_everything_a_failed_build_touched_is_put_back():
    """Containers of every kind, labels, order, and the Variables of the modules it set something on."""

    @dataclasses.dataclass
    class Box:
        items: list

    class Fragile(Module):
        def __init__(self):
            super().__init__()
            self.first, self.gone = 1, 2
            self.deep = {"a": [deque([1]), {1}, OrderedDict(k=[Box([1])])]}
            self.child = Holder()

        async def build(self, inputs):
            del self.gone
            self.first, self.late = 5, 6
            self.deep["a"][0].append(2)
            self.deep["a"][1].clear()
            self.deep["a"][2]["k"][0].items = None
            self.name, self.trainable = "other", False
            self.child.mark = True
            raise ValueError("late")

        async def call(self, inputs):
            return inputs

    class Holder(Module):
        def __init__(self):
            super().__init__()
            self.kept = self.add_variable("old", name="kept")

        async def call(self, inputs):
            return inputs

    module = Fragile()
    order = list(vars(module))
    with pytest.raises(ValueError, match="late"):
        await module(q)
    assert list(vars(module)) == order
    assert (module.first, module.gone, module.name, module.trainable) == (1, 2, "fragile", True)
    assert module.deep == {"a": [deque([1]), {1}, OrderedDict(k=[Box([1])])]}
    assert "mark" not in vars(module.child)


async def test_a_failed_build_changes_no_variable_below():
    """Values and metadata of children's Variables, also where an inner build that succeeded wrote them."""

    class Writes(Module):
        def __init__(self, *below):
            super().__init__()
            self.below, self.text = list(below), self.add_variable("old", name="text")

        async def build(self, inputs):
            for child in self.below:
                child.text.assign(f"{child.text.value} new")
                child.text.set_metadata({"tag": "new"})
                await child.build(inputs)
                child.text.assign(f"{child.text.value} new")
            if len(self.below) == 1 and fails:
                raise ValueError("late")

        async def call(self, inputs):
            return inputs

    leaf = Writes()
    module, fails = Writes(Writes(leaf, leaf)), True
    with pytest.raises(ValueError, match="late"):
        await module(q)
    for each in (leaf, module.below[0]):
        assert (each.text.value, each.text.version, each.text.metadata) == ("old", 0, {})
    fails = False
    await module(q)
    assert leaf.text.value == "old new new new new"


async def test_sm_build_finds_wrong_wiring_below_declared_outputs():
    """`call` is followed also where outputs are annotated; where it asks for a value, the annotation counts."""

    class Wants(Module):
        async def call(self, inputs: Answer) -> Answer:
            return inputs

    class Wrong(Module):
        def __init__(self):
            super().__init__()
            self.part = Wants()

        async def call(self, inputs: Query) -> Answer:
            return await self.part(inputs)

    class Root(Module):
        def __init__(self):
            super().__init__()
            self.wrong = Wrong()

        async def call(self, inputs: Query) -> Answer:
            return await self.wrong(inputs)

    for module in (Wrong(), Root()):
        with pytest.raises(SchemaError, match="answer"):
            await build(module, Query)

    class Reads(Module):
        async def call(self, inputs: Query) -> Answer:
            return Answer(answer=inputs["question"])

    assert (await build(Reads(), Query)).keys() == ("answer",)


@pytest.mark.parametrize("first", [lambda m: m(q), lambda m: build(m, Query)], ids=["call", "sm.build"])
def test_a_first_call_grows_with_the_size_of_the_program(first, counted_work):
    """Twice as many modules in one another, about twice the work: nothing walks the program once per module."""

    class Wrap(Module):
        def __init__(self, part):
            super().__init__()
            self.part = part

        async def build(self, inputs):
            self.v = self.add_variable(1, name="v")

        async def call(self, inputs: Query) -> Query:
            return inputs if self.part is None else await self.part(inputs)

    def calls(depth):
        module = None
        for _ in range(depth):
            module = Wrap(module)
        with counted_work() as done:
            asyncio.run(first(module))
        return done[0]

    small, large = calls(30), calls(60)
    assert large < 2.6 * small


async def test_sm_build_builds_the_whole_tree():
    """Also below a declared output, and through a trace of `call`."""

    class Outer(Module):
        def __init__(self):
            self.first, self.second = Built(), Built()

        async def call(self, inputs) -> Query:
            return await self.second(await self.first(inputs))

    outer = Outer()
    symbols = await build(outer, Query)
    assert outer.first.built
    assert outer.second.built
    assert symbols.keys() == ("question",)
    assert await outer.build(Query) is not None


async def test_sm_build_lists_what_it_could_not_reach():
    """A module that defines build and is still unbuilt is named, with the remedy; and nothing is left built."""

    class Hidden(Module):
        def __init__(self):
            self.shown, self.hidden = Built(), Built()

        async def call(self, inputs) -> Query:
            await self.shown(inputs)
            if inputs["question"] == "x":
                await self.hidden(inputs)
            return inputs

    module = Hidden()
    with pytest.raises(BuildError, match=r"hidden.*await self\.hidden\.build\(Schema\)"):
        await build(module, Query)
    assert not module.shown.built


async def test_sm_build_returns_none_where_call_reads_and_nothing_is_declared():
    """Nothing is left unbuilt, so the module is built, without a schema of its output."""

    class Reads(Module):
        async def build(self, inputs):
            self.v = self.add_variable(1, name="v")

        async def call(self, inputs):
            return Answer(answer=inputs["question"])

    module = Reads()
    assert await build(module, Query) is None
    assert module.built


async def test_module_build_is_sm_build_from_outside_and_the_body_inside():
    """`super().build` runs the base's body; that of Module does nothing and may be awaited or not."""

    class Base(Module):
        def build(self, inputs):
            super().build(inputs)
            self.base = self.add_variable(1, name="base")

        async def call(self, inputs):
            return inputs

    class Derived(Base):
        async def build(self, inputs):
            super().build(inputs)
            await Module.build(self, inputs)
            self.own = self.add_variable(2, name="own")

    derived = Derived()
    await derived.build(Query)
    assert [v.name for v in derived.variables] == ["base", "own"]
    assert derived.get_build_config() == {"schemas": {"inputs": Query.get_schema()}}


async def test_build_config_round_trips():
    """`build_from_config` brings an unbuilt module to the state described."""

    class Two(Module):
        async def build(self, a, b):
            self.v = self.add_variable({"a": list(a.keys())}, name="v")

        async def call(self, a, b):
            return a

    two = Two()
    assert two.get_build_config() is None
    await two([q], {"k": None, "n": Notes()}) if False else await two(q, Notes())
    config = two.get_build_config()
    assert list(config["schemas"]) == ["a", "b"]
    again = Two()
    again.build_from_config(config)
    assert again.built
    assert again.v.value == two.v.value


@pytest.mark.parametrize(
    "wrong", [{}, {"schemas": {"inputs": 3}}, {"schemas": 3}, {"schemas": {"other": Query.get_schema()}}]
)
def test_what_is_no_build_config_is_refused(wrong):
    """A wrong key, a wrong shape, a parameter that `build` does not have."""
    built = Built()
    with pytest.raises(ConfigError, match="build config"):
        built.build_from_config(wrong)
    assert not built.built


async def test_plain_code_cannot_wait_for_a_build():
    """`build_from_config` of a build that suspends is a BuildError naming the awaiting twin, all undone."""

    class Waits(Module):
        async def build(self, inputs):
            self.v = self.add_variable(1, name="v")
            await asyncio.sleep(0)

        async def call(self, inputs):
            return inputs

    module = Waits()
    with pytest.raises(BuildError, match=r"await sm\.build"):
        module.build_from_config({"schemas": {"inputs": Query.get_schema()}})
    assert not module.built
    assert "v" not in module.__dict__
    await module(q)


async def test_inputs_are_held_to_what_was_built():
    """State depends on the schemas; a class without build is not held to its first input."""
    module, echo = Built(), Echo()
    await module(q)
    with pytest.raises(SchemaError, match="built on"):
        await module(Answer(answer="x"))

    class Longer(Query):
        more: str | None = None

    with pytest.raises(SchemaError):
        await module(Longer(question="x"))
    await echo(q)
    await echo(Answer(answer="x"))


async def test_a_value_that_fits_needs_no_equal_schema():
    """A harmless growth of the schema of a value must not fail."""
    from synmod.data import JsonDataModel

    module = Built()
    await module(q)
    loose = {"type": "object", "properties": {"question": {"type": "string"}, "extra": {"type": "string"}}}
    await module(JsonDataModel({"question": "x"}, schema=loose))
    with pytest.raises(SchemaError):
        await module(JsonDataModel({"question": "x", "extra": "y"}, schema=loose))


async def test_children_and_variables_made_in_call_are_refused_at_that_line():
    """Structure is sealed before `call` runs for the first time."""

    class Late(Module):
        how = "child"

        async def call(self, inputs):
            if self.how == "child":
                self.child = Echo()
            elif self.how == "list":
                self.children = [Echo()]
            else:
                self.v = self.add_variable(1)
            return inputs

    for how in ("child", "list", "variable"):
        late = Late()
        late.how = how
        with pytest.raises(SealedError, match=r"__init__.*build"):
            await late(q)
    late.anything = {"static": True}


async def test_build_events():
    """A build begins and ends once, with symbols, at the place of the call that builds."""
    told = []

    class Watch(Hook):
        def on_build_begin(self, event):
            told.append(("begin", event.path, event.name, event.inputs[0].keys()))

        def on_build_end(self, event):
            told.append(("end", event.path, event.exception))

    module = Built(hooks=[Watch()])
    await module(q)
    await module(q)
    assert told == [("begin", "", "built", ("question",)), ("end", "", None)]


async def test_a_parameter_that_build_cannot_get_is_named():
    """A required parameter left open is a BuildError naming it."""

    class Wants(Module):
        async def build(self, inputs, other):
            raise AssertionError

        async def call(self, inputs):
            return inputs

    with pytest.raises(BuildError, match="other"):
        await Wants()(q)


@pytest.mark.parametrize("k", range(12))
async def test_cancelled_at_the_kth_await_a_build_leaves_nothing(k):
    """For every k: no frame, no half build, and the next call builds."""

    class Steps(Module):
        async def build(self, inputs):
            for number in range(3):
                setattr(self, f"v{number}", self.add_variable(number, name=f"v{number}"))
                await asyncio.sleep(0)

        async def call(self, inputs):
            for _ in range(3):
                await asyncio.sleep(0)
            return inputs

    module = Steps()
    task = asyncio.create_task(module(q))
    for _ in range(k):
        await asyncio.sleep(0)
    task.cancel()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    if k < 4 and isinstance(result, asyncio.CancelledError):
        assert module.__dict__ == {} or module.built
    assert FRAME.get() is None
    assert (await module(q))["question"] == "x"
    assert len(module.variables) == 3


async def test_models_cannot_be_asked_while_building():
    """A language model called in a build is a BuildError."""
    from synmod.testing import ScriptedLM

    lm = ScriptedLM(["never"])

    class Asks(Module):
        async def build(self, inputs):
            await lm("hello")

        async def call(self, inputs):
            return inputs

    with pytest.raises(BuildError):
        await Asks()(q)
    assert lm.requests == []


class Empty(DataModel):
    """No fields."""


async def test_a_build_may_leave_out_arguments_it_does_not_name():
    """As many positional inputs as its signature takes, and the keyword data that it names."""
    got = {}

    class Few(Module):
        def build(self, a, *, extra=None):
            got.update(a=a, extra=extra)

        async def call(self, a, b, extra=None, other=None):
            return a

    await Few()(q, q, extra=Notes(), other=q)
    assert got["a"].keys() == ("question",)
    assert got["extra"].keys() == ("lines",)

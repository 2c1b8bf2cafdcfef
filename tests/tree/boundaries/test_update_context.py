"""Crossing a boundary: in process, through JSON, through a process; the same live objects afterwards, or nothing."""

import asyncio
import copy
import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import synmod as sm
from synmod.testing import ScriptedLM
from synmod.tree import NodeRef, Param, graphdef, split
from tests.module.models import Query
from tests.tree.crossing import Part, Whole, restructure
from tests.tree.stores import Handle, Store, programs

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def whole():
    """Built and used once."""
    model = sm.LanguageModel("embedded/nearest")
    program = Whole(model)
    await program(Query(question="q"))
    return program


def parts_of(program):
    """The live objects, to be compared by identity."""
    return {"a": program.a, "b": program.b, "pa": program.a.prompt, "pb": program.b.prompt, "old": program.old,
            "lm": program.a.language_model, "ha": program.a.handle, "hb": program.b.handle}  # fmt: skip


async def check_restructured(program, before):
    """Every change has arrived, in the objects that were there."""
    assert (program.a, program.b) == (before["b"], before["a"])
    assert (program.a.prompt, program.b.prompt) == (before["pb"], before["pa"])
    assert program.parts[0] is before["a"]
    assert program.parts[1] is program.new
    assert not hasattr(program, "old")
    assert program.tied is before["pa"]
    assert program.me is program
    assert (program.retry, program.a.trainable, program.b.memory.trainable) == (3, False, True)
    assert (program.a.prompt.value, program.a.prompt.version) == ("changed", 1)
    assert program.b.prompt.version == 0
    assert program.a.language_model is program.b.language_model is before["lm"]
    assert (program.a.handle, program.b.handle) == (before["hb"], before["ha"])
    assert program.new.prompt.value == "new"
    with pytest.raises(sm.SealedError):
        program.other = sm.Param(1)
    with pytest.raises(sm.SealedError):
        program.a.other = sm.Param(1)
    program_calls = program.cumulated_invocations
    with pytest.raises(AttributeError, match="old"):
        await program(Query(question="q"))
    program.old = None
    assert program.cumulated_invocations == program_calls + 1


async def test_four_steps_in_process(whole):
    """Objects swapped, added, removed, shared and closed to a cycle inside are so outside, and are the same."""
    before, version, hook = parts_of(whole), whole.version, sm.Hook()
    whole.a.add_hook(hook)
    with sm.update_context("worker") as ctx:
        gd, st = ctx.split(whole)
        inner = ctx.merge(gd, st)
        assert inner is not whole
        assert inner.a is not whole.a
        assert inner.built
        restructure(inner)
        assert whole.a is before["a"]
        gd2, st2 = ctx.split(inner)
        with pytest.raises(sm.SealedError):
            inner.again = sm.Param(1)  # handed back
        assert ctx.merge(gd2, st2) is whole
    assert whole.version == version + 1
    assert before["a"].hooks == (hook,)
    await check_restructured(whole, before)


def through_json(gd, st):
    """What the other side gets."""
    gd = sm.GraphDef.from_json(json.loads(json.dumps(gd.to_json())))
    return gd, sm.State.from_json(gd, json.loads(json.dumps(st.to_json())))


async def test_four_steps_through_json(whole):
    """The inside opens a context of its own; nested in the outer one it is another context of that tag."""
    before = parts_of(whole)
    with sm.update_context("worker") as ctx:
        sent = through_json(*ctx.split(whole))
        with sm.update_context("worker") as theirs:
            assert sm.current_update_context("worker") is theirs
            inner = theirs.merge(*sent)
            assert inner.a.language_model is not before["lm"]
            restructure(inner)
            back = through_json(*theirs.split(inner))
        assert ctx.merge(*back) is whole
    await check_restructured(whole, before)


async def test_four_steps_through_a_process(whole):
    """Swap, add, remove, share, cycle in a subprocess; the same live objects afterwards."""
    before = parts_of(whole)
    with sm.update_context("worker") as ctx:
        gd, st = ctx.split(whole)
        sent = json.dumps({"graphdef": gd.to_json(), "state": st.to_json()})
        command = [sys.executable, "-m", "tests.tree.crossing"]
        run = subprocess.run(
            command, input=sent, capture_output=True, text=True, encoding="utf-8", cwd=ROOT, timeout=120
        )
        assert run.returncode == 0, run.stderr
        back = json.loads(run.stdout)
        gd = sm.GraphDef.from_json(back["graphdef"])
        assert ctx.merge(gd, back["state"]) is whole
    await check_restructured(whole, before)


async def test_a_double_of_a_model_survives_the_boundary():
    """What loads unbound inside is the live object outside."""
    model = ScriptedLM([{"answer": "yes"}])
    program = Whole(model)
    with sm.update_context("worker") as ctx:
        sent = through_json(*ctx.split(program))
        with sm.update_context("worker") as theirs:
            inner = theirs.merge(*sent)
            inner.a.language_model = None
            back = through_json(*theirs.split(inner))
        ctx.merge(*back)
    assert program.a.language_model is None
    assert program.b.language_model is model


async def test_objects_outside_keep_running_calls(whole):
    """A call under way ends with what it holds, the next one sees the changes."""
    entered, go = asyncio.Event(), asyncio.Event()

    class Slow(sm.Module):
        async def call(self, inputs: Query) -> Query:
            entered.set()
            await go.wait()
            return inputs

    whole = sm.Sequential([Slow(), Part("first")])
    task = asyncio.create_task(whole(Query(question="q")))
    await entered.wait()
    with sm.update_context("worker") as ctx:
        inner = ctx.merge(*ctx.split(whole))
        inner.members[1].prompt.assign("second")
        ctx.merge(*ctx.split(inner))
    go.set()
    assert (await task)["question"] == "second q"


def test_user_nodes_cross_too():
    """Swapped entries of a store, a new label, a handle that stays."""
    handle = Handle(v=Param("h"))
    live = Store("l", x=Store(v=Param("x")), y=Store(v=Param("y")), handle=handle)
    x, y = live.x, live.y
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(live))
        assert inner.handle is handle
        inner.entries["x"], inner.entries["y"] = inner.y, inner.x
        inner.label = "new"
        assert ctx.merge(*ctx.split(inner)) is live
    assert (live.x, live.y, live.label, live.handle) == (y, x, "new", handle)


class Fragile:
    """A user's node that refuses a write when it is told to."""

    refuse_at = None
    writes = 0

    def __init__(self, **entries):
        self.entries = entries


def _set_fragile(node, key, value):
    Fragile.writes += 1
    if Fragile.writes == Fragile.refuse_at:
        raise RuntimeError("not now")
    node.entries[key] = value


sm.register_graph_node_type(
    Fragile,
    flatten=lambda x: (list(x.entries.items()), None),
    set_key=_set_fragile,
    pop_key=lambda x, key: x.entries.pop(key),
    create_empty=lambda metadata: Fragile(),
)


def test_the_last_step_is_atomic_wherever_it_fails(monkeypatch):
    """The k-th write of a node raises, for every k: everything is as it was, and the step can be tried again."""
    monkeypatch.setattr(Fragile, "refuse_at", None)
    whole = Whole()
    whole.extra = [Fragile(p=Param(1), q=Param(2)), Fragile(r=Param(3))]
    for k in range(1, 50):
        before, version = split(whole), whole.version
        with sm.update_context("t") as ctx:
            inner = ctx.merge(*ctx.split(whole))
            inner.extra[0].entries["p"], inner.extra[1].entries["r"] = inner.extra[1].entries["r"], Param(k)
            inner.retry = 100 + k
            inner.a, inner.b = inner.b, inner.a
            gd, st = ctx.split(inner)
            Fragile.writes, Fragile.refuse_at = 0, k
            try:
                ctx.merge(gd, st)
            except RuntimeError:
                assert split(whole) == before
                assert whole.version == version
                Fragile.refuse_at = None
                assert ctx.merge(gd, st) is whole
                assert whole.retry == 100 + k
            else:
                break
    assert k > 3


def test_the_last_step_checks_before_it_writes():
    """A value against its schema, a leaf that is missing, a class that differs: nothing has changed."""
    whole = Whole()
    before = split(whole)
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(whole))
        inner.retry, inner.a = 9, inner.b
        gd, st = ctx.split(inner)
        for bad, error in (
            ({**st.to_json(), "a/prompt": 3}, sm.StateSchemaError),
            (st - st.filter(sm.PathContains("memory")), sm.StateError),
        ):
            with pytest.raises(error):
                ctx.merge(gd, bad)
        changed = gd.marked(gd.mark._replace(indices={**gd.mark.indices, 0: gd.mark.indices[1]}))
        with pytest.raises(sm.GraphError, match="in the cache"):
            ctx.merge(changed, st)
        assert split(whole) == before
        assert ctx.merge(gd, st) is whole


def test_the_last_step_asks_the_classes_of_variables():
    """`on_assign` sees each new value before anything is written, under the schema that comes; it may refuse."""

    class Picky(Param):
        def on_assign(self, old, new):
            if new == "refuse":
                raise RuntimeError("never")
            return new.strip()

    live = Store(a=Param("a"), p=Picky("p"), q=Picky("q"))
    before = split(live)
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(live))
        inner.entries["new"] = Param("new")
        gd, st = ctx.split(inner)
        with pytest.raises(RuntimeError):
            ctx.merge(gd, st.replace({"a": "z", "p": "z", "q": "refuse"}))
        assert split(live) == before
        assert ctx.merge(gd, st.replace({"a": "z", "p": " z "})) is live
    assert (live.a.value, live.p.value, live.q.version, live.new.value) == ("z", "z", 0, "new")


def test_filters_part_the_state_on_both_sides():
    """`split` takes them, `merge` takes several states, in any order."""
    whole = Whole()
    with sm.update_context("t") as ctx:
        gd, params, rest = ctx.split(whole, sm.Param, ...)
        inner = ctx.merge(gd, rest, params)
        inner.a.prompt.assign("new")
        gd, params, rest = ctx.split(inner, sm.Param, ...)
        assert ctx.merge(gd, params, rest).a.prompt.value == "new"


def test_a_graph_without_mark_is_one_of_step_1_if_something_was_split():
    """Before a split it cannot be merged."""
    whole = Whole()
    a = whole.a
    with sm.update_context("t") as ctx:
        with pytest.raises(sm.GraphError, match="Cannot merge without ref_index"):
            ctx.merge(*split(whole))
        ctx.split(whole)
        inner = ctx.merge(*split(whole))
        inner.b = inner.a
        ctx.merge(*ctx.split(inner))
        assert whole.b is a
        with pytest.raises(sm.GraphError, match="Cannot merge without ref_index"):
            ctx.merge(*split(whole))  # the outer map is dropped


def test_graphs_of_other_contexts_are_refused():
    """Both tags are named; so are two contexts of one tag."""
    whole = Whole()
    with sm.update_context("one") as one, sm.update_context("two") as two:
        gd, st = one.split(whole)
        inner = one.merge(gd, st)
        back = one.split(inner)
        two.split(whole)
        with pytest.raises(sm.GraphError, match=r"'one'.*'two'"):
            two.merge(*back)
        with pytest.raises(sm.GraphError, match=r"'one'.*'two'"):
            two.merge(gd, st)
        with sm.update_context("one") as again:
            with pytest.raises(sm.GraphError, match="Cannot merge without ref_index"):
                again.merge(*back)
            again.split(whole)
            with pytest.raises(sm.GraphError, match=r"'one' \(another split of that tag\).*'one'"):
                again.merge(*back)
        assert one.merge(*back) is whole


def test_a_later_split_is_another_one():
    """What an earlier one gave is refused, since its numbers mean other objects."""
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(Whole()))
        back = ctx.split(inner)
        ctx.split(Store(a=Whole()))
        with pytest.raises(sm.GraphError, match="another split of that tag"):
            ctx.merge(*back)


def _objects(root):
    """Nodes and Variables in walk order."""
    return [visit.value for visit in sm.tree.walk(root) if visit.first and visit.index is not None]


@given(programs, st.randoms(use_true_random=False))
def test_any_program_crosses_and_keeps_its_objects(program, draw):
    """Stores trade what they hold, get something new, close cycles: outside it is the same, in the same objects."""
    live = _objects(program)
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(program))
        copies = _objects(inner)
        whose = {id(copy): original for copy, original in zip(copies, live, strict=True)}
        stores = [copy for copy in copies if isinstance(copy, Store)]
        for store in stores:
            other = draw.choice(stores)
            store.entries, other.entries = other.entries, store.entries
            if draw.random() < 0.3:
                store.entries["fresh"] = Param("fresh")
            if draw.random() < 0.3:
                store.entries["cycle"] = draw.choice(stores)
            store.label = draw.choice([None, "l", {"k": [1]}])
        graph, values = ctx.split(inner)
        outside = ctx.merge(graph, values)
    assert split(outside) == split(inner)
    for mine, theirs in zip(_objects(outside), _objects(inner), strict=True):
        assert mine is whose.get(id(theirs), mine)
        assert mine is not theirs or isinstance(theirs, Handle)


def test_references_and_other_things_are_no_graphs():
    """A NodeRef is refused; what is no graph is an ArgumentError."""
    whole = Whole()
    with sm.split_context() as splits:
        splits.split(whole)
        ref, nothing = splits.split(whole)
    with sm.update_context("t") as ctx:
        ctx.split(whole)
        for bad in (ref, sm.GraphDef(ref, {})):
            with pytest.raises(sm.GraphError, match="Expected a NodeDef"):
                ctx.merge(bad, nothing)
        for fn in (lambda: ctx.merge(3, nothing), lambda: ctx.align(3), lambda: sm.update_context(3)):
            with pytest.raises(sm.ArgumentError):
                fn()


def test_a_context_that_has_ended_is_empty():
    """Everything it could do is refused, copies that were not split are closed."""
    whole = Whole()
    with sm.update_context("t") as ctx:
        gd, st = ctx.split(whole)
        ctx.merge(gd, st)
    for fn in (lambda: ctx.split(whole), lambda: ctx.merge(gd, st), lambda: ctx.align(gd)):
        with pytest.raises(sm.GraphError, match="has ended"):
            fn()


async def test_alignment_makes_a_hot_reload(whole):
    """A checkpoint takes the place of the live program: same objects at equal paths, classes and models."""
    saved = through_json(*split(sm.clone(whole)))
    other = Whole(whole.a.language_model)
    other.a.prompt.assign("from a checkpoint")
    other.a.retry = 7
    other.b = Store(v=Param("another class"))
    before = parts_of(whole)
    with sm.update_context("t") as ctx:
        with pytest.raises(sm.GraphError, match="Cannot merge without ref_index"):
            ctx.align(saved[0])
        ctx.split(whole)
        gd, st = split(other)
        assert ctx.merge(ctx.align(gd), st) is whole
    assert (whole.a, whole.a.prompt, whole.parts[0]) == (before["a"], before["pa"], before["a"])
    assert (whole.a.prompt.value, whole.a.retry, whole.a.handle) == ("from a checkpoint", 7, before["ha"])
    assert whole.b is not before["b"]
    with sm.update_context("t") as ctx:
        ctx.split(whole)
        assert ctx.merge(ctx.align(saved[0]), saved[1]) is whole
    assert whole.a.prompt.value == "a"
    assert whole.a.language_model is before["lm"]
    assert type(whole.b) is Part


def test_the_innermost_context_of_a_tag_is_found():
    """Others are looked through; outside there is none."""
    with pytest.raises(sm.GraphError, match="No update context found.*'t'"):
        sm.current_update_context("t")
    with sm.update_context("t") as outer, sm.update_context("u"):
        assert sm.current_update_context("t") is outer
        with sm.update_context("t") as inner:
            assert sm.current_update_context("t") is inner
        assert sm.current_update_context("t") is outer


async def test_two_tasks_with_one_tag_see_their_own():
    """Contexts are inherited by child tasks, and seen by no sibling."""

    async def work():
        with sm.update_context("t") as ctx:
            await asyncio.sleep(0)
            assert sm.current_update_context("t") is ctx

            async def child():
                return sm.current_update_context("t")

            assert await asyncio.create_task(child()) is ctx
            return ctx

    contexts = await asyncio.gather(work(), work())
    assert contexts[0] is not contexts[1]


async def test_a_context_holds_while_a_decorated_body_runs():
    """Of plain, async, generator and async generator functions; signature and `__wrapped__` stay."""
    block = sm.update_context("t")

    @block
    def plain(x):
        return sm.current_update_context("t"), x

    @block
    async def waiting(x):
        await asyncio.sleep(0)
        return sm.current_update_context("t"), x

    first, second = plain(1), await waiting(2)
    assert (first[1], second[1]) == (1, 2)
    assert first[0] is not second[0]
    assert first[0].ended
    assert second[0].ended
    assert inspect.iscoroutinefunction(waiting)
    assert list(inspect.signature(plain).parameters) == ["x"]
    with pytest.raises(sm.ArgumentError):
        block(3)
    assert _is_outside()


def _is_outside():
    with pytest.raises(sm.GraphError):
        sm.current_update_context("t")
    return True


async def test_async_generators_hold_nothing_across_a_yield():
    """Each step sees the context, the consumer never; sent and thrown things arrive; closing runs the end inside."""
    seen, ends = [], []

    @sm.update_context("t")
    async def numbers(count):
        try:
            for n in range(count):
                await asyncio.sleep(0)
                seen.append(sm.current_update_context("t"))
                try:
                    seen.append((yield n))
                except KeyError:
                    yield "caught"
        finally:
            ends.append(sm.current_update_context("t"))

    assert inspect.isasyncgenfunction(numbers)
    async for _ in numbers(3):
        assert _is_outside()
    assert len({id(each) for each in (*seen[::2], *ends)}) == 1
    assert ends[0].ended
    generator = numbers(9)
    assert await asyncio.create_task(generator.asend(None)) == 0
    assert await generator.asend("sent") == 1
    assert seen[-2] == "sent"
    assert await generator.athrow(KeyError()) == "caught"
    assert _is_outside()
    await asyncio.create_task(generator.aclose())
    assert len(ends) == 2
    failing = numbers(9)
    await failing.asend(None)
    with pytest.raises(ValueError, match="mine"):
        await failing.athrow(ValueError("mine"))
    assert len(ends) == 3


def test_generators_hold_nothing_across_a_yield():
    """Likewise plain ones; what they return arrives."""

    @sm.update_context("t")
    def numbers():
        try:
            sent = yield sm.current_update_context("t")
            yield sent, sm.current_update_context("t")
        except KeyError:
            yield "caught"
        return "end"

    generator = numbers()
    context = next(generator)
    assert _is_outside()
    assert generator.send("sent") == ("sent", context)
    assert generator.throw(KeyError()) == "caught"
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert context.ended


def test_contexts_are_not_pickled():
    """TypeError, also for a copy."""
    block = sm.update_context("t")
    with block as ctx:
        for x in (block, ctx):
            with pytest.raises(TypeError, match="pickle"):
                pickle.dumps(x)
            with pytest.raises(TypeError):
                copy.deepcopy(x)


def test_a_block_left_elsewhere_restores_nothing_and_raises_nothing():
    """Closed in another context than it was entered in."""
    import contextvars

    block = sm.update_context("t")
    inside = contextvars.copy_context()
    ctx = inside.run(block.__enter__)
    block.__exit__(None, None, None)
    assert ctx.ended
    inside.run(_is_outside)


def test_one_index_space_over_several_splits():
    """What is tied stays tied across programs; the same object again is a NodeRef with an empty State."""
    tied = Part("tied")
    first, second = Store(p=tied), Store(q=[tied], own=Param("own"))
    with sm.split_context() as ctx:
        gd1, st1 = ctx.split(first)
        gd2, st2 = ctx.split(second)
        ref, nothing = ctx.split(tied)
        whole, params, rest = ctx.split(second, sm.Memory, ...)
    assert type(ref) is NodeRef
    assert type(whole) is NodeRef
    assert (len(nothing), len(params), len(rest)) == (0, 0, 0)
    assert list(st2) == [("own",)]
    with sm.merge_context() as ctx:
        a, b = ctx.merge(gd1, st1), ctx.merge(gd2, st2)
        assert ctx.merge(ref, nothing) is a.p
        with pytest.raises(sm.GraphError, match="already used"):
            ctx.merge(gd1, st1)
    assert b.q[0] is a.p
    assert a.p is not tied
    with pytest.raises(sm.StateError, match=r"'q/0' \(index 1\)"):
        sm.merge(gd2, st2)
    with sm.merge_context() as ctx, pytest.raises(sm.StateError, match=r"'q/0' \(index 1\)"):
        ctx.merge(gd2, st2)
    with sm.merge_context() as ctx, pytest.raises(sm.StateError, match="index 1"):
        ctx.merge(ref, nothing)


def test_index_spaces_end_with_their_block():
    """Used afterwards they are a GraphError; a split that fails leaves no numbers behind."""
    program = Store(p=Param("p"))
    with sm.split_context() as splits:
        with pytest.raises(sm.StateError):
            splits.split(program, sm.Memory)
        gd, st = splits.split(program)
        assert gd.definitions
    with sm.merge_context() as merges:
        with pytest.raises(sm.ArgumentError):
            merges.merge(3, st)
    with pytest.raises(sm.GraphError, match="split_context"):
        splits.split(program)
    with pytest.raises(sm.GraphError, match="merge_context"):
        merges.merge(gd, st)


def test_marks_do_not_count():
    """A graph from a context equals the plain one."""
    whole = Whole()
    with sm.update_context("t") as ctx:
        gd, _ = ctx.split(whole)
    assert gd == graphdef(whole)
    assert gd.fingerprint == graphdef(Whole()).fingerprint


class Unregistered(sm.DataModel):
    """No file knows its class."""

    answer: str


@sm.register(package="tests_crossing")
class Keeper(sm.Module):
    """Has a class as an argument, an ignored attribute, a slot, and a handle set later."""

    __slots__ = ("slot",)
    _graph_ignored = frozenset({"cache"})

    def __init__(self, data_model):
        super().__init__()
        self.data_model = data_model
        self.cache = {"made": "here"}
        self.slot = sm.Param("slot")
        self.client = None


def test_live_modules_keep_their_own_handles():
    """What a file cannot hold is what it was: ignored attributes, statics, classes that come back as schemas."""
    live = Keeper(Unregistered)
    client, slot = object(), live.slot
    live.cache["used"], live.client = True, sm.static(client)
    with sm.update_context("t") as ctx:
        sent = through_json(*ctx.split(live))
        with sm.update_context("t") as theirs:
            inner = theirs.merge(*sent)
            assert inner.data_model is not Unregistered
            inner.extra = 1
            inner.slot.assign("new")
            back = through_json(*theirs.split(inner))
        assert ctx.merge(*back) is live
    assert (live.extra, live.data_model, live.client, live.slot, slot.value) == (1, Unregistered, client, slot, "new")
    assert live.cache == {"made": "here", "used": True}
    assert live.get_config() == {"data_model": Unregistered}
    assert sm.clone(live).client is client

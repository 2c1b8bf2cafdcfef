"""Index spaces: contexts, objects changed in place, all of them or none."""

import asyncio
import copy
import inspect
import pickle
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import synmod as sm
from synmod.tree import NodeRef, Param, RefMap, flatten, graphdef, split, unflatten
from tests.module.models import Answer, Query
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
        assert ctx.merge(gd2, st2) is whole
    assert whole.version == version + 1
    assert before["a"].hooks == (hook,)
    await check_restructured(whole, before)


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


def test_graphs_of_other_contexts_are_refused():
    """A context takes back what it gave out last, and names its tag."""
    whole = Whole()
    with sm.update_context("one") as one, sm.update_context("two") as two:
        inner = one.merge(*one.split(whole))
        back = one.split(inner)
        two.split(whole)
        with pytest.raises(sm.GraphError, match="not made by the last split in update context 'two'"):
            two.merge(*back)
        with sm.update_context("one") as again:
            with pytest.raises(sm.GraphError, match="Cannot merge without ref_index"):
                again.merge(*back)
            again.split(whole)
            with pytest.raises(sm.GraphError, match="not made by the last split in update context 'one'"):
                again.merge(*back)
        assert one.merge(*back) is whole


def _objects(root):
    """Nodes and Variables in walk order."""
    return [visit.value for visit in sm.tree.walk(root) if visit.first and visit.index is not None]


@pytest.mark.slow
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
        for bad in (ref, sm.GraphDef(ref, {}, {})):
            with pytest.raises(sm.GraphError, match="Expected a NodeDef"):
                ctx.merge(bad, nothing)
        for fn in (lambda: ctx.merge(3, nothing), lambda: sm.update_context(3)):
            with pytest.raises(sm.ArgumentError):
                fn()


def test_a_context_that_has_ended_is_empty():
    """Everything it could do is refused, copies that were not split are closed."""
    whole = Whole()
    with sm.update_context("t") as ctx:
        gd, st = ctx.split(whole)
        ctx.merge(gd, st)
    for fn in (lambda: ctx.split(whole), lambda: ctx.merge(gd, st)):
        with pytest.raises(sm.GraphError, match="has ended"):
            fn()


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
    """Of plain and async functions; the signature stays, and a generator is refused."""
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
    assert not first[0].is_open
    assert not second[0].is_open
    assert inspect.iscoroutinefunction(waiting)
    assert list(inspect.signature(plain).parameters) == ["x"]
    with pytest.raises(sm.ArgumentError):
        block(3)
    with pytest.raises(sm.ArgumentError, match="generator"):
        block(_steps)
    assert _is_outside()


def _steps():
    yield


def _is_outside():
    with pytest.raises(sm.GraphError):
        sm.current_update_context("t")
    return True


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
    assert not ctx.is_open
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
    for part, place in ((gd2, "'q/0'"), (ref, "''")):
        with pytest.raises(sm.StateError, match=rf"{place} \(index 1\)"):
            sm.merge(part, nothing if part is ref else st2)
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


def test_only_graphs_of_the_context_are_merged():
    """Before a split nothing is; afterwards what another split made is refused."""
    whole = Whole()
    with sm.update_context("t") as ctx:
        with pytest.raises(sm.GraphError, match="Cannot merge without ref_index"):
            ctx.merge(*split(whole))
        ctx.split(whole)
        with pytest.raises(sm.GraphError, match="not made by the last split in update context 't'"):
            ctx.merge(*split(whole))


@sm.register(package="tests_rewrite")
class Leaf(sm.Module):
    """Has a prompt and a static."""

    def __init__(self, text="x", limit=1):
        super().__init__()
        self.prompt = sm.Param(text)
        self.limit = limit

    async def call(self, inputs: Query) -> Query:
        return inputs


@sm.register(package="tests_rewrite")
class Tree(sm.Module):
    """Holds two, and a list of others."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Leaf("a"), Leaf("b")
        self.more = [self.a]

    async def call(self, inputs: Query) -> Query:
        return await self.a(inputs)


def numbered(root):
    """The graph and State of a root, and its objects by index."""
    numbers = RefMap()
    shape, values = flatten(root, numbers)
    return shape, values, {number: x for x, number in numbers.items()}


def test_modules_become_in_place_what_the_graph_says():
    """The same objects; statics, labels, children and values are those of the other program, order too."""
    live = Tree()
    _, _, objects = numbered(live)
    a, prompt = live.a, live.a.prompt
    other = sm.clone(live)
    other.a.limit, other.a.name, other.a.trainable = 7, "renamed", False
    other.a.prompt.assign("new")
    other.extra = Leaf("c")
    del other.more
    again = unflatten(*split(other), index_ref_cache=objects)
    assert again is live
    assert live.a is a
    assert live.a.prompt is prompt
    assert (a.limit, a.name, a.trainable, prompt.value) == (7, "renamed", False, "new")
    assert list(vars(live)) == ["a", "b", "extra"]
    assert live.extra is not other.extra
    assert graphdef(live) == graphdef(other)


def test_swapped_children_are_swapped_objects():
    """Indices tell who is who, not places."""
    live = Tree()
    shape, values, objects = numbered(live)
    a, b = live.a, live.b
    copies = {}
    inner = unflatten(shape, values, index_ref=copies)
    mine = {id(x): index for index, x in copies.items()}
    inner.a, inner.b = inner.b, inner.a
    other, state = split(inner)
    cache = {v.index: objects[mine[id(v.value)]] for v in sm.tree.walk(inner) if v.first and v.index is not None}
    unflatten(other, state, index_ref_cache=cache)
    assert live.a is b
    assert live.b is a
    assert live.more[0] is a


async def test_a_sealed_module_is_sealed_anew():
    """Its version is raised once where its own attributes changed, paths of the next call are new."""
    live = Tree()
    await sm.build(live, Query)
    other = Tree()
    other.b = Leaf("new")
    other.late = Leaf("late")
    await sm.build(other, Query)
    before = live.version, live.a.version
    shape, values = split(other)
    cache = {0: live, 1: live.a, 2: live.a.prompt}
    unflatten(shape, values, index_ref_cache=cache)
    assert live.version == before[0] + 1
    assert live.a.version == before[1]
    with pytest.raises(sm.SealedError):
        live.late = Leaf("other")
    assert (await live(Query(question="q")))["question"] == "q"
    assert live.late.prompt.value == "late"


def test_in_place_merging_is_atomic():
    """A node that refuses what it is given leaves everything as it was."""

    class Refusing:
        def __init__(self):
            self.entries = {}

    def set_key(x, key, value):
        if key == "bad":
            raise RuntimeError("not this one")
        x.entries[key] = value

    sm.register_graph_node_type(
        Refusing,
        flatten=lambda x: (list(x.entries.items()), None),
        set_key=set_key,
        pop_key=lambda x, key: x.entries.pop(key),
        create_empty=lambda metadata: Refusing(),
    )
    inner = Refusing()
    inner.entries["v"] = Param("old")
    live = Store("l", x=Param("x"), inner=inner, last=Store("z"))
    before, kept = sm.split(live)
    other = Store("m", x=Param("y"), inner=Refusing(), last=Store("q"))
    other.inner.entries = {"v": Param("new"), "bad": 1}
    _, _, objects = numbered(live)
    with pytest.raises(RuntimeError, match="not this one"):
        unflatten(*sm.split(other), index_ref_cache=objects)
    assert sm.split(live) == (before, kept)
    assert live.label == "l"


def test_metadata_is_taken_over_in_place():
    """What `create_empty` makes of new metadata, the live node becomes."""
    live = Store("old", x=Param("x"))
    _, _, objects = numbered(live)
    unflatten(*split(Store("new", x=Param("x"))), index_ref_cache=objects)
    assert live.label == "new"


def test_language_models_stay_the_live_ones():
    """A by-reference node of the cache is the one that is used."""
    one = sm.LanguageModel("embedded/nearest")
    live = sm.Generator(Answer, language_model=one)
    _, _, objects = numbered(live)
    other = sm.Generator(Answer, language_model=sm.LanguageModel("embedded/nearest"))
    unflatten(*split(other), index_ref_cache=objects)
    assert live.language_model is one


def test_equal_values_are_not_assigned():
    """Versions tell what has changed."""
    live = Store(a=Param("x"), b=Param("y"))
    _, _, objects = numbered(live)
    unflatten(*split(Store(a=Param("x"), b=Param("z"))), index_ref_cache=objects)
    assert (live.a.version, live.b.version) == (0, 1)

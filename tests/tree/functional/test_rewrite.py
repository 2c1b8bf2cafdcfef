"""Merging in place: live objects keep their identity, all of them change or none."""

import pytest

import synmod as sm
from synmod.tree import Param, RefMap, flatten, graphdef, split, unflatten
from tests.module.models import Answer, Query
from tests.tree.stores import Store


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

"""Editing many nodes: set_attributes, set_metadata, map, recursive_map, pop, candidates, crossover."""

import pytest
from hypothesis import given

import synmod as sm
from synmod.tree import Variable
from tests.module.models import Answer, Query
from tests.tree.parts import Leaf, Tree, Wrapped
from tests.tree.stores import Handle, Pair, Store, programs


@pytest.fixture
def tree():
    return Tree()


def test_set_attributes_sets_what_matching_nodes_have(tree):
    """On every node that has it, by function and by method."""
    sm.set_attributes(tree, limit=5)
    assert (tree.a.limit, tree.b.limit) == (5, 5)
    tree.set_attributes(sm.PathIn("b"), limit=6)
    assert (tree.a.limit, tree.b.limit) == (5, 6)
    assert not hasattr(tree, "limit")
    program = sm.Generator(Answer, temperature=1.0)
    before = sm.graphdef(program)
    program.set_attributes(sm.Generator, temperature=0.25, top_p=0.5)
    assert program.get_config()["temperature"] == 0.25
    assert sm.graphdef(program) != before
    assert sm.clone(program).temperature == 0.25
    loaded = sm.loads(sm.dumps(program))
    assert (loaded.temperature, loaded.top_p) == (0.25, 0.5)


def test_set_attributes_names_what_is_nowhere(tree):
    """A GraphError unless the flag is off; nothing is set."""
    with pytest.raises(sm.GraphError, match=r"at least one instance with the attribute 'limits'.*Did you mean 'limit'"):
        sm.set_attributes(tree, limits=5, limit=9)
    assert tree.a.limit == 1
    sm.set_attributes(tree, limits=5, limit=9, raise_if_not_found=False)
    assert tree.a.limit == 9
    assert not hasattr(tree.a, "limits")


def test_set_attributes_leaves_structure_alone(tree):
    """An attribute that holds a node or Variable, or a value that does, is a GraphError with every path."""
    for name in ("prompt", "more", "a"):
        with pytest.raises(sm.GraphError, match=name):
            sm.set_attributes(tree, **{name: 1, "limit": 8})
    with pytest.raises(sm.GraphError, match="limit"):
        sm.set_attributes(tree, limit=[sm.Param(1)])
    assert tree.a.limit == 1


def test_set_attributes_is_atomic():
    """Where one node refuses a value, those before it get theirs back, as if nothing had been."""

    class Strict(Leaf):
        def __setattr__(self, name, value):
            if name == "limit" and value == 13:
                raise ValueError("not 13")
            super().__setattr__(name, value)

    root = sm.Sequential([Leaf(limit=1), Strict(limit=2)])
    before = [list(vars(m)) for m in root.submodules], root.submodules[0].get_config(), sm.graphdef(root)
    with pytest.raises(ValueError, match="not 13"):
        sm.set_attributes(root, limit=13)
    assert [m.limit for m in root.submodules] == [1, 2]
    assert [list(vars(m)) for m in root.submodules] == before[0]
    assert root.submodules[0].get_config() == before[1]
    assert sm.graphdef(root) == before[2]


async def test_set_attributes_works_after_build(tree):
    """Plain attributes stay open."""
    await sm.build(tree, Query)
    tree.set_attributes(limit=3)
    assert tree.b.limit == 3


def test_set_metadata_changes_matching_variables(tree):
    """And no value; the changed paths come back."""
    assert sm.set_metadata(tree, only=sm.Param, trainable=False, tag="t") == (
        ("more", "again", "prompt"),
        ("b", "prompt"),
    )
    assert not tree.a.prompt.trainable
    assert tree.a.prompt.metadata["tag"] == "t"
    assert tree.note.metadata["tag"] == "log"
    assert tree.a.prompt.version == 0
    assert sm.set_metadata(tree, only=sm.Param, trainable=False, tag="t") == ()
    with pytest.raises(sm.BadNameError):
        sm.set_metadata(tree, name="1a")
    with pytest.raises(sm.DataError):
        sm.set_metadata(tree, tag=object())
    assert {v.metadata.get("tag") for v in tree.variables} == {"t", "log", None}


def test_map_gives_a_copy_with_other_values(tree):
    """Validated; sharing is kept, the original untouched."""
    twin = sm.tree.map(lambda path, leaf: leaf.value * 2, tree)
    assert twin.a.prompt.value == "aa"
    assert twin.more["again"] is twin.a is not tree.a
    assert tree.a.prompt.value == "a"
    with pytest.raises(sm.StateSchemaError) as caught:
        sm.tree.map(lambda path, leaf: ["no"], tree)
    assert [name in str(caught.value) for name in ("note", "more/own", "more/again/prompt", "b/prompt")] == [True] * 4


def is_cyclic(program):
    """Tell whether a node is below itself."""
    for visit in sm.tree.walk(program):
        above = visit.above
        while visit.kind == "node" and above is not None:
            if above.value is visit.value:
                return True
            above = above.above
    return False


@given(programs)
def test_map_and_recursive_map_with_the_identity_copy(program):
    """The same structure and State; `recursive_map` shares the Variables, and refuses cycles."""
    twin = sm.tree.map(lambda path, leaf: leaf.value, program)
    assert sm.split(twin) == sm.split(program)
    if is_cyclic(program):
        with pytest.raises(sm.GraphError, match="holds itself"):
            sm.recursive_map(lambda path, x: x, program)
        return
    again = sm.recursive_map(lambda path, x: x, program)
    assert sm.split(again) == sm.split(program)
    assert list(map(id, sm.variables(again).values())) == list(map(id, sm.variables(program).values()))
    assert sm.find_duplicates(again) == sm.find_duplicates(program)


def test_recursive_map_goes_bottom_up_and_sees_each_once():
    """Nodes, containers and Variables, what is below them done already."""
    shared = Leaf()
    root = Store(pair=Pair(shared, [sm.Param(1)]), again=shared, n=1)
    seen = []
    sm.recursive_map(lambda path, x: seen.append((sm.tree.path_str(path), type(x).__name__)) or x, root)
    assert seen == [
        ("pair/right/0", "Param"),
        ("pair/right", "list"),
        ("pair/left/prompt", "Param"),
        ("pair/left", "Leaf"),
        ("pair", "Pair"),
        ("", "Store"),
    ]


def test_recursive_map_replaces_a_shared_object_everywhere(tree):
    """By the same result; the program itself is untouched."""
    twin = sm.recursive_map(lambda path, x: Wrapped(x) if isinstance(x, Leaf) else x, tree)
    assert isinstance(twin.a, Wrapped)
    assert twin.more["again"] is twin.a
    assert twin.a.inner.prompt is tree.a.prompt
    assert isinstance(tree.a, Leaf)
    assert twin.b is not twin.a


async def test_recursive_map_works_on_built_and_functional_programs():
    """The copy is sealed again, runs its new parts, and can be saved."""
    x = sm.Input(Query)
    program = sm.Program(inputs=x, outputs=await Leaf()(x))
    await sm.build(program, Query)
    twin = sm.recursive_map(lambda path, x: Wrapped(x) if isinstance(x, Leaf) else x, program)
    assert isinstance(twin.leaf, Wrapped)
    with sm.trace() as trace:
        await twin(Query(question="q"))
    assert "leaf/inner" in str(trace)
    with pytest.raises(sm.SealedError):
        twin.leaf = Leaf()
    again = sm.loads(sm.dumps(twin))
    assert sm.graphdef(again) == sm.graphdef(twin)
    row = sm.Sequential([Leaf("a"), Leaf("b")])
    await sm.build(row, Query)
    other = sm.recursive_map(lambda path, x: Wrapped(x) if isinstance(x, Leaf) else x, row)
    assert [type(m).__name__ for m in other.members] == ["Wrapped", "Wrapped"]
    assert (await other(Query(question="q")))["question"] == "q"
    assert sm.graphdef(sm.loads(sm.dumps(other))) == sm.graphdef(other)


def test_recursive_map_swaps_all_language_models():
    """Constructor arguments follow."""
    old, new = sm.LanguageModel("embedded/nearest"), sm.LanguageModel("embedded/nearest", attempts=1)
    program = sm.Sequential([sm.Generator(Answer, language_model=old), sm.Generator(Answer, language_model=old)])
    twin = sm.recursive_map(lambda path, x: new if isinstance(x, sm.LanguageModel) else x, program)
    assert all(m.language_model is new for m in twin.members)
    assert all(m.get_config()["language_model"] is new for m in twin.members)
    assert all(m.language_model is old for m in program.members)


def test_recursive_map_refuses_cycles_and_changes_in_kept_nodes():
    """With the path."""
    root = Store(inner=Store())
    root.inner.entries["up"] = root
    with pytest.raises(sm.GraphError, match="'inner/up'"):
        sm.recursive_map(lambda path, x: x, root)
    kept = Store(handle=Handle(v=sm.Param(1)))
    assert sm.recursive_map(lambda path, x: x, kept).handle is kept.handle
    with pytest.raises(sm.GraphError, match="'handle'"):
        sm.recursive_map(lambda path, x: sm.Param(2) if isinstance(x, Variable) else x, kept)


def test_pop_takes_variables_from_all_their_paths(tree):
    """Canonical paths in the State; a second pop is empty."""
    tree.alias = tree.note
    gone = sm.pop(tree, sm.Memory, sm.Stat)
    assert [part.to_json() for part in gone] == [{"note": "note"}, {"more/own": 0}]
    assert not hasattr(tree, "note")
    assert not hasattr(tree, "alias")
    assert list(tree.more) == ["again"]
    assert len(sm.pop(tree, sm.Memory)) == 0
    with pytest.raises(sm.StateError, match="Expected at least one filter"):
        sm.pop(tree)


def test_pop_takes_nothing_from_fixed_containers():
    """A GraphError with every path, and nothing is removed."""
    shared = sm.Stat(0)
    root = Store(a=shared, rows=[shared, sm.Stat(1)], pair=(sm.Stat(2),))
    with pytest.raises(sm.GraphError, match=r"Cannot pop key 'rows/0', 'rows/1', 'pair/0'"):
        sm.pop(root, sm.Stat)
    assert root.a is shared
    assert len(sm.state(root)) == 4 - 1
    with pytest.raises(sm.GraphError, match="Cannot pop key"):
        sm.pop(sm.Stat(0), ...)


def test_pop_takes_from_a_dict_that_stands_in_two_places():
    """Once, and both have lost it."""
    held = {"x": sm.Param(1), "y": 2}
    root = Store(a=held, b=held, c=[held])
    assert sm.pop(root, ...).to_json() == {"a/x": 1}
    assert held == {"y": 2}


def test_pop_is_atomic():
    """Where a holder refuses, everything is put back in its place."""

    class Refusing:
        def __init__(self):
            self.v = sm.Stat(0)

    def refuse(x, key):
        raise RuntimeError("mine")

    sm.register_graph_node_type(
        Refusing,
        flatten=lambda x: (list(vars(x).items()), None),
        set_key=setattr,
        pop_key=refuse,
        create_empty=lambda metadata: Refusing(),
        clear=lambda x: vars(x).clear(),
    )
    root = Store(a=sm.Stat(1), d={"x": sm.Stat(2), "y": 1}, c=sm.Param(1), r=Refusing())
    before = list(sm.iter_graph(root))
    with pytest.raises(RuntimeError, match="mine"):
        sm.pop(root, sm.Stat)
    assert [(p, id(x)) for p, x in sm.iter_graph(root)] == [(p, id(x)) for p, x in before]


async def test_pop_seals_anew(tree):
    """The version of the module that lost something goes up; it stays removed after a load."""
    await sm.build(tree, Query)
    sm.pop(tree, "log")
    assert (tree.version, tree.a.version) == (1, 0)
    await tree(Query(question="q"))
    assert not hasattr(sm.loads(sm.dumps(tree)), "note")
    sm.pop(tree, sm.Stat)
    assert tree.version == 2
    await tree(Query(question="q"))
    with pytest.raises(sm.SealedError):
        tree.more = {}


def test_candidates_of_one_structure_merge(tree):
    """Another structure is a GraphError; partial States come together."""
    graphdef, params, rest = sm.split(tree, sm.Param, ...)
    one, two = sm.Candidate(graphdef, params, score=1.0), sm.Candidate(graphdef, rest, meta={"k": [1]})
    assert sm.state(sm.merge(one, two)) == sm.state(tree)
    assert sm.merge(one, rest).a.prompt.value == "a"
    assert (one.score, two.score, two.meta["k"], one.meta) == (1.0, None, [1], {})
    assert hash(one) == hash(sm.Candidate(graphdef, params, 1.0))
    tree.a.limit = 9
    with pytest.raises(sm.GraphError, match=r"GraphDef must be the same.*limit"):
        sm.merge(one, sm.Candidate(*sm.split(tree)))
    with pytest.raises(TypeError, match="state"):
        sm.merge(graphdef)
    with pytest.raises(sm.ArgumentError):
        sm.merge(3, params)
    with pytest.raises(sm.ArgumentError):
        sm.Candidate(params, graphdef)
    with pytest.raises(AttributeError):
        one.score = 2


def test_crossover_mixes_two_states(tree):
    """`a` where the mask holds, else `b`; filters and sets of paths."""
    a = sm.state(tree)
    b = a.map(lambda path, leaf: leaf.value * 2 if isinstance(leaf.value, str) else 7)
    assert sm.crossover(a, b, sm.Param).to_json() == {
        "note": "notenote",
        "more/own": 7,
        "more/again/prompt": "a",
        "b/prompt": "b",
    }
    assert sm.crossover(a, b, {("note",), "b/prompt"}) == sm.crossover(a, b, sm.PathIn("note", "b/prompt"))
    assert sm.crossover(a, b, ...) == a
    assert sm.crossover(a, b, None) == b
    with pytest.raises(sm.StateError, match=r"'note'"):
        sm.crossover(a, b.filter(sm.Param), ...)
    with pytest.raises(sm.StateError, match=r"'nowhere'"):
        sm.crossover(a, b, {"nowhere"})

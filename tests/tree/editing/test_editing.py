"""Editing many nodes: set_attributes, set_metadata, pop."""

import pytest

import synmod as sm
from tests.module.models import Answer, Query
from tests.tree.parts import Tree
from tests.tree.stores import Store


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

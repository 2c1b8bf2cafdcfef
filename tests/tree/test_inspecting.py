"""flatten, iter_graph and what is shared."""

import types

import pytest

import synmod as sm
from synmod.errors import ArgumentError
from synmod.tree import Param, find_duplicates, iter_graph, paths_of
from tests.tree.parts import Leaf, Tree, Wrapped
from tests.tree.stores import Store


@pytest.fixture
def tree():
    return Tree()


def paths(pairs):
    """The paths of pairs as texts."""
    return [sm.tree.path_str(path) for path, _ in pairs]


def test_flatten_gives_variables_and_nodes_in_walk_order(tree):
    """Each object once, the module itself and containers not; a generator."""
    found = tree.flatten()
    assert isinstance(found, types.GeneratorType)
    assert list(found) == [tree.note, tree.more["own"], tree.a, tree.a.prompt, tree.b, tree.b.prompt]
    tree.me = tree
    assert tree not in list(tree.flatten())


def test_flatten_takes_filters_and_functions_of_the_value(tree):
    """A type, a tag, a path pattern, a function, None."""
    assert list(tree.flatten(Leaf)) == [tree.a, tree.b]
    assert list(tree.flatten("log")) == [tree.note]
    assert list(tree.flatten(sm.Path("b/*"))) == [tree.b.prompt]
    assert list(tree.flatten(lambda value: getattr(value, "limit", 0) == 2)) == [tree.b]
    assert list(tree.flatten(False)) == []
    with pytest.raises(sm.ArgumentError, match="Invalid filter"):
        tree.flatten(3)


def test_flatten_without_recursion_stays_in_the_module(tree):
    """Own Variables and direct child nodes, those that were met elsewhere first too."""
    tree.c = Wrapped(tree.b)
    del tree.b
    tree.b = tree.c.inner
    assert list(tree.flatten(recursive=False)) == [tree.note, tree.more["own"], tree.a, tree.c, tree.b]
    assert list(tree.flatten(sm.Param, recursive=False)) == []


def test_flatten_with_paths_gives_every_acyclic_path(tree):
    """A leaf under a shared module comes under both names; back edges are cut."""
    found = list(tree.flatten(sm.Param, with_path=True))
    assert paths(found) == ["more/again/prompt", "a/prompt", "b/prompt"]
    tree.a.up = tree
    assert paths(tree.flatten(with_path=True)) == [
        "note",
        "more/own",
        "more/again",
        "more/again/prompt",
        "a",
        "a/prompt",
        "b",
        "b/prompt",
    ]


def test_path_filters_look_at_the_canonical_path(tree):
    """Which an object has, under whatever path it is yielded, and however attributes are sorted."""
    assert paths(tree.flatten(sm.Path("more/**"), with_path=True)) == [
        "more/own",
        "more/again",
        "more/again/prompt",
        "a",
        "a/prompt",
    ]
    assert list(tree.flatten(sm.PathIn("a"), with_path=True)) == []
    assert list(tree.flatten(sm.PathIn("more/again"), key=str)) == [tree.a]
    seen = list(iter_graph(tree, sm.PathIn("more/again"), repeats=True))
    assert paths(seen) == ["more/again", "a"]
    tree.a.up = tree
    assert paths(iter_graph(tree, sm.PathIn(""), order="post", repeats=True)) == ["more/again/up", ""]
    assert paths(iter_graph(tree, sm.PathIn("more/again/up"), repeats=True)) == []


def test_flatten_sorts_attributes_by_a_key():
    """At every node, stable."""
    root = Wrapped(Store())
    root.inner.entries = {"c": sm.Param(1), "a": sm.Param(2), "b": sm.Param(3)}
    assert [v.value for v in root.flatten(sm.Param, key=lambda name: name)] == [2, 3, 1]
    assert [v.value for v in root.flatten(sm.Param, key=lambda _: 0)] == [1, 2, 3]


def test_flatten_gives_statics_when_asked():
    """Not by default, whatever the predicate."""
    leaf = Leaf(limit=7)
    assert list(leaf.flatten(int)) == []
    assert list(leaf.flatten(int, statics=True)) == [7]
    assert list(leaf.flatten(statics=True)) == [leaf.prompt, 7]


def test_flatten_is_lazy():
    """Nothing is walked before it is asked for, and paths that multiply are no danger."""
    node = Leaf()
    for _ in range(60):
        node = Store(left=node, right=node)
    found = Wrapped(node).flatten(with_path=True)
    assert len([next(found) for _ in range(100)]) == 100


def test_duplicates_have_all_their_paths():
    """For every object with two or more incoming edges, canonical path first."""
    shared, leaf = Store(v=Param(1)), Param(2)
    root = Store(a=shared, x=leaf, c=shared, l=[leaf, {"deep": leaf}])
    assert find_duplicates(root) == [[("x",), ("l", 0), ("l", 1, "deep")], [("a",), ("c",)]]
    assert find_duplicates(Store(a=Param(1), b=Param(1))) == []


def test_one_back_edge_to_the_root_is_no_duplicate():
    """Two are."""
    root = Store()
    root.entries["me"] = root
    assert find_duplicates(root) == []
    root.entries["again"] = [root]
    assert find_duplicates(root) == [[(), ("me",), ("again", 0)]]


def test_every_acyclic_path_is_found():
    """Through shared parents too; cycles are cut; nothing for a stranger."""
    leaf = Param(1)
    shared = Store(v=leaf)
    root = Store(a=shared, b=Store(s=shared), l=[leaf])
    shared.entries["up"] = root
    assert paths_of(root, leaf) == [("l", 0), ("a", "v"), ("b", "s", "v")]
    assert paths_of(root, shared) == [("a",), ("b", "s")]
    assert paths_of(root, root) == [()]
    assert paths_of(root, Param(1)) == []
    assert paths_of([leaf, [leaf]], leaf) == [(0,), (1, 0)]
    handle = object()
    assert paths_of(Store(a=[handle]), handle) == [("a", 0)]
    with pytest.raises(ArgumentError):
        paths_of(3, leaf)


@pytest.mark.slow
@pytest.mark.interpreter
def test_long_chains_are_no_problem():
    """5,000 levels."""
    leaf = Param(1)
    node = Store(v=leaf)
    for _ in range(5_000):
        node = Store(n=node)
    assert len(paths_of(node, leaf)[0]) == 5_001

"""`Module.flatten`, `iter_graph` and its common cases: order, paths, filters, laziness."""

import types

import pytest

import synmod as sm
from synmod.tree import iter_children, iter_graph, iter_modules
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


def test_iter_modules_and_iter_children(tree):
    """`(path, Module)` with the root; `(key, direct child)`, each once."""
    assert list(iter_modules(tree)) == [((), tree), (("more", "again"), tree.a), (("b",), tree.b)]
    assert list(iter_children(tree)) == [(("more", "again"), tree.a), ("b", tree.b)]
    shared = Leaf()
    outer = Store(first=Wrapped(shared), second=shared)
    assert list(iter_children(outer)) == [("first", outer.first), ("second", shared)]
    assert [key for key, _ in iter_children([outer, shared])] == [0, 1]

"""Where objects stand."""

import pytest

from synmod.errors import ArgumentError
from synmod.tree import Param, find_duplicates, paths_of
from tests.tree.stores import Store


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


def test_long_chains_and_dead_ends_are_no_problem():
    """5,000 levels; a lattice that does not lead there costs nothing."""
    leaf = Param(1)
    node = Store(v=leaf)
    for _ in range(5_000):
        node = Store(n=node)
    assert len(paths_of(node, leaf)[0]) == 5_001
    maze = Store()
    for _ in range(60):
        maze = Store(l=maze, r=maze)
    assert paths_of(Store(m=maze, v=leaf), leaf) == [("v",)]

"""Nests: mapping, listing and pairing leaves, rebuilding only what changed."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from functools import cached_property

import optree
import pytest
from hypothesis import given, strategies as st

from synmod.errors import CallError
from synmod.leaves.frozen import frozen
from synmod.leaves.nests import (
    align_nests,
    copy_nest,
    flatten_one_level,
    is_leaf,
    leaves,
    leaves_with_path,
    map_leaves,
    pack,
)

Pair = namedtuple("Pair", "left right")


class OwnList(list):
    pass


@dataclasses.dataclass(frozen=True)
class Sides:
    left: object
    right: object = None

    def __post_init__(self):
        object.__setattr__(self, "made", "by hand")

    @cached_property
    def both(self):
        return (self.left, self.right)


class Box:
    """A container that is known to optree alone."""

    def __init__(self, *items):
        self.items = items


optree.register_pytree_node(Box, lambda box: (box.items, None), lambda _, items: Box(*items), namespace="synmod")


def same_structure(a, b):
    return align_nests(a, b) is not None


nests = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
    ),
    max_leaves=20,
)


def recursive_leaves(nest):
    if isinstance(nest, dict):
        return [leaf for item in nest.values() for leaf in recursive_leaves(item)]
    if isinstance(nest, list | tuple):
        return [leaf for item in nest for leaf in recursive_leaves(item)]
    return [nest]


@given(nests)
def test_leaves_are_those_of_plain_recursion(nest):
    """What is listed agrees with plain recursion, in order."""
    assert leaves(nest) == recursive_leaves(nest)
    assert [leaf for _, leaf in leaves_with_path(nest)] == leaves(nest)


@given(nests)
def test_the_identity_map_returns_the_very_object(nest):
    """Nothing is rebuilt where nothing changed."""
    assert map_leaves(lambda leaf: leaf, nest) is nest


@given(nests)
def test_mapping_keeps_structure_and_types(nest):
    """A changed nest has the containers of the old one, type by type, and the results as leaves."""
    changed = map_leaves(lambda leaf: ("x", leaf).__repr__(), nest)
    assert type(changed) is (type(nest) if not is_leaf(nest) else str)
    assert leaves(changed) == [("x", leaf).__repr__() for leaf in leaves(nest)]
    assert same_structure(nest, changed)


@given(nests)
def test_paths_lead_to_their_leaves(nest):
    """Each path indexes down to the leaf it was given with."""
    for path, leaf in leaves_with_path(nest):
        at = nest
        for step in path:
            at = at[step]
        assert at is leaf


@given(nests)
def test_pack_puts_leaves_back(nest):
    """Leaves taken out and put back make an equal nest."""
    assert pack(nest, iter(leaves(nest))) == nest


@given(nests)
def test_copies_share_leaves_and_no_container(nest):
    """Writing into a copy is not seen in the original."""
    copy = copy_nest(nest)
    assert copy == nest
    if isinstance(nest, list | dict):
        assert copy is not nest


def test_only_the_changed_branch_is_rebuilt():
    """A sibling of a changed leaf's container stays the same object."""
    same, other = [1, 2], [3]
    changed = map_leaves(lambda leaf: 30 if leaf == 3 else leaf, {"same": same, "other": other})
    assert changed == {"same": [1, 2], "other": [30]}
    assert changed["same"] is same


@pytest.mark.parametrize(
    "nest", [OrderedDict(b=1, a=2), defaultdict(list, b=1, a=2), deque([1], 3), Pair(1, 2), Sides(1, 2), Box(1, 2)]
)
def test_containers_keep_their_class(nest):
    """What is rarer than lists, tuples and dicts is rebuilt with its type, order and settings."""
    changed = map_leaves(lambda leaf: leaf + 1, nest)
    assert type(changed) is type(nest)
    assert leaves(changed) == [leaf + 1 for leaf in leaves(nest)]
    if isinstance(nest, defaultdict):
        assert changed.default_factory is list
    if isinstance(nest, deque):
        assert changed.maxlen == 3


def test_a_dataclass_is_made_anew_without_its_constructor():
    """Its fields are steps; other attributes go along, what a cached property left does not."""
    old = Sides(1, [2])
    assert old.both == (1, [2])
    assert leaves_with_path(old) == [(("left",), 1), (("right", 0), 2)]
    new = map_leaves(lambda leaf: leaf * 10, old)
    assert (new.left, new.right, new.made, new.both) == (10, [20], "by hand", (10, [20]))
    assert copy_nest(old) is not old
    assert copy_nest(Sides(1)).left == 1


def test_one_level_is_taken_apart():
    """Steps, children, and what makes such a container of others; dicts in their own order."""
    steps, children, rebuild = flatten_one_level({"b": 1, "a": [2]})
    assert (list(steps), children, rebuild([3, 4])) == (["b", "a"], [1, [2]], {"b": 3, "a": 4})
    steps, children, rebuild = flatten_one_level(Box("x", ["y"]))
    assert (list(steps), list(children), rebuild([1, 2]).items) == ([0, 1], ["x", ["y"]], (1, 2))


def test_frozen_json_is_a_leaf():
    """A frozen value is data, not a container of data."""
    assert is_leaf(frozen({"a": [1]}))
    assert is_leaf(frozen([1]))
    assert is_leaf("text")
    assert is_leaf({1, 2})
    assert is_leaf(OwnList([1]))


def test_a_list_and_a_tuple_count_as_one():
    """Structures are compared by places; dicts by keys, in any order."""
    assert same_structure([1, (2, 3)], (1, [2, 3]))
    assert same_structure({"a": 1, "b": 2}, {"b": 1, "a": 2})
    assert not same_structure([1], [1, 2])
    assert not same_structure({"a": 1}, {"b": 1})
    assert not same_structure([1], 1)
    assert not same_structure(1, [1])
    assert not same_structure([1], {"0": 1})
    assert not same_structure(Sides(1, 2), Box(1, 2))


def test_pairs_come_in_the_order_of_the_pattern():
    """The first nest decides the order."""
    assert align_nests({"a": 1, "b": [2]}, {"b": (20,), "a": 10}) == [(("a",), 1, 10), (("b", 0), 2, 20)]


def test_containers_stand_at_most_a_hundred_deep():
    """One more is a CallError that names the limit."""
    nest = 1
    for _ in range(100):
        nest = [nest]
    assert leaves(map_leaves(lambda leaf: leaf + 1, nest)) == [2]
    with pytest.raises(CallError, match="100 deep"):
        leaves([nest])


def test_a_container_that_holds_itself_is_refused():
    """An endless nest is a CallError, not an endless loop."""
    nest = [1]
    nest.append(nest)
    for walk in (leaves, leaves_with_path, copy_nest, lambda x: map_leaves(str, x), lambda x: same_structure(x, x)):
        with pytest.raises(CallError, match="holds itself"):
            walk(nest)


def test_the_same_container_twice_is_fine():
    """Sharing is no cycle."""
    part = [1]
    assert leaves([part, part]) == [1, 1]

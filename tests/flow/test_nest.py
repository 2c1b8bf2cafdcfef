"""Nests: mapping, listing and pairing leaves without recursion, rebuilding only what changed."""

from collections import OrderedDict, defaultdict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmod.errors import CallError
from synmod.flow import aligned, copied, is_leaf, leaves, leaves_with_path, map_leaves, pack, same_structure
from synmod.leaves.frozen import frozen

Pair = namedtuple("Pair", "left right")


class OwnList(list):
    pass


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
    """Iterative and recursive listing agree, in order."""
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
    copy = copied(nest)
    assert copy == nest
    if isinstance(nest, list | dict):
        assert copy is not nest


def test_only_the_changed_branch_is_rebuilt():
    """A sibling of a changed leaf's container stays the same object."""
    same, other = [1, 2], [3]
    changed = map_leaves(lambda leaf: 30 if leaf == 3 else leaf, {"same": same, "other": other})
    assert changed == {"same": [1, 2], "other": [30]}
    assert changed["same"] is same


@pytest.mark.parametrize("nest", [OrderedDict(a=1), defaultdict(list, a=1), OwnList([1]), Pair(1, 2)])
def test_containers_keep_their_class(nest):
    """Subclasses of list and dict, and namedtuples, are rebuilt with their type."""
    changed = map_leaves(lambda leaf: leaf + 1, nest)
    assert type(changed) is type(nest)
    assert leaves(changed) == [leaf + 1 for leaf in leaves(nest)]
    if isinstance(nest, defaultdict):
        assert changed.default_factory is list


def test_frozen_json_is_a_leaf():
    """A frozen value is data, not a container of data."""
    assert is_leaf(frozen({"a": [1]}))
    assert is_leaf(frozen([1]))
    assert is_leaf("text")
    assert is_leaf({1, 2})


def test_a_list_and_a_tuple_count_as_one():
    """Structures are compared by places; dicts by keys, in any order."""
    assert same_structure([1, (2, 3)], (1, [2, 3]))
    assert same_structure({"a": 1, "b": 2}, {"b": 1, "a": 2})
    assert not same_structure([1], [1, 2])
    assert not same_structure({"a": 1}, {"b": 1})
    assert not same_structure([1], 1)
    assert not same_structure(1, [1])
    assert not same_structure([1], {"0": 1})


def test_pairs_come_in_the_order_of_the_pattern():
    """The first nest decides the order."""
    assert aligned({"a": 1, "b": [2]}, {"b": (20,), "a": 10}) == [(("a",), 1, 10), (("b", 0), 2, 20)]


def test_deep_nests_need_no_recursion():
    """Ten thousand levels are mapped, listed, paired and copied."""
    nest = 1
    for _ in range(10_000):
        nest = [nest]
    assert leaves(nest) == [1]
    assert leaves(map_leaves(lambda leaf: leaf + 1, nest)) == [2]
    assert leaves(copied(nest)) == [1]
    while isinstance(nest, list):  # taken apart here, so that no deallocation nests
        nest = nest.pop()


def test_a_container_that_holds_itself_is_refused():
    """An endless nest is a CallError, not an endless loop."""
    nest = [1]
    nest.append(nest)
    for walk in (leaves, leaves_with_path, copied, lambda x: map_leaves(str, x), lambda x: same_structure(x, x)):
        with pytest.raises(CallError, match="holds itself"):
            walk(nest)


def test_the_same_container_twice_is_fine():
    """Sharing is no cycle."""
    part = [1]
    assert leaves([part, part]) == [1, 1]

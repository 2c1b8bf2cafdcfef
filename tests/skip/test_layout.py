"""Layouts: static routes, and what must be sent to which partition."""

import pytest

import synmod as sm
from synmod.skip import Namespace, skip_layout
from tests.skip.parts import QUERY, Cite, Retrieve, Tell, calling, popper, stasher
from tests.skip.test_verifying import declaring


def test_routes_lead_from_producers_to_consumers():
    """By Namespace and name; at any depth."""
    one = Namespace("one")
    row = sm.Sequential(
        [sm.Sequential([Retrieve()]), Retrieve().isolate(one), Tell(), Cite(), sm.Sequential([Cite().isolate(one)])]
    )
    assert dict(skip_layout(row)) == {(None, "doc"): ("0/0", "3"), (one, "doc"): ("1", "4/0")}
    assert skip_layout(sm.Sequential([sm.Identity()])) == {}
    assert skip_layout(sm.Identity()) == {}


def test_a_layout_without_partitions_copies_nothing():
    """Nor does one where both ends are in one partition."""
    row = sm.Sequential([Retrieve(), Tell(), Cite()])
    assert skip_layout(row).copy_policy(0) == []
    assert not skip_layout(row).requires_copy(None, "doc")
    together = skip_layout(row, [row.members])
    assert together.copy_policy(0) == []
    assert not together.requires_copy(None, "doc")
    assert not together.requires_copy(None, "other")


def test_values_go_straight_to_where_they_are_needed():
    """From partition 0 to 2 the middle one receives nothing."""
    row = sm.Sequential([Retrieve(), Tell(), Cite()])
    layout = skip_layout(row, [[member] for member in row.members])
    assert [layout.copy_policy(number) for number in range(3)] == [[], [], [(0, None, "doc")]]
    assert layout.requires_copy(None, "doc")
    by_path = skip_layout(row, [["0", "1"], [2]])
    assert by_path.copy_policy(1) == [(0, None, "doc")]


def test_two_namespaces_are_two_routes():
    """Sorted by source, then by Namespace and name."""
    one, two = Namespace("one"), Namespace("two")
    row = sm.Sequential(
        [
            *(stasher("b"), stasher("a").isolate(two), stasher("a").isolate(one)),
            *(popper("a").isolate(one), popper("a").isolate(two), popper("b")),
        ]
    )
    layout = skip_layout(row, [row.members[:1], row.members[1:3], row.members[3:]])
    assert layout.copy_policy(2) == [(0, None, "b"), (1, one, "a"), (1, two, "a")]


def test_who_peeks_receives_too():
    """Each value once for each partition; the route leads to who pops."""
    row = sm.Sequential(
        [declaring(stash=["x", "y"]), declaring(peek=["x", "y"]), declaring(peek=["x"]), declaring(pop=["x"])]
    )
    layout = skip_layout(row, [[0], [1, 2], [3]])
    assert dict(layout) == {(None, "x"): ("0", "3"), (None, "y"): ("0", "1")}
    assert [route.consumer for route in layout.routes if route.key[1] == "x"] == ["1", "2", "3"]
    assert layout.copy_policy(1) == [(0, None, "x"), (0, None, "y")]
    assert layout.copy_policy(2) == [(0, None, "x")]


async def test_functional_programs_have_layouts():
    """Modules are named by the keys of the program."""
    x = sm.Input(type(QUERY))
    program = sm.Program(inputs=x, outputs=await Cite()(await Tell()(await Retrieve()(x))))
    assert dict(skip_layout(program)) == {(None, "doc"): ("retrieve", "cite")}


def test_hand_written_programs_have_layouts():
    """The pairs of a set."""
    program = calling(lambda self, inputs: inputs)
    program.a, program.b = Cite(), Retrieve()
    assert dict(skip_layout(program)) == {(None, "doc"): ("b", "a")}


@pytest.mark.parametrize("child", [sm.Identity(), "2", "nothing", ("0", 3), 7, None])
def test_a_partition_holds_children(child):
    """Modules, paths as text or steps, places in a row; anything else is an ArgumentError."""
    row = sm.Sequential([Retrieve(), Cite()])
    for ends in ([["0"], ["1"]], [[(0,)], [(1,)]], [[0], [1]], [[row.members[0]], [row.members[1]]]):
        assert skip_layout(row, ends).copy_policy(1) == [(0, None, "doc")]
    with pytest.raises(sm.ArgumentError, match="not part"):
        skip_layout(row, [[child]])

"""Names of a room that are loaded when one of them is first asked for."""

from types import ModuleType

import pytest

from synmod.leaves.late import opened_late


def made(**names):
    """A module that has these names."""
    part = ModuleType("part")
    vars(part).update(names)
    return part


def test_a_name_opens_the_parts_once_and_all_names_are_there():
    """The first read of one name makes every late name an ordinary one."""
    room = {"__name__": "room", "__all__": ["a", "b", "early"], "early": 0}
    opened = []
    read, _ = opened_late(room, lambda: opened.append(1) or (made(a=1, hidden=2), made(b=3)))
    assert read("b") == 3
    assert (room["a"], room["b"], room["early"]) == (1, 3, 0)
    assert "hidden" not in room
    assert opened == [1]


def test_a_name_that_is_not_listed_opens_nothing():
    """An AttributeError, as of any module."""
    read, _ = opened_late({"__name__": "room", "__all__": []}, lambda: pytest.fail("opened"))
    with pytest.raises(AttributeError, match="module 'room' has no attribute 'x'"):
        read("x")


def test_what_is_not_opened_yet_is_listed():
    """`dir` shows late names."""
    _, names = opened_late({"__name__": "room", "__all__": ["late"]}, lambda: ())
    assert names() == ["__all__", "__name__", "late"]

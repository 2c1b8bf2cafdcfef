"""Where two structures differ: their places compared by path, and only the paths that are told are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.canonical import path_of

if TYPE_CHECKING:
    from synmod.leaves.paths import KeyPath
    from synmod.tree.canonical import Link, Place


class _Located:
    """Places by a number for their path, which is the same in both structures.

    References are compared by the places that they lead to: identity numbers shift when something is added.
    """

    def __init__(self, places: list[Place], numbers: dict[tuple[int, Any], int]) -> None:
        by_link: dict[int, int] = {id(None): 0}
        self.links: dict[int, Link] = {}
        self.above: dict[int, int] = {}
        leads_to: dict[int, int] = {}
        for place in places:
            number = 0
            if place.link is not None:
                holder, step = place.link
                above = by_link[id(holder)]
                number = by_link[id(place.link)] = numbers.setdefault((above, step), len(numbers) + 1)
                self.above[number] = above
            self.links[number] = place.link
            if place.number is not None:
                leads_to[place.number] = number
        self.says = {
            by_link[id(place.link)]: tuple([("at", leads_to.get(t, t)) if type(t) is int else t for t in place.tokens])
            for place in places
        }


def differing(mine: list[Place], theirs: list[Place]) -> tuple[KeyPath, ...]:
    """List the paths that are in one only, or say different things, in definition order; of a part its top."""
    numbers: dict[tuple[int, Any], int] = {}
    one, other = _Located(mine, numbers), _Located(theirs, numbers)
    changed = [number for number in one.says if one.says[number] != other.says.get(number)]
    changed += [number for number in other.says if number not in one.says]
    gone = {number for number in changed if (number in one.says) != (number in other.says)}
    above = {**one.above, **other.above}
    tops = [number for number in changed if number not in gone or above.get(number) not in gone]
    return tuple(path_of(one.links[number] if number in one.links else other.links[number]) for number in tops)

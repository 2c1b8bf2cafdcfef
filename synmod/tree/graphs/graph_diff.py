"""Where two structures differ: their places compared by path, and only the paths that are told are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.graphs.canonical import Canonical, Number, path_of

if TYPE_CHECKING:
    from synmod.leaves.names import KeyPath
    from synmod.tree.graphs.canonical import Link, Pairs, Place
    from synmod.tree.graphs.graphdef import GraphDef

_LAST = float("inf")


class _Paths:
    """Numbers for paths, the same in both structures."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Any], int] = {}
        self._by_link: dict[int, tuple[Link, int]] = {id(None): (None, 0)}  # which are held, so that none is another

    def number(self, link: Link) -> int:
        """Give the number of a path."""
        new: list[tuple[Any, Any]] = []
        while id(link) not in self._by_link:
            assert link is not None
            new.append(link)
            link = link[0]
        number = self._by_link[id(link)][1]
        for each in reversed(new):
            number = self._numbers.setdefault((number, each[1]), len(self._numbers) + 1)
            self._by_link[id(each)] = each, number
        return number


class _Located:
    """What is said at each path. References are told by where they lead: numbers shift when something is added."""

    def __init__(self, places: list[Place], paths: _Paths) -> None:
        self.links: dict[int, Link] = {}
        self.above: dict[int, int] = {}
        self.keys: dict[int, dict[str, int]] = {}
        leads_to: dict[int, tuple[str, int]] = {}
        for place in places:
            number = paths.number(place.link)
            self.links[number] = place.link
            self.keys[number] = {key: at for at, key in enumerate(place.keys)}
            if place.link is not None:
                self.above[number] = paths.number(place.link[0])
            if place.number is not None:
                leads_to[place.number] = "at", number
        nowhere: dict[int, tuple[str, int]] = {}  # what metadata alone mentions, by order of mention
        self.says: dict[int, tuple[Any, ...]] = {}
        for place in places:
            tokens = [
                (leads_to.get(token) or nowhere.setdefault(token, ("nowhere", len(nowhere))))
                if type(token) is Number
                else token
                for token in place.tokens
            ]
            self.says[paths.number(place.link)] = tuple(tokens)

    def kind(self, number: int) -> str | None:
        """Give what stands at a path: a node, a reference to one, a container, ...; None where nothing does."""
        return self.says[number][0] if number in self.says else None


def differing(mine: GraphDef[Any], theirs: GraphDef[Any]) -> tuple[KeyPath, ...]:
    """List the paths that are in one only, or say different things, in definition order; of a part its top.

    The one is listed as it was defined, the other in the same order: so what differs is the alias that was added or
    taken away, not the canonical path.
    """
    paths = _Paths()
    one = _Located(Canonical(mine.definitions, lambda _, pairs: pairs).places(mine.root), paths)

    def like_mine(link: Link, pairs: Pairs) -> Pairs:
        at = one.keys.get(paths.number(link), {})
        return sorted(pairs, key=lambda pair: at.get(repr(pair[0]), _LAST))

    other = _Located(Canonical(theirs.definitions, like_mine).places(theirs.root), paths)
    changed = [number for number in one.says if one.says[number] != other.says.get(number)]
    changed += [number for number in other.says if number not in one.says]
    replaced = {number for number in changed if one.kind(number) != other.kind(number)}
    above = {**one.above, **other.above}
    tops = [number for number in changed if number not in replaced or above.get(number) not in replaced]
    return tuple(path_of(one.links[number] if number in one.links else other.links[number]) for number in tops)

"""Filters over a walk: an object is judged once, at its canonical path, however many edges lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from synmod.tree.filtering.filters import Filter
    from synmod.tree.walking.walk import Visit


class Decisions:
    """What a filter says of the objects of one walk.

    Args:
        wanted: The filter.
        root: The root, where the walk to come does not go in definition order, so that its first visits are not those
            at the canonical paths.
    """

    __slots__ = ("_known", "_looks_at_path", "_wanted")

    def __init__(self, wanted: Filter, root: Any = None) -> None:
        self._wanted = wanted
        self._looks_at_path = wanted.looks_at_path
        self._known: dict[int | None, bool] = {}
        if root is not None and self._looks_at_path:
            for visit in walk(root):
                if visit.first:
                    self.takes(visit)

    def takes(self, visit: Visit) -> bool:
        """Tell whether the filter takes what is visited."""
        if visit.index is None or not self._looks_at_path:
            return self._asked(visit)
        known = self._known.get(visit.index)
        if known is None:
            known = self._known[visit.index] = self._asked(visit if visit.first else _first_of(visit))
        return known

    def _asked(self, visit: Visit) -> bool:
        path = visit.path if self._looks_at_path else ()
        return self._wanted.matches(path, visit.value, visit.masked)


def _first_of(alias: Visit) -> Visit:
    """Find the first visit of what an alias leads to: nobody has asked of it yet, so it is still open above."""
    visit = alias.above
    while visit is not None and visit.index != alias.index:
        visit = visit.above
    return alias if visit is None else visit

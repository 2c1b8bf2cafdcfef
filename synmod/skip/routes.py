"""Who stashes what below an entry module: found once for a structure, asked while calls run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from synmod.module import PathTable
from synmod.skip.namespace import Key, Namespace

if TYPE_CHECKING:
    from synmod.module import Carried
    from synmod.scope import RootFrame


class Routes:
    """The producers below an entry module.

    Attributes:
        producers: The paths of the modules that stash a key.
        stashed_at: What is stashed by a module or below it, by the id of the module's record.
        numbers: The Namespaces by their number in the program, in order of first mention.
    """

    __slots__ = ("numbers", "producers", "stashed_at")

    def __init__(self, carried: Iterable[Carried]) -> None:
        self.producers: dict[Key, list[str]] = {}
        self.stashed_at: dict[int, set[Key]] = {}
        numbers: dict[Namespace, int] = {}
        for each in carried:
            for name in each.skips.names:
                namespace = each.isolated.get(name)
                if namespace is not None:
                    numbers.setdefault(namespace, len(numbers))
            for key in each.keys(each.skips.stash):
                self.producers.setdefault(key, []).append(each.path)
                for record in (each.key, *each.above):
                    self.stashed_at.setdefault(record, set()).add(key)
        self.numbers: Mapping[Namespace, int] = numbers


def routes_of(root: RootFrame) -> Routes:
    """The routes of the program whose entry call this is."""
    table = root.paths
    if not isinstance(table, PathTable):
        return Routes(())
    routes = table.routes
    if not isinstance(routes, Routes):
        routes = table.routes = Routes(table.carried.values())
    return routes

"""The layout of skips: static routes from producers to consumers, and what must be sent where."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from synmod.errors import ArgumentError
from synmod.leaves.paths import KeyPath, path_str
from synmod.skip.namespace import Key, Namespace, order_of
from synmod.skip.wiring import Route, Wiring
from synmod.tree import paths_of
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from synmod.module import Module


class SkipLayout(Mapping[Key, tuple[str, str]]):
    """The static routes of a program: `(namespace, name)` to `(producer path, consumer path)`.

    The consumer is the module that pops, else the first that peeks.

    Attributes:
        partitions: The paths of the children in each partition.
    """

    __slots__ = ("_ends", "_routes", "partitions")

    def __init__(self, routes: Iterable[Route], partitions: Sequence[Sequence[str]]) -> None:
        self._ends = list(routes)
        self.partitions = partitions
        self._routes: dict[Key, tuple[str, str]] = {}
        for route in sorted(self._ends, key=lambda route: not route.takes):
            self._routes.setdefault(route.key, (route.producer, route.consumer))

    def __getitem__(self, key: Key) -> tuple[str, str]:
        return self._routes[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._routes)

    def __len__(self) -> int:
        return len(self._routes)

    @property
    def routes(self) -> tuple[Route, ...]:
        """Every way: from each module that stashes a key to each that pops it, or peeks at it."""
        return tuple(self._ends)

    def consumers(self, namespace: Namespace | None, name: str) -> tuple[str, ...]:
        """The paths of all that pop a value or peek at it."""
        return tuple(route.consumer for route in self._ends if route.key == (namespace, name))

    def copy_policy(self, partition: int) -> list[tuple[int, Namespace | None, str]]:
        """List what a partition must receive from others, each once, straight from its producer.

        Args:
            partition: Its number.

        Returns:
            `(source partition, namespace, name)`, sorted by source.
        """
        found: set[tuple[int, Namespace | None, str]] = set()
        for route in self._ends:
            source, target = self._partition_of(route.producer), self._partition_of(route.consumer)
            if source is not None and target == partition and source != target:
                found.add((source, *route.key))
        return sorted(found, key=lambda each: (each[0], order_of(each[1]), each[2]))

    def requires_copy(self, ns: Namespace | None, name: str) -> bool:
        """Tell whether a value goes from one partition to another; False for a route that is not known."""
        return any(
            route.key == (ns, name) and self._partition_of(route.producer) != self._partition_of(route.consumer)
            for route in self._ends
        )

    def _partition_of(self, path: str) -> int | None:
        """The partition that a module is in; None where there is none."""
        for number, children in enumerate(self.partitions):
            if any(path == child or not child or path.startswith(f"{child}/") for child in children):
                return number
        return None

    def __repr__(self) -> str:
        return f"SkipLayout({self._routes!r})"


def skip_layout(module: Module, partitions: Sequence[Sequence[Any]] | None = None) -> SkipLayout:
    """Find the static routes of the skips of a program.

    Args:
        module: The program.
        partitions: Lists of children (modules, or their paths): those of each worker, process or context.

    Returns:
        A mapping from `(namespace, name)` to `(producer path, consumer path)`.

    Raises:
        ArgumentError: It is no module, or a partition holds something that is no part of the program.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     pass
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     pass
        >>> dict(skip_layout(sm.Sequential([Retrieve(), sm.Identity(), Cite()])))
        {(None, 'doc'): ('0', '2')}

    Source: torchgpipe's `inspect_skip_layout`; differs: paths, at any depth.
    """
    wiring = Wiring(module)
    known = {path_str(visit.path) for visit in walk(module)} if partitions else set[str]()
    parts = [[path for child in children for path in _paths(module, child, known)] for children in partitions or ()]
    return SkipLayout(wiring.routes, parts)


def _paths(root: Module, child: Any, known: Container[str]) -> list[str]:
    """The paths of a child of a partition, which may be given by one, as text or steps, or by its place in a row."""
    if isinstance(child, str | int | tuple):
        path = path_str(cast("KeyPath", child)) if isinstance(child, tuple) else str(child)
        found = [path] if path in known else []
    else:
        found = [path_str(path) for path in paths_of(root, child)]
    if not found:
        raise ArgumentError(f"skip_layout: {child!r:.100} of a partition is no part of the program.")
    return found

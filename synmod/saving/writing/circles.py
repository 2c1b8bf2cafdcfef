"""Constructor arguments that need one another: what a load could not make is not written.

An argument whose attribute was assigned anew is written with its present value. Where that closes a circle, as in
`a.next = b; b.next = a`, the attribute alone says so, and the argument goes back to what was given at construction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.saving.vocabulary.problems import Problems
    from synmod.saving.writing.terms import Place

__all__ = ["Need", "Needs"]


class Need(NamedTuple):
    """An argument that holds nodes.

    Attributes:
        key: The module and the parameter, the same in every attempt to write.
        nodes: The nodes in it.
        is_later: Whether it is the present value of an attribute that was assigned after construction.
        place: For messages.
    """

    key: tuple[int, str]
    nodes: list[int]
    is_later: bool
    place: Place


class Needs:
    """The arguments of all modules that hold nodes, by module."""

    def __init__(self) -> None:
        self._needs: dict[int, list[Need]] = {}

    def note(self, node: int, need: Need) -> None:
        """Add an argument of a module."""
        self._needs.setdefault(node, []).append(need)

    def to_take_back(self, problems: Problems) -> set[tuple[int, str]]:
        """Find the arguments that must go back so that no constructor waits for itself.

        A circle without such an argument is a problem.
        """
        found: set[tuple[int, str]] = set()
        while circle := self._circle():
            node, need = next(((node, need) for node, need in circle if need.is_later), circle[-1])
            self._needs[node].remove(need)
            if need.is_later:
                found.add(need.key)
            else:
                problems.note(need.place.text([]), "an argument that needs the module itself", "override get_config")
        return found

    def _circle(self) -> list[tuple[int, Need]]:
        """Find modules whose arguments need one another, each with the argument that leads on; iteratively."""
        done: set[int] = set()
        for start in self._needs:
            on_way: dict[int, int] = {}  # node -> its place on the way
            way: list[tuple[int, Need]] = []
            edges: list[Iterator[tuple[Need, int]]] = []
            target = start
            while True:
                if target not in done and target not in on_way:
                    on_way[target] = len(edges)
                    edges.append(self._edges(target))
                step = next(edges[-1], None) if edges else None
                if step is not None:
                    need, target = step
                    way[len(edges) - 1 :] = [(next(reversed(on_way)), need)]
                    if target in on_way:
                        return way[on_way[target] :]
                    continue
                if not edges:
                    break
                edges.pop()
                target = on_way.popitem()[0]
                done.add(target)
        return []

    def _edges(self, node: int) -> Iterator[tuple[Need, int]]:
        """The arguments of a module with each node in them."""
        return ((need, target) for need in self._needs.get(node, ()) for target in need.nodes)

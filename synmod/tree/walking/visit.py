"""Visits: one record for each edge of a program that the walk follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from synmod.leaves.names import KeyPath, path_str

if TYPE_CHECKING:
    from synmod.tree.walking.node_types import NodeImpl

Kind = Literal["node", "container", "variable", "static"]
Step: TypeAlias = Any
Pairs: TypeAlias = list[tuple[Step, Any]]


NO_CHILDREN: Pairs = []
NO_PARTS: dict[Any, Any] = {}


class Visit:
    """One edge of a program, followed.

    Attributes:
        value: What the edge leads to.
        kind: `"node"`, `"container"`, `"variable"` or `"static"`.
        index: Identity number of a node or Variable, given at its first visit; None for the rest.
        first: Whether this is the first visit; False for an alias.
        step: The last step of the path.
        above: The visit of what holds it, None for the root.
        masked: Whether a frozen module is above it, or it is one.
        children: The `(step, child)` pairs of a container, or of a node that is descended.
        aux: What makes up a container besides its children.
        impl: The rules of a node whose children are visited; None for aliases and the rest.
        parts: Room for what a fold makes of the children.
    """

    __slots__ = ("above", "first", "index", "kind", "masked", "step", "value")
    children: Pairs = NO_CHILDREN
    aux: Any = None
    impl: NodeImpl | None = None
    parts: dict[Any, Any] = NO_PARTS

    def __init__(
        self, above: Visit | None, step: Step, value: Any, kind: Kind, index: int | None, first: bool, masked: bool
    ) -> None:
        self.above = above
        self.step = step
        self.value = value
        self.kind: Kind = kind
        self.index = index
        self.first = first
        self.masked = masked

    @property
    def path(self) -> KeyPath:
        """The steps from the root; made when asked for."""
        steps: list[str | int] = []
        visit = self
        while visit.above is not None:
            steps.append(visit.step)
            visit = visit.above
        steps.reverse()
        return tuple(steps)

    def __repr__(self) -> str:
        alias = "" if self.first else ", alias"
        return f"Visit({path_str(self.path)!r}, {self.kind} {type(self.value).__name__}, index={self.index}{alias})"


class OpenVisit(Visit):
    """A visit of something with children; leaves, of which there are most, do without the room for those."""

    __slots__ = ("aux", "children", "impl", "parts")

    def __init__(  # pyright: ignore[reportMissingSuperCall]  # hot: the same written out
        self, above: Visit | None, step: Step, value: Any, kind: Kind, index: int | None, first: bool, masked: bool
    ) -> None:
        self.above = above
        self.step = step
        self.value = value
        self.kind = kind
        self.index = index
        self.first = first
        self.masked = masked
        self.children = NO_CHILDREN
        self.aux = None
        self.impl = None
        self.parts = NO_PARTS

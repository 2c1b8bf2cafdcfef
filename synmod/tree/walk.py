"""The one walk over a program. Everything that looks into one is a fold over it.

Definition order: a node, then its own values (containers and what is in them, down to the next nodes), then its child
nodes, each one completely, depth first. Iterative, linear in edges; an alias visit of a node is not descended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from synmod.errors import GraphError
from synmod.leaves.paths import KeyPath, path_str
from synmod.tree.kinds import KNOWN, NODE, STATIC, VARIABLE, Kinds, open_container
from synmod.tree.node_types import NodeImpl, own_impl
from synmod.tree.refmap import RefMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Kind = Literal["node", "container", "variable", "static"]
Order = Literal["pre", "post"]
Step: TypeAlias = Any
Pairs: TypeAlias = list[tuple[Step, Any]]


class Visit:
    """One edge of a program, followed.

    Attributes:
        value: What the edge leads to.
        kind: `"node"`, `"container"`, `"variable"` or `"static"`.
        index: Identity number of a node or Variable, given at its first visit; None for the rest.
        first: Whether this is the first visit; False for an alias.
        step: The last step of the path.
        above: The visit of what holds it, None for the root.
        children: The `(step, child)` pairs of a container, or of a node that is descended.
        aux: What makes up a container besides its children.
        masked: Whether a frozen module is above it, or it is one.
    """

    __slots__ = ("above", "aux", "children", "first", "index", "kind", "masked", "step", "value")

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
        self.children: Pairs = _NONE
        self.aux: Any = None

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


_NONE: Pairs = []


class LiveReader:
    """How the walk reads live objects; a reader of graph definitions has the same methods."""

    __slots__ = ("kinds",)

    def __init__(self) -> None:
        self.kinds = Kinds(KNOWN)

    def entity(self, value: Any) -> Any:
        """Give the object whose identity counts."""
        return value

    def enter(self, node: Any) -> tuple[Pairs, bool]:
        """Give the children of a node, and whether it masks the Variables below."""
        impl: NodeImpl = own_impl(type(node))  # pyright: ignore[reportAssignmentType]  (its kind is NODE)
        return impl.pairs(node), impl.own_trainable is not None and not impl.own_trainable(node)

    def open(self, value: Any, kind: int, visit: Visit) -> tuple[Pairs, Any] | None:
        """Take a container apart; None where it is a static."""
        return open_container(value, kind, self.kinds, visit)


def walk(
    root: Any,
    *,
    order: Order = "pre",
    statics: bool = False,
    every_path: bool = False,
    key: Callable[[Any], Any] | None = None,
    seen: RefMap[int] | None = None,
    reader: Any = None,
) -> Iterator[Visit]:
    """Visit everything below a root, in definition order.

    Args:
        root: A node, a Variable, or a container of them.
        order: `"pre"`: parents first; `"post"`: parents after what is below them.
        statics: Whether statics are visited.
        every_path: Follow every acyclic path, instead of each object once; back edges are left out.
        key: Sorts the attributes of each node, stable.
        seen: Identity numbers given before, and where new ones are written.
        reader: How to read what is met; live objects by default.

    Yields:
        A `Visit` for each edge. With `"post"`, a node or container comes after what is below it.

    Raises:
        GraphError: Keys, sets or cycles of containers that cannot be walked. Names the path.

    Source: graph.md section 1.2, NNX `iter_graph`; differs: iterative, one for all folds.
    """
    reader = reader or LiveReader()
    kinds: Kinds = reader.kinds
    numbers = RefMap[int]().entries if seen is None else seen.entries
    on_path: set[int] = set()
    post = order == "post"
    stack: list[Any] = []
    above: Visit | None = None
    pairs: Pairs = [(None, root)]
    while True:
        deferred: list[Any] = []
        yield from _own_values(reader, kinds, numbers, above, pairs, deferred, statics, post)
        deferred.reverse()
        stack += deferred
        while stack:
            item = stack.pop()
            if type(item) is Visit:
                on_path.discard(id(item.value))
                if post:
                    yield item
                continue
            above, step, value = item
            node = reader.entity(value)
            known = numbers.get(id(node))
            if known is None:
                number = len(numbers)
                numbers[id(node)] = (node, number)
            elif not every_path:
                yield Visit(above, step, node, "node", known[1], False, above is not None and above.masked)
                continue
            elif id(node) in on_path:
                continue
            else:
                number = known[1]
            pairs, masks = reader.enter(node)
            visit = Visit(
                above, step, node, "node", number, known is None, masks or (above is not None and above.masked)
            )
            if key is not None:
                pairs = _sorted(pairs, key)
            visit.children = pairs
            if post or every_path:
                stack.append(visit)
                on_path.add(id(node))
            if not post:
                yield visit
            above = visit
            break
        else:
            return


def _own_values(
    reader: Any,
    kinds: Kinds,
    numbers: dict[int, tuple[Any, int]],
    above: Visit | None,
    pairs: Pairs,
    deferred: list[Any],
    statics: bool,
    post: bool,
) -> Iterator[Visit]:
    """Visit what one node holds itself, and note its child nodes (and the containers to close after them)."""
    masked = above is not None and above.masked
    open_now: set[int] = set()
    levels: list[tuple[Visit | None, Iterator[tuple[Step, Any]], int]] = [(above, iter(pairs), 0)]
    while levels:
        parent, remaining, deferred_before = levels[-1]
        for step, value in remaining:
            kind = kinds[type(value)]
            if kind == STATIC:
                if statics:
                    yield Visit(parent, step, value, "static", None, True, masked)
            elif kind == VARIABLE:
                variable = reader.entity(value)
                known = numbers.get(id(variable))
                if known is None:
                    number = len(numbers)
                    numbers[id(variable)] = (variable, number)
                    yield Visit(parent, step, variable, "variable", number, True, masked)
                else:
                    yield Visit(parent, step, variable, "variable", known[1], False, masked)
            elif kind == NODE:
                deferred.append((parent, step, value))
            else:
                visit = Visit(parent, step, value, "container", None, True, masked)
                if id(value) in open_now:
                    raise GraphError(
                        f"At {path_str(visit.path)!r}: a {type(value).__name__} is inside itself: "
                        "cycles may pass only through nodes."
                    )
                opened = reader.open(value, kind, visit)
                if opened is None:
                    visit.kind = "static"
                    if statics:
                        yield visit
                    continue
                visit.children, visit.aux = opened
                open_now.add(id(value))
                if not post:
                    yield visit
                levels.append((visit, iter(visit.children), len(deferred)))
                break
        else:
            levels.pop()
            if levels and parent is not None:
                open_now.discard(id(parent.value))
                if post:
                    if len(deferred) > deferred_before:
                        deferred.append(parent)
                    else:
                        yield parent


def _sorted(pairs: Pairs, key: Callable[[Any], Any]) -> Pairs:
    return sorted(pairs, key=lambda pair: key(pair[0]))

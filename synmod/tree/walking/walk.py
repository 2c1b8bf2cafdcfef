"""The one walk over a program. Everything that looks into one is a fold over it.

Definition order: a node, then its own values (containers and what is in them, down to the next nodes), then its child
nodes, each one completely, depth first. Iterative, linear in edges; an alias visit of a node is not descended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from synmod.errors import GraphError
from synmod.leaves.names import path_str
from synmod.tree.variable.containers import class_of
from synmod.tree.walking.kinds import KNOWN, NODE, STATIC, VARIABLE, Kinds, check_keys, open_container
from synmod.tree.walking.node_types import Impls
from synmod.tree.walking.refmap import RefMap
from synmod.tree.walking.visit import NO_CHILDREN, OpenVisit, Pairs, Step, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Order = Literal["pre", "post"]
_Later: TypeAlias = "tuple[Visit | None, Step, Any]"


class Reader(Protocol):
    """How the walk reads what it meets: live objects, or the definitions of a graph."""

    kinds: Kinds

    @property
    def entity(self) -> Callable[[Any], Any] | None:
        """What gives the object whose identity counts; None where that is what is met."""
        ...

    def enter(self, node: Any, visit: Visit) -> tuple[Pairs, bool]:
        """Give the children of a node, and whether it masks the Variables below."""
        ...

    def open(self, value: Any, kind: int, visit: Visit) -> tuple[Pairs, Any] | None:
        """Take a container apart, one level; None where it is a static."""


class LiveReader:
    """How the walk reads live objects."""

    __slots__ = ("entity", "impls", "kinds")

    def __init__(self) -> None:
        self.kinds = Kinds(KNOWN)
        self.impls = Impls()
        self.entity: Callable[[Any], Any] | None = None

    def enter(self, node: Any, visit: Visit) -> tuple[Pairs, bool]:
        """Give the children of a node, and whether it masks the Variables below."""
        impl = visit.impl = self.impls[class_of(node)]
        pairs = impl.pairs(node)
        if not impl.is_module:  # of which the keys are attribute names
            check_keys(pairs, self.kinds, visit)
        return pairs, impl.own_trainable is not None and not impl.own_trainable(node)

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
    recursive: bool = True,
    seen: RefMap[int] | None = None,
    reader: Reader | None = None,
) -> Iterator[Visit]:
    """Visit everything below a root, in definition order.

    Args:
        root: A node, a Variable, or a container of them.
        order: `"pre"`: parents first; `"post"`: parents after what is below them.
        statics: Whether statics are visited.
        every_path: Follow every acyclic path, instead of each object once; back edges are left out.
        key: Sorts the attributes of each node, stable.
        recursive: Whether to go into nodes below the first; without, they are visited and left shut.
        seen: Identity numbers given before, and where new ones are written.
        reader: How to read what is met; live objects by default.

    Yields:
        A `Visit` for each edge. With `"post"`, a node or container comes after what is below it.

    Raises:
        GraphError: Keys, sets or cycles of containers that cannot be walked. Names the path.

    Source: NNX `iter_graph`; differs: iterative, one for all folds.
    """
    return _Walk(reader or LiveReader(), order == "post", statics, every_path, key, recursive, seen).visits(root)


class _Walk:
    """One walk: what it was asked for, and the numbers it has given."""

    __slots__ = ("entity", "every_path", "key", "kinds", "numbers", "on_path", "post", "reader", "recursive", "statics")

    def __init__(
        self,
        reader: Reader,
        post: bool,
        statics: bool,
        every_path: bool,
        key: Callable[[Any], Any] | None,
        recursive: bool,
        seen: RefMap[int] | None,
    ) -> None:
        self.recursive = recursive
        self.reader = reader
        self.kinds = reader.kinds
        self.entity = reader.entity
        self.post = post
        self.statics = statics
        self.every_path = every_path
        self.key = key
        self.numbers = RefMap[int]().entries if seen is None else seen.entries
        self.on_path: set[int] = set()

    def visits(self, root: Any) -> Iterator[Visit]:
        """Visit node after node: each with its own values, its child nodes kept on a stack for later."""
        later: list[Visit | _Later] = []
        yield from self._own_values(None, [(None, root)], later)
        later.reverse()
        while later:
            item = later.pop()
            if isinstance(item, Visit):  # of something below which all is done
                self.on_path.discard(id(item.value))
                if self.post:
                    yield item
                continue
            visit = self._arrive(*item)
            if visit is None:
                continue
            if visit.children is NO_CHILDREN:
                yield visit
                continue
            if self.post or self.every_path:
                later.append(visit)
            if not self.post:
                yield visit
            deferred: list[Visit | _Later] = []
            yield from self._own_values(visit, visit.children, deferred)
            deferred.reverse()
            later += deferred

    def _arrive(self, above: Visit | None, step: Step, value: Any) -> Visit | None:
        """Come to a node: number it and open it, unless it was open before; None where a path would bite its tail."""
        node = value if self.entity is None else self.entity(value)
        known = self.numbers.get(id(node))
        masked = above is not None and above.masked
        if known is None:
            number = len(self.numbers)
            self.numbers[id(node)] = (node, number)
        else:
            number = known[1]
            if not self.every_path:
                return Visit(above, step, node, "node", number, False, masked)
            if id(node) in self.on_path:
                return None
        if not self.recursive and above is not None:
            return Visit(above, step, node, "node", number, known is None, masked)
        visit = OpenVisit(above, step, node, "node", number, known is None, masked)
        visit.children, masks = self.reader.enter(node, visit)
        if masks:
            visit.masked = True
        if self.key is not None:
            visit.children = _sorted(visit.children, self.key)
        if self.every_path:
            self.on_path.add(id(node))
        return visit

    def _own_values(
        self, above: Visit | None, pairs: Pairs, deferred: list[Visit | _Later]
    ) -> list[Visit] | Iterator[Visit]:
        """Visit what one node holds itself, and note its child nodes (and the containers to close after them)."""
        found: list[Visit] = []
        try:
            self._gather_own_values(above, pairs, deferred, found)
        except GraphError as error:
            return _then_raise(found, error)
        return found

    def _gather_own_values(  # the hottest loop of the room, so it is written flat
        self, above: Visit | None, pairs: Pairs, deferred: list[Visit | _Later], found: list[Visit]
    ) -> None:
        kinds, entity, numbers, statics, post = self.kinds, self.entity, self.numbers, self.statics, self.post
        masked = above is not None and above.masked
        levels: list[tuple[Visit | None, Iterator[tuple[Step, Any]], int]] = []
        open_now: set[int] = set()
        parent, remaining, deferred_before = above, iter(pairs), 0
        while True:
            for step, value in remaining:
                kind = kinds[type(value)]
                if kind == STATIC:
                    if statics:
                        found.append(Visit(parent, step, value, "static", None, True, masked))
                elif kind == VARIABLE:
                    if entity is not None:
                        value = entity(value)
                    known = numbers.get(id(value))
                    if known is None:
                        number = len(numbers)
                        numbers[id(value)] = (value, number)
                        found.append(Visit(parent, step, value, "variable", number, True, masked))
                    else:
                        found.append(Visit(parent, step, value, "variable", known[1], False, masked))
                elif kind == NODE:
                    deferred.append((parent, step, value))
                else:
                    visit = self._container(parent, step, value, kind, open_now)
                    if visit.kind == "static":
                        if statics:
                            found.append(visit)
                        continue
                    if not post:
                        found.append(visit)
                    levels.append((parent, remaining, deferred_before))
                    parent, remaining, deferred_before = visit, iter(visit.children), len(deferred)
                    break
            else:
                if not levels:
                    return
                assert parent is not None
                open_now.discard(id(parent.value))
                if post:
                    (found if len(deferred) == deferred_before else deferred).append(parent)
                parent, remaining, deferred_before = levels.pop()

    def _container(self, above: Visit | None, step: Step, value: Any, kind: int, open_now: set[int]) -> Visit:
        """Come to a container and open it; a static after all where it cannot be opened and need not."""
        visit = OpenVisit(above, step, value, "container", None, True, above is not None and above.masked)
        if id(value) in open_now:
            raise GraphError(
                f"At {path_str(visit.path)!r}: a {type(value).__name__} is inside itself: "
                "cycles may pass only through nodes."
            )
        opened = self.reader.open(value, kind, visit)
        if opened is None:
            visit.kind = "static"
        else:
            visit.children, visit.aux = opened
            open_now.add(id(value))
        return visit


def _then_raise(found: list[Visit], error: GraphError) -> Iterator[Visit]:
    """Give what was visited before an error, then raise where the walk stands."""
    yield from found
    raise error


def _sorted(pairs: Pairs, key: Callable[[Any], Any]) -> Pairs:
    return sorted(pairs, key=lambda pair: key(pair[0]))

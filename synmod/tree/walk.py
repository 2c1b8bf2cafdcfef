"""The one walk over a program. Everything that inspects a program is a fold of it.

Definition order: a node, then its own values (containers and their content, down to the next nodes), then its child
nodes, each one completely, depth first. Iterative and linear in edges; the walk does not descend into alias visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from synmod import errors
from synmod.leaves import INT_END, KeyPath, path_str
from synmod.leaves.nests import MAX_DEPTH, Pairs, parts_of

from .nodes import (
    KNOWN,
    NODE,
    SEQUENCE,
    SET,
    STATIC,
    TREE,
    VARIABLE,
    Impls,
    Kinds,
    NodeImpl,
    holds_node,
    kind_of,
    where,
)

V = TypeVar("V")

Kind = Literal["node", "container", "variable", "static"]
Order = Literal["pre", "post"]
Step: TypeAlias = Any


class RefMap(MutableMapping[Any, V], Generic[V]):
    """A mapping by identity that keeps its keys alive.

    Keys may be unhashable; equal keys that are different objects are two keys.

    Args:
        pairs: First entries: a mapping, or `(key, value)` pairs.

    Attributes:
        entries: `(key, value)` by the identity of the key.

    Example:
        >>> counts = RefMap([([], 1), ([], 2)])
        >>> len(counts)
        2

    Source: Flax NNX `RefMap`.
    """

    __slots__ = ("entries",)

    def __init__(self, pairs: Mapping[Any, V] | Iterable[tuple[Any, V]] = ()) -> None:
        items = cast("Iterable[tuple[Any, V]]", pairs.items() if isinstance(pairs, Mapping) else pairs)
        self.entries: dict[int, tuple[Any, V]] = {id(key): (key, value) for key, value in items}

    def __getitem__(self, key: Any) -> V:
        try:
            return self.entries[id(key)][1]
        except KeyError:
            raise KeyError(f"this object of type {type(key).__name__} is not in the map") from None

    def __setitem__(self, key: Any, value: V) -> None:
        self.entries[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        self[key]
        del self.entries[id(key)]

    def __contains__(self, key: object) -> bool:
        return id(key) in self.entries

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in list(self.entries.values()))

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RefMap):
            return NotImplemented
        rest = cast("RefMap[Any]", other)
        return len(self) == len(rest) and all(key in rest and rest[key] == value for key, value in self.items())

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (mutable)

    def __repr__(self) -> str:
        inside = ", ".join(f"<{type(key).__name__}>: {value!r}" for key, value in self.entries.values())
        return f"RefMap({{{inside}}})"


NO_CHILDREN: Final = cast("Pairs", ())


@dataclass(slots=True, eq=False, repr=False)
class Visit:
    """One edge of a program, followed by the walk.

    Attributes:
        parent: The visit of the parent; None for the root.
        step: The last step of the path.
        value: The object that the edge leads to.
        kind: `"node"`, `"container"`, `"variable"` or `"static"`.
        index: Identity number of a node or Variable, given at its first visit; None for other kinds.
        first: Whether this is the first visit of the object; False for an alias.
        masked: Whether the object is a frozen module or below one.
        children: The `(step, child)` pairs of a container, or of a node that the walk descends into.
        aux: Data to rebuild a container besides its children.
        impl: The rules of a node whose children are visited; None for aliases and other kinds.
        parts: A slot for the results of a fold; None at first.
    """

    parent: Visit | None
    step: Step
    value: Any
    kind: Kind
    index: int | None
    first: bool
    masked: bool
    children: Pairs = NO_CHILDREN
    aux: Any = None
    impl: NodeImpl | None = None
    parts: Any = None

    @property
    def path(self) -> KeyPath:
        """The steps from the root, computed on each read."""
        steps: list[str | int] = []
        visit = self
        while visit.parent is not None:
            steps.append(visit.step)
            visit = visit.parent
        steps.reverse()
        return tuple(steps)

    def __repr__(self) -> str:
        alias = "" if self.first else ", alias"
        return f"Visit({path_str(self.path)!r}, {self.kind} {type(self.value).__name__}, index={self.index}{alias})"


class Reader:
    """Reads live objects for the walk; a subclass reads the definitions of a graph.

    Attributes:
        kinds: Kinds by type.
        entity: Returns the object that a reference stands for; None if there are no references.
    """

    entity: Callable[[Any], Any] | None = None

    def __init__(self) -> None:
        self.kinds = Kinds(KNOWN)
        self.impls = Impls()

    def enter(self, node: Any, visit: Visit) -> tuple[Pairs, bool]:
        """Return the children of a node, and whether it masks the Variables below."""
        impl = visit.impl = self.impls[type(node)]
        pairs = [] if impl.by_reference else impl.pairs(node)
        if not impl.is_module:  # the keys of a module are attribute names
            self._check_keys(pairs, [child for _, child in pairs], visit)
        return pairs, impl.own_trainable is not None and not impl.own_trainable(node)

    def open(self, value: Any, kind: int, visit: Visit) -> tuple[Pairs, Any] | None:
        """Take a container apart, one level.

        Returns:
            The pairs, and other data to rebuild it; None if the container is a static: a set, or a dict of plain values
            with keys that cannot be steps.

        Raises:
            GraphError: A Node or Variable is in a set, or below a key that cannot be a step. Names the path.
        """
        if kind == SEQUENCE:
            return [*enumerate(value)], None
        if kind == SET:
            if holds_node(value, kinds=self.kinds):
                raise errors.GraphError(
                    f"{where(visit.path)}: a {type(value).__name__} holds a node or Variable, and a set has no order "
                    "and no keys: use a list or a dict."
                )
            return None
        pairs, rest = parts_of(value)
        return (pairs, rest) if self._check_keys(pairs, value, visit) or kind == TREE else None

    def _check_keys(self, pairs: Pairs, holder: Any, visit: Visit) -> bool:
        """Whether all keys can be steps; raise if one cannot and a node or Variable is below."""
        fault = _bad_key(pairs)
        if fault is not None and holds_node(holder, kinds=self.kinds):
            raise errors.GraphError(
                f"{where(visit.path)}: the key {fault}, and a node or Variable is below: keys on the path to one must "
                "be a non-empty str or an int, and distinct as text."
            )
        return fault is None


def _bad_key(pairs: Pairs) -> str | None:
    """Describe the first key that cannot be a step of a path; None if all can.

    Args:
        pairs: `(key, child)` pairs.
    """
    texts: set[str] = set()
    for key, _ in pairs:
        if type(key) is not str and type(key) is not int:
            return f"{key!r:.200} is of type {type(key).__name__}"
        if key == "":
            return "'' is empty"
        if type(key) is int and not -INT_END < key < INT_END:
            return f"of {key.bit_length()} bits is an int of too many digits"
        text = str(key)
        if text in texts:
            return f"{key!r} looks like another key when written as text"
        texts.add(text)
    return None


def check_root(root: object) -> None:
    """Raise if an object cannot be the root of a graph.

    Raises:
        ArgumentError: `root` is not a node, Variable or container.
    """
    kind = kind_of(root)
    if kind == STATIC or (kind == SET and not holds_node(root)):
        raise errors.ArgumentError(
            f"An object of type {type(root).__name__} cannot be the root of a graph: pass a Module, a registered node, "
            "a Variable, or a list or dict of them."
        )


def walk(
    root: Any,
    *,
    order: Order = "pre",
    statics: bool = False,
    every_path: bool = False,
    key: Callable[[Any], Any] | None = None,
    recursive: bool = True,
    indices: RefMap[int] | None = None,
    reader: Reader | None = None,
) -> Iterator[Visit]:
    """Visit everything below a root, in definition order.

    Args:
        root: A node, a Variable, or a container of them.
        order: `"pre"`: parents before children; `"post"`: children before parents.
        statics: Whether statics are visited.
        every_path: Follow every acyclic path, instead of visiting each object once; back edges are left out.
        key: Sort key for the attribute names of each node; the sort is stable.
        recursive: Whether to descend into nodes below the root; if not, they are only visited.
        indices: Identity numbers given before; new numbers are added.
        reader: Reads the objects; live objects by default.

    Yields:
        A `Visit` for each edge.

    Raises:
        GraphError: A key, set, cycle or depth of containers cannot be walked. Names the path.

    Source: NNX `iter_graph`; differs: iterative, one for all folds.
    """
    numbers = RefMap[int]() if indices is None else indices
    options = _Walk(reader or Reader(), order == "post", statics, every_path, key, recursive, numbers.entries)
    return options.visits(root)


_Later: TypeAlias = "tuple[Visit | None, Step, Any]"


@dataclass(slots=True)
class _Walk:
    """One walk: its options, and the numbers given so far."""

    reader: Reader
    post: bool
    statics: bool
    every_path: bool
    key: Callable[[Any], Any] | None
    recursive: bool
    numbers: dict[int, tuple[Any, int]]
    on_path: set[int] = field(default_factory=set[int])

    def visits(self, root: Any) -> Iterator[Visit]:
        """Visit node after node, each with its own values; child nodes wait on a stack."""
        later: list[Visit | _Later] = []
        yield from self._own_values(None, [(None, root)], later)
        later.reverse()
        while later:
            item = later.pop()
            if isinstance(item, Visit):  # everything below it has been visited
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

    def _arrive(self, parent: Visit | None, step: Step, value: Any) -> Visit | None:
        """Number a node and open it, unless it is an alias; None if the edge closes a cycle on the present path."""
        entity = self.reader.entity
        node = value if entity is None else entity(value)
        entry = self.numbers.get(id(node))
        masked = parent is not None and parent.masked
        if entry is None:
            number = len(self.numbers)
            self.numbers[id(node)] = (node, number)
        else:
            number = entry[1]
            if not self.every_path:
                return Visit(parent, step, node, "node", number, False, masked)
            if id(node) in self.on_path:
                return None
        visit = Visit(parent, step, node, "node", number, entry is None, masked)
        if not self.recursive and parent is not None:
            return visit
        visit.children, masks = self.reader.enter(node, visit)
        if masks:
            visit.masked = True
        if self.key is not None:
            key = self.key
            visit.children = sorted(visit.children, key=lambda pair: key(pair[0]))
        if self.every_path:
            self.on_path.add(id(node))
        return visit

    def _own_values(  # the hottest loop of the room, so it is written flat
        self, above: Visit | None, pairs: Pairs, deferred: list[Visit | _Later]
    ) -> list[Visit]:
        """Visit the own values of a node, and defer its child nodes (and the containers to close after them)."""
        visits: list[Visit] = []
        kinds, entity, numbers = self.reader.kinds, self.reader.entity, self.numbers
        statics, post = self.statics, self.post
        masked = above is not None and above.masked
        levels: list[tuple[Visit | None, Iterator[tuple[Step, Any]], int]] = []
        open_now: set[int] = set()
        parent, remaining, deferred_before = above, iter(pairs), 0
        while True:
            for step, value in remaining:
                kind = kinds[type(value)]
                if kind == STATIC:
                    if statics:
                        visits.append(Visit(parent, step, value, "static", None, True, masked))
                elif kind == VARIABLE:
                    if entity is not None:
                        value = entity(value)
                    entry = numbers.get(id(value))
                    if entry is None:
                        number = len(numbers)
                        numbers[id(value)] = (value, number)
                        visits.append(Visit(parent, step, value, "variable", number, True, masked))
                    else:
                        visits.append(Visit(parent, step, value, "variable", entry[1], False, masked))
                elif kind == NODE:
                    deferred.append((parent, step, value))
                else:
                    visit = self._container(parent, step, value, kind, open_now, len(levels))
                    if visit.kind == "static":
                        if statics:
                            visits.append(visit)
                        continue
                    if not post:
                        visits.append(visit)
                    levels.append((parent, remaining, deferred_before))
                    parent, remaining, deferred_before = visit, iter(visit.children), len(deferred)
                    break
            else:
                if not levels:
                    return visits
                assert parent is not None
                open_now.discard(id(parent.value))
                if post:
                    (visits if len(deferred) == deferred_before else deferred).append(parent)
                parent, remaining, deferred_before = levels.pop()

    def _container(
        self, parent: Visit | None, step: Step, value: Any, kind: int, open_now: set[int], depth: int
    ) -> Visit:
        """Open a container; without keys that can be steps, it is a static."""
        visit = Visit(parent, step, value, "container", None, True, parent is not None and parent.masked)
        if id(value) in open_now:
            raise errors.GraphError(
                f"{where(visit.path)}: a {type(value).__name__} is inside itself: cycles may pass only through nodes."
            )
        opened = self.reader.open(value, kind, visit)
        if opened is None:
            visit.kind = "static"
            return visit
        if depth == MAX_DEPTH:
            raise errors.GraphError(f"{where(visit.path)}: containers are nested more than {MAX_DEPTH} deep.")
        visit.children, visit.aux = opened
        open_now.add(id(value))
        return visit

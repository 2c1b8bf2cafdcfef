"""The one walk over a program, with the kinds of objects in it. Everything that inspects a program is a fold of it.

An object is a node, a Variable, a container or a static. The rules of a registered class are stored in an attribute of
the class, so they are freed together with the class.

Definition order: a node, then its own values (containers and their content, down to the next nodes), then its child
nodes, each one completely, depth first. Iterative and linear in edges; the walk does not descend into alias visits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Final, Generic, Literal, NoReturn, TypeAlias, TypeVar, cast, final

from synmod import errors, registry
from synmod.leaves import INT_END, FrozenDict, FrozenList, KeyPath, frozen, path_str, thaw
from synmod.leaves.nests import DICTS, MAX_DEPTH, Pairs, is_namedtuple, is_registered_container, parts_of

from .variable import Immutable, Variable

T = TypeVar("T")
V = TypeVar("V")
Key = str | int

STATIC, VARIABLE, NODE, SEQUENCE, DICT, TREE, SET = range(7)
"""Kinds of objects; TREE is every container that is not a list, tuple, dict or set."""

KNOWN: Final[dict[type[Any], int]] = {
    **dict.fromkeys((str, int, float, bool, type(None)), STATIC),
    **dict.fromkeys((list, tuple), SEQUENCE),
    **dict.fromkeys(DICTS, DICT),
}
"""Kinds that no registration can change."""


def where(path: KeyPath) -> str:
    """Return the beginning of a message about a path."""
    return f"At {path_str(path)!r}" if path else "At the root"


# -- statics -----------------------------------------------------------------------------------------------------------


@final
class Static(Immutable, Generic[T]):
    """A value held by reference, outside the graph; equal only to a Static of the same object."""

    __slots__ = ("value",)

    value: T

    def __init__(self, value: T) -> None:
        self._put(value=value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and other.value is self.value  # pyright: ignore[reportUnknownMemberType]

    def __hash__(self) -> int:
        return id(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Static, (self.value,)

    def __repr__(self) -> str:
        return f"static({self.value!r:.80})"


def static(x: Any) -> Any:
    """Keep an object out of the graph, even a Module.

    The object is kept by reference, never descended into, and not part of fingerprints or files: after a load the
    constructor must set it again. An attribute reads as `x`; inside a container it stays a `Static` with `.value`.

    Args:
        x: Any object: a client, a lock, a cache.

    Returns:
        A `Static`; typed as Any, because as an attribute it reads as `x`.

    Example:
        >>> [static(len)][0].value
        <built-in function len>

    Source: NNX `Static`, Equinox `field(static=True)`.
    """
    return x if isinstance(x, Static) else Static(x)  # pyright: ignore[reportUnknownVariableType]


# -- node types --------------------------------------------------------------------------------------------------------

_RULES: Final = "__synmod_node__"
_FIXED: Final[dict[type[Any], NodeImpl]] = {}  # classes written in C, which do not accept attributes


def _refuse(*_: Any) -> NoReturn:
    """Raise for a change of a by-reference node, such as a language model, which has no children."""
    raise errors.GraphError("A node held by reference has no children, and can only be created by loading.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeImpl:
    """The rules of one node type; the fields up to `by_reference` are those of `register_graph_node_type`.

    Attributes:
        type: The class.
        children: Returns the pairs without the metadata, cheaper than `flatten`; the caller may keep a list.
        metadata: Returns the metadata without the pairs, cheaper than `flatten`.
        own_trainable: Whether the node's own `trainable` is set; if not, all Variables below are masked.
        map_refs: Returns the metadata with each `x` that may be a node, a Variable or a reference to one replaced by
            `fn(x)`; `fn` returns anything else unchanged.
        adopt: `adopt(node, metadata)` sets metadata with resolved references, after all nodes of a copy are made;
            before, `create_empty` gets it with unresolved references.
        compared: Returns the part of a `NodeDef`'s metadata that is compared: a nest of dicts, lists and tuples whose
            leaves are statics or references.
        rewrite: `rewrite(node, metadata, pairs)` changes a node in place to match metadata and pairs; by default the
            node is emptied and filled, and if the metadata has changed, gets the `__dict__` of a new empty node.
        record: Returns the bookkeeping of a node whose structural edits are announced (`paths.Record`).
        unseal: Opens the structure of a new node for editing.
        unbuilt: Whether the node has not made its Variables yet, so that they cannot be listed.
        is_module: Whether the node is a Module, and so a submodule.
        is_token: Whether the node is an identity without children: copies get a new one wherever it occurs.
        subclasses: Whether derived classes follow the same rules without registration.
    """

    type: type
    flatten: Callable[[Any], tuple[Iterable[tuple[Key, Any]], Any]]
    set_key: Callable[[Any, Key, Any], None] = _refuse
    pop_key: Callable[[Any, Key], Any] = _refuse
    create_empty: Callable[[Any], Any] = _refuse
    clear: Callable[[Any], None] | None = None
    init: Callable[[Any, Pairs], None] | None = None
    by_reference: bool = False
    children: Callable[[Any], Iterable[tuple[Key, Any]]] | None = None
    metadata: Callable[[Any], Any] | None = None
    own_trainable: Callable[[Any], bool] = lambda _: True
    map_refs: Callable[[Any, Callable[[Any], Any]], Any] = lambda metadata, _: metadata
    adopt: Callable[[Any, Any], None] = lambda _node, _metadata: None
    compared: Callable[[Any], Any] = lambda definition: definition.metadata
    rewrite: Callable[[Any, Any, Pairs], None] | None = None
    record: Callable[[Any], Any] = lambda _: None
    unseal: Callable[[Any], None] = lambda _: None
    unbuilt: Callable[[Any], bool] = lambda _: False
    is_module: bool = False
    is_token: bool = False
    subclasses: bool = False

    def pairs(self, node: Any) -> Pairs:
        """Return the children with their keys."""
        children = self.flatten(node)[0] if self.children is None else self.children(node)
        return children if isinstance(children, list) else list(children)

    def metadata_of(self, node: Any) -> Any:
        """Return the metadata; JSON is frozen, so that later changes do not reach a graph definition."""
        metadata = self.flatten(node)[1] if self.metadata is None else self.metadata(node)
        if type(metadata) not in (dict, list):
            return metadata
        try:
            return frozen(metadata)
        except errors.DataError:  # not JSON: refused later, only where it must be encoded
            return metadata

    def make(self, metadata: Any) -> Any:
        """Make a node without children from its metadata, thawed if it is JSON."""
        return self.create_empty(thaw(metadata) if type(metadata) in (FrozenDict, FrozenList) else metadata)

    def fill(self, node: Any, pairs: Pairs) -> None:
        """Put the children into a new, empty node."""
        if self.init is not None:
            self.init(node, pairs)
        else:
            for key, child in pairs:
                self.set_key(node, key, child)


def register_graph_node_type(
    cls: type[Any],
    *,
    flatten: Callable[[Any], tuple[Iterable[tuple[Key, Any]], Any]],
    set_key: Callable[[Any, Key, Any], None],
    pop_key: Callable[[Any, Key], Any],
    create_empty: Callable[[Any], Any],
    clear: Callable[[Any], None] | None = None,
    init: Callable[[Any, Pairs], None] | None = None,
    by_reference: bool = False,
) -> None:
    """Register a class whose instances are nodes: tracked, split, cloned and saved like modules.

    Args:
        cls: The class; instances of exactly this class are nodes.
        flatten: `flatten(x)` returns `(key, child)` pairs in order, and metadata (JSON or None).
        set_key: `set_key(x, key, value)` writes one child.
        pop_key: `pop_key(x, key)` removes one child and returns it.
        create_empty: `create_empty(metadata)` makes a node without children.
        clear: `clear(x)` empties a node for a merge in place; by default `pop_key` for each child.
        init: `init(x, pairs)` fills a new node at once; by default `set_key` for each pair.
        by_reference: For handles without children: `merge` and `clone` keep the same object; only loading makes one.

    Raises:
        GraphError: The class is registered already, or is a container or a Variable.
        ArgumentError: `cls` is not a class.

    Example:
        >>> class Store:
        ...     def __init__(self):
        ...         self.entries = {}
        >>> register_graph_node_type(
        ...     Store,
        ...     flatten=lambda x: (list(x.entries.items()), None),
        ...     set_key=lambda x, key, value: x.entries.__setitem__(key, value),
        ...     pop_key=lambda x, key: x.entries.pop(key),
        ...     create_empty=lambda metadata: Store(),
        ... )

    Source: Flax NNX `register_graph_node_type`.
    """
    register_impl(NodeImpl(cls, flatten, set_key, pop_key, create_empty, clear, init, by_reference))


def register_impl(impl: NodeImpl) -> None:
    """Register a node type with all its rules, including those that are not public.

    Raises:
        GraphError: The class is registered already, or is a container or a Variable.
        ArgumentError: It is not a class.
    """
    cls: type[Any] = impl.type
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
        raise errors.ArgumentError(f"A node type is a class, not {cls!r:.200}: pass type(x).")
    if own_impl(cls) is not None or is_registered_container(cls):
        raise errors.GraphError(f"Node type {cls.__module__}.{cls.__qualname__} is already registered.")
    if cls in KNOWN or cls is deque or issubclass(cls, Variable | set | frozenset):
        raise errors.GraphError(f"{cls.__qualname__} cannot be a node type: it is already a container or a Variable.")
    try:
        type.__setattr__(cls, _RULES, impl)
    except TypeError:
        _FIXED[cls] = impl


def own_impl(cls: type[Any]) -> NodeImpl | None:
    """Return the rules that instances of a class follow; None if they are not nodes. Hot."""
    rules: Any = getattr(cls, _RULES, None)
    if isinstance(rules, NodeImpl) and (rules.type is cls or rules.subclasses):
        return rules
    if rules is None and not _FIXED:
        return None
    for base in cls.__mro__:
        impl: NodeImpl | None = vars(base).get(_RULES) or _FIXED.get(base)
        if impl is not None and (base is cls or impl.subclasses):
            return impl
    return None


def is_node_type(cls: type[Any]) -> bool:
    """Whether instances of a class are nodes."""
    return own_impl(cls) is not None


def is_token(x: object) -> bool:
    """Whether an object is a token: a node that is only an identity."""
    impl = own_impl(type(x))
    return impl is not None and impl.is_token


def get_node_impl(x: object) -> NodeImpl:
    """Return the rules of a node.

    Args:
        x: A node.

    Returns:
        Its NodeImpl.

    Raises:
        GraphError: `x` is a Variable (contains 'is not a node'), or not a node (contains 'Unknown node type').

    Source: Flax NNX `get_node_impl`.
    """
    if isinstance(x, Variable):
        raise errors.GraphError(f"A Variable is not a node: {x!r}. It is a leaf: pass the node that holds it.")
    return impl_of(type(x))


def impl_of(cls: type[Any]) -> NodeImpl:
    """Return the rules of a node type.

    Raises:
        GraphError: Its instances are not nodes (contains 'Unknown node type').
    """
    impl = own_impl(cls)
    if impl is None:
        raise errors.GraphError(
            f"Unknown node type {cls.__module__}.{cls.__qualname__}: register it with register_graph_node_type, or "
            "keep the object out of the graph with static(x)."
        )
    return impl


class Impls(dict[type[Any], NodeImpl]):
    """Rules by type, looked up once per walk for each node type."""

    def __missing__(self, cls: type[Any]) -> NodeImpl:
        self[cls] = impl = impl_of(cls)
        return impl


# -- kinds -------------------------------------------------------------------------------------------------------------


class Kinds(dict[type[Any], int]):
    """Kinds by type, looked up once per walk for each type."""

    def __missing__(self, cls: type[Any]) -> int:
        kind = self[cls] = kind_of_type(cls)
        return kind


def kind_of_type(cls: type[Any]) -> int:
    """Return the kind of the instances of a class."""
    kind = KNOWN.get(cls)
    if kind is not None:
        return kind
    if issubclass(cls, Variable):
        return VARIABLE
    if is_node_type(cls):
        return NODE
    if issubclass(cls, set | frozenset):
        return SET
    if cls is deque or is_namedtuple(cls) or is_dataclass(cls) or is_registered_container(cls):
        return TREE
    return STATIC


def kind_of(x: object) -> int:
    """Return the kind of an object."""
    return kind_of_type(type(x))


def graph_parts(value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the nodes and Variables that `value` is or holds, with their paths below it; does not enter nodes.

    A key that is or holds one has the path of its dict.
    """
    alive: dict[int, Any] = {}  # kept alive: a user's container may create its parts on access
    pending: list[tuple[KeyPath, Any]] = [((), value)]
    while pending:
        at, x = pending.pop()
        kind = kind_of(x)
        if kind in (NODE, VARIABLE):
            yield at, x
        elif kind != STATIC and id(x) not in alive:
            alive[id(x)] = x
            pairs = enumerate(x) if kind == SET else parts_of(x)[0]
            pending += [((*at, key), part) for key, part in pairs]
            if kind == DICT:
                pending += [(at, key) for key in x if not isinstance(key, str | int)]


def holds_node(value: Any) -> bool:
    """Whether a value is a node or Variable, or a container that holds one."""
    return next(graph_parts(value), None) is not None


registry.admit_when(is_node_type)
registry.admit_when(is_registered_container)

# -- the walk ----------------------------------------------------------------------------------------------------------

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
        entity: Returns the object of a reference; None without references.
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
        return pairs, not impl.own_trainable(node)

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
            if holds_node(value):
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
        if fault is not None and holds_node(holder):
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
        if type(key) is int and not -INT_END < key < INT_END:
            return f"of {key.bit_length()} bits is an int of too many digits"
        if type(key) not in (str, int) or key == "" or str(key) in texts:
            return f"{key!r:.200} ({type(key).__name__}) cannot be a step of a path"
        texts.add(str(key))
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
        yield from self._own_values(None, [(None, root)], [], later)
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
            yield from self._own_values(visit, visit.children, [], deferred)
            deferred.reverse()
            later += deferred

    def _arrive(self, parent: Visit | None, step: Step, value: Any) -> Visit | None:
        """Number a node and open it, unless it is an alias; None if the edge closes a cycle on the present path."""
        entity = self.reader.entity
        node = value if entity is None else entity(value)
        number = len(self.numbers)
        index = self.numbers.setdefault(id(node), (node, number))[1]
        visit = Visit(parent, step, node, "node", index, index == number, parent is not None and parent.masked)
        if self.every_path:
            if id(node) in self.on_path:
                return None
        elif not visit.first:
            return visit
        if not self.recursive and parent is not None:
            return visit
        visit.children, masks = self.reader.enter(node, visit)
        visit.masked = visit.masked or masks
        if self.key is not None:
            key = self.key
            visit.children = sorted(visit.children, key=lambda pair: key(pair[0]))
        if self.every_path:
            self.on_path.add(id(node))
        return visit

    def _own_values(
        self,
        parent: Visit | None,
        pairs: Pairs,
        visits: list[Visit],
        deferred: list[Visit | _Later],
        around: tuple[int, ...] = (),
    ) -> list[Visit]:
        """Visit the own values of a node, and defer its child nodes (and the containers to close after them). Hot.

        Args:
            parent: The node, or the container, that holds the pairs.
            pairs: The steps and values.
            visits: The visits are added here.
            deferred: Child nodes are added here.
            around: The identities of the containers between the node and the pairs.
        """
        kinds, entity, numbers, statics = self.reader.kinds, self.reader.entity, self.numbers, self.statics
        masked = parent is not None and parent.masked
        for step, value in pairs:
            kind = kinds[type(value)]
            if kind == STATIC:
                if statics:
                    visits.append(Visit(parent, step, value, "static", None, True, masked))
            elif kind == VARIABLE:
                variable = value if entity is None else entity(value)
                number = len(numbers)
                index = numbers.setdefault(id(variable), (variable, number))[1]
                visits.append(Visit(parent, step, variable, "variable", index, index == number, masked))
            elif kind == NODE:
                deferred.append((parent, step, value))
            else:
                visit = self._container(parent, step, value, kind, around)
                if visit.kind == "static":
                    if statics:
                        visits.append(visit)
                    continue
                if not self.post:
                    visits.append(visit)
                deferred_before = len(deferred)
                self._own_values(visit, visit.children, visits, deferred, (*around, id(value)))
                if self.post:
                    (visits if len(deferred) == deferred_before else deferred).append(visit)
        return visits

    def _container(self, parent: Visit | None, step: Step, value: Any, kind: int, around: tuple[int, ...]) -> Visit:
        """Open a container; without keys that can be steps, it is a static."""
        visit = Visit(parent, step, value, "container", None, True, parent is not None and parent.masked)
        if id(value) in around:
            raise errors.GraphError(
                f"{where(visit.path)}: a {type(value).__name__} is inside itself: cycles may pass only through nodes."
            )
        opened = self.reader.open(value, kind, visit)
        if opened is None:
            visit.kind = "static"
            return visit
        if len(around) == MAX_DEPTH:
            raise errors.GraphError(f"{where(visit.path)}: containers are nested more than {MAX_DEPTH} deep.")
        visit.children, visit.aux = opened
        return visit

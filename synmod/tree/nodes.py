"""What an object is to the walk (node, Variable, container or static), and the rules of node types and containers.

A registered class carries its rules in an attribute of its own, so a class that is no longer used takes its
registration with it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MemberDescriptorType
from typing import Any, Final, Generic, NamedTuple, NoReturn, TypeVar, cast, final

from synmod import registry
from synmod.errors import DataError, GraphError
from synmod.leaves.frozen import INT_END, FrozenDict, FrozenList, frozen, thaw
from synmod.leaves.names import KeyPath, path_str

from .variable import MISSING, Variable

T = TypeVar("T")
Key = str | int
Pairs = list[tuple[Any, Any]]

MAX_DEPTH: Final = 100
"""How deep plain containers may nest between two nodes."""

NAMESPACE: Final = "synmod"
"""The namespace of optree in which users register containers."""

DICTS: Final = (dict, OrderedDict, defaultdict)
SEQUENCES: Final = (list, tuple)

STATIC, VARIABLE, NODE, SEQUENCE, DICT, TREE, SET = range(7)
"""Kinds of objects; TREE is every container that is not a list, tuple, dict or set."""

KNOWN: Final[dict[type[Any], int]] = {
    **dict.fromkeys((str, int, float, bool, type(None)), STATIC),
    **dict.fromkeys(SEQUENCES, SEQUENCE),
    **dict.fromkeys(DICTS, DICT),
}
"""Kinds that no registration can change."""


def class_of(x: object) -> type[Any]:
    """The class of an object; for type checkers, to which `type` of Any is partly unknown."""
    return type(x)


def where(path: KeyPath) -> str:
    """The beginning of a message about a path."""
    return f"At {path_str(path)!r}" if path else "At the root"


# -- statics -----------------------------------------------------------------------------------------------------------


@final
class Static(Generic[T]):
    """Carries `value` by reference; equal only to a Static of the very same object."""

    __slots__ = ("value",)

    value: T

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A Static cannot be changed: make a new one instead of setting {name!r}.")

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

    It is passed on by reference, never descended into, and in no fingerprint and no file: after a load the constructor
    must set it again. An attribute set to it reads as `x`; inside a container it stays a `Static` with `.value`.

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
_FIXED: Final[dict[type[Any], NodeImpl]] = {}  # classes written in C take no attributes


@dataclass(frozen=True, slots=True, eq=False)
class NodeImpl:
    """The rules of one node type; the fields up to `by_reference` are those of `register_graph_node_type`.

    Attributes:
        type: The class.
        children: Returns the pairs alone, cheaper than `flatten`; a list is the caller's to keep.
        metadata: Returns the metadata alone, cheaper than `flatten`.
        own_trainable: Whether the node's own `trainable` is set; where it is not, all Variables below are masked.
        map_refs: Returns the metadata with `fn(x)` in the place of each x in it that may be a node, a Variable or a
            reference to one; `fn` returns everything else as it came.
        adopt: `adopt(node, metadata)` takes over metadata with references in it, when all nodes of a copy are made;
            `create_empty` is given it with the references unresolved.
        compared: What of the metadata of a `NodeDef` counts in comparisons: a nest of dicts, lists and tuples whose
            leaves are statics or references.
        rewrite: `rewrite(node, metadata, pairs)` changes a node in place to match metadata and pairs; by default it
            is emptied and filled, and takes over what `create_empty` makes where the metadata has changed.
        record: Returns the bookkeeping of a node whose structural edits are announced (`looking.Record`).
        unseal: Opens the structure of a new node for editing.
        unbuilt: Whether the node has yet to make Variables, so that they cannot be listed.
        is_module: Whether the node is a Module, and so a submodule.
        is_token: Whether the node is an identity without children: copies renew it wherever it is mentioned.
        subclasses: Whether derived classes follow the same rules without being registered.
    """

    type: type
    flatten: Callable[[Any], tuple[Iterable[tuple[Key, Any]], Any]]
    set_key: Callable[[Any, Key, Any], None]
    pop_key: Callable[[Any, Key], Any]
    create_empty: Callable[[Any], Any]
    clear: Callable[[Any], None] | None = None
    init: Callable[[Any, Pairs], None] | None = None
    by_reference: bool = False
    children: Callable[[Any], Iterable[tuple[Key, Any]]] | None = None
    metadata: Callable[[Any], Any] | None = None
    own_trainable: Callable[[Any], bool] | None = None
    map_refs: Callable[[Any, Callable[[Any], Any]], Any] | None = None
    adopt: Callable[[Any, Any], None] | None = None
    compared: Callable[[Any], Any] | None = None
    rewrite: Callable[[Any, Any, Pairs], None] | None = None
    record: Callable[[Any], Any] | None = None
    unseal: Callable[[Any], None] | None = None
    unbuilt: Callable[[Any], bool] | None = None
    is_module: bool = False
    is_token: bool = False
    subclasses: bool = False

    def pairs(self, node: Any) -> Pairs:
        """List the children with their keys."""
        found = self.flatten(node)[0] if self.children is None else self.children(node)
        return found if isinstance(found, list) else list(found)

    def metadata_of(self, node: Any) -> Any:
        """The metadata; JSON is frozen, so that no later change reaches a graph definition."""
        metadata = self.flatten(node)[1] if self.metadata is None else self.metadata(node)
        if type(metadata) not in (dict, list):
            return metadata
        try:
            return frozen(metadata)
        except DataError:  # like every static that cannot be encoded, it is refused where it must be
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
    """Make instances of a class nodes: tracked, split, cloned and saved like modules.

    Args:
        cls: The class; instances of exactly this class are nodes.
        flatten: `flatten(x)` returns `(key, child)` pairs in order, and metadata (JSON or None).
        set_key: `set_key(x, key, value)` writes one child.
        pop_key: `pop_key(x, key)` takes one child out and returns it.
        create_empty: `create_empty(metadata)` makes a node without children.
        clear: `clear(x)` empties a node for a merge in place; default `pop_key` for each child.
        init: `init(x, pairs)` fills a new node at once; default `set_key` for each pair.
        by_reference: For handles without children: `merge` and `clone` keep the very object; only a load makes one.

    Raises:
        GraphError: The class is registered already, or is a container or a Variable.

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
    """Register a node type with all its rules; for the rooms above.

    Raises:
        GraphError: The class is registered already, or is a container or a Variable.
    """
    cls: type[Any] = impl.type
    if own_impl(cls) is not None or is_registered_container(cls):
        raise GraphError(f"Node type {cls.__module__}.{cls.__qualname__} is already registered.")
    if cls in KNOWN or cls is deque or issubclass(cls, Variable | set | frozenset):
        raise GraphError(f"{cls.__qualname__} cannot be a node type: it is a container or a Variable already.")
    try:
        type.__setattr__(cls, _RULES, impl)
    except TypeError:
        _FIXED[cls] = impl


def own_impl(cls: type[Any]) -> NodeImpl | None:
    """The rules that instances of a class follow; None where they are not nodes. Hot."""
    found: Any = getattr(cls, _RULES, None)
    if isinstance(found, NodeImpl) and (found.type is cls or found.subclasses):
        return found
    if found is None and not _FIXED:
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
    """Whether an object is a node that is nothing but an identity."""
    impl = own_impl(type(x))
    return impl is not None and impl.is_token


def get_node_impl(x: object) -> NodeImpl:
    """Return the rules of a node.

    Args:
        x: A node.

    Returns:
        Its NodeImpl.

    Raises:
        GraphError: It is a Variable (contains 'is not a node'), or of another type (contains 'Unknown node type').

    Source: Flax NNX `get_node_impl`.
    """
    if isinstance(x, Variable):
        raise GraphError(f"A Variable is not a node: {x!r}. It is a leaf; look at what holds it.")
    impl = own_impl(type(x))
    if impl is None:
        raise unknown_node_type(type(x))
    return impl


def unknown_node_type(cls: type[Any]) -> GraphError:
    """The error for a class whose instances are not nodes."""
    return GraphError(
        f"Unknown node type {cls.__module__}.{cls.__qualname__}: register it with register_graph_node_type, or keep "
        "the object out of the graph with static(x)."
    )


class Impls(dict[type[Any], NodeImpl]):
    """Rules by type, looked up once for each node type that one walk meets."""

    __slots__ = ()

    def __missing__(self, cls: type[Any]) -> NodeImpl:
        impl = own_impl(cls)
        if impl is None:
            raise unknown_node_type(cls)
        self[cls] = impl
        return impl


# -- containers --------------------------------------------------------------------------------------------------------


def registered_container(cls: type[Any]) -> Any:
    """The entry of a user's container class in the registry of optree; None for other classes."""
    optree: Any = sys.modules.get("optree")  # a class can only be registered by who has imported optree
    entry = None if optree is None else optree.register_pytree_node.get(cls, namespace=NAMESPACE)
    return entry if entry is not None and entry.namespace == NAMESPACE else None


def is_registered_container(cls: type[Any]) -> bool:
    """Whether a class is a container because a user registered it with optree."""
    return registered_container(cls) is not None


def is_namedtuple(cls: type[Any]) -> bool:
    """Whether a class is a tuple with named fields."""
    fields: Any = getattr(cls, "_fields", None)
    return isinstance(fields, tuple) and issubclass(cls, tuple)


def numbered(items: Iterable[Any]) -> Pairs:
    """The items of a sequence with their indices."""
    return list(enumerate(items))


def take_apart(x: Any) -> tuple[Pairs, Any]:
    """The `(step, child)` pairs of a container, and what else it is made of."""
    cls = class_of(x)
    if cls in SEQUENCES:
        return numbered(x), None
    if cls in DICTS:
        return list(x.items()), getattr(x, "default_factory", None)
    if cls is deque:
        return numbered(x), x.maxlen
    if is_registered_container(cls):
        import optree

        children, aux, steps, _ = cast("Any", optree).tree_flatten_one_level(x, none_is_leaf=True, namespace=NAMESPACE)
        return list(zip(steps, children, strict=True)), aux
    if is_namedtuple(cls):
        items: Any = tuple[Any, ...].__iter__(x)  # also where its class iterates in another way
        return list(zip(x._fields, items, strict=True)), None
    return _fields_of(x)


def put_together(cls: type[Any], steps: Iterable[Any], children: list[Any], aux: Any) -> Any:
    """Make a container of its parts; no constructor of a dataclass or namedtuple runs."""
    if cls is list:
        return children
    if cls is tuple:
        return tuple(children)
    if cls is defaultdict:
        return defaultdict(aux, zip(steps, children, strict=True))
    if cls in DICTS:
        return cast("Any", cls)(zip(steps, children, strict=True))
    if cls is deque:
        return deque(children, aux)
    entry = registered_container(cls)
    if entry is not None:
        return entry.unflatten_func(aux, children)
    if is_namedtuple(cls):
        return cast("Any", tuple).__new__(cls, children)
    new: Any = object.__new__(cls)
    others: dict[str, Any] = aux or {}
    for step, child in (*zip(steps, children, strict=True), *others.items()):
        object.__setattr__(new, step, child)
    return new


def _fields_of(x: Any) -> tuple[Pairs, dict[str, Any] | None]:
    """The fields of a dataclass, in their order, without running any property; its other attributes go along."""
    cls = class_of(x)
    held: dict[str, Any] = getattr(x, "__dict__", {})
    names = [field.name for field in dataclasses.fields(x)]
    pairs: Pairs = []
    for name in names:
        value = held.get(name, MISSING)
        if value is MISSING:
            value = _slot(x, cls, name)
        if value is not MISSING:
            pairs.append((name, value))
    others = {name: value for name, value in held.items() if name not in names and not _is_cached(cls, name)}
    return pairs, others or None


def _slot(x: Any, cls: type[Any], name: str) -> Any:
    """The value in a declared slot; MISSING where there is none."""
    for base in cls.__mro__:
        member = vars(base).get(name)
        if isinstance(member, MemberDescriptorType):
            try:
                return member.__get__(x)
            except AttributeError:
                return MISSING
    return MISSING


def _is_cached(cls: type[Any], name: str) -> bool:
    """Whether `functools.cached_property` left an attribute there."""
    return any(isinstance(vars(base).get(name), cached_property) for base in cls.__mro__)


# -- kinds -------------------------------------------------------------------------------------------------------------


class Kinds(dict[type[Any], int]):
    """Kinds by type, looked up once for each type that one walk meets."""

    __slots__ = ()

    def __missing__(self, cls: type[Any]) -> int:
        kind = self[cls] = kind_of_type(cls)
        return kind


def kind_of_type(cls: type[Any]) -> int:
    """The kind of the instances of a class."""
    known = KNOWN.get(cls)
    if known is not None:
        return known
    if issubclass(cls, Variable):
        return VARIABLE
    if is_node_type(cls):
        return NODE
    if issubclass(cls, set | frozenset):
        return SET
    if cls is deque or is_namedtuple(cls) or dataclasses.is_dataclass(cls) or is_registered_container(cls):
        return TREE
    return STATIC


def kind_of(x: object) -> int:
    """The kind of one object."""
    return kind_of_type(type(x))


def holds_node(x: Any, kinds: Kinds, wanted: tuple[int, ...] = (NODE, VARIABLE)) -> bool:
    """Whether a Node or Variable, or another wanted kind, is in a container, at any depth of containers."""
    pending, seen = [x], {id(x): x}  # held: a container of a user's may make its parts when it is taken apart
    while pending:
        container = pending.pop()
        kind = kinds[type(container)]
        pairs = [] if kind == STATIC else numbered(container) if kind == SET else take_apart(container)[0]
        for part in (item for pair in pairs for item in pair):
            kind = kinds[type(part)]
            if kind in wanted:
                return True
            if kind not in (STATIC, NODE, VARIABLE) and id(part) not in seen:
                seen[id(part)] = part
                pending.append(part)
    return False


def open_container(x: Any, kind: int, kinds: Kinds, path: Callable[[], KeyPath]) -> tuple[Pairs, Any] | None:
    """Take a container apart, one level.

    Args:
        x: The container.
        kind: Its kind.
        kinds: The kinds of the walk.
        path: Returns its path, for an error.

    Returns:
        Its pairs and what else it is made of; None where it is a static after all: a set, or a dict with keys that
        cannot be steps, of plain values.

    Raises:
        GraphError: A Node or Variable is in a set, or below a key that cannot be a step. Names the path.
    """
    if kind == SEQUENCE:
        return numbered(x), None
    if kind == SET:
        if holds_node(x, kinds):
            raise GraphError(
                f"{where(path())}: a {type(x).__name__} holds a node or Variable, and a set has no order and no keys: "
                "use a list or a dict."
            )
        return None
    pairs, aux = take_apart(x)
    bad = bad_key(pairs, may_repeat=kind == TREE)
    if bad is not None:
        if holds_node(x, kinds):
            refuse_key(bad, path())
        if not bad.is_step:
            return None
    return pairs, aux


# -- keys that can stand in a path -------------------------------------------------------------------------------------


class BadKey(NamedTuple):
    """A key that cannot be a step.

    Attributes:
        key: The key, as text.
        why: What is wrong with it.
        is_step: Whether it is allowed where only plain values are below.
    """

    key: str
    why: str
    is_step: bool


def bad_key(pairs: Sequence[tuple[Any, Any]], *, may_repeat: bool) -> BadKey | None:
    """The first key of another type than str and int, else the first that is empty or not unique as text.

    Args:
        pairs: `(key, child)` pairs.
        may_repeat: Whether one key may come twice, as it cannot in a dict.
    """
    compare = may_repeat
    empty: BadKey | None = None
    for key, _ in pairs:
        if type(key) is str:
            if not key:
                empty = BadKey("''", "is empty", is_step=True)
        elif type(key) is not int:
            return BadKey(f"{key!r:.200}", f"is of type {type(key).__name__}", is_step=False)
        elif not -INT_END < key < INT_END:
            return BadKey(f"of {key.bit_length()} bits", "is an int of too many digits", is_step=False)
        else:
            compare = True
    if empty is not None or not compare:
        return empty
    texts: set[str] = set()
    for key, _ in pairs:
        if str(key) in texts:
            return BadKey(repr(key), "looks like another key when written as text", is_step=True)
        texts.add(str(key))
    return None


def refuse_key(bad: BadKey, path: KeyPath) -> NoReturn:
    """Raise for a bad key on the way to a node or Variable."""
    raise GraphError(
        f"{where(path)}: the key {bad.key} {bad.why}, and a node or Variable is below: keys on the way to one must be "
        "str (not empty) or int, and differ as text."
    )


registry.admit_when(is_node_type)
registry.admit_when(is_registered_container)

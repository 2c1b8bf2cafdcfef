"""What an object is to the walk (node, Variable, container or static), and the rules of node types and containers.

A registered class carries its rules in an attribute of its own, so a class that is no longer used takes its
registration with it.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, final

from synmod import registry
from synmod.errors import DataError, GraphError
from synmod.leaves.frozen import FrozenDict, FrozenList, frozen, thaw
from synmod.leaves.names import KeyPath, path_str
from synmod.leaves.nests import DICTS, Pairs, is_namedtuple, is_registered_container, parts_of

from .variable import Immutable, Variable

T = TypeVar("T")
Key = str | int

STATIC, VARIABLE, NODE, SEQUENCE, DICT, TREE, SET = range(7)
"""Kinds of objects; TREE is every container that is not a list, tuple, dict or set."""

KNOWN: Final[dict[type[Any], int]] = {
    **dict.fromkeys((str, int, float, bool, type(None)), STATIC),
    **dict.fromkeys((list, tuple), SEQUENCE),
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
class Static(Immutable, Generic[T]):
    """Carries `value` by reference; equal only to a Static of the very same object."""

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
    return impl_of(type(x))


def impl_of(cls: type[Any]) -> NodeImpl:
    """The rules of a node type.

    Raises:
        GraphError: Its instances are not nodes (contains 'Unknown node type').
    """
    impl = own_impl(cls)
    if impl is None:
        raise GraphError(
            f"Unknown node type {cls.__module__}.{cls.__qualname__}: register it with register_graph_node_type, or "
            "keep the object out of the graph with static(x)."
        )
    return impl


class Impls(dict[type[Any], NodeImpl]):
    """Rules by type, looked up once for each node type that one walk meets."""

    def __missing__(self, cls: type[Any]) -> NodeImpl:
        self[cls] = impl = impl_of(cls)
        return impl


# -- kinds -------------------------------------------------------------------------------------------------------------


class Kinds(dict[type[Any], int]):
    """Kinds by type, looked up once for each type that one walk meets."""

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
        container: Any = pending.pop()
        kind = kinds[type(container)]
        pairs = [] if kind == STATIC else [*enumerate(container)] if kind == SET else parts_of(container)[0]
        for part in (item for pair in pairs for item in pair):
            kind = kinds[type(part)]
            if kind in wanted:
                return True
            if kind not in (STATIC, NODE, VARIABLE) and id(part) not in seen:
                seen[id(part)] = part
                pending.append(part)
    return False


registry.admit_when(is_node_type)
registry.admit_when(is_registered_container)

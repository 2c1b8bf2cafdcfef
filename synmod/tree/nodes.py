"""The kinds of objects in a program, and the rules of registered node types.

An object is a node, a Variable, a container or a static. The rules of a registered class are stored in an attribute of
the class, so they are freed together with the class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar, final

from synmod import errors, registry
from synmod.leaves import FrozenDict, FrozenList, KeyPath, frozen, path_str, thaw
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


def holds_node(x: Any, kinds_sought: tuple[int, ...] = (NODE, VARIABLE), kinds: Kinds | None = None) -> bool:
    """Whether a container holds a Node or Variable, or another wanted kind, at any depth of containers."""
    kinds = kinds or Kinds(KNOWN)
    pending, alive = [x], {id(x): x}  # kept alive: a user's container may create its parts on access
    while pending:
        container: Any = pending.pop()
        kind = kinds[type(container)]
        pairs = [] if kind == STATIC else [*enumerate(container)] if kind == SET else parts_of(container)[0]
        for part in (item for pair in pairs for item in pair):
            kind = kinds[type(part)]
            if kind in kinds_sought:
                return True
            if kind not in (STATIC, NODE, VARIABLE) and id(part) not in alive:
                alive[id(part)] = part
                pending.append(part)
    return False


registry.admit_when(is_node_type)
registry.admit_when(is_registered_container)

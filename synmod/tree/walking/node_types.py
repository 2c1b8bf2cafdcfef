"""Node types: how the walk sees into objects with identity, and how copies of them are made.

Each registered class carries its rules in one class attribute of its own; so a class that is no longer used takes its
registration with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from synmod import registry
from synmod.errors import DataError, GraphError
from synmod.leaves.frozen import FrozenDict, FrozenList, frozen, thaw
from synmod.tree.variable.containers import DICTS, SEQUENCES, TREE_TYPES
from synmod.tree.variable.variable import Variable

Key = str | int
Pairs = Iterable[tuple[Key, Any]]

_RULES: Final = "__synmod_node__"
_BUILT_IN: Final = (*DICTS, *SEQUENCES, deque, str, int, float, bool, type(None))
_FIXED: Final[dict[type[Any], NodeImpl]] = {}  # classes written in C take no attributes


@dataclass(frozen=True, slots=True, eq=False)
class NodeImpl:
    """The rules of one node type.

    Attributes:
        type: The class.
        flatten: Gives `(key, child)` pairs in definition order, and metadata (JSON or None).
        set_key: Writes one child.
        pop_key: Takes one child out and returns it.
        create_empty: Makes a node without children from the metadata, whose references lead to the new objects.
        clear: Empties a node for an in-place merge.
        init: Fills a new node with all its pairs at once.
        by_reference: In process a copy keeps the very object.
        children: Gives the pairs alone, cheaper than `flatten`; a list is the caller's to keep.
        metadata: Gives the metadata alone, cheaper than `flatten`.
        own_trainable: Tells whether the node's own `trainable` is set; where it is not, all Variables below are masked.
        map_refs: Gives the metadata with `fn(x)` in the place of each x in it that may be a node, a Variable or a
            reference to one; `fn` returns everything else as it came.
        compared: What of the metadata of a `NodeDef` counts in comparisons: a nest of dicts, lists and tuples whose
            leaves are statics or references.
        rewrite: `rewrite(node, metadata, pairs)` makes a node in place what metadata and pairs say; by default it is
            emptied and filled, and takes over what `create_empty` makes where the metadata has changed.
        sealed: Tells whether the structure of the node changes only together with `EDITS.bump()`.
        unseal: Opens a copy for editing, until it is sealed again or handed back.
        reseal: Closes a copy that was opened.
        unbuilt: Tells whether a node has yet to make Variables, so that they cannot be listed.
        is_module: Whether the node is a Module, and so a submodule.
        is_token: Whether it is nothing but an identity, without children: copies renew it wherever it is mentioned.
        subclasses: Whether classes derived from it follow the same rules without being registered.
    """

    type: type
    flatten: Callable[[Any], tuple[Pairs, Any]]
    set_key: Callable[[Any, Key, Any], None]
    pop_key: Callable[[Any, Key], Any]
    create_empty: Callable[[Any], Any]
    clear: Callable[[Any], None] | None = None
    init: Callable[[Any, list[tuple[Key, Any]]], None] | None = None
    by_reference: bool = False
    children: Callable[[Any], Pairs] | None = None
    metadata: Callable[[Any], Any] | None = None
    own_trainable: Callable[[Any], bool] | None = None
    map_refs: Callable[[Any, Callable[[Any], Any]], Any] | None = None
    compared: Callable[[Any], Any] | None = None
    rewrite: Callable[[Any, Any, list[tuple[Key, Any]]], None] | None = None
    sealed: Callable[[Any], bool] | None = None
    unseal: Callable[[Any], None] | None = None
    reseal: Callable[[Any], None] | None = None
    unbuilt: Callable[[Any], bool] | None = None
    is_module: bool = False
    is_token: bool = False
    subclasses: bool = False

    def pairs(self, node: Any) -> list[tuple[Key, Any]]:
        """List the children with their keys."""
        if self.children is None:
            return list(self.flatten(node)[0])
        found = self.children(node)
        return found if isinstance(found, list) else list(found)

    def metadata_of(self, node: Any) -> Any:
        """Give the metadata; JSON is frozen, so that no later change reaches a graph definition."""
        metadata = self.flatten(node)[1] if self.metadata is None else self.metadata(node)
        if type(metadata) not in (dict, list):
            return metadata
        try:
            return frozen(metadata)
        except DataError:  # like every static without a text it is refused where a text is asked for
            return metadata

    def make(self, metadata: Any) -> Any:
        """Make a node without children from its metadata, thawed if it is JSON."""
        return self.create_empty(thaw(metadata) if type(metadata) in (FrozenDict, FrozenList) else metadata)

    def fill(self, node: Any, pairs: list[tuple[Key, Any]]) -> None:
        """Give a new, empty node its children."""
        if self.init is not None:
            self.init(node, pairs)
        else:
            for key, child in pairs:
                self.set_key(node, key, child)


def register_graph_node_type(
    cls: type[Any],
    *,
    flatten: Callable[[Any], tuple[Pairs, Any]],
    set_key: Callable[[Any, Key, Any], None],
    pop_key: Callable[[Any, Key], Any],
    create_empty: Callable[[Any], Any],
    clear: Callable[[Any], None] | None = None,
    init: Callable[[Any, list[tuple[Key, Any]]], None] | None = None,
    by_reference: bool = False,
) -> None:
    """Make instances of a class nodes: tracked, split, cloned and saved like modules.

    Args:
        cls: The class; instances of exactly this class are nodes.
        flatten: `flatten(x)` gives `(key, child)` pairs in order, and metadata (JSON or None).
        set_key: `set_key(x, key, value)` writes one child.
        pop_key: `pop_key(x, key)` takes one child out and returns it.
        create_empty: `create_empty(metadata)` makes a node without children.
        clear: `clear(x)` empties a node for an in-place merge.
        init: `init(x, pairs)` fills a new node at once; default `set_key` for each pair.
        by_reference: In process, `merge` and `clone` keep the very object; only a load makes a new one.

    Raises:
        GraphError: The class is registered, here or as a tree type, or is a container or a Variable.

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
        GraphError: The class is registered, or is a container or a Variable.
    """
    cls: type[Any] = impl.type
    if own_impl(cls) is not None or cls in TREE_TYPES:
        raise GraphError(f"Node type {cls.__module__}.{cls.__qualname__} is already registered.")
    if cls in _BUILT_IN or issubclass(cls, Variable | set | frozenset):
        raise GraphError(f"{cls.__qualname__} cannot be a node type: it is a container or a Variable already.")
    try:
        type.__setattr__(cls, _RULES, impl)
    except TypeError:
        _FIXED[cls] = impl


def own_impl(cls: type[Any]) -> NodeImpl | None:
    """Give the rules that instances of this class follow, None where they are no nodes. Hot."""
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


def impl_of(x: object) -> NodeImpl | None:
    """Give the rules of an object, None where it is no node."""
    return own_impl(type(x))


def is_token(x: object) -> bool:
    """Tell whether an object is a node that is nothing but an identity."""
    impl = own_impl(type(x))
    return impl is not None and impl.is_token


class Impls(dict[type[Any], NodeImpl]):
    """Rules by type, looked up once for each node type that one walk meets."""

    __slots__ = ()

    def __missing__(self, cls: type[Any]) -> NodeImpl:
        impl = own_impl(cls)
        assert impl is not None  # the walk asks for nodes only
        self[cls] = impl
        return impl


def get_node_impl(x: object) -> NodeImpl:
    """Give the rules of a node.

    Args:
        x: An instance of a node type.

    Returns:
        Its rules.

    Raises:
        GraphError: It is a Variable (contains 'is not a node'), or of another type (contains 'Unknown node type').

    Source: Flax NNX `get_node_impl`.
    """
    if isinstance(x, Variable):
        raise GraphError(f"A Variable is not a node: {x!r}. It is a leaf; ask for what holds it.")
    cls = type(x)
    impl = own_impl(cls)
    if impl is None:
        raise GraphError(
            f"Unknown node type {cls.__module__}.{cls.__qualname__}: register it with "
            "register_graph_node_type, or keep the object out of the graph with static(x)."
        )
    return impl


def is_node_type(cls: type[Any]) -> bool:
    """Tell whether instances of the class are nodes."""
    return own_impl(cls) is not None


registry.admit_when(is_node_type)

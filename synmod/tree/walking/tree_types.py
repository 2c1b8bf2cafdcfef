"""Registration of users' own container types."""

from __future__ import annotations

from collections import deque

from synmod import registry
from synmod.errors import GraphError
from synmod.tree.variable.containers import DICTS, SEQUENCES, TREE_TYPES, Flatten, Unflatten
from synmod.tree.variable.variable import Variable
from synmod.tree.walking.node_types import own_impl


def register_tree_type(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Make instances of a class containers: seen through by the walk, rebuilt in copies.

    Args:
        cls: The class; instances of exactly this class count.
        flatten: `flatten(x)` gives children and metadata, and as a third item steps (str or int) if not 0, 1, 2, ...
        unflatten: `unflatten(metadata, children)` gives a new one.

    Raises:
        GraphError: The class is registered, a node type, a Variable, or one of Python's own containers.

    Example:
        >>> class Pair:
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> register_tree_type(
        ...     Pair, lambda x: ((x.left, x.right), None, ("left", "right")), lambda _, children: Pair(*children)
        ... )

    Source: optree `register_pytree_node`.
    """
    if cls in TREE_TYPES:
        raise GraphError(f"Tree type {cls.__module__}.{cls.__qualname__} is already registered.")
    if cls in (*DICTS, *SEQUENCES, deque, set, frozenset) or own_impl(cls) is not None or issubclass(cls, Variable):
        raise GraphError(f"{cls.__qualname__} cannot be a tree type: the walk knows it already.")
    TREE_TYPES[cls] = (flatten, unflatten)


registry.admit_when(TREE_TYPES.__contains__)

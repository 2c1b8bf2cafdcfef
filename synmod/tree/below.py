"""What lies below a node: the walk behind `Module.flatten`, with a filter or a function of the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.decisions import Decisions
from synmod.tree.filters import Everything, Filter, to_filter
from synmod.tree.record import check_root
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from synmod.leaves.paths import KeyPath


def flattened(
    root: Any,
    predicate: Any = None,
    *,
    recursive: bool = True,
    with_path: bool = False,
    key: Callable[[Any], Any] | None = None,
    statics: bool = False,
) -> Iterator[Any]:
    """Go through the nodes and Variables below a root, lazily, in walk order.

    Args:
        root: A node, or a container of nodes.
        predicate: A filter, or a function of the value; None takes everything.
        recursive: Whether to go into the child nodes, which are yielded in any case.
        with_path: Yield `(path, value)` once for every acyclic path, instead of each object once.
        key: Sorts the attributes of each node, stable.
        statics: Yield statics too.

    Raises:
        ArgumentError: The predicate is no filter.
        GraphError: (while it runs) The walk cannot go on.
    """
    check_root(root)
    return _flattened(root, _wanted(predicate), recursive, with_path, key, statics)


def _flattened(
    root: Any,
    wanted: Filter,
    recursive: bool,
    with_path: bool,
    key: Callable[[Any], Any] | None,
    statics: bool,
) -> Iterator[Any]:
    decisions = Decisions(wanted, root if key is not None else None)
    for visit in walk(root, statics=statics, every_path=with_path, key=key, recursive=recursive):
        if visit.value is root or visit.kind == "container" or not (visit.first or with_path):
            continue
        if decisions.takes(visit):
            yield (visit.path, visit.value) if with_path else visit.value


def _wanted(predicate: Any) -> Filter:
    """Turn a predicate into a filter; a plain function is one of the value alone."""
    if predicate is None:
        return Everything()
    if callable(predicate) and not isinstance(predicate, type | Filter):
        return _OfValue(predicate)
    return to_filter(predicate)


class _OfValue(Filter):
    """What a function of the value alone says yes to."""

    __slots__ = ()
    looks_at_path = False

    def matches(self, path: KeyPath, value: Any, masked: bool) -> bool:  # noqa: ARG002
        """Ask the function."""
        return bool(self._content[0](value))

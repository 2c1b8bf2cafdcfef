"""Namespaces: identities that keep pairs of one name apart."""

from __future__ import annotations

from itertools import count
from typing import Any, Self

from synmod.errors import GraphError
from synmod.leaves.naming import check_name
from synmod.registry import register_own
from synmod.tree import NodeImpl, register_impl

_MADE = count()

Key = tuple["Namespace | None", str]
"""What tells slots apart: a Namespace, None for the default one, and a name."""


@register_own()
class Namespace:
    """An identity under which a module can stash and pop, so that pairs of one name do not meet.

    Two are never equal, whatever their names; `copy.copy` gives the same one, `copy.deepcopy` and the clone of a
    program new ones, alike for all modules of the clone. They sort by name and then by the order of making.

    Args:
        name: A label, an identifier; it tells nothing apart.

    Raises:
        BadNameError: The name is no identifier.

    Example:
        >>> Namespace("one") == Namespace("one")
        False

    Source: torchgpipe's `Namespace`; differs: a node of the graph, saved by position.
    """

    __slots__ = ("__weakref__", "_number", "name")

    def __init__(self, name: str | None = None) -> None:
        self.name = None if name is None else check_name(name, "Namespace")
        self._number = next(_MADE)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Namespace):
            return NotImplemented
        return order_of(self) < order_of(other)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Namespace:
        return Namespace(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Namespace, (self.name,)

    def __repr__(self) -> str:
        return f"Namespace({'' if self.name is None else repr(self.name)})"


def order_of(namespace: Namespace | None) -> tuple[str, int]:
    """What Namespaces are sorted by; the default one comes first."""
    return ("", -1) if namespace is None else (namespace.name or "", namespace._number)


def shown(key: Key) -> str:
    """Write a key for messages: the quoted name, with its Namespace where it has one."""
    namespace, name = key
    return repr(name) if namespace is None else f"{name!r} in {namespace!r}"


def _has_no_children(namespace: Any, *_: Any) -> None:
    raise GraphError(f"{namespace!r} has no children.")


def _stays(namespace: Any, metadata: Any, _: Any) -> None:
    """Take over all there is: the name."""
    namespace.name = metadata["name"]


register_impl(
    NodeImpl(
        Namespace,
        flatten=lambda namespace: ((), {"name": namespace.name}),
        set_key=_has_no_children,
        pop_key=_has_no_children,
        create_empty=lambda metadata: Namespace(metadata["name"]),
        compared=lambda _: None,
        rewrite=_stays,
        is_token=True,
    )
)

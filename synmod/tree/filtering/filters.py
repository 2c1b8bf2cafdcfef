"""Filters: one way to say 'these Variables', from `split` to the Trainer.

Whatever a user writes (a type, a tag, a function, `...`) becomes one of the classes here, which compare, hash and print
by content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as Anything
from typing import TypeAlias

from synmod.data import contains, declare
from synmod.leaves.frozen import Json, frozen, json_equal
from synmod.leaves.names import KeyPath
from synmod.tree.filtering.filter import Filter, invalid
from synmod.tree.filtering.path_filters import Path, PathContains, PathIn
from synmod.tree.variable.variable import Variable
from synmod.tree.variable.variable_state import VariableState

__all__ = [
    "All",
    "Any",
    "Everything",
    "Filter",
    "FilterLike",
    "Not",
    "Nothing",
    "OfType",
    "Path",
    "PathContains",
    "PathIn",
    "Schema",
    "Trainable",
    "Where",
    "WithTag",
    "to_filter",
]

FilterLike: TypeAlias = Anything
"""A type, a str (tag), `...` or True, None or False, a callable, a tuple or list of filters, or a Filter."""


class Everything(Filter):
    """Everything; also written `...` or True."""

    __slots__ = ()
    looks_at_path = False

    def __init__(self) -> None:
        super().__init__()

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Say yes."""
        return True


class Nothing(Filter):
    """Nothing; also written None or False."""

    __slots__ = ()
    looks_at_path = False

    def __init__(self) -> None:
        super().__init__()

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Say no."""
        return False


class OfType(Filter):
    """Instances of a class; for leaves of a State the class of their Variable. Also written as the class itself.

    Args:
        type: The class; subclasses count.

    Raises:
        ArgumentError: It is no class (contains 'Invalid filter').

    Example:
        >>> import synmod as sm
        >>> len(sm.state({"a": sm.Param("x"), "b": sm.Stat(1)}, sm.OfType(sm.Param)))
        1

    Source: Flax NNX `OfType`.
    """

    __slots__ = ()
    looks_at_path = False

    def __init__(self, type: type) -> None:  # noqa: A002  (what it is called everywhere)
        try:
            isinstance(None, type)
        except TypeError:
            raise invalid(type, "OfType takes a class") from None
        super().__init__(type)

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Ask for the class."""
        cls = self._content[0]
        return isinstance(value, cls) or (isinstance(value, VariableState) and issubclass(value.type, cls))


class WithTag(Filter):
    """Variables whose metadata `tag` equals this one. Also written as the text itself.

    Args:
        tag: Any JSON, mostly a text.

    Example:
        >>> import synmod as sm
        >>> len(sm.state({"a": sm.Param("x", tag="prompt"), "b": sm.Param("y")}, sm.WithTag("prompt")))
        1

    Source: Flax NNX `WithTag`.
    """

    __slots__ = ()
    looks_at_path = False

    def __init__(self, tag: Json) -> None:
        super().__init__(frozen(tag))

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Look at the metadata."""
        if not isinstance(value, Variable | VariableState):
            return False
        metadata = value.metadata
        return "tag" in metadata and json_equal(metadata["tag"], self._content[0])


class Trainable(Filter):
    """Variables that count as trainable: own bit set, no frozen module above; in a State the own bit alone."""

    __slots__ = ()
    looks_at_path = False

    def __init__(self) -> None:
        super().__init__()

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Look at the bit."""
        return isinstance(value, Variable | VariableState) and value.trainable and not masked


class Schema(Filter):
    """Variables whose schema has all that a data model or schema requires."""

    __slots__ = ()
    looks_at_path = False

    def __init__(self, model: Anything) -> None:
        declared = declare(model, root="any")
        super().__init__(model if isinstance(model, type) else declared)

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Compare the schemas."""
        return isinstance(value, Variable | VariableState) and contains(value.schema, self._content[0])


class Where(Filter):
    """What a function of path and value says yes to. Also written as the function itself."""

    __slots__ = ()

    def __init__(self, function: Callable[[KeyPath, Anything], Anything]) -> None:
        super().__init__(function)

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Ask the function."""
        return bool(self._content[0](path, value))


class _Composed(Filter):
    """A filter made of filters."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  (read like the attribute)
        """Whether one of its filters does."""
        return any(one.looks_at_path for one in self._content)


class Any(_Composed):
    """What at least one of the filters says yes to. Also written as a tuple or list."""

    __slots__ = ()

    def __init__(self, *filters: FilterLike) -> None:
        super().__init__(*map(to_filter, filters))

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Ask each until one says yes."""
        return any(one.matches(path, value, masked) for one in self._content)


class All(_Composed):
    """What all of the filters say yes to."""

    __slots__ = ()

    def __init__(self, *filters: FilterLike) -> None:
        super().__init__(*map(to_filter, filters))

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Ask each until one says no."""
        return all(one.matches(path, value, masked) for one in self._content)


class Not(_Composed):
    """What the filter says no to."""

    __slots__ = ()

    def __init__(self, filter: FilterLike) -> None:  # noqa: A002  (what it is)
        super().__init__(to_filter(filter))

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Ask and turn the answer round."""
        return not self._content[0].matches(path, value, masked)


def to_filter(x: FilterLike) -> Filter:
    """Turn what a user wrote into a filter.

    Raises:
        ArgumentError: It is none (contains 'Invalid filter').
    """
    if isinstance(x, Filter):
        return x
    if x is ... or x is True:
        return Everything()
    if x is None or x is False:
        return Nothing()
    if isinstance(x, type):
        return OfType(x)
    if isinstance(x, str):
        return WithTag(x)
    if isinstance(x, tuple | list):
        return Any(*x)
    if callable(x):
        return Where(x)
    raise invalid(
        x, "write a type, a tag, `...`, a function of (path, value), a tuple of filters, or one of sm.filters"
    )

"""Filters: one way to say 'these Variables', from `split` to the Trainer.

Whatever a user writes (a type, a tag, a function, `...`) becomes one of the classes here, which compare, hash and print
by content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as Anything
from typing import TypeAlias

from synmod.data.algebra.contain import contains
from synmod.data.models.declare import declare
from synmod.errors import ArgumentError
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen, json_equal
from synmod.leaves.paths import KeyPath, path_str
from synmod.tree.glob import glob_matches
from synmod.tree.variable import Variable
from synmod.tree.variable_state import VariableState

FilterLike: TypeAlias = Anything
"""A type, a str (tag), `...` or True, None or False, a callable, a tuple or list of filters, or a Filter."""


class Filter:
    """Tells whether a value at a path is meant; equal, hashed and printed by content."""

    __slots__ = ("_content",)

    looks_at_path: bool = True
    """Whether `matches` must be given the path; where not, a walk need not make it."""

    def __init__(self, *content: Anything) -> None:
        self._content = content

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Decide; `masked` tells whether a frozen module lies above the value."""
        raise NotImplementedError

    def __call__(self, path: KeyPath, value: Anything) -> bool:
        return self.matches(path, value, False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter) or type(self) is not type(other) or len(self._content) != len(other._content):
            return False
        return all(map(_is_same, self._content, other._content))

    def __hash__(self) -> int:
        return hash((type(self), self._content))

    def __repr__(self) -> str:
        inside = ", ".join(part.__qualname__ if isinstance(part, type) else repr(part) for part in self._content)
        return f"{type(self).__name__}({inside})"


def _is_same(a: Anything, b: Anything) -> bool:
    """Compare what filters are made of as they compare it: a step or tag `1` is not `True`."""
    if type(a) is not type(b):
        return False
    return json_equal(a, b) if isinstance(a, FrozenDict | FrozenList) else bool(a == b)


def _invalid(x: Anything, wanted: str) -> ArgumentError:
    return ArgumentError(f"Invalid filter {x!r:.200}: {wanted}.")


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
            raise _invalid(type, "OfType takes a class") from None
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


class PathContains(Filter):
    """Paths with a step that equals the key; with `exact=False`, that has it in its text.

    Args:
        key: The step, str or int.
        exact: Whether the whole step must equal it.

    Raises:
        ArgumentError: The key is neither (contains 'Invalid filter').

    Example:
        >>> import synmod as sm
        >>> list(sm.state({"prompt_1": sm.Param("x"), "b": sm.Param("y")}, sm.PathContains("prompt", exact=False)))
        [('prompt_1',)]

    Source: Flax NNX `PathContains`.
    """

    __slots__ = ()

    def __init__(self, key: str | int, exact: bool = True) -> None:
        if not isinstance(key, str | int):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise _invalid(key, "PathContains takes one step, a str or an int")
        super().__init__(key, exact)

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Look at every step."""
        key, exact = self._content
        if exact:
            return any(step == key and type(step) is type(key) for step in path)
        return any(str(key) in str(step) for step in path)

    def __repr__(self) -> str:
        key, exact = self._content
        return f"PathContains({key!r})" if exact else f"PathContains({key!r}, exact=False)"


class PathIn(Filter):
    """These very paths, as tuples of steps or as texts.

    Args:
        *paths: The paths.

    Raises:
        ArgumentError: Something is neither (contains 'Invalid filter').

    Example:
        >>> import synmod as sm
        >>> list(sm.state({"a": sm.Param("x"), "b": sm.Param("y")}, sm.PathIn("b")))
        [('b',)]

    Source: Flax NNX `PathIn`.
    """

    __slots__ = ("_texts",)

    def __init__(self, *paths: KeyPath | str) -> None:
        for path in paths:
            if not isinstance(path, str | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
                raise _invalid(path, "PathIn takes paths, each a text or a tuple of steps")
        self._texts = frozenset(path if isinstance(path, str) else path_str(path) for path in paths)
        super().__init__(*sorted(self._texts))

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Look the path up."""
        return path_str(path) in self._texts


class Path(Filter):
    """Paths that match a glob as a whole: `*` within one step, `**` any number of steps; case counts.

    Args:
        glob: The pattern, with steps escaped as in any path text.

    Raises:
        ArgumentError: It is no text (contains 'Invalid filter').
    """

    __slots__ = ()

    def __init__(self, glob: str) -> None:
        if not isinstance(glob, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            raise _invalid(glob, 'Path takes a glob, such as "encoder/**/prompt"')
        super().__init__(glob)

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Match."""
        return glob_matches(self._content[0], path)


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
    raise _invalid(
        x, "write a type, a tag, `...`, a function of (path, value), a tuple of filters, or one of sm.filters"
    )

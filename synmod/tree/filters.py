"""Filters: one way to select Variables, from `split` to the Trainer.

Every form of a filter (a type, a tag, a function, `...`) becomes one of the classes here, which compare, hash and print
by content.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any as Anything, TypeAlias

from synmod import data, errors, leaves

from .variable import Variable, VariableState
from .walk import Kind, Visit, check_root, walk

FilterLike: TypeAlias = Anything
"""A type, a str (tag), `...` or True, None or False, a callable, a tuple or list of filters, or a Filter."""


class Filter:
    """Select values by path, type or content; equal, hashed and printed by content."""

    looks_at_path: bool = True
    """Whether `matches` reads the path; if not, a walk need not compute it."""

    _content: tuple[Anything, ...] = ()

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:
        """Whether the filter takes a value; `masked` is whether a frozen module is above it."""
        raise NotImplementedError

    def __call__(self, path: leaves.KeyPath, value: Anything) -> bool:
        return self.matches(path, value, False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter) or type(self) is not type(other):
            return False
        # by their repr too: 1 == True, and they are different steps and tags
        return self._content == other._content and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((type(self), self._content))

    def __repr__(self) -> str:
        inside = ", ".join(part.__qualname__ if isinstance(part, type) else repr(part) for part in self._content)
        return f"{type(self).__name__}({inside})"


class Everything(Filter):
    """Take everything; also written `...` or True."""

    looks_at_path = False

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Return True."""
        return True


class Nothing(Filter):
    """Take nothing; also written None or False."""

    looks_at_path = False

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Return False."""
        return False


class OfType(Filter):
    """Take instances of a class; a leaf of a State counts as its Variable. Also written as the class itself.

    Args:
        type: The class; subclasses count.

    Raises:
        ArgumentError: It is not a class (contains 'Invalid filter').

    Example:
        >>> import synmod as sm
        >>> len(sm.state({"a": sm.Param("x"), "b": sm.Stat(1)}, sm.OfType(sm.Param)))
        1

    Source: Flax NNX `OfType`.
    """

    looks_at_path = False

    def __init__(self, type: type) -> None:  # noqa: A002  (the public name)
        try:
            isinstance(None, type)
        except TypeError:
            raise _invalid(type, "OfType takes a class") from None
        self._content = (type,)

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether it is an instance."""
        cls = self._content[0]
        return isinstance(value, cls) or (isinstance(value, VariableState) and issubclass(value.type, cls))


class WithTag(Filter):
    """Take Variables whose metadata `tag` equals this one. Also written as the text itself.

    Args:
        tag: Any JSON, mostly a str.

    Example:
        >>> import synmod as sm
        >>> len(sm.state({"a": sm.Param("x", tag="prompt"), "b": sm.Param("y")}, sm.WithTag("prompt")))
        1

    Source: Flax NNX `WithTag`.
    """

    looks_at_path = False

    def __init__(self, tag: leaves.Json) -> None:
        self._content = (leaves.frozen(tag),)

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether the metadata has the tag."""
        if not isinstance(value, Variable | VariableState):
            return False
        metadata = value.metadata
        return "tag" in metadata and leaves.json_equal(metadata["tag"], self._content[0])


class Trainable(Filter):
    """Take trainable Variables: own bit set, no frozen module above; leaves of a State by their own bit alone."""

    looks_at_path = False

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether the bit is set and not masked."""
        return isinstance(value, Variable | VariableState) and value.trainable and not masked


class Schema(Filter):
    """Take Variables whose schema has everything that a data model or schema requires.

    Args:
        model: A data model or a schema.
    """

    looks_at_path = False

    def __init__(self, model: Anything) -> None:
        declared = data.declare(model, root="any")
        self._content = (model if isinstance(model, type) else declared,)

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether the schema contains the wanted one."""
        return isinstance(value, Variable | VariableState) and data.contains(value.schema, self._content[0])


class PathContains(Filter):
    """Take paths with a step that equals the key; with `exact=False`, with a step whose text contains it.

    Args:
        key: The step, str or int; 0 and "0" are the same step, as in the text of a path.
        exact: Whether the whole step must equal it.

    Raises:
        ArgumentError: The key is neither a str nor an int (contains 'Invalid filter').

    Example:
        >>> import synmod as sm
        >>> list(sm.state({"prompt_1": sm.Param("x"), "b": sm.Param("y")}, sm.PathContains("prompt", exact=False)))
        [('prompt_1',)]

    Source: Flax NNX `PathContains`.
    """

    def __init__(self, key: str | int, exact: bool = True) -> None:
        if not isinstance(key, str | int):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise _invalid(key, "PathContains takes one step, a str or an int")
        self._content = (key, exact)

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether a step matches the key."""
        key, exact = self._content
        text = str(key)
        return any(str(step) == text if exact else text in str(step) for step in path)

    def __repr__(self) -> str:
        key, exact = self._content
        return f"PathContains({key!r})" if exact else f"PathContains({key!r}, exact=False)"


class PathIn(Filter):
    """Take exactly these paths.

    Args:
        *paths: The paths, as tuples of steps or as texts.

    Raises:
        ArgumentError: An argument is neither a tuple nor a str (contains 'Invalid filter').

    Example:
        >>> import synmod as sm
        >>> list(sm.state({"a": sm.Param("x"), "b": sm.Param("y")}, sm.PathIn("b")))
        [('b',)]

    Source: Flax NNX `PathIn`.
    """

    def __init__(self, *paths: leaves.KeyPath | str) -> None:
        for path in paths:
            if not isinstance(path, str | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
                raise _invalid(path, "PathIn takes paths, each a str or a tuple of steps")
        self._texts = frozenset(path if isinstance(path, str) else leaves.path_str(path) for path in paths)
        self._content = tuple(sorted(self._texts))

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether the path is among them."""
        return leaves.path_str(path) in self._texts


class Path(Filter):
    """Take paths that match a glob completely, case-sensitive: `*` is any text within a step, `**` any number of steps.

    Args:
        glob: The pattern, with steps escaped as in any path text.

    Raises:
        ArgumentError: `glob` is not a str (contains 'Invalid filter').

    Example:
        >>> Path("layers/*/prompt")(("layers", 0, "prompt"), None), Path("**/x")(("x",), None)
        (True, True)
    """

    def __init__(self, glob: str) -> None:
        if not isinstance(glob, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            raise _invalid(glob, 'Path takes a glob, such as "encoder/**/prompt"')
        self._content = (glob,)
        self._pattern = re.compile("".join(map(_pattern, leaves.parse_path(glob))))

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Whether the path matches."""
        return self._pattern.fullmatch("".join(map(_step_with_slash, path))) is not None


def _step_with_slash(step: str | int) -> str:
    """Return a step of a path as text, with a slash at its end."""
    return f"{leaves.escape_step(step)}/"


def _pattern(step: str) -> str:
    """Return a step of a glob as a regular expression."""
    return "(?:[^/]*/)*" if step == "**" else re.escape(_step_with_slash(step)).replace(r"\*", "[^/]*")


class Where(Filter):
    """Take the values for which a function of path and value returns True. Also written as the function itself."""

    def __init__(self, function: Callable[[leaves.KeyPath, Anything], Anything]) -> None:
        self._content = (function,)

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Call the function."""
        return bool(self._content[0](path, value))


class _Composed(Filter):
    """A filter made of filters."""

    def __init__(self, *filters: FilterLike) -> None:
        self._content = tuple(map(to_filter, filters))
        self.looks_at_path = any(part.looks_at_path for part in self._content)


class Any(_Composed):
    """Take values that at least one of the filters takes. Also written as a tuple or list."""

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:
        """Whether at least one filter matches."""
        return any(part.matches(path, value, masked) for part in self._content)


class All(_Composed):
    """Take values that all of the filters take."""

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:
        """Whether all filters match."""
        return all(part.matches(path, value, masked) for part in self._content)


class Not(_Composed):
    """Take values that the filter does not take."""

    def __init__(self, filter: FilterLike) -> None:  # noqa: A002  (the public name)
        super().__init__(filter)

    def matches(self, path: leaves.KeyPath, value: Anything, masked: bool) -> bool:
        """Whether the filter does not match."""
        return not self._content[0].matches(path, value, masked)


def to_filter(x: FilterLike) -> Filter:
    """Return the filter for any form that a user may write.

    Raises:
        ArgumentError: It is not a form of a filter (contains 'Invalid filter').
    """
    if isinstance(x, Filter):
        return x
    if x is ... or x is True:
        return Everything()
    if x is None or x is False:
        return Nothing()
    if isinstance(x, type) and issubclass(x, Filter):
        if x.__init__ is not object.__init__:
            raise _invalid(x, f"it is the class of a filter; write an instance, {x.__name__}(...)")
        return x()
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


def _invalid(x: Anything, expected: str) -> errors.ArgumentError:
    return errors.ArgumentError(f"Invalid filter {x!r:.200}: {expected}.")


class Decisions:
    """The decisions of a filter in one walk: one per object, at its canonical path, however many edges lead to it.

    Args:
        filter_: The filter.
        root: The root, if the coming walk is not in definition order, so that its first visits may not be at the
            canonical paths.
    """

    def __init__(self, filter_: Filter, root: Anything = None) -> None:
        self._filter = filter_
        self._known: dict[int, bool] = {}
        if root is not None and filter_.looks_at_path:
            with suppress(errors.GraphError):  # the coming walk raises it again
                for visit in walk(root):
                    self.takes(visit)

    def takes(self, visit: Visit) -> bool:
        """Whether the filter takes the visited object."""
        if visit.index is not None and id(visit.value) in self._known:
            return self._known[id(visit.value)]
        path = visit.path if self._filter.looks_at_path else ()
        decision = self._filter.matches(path, visit.value, visit.masked)
        if visit.index is not None:
            self._known[id(visit.value)] = decision
        return decision


def select(node: Anything, filter: FilterLike, kind: Kind) -> list[Visit]:  # noqa: A002  (the public name)
    """Return the visits of the nodes or of the Variables of a program that a filter takes, those of aliases too.

    Raises:
        ArgumentError: `node` cannot be the root of a graph, or the filter is invalid.
        GraphError: The graph cannot be walked.
    """
    check_root(node)
    decisions = Decisions(to_filter(filter))
    return [visit for visit in walk(node) if visit.kind == kind and decisions.takes(visit)]

"""Filters that look at the canonical path alone."""

from __future__ import annotations

from typing import Any as Anything

from synmod.leaves.names import KeyPath, path_str
from synmod.tree.filtering.filter import Filter, invalid
from synmod.tree.filtering.glob import glob_matches


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
            raise invalid(key, "PathContains takes one step, a str or an int")
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
                raise invalid(path, "PathIn takes paths, each a text or a tuple of steps")
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
            raise invalid(glob, 'Path takes a glob, such as "encoder/**/prompt"')
        super().__init__(glob)

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:  # noqa: ARG002
        """Match."""
        return glob_matches(self._content[0], path)

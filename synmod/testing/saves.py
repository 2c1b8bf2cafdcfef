"""`assert_saves`: one line in a test for every module of one's own."""

from __future__ import annotations

from typing import Any

from synmod.leaves.names import path_str
from synmod.saving import dumps, loads
from synmod.tree import split


def assert_saves(module: Any, **load: Any) -> Any:
    """Save, load and save again, and compare text, graph and state.

    Args:
        module: A module, another registered node, or a list or dict of them.
        **load: Keywords of `sm.loads`, such as `custom_objects`.

    Returns:
        The loaded one.

    Raises:
        AssertionError: Names the first difference.
        SaveError, LoadError: It cannot be saved, or not be loaded again.

    Example:
        >>> import synmod as sm
        >>> assert_saves(sm.Sequential([]))
        Sequential(members=[])

    Source: Sonnet's catalogue laws.
    """
    first = dumps(module)
    again = loads(first, **load)
    second = dumps(again)
    if first != second:
        raise AssertionError(_first_line_apart(first, second))
    (graph, values), (graph_again, values_again) = split(module), split(again)
    if graph != graph_again and graph.to_json() != graph_again.to_json():  # a handle kept out of files is never equal
        apart = graph.diff(graph_again)
        where = path_str(apart[0]) if apart else ""
        raise AssertionError(f"The graph is another one after a load, first at {where!r}.")
    if values != values_again:
        path = next(iter(values.diff(values_again)), ())
        raise AssertionError(f"The state is another one after a load, first at {path_str(path)!r}.")
    return again


def _first_line_apart(first: str, second: str) -> str:
    """Return where two texts differ, with the lines around."""
    one, other = first.splitlines(), second.splitlines()
    number = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    around = "\n".join(f"    {line}" for line in one[max(0, number - 5) : number])
    return (
        f"The text is another one after a load, first in line {number + 1}:\n{around}\n"
        f"  - {_line(one, number)}\n  + {_line(other, number)}"
    )


def _line(lines: list[str], number: int) -> str:
    """Return a line, or a word for the end."""
    return lines[number] if number < len(lines) else "(the end)"

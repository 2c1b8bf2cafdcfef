"""map: a copy of a program with other values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from synmod.tree.functional.clone import copied
from synmod.tree.graphs.record import record
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.state_json import with_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json
    from synmod.leaves.names import KeyPath
    from synmod.tree.variable.variable_state import VariableState

M = TypeVar("M")


def map(fn: Callable[[KeyPath, VariableState], Json], node: M) -> M:  # noqa: A001  (its name is `synmod.tree.map`)
    """Copy a program, with every Variable's value replaced.

    Variables below by-reference nodes, which a copy keeps as they are, are left out.

    Args:
        fn: `fn(path, variable_state)` gives the new value.
        node: A program.

    Returns:
        A copy, as `clone` makes it.

    Raises:
        StateSchemaError: Results miss their schemas; lists every path.
        ArgumentError: `node` holds no graph.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "b": sm.Param("y")}
        >>> sm.tree.map(lambda path, leaf: leaf.value * 2, program)["b"].value
        'yy'

    Source: Flax NNX `map`, `jax.tree.map`; differs: results are validated.
    """
    taken = record(node)
    kept = taken.graphdef.kept
    faults: list[Fault] = []
    values: dict[int, Json] = {}
    for visit in taken.leaves:
        if visit.index is not None and visit.index not in kept:
            leaf, path = visit.value.to_state(), visit.path
            values[visit.index] = with_value(path, leaf, fn(path, leaf), faults).value
    raise_faults("map", faults)
    return copied(taken, dict(kept), values)

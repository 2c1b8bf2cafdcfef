"""Gathering: all leaves of the States handed in, by the Variable they mean, every fault noted, nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.data import problems
from synmod.errors import DataError, Problem
from synmod.leaves.frozen import FrozenDict, Json, frozen, json_equal
from synmod.leaves.names import path_str
from synmod.tree.states.faults import Fault
from synmod.tree.states.layout import ABSENT
from synmod.tree.variable.variable import Variable
from synmod.tree.variable.variable_state import VariableState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from synmod.data import Schema
    from synmod.leaves.names import KeyPath
    from synmod.tree.states.layout import Layout, Misfit, StateLike

_UNKNOWN_LAST = float("inf")


class Leaf(NamedTuple):
    """A checked leaf: the path it was given at, its frozen value, and metadata where it came with some."""

    path: KeyPath
    value: Json
    metadata: FrozenDict | None
    type: type[Any] | None


class Gathered:
    """Leaves by the index of their Variable, and what did not fit.

    Attributes:
        leaves: What fits.
        misfits: Leaves that have no Variable, in the order they came, each with what was given.
        faults: Values that miss their schemas, and paths with two values.
    """

    __slots__ = ("faults", "leaves", "misfits")

    def __init__(self) -> None:
        self.leaves: dict[int, Leaf] = {}
        self.misfits: list[tuple[Misfit, Any]] = []
        self.faults: list[Fault] = []

    def lost(self) -> list[tuple[Misfit, Any]]:
        """Give the leaves whose paths lead nowhere, each with what was given."""
        return [(misfit, given) for misfit, given in self.misfits if misfit.kind in ABSENT]

    def refused(self, static: str) -> list[Fault]:
        """Say of leaves whose paths lead to no Variable why; `static` is the phrase for a value where one stands."""
        refused = [misfit for misfit, _ in self.misfits if misfit.kind not in ABSENT]
        return [
            Fault(_UNKNOWN_LAST, f"{static} {misfit.text}" if misfit.kind == "static" else misfit.text)
            for misfit in refused
        ]

    def misfit_faults(self, static: str) -> list[Fault]:
        """Say of every leaf without a Variable why; of paths that lead nowhere in one line."""
        texts = [misfit.text for misfit, _ in self.lost()]
        unknown = [Fault(_UNKNOWN_LAST, f"Unknown keys: {', '.join(texts)}")] if texts else []
        return [*self.refused(static), *unknown]


def gather(
    layout: Layout,
    states: Iterable[StateLike],
    schema_of: Callable[[int], Schema],
    what: str,
    *,
    overwrite: bool = False,
) -> Gathered:
    """Take the leaves of States and raw JSON and check each against the schema of its Variable.

    Args:
        layout: Where leaves go.
        states: What was handed in; later ones win with `overwrite`, else two values for one Variable are a fault.
        schema_of: The schema of a Variable by index.
        what: The name of the function, for errors.
        overwrite: Whether a later State wins.

    Raises:
        ArgumentError: Something is neither a State nor JSON of one.
    """
    found = Gathered()
    for state in states:
        for path, target, given in layout.given(state, what):
            if not isinstance(target, int):
                found.misfits.append((target, given))
                continue
            leaf = checked_leaf(path, given, schema_of(target), target, found.faults)
            if leaf is None:
                continue
            before = found.leaves.get(target)
            if before is not None and not overwrite and not json_equal(before.value, leaf.value):
                where = " and ".join(dict.fromkeys((repr(path_str(before.path)), repr(path_str(path)))))
                found.faults.append(
                    Fault(
                        target,
                        f"{where}: two different values for one Variable: {before.value!r:.80}, {leaf.value!r:.80}",
                    )
                )
            found.leaves[target] = leaf
    return found


def checked_leaf(path: KeyPath, given: Any, schema: Schema, index: int, faults: list[Fault]) -> Leaf | None:
    """Freeze and validate one leaf."""
    if isinstance(given, VariableState):
        if given.schema is schema:
            return Leaf(path, given.value, given.metadata, given.type)
        value, metadata, kind = given.value, given.metadata, given.type
    else:
        metadata, kind = None, None
        try:
            value = _plain(given)
        except DataError as error:
            where = f"{path_str(path)}#"
            faults.append(Fault(index, f"{where}: {error}", (Problem(where, "JSON", type(given).__name__),)))
            return None
    missed = problems(schema, value)
    if missed:
        faults.append(_misses(path, index, missed))
        return None
    return Leaf(path, value, metadata, kind)


def _plain(given: Any) -> Json:
    if isinstance(given, Variable):
        raise DataError("a Variable is no value: give its `.value` or `.to_state()`")
    return frozen(given)


def _misses(path: KeyPath, index: int, missed: Iterable[Problem]) -> Fault:
    """Say how a value misses its schema: path, pointer into the value, wanted and got."""
    whole = tuple(missed)
    text = path_str(path)
    lines = "; ".join(f"{text}#{p.pointer}: wanted {p.wanted}, got {p.got}" for p in whole)
    return Fault(index, lines, tuple(Problem(f"{text}#{p.pointer}", p.wanted, p.got) for p in whole))


def leaves_by_path(leaf_paths: Mapping[KeyPath, int], found: Gathered) -> dict[KeyPath, Leaf]:
    """Order what fits by canonical path, in definition order."""
    return {path: found.leaves[index] for path, index in leaf_paths.items() if index in found.leaves}

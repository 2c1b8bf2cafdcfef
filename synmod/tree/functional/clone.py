"""Copies of programs: structure new, frozen values, statics and by-reference nodes shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from synmod.tree.filtering.filters import FilterLike, to_filter
from synmod.tree.functional.build import build
from synmod.tree.graphs.defs import VariableDef
from synmod.tree.graphs.record import Recording, record

if TYPE_CHECKING:
    from collections.abc import Mapping


M = TypeVar("M")


def clone(node: M, share: FilterLike = None) -> M:
    """Copy a program.

    What is shared inside stays shared inside the copy, cycles are closed again. Statics and by-reference nodes
    (language models) are the same objects; counters of modules start at zero.

    Args:
        node: A program.
        share: Filter for Variables that both have in common.

    Returns:
        A copy of the same type.

    Raises:
        ArgumentError: `node` holds no graph, or the filter is none.
        GraphError: The walk cannot be made.

    Example:
        >>> from synmod.tree import Param
        >>> twin = clone({"a": Param("x")})
        >>> twin["a"].value
        'x'

    Source: Flax NNX `clone`.
    """
    taken = record(node)
    wanted = to_filter(share)
    shared = (
        {
            visit.index: visit.value
            for visit in taken.leaves
            if visit.index is not None and wanted.matches(visit.path, visit.value, visit.masked)
        }
        if share is not None
        else {}
    )
    return copied(taken, {**taken.graphdef.kept, **shared})


def deepcopy_node(node: M, memo: dict[int, Any]) -> M:
    """Do what `copy.deepcopy` asks of a node: a clone that refers to what was copied beside it."""
    taken = record(node)
    known = {index: memo[id(old)] for index, old in taken.objects.items() if id(old) in memo}
    objects = {**taken.graphdef.kept, **known}
    copy = copied(taken, objects)
    for index, old in taken.objects.items():
        memo[id(old)] = objects[index]
    memo.setdefault(id(memo), []).append(taken.objects)  # deepcopy's way to keep the originals alive
    return copy


def copied(taken: Recording[M], objects: dict[int, Any]) -> M:
    """Build a copy.

    Args:
        taken: What is copied.
        objects: Objects by index that the copy uses as they are; the new ones are added.
    """
    definitions: Mapping[int, Any] = taken.graphdef.definitions
    values = {
        index: (taken.objects[index].value, definition.metadata)
        for index, definition in definitions.items()
        if isinstance(definition, VariableDef) and index not in objects
    }
    return build(taken.graphdef, values, objects)

"""Candidate: one member of a population."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from synmod.errors import ArgumentError
from synmod.leaves.frozen import Json, frozen
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.states.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[M]):
    """Keeps structure, values and a score together; `merge(c1, c2)` makes a program of candidates of one structure.

    Args:
        graphdef: The structure.
        state: The values, all or some.
        score: How good it is; None while nobody knows.
        meta: Whatever else belongs to it, as JSON; frozen.

    Raises:
        ArgumentError: `graphdef` or `state` is something else.
        DataError: `meta` is no JSON.

    Example:
        >>> import synmod as sm
        >>> best = sm.Candidate(*sm.split({"a": sm.Param("x")}), score=0.9)
        >>> sm.merge(best)["a"].value
        'x'

    Source: Evolutionary search; NNX `(graphdef, state)` pairs.
    """

    graphdef: GraphDef[M]
    state: State
    score: float | None = None
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        if not isinstance(self.graphdef, GraphDef) or not isinstance(self.state, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError("A Candidate is made of a GraphDef and a State: Candidate(*sm.split(program)).")
        object.__setattr__(self, "meta", frozen(dict(self.meta)))

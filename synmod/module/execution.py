"""How a container runs its children: declared for those who reason about a program without running it.

A module whose `call` is written by hand declares nothing, and nothing is known of the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from synmod.leaves.names import KeyPath

if TYPE_CHECKING:
    from synmod.module.module import Module

Order = Literal["in order", "one of", "together", "graph"]


@dataclass(frozen=True, slots=True)
class Child:
    """A child that is run, and the way to it from its container."""

    steps: KeyPath
    module: Module


@dataclass(frozen=True, slots=True)
class Execution:
    """What a container runs.

    Attributes:
        order: `in order`: one after the other, each on the output of the one before. `one of`: alternatives, of which
            some may not run. `together`: in any order. `graph`: each when what it needs is there.
        parts: Children, and executions inside this one; None for what is no module.
        needs: Of a graph, for each part the indices of those whose outputs it needs, all of them before it.
    """

    order: Order
    parts: tuple[Child | Execution | None, ...]
    needs: tuple[Sequence[int], ...] = ()


VERIFIERS: Final[dict[str, Callable[[Module, bool], None]]] = {}
"""What rooms above check of the wiring of a whole program: given its root, and whether all of it is built."""

SCHEDULERS: Final[dict[str, Callable[[Module], Mapping[int, Sequence[int]]]]] = {}
"""What rooms above know of the order of the steps of a graph, beside its data flow."""


def verify_wiring(root: Module, *, is_whole: bool = True) -> None:
    """Check a program as a whole; `is_whole` tells that nothing will be added to it by builds to come.

    Raises:
        SkipVerifyError: Its skip connections do not match.
    """
    for verify in VERIFIERS.values():
        verify(root, is_whole)


def steps_before(program: Module) -> Mapping[int, Sequence[int]]:
    """The steps that must end before a step of a graph begins, beside those whose outputs it needs."""
    before: dict[int, Sequence[int]] = {}
    for schedule in SCHEDULERS.values():
        before |= schedule(program)
    return before

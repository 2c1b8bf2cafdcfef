"""How kinds of modules differ from `Module`, and what rooms above contribute.

Behaviour of a kind is a function with a default, for which rooms above register their own: it is not a method, because
the names on an instance belong to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import singledispatch
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from synmod import leaves

if TYPE_CHECKING:
    from .module import Module


Order = Literal["in order", "one of", "together", "graph"]


class ChildAt(NamedTuple):
    """A child to run, and the steps to it from its container."""

    steps: leaves.KeyPath
    module: Module


class Execution(NamedTuple):
    """The parts that a container runs, and their order.

    Attributes:
        order: `in order`: one after the other, each on the output of the one before. `one of`: alternatives, of which
            some may not run. `together`: in any order. `graph`: each when its inputs are ready.
        parts: Children and nested executions; None for a part that is not a module.
        needs: In a graph, for each part, the indices of the earlier parts whose outputs it needs.
    """

    order: Order
    parts: tuple[ChildAt | Execution | None, ...]
    needs: tuple[Sequence[int], ...] = ()


@singledispatch
def execution_of(module: Any) -> Execution | None:  # noqa: ARG001  # of the classes registered
    """Return how a module runs its children; None for a user-defined `call`, which cannot be known."""
    return None


@singledispatch
def own_inputs_of(module: Any) -> tuple[Any, ...]:  # noqa: ARG001
    """Return the inputs that a module has itself: the Inputs of a functional program."""
    return ()


@singledispatch
def passes_none(module: Any) -> bool:  # noqa: ARG001
    """Whether a call is skipped if an argument is None but may not be; an entry call of a program raises instead."""
    return True


@singledispatch
def verify_first_call(module: Any) -> None:
    """Check the skip connections of a Sequential, as the root of a program, before its first call; default: nothing."""


# -- rooms above -------------------------------------------------------------------------------------------------------


class CallAttempt(Protocol):
    """The calls made in one block."""

    def keep(self) -> None:
        """Keep the values that the calls stashed."""


@dataclass(frozen=True)
class RoomsAbove:
    """The functions of `skip` and `view` that this room and those beside them call; `synmod/__init__.py` sets them.

    Attributes:
        verify_wiring: Checks the skip connections of a root; the flag is whether no later build adds to it.
        attempt: Does what `attempt` below promises.
        summary: Prints and returns the summary of a module, of a depth and columns.
        plot: Returns the picture of a module, in a format, and writes it to a path unless that is None.
    """

    verify_wiring: Callable[[Module, bool], None]
    attempt: Callable[[], AbstractContextManager[CallAttempt]]
    summary: Callable[[Module, int | None, Iterable[str] | None], str]
    plot: Callable[[Module, str | PathLike[str] | None, str], str]
    instance: ClassVar[RoomsAbove]


def attempt() -> AbstractContextManager[CallAttempt]:
    """Return a block whose calls affect the skip connections only if `keep` is called, inside or after the block."""
    return RoomsAbove.instance.attempt()


def has_open_skips(module: Module) -> bool:
    """Whether a skip connection has one end inside a module and the other outside."""
    stashed: set[Any] = set()
    popped: set[Any] = set()
    modules: tuple[Any, ...] = (module, *module.submodules)
    for part in modules:
        skips = part._record.declaration.skips
        if skips is not None:
            stashed.update(map(part.namespaced, skips.stash))
            popped.update(map(part.namespaced, skips.pop | skips.peek))
    return stashed != popped

"""How modules below a container are wired: in which order they run, and which values skip past them.

What a room above contributes (skips, orders of steps, attempts) is in a table that it fills at import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import singledispatch
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self

from synmod.data import Schema
from synmod.leaves.names import KeyPath
from synmod.scope import CallFrame
from synmod.tree import walk

from .record import Module, ModuleRecord

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
        parts: Children, and executions inside this one; None for what is not a module.
        needs: Of a graph, for each part the indices of those whose outputs it needs, all of them before it.
    """

    order: Order
    parts: tuple[Child | Execution | None, ...]
    needs: tuple[Sequence[int], ...] = ()


# How a kind of module differs from `Module`: functions with a default, for which a room above registers another one
# for its own class. They are not methods, because the names on an instance are the user's.


@singledispatch
def execution_of(module: Any) -> Execution | None:  # noqa: ARG001  # of the classes registered
    """Return how a module runs its children; None for a `call` written by hand, of which nothing is known."""
    return None


@singledispatch
def own_inputs_of(module: Any) -> tuple[Any, ...]:  # noqa: ARG001
    """Return the inputs that a module knows by itself: a functional program has its Inputs."""
    return ()


@singledispatch
def passes_none(module: Any) -> bool:  # noqa: ARG001
    """Whether a call with None where None is not taken is skipped; an entry call of a program raises instead."""
    return True


@singledispatch
def verify_first_call(module: Any) -> None:
    """Check the wiring of a row, as the root of a program, before its first call; another module has none to check."""


VERIFIERS: Final[dict[str, Callable[[Module, bool], None]]] = {}
"""What rooms above check of the wiring of a whole program: given its root, and whether all of it is built."""

SCHEDULERS: Final[dict[str, Callable[[Module], Mapping[int, Sequence[int]]]]] = {}
"""What rooms above know of the order of the steps of a graph, beside its data flow."""


def verify_wiring(root: Module, *, is_whole: bool = True) -> None:
    """Check a program as a whole; `is_whole`: no build to come will add to it.

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


class Attempt(Protocol):
    """Calls that were made in one block."""

    def keep(self) -> None:
        """Keep what they left."""
        ...


ATTEMPTS: Final[dict[str, Callable[[], AbstractContextManager[Attempt]]]] = {}
"""What makes an attempt, put here by the room whose values go past calls."""


def attempt() -> AbstractContextManager[Attempt]:
    """Return a block, `one`, whose calls count only if it is kept: by `one.keep()`, also later."""
    make = ATTEMPTS.get("skips")
    return _NOTHING_LEFT if make is None else make()


class _NothingLeft:
    """An attempt in a program whose calls leave nothing beside their outputs."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Nothing to be done."""

    def keep(self) -> None:
        """Nothing to be kept."""


_NOTHING_LEFT: Final = _NothingLeft()


class Runner(Protocol):
    """Runs `call` of a module that declares skips."""

    def run(self, module: Module, frame: CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `call` in its frame, with what must happen before and after it; the result is to be awaited."""
        ...

    def assume(self, module: Module, frame: CallFrame) -> None:
        """Do to the lane what the class declares, unless `call` was followed on symbols to its end."""
        ...


@dataclass(frozen=True, slots=True)
class DeclaredSkips:
    """The names that a class stashes, pops, peeks at, and may find absent; the schemas and classes of typed ones."""

    stash: frozenset[str]
    pop: frozenset[str]
    peek: frozenset[str]
    optional: frozenset[str]
    schemas: Mapping[str, Schema]
    models: Mapping[str, Any]
    runner: Runner
    required: tuple[str, ...] = ()
    """What must be there before `call` runs, sorted: the pops that are not optional."""
    peeks: tuple[str, ...] = ()
    """`peek`, sorted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", tuple(sorted(self.pop - self.optional)))
        object.__setattr__(self, "peeks", tuple(sorted(self.peek)))

    @property
    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self.stash | self.pop | self.peek)

    def joined(self, more: DeclaredSkips) -> DeclaredSkips:
        """Return these and more; of two schemas of one name the later counts."""
        return DeclaredSkips(
            self.stash | more.stash,
            self.pop | more.pop,
            self.peek | more.peek,
            self.optional | more.optional,
            {**self.schemas, **more.schemas},
            {**self.models, **more.models},
            self.runner,
        )


def has_open_skips(module: Module) -> bool:
    """Whether a value goes into a module, or comes out, by a skip that has one of its ends elsewhere."""
    stashed: set[Any] = set()
    taken: set[Any] = set()
    for visit in walk(module):
        record = getattr(visit.value, "_record", None) if visit.kind == "node" and visit.first else None
        skips = record.declaration.skips if isinstance(record, ModuleRecord) else None
        if skips is not None:
            stashed.update(map(visit.value.namespaced, skips.stash))
            taken.update(map(visit.value.namespaced, skips.pop | skips.peek))
    return stashed != taken


def publish(cls: Any, skips: DeclaredSkips) -> None:
    """Write what a class declares to its public attributes."""
    cls.stashable_names = skips.stash
    cls.poppable_names = skips.pop
    cls.skip_schemas = skips.schemas


def shown_skips(module: Module) -> str:
    """Return the end of the repr of a module: its declared names, nothing where it declares none."""
    skips = module._record.declaration.skips
    if skips is None:
        return ""
    peeked = f" peek={sorted(skips.peek)!r}" if skips.peek else ""
    return f" stash={sorted(skips.stash)!r} pop={sorted(skips.pop)!r}{peeked}"

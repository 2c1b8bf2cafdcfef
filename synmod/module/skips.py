"""What modules know of skip connections: declared names, the Namespaces they are put into, and who runs such calls.

A skip carries a value past the modules in between. The room that does it (`synmod.skip`) stands above this one: a class
that declares skips has a runner from there, which runs its calls. Everything else has none, and pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from synmod.data import Schema
from synmod.module.record import ModuleRecord
from synmod.tree import walk

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope import CallFrame


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

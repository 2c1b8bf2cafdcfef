"""What modules say of skip connections: declared names, the Namespaces they are put into, and who carries them.

A skip carries a value past the modules in between. The room that does it (`synmod.skip`) stands above this one: a class
that declares skips has a runner from there, in whose hands its calls are; so have the modules around it. Everything
else has none, and pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from synmod.data import Schema
from synmod.leaves.names import path_str
from synmod.module.record import ModuleRecord

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope import CallFrame
    from synmod.tree import Visit


class Runner(Protocol):
    """Runs `call` of a module that takes part in skips, or that has such modules below it."""

    def run(self, module: Module, frame: CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `call` in the frame of its call, with what must happen before and after it; to be awaited as it is."""
        ...

    def assume(self, module: Module, frame: CallFrame) -> None:
        """Do to the lane what `call` is declared to do, where its outputs are declared and it is not followed."""
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
    carrier: Runner
    required: tuple[str, ...] = ()
    """What must be there before `call` runs, sorted: the pops that are not optional."""
    peeks: tuple[str, ...] = ()
    """`peek`, sorted."""
    asks: bool = False
    """Whether there is anything to look up before `call` runs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", tuple(sorted(self.pop - self.optional)))
        object.__setattr__(self, "peeks", tuple(sorted(self.peek)))
        object.__setattr__(self, "asks", bool(self.required or self.peeks))

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self.stash | self.pop | self.peek)

    def joined(self, more: DeclaredSkips) -> DeclaredSkips:
        """These and more; of two schemas of one name the later counts."""
        return DeclaredSkips(
            self.stash | more.stash,
            self.pop | more.pop,
            self.peek | more.peek,
            self.optional | more.optional,
            {**self.schemas, **more.schemas},
            {**self.models, **more.models},
            self.runner,
            self.carrier,
        )


class Carried(NamedTuple):
    """A module below an entry module that declares skips.

    Attributes:
        path: Where it stands.
        key: The id of its record: what holds this holds no module.
        skips: What it declares.
        isolated: The Namespaces it uses.
        above: The ids of the records of all modules around it.
    """

    path: str
    key: int
    skips: DeclaredSkips
    isolated: Mapping[str, Any]
    above: tuple[int, ...]

    def keys(self, names: Iterable[str]) -> list[tuple[Any, str]]:
        """The `(namespace, name)` pairs of some of its names, sorted by name."""
        return [(self.isolated.get(name), name) for name in sorted(names)]


def has_open_ends(carried: Iterable[Carried]) -> bool:
    """Tell whether a value goes in or out past the module that these stand below: has one of its ends elsewhere."""
    stashed: set[Any] = set()
    taken: set[Any] = set()
    for each in carried:
        stashed.update(each.keys(each.skips.stash))
        taken.update(each.keys(each.skips.pop | each.skips.peek))
    return stashed != taken


def note_carried(visits: list[Visit], prefix: str = "") -> tuple[Carried, ...]:
    """Find the modules that declare skips among the visits of a walk, and give all modules around them a runner."""
    declaring = [visit for visit in visits if visit.kind == "node" and visit.first and _skips(visit.value) is not None]
    if not declaring:
        return ()
    around: dict[int, list[Any]] = {}
    for visit in visits:
        above = visit.above
        while above is not None and above.kind != "node":
            above = above.above
        if above is not None and visit.kind == "node":
            around.setdefault(id(visit.value), []).append(above.value)
    found: list[Carried] = []
    for visit in declaring:
        skips = _skips(visit.value)
        assert skips is not None
        records = list(_records_around(visit.value, around))
        carry(skips, records)
        below = path_str(visit.path)
        path = f"{prefix}/{below}" if prefix and below else prefix or below
        record: ModuleRecord = visit.value._record
        found.append(Carried(path, id(record), skips, record.isolated, tuple(map(id, records))))
    return tuple(found)


def carry(skips: DeclaredSkips, records: Iterable[ModuleRecord]) -> None:
    """Let the calls of the modules around one that declares skips be known while they run."""
    for record in records:
        if record.runner is None:
            record.runner = skips.carrier


def _skips(node: Any) -> DeclaredSkips | None:
    record = getattr(node, "_record", None)  # other nodes may have one of their own
    return record.declaration.skips if isinstance(record, ModuleRecord) else None


def _records_around(node: Any, around: Mapping[int, list[Any]]) -> Iterator[ModuleRecord]:
    """The records of all modules above a node, by every way, from below."""
    pending, seen = list(around.get(id(node), ())), {id(node)}
    while pending:
        above = pending.pop()
        if id(above) not in seen:
            seen.add(id(above))
            pending += around.get(id(above), ())
            record = getattr(above, "_record", None)
            if record is not None:
                yield record


def publish(cls: Any, skips: DeclaredSkips) -> None:
    """Let a class, and its instances, tell what it declares."""
    cls.stashable_names = skips.stash
    cls.poppable_names = skips.pop
    cls.skip_schemas = skips.schemas


def shown_skips(module: Module) -> str:
    """What the repr of a module ends with: its declared names, nothing where it declares none."""
    skips = module._record.declaration.skips
    if skips is None:
        return ""
    peeked = f" peek={sorted(skips.peek)!r}" if skips.peek else ""
    return f" stash={sorted(skips.stash)!r} pop={sorted(skips.pop)!r}{peeked}"

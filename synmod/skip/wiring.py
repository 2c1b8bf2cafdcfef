"""The wiring of a program: its skips followed in execution order, with every fault and every route on the way."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from synmod.errors import SkipProblem
from synmod.leaves.names import KeyPath, path_str
from synmod.module import Child, Execution
from synmod.skip.namespace import Key
from synmod.skip.ordering import ordered
from synmod.skip.structure import Structure
from synmod.skip.typed import misfit_of

if TYPE_CHECKING:
    from synmod.data import Schema
    from synmod.module import DeclaredSkips, Module


class Site(NamedTuple):
    """A module that stashes or pops a key: where it stands, when it comes, and the schema it declares."""

    path: str
    position: int
    schema: Schema | None


class Elsewhere(NamedTuple):
    """What others stash than the part that is followed, in an order that is not known, or scheduled first."""

    found: Mapping[Key, Site]
    own: Container[Key]
    outside: Elsewhere | None

    def find(self, key: Key) -> Site | None:
        """The site of a key."""
        site = None if key in self.own else self.found.get(key)
        return self.outside.find(key) if site is None and self.outside is not None else site


class Route(NamedTuple):
    """From the module that stashes a key to one that pops it, or peeks at it."""

    key: Key
    producer: str
    consumer: str
    takes: bool


@dataclass
class Lane:
    """What is known of the lane at one point of the execution.

    Attributes:
        stashed: Everything stashed before, with its site.
        popped: Everything popped before, or elsewhere in an order that is not known.
        gone: What has certainly been popped before.
        elsewhere: What others stash in an order that is not that of this lane.
    """

    stashed: dict[Key, Site] = field(default_factory=dict[Key, Site])
    popped: dict[Key, Site] = field(default_factory=dict[Key, Site])
    gone: set[Key] = field(default_factory=set[Key])
    elsewhere: Elsewhere | None = None

    def copy(self) -> Lane:
        """The same, to go on from."""
        return Lane(dict(self.stashed), dict(self.popped), set(self.gone), self.elsewhere)


class Wiring:
    """The skips of a program.

    Args:
        root: The program.

    Attributes:
        problems: Every fault, in execution order.
        routes: The pairs that match.
    """

    def __init__(self, root: Module) -> None:
        self.structure = Structure(root)
        self.routes: list[Route] = []
        self._found: list[tuple[int, SkipProblem]] = []
        self._used: set[Key] = set()
        self._stashes: list[tuple[Key, Site]] = []
        self._position = 0
        self._inside: set[int] = set()
        if self.structure.carriers:
            self._visit((), root, Lane())
        self._report_unused()
        self.problems = [problem for _, problem in sorted(self._found, key=lambda found: found[0])]

    # -- the way through the program ----------------------------------------------------------------------------------

    def _visit(self, path: KeyPath, module: Module, lane: Lane) -> None:
        """Follow one module: what it declares itself, then what it runs."""
        if id(module._record) not in self.structure.carriers or id(module) in self._inside:
            return
        self._position += 1
        skips = module._record.declaration.skips
        if skips is not None:
            self._declared(path_str(path), module, skips, lane)
        self._inside.add(id(module))
        self._execute(path, self.structure.execution_of(module), lane)
        self._inside.discard(id(module))

    def _execute(self, path: KeyPath, part: Child | Execution, lane: Lane) -> None:
        if isinstance(part, Child):
            self._visit((*path, *part.steps), part.module, lane)
        elif part.order == "in order":
            for each in part.parts:
                if each is not None:
                    self._execute(path, each, lane)
        elif part.order == "one of":
            self._one_of(path, part, lane)
        else:
            self._unordered(path, part, lane)

    def _one_of(self, path: KeyPath, part: Execution, lane: Lane) -> None:
        """Alternatives stand side by side; what some of them stash or pop counts as done after them."""
        ends: list[Lane] = []
        for each in part.parts:
            if each is not None:
                ends.append(lane.copy())
                self._execute(path, each, ends[-1])
        for end in ends:
            lane.stashed = {**end.stashed, **lane.stashed}
            lane.popped = {**end.popped, **lane.popped}
            lane.gone |= end.gone

    def _unordered(self, path: KeyPath, part: Execution, lane: Lane) -> None:
        """Parts in any order, or in that of a graph: each may find what the others stash."""
        order, told = list(range(len(part.parts))), None
        if part.order == "graph":
            order, cycles = ordered(part, self.structure)
            told = {key for _, _, key in cycles}
            for consumer, producer, key in cycles:
                self._cycle(path, part, (consumer, producer), key)
        offers = [self.structure.stashed_in(each) for each in part.parts]
        found: dict[Key, Site] = {}
        for offered in offers:
            for key, (steps, schema) in offered.items():
                if told is None or key in told:  # in a graph whatever may be found has run before
                    found.setdefault(key, Site(path_str((*path, *steps)), self._position, schema))
        outside, before, gone = lane.elsewhere, set(lane.gone), set(lane.gone)
        for index in order:
            each = part.parts[index]
            if each is None:
                continue
            lane.elsewhere = Elsewhere(found, offers[index], outside)
            if part.order != "graph":
                lane.gone = set(before)
            self._execute(path, each, lane)
            gone |= lane.gone
        lane.elsewhere = outside
        lane.gone |= gone

    # -- the rules ----------------------------------------------------------------------------------------------------

    def _declared(self, path: str, module: Module, skips: DeclaredSkips, lane: Lane) -> None:
        """Check what one module declares."""
        both = skips.stash & (skips.pop | skips.peek)
        for key in _keys(module, both):
            text = f"{path!r} declared {key[1]!r} both as stashable and as poppable"
            self._problem("both", path, key, None, text)
        for key in _keys(module, skips.stash - both):
            self._stash(path, key, skips, lane)
        for key in _keys(module, skips.peek - both):
            self._peek(path, key, skips, lane)
        for key in _keys(module, skips.pop - both):
            self._pop(path, key, skips, lane)

    def _stash(self, path: str, key: Key, skips: DeclaredSkips, lane: Lane) -> None:
        known = lane.stashed.get(key)
        if known is not None:
            text = f"{path!r} redeclared {key[1]!r} as stashable but not isolated by namespace"
            self._problem("restashed", path, key, known.path, text)
            return
        site = lane.stashed[key] = Site(path, self._position, skips.schemas.get(key[1]))
        self._stashes.append((key, site))

    def _pop(self, path: str, key: Key, skips: DeclaredSkips, lane: Lane) -> None:
        known = lane.popped.get(key)
        producer = lane.stashed.get(key) or _elsewhere(lane, key)
        if known is not None:
            text = f"{path!r} redeclared {key[1]!r} as poppable but not isolated by namespace"
            self._problem("repopped", path, key, known.path, text)
        elif producer is not None:
            lane.popped[key] = Site(path, self._position, None)
            lane.gone.add(key)
            self._route(path, key, skips, producer, takes=True)
        elif key[1] not in skips.optional:
            text = f"{path!r} declared {key[1]!r} as poppable but it was not stashed"
            self._problem("unstashed", path, key, None, text)

    def _peek(self, path: str, key: Key, skips: DeclaredSkips, lane: Lane) -> None:
        producer = None if key in lane.gone else lane.stashed.get(key) or _elsewhere(lane, key)
        if producer is not None:
            self._route(path, key, skips, producer, takes=False)
        elif key[1] not in skips.optional:
            text = f"{path!r} declared {key[1]!r} as peekable but it was not stashed"
            self._problem("unstashed", path, key, None, text)

    def _route(self, path: str, key: Key, skips: DeclaredSkips, producer: Site, *, takes: bool) -> None:
        """Note a pair, and check the schemas of its ends."""
        self._used.add(key)
        self.routes.append(Route(key, producer.path, path, takes))
        wanted = skips.schemas.get(key[1])
        misfit = None if wanted is None or producer.schema is None else misfit_of(producer.schema, wanted)
        if misfit is not None:
            text = f"{path!r} asks {key[1]!r} for {misfit}, which {producer.path!r} does not stash"
            self._problem("schema", path, key, producer.path, text)

    def _cycle(self, path: KeyPath, part: Execution, ends: tuple[int, int], key: Key) -> None:
        consumer, producer = (_shown(path, part.parts[index]) for index in ends)
        text = (
            f"{consumer!r} waits for {key[1]!r}, which {producer!r} stashes, and {producer!r} waits for what "
            f"{consumer!r} gives: a cycle"
        )
        self._problem("cycle", consumer, key, producer, text)

    def _report_unused(self) -> None:
        for key, site in self._stashes:
            if key not in self._used:
                text = f"no module declared {key[1]!r} as poppable but stashed"
                self._found.append((site.position, SkipProblem("unpopped", site.path, *key, None, text)))

    def _problem(self, kind: str, path: str, key: Key, other: str | None, text: str) -> None:
        self._found.append((self._position, SkipProblem(kind, path, *key, other, text)))


def _elsewhere(lane: Lane, key: Key) -> Site | None:
    return None if lane.elsewhere is None else lane.elsewhere.find(key)


def _keys(module: Module, names: Iterable[str]) -> list[Key]:
    return [module.namespaced(name) for name in sorted(names)]


def _shown(path: KeyPath, part: Child | Execution | None) -> str:
    return path_str((*path, *part.steps)) if isinstance(part, Child) else path_str(path)

"""The outline of a program: its modules in definition order, what each holds, skips, and the last recorded call.

One fold over the walk, read by summaries and pictures alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from synmod.leaves.names import KeyPath, escape_step
from synmod.lm import LanguageModel
from synmod.module import Child, Execution, Module, execution_of, is_built_here
from synmod.scope import TraceNode, Usage
from synmod.tree import Variable, Visit, is_trainable, walk

Part = Child | Execution | None


@dataclass(frozen=True, slots=True)
class Held:
    """Variables: how many are trainable and how many frozen, their JSON in bytes and in characters."""

    trainable: int = 0
    frozen: int = 0
    size: int = 0
    characters: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(
            self.trainable + other.trainable,
            self.frozen + other.frozen,
            self.size + other.size,
            self.characters + other.characters,
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls: how many, what their own model calls used, and wall seconds, those of the calls below included."""

    invocations: int = 0
    usage: Usage = field(default_factory=Usage)
    elapsed_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.invocations + other.invocations, self.usage + other.usage, self.elapsed_s + other.elapsed_s)


class Member:
    """A module at its place, or one more name of a module that has its place elsewhere.

    Attributes:
        module: The module.
        above: The member that holds it; None for the root.
        steps: The steps that lead to it from there.
        level: How many members stand above.
        stands_for: The member whose module this is a further name of; None at the module's own place.
        below: The members that this one holds, aliases among them, in definition order.
        variables: The Variables that it holds itself: steps from here, Variable, whether it counts as trainable.
        models: The language models that it holds itself.
    """

    __slots__ = ("above", "below", "level", "models", "module", "stands_for", "steps", "variables")

    def __init__(self, module: Module, above: Member | None, steps: KeyPath, stands_for: Member | None) -> None:
        self.module = module
        self.above = above
        self.steps = steps
        self.level = 0 if above is None else above.level + 1
        self.stands_for = stands_for
        self.below: list[Member] = []
        self.variables: list[tuple[KeyPath, Variable, bool]] = []
        self.models: list[LanguageModel] = []

    def model_names(self) -> list[str]:
        """The language models it asks; "(default)" where its class takes one and none was given."""
        if self.stands_for is not None:
            return []
        names = list(dict.fromkeys(lm.settings.model for lm in self.models))
        return names or (["(default)"] if hasattr(type(self.module), "language_model") else [])

    def tail(self, longest: int) -> str:
        """The path, or its end where it is longer; as quick for a deep member as for any other."""
        parts: list[str] = []
        length = 0
        member: Member | None = self
        while member is not None and length <= longest:
            steps = [escape_step(step) for step in reversed(member.steps)]
            parts += steps
            length += sum(map(len, steps)) + len(steps)
            member = member.above
        text = "/".join(reversed(parts))
        return text if len(text) <= longest else f"…{text[1 - longest :]}"


class Outline:
    """The members of a program in definition order, the root first, and who shares Variables with whom.

    Attributes:
        members: All members, aliases among them.
        places: The member at a module's own place, by the id of the module.
        holders: For each Variable held at several places, the members and last steps in order, the canonical first.
    """

    def __init__(self, root: Module) -> None:
        self.members: list[Member] = []
        self.places: dict[int, Member] = {}
        edges: dict[int, list[tuple[Member, Any]]] = {}
        for visit in walk(root):
            holder = _holder(visit)
            if visit.kind == "variable":
                assert holder is not None  # the root of an outline is a module
                if visit.first:
                    holder.variables.append((_steps_to(visit), visit.value, is_trainable(visit)))
                edges.setdefault(cast("int", visit.index), []).append((holder, visit.step))
            elif isinstance(visit.value, Module):
                holder = self._add(visit, holder)
            elif isinstance(visit.value, LanguageModel) and holder is not None:
                holder.models.append(visit.value)
            if visit.kind in ("node", "container"):  # something may be below
                visit.parts = {_HOLDER: holder}
        self.holders = [found for found in edges.values() if len(found) > 1]

    def _add(self, visit: Visit, above: Member | None) -> Member:
        """Take a module in, at its own place or as an alias."""
        module: Module = visit.value
        member = Member(module, above, _steps_to(visit), self.places.get(id(module)))
        self.members.append(member)
        if above is not None:
            above.below.append(member)
        return self.places.setdefault(id(module), member)

    def paths(self) -> dict[int, str]:
        """The path of each module by its id: its own place; as long as the paths are."""
        paths: dict[int, str] = {}
        for member in self.members:
            if member.stands_for is None:
                above = "" if member.above is None else paths[id(member.above.module)]
                own = "/".join(map(escape_step, member.steps))
                paths[id(member.module)] = f"{above}/{own}" if above else own
        return paths

    def aliases(self) -> dict[str, str]:
        """The path of the module for each further name of one."""
        paths = self.paths()
        aliases: dict[str, str] = {}
        for member in self.members:
            if member.above is not None and member.stands_for is not None:
                above = paths[id(member.above.module)]
                own = "/".join(map(escape_step, member.steps))
                aliases[f"{above}/{own}" if above else own] = paths[id(member.module)]
        return aliases


def below_first(root: Member) -> Iterator[Member]:
    """Go through a member and those below it, each after what it holds; without recursion."""
    waiting: list[tuple[Member, Iterator[Member]]] = [(root, iter(root.below))]
    while waiting:
        member, rest = waiting[-1]
        deeper = next(rest, None)
        if deeper is None:
            waiting.pop()
            yield member
        else:
            waiting.append((deeper, iter(deeper.below)))


_HOLDER = "holder"


def _holder(visit: Visit) -> Member | None:
    """The member that holds what is visited; each visit above carries the one for what is below it."""
    return None if visit.above is None else visit.above.parts[_HOLDER]


def _steps_to(visit: Visit) -> KeyPath:
    """The steps from the member above, through containers and other nodes."""
    steps: list[Any] = []
    at = visit
    while at.above is not None:
        steps.append(at.step)
        at = at.above
        if isinstance(at.value, Module):
            break
    return tuple(reversed(steps))


def unbuilt_in(outline: Outline) -> set[int]:
    """The ids of the modules that are not built, as each would answer for itself.

    A class with an answer of its own asks what is below it; asked from above, again and again, that would cost the
    square of the depth.
    """
    unbuilt: set[int] = set()
    for member in below_first(outline.members[0]):
        if member.stands_for is None and not _is_built(member, unbuilt):
            unbuilt.add(id(member.module))
    return unbuilt


def _is_built(member: Member, unbuilt: set[int]) -> bool:
    """Whether a module is built, given those below it that are not."""
    module, record = member.module, member.module._record
    if type(module).built is Module.built:
        return is_built_here(record)
    if record.sealed:
        return is_built_here(record) and not any(id(part.module) in unbuilt for part in member.below)
    return module.built


class Way(NamedTuple):
    """A value carried past the modules in between: its name, and the paths of who makes and who takes it."""

    name: str
    producer: str
    consumer: str


def declared_skips(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a module stashes, and those that it pops or peeks at, with their Namespaces."""
    skips = module._record.declaration.skips
    if skips is None:
        return (), ()
    peeked = [module.namespaced(name) for name in sorted(skips.peek)]
    return _names(module.stashable()), (*_names(module.poppable()), *(f"{name} (peek)" for name in _names(peeked)))


def skip_routes(outline: Outline) -> list[Way]:
    """The static routes of all skips of a program; the room that knows them is loaded where there are some."""
    if all(member.module._record.declaration.skips is None for member in outline.members):
        return []
    from synmod.skip import skip_layout

    routes = skip_layout(outline.members[0].module).routes
    return [Way(_name(route.key), route.producer, route.consumer) for route in routes]


def _names(keys: Iterable[tuple[Any, str]]) -> tuple[str, ...]:
    return tuple(map(_name, keys))


def _name(key: tuple[Any, str]) -> str:
    """A name, after that of its Namespace where it has one."""
    namespace, name = key
    return name if namespace is None or namespace.name is None else f"{namespace.name}/{name}"


def recorded_call(module: Module) -> TraceNode | None:
    """The last entry call of a module that a trace has recorded; None where there was none."""
    return module._record.recorded


def calls_below(root: TraceNode) -> Iterator[TraceNode]:
    """Go through a call and those below it, each before those it made, by their start; without recursion."""
    waiting = [root]
    while waiting:
        call = waiting.pop()
        yield call
        waiting += reversed(call.children)


def spent_by_path(root: TraceNode, known: set[str]) -> dict[str, Spent]:
    """Return the calls and what their own model calls used, by the path of the module.

    Args:
        root: The entry call.
        known: The paths that are shown; what was called elsewhere, on a module made inside a call, counts for its
            caller.
    """
    by_path: dict[str, Spent] = {}
    place: dict[int, str] = {}
    for call in calls_below(root):
        is_known = call.path in known
        path = call.path if is_known or call.parent is None else place[id(call.parent)]
        place[id(call)] = path
        used = sum((lm_call.usage for lm_call in call.lm_calls), Usage())
        spent = Spent(int(is_known), used, (call.elapsed_s or 0.0) if is_known else 0.0)
        by_path[path] = by_path[path] + spent if path in by_path else spent
    return by_path


def row_of(module: Module) -> Sequence[Part] | None:
    """The parts of a row; None where a module runs otherwise, or does not say how."""
    execution = execution_of(module)
    return execution.parts if execution is not None and execution.order == "in order" else None

"""The outline of a program: its modules in definition order, and what each of them holds itself.

One fold over the walk, read by summaries and pictures alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from synmod.leaves.names import KeyPath, escape_step
from synmod.lm import LanguageModel
from synmod.module import Module
from synmod.tree import OpenVisit, Variable, Visit, is_trainable, walk


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
            if isinstance(visit, OpenVisit):  # something may be below
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

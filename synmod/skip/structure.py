"""The structure that skips run through: which modules carry some, what they hold, and how they run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from synmod.errors import ArgumentError
from synmod.leaves.names import KeyPath
from synmod.module import Child, Execution, Module, note_carried
from synmod.skip.namespace import Key
from synmod.tree import Visit, walk

if TYPE_CHECKING:
    from synmod.data import Schema

Offers = Mapping[Key, tuple[KeyPath, "Schema | None"]]


class Wishes(NamedTuple):
    """What is popped and what is peeked at in a part, and which of it may not be absent."""

    popped: frozenset[Key] = frozenset()
    peeked: frozenset[Key] = frozenset()
    needed: frozenset[Key] = frozenset()

    def joined(self, more: Wishes) -> Wishes:
        """These and more."""
        return Wishes(self.popped | more.popped, self.peeked | more.peeked, self.needed | more.needed)


class Structure:
    """What one walk finds out about a program.

    Attributes:
        carriers: The ids of the records of all modules that declare skips, or have such below them.

    Raises:
        ArgumentError: The root is no module.
    """

    def __init__(self, root: Module) -> None:
        if not isinstance(root, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
            raise ArgumentError(f"The skips of {root!r:.100} are asked for, which is no module.")
        visits = list(walk(root))
        carried = note_carried(visits)
        self.carriers = {record for each in carried for record in (each.key, *each.above)}
        self._children: dict[int, dict[int, Child]] = {}
        """By the id of a module, its children by their own."""
        self._offers: dict[int, Offers] = {}
        self._wishes: dict[int, Wishes] = {}
        if carried:
            for visit in visits:
                self._note(visit)

    def execution_of(self, module: Module) -> Execution:
        """How a module runs its children: in any order, where it does not say."""
        declared = module._execution()
        return Execution("together", self._children_of(module)) if declared is None else declared

    def stashed_in(self, part: Child | Execution | None) -> Offers:
        """What is stashed in a part, at any depth, each with the way to where, from the container, and its schema."""
        found: dict[Key, tuple[KeyPath, Schema | None]] = {}
        for child in _children_of(part):
            for key, (steps, schema) in self._stashed_below(child.module, frozenset()).items():
                found.setdefault(key, ((*child.steps, *steps), schema))
        return found

    def wanted_in(self, part: Child | Execution | None) -> Wishes:
        """What is asked for in a part, at any depth."""
        found = Wishes()
        for child in _children_of(part):
            found = found.joined(self._wanted_below(child.module, frozenset()))
        return found

    def _children_of(self, module: Module) -> tuple[Child, ...]:
        return tuple(self._children.get(id(module), {}).values())

    def _note(self, visit: Visit) -> None:
        """Note a module as a child of the nearest module above it, each once."""
        if visit.kind != "node" or not isinstance(visit.value, Module) or id(visit.value._record) not in self.carriers:
            return
        steps: list[str | int] = []
        above: Visit | None = visit
        while above is not None and (above is visit or not isinstance(above.value, Module)):
            steps.append(above.step)
            above = above.above
        if above is None:
            return
        siblings = self._children.setdefault(id(above.value), {})
        siblings.setdefault(id(visit.value), Child(tuple(reversed(steps)), visit.value))

    def _stashed_below(self, module: Module, around: frozenset[int]) -> Offers:
        known = self._offers.get(id(module))
        if known is not None or id(module) in around or id(module._record) not in self.carriers:
            return known or {}
        found: dict[Key, tuple[KeyPath, Schema | None]] = {}
        skips = module._record.declaration.skips
        if skips is not None:
            for name in sorted(skips.stash):
                found[module.namespaced(name)] = ((), skips.schemas.get(name))
        for child in self._children_of(module):
            for key, (steps, schema) in self._stashed_below(child.module, around | {id(module)}).items():
                found.setdefault(key, ((*child.steps, *steps), schema))
        self._offers[id(module)] = found
        return found

    def _wanted_below(self, module: Module, around: frozenset[int]) -> Wishes:
        known = self._wishes.get(id(module))
        if known is not None or id(module) in around or id(module._record) not in self.carriers:
            return known or Wishes()
        found = Wishes()
        skips = module._record.declaration.skips
        if skips is not None:
            words = (skips.pop, skips.peek, (skips.pop | skips.peek) - skips.optional)
            found = Wishes(*(frozenset(map(module.namespaced, names)) for names in words))
        for child in self._children_of(module):
            found = found.joined(self._wanted_below(child.module, around | {id(module)}))
        self._wishes[id(module)] = found
        return found


def _children_of(part: Child | Execution | None) -> list[Child]:
    """All children in a part."""
    if part is None:
        return []
    if isinstance(part, Child):
        return [part]
    return [child for each in part.parts for child in _children_of(each)]

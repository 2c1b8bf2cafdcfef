"""What a mask does at each place of a schema: the fields it names, those it passes through, and the others."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves.frozen import FrozenDict, FrozenList, frozen_dict, frozen_list
from synmod.leaves.names import did_you_mean

from .mask_patterns import Patterns, Positions
from .places import Place, Places

_MOST_BRANCHES: Final = 5_000


class Fate(Enum):
    """What becomes of a field."""

    KEEP = "keep"
    DROP = "drop"


class Branch:
    """A place reached by some patterns that have not ended yet: the fate of each field there, or its own branch."""

    __slots__ = ("_patterns", "_tree", "extra", "fields", "place", "positions")

    def __init__(self, tree: MaskTree, place: Place, positions: Positions) -> None:
        self._tree = tree
        self._patterns = tree.patterns
        self.place = place
        self.positions = positions
        self.fields: dict[str, Fate | Branch] = {}
        self.extra: Fate | Branch = tree.missed

    def grow(self) -> None:
        """Decide on every declared field, and on the keys that are not declared."""
        patterns = self._patterns
        for name in self.place.names:
            self.fields[name] = self._tree.fate(self.place, name, patterns.advanced(self.positions, name))
        if self.place.is_open:
            self.extra = self._tree.fate(self.place, None, patterns.advanced_to_any(self.positions))

    def fate(self, key: str) -> Fate | Branch:
        """Tell what becomes of a key, declared or not."""
        known = self.fields.get(key)
        if known is not None:
            return known
        patterns = self._patterns
        if patterns.arrived(patterns.advanced(self.positions, key)):
            return self._tree.named
        return self.extra

    @property
    def fate_of_named(self) -> Fate:
        """What becomes of the fields that a pattern names."""
        return self._tree.named

    @property
    def may_name_extra_keys(self) -> bool:
        """Whether a pattern may name a key that is not declared by more than `*`."""
        return any(not step.any_name for step in self._patterns.last_steps(self.positions) if not self._declares(step))

    def _declares(self, step: Any) -> bool:
        return not step.wild and step.name in self.place.names

    def masked(self, json: Any) -> Any:
        """Mask a value; lists are passed through, scalars are what they are, untouched parts are shared."""
        if isinstance(json, FrozenDict):
            kept: dict[str, Any] = {}
            fields = self.fields
            for key, content in json.items():
                fate = fields.get(key) or self.fate(key)
                if fate is Fate.KEEP:
                    kept[key] = content
                elif isinstance(fate, Branch):
                    kept[key] = fate.masked(content)
            return frozen_dict(kept)
        if isinstance(json, FrozenList):
            return frozen_list([self.masked(item) for item in json])
        return json


class MaskTree:
    """The branches of one mask on one schema.

    Args:
        places: The schema.
        texts: The patterns.
        named: What becomes of a field that a pattern names; the other fate is of fields that none does.

    Raises:
        SchemaError: A pattern matches nothing.
        SchemaTooComplex: The patterns go over a recursive schema in too many ways.
    """

    def __init__(self, places: Places, texts: list[str], named: Fate) -> None:
        self.patterns = Patterns(texts)
        self.named = named
        self.missed = Fate.DROP if named is Fate.KEEP else Fate.KEEP
        self._branches: dict[tuple[int, Positions], Branch] = {}
        for number, text in enumerate(texts):
            self._check(number, text, places.root)
        self._ungrown: list[Branch] = []
        self.root = self._branch(places.root, self.patterns.start)
        while self._ungrown:
            self._ungrown.pop().grow()

    def fate(self, place: Place, name: str | None, positions: Positions) -> Fate | Branch:
        """Tell what becomes of a field, given how far the patterns are when they have passed it."""
        if self.patterns.arrived(positions):
            return self.named
        below = place.below(name)
        return self._branch(below, positions) if positions and self._reaches(below, positions) else self.missed

    def _branch(self, place: Place, positions: Positions) -> Branch:
        key = (id(place), positions)
        if key not in self._branches:
            if len(self._branches) >= _MOST_BRANCHES:
                raise SchemaTooComplex(
                    f"The mask {list(self.patterns.texts)} needs more than {_MOST_BRANCHES:,} steps."
                )
            self._branches[key] = Branch(self, place, positions)
            self._ungrown.append(self._branches[key])
        return self._branches[key]

    def _ways(self, place: Place, positions: Positions) -> list[tuple[Place, Positions]]:
        """Give the places that patterns lead to from here."""
        patterns = self.patterns
        ways = [(name, patterns.advanced(positions, name)) for name in place.names]
        if place.is_open:
            ways.append((None, patterns.advanced_to_any(positions)))
        return [(place.below(name), after) for name, after in ways if after]

    def _reaches(self, place: Place, positions: Positions) -> bool:
        """Tell whether a pattern names something at or below this place, by a name that may come at run time too."""
        pending, seen = [(place, positions)], {(id(place), positions)}
        while pending:
            place, positions = pending.pop()
            if place.is_open and self.patterns.last_steps(positions):
                return True
            for way in self._ways(place, positions):
                if self.patterns.arrived(way[1]):
                    return True
                if (id(way[0]), way[1]) not in seen:
                    seen.add((id(way[0]), way[1]))
                    pending.append(way)
        return False

    def _check(self, number: int, text: str, root: Place) -> None:
        """Refuse a pattern that matches nothing declared and is no exact name at an open object."""
        start = self.patterns.only(number)
        pending, seen = [(root, start)], {(id(root), start)}
        farthest, stuck = -1, root
        while pending:
            place, positions = pending.pop()
            if self.patterns.arrived(positions):
                return
            if place.is_open and any(not step.wild for step in self.patterns.last_steps(positions)):
                return
            at = max(at for _, at in positions)
            if at > farthest and place.objects:
                farthest, stuck = at, place
            for way in self._ways(place, positions):
                if (id(way[0]), way[1]) not in seen:
                    seen.add((id(way[0]), way[1]))
                    pending.append(way)
            if len(seen) > _MOST_BRANCHES:
                raise SchemaTooComplex(f"The pattern {text!r} needs more than {_MOST_BRANCHES:,} steps.")
        step = self.patterns.steps[number][min(max(farthest, 0), len(self.patterns.steps[number]) - 1)]
        fields = ", ".join(map(repr, stuck.names)) or "none"
        raise SchemaError(
            f"The mask {text!r} matches nothing: the fields at that place are {fields}."
            f"{did_you_mean(step.name, stuck.names)}"
            f"{' Below an open dictionary write `*` in the place of the key.' if stuck.is_open else ''}"
        )

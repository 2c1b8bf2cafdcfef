"""The pattern language of masks: paths of fields with `*`, `?` and `**`, read step by step along a schema or a value.

A place in a schema or value is reached with a set of positions: how far each pattern has come on the way there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel

from synmod.data.parts import properties_of
from synmod.data.symbols import Described, declare
from synmod.errors import ArgumentError, SchemaError

from .wild import WildName, escaped

_ANY_DEPTH: Final = "**"

Positions: TypeAlias = frozenset[tuple[int, int]]
"""(number of the pattern, steps of it behind us)."""


class Step:
    """One step of a pattern: an exact name, a name with wild characters, `*`, or `**`."""

    __slots__ = ("_name", "any_depth", "any_name", "name", "wild")

    def __init__(self, text: str) -> None:
        self._name = WildName(text)
        self.any_depth = text == _ANY_DEPTH
        self.any_name = bool(text) and set(text) == {"*"}
        self.wild = self._name.wild
        self.name = self._name.text

    def matches(self, name: str) -> bool:
        """Tell whether the step goes to a field."""
        return self.any_name or self._name.matches(name)


class Patterns:
    """The patterns of one mask."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(texts)
        self.steps = tuple(tuple(Step(step) for step in text.split("/")) for text in self.texts)
        self.start: Positions = self._closed((number, 0) for number in range(len(self.steps)))

    def advanced(self, positions: Positions, name: str) -> Positions:
        """Give the positions at a field of this name."""
        return self._closed(
            (number, at if step.any_depth else at + 1)
            for number, at, step in self._next(positions)
            if step.any_depth or step.matches(name)
        )

    def advanced_to_any(self, positions: Positions) -> Positions:
        """Give the positions at a field whose name is not known: only `*` and `**` go there."""
        return self._closed(
            (number, at if step.any_depth else at + 1) for number, at, step in self._next(positions) if step.any_name
        )

    def arrived(self, positions: Positions) -> bool:
        """Tell whether a pattern ends here."""
        return any(at == len(self.steps[number]) for number, at in positions)

    def last_steps(self, positions: Positions) -> list[Step]:
        """Give the steps that would end a pattern from here."""
        return [step for number, at, step in self._next(positions) if at + 1 == len(self.steps[number])]

    def only(self, number: int) -> Positions:
        """Give the positions of one pattern at the root."""
        return frozenset((pattern, at) for pattern, at in self.start if pattern == number)

    def _next(self, positions: Positions) -> list[tuple[int, int, Step]]:
        return [(number, at, self.steps[number][at]) for number, at in positions if at < len(self.steps[number])]

    def _closed(self, positions: Iterable[tuple[int, int]]) -> Positions:
        """Add where `**` leads by taking no step."""
        closed = set[tuple[int, int]]()
        for number, at in positions:
            closed.add((number, at))
            steps = self.steps[number]
            while at < len(steps) and steps[at].any_depth:
                at += 1
                closed.add((number, at))
        return frozenset(closed)


def patterns_of(mask: Any, *, recursive: bool = False) -> list[str]:
    """Give the patterns of a mask as plain texts.

    Raises:
        SchemaError: There is none.
        ArgumentError: The mask is no pattern, list of patterns, or data model.
    """
    if isinstance(mask, Described | BaseModel) or (isinstance(mask, type) and issubclass(mask, BaseModel)):
        texts = [escaped(name) for name in properties_of(declare(mask))]
    elif isinstance(mask, str):
        texts = [mask]
    else:
        texts = _listed(mask)
    if not texts:
        raise SchemaError("A mask without a pattern names no field: give at least one.")
    return [f"{_ANY_DEPTH}/{text}" for text in texts] if recursive else texts


def _listed(mask: Any) -> list[str]:
    """Give the patterns of a list (ArgumentError if it is none)."""
    if isinstance(mask, list | tuple | set | frozenset):
        listed = list(cast("list[object]", mask))
        if all(isinstance(text, str) for text in listed):
            texts = cast("list[str]", listed)
            return sorted(texts) if isinstance(mask, set | frozenset) else texts
    raise ArgumentError(f"A mask is a pattern, a list of patterns or a data model, got {mask!r:.100}.")

"""The figures of a row: what a module holds and what a recorded call spent in it, and how rows add up."""

from __future__ import annotations

from dataclasses import dataclass, field

from synmod.scope import Usage


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

"""What every field of one answer is decided by: the input, the examples by nearness, the rules and the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from synmod.lm.embedded.examples import ExampleSet, example_set
from synmod.lm.embedded.rules import rules_of, spoken
from synmod.lm.embedded.words import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import Json
    from synmod.lm.embedded.noise import Noise
    from synmod.lm.embedded.reading import Reading

NEAREST: Final = 3
"""How many examples decide together."""


class Scene:
    """One question, read and compared.

    Attributes:
        asked: The text of the input.
        spoken: The same, for finding phrases whole.
        rules: The rules of the instructions, by folded label.
        examples: The examples of the prompt.
        similarities: Of the input to each example.
        nearest: Indices of the examples, the nearest first, as the noise lets them appear; ties in their order.
        noise: What a temperature adds.
        seed: What a choice without any evidence depends on.
        root: Schema of the reply.
    """

    __slots__ = ("asked", "examples", "nearest", "noise", "root", "rules", "seed", "similarities", "spoken")

    def __init__(self, reading: Reading, seed: Json, noise: Noise) -> None:
        self.asked = reading.asked
        said = words(reading.asked)
        self.spoken = spoken(said)
        self.rules = rules_of(reading.instructions)
        self.examples: ExampleSet = example_set(reading.examples, reading.pairs, reading.schema is not None)
        self.similarities = self.examples.similarities(said)
        near = noise.added(self.similarities, "examples")
        self.nearest = sorted(range(len(near)), key=near.__getitem__, reverse=True)
        self.noise = noise
        self.seed = 0 if seed is None else seed
        self.root: Mapping[str, Json] = reading.schema or {}

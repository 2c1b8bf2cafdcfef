"""Seeds: every random choice has a name, and its generator is made from that name alone."""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from random import Random
from typing import Any, TypeVar

from synmod.errors import ArgumentError

T = TypeVar("T")


def _seed_text(seed: object, step: object, purpose: object) -> str:
    """Write the name of a random choice."""
    for name, number in (("seed", seed), ("step", step)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise ArgumentError(f"rng got {name}={number!r}: write a whole number.")
    if not isinstance(purpose, str) or not purpose:
        raise ArgumentError(f"rng got purpose={purpose!r}: write what the choice is for, such as 'minibatch'.")
    return f"{seed}/{step}/{purpose}"


class SeededRandom(Random):
    """A `random.Random` that draws by `random()` alone: the one sequence that Python promises to keep."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Choose from a range."""
        numbers = range(start) if stop is None else range(start, stop, step)
        if not numbers:
            raise ValueError(f"{numbers!r} is empty: there is nothing to choose from")
        return self.choice(numbers)

    def randint(self, a: int, b: int) -> int:
        """Choose a whole number from a to b, both included."""
        return self.randrange(a, b + 1)

    def choice(self, seq: Any) -> Any:
        """Choose one."""
        if not len(seq):
            raise IndexError("cannot choose from an empty sequence")
        return seq[int(self.random() * len(seq))]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Put a list in random order, in place."""
        for last in range(len(x) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            x[last], x[other] = x[other], x[last]

    def sample(self, population: Sequence[T], k: int, *, counts: Any = None) -> list[T]:
        """Choose k different members, in random order; a huge range is not written out."""
        if not isinstance(population, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]  # sets come too
            raise TypeError("population must be a sequence: the order of a set is another one in each process")
        if counts is not None:
            population = [one for one, count in zip(population, counts, strict=True) for _ in range(count)]
        size = len(population)
        if not 0 <= k <= size:
            raise ValueError(f"cannot choose {k} of {size}")
        moved: dict[int, T] = {}  # what a shuffle of all would have put in other places by now
        chosen: list[T] = []
        for place in range(k):
            other = place + int(self.random() * (size - place))
            chosen.append(moved.get(other, population[other]))
            moved[other] = moved.get(place, population[place])
        return chosen


def rng(seed: int, step: int, purpose: str) -> Random:
    """Make the generator of one random choice.

    No generator is shared and none is saved: any step can be computed again from its name.

    Args:
        seed: That of the run.
        step: Number of the step.
        purpose: What is chosen, a path-like name such as `"propose/writer/instructions"`.

    Returns:
        A `random.Random` seeded with `f"{seed}/{step}/{purpose}"`. Its choices, shuffles and samples use `random()`
        only, so that they are equal on every version of Python.

    Raises:
        ArgumentError: Seed or step is no int, or purpose is empty.

    Example:
        >>> rng(7, 0, "minibatch").random() == rng(7, 0, "minibatch").random()
        True

    Source: JAX's split keys; differs: names instead of splits.
    """
    return SeededRandom(_seed_text(seed, step, purpose))


def model_seed(seed: int, step: int, purpose: str, example_id: str = "") -> int:
    """Make the `seed` parameter of a model call: 31 bits of the name of the choice and the example's id."""
    text = f"{_seed_text(seed, step, purpose)}/{example_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1

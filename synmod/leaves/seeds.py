"""Seeds: every random choice has a name, and its generator is made from that name alone."""

from __future__ import annotations

import hashlib
from random import Random

from synmod.errors import ArgumentError


class _Seeded(Random):
    """A generator that draws from `random()` alone: the one sequence that Python promises to keep."""

    def random(self) -> float:
        return super().random()  # a subclass that defines only this method is read by no other for its bits


def _seed_text(seed: object, step: object, purpose: object) -> str:
    for name, number in (("seed", seed), ("step", step)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise ArgumentError(f"rng got {name}={number!r}: write a whole number.")
    if not isinstance(purpose, str) or not purpose:
        raise ArgumentError(f"rng got purpose={purpose!r}: write what the choice is for, such as 'minibatch'.")
    return f"{seed}/{step}/{purpose}"


def rng(seed: int, step: int, purpose: str) -> Random:
    """Return the generator of one random choice.

    No generator is shared and none is saved: any step can be computed again from its name.

    Args:
        seed: That of the run.
        step: Number of the step.
        purpose: What is chosen, a path-like name such as `"propose/writer/instructions"`.

    Returns:
        A `random.Random` seeded with `f"{seed}/{step}/{purpose}"`. Its choices, shuffles and samples use `random()`
        only, so that they are equal on every version of Python.

    Raises:
        ArgumentError: Seed or step is not an int, or purpose is empty.

    Example:
        >>> rng(7, 0, "minibatch").random() == rng(7, 0, "minibatch").random()
        True

    Source: JAX's split keys; differs: names instead of splits.
    """
    return _Seeded(_seed_text(seed, step, purpose))


def model_seed(seed: int, step: int, purpose: str, example_id: str = "") -> int:
    """Return the `seed` parameter of a model call: 31 bits of the name of the choice and the example's id."""
    text = f"{_seed_text(seed, step, purpose)}/{example_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1

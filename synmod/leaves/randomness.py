"""Random numbers: the ids of runs, and a generator for each choice that a seed must repeat."""

import itertools
import os
from random import Random

from synmod.errors import ArgumentError

from .aio import in_forked_child
from .names import check_int, must_be

_RANDOM_BITS = 44  # of the first id of a process; the others count up from it


class _RunIds:
    """The ids of this process; a forked child starts from another random number."""

    @classmethod
    def start(cls) -> None:
        """Count from a new random number."""
        cls.numbers = itertools.count(int.from_bytes(os.urandom(8), "big") >> (64 - _RANDOM_BITS))


_RunIds.start()
in_forked_child(_RunIds.start)


def new_run_id() -> str:
    """Return an id of about eleven hexadecimal digits that no other run has, in this process or another.

    Source: trace ids of OpenTelemetry; differs: short, because people read them in error notes.
    """
    return f"{next(_RunIds.numbers):x}"


class _Seeded(Random):
    """A generator that draws from `random()` alone: the one sequence that is the same in every version of Python."""

    def random(self) -> float:
        return super().random()  # overridden, so that the other methods draw from it and not from `getrandbits`


def rng(seed: int, step: int, purpose: str) -> Random:
    """Return the random generator for one choice.

    No generator is shared and none is saved: the choices of any step can be repeated from its arguments.

    Args:
        seed: The seed of the run.
        step: Number of the step.
        purpose: The use of the choice, a path-like name such as `"propose/writer/instructions"`.

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
    check_int("rng: seed", seed, None)
    check_int("rng: step", step, None)
    if not isinstance(purpose, str) or not purpose:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
        raise ArgumentError(must_be("rng: purpose", "a name of the choice, such as 'minibatch'", purpose))
    return _Seeded(f"{seed}/{step}/{purpose}")

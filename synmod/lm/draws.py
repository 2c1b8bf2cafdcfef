"""Independent draws: the number of the sample that model calls draw, said by the block around them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from synmod.errors import ConfigError

__all__ = ["check_sample", "current_sample", "drawing"]

_SAMPLE: Final[ContextVar[int]] = ContextVar("synmod_sample", default=0)

current_sample = _SAMPLE.get


def check_sample(sample: object) -> int:
    """Return the number of a draw.

    Raises:
        ConfigError: It is no int of at least 0.
    """
    if isinstance(sample, int) and not isinstance(sample, bool) and sample >= 0:
        return sample
    raise ConfigError(f"sample: got {sample!r:.100}, wanted the number of the draw: an int of at least 0.")


@contextmanager
def drawing(sample: int) -> Generator[None]:
    """Let the model calls of a block be draw number `sample`, unless they say their own.

    Args:
        sample: The number, from 0.

    Raises:
        ConfigError: It is no int of at least 0.

    Example:
        >>> with drawing(2):
        ...     current_sample()
        2

    Source: best-of-n sampling; DSPy's `rollout_id`.
    """
    token = _SAMPLE.set(check_sample(sample))
    try:
        yield
    finally:
        try:
            _SAMPLE.reset(token)
        except ValueError:  # left in another Context: there is nothing to give back there
            pass

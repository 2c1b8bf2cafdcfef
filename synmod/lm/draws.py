"""Independent draws: the number of the sample that model calls draw, said by the block around them."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
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


class drawing:  # noqa: N801  # read as a word: `with drawing(2):`
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

    # A generator would do, but contextlib writes the traceback of what passes through, and frozen exceptions refuse.

    __slots__ = ("_sample", "_token")

    def __init__(self, sample: int) -> None:
        self._sample = check_sample(sample)
        self._token: Token[int] | None = None

    def __enter__(self) -> None:
        self._token = _SAMPLE.set(self._sample)

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        token, self._token = self._token, None
        if token is not None:
            try:
                _SAMPLE.reset(token)
            except ValueError:  # left in another Context: there is nothing to give back there
                pass

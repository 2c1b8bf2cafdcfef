"""Attempts: calls of which one will count, as in blocks that draw samples or go in rounds.

What a call leaves beside its output belongs to that output: of the attempt that is kept it stays, of the others it is
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Protocol, Self


class Attempt(Protocol):
    """Calls that were made in one block."""

    def keep(self) -> None:
        """Let what they left count."""
        ...


ATTEMPTS: Final[dict[str, Callable[[], AbstractContextManager[Attempt]]]] = {}
"""What makes an attempt, put here by the room whose values go past calls."""


def attempt() -> AbstractContextManager[Attempt]:
    """Give a block, `one`, whose calls count only if it is kept: by `one.keep()`, also later."""
    make = ATTEMPTS.get("skips")
    return _NOTHING_LEFT if make is None else make()


class _NothingLeft:
    """An attempt in a program whose calls leave nothing beside their outputs."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Nothing to be done."""

    def keep(self) -> None:
        """Nothing to be kept."""


_NOTHING_LEFT: Final = _NothingLeft()

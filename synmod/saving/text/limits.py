"""How large a file may be, in both directions: what saves loads, and nothing larger is even parsed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from synmod.errors import ArgumentError

__all__ = ["FileLimits"]

USUAL_VALUES: Final = 1_000_000
"""The `max_values` of a caller who says nothing."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of one `save` or `load`; a caller may raise them, a file cannot.

    Attributes:
        max_bytes: Size of the file.
        max_depth: Nesting of the whole document; `[]` is 1.
        max_values: Number of JSON values, containers included and keys not. A text on one line with hardly anything
            but small containers or short keys is refused before it reaches the default, once it would take more memory
            than 64 MiB and ten times its size. What `save` writes is never so dense. The schemas of all data models and
            Variables together may have 60,000 subschemas, equal schemas counted once: a second of checking, enough for
            5,000 data models of ten fields. A `max_values` above the default raises both in proportion.

    Raises:
        ArgumentError: A limit that is no positive int.

    Example:
        >>> FileLimits(max_bytes=64 * 2**20).max_depth
        64

    Source: safetensors' header cap, SQLite's run-time limits.
    """

    max_bytes: int = 16 * 2**20
    max_depth: int = 64
    max_values: int = USUAL_VALUES

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if type(limit) is not int or limit < 1:
                raise ArgumentError(f"FileLimits({field.name}={limit!r:.100}): wanted an int of at least 1.")


DEFAULT_LIMITS = FileLimits()
"""What holds when a caller says nothing."""


def limits_or_default(limits: FileLimits | None) -> FileLimits:
    """The limits that hold.

    Raises:
        ArgumentError: It is something else.
    """
    if limits is None:
        return DEFAULT_LIMITS
    if not isinstance(limits, FileLimits):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
        raise ArgumentError(f"limits is a {type(limits).__name__}, wanted sm.FileLimits(...).")
    return limits

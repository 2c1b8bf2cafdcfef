"""Scalars beyond JSON that a file may hold, each with one spelling."""

from __future__ import annotations

import base64
import binascii
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NAMES", "scalar_from", "scalar_text"]

_LONGEST = 64  # of a text that says when or how long
_MICRO = timedelta(microseconds=1)

NAMES: dict[type, str] = {
    date: "date",
    time: "time",
    datetime: "datetime",
    timedelta: "timedelta",
    Decimal: "decimal",
    UUID: "uuid",
    bytes: "bytes",
}
"""The scalar types by class; subclasses are not meant."""


def scalar_text(value: Any) -> str | None:
    """Write a scalar; None for one that would come back as another."""
    if isinstance(value, datetime | time):
        zone = value.tzinfo
        return value.isoformat() if (zone is None or type(zone) is timezone) and not value.fold else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        micros = value // _MICRO
        return f"{'-' if micros < 0 else ''}{abs(micros) // 10**6}.{abs(micros) % 10**6:06d}"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def scalar_from(name: str, text: str) -> Any:
    """Read a scalar.

    Raises:
        ValueError: The text is not what `scalar_text` writes for a scalar of this type.
    """
    if name in ("date", "time", "datetime", "timedelta", "uuid") and len(text) > _LONGEST:
        raise ValueError(text[:_LONGEST])
    try:
        value = _READERS[name](text)
    except (ValueError, InvalidOperation, OverflowError, binascii.Error) as error:
        raise ValueError(str(error)) from None
    if scalar_text(value) != text:
        raise ValueError(text[:_LONGEST])
    return value


def _timedelta(text: str) -> timedelta:
    """Read seconds with six decimals."""
    seconds, _, micros = text.lstrip("-").partition(".")
    length = timedelta(seconds=int(seconds), microseconds=int(micros))
    return -length if text.startswith("-") else length


_READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timedelta": _timedelta,
    "decimal": Decimal,
    "uuid": UUID,
    "bytes": lambda text: base64.b64decode(text, validate=True),
}

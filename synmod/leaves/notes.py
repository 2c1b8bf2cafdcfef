"""Notes on exceptions, also on those that refuse them: a frozen dataclass, a class with `__notes__` of its own kind."""

from __future__ import annotations

from typing import Any, cast


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, also to one that refuses attributes; one with notes of its own kind is left alone."""
    notes = attributes_of(error).setdefault("__notes__", [])
    if isinstance(notes, list):
        cast("list[str]", notes).append(note)


def notes_of(error: BaseException) -> list[str]:
    """The notes of an exception."""
    notes = attributes_of(error).get("__notes__")
    return list(map(str, cast("list[Any]", notes))) if isinstance(notes, list) else []


def attributes_of(error: BaseException) -> dict[str, Any]:
    """The attributes of an exception, whatever its class makes of reading and writing them."""
    return object.__getattribute__(error, "__dict__")

"""Faults of a document: every error of a load begins with the file and the JSON Pointer of what is wrong."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from synmod.errors import FormatError, LoadError
from synmod.leaves.names import pointer

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["in_file", "load_fault", "malformed"]

_SHOWN = 200
_LONGEST_PLACE = 500


def load_fault(where: tuple[str | int, ...], text: str) -> LoadError:
    """A fault of what the document says."""
    place = pointer(where)
    return LoadError(_begun(place, text), where=place)


def malformed(where: tuple[str | int, ...], text: str) -> FormatError:
    """A fault of the form of the document."""
    place = pointer(where)
    return FormatError(_begun(place, text), where=place)


def _begun(place: str, text: str) -> str:
    """A message that begins with its place; a key of the file may be long."""
    short = place if len(place) <= _LONGEST_PLACE else f"{place[:_LONGEST_PLACE]}..."
    return f"{short}: {text}" if place else text


def shown(value: object) -> str:
    """A value from a file as text, cut: nobody wants megabytes in a message."""
    text = repr(value) if isinstance(value, str | int | float | bool | type(None)) else type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@contextmanager
def in_file(file: str | None) -> Generator[None]:
    """Name the file in every LoadError that passes, once."""
    try:
        yield
    except LoadError as error:
        if file is not None and error.file is None:
            error.file = file
            error.args = (f"{file}: {error}",)
        raise

"""Where something happens: the six fields that every event begins with."""

from __future__ import annotations

from typing import Protocol

Place = tuple[str | None, str | None, str, str, str, bool]
"""The six fields that every event begins with."""


class Located(Protocol):
    """What an event takes from a frame."""

    @property
    def id(self) -> str:
        """Id of the call."""
        ...

    @property
    def parent_id(self) -> str | None:
        """Id of the call above."""
        ...

    @property
    def path(self) -> str:
        """Path of the module."""
        ...

    @property
    def name(self) -> str:
        """Label of the module."""
        ...

    @property
    def training(self) -> bool:
        """Training mode."""
        ...


def place_of(frame: Located | None, phase: str) -> Place:
    """Give the first six fields of an event that happens in `frame`, and in `phase`: a block may have set another."""
    if frame is None:
        return (None, None, "", "", phase, False)
    return (frame.id, frame.parent_id, frame.path, frame.name, phase, frame.training)

"""Names of a room that are loaded when one of them is first asked for: an import pays only for what it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def opened_late(
    room: dict[str, Any], *loads: Callable[[], Iterable[ModuleType]], inner: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and the `__dir__` of a room, some of whose names stand in parts that are imported late.

    Args:
        room: `globals()` of the room, whose `__all__` lists all names.
        *loads: Each imports some parts, whose names in `__all__` become the room's; one after the other, until the
            name that was asked for is there.
        inner: Names that are not public, for the rooms above, each with the file that it stands in.

    Returns:
        Both functions, for the room to keep under these names.

    Source: PEP 562.
    """

    def read(name: str) -> Any:
        """Open the parts, and give one name."""
        if inner and name in inner:
            return room.setdefault(name, getattr(import_module(inner[name]), name))
        if name not in room["__all__"]:
            raise AttributeError(f"module {room['__name__']!r} has no attribute {name!r}")
        for load in loads:
            for part in load():
                room.update({each: vars(part)[each] for each in room["__all__"] if each in vars(part)})
            if name in room:
                break
        return room[name]

    def names() -> list[str]:
        """List what is there, opened or not."""
        return sorted({*room, *room["__all__"]})

    return read, names

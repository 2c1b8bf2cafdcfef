"""The mark of an update context on a graph definition: which context made it, and who is who in the numbers outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    pass


class Mark(NamedTuple):
    """What an update context writes on the graphs that cross its boundary.

    Attributes:
        tag: Its tag.
        key: Tells apart contexts of one tag, also of different processes.
        inside: Whether the graph was made inside the boundary, and is to change the live objects outside.
        indices: The number outside of each node and Variable that has one, by its number here.
    """

    tag: str
    key: str
    inside: bool
    indices: Mapping[int, int]

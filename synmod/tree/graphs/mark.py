"""The mark of an update context on a graph definition: which context made it, and who is who in the numbers outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.tree.graphs.def_reader import DefReader
from synmod.tree.graphs.defs import NodeDef, VariableDef
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.names import KeyPath
    from synmod.tree.graphs.defs import Definition, Term


class Mark(NamedTuple):
    """What an update context writes on the graphs that cross its boundary.

    Attributes:
        tag: Its tag.
        key: Tells apart contexts of one tag, also of different processes.
        inside: Whether the graph was made inside the boundary, and is to change the live objects outside.
        indices: The number outside of each node and Variable that has one, by its number here.
        is_foreign: Whether the objects that the graph passes on by reference come from elsewhere, such as a file, so
            that live ones keep their own.
    """

    tag: str
    key: str
    inside: bool
    indices: Mapping[int, int]
    is_foreign: bool = False


def defined_at(root: Term, definitions: Mapping[int, Definition]) -> Iterator[tuple[KeyPath, Definition]]:
    """Give every path of a graph, aliases included, with what is defined there."""
    for visit in walk(root, reader=DefReader(definitions)):
        defined: Any = visit.value
        if isinstance(defined, NodeDef | VariableDef):
            yield visit.path, defined

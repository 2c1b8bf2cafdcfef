"""The walk over a document: the same order and the same paths as over the objects that will be made of it.

Paths are links from the end, so that a hostile graph cannot make us write out more than the file holds.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from synmod.leaves.frozen import Json
from synmod.leaves.names import escape_step
from synmod.saving.checking.terms import tree_class
from synmod.saving.text.faults import load_fault
from synmod.tree import TREE_TYPES, is_namedtuple, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.saving.checking.plan import NodeEntry
    from synmod.saving.checking.resolver import Resolver

__all__ = ["UNKNOWN", "DocumentWalk", "Link", "leads_to"]

UNKNOWN: Final[Any] = object()
"""A step that only a live container of a user's type could tell."""

Link: TypeAlias = "tuple[Link, Any] | None"
"""A path from its end: (link of what is above, step); None is the root."""

Term: TypeAlias = dict[str, Json]


class DocumentWalk:
    """Finds what the root leads to.

    Attributes:
        nodes: The link of the first visit of each node.
        variables: The link of the first visit of each Variable, in definition order.
        unsure: Whether a step was UNKNOWN.
    """

    def __init__(self, entries: list[NodeEntry], resolver: Resolver) -> None:
        self.nodes: dict[int, Link] = {}
        self.variables: dict[int, Link] = {}
        self.unsure = False
        self._entries = entries
        self._resolver = resolver

    def walk(self, root: Term) -> None:
        """Visit everything below a term that was not visited before."""
        pending: list[tuple[Term, Link]] = []
        self._own_values([(None, root)], None, pending, is_root=True)
        pending.reverse()
        while pending:
            term, link = pending.pop()
            node: int = term["node"]
            if node in self.nodes:
                continue
            self.nodes[node] = link
            deferred: list[tuple[Term, Link]] = []
            self._own_values(self._entries[node].pairs(), link, deferred)
            deferred.reverse()
            pending += deferred

    def _own_values(
        self, pairs: list[tuple[Any, Term]], link: Link, deferred: list[tuple[Term, Link]], *, is_root: bool = False
    ) -> None:
        """Visit what one node holds itself, containers included; note its child nodes."""
        levels: list[tuple[Iterator[tuple[Any, Term]], Link, bool]] = [(iter(pairs), link, is_root)]
        while levels:
            parts, above, at_root = levels[-1]
            for step, term in parts:
                here: Link = None if at_root else (above, step)
                if "variable" in term:
                    self.variables.setdefault(term["variable"], here)
                elif "node" in term:
                    deferred.append((term, here))
                elif "json" not in term:
                    below = self._parts(term)
                    if below:
                        levels.append((iter(below), here, False))
                        break
            else:
                levels.pop()

    def _parts(self, term: Term) -> list[tuple[Any, Term]]:
        """The steps and terms of a container; nothing for what has no parts."""
        ((kind, payload),) = term.items()
        if kind in ("list", "tuple"):
            return numbered(payload)
        if kind == "dict":
            return self._checked([(key, part) for key, part in payload])
        return self._tree_parts(payload) if kind == "tree" else []

    def _tree_parts(self, tree: dict[str, Json]) -> list[tuple[Any, Term]]:
        """The steps and terms of a container of another type."""
        cls: Any = tree_class(self._resolver, tree["type"], ())
        children: list[Term] = tree["children"]
        if cls in TREE_TYPES:
            self.unsure = True
            return [(UNKNOWN, child) for child in children]
        if cls is OrderedDict:
            return self._checked(list(zip(tree["config"]["json"], children, strict=True)))
        if is_namedtuple(cls):
            return list(zip(cls._fields, children, strict=True))
        if dataclasses.is_dataclass(cls):
            return [(field.name, child) for field, child in zip(dataclasses.fields(cls), children, strict=True)]
        return numbered(children)

    def _checked(self, pairs: list[tuple[Any, Term]]) -> list[tuple[Any, Term]]:
        """Refuse keys that cannot be steps, where something with a path is below."""
        texts = {str(key) for key, _ in pairs}
        if (len(texts) < len(pairs) or "" in texts) and any(_leads_on(term) for _, term in pairs):
            raise load_fault((), "a dict on the way to a node or Variable has an empty key, or two that look alike.")
        return pairs


def leads_to(path: str, link: Link) -> bool:
    """Whether a path text is the path of a link; compared from its end, a step at a time."""
    end = len(path)
    here: Link = link
    while here is not None:
        above, step = here
        if step is UNKNOWN:
            start = path.rfind("/", 0, end) + 1
        else:
            text = escape_step(step)
            start = end - len(text)
            if start < 0 or not path.startswith(text, start):
                return False
        if above is None:
            return start == 0
        if start < 1 or path[start - 1] != "/":
            return False
        end = start - 1
        here = above
    return not path


def _leads_on(term: Term) -> bool:
    """Whether a node or Variable is below a term."""
    pending: list[Any] = [term]
    while pending:
        part = pending.pop()
        if type(part) is dict:
            if "node" in part or "variable" in part:
                return True
            pending.extend(value for key, value in cast("Term", part).items() if key != "json")
        elif type(part) is list:
            pending.extend(cast("list[Any]", part))
    return False

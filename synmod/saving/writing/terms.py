"""Terms stand where both structure and data could: an object of one key, the kind, so no data is taken for structure.

This file writes them: live values in, terms out, without recursion. What no term can hold is noted as a problem, and
writing goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import DataError
from synmod.leaves.frozen import frozen
from synmod.leaves.names import path_str
from synmod.registry import id_of
from synmod.saving.vocabulary.problems import at
from synmod.saving.vocabulary.term_leaves import OWN_TREE_TYPES, PURE, LeafWriter, Names
from synmod.tree import class_of, numbered, take_apart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.frozen import Json

__all__ = ["Names", "Place", "TermWriter"]


class Place(NamedTuple):
    """Where a value stands, for messages: the node that holds it (a visit of the walk, or a text), and what it is."""

    node: Any
    what: str

    def text(self, steps: list[Any]) -> str:
        """Write the place of a part; the path is made only now."""
        return at(self.node if isinstance(self.node, str) else path_str(self.node.path), self.what, steps)


class _Open:
    """A container that is being written: its kind, its parts so far, and what is left of it."""

    __slots__ = ("done", "kind", "parts", "rest", "step", "value")

    def __init__(self, kind: str, value: Any, step: Any, parts: list[tuple[Any, Any]]) -> None:
        self.kind = kind
        self.value = value
        self.step = step
        self.parts = parts
        self.rest: Iterator[tuple[Any, Any]] = iter(parts)
        self.done: list[Any] = []


class TermWriter:
    """Writes terms for one document: enters the containers of a value one by one."""

    def __init__(self, names: Names) -> None:
        self.leaves = LeafWriter(names)
        self._place = Place("", "")
        self._step: Any = None
        self._open: list[_Open] = []
        self._inside: set[int] = set()

    @property
    def structure(self) -> bool:
        """Whether a node, Variable or language model is in the value that was written last."""
        return self.leaves.structure

    @property
    def nodes_met(self) -> list[int]:
        """The nodes in the value that was written last."""
        return self.leaves.nodes

    def term(self, value: Any, place: Place) -> dict[str, Json]:
        """Write one value: a constructor argument, an attribute, a part of a flow."""
        leaves = self.leaves
        leaves.structure = False
        if leaves.nodes:
            leaves.nodes = []
        if value is None or value is True or value is False:
            return {"json": value}
        if type(value) is list or type(value) is dict:
            try:
                return {"json": frozen(value, data_models=False)}
            except DataError:
                pass  # something in it is written by itself, or is a problem whose place is found below
        self._place, self._step = place, None
        written: Any = leaves.write(value, self._where)
        if written is None:
            written = self._container(value)
        return {"json": leaves.json(value, self._where)} if written is PURE else written

    def _container(self, value: Any) -> Any:
        """Write a container whose parts are entered one by one."""
        self._open = []
        self._inside = set()
        self._enter(value, None)
        write, where, stack = self.leaves.write, self._where, self._open
        while True:
            container = stack[-1]
            for step, part in container.rest:
                self._step = step
                written = write(part, where)
                if written is None:
                    if id(part) not in self._inside:
                        self._enter(part, step)
                        break
                    what = f"a {type(part).__name__} that holds itself"
                    written = self.leaves.problem(where, what, "break the circle")
                container.done.append(written)
            else:
                stack.pop()
                self._step = container.step
                self._inside.discard(id(container.value))
                written = self._closed(container)
                if not stack:
                    return written
                stack[-1].done.append(written)

    def _enter(self, value: Any, step: Any) -> None:
        """Begin a container."""
        kind = class_of(value)
        self._inside.add(id(value))
        if kind is dict:
            parts = list(value.items())
            bad = [key for key in value if type(key) not in (str, int)]
            if bad:
                what = f"a dict with the key {bad[0]!r:.100} of type {type(bad[0]).__name__}"
                self.leaves.problem(self._where, what, "write str(key)")
                parts = []
            self._open.append(_Open("dict", value, step, parts))
        elif kind is list or kind is tuple:
            self._open.append(_Open(kind.__name__, value, step, numbered(value)))
        else:
            self._open.append(_Open("tree", value, step, _tree_parts(value)))

    def _closed(self, container: _Open) -> Any:
        """Put a container together; one that is JSON throughout stays a mark for the one above."""
        kind, value = container.kind, container.value
        is_json = kind == "list" or (kind == "dict" and all(type(key) is str for key in value))
        if is_json and all(part is PURE for part in container.done):
            return PURE
        parts = [
            {"json": self.leaves.json(part, partial(self._where, step))} if done is PURE else done
            for done, (step, part) in zip(container.done, container.parts, strict=True)
        ]
        if kind == "dict":
            return {"dict": [[key, term] for (key, _), term in zip(container.parts, parts, strict=True)]}
        if kind == "tree":
            cls = class_of(value)
            public_id = OWN_TREE_TYPES.get(cls) or id_of(cls)
            return {"tree": {"type": public_id, "children": parts[:-1], "config": parts[-1]}}
        return {kind: parts}

    def _where(self, below: Any = None) -> str:
        """Where we are, or one step below."""
        steps = [*(container.step for container in self._open), self._step, below]
        return self._place.text([each for each in steps if each is not None])


def _tree_parts(value: Any) -> list[tuple[Any, Any]]:
    """The children of a tree type, then what else makes it up."""
    if isinstance(value, OrderedDict):
        return [*value.items(), ("keys", [*value])]
    parts, rest = take_apart(value)
    return [*parts, ("config", rest)]

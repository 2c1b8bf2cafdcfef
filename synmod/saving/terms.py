"""Terms stand where both structure and data could: an object of one key, the kind, so no data is taken for structure.

This file writes them: live values in, terms out, without recursion. What no term can hold is noted as a problem, and
writing goes on.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol, cast

from pydantic import BaseModel

from synmod.data import JsonDataModel, SymbolicDataModel
from synmod.errors import DataError, SchemaError
from synmod.flow.record import SymbolRef
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen
from synmod.leaves.paths import path_str
from synmod.lm import LanguageModel
from synmod.registry import id_of
from synmod.saving.problems import Problems, at, unregistered, what_and_remedy
from synmod.saving.scalars import NAMES, scalar_text
from synmod.tree.containers import TREE_TYPES, class_of, is_namedtuple, numbered, take_apart
from synmod.tree.defs import NodeRef, VariableRef
from synmod.tree.node_types import own_impl
from synmod.tree.static import Static
from synmod.tree.variable import Variable

__all__ = ["OWN_TREE_TYPES", "Names", "Place", "TermWriter"]

OWN_TREE_TYPES: Final[dict[type, str]] = {deque: "collections>deque", OrderedDict: "collections>OrderedDict"}
"""Containers of Python that are written as trees, by class."""

PURE: Final = object()
"""Marks a value that is JSON through and through; the outermost such value becomes one `json` term."""

_SCALARS: Final = (str, int, float, bool, type(None))


class Names(Protocol):
    """What a document calls the things that stand in its tables."""

    problems: Problems

    def model_of(self, node: Any) -> LanguageModel | None:
        """The language model that a value, or a reference to one, is."""
        ...

    def node(self, node: Any) -> int:
        """The index of a node; one that is met here for the first time gets the next."""
        ...

    def variable(self, variable: Any) -> int:
        """The index of a Variable, likewise."""
        ...

    def data_model(self, declared: Any) -> int:
        """The index of a data model."""
        ...

    def language_model(self, model: LanguageModel, place: str) -> str:
        """The name of a language model."""
        ...


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
    """Writes terms for one document."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.structure = False
        self.nodes_met: list[int] = []
        self._place = Place("", "")
        self._open: list[_Open] = []
        self._inside: set[int] = set()

    def term(self, value: Any, place: Place) -> dict[str, Json]:
        """Write one value: a constructor argument, an attribute, a part of a flow.

        Afterwards `structure` tells whether a node, Variable or language model is in it, `nodes_met` which nodes.
        """
        self.structure = False
        self.nodes_met = []
        kind = class_of(value)
        if (kind is str and value.isascii()) or value is None or kind is bool:
            return {"json": value}
        self._place = place
        self._open = []
        self._inside = set()
        return self._wrapped(self._written(value), value)

    def _written(self, value: Any) -> Any:
        """Write a value whose containers are entered one by one."""
        stack = self._open
        result = self._leaf(value)
        if result is not None:
            return result
        self._enter(value, None)
        while True:
            container = stack[-1]
            for step, part in container.rest:
                result = self._leaf(part, step)
                if result is None:
                    self._enter(part, step)
                    break
                container.done.append(result)
            else:
                stack.pop()
                self._inside.discard(id(container.value))
                result = self._closed(container)
                if not stack:
                    return result
                stack[-1].done.append(result)

    def _leaf(self, value: Any, step: Any = None) -> Any:
        """Write what has no parts; None for a container that must be entered."""
        kind = class_of(value)
        if kind in _SCALARS or kind is FrozenDict or kind is FrozenList:
            return PURE
        if kind is dict or kind is list or kind is tuple:
            return self._circle(value, step)
        return self._reference(value, step) or self._data(value, step) or self._other(value, step)

    def _reference(self, value: Any, step: Any) -> Any:
        """Write what stands in a table of the document: a Variable, a node, a language model, a symbol of a flow."""
        if isinstance(value, Variable | VariableRef):
            self.structure = True
            return {"variable": self.names.variable(value)}
        model = self.names.model_of(value)
        if model is not None:
            self.structure = True
            return {"language_model": self.names.language_model(model, self._where(step))}
        if isinstance(value, NodeRef) or own_impl(class_of(value)) is not None:
            self.structure = True
            self.nodes_met.append(self.names.node(value))
            return {"node": self.nodes_met[-1]}
        return {"symbol": value.index} if isinstance(value, SymbolRef) else None

    def _data(self, value: Any, step: Any) -> Any:
        """Write a data model: a class, a symbol, a value or an instance."""
        try:
            if isinstance(value, JsonDataModel | BaseModel) and not isinstance(value, type):
                if not hasattr(class_of(cast("object", value)), "__synmod_json__"):
                    return self._refused(value, step)
                json = frozen(value)
                return {"data": {"data_model": self.names.data_model(value), "json": json}}
            if isinstance(value, SymbolicDataModel) or (isinstance(value, type) and issubclass(value, BaseModel)):
                return {"data_model": self.names.data_model(value)}
        except (SchemaError, DataError) as error:
            return self._problem(step, str(error), "mend the data model, so that it can be declared and dumped")
        return None

    def _other(self, value: Any, step: Any) -> Any:
        """Write what code names: a class, a function, a member of an enum; or go on to scalars and containers."""
        if isinstance(value, type | types.FunctionType):
            public_id = id_of(value)
            if public_id is None:
                return self._refused(value, step)
            return {"class" if isinstance(value, type) else "function": public_id}
        if isinstance(value, enum.Enum):
            cls = type(value)
            public_id = id_of(cls)
            if public_id is None:
                return self._problem(step, *unregistered(cls, f"a member ({value.name})"))
            if value.name not in cls.__members__:
                return self._problem(step, f"{value!r:.100}, a combination without a name", "make it a member")
            return {"enum": {"class": public_id, "member": value.name}}
        return self._scalar(value, step)

    def _scalar(self, value: Any, step: Any) -> Any:
        """Write a scalar beyond JSON, or a set; None for a container, and a problem for the rest."""
        kind = class_of(value)
        if kind in NAMES:
            text = scalar_text(value)
            if text is None:
                what = f"{value!r:.100}, whose time zone has rules"
                return self._problem(step, what, "write x.astimezone(timezone.utc)")
            return {"scalar": {"type": NAMES[kind], "text": text}}
        if kind is set or kind is frozenset:
            return self._set(value, kind.__name__, step)
        if kind in OWN_TREE_TYPES or kind in TREE_TYPES or is_namedtuple(kind) or dataclasses.is_dataclass(kind):
            if kind in OWN_TREE_TYPES or id_of(kind) is not None:
                return self._circle(value, step)
            return self._problem(step, *unregistered(kind, "an object"))
        if kind is Static:
            return self._problem(
                step, "a static(x) inside a container that must be written", "put `static` around the whole container"
            )
        return self._refused(value, step)

    def _set(self, value: Any, kind: str, step: Any) -> Any:
        """Write a set of scalars, sorted, so that equal sets are equal files."""
        if not all(type(part) in _SCALARS for part in value):
            return self._problem(step, f"a {kind} that holds more than text and numbers", "write a list")
        parts = sorted(value, key=lambda part: (type(part).__name__, part if part is not None else 0))
        json = self._frozen(parts, step)
        return {kind: json} if json is not None else {"json": None}

    def _circle(self, value: Any, step: Any) -> Any:
        """Let a container be entered unless it is entered already."""
        if id(value) in self._inside:
            return self._problem(step, f"a {type(value).__name__} that holds itself", "break the circle")
        return None

    def _enter(self, value: Any, step: Any) -> None:
        """Begin a container."""
        kind = class_of(value)
        self._inside.add(id(value))
        if kind is dict:
            parts = list(value.items())
            bad = next((key for key in value if type(key) not in (str, int)), None)
            if bad is not None or any(key is None for key in value):
                self._problem(step, f"a dict with the key {bad!r:.100} of type {type(bad).__name__}", "write str(key)")
                parts = []
            self._open.append(_Open("dict", value, step, parts))
        elif kind is list or kind is tuple:
            self._open.append(_Open(kind.__name__, value, step, numbered(value)))
        else:
            self._open.append(_Open("tree", value, step, self._tree_parts(value)))

    def _tree_parts(self, value: Any) -> list[tuple[Any, Any]]:
        """The children of a tree type, then what else makes it up."""
        if isinstance(value, OrderedDict):
            return [*value.items(), ("keys", [*value])]
        parts, rest = take_apart(value)
        return [*parts, ("config", rest)]

    def _closed(self, container: _Open) -> Any:
        """Put a container together; one that is JSON throughout stays a mark for the one above."""
        kind, value = container.kind, container.value
        is_json = kind == "list" or (kind == "dict" and all(type(key) is str for key in value))
        if is_json and all(part is PURE for part in container.done):
            return PURE
        parts = [
            self._wrapped(done, part, step) for done, (step, part) in zip(container.done, container.parts, strict=True)
        ]
        if kind == "dict":
            return {"dict": [[key, term] for (key, _), term in zip(container.parts, parts, strict=True)]}
        if kind == "tree":
            cls = class_of(value)
            public_id = OWN_TREE_TYPES.get(cls) or id_of(cls)
            return {"tree": {"type": public_id, "children": parts[:-1], "config": parts[-1]}}
        return {kind: parts}

    def _wrapped(self, done: Any, value: Any, step: Any = None) -> Any:
        """Make a `json` term of what is JSON throughout."""
        return {"json": self._frozen(value, step)} if done is PURE else done

    def _frozen(self, value: Any, step: Any) -> Json:
        """Check and freeze JSON; a fault in it is a problem."""
        try:
            return frozen(value)
        except DataError as error:
            what, _, remedy = str(error).partition(" is not JSON: ")
            self._problem(step, f"{what} is not JSON", remedy.rstrip(".") or "write another value")
            return None

    def _refused(self, value: Any, step: Any) -> dict[str, Json]:
        """Note an object that no term can hold."""
        return self._problem(step, *what_and_remedy(value))

    def _problem(self, step: Any, what: str, remedy: str) -> dict[str, Json]:
        """Note a problem; what is written in its place is never read."""
        self.names.problems.note(self._where(step), what, remedy)
        return {"json": None}

    def _where(self, step: Any) -> str:
        """Where we are."""
        steps = [*(container.step for container in self._open), step]
        return self._place.text([each for each in steps if each is not None])

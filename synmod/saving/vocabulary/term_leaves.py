"""The leaves of terms: what one object without parts of its own is written as, told by its class."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import BaseModel

from synmod.data import JsonDataModel, SymbolicDataModel
from synmod.errors import DataError, SchemaError
from synmod.flow import SymbolRef
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen
from synmod.lm import LanguageModel
from synmod.registry import id_of
from synmod.saving.vocabulary.problems import Problems, unregistered, what_and_remedy
from synmod.saving.vocabulary.scalars import NAMES, scalar_text
from synmod.tree import TREE_TYPES, NodeRef, Static, Variable, VariableRef, class_of, is_namedtuple, own_impl

if TYPE_CHECKING:
    from collections.abc import Callable

    Written = dict[str, Json] | object | None
    Where = Callable[[], str]

__all__ = ["OWN_TREE_TYPES", "PURE", "LeafWriter", "Names"]

OWN_TREE_TYPES: Final[dict[type[Any], str]] = {deque: "collections>deque", OrderedDict: "collections>OrderedDict"}
"""Containers of Python that are written as trees, by class."""

PURE: Final = object()
"""Marks a value that is JSON through and through; the outermost such value becomes one `json` term."""

SCALARS: Final = (str, int, float, bool, type(None))


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

    def language_model(self, model: LanguageModel, where: Where) -> str:
        """The name of a language model."""
        ...


class LeafWriter:
    """Writes what is no open container; how a class is written is found out once.

    Attributes:
        structure: Whether a node, Variable or language model was met.
        nodes: The nodes that were met.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.structure = False
        self.nodes: list[int] = []
        self._writers: dict[type[Any], Callable[[Any, Where], Written]] = {
            **dict.fromkeys((*SCALARS, FrozenDict, FrozenList), _pure),
            **dict.fromkeys((dict, list, tuple, *OWN_TREE_TYPES), _to_be_entered),
            **dict.fromkeys(NAMES, self._scalar),
            **dict.fromkeys((set, frozenset), self._set),
            VariableRef: self._variable,
            NodeRef: self._node,
            SymbolRef: _symbol,
            Static: self._static,
            types.FunctionType: self._named,
            JsonDataModel: self._value,
            SymbolicDataModel: self._declared,
        }

    def write(self, value: Any, where: Where) -> Written:
        """Write an object: a term, PURE, or None for a container that must be entered."""
        kind = class_of(value)
        writer = self._writers.get(kind)
        if writer is None:
            writer = self._writers[kind] = self._writer_for(kind)
        return writer(value, where)

    def problem(self, where: Where, what: str, remedy: str) -> dict[str, Json]:
        """Note a problem; what is written in its place is never read."""
        self.names.problems.note(where(), what, remedy)
        return {"json": None}

    def _writer_for(self, kind: type[Any]) -> Callable[[Any, Where], Written]:
        """Find out how instances of a class are written."""
        if issubclass(kind, Variable):
            return self._variable
        if own_impl(kind) is not None:
            return self._node
        if issubclass(kind, BaseModel):
            return self._value if hasattr(kind, "__synmod_json__") else self._refused
        if issubclass(kind, type):
            return self._named
        if issubclass(kind, enum.Enum):
            return self._member
        if kind in TREE_TYPES or is_namedtuple(kind) or dataclasses.is_dataclass(kind):
            return _to_be_entered if id_of(kind) is not None else self._unregistered
        return self._refused

    # -- what stands in a table of the document -----------------------------------------------------------------------

    def _variable(self, value: Any, _: Where) -> Written:
        self.structure = True
        return {"variable": self.names.variable(value)}

    def _node(self, value: Any, where: Where) -> Written:
        self.structure = True
        model = self.names.model_of(value)
        if model is not None:
            return {"language_model": self.names.language_model(model, where)}
        number = self.names.node(value)
        self.nodes.append(number)
        return {"node": number}

    def _declared(self, value: Any, where: Where) -> Written:
        try:
            return {"data_model": self.names.data_model(value)}
        except (SchemaError, DataError) as error:
            return self.problem(where, str(error), "mend the data model, so that it can be declared")

    def _value(self, value: Any, where: Where) -> Written:
        try:
            return {"data": {"data_model": self.names.data_model(value), "json": frozen(value)}}
        except (SchemaError, DataError) as error:
            return self.problem(where, str(error), "mend the data model, so that it can be declared and dumped")

    # -- what code names ----------------------------------------------------------------------------------------------

    def _named(self, value: Any, where: Where) -> Written:
        is_class = issubclass(class_of(value), type)
        if is_class and issubclass(value, BaseModel):
            return self._declared(value, where)
        public_id = id_of(value)
        if public_id is None:
            return self._refused(value, where)
        return {"class" if is_class else "function": public_id}

    def _member(self, value: enum.Enum, where: Where) -> Written:
        cls = type(value)
        public_id = id_of(cls)
        if public_id is None:
            return self.problem(where, *unregistered(cls, f"a member ({value.name})"))
        if value.name not in cls.__members__:
            return self.problem(where, f"{value!r:.100}, a combination without a name", "make it a member")
        return {"enum": {"class": public_id, "member": value.name}}

    # -- the rest -----------------------------------------------------------------------------------------------------

    def _scalar(self, value: Any, where: Where) -> Written:
        text = scalar_text(value)
        if text is None:
            return self.problem(where, f"{value!r:.100}, whose time zone has rules", "write x.astimezone(timezone.utc)")
        return {"scalar": {"type": NAMES[class_of(value)], "text": text}}

    def _set(self, value: Any, where: Where) -> Written:
        """Write a set of scalars, sorted, so that equal sets are equal files."""
        kind = class_of(value).__name__
        if not all(type(part) in SCALARS for part in value):
            return self.problem(where, f"a {kind} that holds more than text and numbers", "write a list")
        parts = sorted(value, key=lambda part: (type(part).__name__, part if part is not None else 0))
        return {kind: self.json(parts, where)}

    def json(self, value: Any, where: Where) -> Json:
        """Check and freeze JSON; a fault in it is a problem."""
        try:
            return frozen(value)
        except DataError as error:
            what, _, remedy = str(error).partition(" is not JSON: ")
            self.problem(where, f"{what} is not JSON", remedy.rstrip(".") or "write another value")
            return None

    def _static(self, _: Any, where: Where) -> Written:
        what = "a static(x) inside a container that must be written"
        return self.problem(where, what, "put `static` around the whole container")

    def _unregistered(self, value: Any, where: Where) -> Written:
        return self.problem(where, *unregistered(class_of(value), "an object"))

    def _refused(self, value: Any, where: Where) -> Written:
        return self.problem(where, *what_and_remedy(value))


def _pure(_: Any, __: Where) -> Written:
    return PURE


def _to_be_entered(_: Any, __: Where) -> Written:
    return None


def _symbol(value: SymbolRef, _: Where) -> Written:
    return {"symbol": value.index}

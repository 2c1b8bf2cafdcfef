"""From terms to live values: whatever they refer to has been checked, and is made here or was made before."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from synmod.data import symbol, typed_instance, wrap
from synmod.errors import SynmodError
from synmod.flow import SymbolRef
from synmod.leaves.frozen import Json, frozen, thaw
from synmod.saving.checking.terms import tree_class
from synmod.saving.making.guarded import guarded
from synmod.saving.making.model_makers import made_model
from synmod.saving.text.faults import load_fault
from synmod.saving.vocabulary.scalars import scalar_from
from synmod.saving.vocabulary.stand_ins import keep_id
from synmod.tree import TREE_TYPES, put_together

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.lm import LanguageModel
    from synmod.saving.checking.plan import ModelEntry, Plan

__all__ = ["Decoder", "parts_of"]

Where = tuple[str | int, ...]
_CONTAINERS = frozenset({"list", "tuple", "dict", "tree"})


class _Open:
    """A container that is being read: its payload, the terms of its parts, and the parts so far."""

    __slots__ = ("done", "kind", "parts", "payload")

    def __init__(self, kind: str, payload: Json) -> None:
        self.kind = kind
        self.payload = payload
        self.parts = parts_of(kind, payload)
        self.done: list[Any] = []


class Decoder:
    """Reads the terms of one document.

    Attributes:
        nodes: What gives the node of an index.
        variables: What gives the Variable of an index.
        language_models: The models made, or taken over from code, so far.
    """

    def __init__(self, plan: Plan, nodes: Callable[[int], Any], variables: Callable[[int], Any]) -> None:
        self.plan = plan
        self.nodes = nodes
        self.variables = variables
        self.language_models: dict[str, LanguageModel] = {}
        self._readers: dict[str, Callable[[Json, Where], Any]] = {
            "json": lambda payload, _: payload,
            "node": lambda payload, _: self.nodes(payload),
            "variable": lambda payload, _: self.variables(payload),
            "data_model": lambda payload, _: self.declared(payload),
            "symbol": lambda payload, _: SymbolRef(payload),
            "language_model": lambda payload, _: self.language_model(payload),
            "data": self._data,
            "function": lambda payload, _: plan.resolver.find(payload, ()),
            "class": lambda payload, _: plan.resolver.find(payload, ()),
            "enum": lambda payload, _: plan.resolver.find(payload["class"], ())[payload["member"]],
            "set": lambda payload, _: set(payload),
            "frozenset": lambda payload, _: frozenset(payload),
            "scalar": lambda payload, _: scalar_from(payload["type"], payload["text"]),
        }

    def decode(self, term: dict[str, Json], where: Where = ()) -> Any:
        """Read a term.

        Raises:
            LoadError: A data model's validators, or a container of a user's type, refuse what they are given.
        """
        ((kind, payload),) = term.items()
        if kind not in _CONTAINERS:
            return self._readers[kind](payload, where)
        stack = [_Open(kind, payload)]
        while True:
            container = stack[-1]
            if len(container.done) == len(container.parts):
                stack.pop()
                value = self._closed(container, where)
                if not stack:
                    return value
                stack[-1].done.append(value)
                continue
            ((kind, payload),) = container.parts[len(container.done)].items()
            if kind in _CONTAINERS:
                stack.append(_Open(kind, payload))
            else:
                container.done.append(self._readers[kind](payload, where))

    def schema_json(self, term: dict[str, Json], where: Where = ()) -> Any:
        """Read a build config: a schema stands in the place of each data model."""
        declared, self._readers["data_model"] = self._readers["data_model"], self._schema
        try:
            return self.decode(term, where)
        finally:
            self._readers["data_model"] = declared

    def declared(self, index: int) -> Any:
        """The class of a data model, or the symbol that stands in for it."""
        entry = self.plan.data_model(index)
        if entry.cls is not None:
            return entry.cls
        return _standing_in(symbol(entry.schema), entry)

    def language_model(self, name: str) -> LanguageModel:
        """The language model of a name: the caller's, or made of its record, once."""
        model = self.language_models.get(name)
        if model is None:
            model = self.plan.supplied.get(name)
            if model is None:
                record = self.plan.language_models[name]
                cls = record["type"] and self.plan.resolver.find_or_none(record["type"], ())
                model = made_model(name, record, cls, self.decode)
            self.language_models[name] = model
        return model

    def _schema(self, payload: Json, _: Where) -> Any:
        return thaw(self.plan.data_model(payload).schema)

    def _data(self, payload: Json, where: Where) -> Any:
        """Read an instance of a data model; where its class is not known, a value of its schema."""
        entry = self.plan.data_model(payload["data_model"])
        json = frozen(payload["json"])
        if entry.cls is None:
            return _standing_in(wrap(json, entry.schema), entry)
        try:
            return typed_instance(json, entry.cls)
        except SynmodError as error:
            raise load_fault(where, str(error)) from error

    def _closed(self, container: _Open, where: Where) -> Any:
        """Put a container together."""
        kind, done, payload = container.kind, container.done, container.payload
        if kind == "list":
            return done
        if kind == "tuple":
            return tuple(done)
        if kind == "dict":
            return {key: value for (key, _), value in zip(payload, done, strict=True)}
        cls = tree_class(self.plan.resolver, payload["type"], ())
        *children, rest = done
        if cls in TREE_TYPES:
            return guarded(lambda: put_together(cls, (), children, rest), where, cls)
        steps = rest if cls is OrderedDict else _field_names(cls)
        return put_together(cls, steps, children, rest)


def parts_of(kind: str, payload: Json) -> list[dict[str, Json]]:
    """The terms of the parts of a container."""
    if kind == "dict":
        return [term for _, term in payload]
    return [*payload["children"], payload["config"]] if kind == "tree" else payload


def _field_names(cls: Any) -> list[str]:
    """The steps of a dataclass; a namedtuple or deque needs none."""
    if cls is deque or issubclass(cls, tuple):
        return []
    return list(cls.__dataclass_fields__)


def _standing_in(x: Any, entry: ModelEntry) -> Any:
    """Let a symbol or value keep the id that nobody knows here."""
    if entry.public_id is not None:
        keep_id(x, entry.public_id)
    return x

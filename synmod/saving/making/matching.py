"""Is what a constructor made the thing that the record describes? Then it is adopted, else replaced."""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from synmod.data import Described, schema_of
from synmod.errors import SynmodError
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen, json_equal
from synmod.lm import LanguageModel
from synmod.saving.checking.terms import tree_class
from synmod.saving.making.decode import Decoder, parts_of
from synmod.saving.vocabulary.model_records import record_of
from synmod.saving.vocabulary.problems import Problems
from synmod.saving.vocabulary.scalars import NAMES, scalar_text
from synmod.tree import class_of, take_apart

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from synmod.saving.checking.plan import Plan

__all__ = ["Match"]

_JSON_TYPES = frozenset({str, int, float, bool, type(None), list, dict, FrozenDict, FrozenList})


class Match:
    """One comparison of a live node with a record; nothing is adopted unless all of it fits.

    Attributes:
        nodes: What would be adopted, by index.
        variables: Likewise.
        language_models: Likewise, by saved name.
    """

    def __init__(
        self,
        plan: Plan,
        decoder: Decoder,
        nodes: Mapping[int, Any],
        variables: Mapping[int, Any],
        used: Container[int],
    ) -> None:
        self.plan = plan
        self.decoder = decoder
        self.nodes: dict[int, Any] = {}
        self.variables: dict[int, Any] = {}
        self.language_models: dict[str, LanguageModel] = {}
        self._made_nodes = nodes
        self._made_variables = variables
        self._used = used
        self._met: set[int] = set()

    def fits(self, index: int, live: Any) -> bool:
        """Whether a live node has the class and the arguments of a record."""
        pending: list[tuple[dict[str, Json], Any]] = []
        if not self._node(index, live, pending):
            return False
        while pending:
            term, value = pending.pop()
            ((kind, payload),) = term.items()
            if kind in ("node", "variable"):
                if not (self._node if kind == "node" else self._variable)(payload, value, pending):
                    return False
            elif kind in ("list", "tuple", "dict", "tree"):
                parts = self._parts(kind, payload, value)
                if parts is None:
                    return False
                pending += zip(parts_of(kind, payload), parts, strict=True)
            elif not self._leaf(kind, payload, value):
                return False
        return True

    def _node(self, index: int, live: Any, pending: list[tuple[dict[str, Json], Any]]) -> bool:
        """Match a node; its arguments are looked at next."""
        known = self._made_nodes.get(index, self.nodes.get(index))
        if known is not None:
            return known is live
        entry = self.plan.nodes[index]
        if type(live) is not entry.cls or "flow" in entry.record or not self._is_new(live):
            return False
        self.nodes[index] = live
        if not entry.impl.is_module:
            return _same_json(entry.record["metadata"], entry.impl.flatten(live)[1])
        config = _config_of(live)
        terms = entry.record["config"]
        if config is None or config.keys() != terms.keys():
            return False
        pending += [(term, config[name]) for name, term in terms.items()]
        return True

    def _variable(self, index: int, live: Any, _: Any) -> bool:
        """Match a Variable by its class: its content is taken from the file anyway."""
        known = self._made_variables.get(index, self.variables.get(index))
        if known is not None:
            return known is live
        self.variables[index] = live
        return type(live) is self.plan.variables[index].cls and self._is_new(live)

    def _is_new(self, live: Any) -> bool:
        """Whether a live object stands for nothing else of the document yet."""
        if id(live) in self._used or id(live) in self._met:
            return False
        self._met.add(id(live))
        return True

    def _parts(self, kind: str, payload: Json, value: Any) -> list[Any] | None:
        """The parts of a live container that has the shape of a term."""
        if kind == "dict":
            same = class_of(value) is dict and list(value) == [key for key, _ in payload]
            return list(value.values()) if same else None
        if kind != "tree":
            cls = class_of(value)
            same = cls.__name__ == kind and cls in (list, tuple) and len(value) == len(payload)
            return list(value) if same else None
        if class_of(value) is not tree_class(self.plan.resolver, payload["type"], ()):
            return None
        if class_of(value) is OrderedDict:
            return [*value.values(), list(value)] if len(value) == len(payload["children"]) else None
        pairs, rest = take_apart(value)
        parts = [part for _, part in pairs]
        return [*parts, rest] if len(parts) == len(payload["children"]) else None

    def _leaf(self, kind: str, payload: Json, value: Any) -> bool:
        """Match what has no parts."""
        if kind == "json":
            return class_of(value) in _JSON_TYPES and _same_json(payload, value)
        if kind == "data_model":
            return self._declares(payload, value)
        if kind == "language_model":
            return self._language_model(payload, value)
        if kind == "data":
            is_data = isinstance(value, Described | BaseModel) and not isinstance(value, type)
            return is_data and self._declares(payload["data_model"], value) and _same_json(payload["json"], value)
        if kind in ("set", "frozenset"):
            return class_of(value).__name__ == kind and _same_json(payload, _sorted(value))
        if kind == "scalar":
            return NAMES.get(class_of(value)) == payload["type"] and scalar_text(value) == payload["text"]
        if kind == "enum":
            return isinstance(value, enum.Enum) and value is self.decoder.decode({kind: payload})
        return value is self.decoder.decode({kind: payload})

    def _language_model(self, name: str, value: Any) -> bool:
        """Match a model: the one of that name, or one that code made as the record says, if nobody has supplied one."""
        known = self.decoder.language_models.get(name) or self.language_models.get(name) or self.plan.supplied.get(name)
        if known is not None:
            return known is value
        record = self.plan.language_models[name]
        if type(value) is not LanguageModel or record.get("supply") != []:
            return False
        if record_of(value, "", Problems(), lambda _: None) != record or value.name != name:
            return False
        self.language_models[name] = value
        return True

    def _declares(self, index: int, value: Any) -> bool:
        """Whether a value declares the data model of an entry: a class counts as its schema."""
        try:
            return schema_of(value) is self.plan.data_models[index].schema
        except SynmodError:
            return False


def _config_of(live: Any) -> dict[str, Any] | None:
    """The arguments of a live module; None where they are not known."""
    try:
        return live.get_config()
    except SynmodError:
        return None


def _same_json(json: Json, value: Any) -> bool:
    """Whether a value is this JSON."""
    try:
        return json_equal(json, frozen(value))
    except SynmodError:
        return False


def _sorted(value: Any) -> list[Any]:
    """The parts of a set as a file writes them."""
    return sorted(value, key=lambda part: (type(part).__name__, part if part is not None else 0))

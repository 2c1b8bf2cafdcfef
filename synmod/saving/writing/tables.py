"""The tables of a document that is being written: data models and language models, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.data import Described, schema_of
from synmod.flow import Declared
from synmod.registry import id_of
from synmod.saving.vocabulary.model_records import record_of
from synmod.saving.vocabulary.stand_ins import kept_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.data import Schema
    from synmod.leaves.frozen import Json
    from synmod.lm import LanguageModel
    from synmod.saving.vocabulary.problems import Problems

__all__ = ["DataModelTable", "LanguageModelTable"]


class DataModelTable:
    """The data models of a document: a class by its id and schema, all else by its schema alone."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Json]] = []
        self._indices: dict[tuple[str | None, int], int] = {}
        self._kept: list[Schema] = []  # their identities are our keys

    def index(self, declared: Any) -> int:
        """The index of a class, a symbol, a value, or the class of an instance."""
        if isinstance(declared, Declared):
            known = declared.data_model
            public_id = kept_id(declared) if known is None else id_of(known)
            return self.entry(public_id, declared.schema if known is None else schema_of(known))
        if isinstance(declared, Described):
            return self.entry(kept_id(declared), declared._schema)
        cls: type = declared if isinstance(declared, type) else type(declared)
        return self.entry(id_of(cls), schema_of(cls))

    def entry(self, public_id: str | None, schema: Schema) -> int:
        """The index of an entry, which is made if it is new."""
        key = public_id, id(schema)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self.entries)
            entry: dict[str, Json] = {} if public_id is None else {"name": public_id}
            title = schema.get("title")
            if isinstance(title, str):
                entry["title"] = title
            entry["schema"] = schema
            self.entries.append(entry)
            self._kept.append(schema)
        return index


class LanguageModelTable:
    """The language models of a document, by name; of two of one name the second takes `#2`."""

    def __init__(self, problems: Problems, config_of: Callable[[Any], Json]) -> None:
        self.records: dict[str, dict[str, Json]] = {}
        self._names: dict[int, tuple[LanguageModel, str]] = {}
        self._problems = problems
        self._config_of = config_of

    @property
    def models(self) -> list[LanguageModel]:
        """The models, in the order of their names."""
        return [model for model, _ in self._names.values()]

    def name(self, model: LanguageModel, where: Callable[[], str]) -> str:
        """The name of a model; one that is met for the first time is entered."""
        known = self._names.get(id(model))
        if known is not None:
            return known[1]
        name = wanted = model.name
        number = 1
        while name in self.records:
            number += 1
            name = f"{wanted}#{number}"
        self._names[id(model)] = model, name
        self.records[name] = {}
        self.records[name] = record_of(model, where(), self._problems, self._config_of)
        return name

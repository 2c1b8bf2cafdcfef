"""The tables of data models and of language models, both ways: each is in a file once, under an index or a name."""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Final

from pydantic_core import to_json

from synmod.data import (
    DataModel,
    Described,
    Schema,
    json_equal,
    schema_from,
    schema_of,
    schema_of_class,
    symbol,
    thaw,
    validate,
)
from synmod.errors import ArgumentError, DataError, SchemaError, SynmodError
from synmod.flow import Declared
from synmod.leaves.frozen import Json, frozen, is_object
from synmod.leaves.names import did_you_mean
from synmod.lm import SAMPLING, LanguageModel, UnboundLanguageModel, model_from
from synmod.registry import id_of

from .names import Resolver
from .problems import Problems, Where, check_array, check_fields, check_object, check_text, load_fault, malformed, shown
from .terms import Place, TermReader

_SHOWN = 100
_MODEL = re.compile(r"[a-z0-9_]+(/[A-Za-z0-9][A-Za-z0-9._:@+-]*)+", re.ASCII)
_SETTINGS: Final = ("attempts", "timeout_s", "repairs", "structured")
_SUPPLIED: Final = ("api_base", "headers", "extra_body", "adapter")
"""What the author of a file had to supply for a language model: names, never values."""

_ANY_MODEL: Final = "unbound/model"
"""The model string of a language model of which the file holds nothing but the name."""

# -- data models ------------------------------------------------------------------------------------------------------

_IDS: dict[int, tuple[weakref.ref[Any], str]] = {}
"""The ids that symbols and values stand in for, by identity (they compare by content), as long as they live."""


def keep_id(stand_in: Any, public_id: str | None) -> Any:
    """Return a symbol or value that keeps the id of a data model that is not known in this process."""
    if public_id is not None:
        key = id(stand_in)

        def forget(gone: weakref.ref[Any]) -> None:
            if key in _IDS and _IDS[key][0] is gone:
                del _IDS[key]

        _IDS[key] = (weakref.ref(stand_in, forget), public_id)
    return stand_in


def kept_id(x: Any) -> str | None:
    """Return the id that a symbol or value stands in for, None for an ordinary one."""
    entry = _IDS.get(id(x))
    return entry[1] if entry is not None and entry[0]() is x else None


class DataModelTable:
    """The data models of a document that is written: a class by its id and schema, all else by its schema alone."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Json]] = []
        self._indices: dict[tuple[str | None, int], int] = {}
        self._kept: list[Schema] = []  # their identities are our keys

    def index(self, declared: Any) -> int:
        """Return the index of a class, a symbol, a value, or the class of an instance."""
        if isinstance(declared, Declared):
            known = declared.data_model
            public_id = kept_id(declared) if known is None else id_of(known)
            return self._entry(public_id, declared.schema if known is None else schema_of(known))
        if isinstance(declared, Described):
            return self._entry(kept_id(declared), declared._schema)
        cls: type = declared if isinstance(declared, type) else type(declared)
        return self._entry(id_of(cls), schema_of(cls))

    def _entry(self, public_id: str | None, schema: Schema) -> int:
        """Return the index of an entry, which is made if it is new."""
        key = public_id, id(schema)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self.entries)
            entry: dict[str, Json] = {} if public_id is None else {"name": public_id}
            title = schema.get("title")
            if isinstance(title, str):
                entry["title"] = title
            self.entries.append({**entry, "schema": schema})
            self._kept.append(schema)
        return index


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A data model of a document that is read: the class if its id is known here, else the id alone and the schema."""

    public_id: str | None
    cls: type[DataModel] | None
    schema: Schema

    def declared(self) -> Any:
        """Return the class, or a symbol that stands in for it."""
        return self.cls or self.standing_in(symbol(self.schema))

    def standing_in(self, x: Any) -> Any:
        """Return a symbol or value of the schema, which keeps the id."""
        return keep_id(x, self.public_id)

    def checked(self, value: Json, where: Where) -> Json:
        """Return a frozen value of the schema."""
        return checked_value(self.schema, value, where)


def checked_value(schema: Schema, value: Json, where: Where) -> Json:
    """Return a frozen value of a schema.

    Raises:
        LoadError: It is not one.
    """
    try:
        found = frozen(value)
        validate(schema, found, "a value")
    except (SchemaError, DataError) as error:
        raise load_fault(where, str(error)) from error
    return found


class SchemaReader:
    """Reads the schemas of one document; equal ones once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Schema] = {}

    def read(self, schema: Json, where: Where, root: Any) -> Schema:
        """Return a schema.

        Raises:
            FormatError: It is not an object.
            LoadError: It is not closed, or too complex.
        """
        key = root, to_json(check_object(schema, where))
        known = self._known.get(key)
        if known is None:
            try:
                known = self._known[key] = schema_from(schema, root=root)
            except SynmodError as error:
                raise load_fault(where, str(error)) from error
        return known


def read_data_models(entries: Json, resolver: Resolver, schemas: SchemaReader) -> list[ModelEntry]:
    """Return the data models of a document.

    Raises:
        FormatError: A field is unknown or missing.
        LoadError: A class that is known here has another schema.
    """
    return [
        _read_data_model(entry, ("data_models", number), resolver, schemas)
        for number, entry in enumerate(check_array(entries, ("data_models",)))
    ]


def _read_data_model(entry: Json, where: Where, resolver: Resolver, schemas: SchemaReader) -> ModelEntry:
    """Return one data model."""
    record = check_object(entry, where)
    check_fields(record, where, ("schema",), ("name", "title"))
    if "title" in record:
        check_text(record["title"], (*where, "title"))
    schema = schemas.read(record["schema"], (*where, "schema"), "object")
    if "name" not in record:
        return ModelEntry(None, None, schema)
    name = record["name"]
    cls = resolver.find_or_none(name, (*where, "name"))
    if cls is None:
        return ModelEntry(name, None, schema)
    if not isinstance(cls, type) or not issubclass(cls, DataModel):
        raise load_fault((*where, "name"), f"{name!r} is registered, but is not a DataModel.")
    known = schema_of_class(cls)
    if known is not schema and not json_equal(known, schema):
        raise load_fault(
            where,
            f"the schema of {name!r} differs from that of the class here:\n{_difference(schema, known)}\nTo take the "
            f"schema of the file, pass custom_objects={{{name!r}: None}}; else save the program with the class it was "
            "made with.",
        )
    return ModelEntry(name, cls, schema)


def _difference(stored: Schema, known: Schema) -> str:
    """Return the lines in which two schemas differ, whatever the order of their keys."""
    before, after = (json.dumps(thaw(schema), indent=1, sort_keys=True).splitlines() for schema in (stored, known))
    lines = list(unified_diff(before, after, "the file", "the class", lineterm="", n=0))[:_SHOWN]
    return "\n".join(line[:_SHOWN] for line in lines if not line.startswith("@@"))


# -- language models --------------------------------------------------------------------------------------------------


class LanguageModelTable:
    """The language models of a document that is written, by name; of two of one name the second takes `#2`."""

    def __init__(self, problems: Problems, term: Callable[[Any, Place], Json]) -> None:
        self.records: dict[str, dict[str, Json]] = {}
        self._names: dict[int, tuple[LanguageModel, str]] = {}
        self._problems = problems
        self._term = term

    @property
    def models(self) -> list[LanguageModel]:
        """The models, in the order of their names."""
        return [model for model, _ in self._names.values()]

    def name(self, model: LanguageModel, place: Place) -> str:
        """Return the name of a model; one that is met for the first time is entered."""
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
        self.records[name] = record = language_model_record(model, lambda value: self._term(value, place))
        for field, fault in _record_faults(record) if "model" in record else ():
            self._problems.note(place.text(), f"a language model whose {field} is {shown(record[field])}", fault)
        return name


def language_model_record(model: LanguageModel, term: Callable[[Any], Json]) -> dict[str, Json]:
    """Return the record of a model: never a key, an endpoint or a header.

    A model whose class is not registered (a test double) leaves its name alone; one that a load left unbound is
    written as it stood in its file.

    Args:
        model: The model.
        term: Writes an argument of a registered subclass.
    """
    if isinstance(model, UnboundLanguageModel):
        kept = model.record()
        config = kept.get("config")
        if kept["type"] is None:
            return {"type": None}
        return kept if config is None else {**kept, "config": {key: term(each) for key, each in config.items()}}
    public_id = id_of(type(model))
    if public_id is None:
        return {"type": None}
    settings = model.settings
    record: dict[str, Json] = {"type": public_id}
    get_config: Any = getattr(model, "get_config", None)
    if type(model) is not LanguageModel and get_config is not None:
        record["config"] = {key: term(value) for key, value in get_config().items()}
    return record | {
        "model": settings.model,
        **{name: getattr(settings, name) for name in _SETTINGS},
        "defaults": {name: settings.defaults[name] for name in SAMPLING if name in settings.defaults},
        "supply": list(settings.supply),
    }


def check_language_model(name: str, record: Json, resolver: Resolver, terms: TermReader) -> None:
    """Check the record of a language model.

    Raises:
        FormatError: A field is missing, unknown, or holds what must not come from a file.
        LoadError: Its type is not a class of language models.
    """
    where = ("language_models", name)
    if not name:
        raise malformed(where, "a language model needs a name.")
    fields = check_object(record, where)
    kind = fields.get("type", 0)
    if kind is None:
        check_fields(fields, where, ("type",))
        return
    check_fields(fields, where, ("type", "model", *_SETTINGS, "defaults", "supply"), ("config",))
    for field, fault in _record_faults(fields):
        raise malformed((*where, field), f"{shown(fields[field])} cannot stand here: {fault}.")
    cls = resolver.find_or_none(kind, (*where, "type"))
    if cls is not None and not (isinstance(cls, type) and issubclass(cls, LanguageModel)):
        raise load_fault((*where, "type"), f"{kind!r} is not a class of language models.")
    if cls is LanguageModel and "config" in fields:
        raise malformed((*where, "config"), "only a subclass has a config.")
    for argument, term in check_object(fields.get("config", {}), (*where, "config")).items():
        terms.read(term, (*where, "config", argument))


def _record_faults(record: dict[str, Json]) -> list[tuple[str, str]]:
    """Return what must not stand in a record: the field, and what may stand there. The rest is the class's to check."""
    faults: list[tuple[str, str]] = []
    model = record["model"]
    if not isinstance(model, str) or not _MODEL.fullmatch(model) or ".." in model:
        faults.append(("model", "write 'provider/name', without a scheme, an address or '..'"))
    faults += [(name, "a number or null") for name in _SETTINGS[:3] if type(record[name]) not in _NUMBER]
    if type(record["structured"]) not in (str, type(None)):
        faults.append(("structured", "a text or null"))
    defaults = record["defaults"]
    if not is_object(defaults):
        faults.append(("defaults", "an object of sampling parameters"))
    else:
        unknown = [name for name in defaults if name not in SAMPLING][:1]
        faults += [
            ("defaults", f"{shown(name)} is not a sampling parameter.{did_you_mean(name, SAMPLING)}")
            for name in unknown
        ]
    supply = record["supply"]
    if not isinstance(supply, list) or [name for name in _SUPPLIED if name in supply] != supply:
        faults.append(("supply", f"a list of names among {', '.join(_SUPPLIED)}, in this order"))
    return faults


_NUMBER: Final = (int, float, type(None))


def supplied_models(given: Any, names: Mapping[str, Json]) -> dict[str, LanguageModel]:
    """Return the caller's language models by saved name.

    Args:
        given: A mapping from saved name to a live model or model string, or one of these for all.
        names: The names in the file.

    Raises:
        LoadError: A name is not in the file ('Did you mean').
        ArgumentError: It is neither.
        ConfigError: A value is neither a LanguageModel nor a model string.
    """
    if given is None:
        return {}
    if isinstance(given, str | LanguageModel):
        return dict.fromkeys(names, model_from(given, "language_models"))
    if not hasattr(given, "items"):
        raise ArgumentError(
            f"language_models is a {type(given).__name__}, wanted a mapping from saved name to a LanguageModel or a "
            "model string, or one of these for all."
        )
    bases = {name: name.partition("#")[0] for name in names}
    models: dict[str, LanguageModel] = {}
    for name, model in given.items():
        if name not in names and name not in bases.values():
            known = list(names)[:_SHOWN]
            raise load_fault(
                ("language_models",),
                f"no language model of this file is named {name!r}.{did_you_mean(name, known)} "
                f"The file has {', '.join(map(shown, known)) or 'none'}.",
            )
        models[name] = model_from(model, f"language_models[{name!r}]")
    keys = {name: name if name in models else base for name, base in bases.items()}
    return {name: models[key] for name, key in keys.items() if key in models}


def made_model(name: str, record: dict[str, Json], cls: type | None, read: Callable[[Json], Any]) -> LanguageModel:
    """Return a model made from its record, without a connection where the file does not hold all it needs.

    Args:
        name: The saved name.
        record: The checked record.
        cls: The class of its id, None where it is not known here.
        read: Reads a term.

    Raises:
        LoadError: The class does not take what the record holds.
    """
    if record["type"] is None:
        needs = ["a model of a class that is not registered"]
        return UnboundLanguageModel(name, {**record, "model": _ANY_MODEL}, needs)
    config = record.get("config")
    arguments = None if config is None else {key: read(term) for key, term in config.items()}
    if cls is None or record["supply"]:
        needs = [*record["supply"], *([f"the class {record['type']!r}"] if cls is None else [])]
        return UnboundLanguageModel(name, record if config is None else {**record, "config": arguments}, needs)
    settings = {key: record[key] for key in ("model", *_SETTINGS)} | record["defaults"]
    if name != record["model"]:
        settings["name"] = name
    try:
        return cls(**(settings if arguments is None else arguments))
    except (SynmodError, TypeError) as error:
        raise load_fault(("language_models", name), f"{cls.__qualname__} cannot be made: {error}") from error

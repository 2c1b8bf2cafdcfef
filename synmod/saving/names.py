"""What a document names: registered code by id, attributes, data models by index, language models by name."""

import json
import re
import types
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple, cast

from synmod import data, errors, flow, leaves, lm, module, registry
from synmod.tree import Intermediate, Memory, OptState, Param, Stat, Variable

from .document import Where, check, check_record, load_fault, malformed, shown

for _own in (lm.EmbeddingModel, Intermediate, lm.LanguageModel, Memory, OptState, Param, Stat, Variable):
    registry.register_own()(_own)

# -- ids ---------------------------------------------------------------------------------------------------------------

_ID = r"[A-Za-z_][A-Za-z0-9_.-]*>[A-Za-z_][A-Za-z0-9_.-]*"


class Resolver:
    """Finds the objects that one file names: in the caller's custom objects, then in the registry, and nowhere else.

    Args:
        custom_objects: `{id or bare name: object}`; None for an id takes the schema of the file.

    Raises:
        ArgumentError: `custom_objects` is not a mapping with str keys.
        RegistryError: An object in it, once a file uses it, is of a kind that files may not name.
    """

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        custom: Any = {} if custom_objects is None else custom_objects
        if not hasattr(custom, "items") or not all(isinstance(key, str) for key in custom):
            raise errors.ArgumentError("custom_objects: wanted a mapping from id or bare name to a class or function.")
        self._custom: dict[str, Any] = dict(custom)
        self._found: dict[str, Any] = {}
        self._bare: dict[str, str] = {}

    def find(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id.

        Raises:
            LoadError: It is not an id, or not registered.
        """
        found = self.find_or_none(public_id, where)
        if found is None:
            package = str(public_id).partition(">")[0]
            raise load_fault(
                where,
                f"{shown(public_id)} is not registered. Import the package that registers it ({shown(package)}) before "
                f"loading; the loader never imports it. Or pass custom_objects={{{shown(public_id)}: ...}}."
                f"{leaves.did_you_mean(public_id, registry.registered())}",
            )
        return found

    def find_or_none(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id, None where it is not registered or the caller maps it to None.

        Raises:
            LoadError: It is not an id.
        """
        if type(public_id) is not str or not re.fullmatch(_ID, public_id, re.ASCII):
            text = f"{shown(public_id)} is not an id: ids have the form 'package>Name'; an import path is not one."
            raise load_fault(where, text)
        if public_id not in self._found:
            self._found[public_id] = self._look_up(public_id, where)
        return self._found[public_id]

    def find_class(self, public_id: Any, where: Where, fits: Callable[[type], bool], wanted: str) -> type:
        """Return the class of an id.

        Raises:
            LoadError: It is not registered, or an object of another kind.
        """
        return fitting(self.find(public_id, where), where, fits, wanted)

    def _look_up(self, public_id: str, where: Where) -> Any:
        """Return what the caller's objects have under an id or its bare name, else what the registry has."""
        bare = public_id.partition(">")[2]
        key = public_id if public_id in self._custom else bare
        if key not in self._custom:
            return registry.lookup(public_id)
        if key == bare and self._bare.setdefault(bare, public_id) != public_id:
            text = f"{bare!r} in custom_objects could mean {self._bare[bare]!r} or {public_id!r}: write the id."
            raise load_fault(where, text)
        found = self._custom[key]
        if found is not None:
            registry.check_registrable(found, key)
        return found


def fitting(found: Any, where: Where, fits: Callable[[type], bool], wanted: str) -> type:
    """Return the object of an id after checking that it is a class of the wanted kind.

    Raises:
        LoadError: It is another class, or a function.
    """
    if not isinstance(found, type) or not fits(found):
        kind = "class" if isinstance(found, type) else "function"
        raise load_fault(where, f"this is the {kind} {found.__qualname__}, wanted {wanted}.")
    return found


@contextmanager
def user_code(where: Where, cls: type, path: Callable[[], str] | None = None) -> Generator[None]:
    """Turn what the code of a class raises into a LoadError with the place in the file.

    Args:
        where: The place in the document.
        cls: The class.
        path: Returns the path of the object in the program; called only after a failure.

    Raises:
        LoadError: The block raised an Exception, which is the cause. Cancellation and interrupts pass.
    """
    try:
        yield
    except errors.LoadError:
        raise
    except Exception as error:
        place = "" if path is None else f"{path()!r} "
        text = f"{place}({cls.__qualname__}) cannot be made: {type(error).__name__}: {error}"
        raise load_fault(where, text) from error


# -- attributes --------------------------------------------------------------------------------------------------------

_INT_STEP = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_DECLARATIONS = frozenset({"input_spec", "output_spec"})
"""Descriptors of Module that an instance may set."""


def attribute_fault(cls: type, name: str) -> str | None:
    """Return why instances of a class cannot have a saved attribute of this name: it could be code, or bookkeeping."""
    if _INT_STEP.fullmatch(name):
        return None  # such as a member of a Sequential, which no code can name as an attribute
    if not name.isidentifier():
        return "an attribute name that is not an identifier"
    if name.startswith("__") and name.endswith("__"):
        return "an attribute with the name of a special method"
    if name in _DECLARATIONS:
        return None
    if name.startswith("_") and any(name in vars(base) for base in module.Module.__mro__):
        return "an attribute with the name of the base class's own bookkeeping"
    for base in cls.__mro__:
        if name in vars(base):
            found: object = vars(base)[name]
            if isinstance(found, types.MemberDescriptorType) and base is not module.Module:
                return None
            if hasattr(type(found), "__get__"):
                return f"an attribute that hides {name!r} of class {base.__name__}"
    if issubclass(cls, module.Module) and name in module.declaration_of(cls).reserved:
        return f"an attribute that hides {name!r} of Module"
    return None


# -- data models -------------------------------------------------------------------------------------------------------

_LISTED = 100
_IDS: dict[int, str] = {}
"""The ids of unknown data models, by identity of the symbols and values that stand in for them, while these live."""


def keep_id(stand_in: Any, public_id: str | None) -> Any:
    """Return a symbol or value after noting the id of its data model, which is not known in this process."""
    if public_id is not None:
        _IDS[id(stand_in)] = public_id
        weakref.finalize(stand_in, _IDS.pop, id(stand_in), None)
    return stand_in


def named_schema(declared: Any) -> tuple[str | None, data.Schema]:
    """Return the id and the schema of a class, symbol or value, of the class of an instance, or of part of a graph."""
    if isinstance(declared, flow.Declared):
        if declared.data_model is None:
            return _IDS.get(id(declared)), declared.schema
        declared = declared.data_model
    schema = data.schema_of(declared)
    if isinstance(declared, data.Described):
        return _IDS.get(id(cast("Any", declared))), schema
    return registry.id_of(declared if isinstance(declared, type) else type(declared)), schema


class ModelEntry(NamedTuple):
    """A data model in a file: its id if it has one, its class if the id is known here, and its schema."""

    public_id: str | None
    cls: type[data.DataModel] | None
    schema: data.Schema


def checked_value(schema: data.Schema | None, value: leaves.Json, where: Where) -> leaves.Json:
    """Return a frozen value after validating it, if a schema is given.

    Raises:
        LoadError: It is not JSON, or does not satisfy the schema.
    """
    try:
        found = leaves.frozen(value)
        if schema is not None:
            data.validate(schema, found, "a value")
    except (errors.SchemaError, errors.DataError) as error:
        raise load_fault(where, str(error)) from error
    return found


def read_data_model(
    entry: leaves.Json, where: Where, resolver: Resolver, read_schema: Callable[[leaves.Json, Where, Any], data.Schema]
) -> ModelEntry:
    """Return one data model of a document.

    Raises:
        FormatError: A field is unknown or missing.
        LoadError: A class that is known here has another schema.
    """
    record = check_record(entry, where, ("schema",), ("name", "title"))
    check(record.get("title", ""), (*where, "title"), str)
    schema = read_schema(record["schema"], (*where, "schema"), "object")
    name = record.get("name")
    found = resolver.find_or_none(name, (*where, "name")) if "name" in record else None
    if found is None:
        return ModelEntry(name, None, schema)
    cls = fitting(found, (*where, "name"), lambda found: issubclass(found, data.DataModel), "a DataModel")
    known = data.schema_of_class(cls)
    if known is not schema and not data.json_equal(known, schema):
        raise load_fault(
            where,
            f"the schema of {name!r} differs from that of the class here:\n{_difference(schema, known)}\nTo take the "
            f"schema of the file, pass custom_objects={{{name!r}: None}}; else save the program with the class it was "
            "made with.",
        )
    return ModelEntry(name, cls, schema)


def _difference(stored: data.Schema, known: data.Schema) -> str:
    """Return the lines in which two schemas differ, whatever the order of their keys."""
    from difflib import unified_diff

    before, after = (json.dumps(data.thaw(schema), indent=1, sort_keys=True).splitlines() for schema in (stored, known))
    lines = list(unified_diff(before, after, "the file", "the class", lineterm="", n=0))[:_LISTED]
    return "\n".join(line[:_LISTED] for line in lines if not line.startswith("@@"))


# -- language models ---------------------------------------------------------------------------------------------------

_MODEL = r"[a-z0-9_]+(/[A-Za-z0-9][A-Za-z0-9._:@+-]*)+"
_SETTINGS: Final = ("attempts", "timeout_s", "repairs", "structured")
_SUPPLIED: Final = ("api_base", "headers", "extra_body", "adapter")
"""The arguments of a language model that a file names without their values."""

_LIMITS: Final = ("concurrency", "rpm", "tpm")

_ANY_MODEL: Final = "unbound/model"
"""The model string of a language model whose name alone is in the file."""


def lm_record(
    model: lm.SharedModel, term: Callable[[Any], leaves.Json], reference: Callable[[Any], leaves.Json]
) -> dict[str, leaves.Json]:
    """Return the record of a model: never a key, an endpoint or a header.

    A model whose class is not registered (a test double) has a record without settings; an unbound model keeps the
    record of its file.

    Args:
        model: The model.
        term: Writes an argument of a registered subclass.
        reference: Returns the term of a fallback.
    """
    unbound = isinstance(model.adapter, lm.NoConnection)
    record: dict[str, leaves.Json] = dict(model.adapter.record) if unbound else {"type": registry.id_of(type(model))}
    if record["type"] is None:
        return {"type": None}
    get_config: Any = getattr(model, "get_config", None)
    if not unbound and type(model) is not lm.LanguageModel and get_config is not None:
        record["config"] = get_config()
    if "config" in record:
        record["config"] = {key: term(each) for key, each in record["config"].items()}
    if not unbound:
        settings = model.settings
        record |= {
            "model": settings.model,
            **{name: getattr(settings, name) for name in _SETTINGS},
            "defaults": {name: settings.defaults[name] for name in lm.SAMPLING if name in settings.defaults},
            "supply": list(settings.supply),
            **({"limit": settings.limit.numbers()} if settings.limit is not None else {}),
        }
    fallback = [reference(each)["language_model"] for each in model.fallback]
    return record | ({"fallback": fallback} if fallback else {})


def check_lm(name: str, record: leaves.Json, resolver: Resolver, read: Callable[[leaves.Json, Where], Any]) -> None:
    """Check the record of a language model.

    Args:
        name: The saved name.
        record: The record.
        resolver: Finds its class.
        read: Reads a term.

    Raises:
        FormatError: A field is missing or unknown, or has a value that must not come from a file.
        LoadError: Its type is not a class of language models.
    """
    where = ("language_models", name)
    if not name:
        raise malformed(where, "a language model needs a name.")
    kind = check(record, where, dict).get("type", "")
    if kind is None:
        check_record(record, where, ("type",))
        return
    check_record(record, where, ("type", "model", *_SETTINGS, "defaults", "supply"), ("config", "limit", "fallback"))
    for field, wanted in lm_faults(record):
        raise malformed((*where, field), f"{shown(record[field])} is not allowed here, wanted {wanted}.")
    found = resolver.find_or_none(kind, (*where, "type"))
    if found is not None:
        fitting(found, (*where, "type"), lambda found: issubclass(found, lm.SharedModel), "a class of language models")
    if found is lm.LanguageModel and "config" in record:
        raise malformed((*where, "config"), "only a subclass has a config.")
    for argument, term in check(record.get("config", {}), (*where, "config"), dict).items():
        read(term, (*where, "config", argument))


def check_fallbacks(records: Mapping[str, dict[str, leaves.Json]]) -> None:
    """Check that fallbacks are models of the file, and form no cycle.

    Raises:
        FormatError: A fallback is not in the file, or there is a cycle.
    """
    names: dict[str, list[str]] = {name: record.get("fallback", []) for name, record in records.items()}
    for name, fallback in names.items():
        for place, each in enumerate(fallback):
            if each not in records or lm.EmbeddingModel in (_kind(records[name]), _kind(records[each])):
                where = ("language_models", name, "fallback", place)
                raise malformed(where, f"{shown(each)} is not among the language_models of this file.")
    try:
        TopologicalSorter(names).prepare()
    except CycleError as error:
        where = ("language_models", error.args[1][0], "fallback")
        raise malformed(where, f"the fallbacks form a cycle: {' -> '.join(error.args[1][:_LISTED])}.") from None


def lm_faults(record: dict[str, leaves.Json]) -> list[tuple[str, str]]:
    """Return the fields of a record that have a bad value, and what is wanted; the class checks the rest."""
    model, defaults, supply = record["model"], record["defaults"], record["supply"]
    limit, fallback = record.get("limit", {"rpm": 1}), record.get("fallback", [""])
    is_limit = leaves.is_object(limit) and bool(limit) and {*limit} <= {*_LIMITS}
    is_limit = is_limit and all(type(number) is int and number > 0 for number in limit.values())
    is_named = leaves.is_array(fallback) and bool(fallback) and all(type(each) is str for each in fallback)
    is_plain = isinstance(model, str) and re.fullmatch(_MODEL, model, re.ASCII) and ".." not in model
    is_sampling = leaves.is_object(defaults) and {*defaults} <= {*lm.SAMPLING}
    is_ordered = isinstance(supply, list) and [name for name in _SUPPLIED if name in supply] == supply
    numbers = [(name, type(record[name]) in (int, float, type(None)), "a number or null") for name in _SETTINGS[:3]]
    rules = [
        ("model", is_plain, "'provider/name', without a scheme, an address or '..'"),
        *numbers,
        ("structured", type(record["structured"]) in (str, type(None)), "a string or null"),
        ("defaults", is_sampling, f"some of {', '.join(lm.SAMPLING)} as an object"),
        ("supply", is_ordered, f"a list of names among {', '.join(_SUPPLIED)}, in this order"),
        ("limit", is_limit, f"whole numbers above 0 under {', '.join(_LIMITS)}"),
        ("fallback", is_named, "a list of saved names"),
    ]
    return [(field, wanted) for field, holds, wanted in rules if not holds]


def supplied_lms(given: Any, names: Mapping[str, leaves.Json]) -> dict[str, lm.SharedModel]:
    """Return the caller's models by saved name.

    Args:
        given: A mapping from saved name to a live model or model string, or one language model or string for all of
            them; embedding models go by name only.
        names: The names in the file, with their records.

    Raises:
        LoadError: A name is not in the file ('Did you mean').
        ArgumentError: `given` is none of these.
        ConfigError: A value is neither a model of the kind that was saved nor a model string.
    """
    if given is None:
        return {}
    if isinstance(given, str | lm.LanguageModel):
        model = lm.shared_model(lm.LanguageModel, given, "language_models")
        return {name: model for name, record in names.items() if _kind(record) is lm.LanguageModel}
    if not hasattr(given, "items"):
        raise errors.ArgumentError(
            f"language_models is a {type(given).__name__}, wanted a mapping from saved name to a LanguageModel or a "
            "model string, or one of these for all."
        )
    bases = {name: name.partition("#")[0] for name in names}
    for name in given:
        if name not in bases and name not in bases.values():
            known = list(names)[:_LISTED]
            raise load_fault(
                ("language_models",),
                f"no language model of this file is named {name!r}.{leaves.did_you_mean(name, known)} "
                f"The file has {', '.join(map(shown, known)) or 'none'}.",
            )
    keys = {name: name if name in given else base for name, base in bases.items()}
    return {
        name: lm.shared_model(_kind(names[name]), given[key], f"language_models[{key!r}]")
        for name, key in keys.items()
        if key in given
    }


def _kind(record: leaves.Json) -> type[Any]:
    """Return the kind of model that a record describes."""
    public_id = record.get("type") if leaves.is_object(record) else None
    cls = registry.lookup(public_id) if isinstance(public_id, str) else None
    return lm.EmbeddingModel if isinstance(cls, type) and issubclass(cls, lm.EmbeddingModel) else lm.LanguageModel


def made_lm(
    name: str, record: dict[str, leaves.Json], cls: type | None, read: Callable[[leaves.Json], Any]
) -> lm.SharedModel:
    """Return a model made from its record; an unbound one if the file does not hold all that it needs.

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
        return lm.unbound_model(lm.LanguageModel, name, {**record, "model": _ANY_MODEL}, needs)
    arguments = {key: read(term) for key, term in record.get("config", {}).items()}
    if cls is None or record["supply"]:
        needs = [*record["supply"], *([f"the class {record['type']!r}"] if cls is None else [])]
        kept = {**record, "config": arguments} if "config" in record else record
        return lm.unbound_model(_kind(record), name, kept, needs)
    if "config" not in record:
        arguments = {key: record[key] for key in ("model", *_SETTINGS)} | record["defaults"]
        arguments |= {} if name == record["model"] else {"name": name}
    arguments |= {"limit": lm.Limit(**record["limit"])} if "limit" in record else {}
    try:
        return cls(**arguments)
    except (errors.SynmodError, TypeError) as error:
        raise load_fault(("language_models", name), f"{cls.__qualname__} cannot be made: {error}") from error

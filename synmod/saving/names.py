"""What a document names: registered code by id, attributes, data models by index."""

import json
import re
import types
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from synmod import data, errors, flow, leaves, module, registry

from .document import Where, check, check_record, load_error, short_text

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
        target = self.find_or_none(public_id, where)
        if target is None:
            name, package = short_text(public_id), short_text(str(public_id).partition(">")[0])
            raise load_error(
                where,
                f"{name} is not registered. Import the package that registers it ({package}) before loading; the "
                f"loader never imports it. Or pass custom_objects={{{name}: ...}}."
                f"{leaves.did_you_mean(public_id, registry.registered())}",
            )
        return target

    def find_or_none(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id, None where it is not registered or the caller maps it to None.

        Raises:
            LoadError: It is not an id.
        """
        if type(public_id) is not str or not re.fullmatch(_ID, public_id, re.ASCII):
            text = f"{short_text(public_id)} is not an id: ids have the form 'package>Name'; an import path is not one."
            raise load_error(where, text)
        if public_id not in self._found:
            self._found[public_id] = self._look_up(public_id, where)
        return self._found[public_id]

    def find_class(self, public_id: Any, where: Where, fits: Callable[[type], bool], expected: str) -> type:
        """Return the class of an id.

        Raises:
            LoadError: It is not registered, or an object of another kind.
        """
        return check_class(self.find(public_id, where), where, fits, expected)

    def _look_up(self, public_id: str, where: Where) -> Any:
        """Return what the caller's objects have under an id or its bare name, else what the registry has."""
        bare = public_id.partition(">")[2]
        key = public_id if public_id in self._custom else bare
        if key not in self._custom:
            return registry.lookup(public_id)
        if key == bare and self._bare.setdefault(bare, public_id) != public_id:
            text = f"{bare!r} in custom_objects could mean {self._bare[bare]!r} or {public_id!r}: write the id."
            raise load_error(where, text)
        target = self._custom[key]
        if target is not None:
            registry.check_registrable(target, key)
        return target


def check_class(target: Any, where: Where, fits: Callable[[type], bool], expected: str) -> type:
    """Return the object of an id after checking that it is a class of the wanted kind.

    Raises:
        LoadError: It is another class, or a function.
    """
    if not isinstance(target, type) or not fits(target):
        kind = "class" if isinstance(target, type) else "function"
        raise load_error(where, f"this is the {kind} {target.__qualname__}, wanted {expected}.")
    return target


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
        raise load_error(where, text) from error


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
            member: object = vars(base)[name]
            if isinstance(member, types.MemberDescriptorType) and base is not module.Module:
                return None
            if hasattr(type(member), "__get__"):
                return f"an attribute that hides {name!r} of class {base.__name__}"
    if issubclass(cls, module.Module) and name in module.declaration_of(cls).reserved:
        return f"an attribute that hides {name!r} of Module"
    return None


# -- data models -------------------------------------------------------------------------------------------------------

_LISTED = 100
_IDS: dict[int, str] = {}
"""The ids of unknown data models, by identity of the symbols and values that stand in for them, while these live."""


def remember_id(stand_in: Any, public_id: str | None) -> Any:
    """Return a symbol or value after noting the id of its data model, which is not known in this process."""
    if public_id is not None:
        _IDS[id(stand_in)] = public_id
        weakref.finalize(stand_in, _IDS.pop, id(stand_in), None)
    return stand_in


def id_and_schema(declared: Any) -> tuple[str | None, data.Schema]:
    """Return the id and the schema of a class, symbol or value, of the class of an instance, or of part of a graph."""
    if isinstance(declared, flow.Declared):
        if declared.data_model is None:
            return _IDS.get(id(declared)), declared.schema
        declared = declared.data_model
    schema = data.schema_of(declared)
    if isinstance(declared, data.HasSchema):
        return _IDS.get(id(cast("Any", declared))), schema
    return registry.id_of(declared if isinstance(declared, type) else type(declared)), schema


class ModelEntry(NamedTuple):
    """A data model in a file: its id if it has one, its class if the id is known here, and its schema."""

    public_id: str | None
    cls: type[data.DataModel] | None
    schema: data.Schema


def validate_value(schema: data.Schema | None, value: leaves.Json, where: Where) -> leaves.Json:
    """Return a frozen value after validating it, if a schema is given.

    Raises:
        LoadError: It is not JSON, or does not satisfy the schema.
    """
    try:
        json = leaves.frozen(value)
        if schema is not None:
            data.validate(schema, json, "a value")
    except (errors.SchemaError, errors.DataError) as error:
        raise load_error(where, str(error)) from error
    return json


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
    target = resolver.find_or_none(name, (*where, "name")) if "name" in record else None
    if target is None:
        return ModelEntry(name, None, schema)
    cls = check_class(target, (*where, "name"), lambda target: issubclass(target, data.DataModel), "a DataModel")
    current = data.schema_of_class(cls)
    if current is not schema and not data.json_equal(current, schema):
        raise load_error(
            where,
            f"the schema of {name!r} differs from that of the class here:\n{_difference(schema, current)}\nTo take the "
            f"schema of the file, pass custom_objects={{{name!r}: None}}; else save the program with the class it was "
            "made with.",
        )
    return ModelEntry(name, cls, schema)


def _difference(stored: data.Schema, current: data.Schema) -> str:
    """Return the lines in which two schemas differ, whatever the order of their keys."""
    from difflib import unified_diff

    before, after = (
        json.dumps(data.thaw(schema), indent=1, sort_keys=True).splitlines() for schema in (stored, current)
    )
    lines = list(unified_diff(before, after, "the file", "the class", lineterm="", n=0))[:_LISTED]
    return "\n".join(line[:_LISTED] for line in lines if not line.startswith("@@"))

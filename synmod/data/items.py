"""The schema of the objects in a list field, and a data model's schema with other items in one."""

from dataclasses import replace
from typing import Any, Final

from synmod import errors, leaves
from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list, is_object

from . import schema as schemas
from .merge import with_unique_definitions
from .schema import Schema, SchemaParts, intern_schema, parts_of

_PLAIN: Final = ("string", "integer", "number", "boolean")
_OBJECT_OF_VALUE: Final = {"type": "object", "required": ["value"], "additionalProperties": False}


def items_of(schema: Schema, field: str) -> Schema:
    """Return the schema of the objects in a list field, as a self-contained schema.

    Texts, numbers and booleans become objects with the one field `value`.

    Args:
        schema: Schema of a data model.
        field: Its list field.

    Raises:
        SchemaError: The field is not declared ('Did you mean'), or is not a list of objects (or null).
    """
    parts = parts_of(schema)
    if field not in parts.fields:
        raise errors.SchemaError(
            f"no field {field!r}; there are {', '.join(parts.fields)}.{leaves.did_you_mean(field, parts.fields)}"
        )
    written, array = _list_of(field, parts)
    items: Any = frozen_dict({"type": "object"}) if array.get("maxItems") == 0 else array.get("items")
    item = _resolve(items, parts)
    if item.get("type") in _PLAIN:
        item = frozen_dict({"title": "Value", **_OBJECT_OF_VALUE, "properties": {"value": item}})
    if array.get("type") != "array" or not (item.get("type") == "object" or "properties" in item):
        raise errors.SchemaError(
            f"the field {field!r} is not a list of objects: its schema is {dict(written)!r:.200}. "
            "Make its items data models: `class Item(sm.DataModel): ...`, and `list[Item]` for the field."
        )
    definitions = schemas.used_definitions([item], parts.definitions)
    return intern_schema({"$defs": frozen_dict(definitions), **item} if definitions else item)


def with_items(schema: Schema, field: str, item: Schema | None) -> Schema:
    """Return a data model's schema with other items in a list field, at the same place.

    A nullable field stays nullable.

    Args:
        schema: Schema of a data model.
        field: Its list field.
        item: Schema of the new items; None for a list without items.
    """
    parts = parts_of(schema)
    written, array = _list_of(field, parts)
    new: dict[str, Any] = {keyword: value for keyword, value in array.items() if keyword in _LIST_KEYWORDS}
    definitions = parts.definitions
    if item is None:
        new["maxItems"] = 0
    else:
        parts_of_item = with_unique_definitions(definitions, parts_of(item))
        definitions = {**definitions, **parts_of_item.definitions}
        new["items"] = frozen_dict(_without(parts_of_item.schema, "$defs"))
    new["type"] = "array"
    if array is not written:
        new = {**_without(written, "anyOf", "default"), "anyOf": frozen_list([frozen_dict(new), _NULL])}
    if "default" in written and not written["default"]:  # null and the empty list are valid for any items
        new["default"] = written["default"]
    fields = {**parts.fields, field: frozen_dict(new)}
    definitions = schemas.used_definitions([*fields.values(), parts.extra], definitions)
    return replace(parts, fields=fields, definitions=definitions).schema


_LIST_KEYWORDS = ("title", "description", "minItems", "maxItems")
"""Keywords that stay true of a list when each of its items is replaced."""

_NULL = frozen_dict({"type": "null"})


def _list_of(field: str, parts: SchemaParts) -> tuple[FrozenDict, FrozenDict]:
    """Return the schema of a field, and that of the list in it: the same, or the alternative to null."""
    written = _resolve(parts.fields[field], parts)
    arms: Any = written.get("anyOf", ())
    rest = [arm for arm in arms if not (is_object(arm) and arm.get("type") == "null")]
    return written, _resolve(rest[0], parts) if len(arms) == 2 and len(rest) == 1 else written


def _without(schema: FrozenDict, *keywords: str) -> dict[str, Any]:
    """Return a schema without some of its keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def _resolve(schema: Any, parts: SchemaParts) -> FrozenDict:
    """Return the schema itself, or the target of its reference."""
    name = schemas.definition_of(schema["$ref"]) if is_object(schema) and "$ref" in schema else None
    target: Any = schema if name is None else parts.definitions[name]
    return target if isinstance(target, FrozenDict) else frozen_dict({})

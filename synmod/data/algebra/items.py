"""Items: the schema of what a list field holds, and of a data model whose list field holds something else."""

from __future__ import annotations

from typing import Any

from synmod.data.parts import Parts, parts_of
from synmod.data.schema import Schema, trusted_schema
from synmod.data.subschemas import definition_of, used_definitions
from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list, is_object
from synmod.leaves.names import did_you_mean

from .definitions import beside


def items_of(schema: Schema, field: str) -> Schema:
    """Give the schema of the objects in a list field, as one that stands by itself.

    Args:
        schema: Schema of a data model.
        field: Its list field.

    Raises:
        SchemaError: There is no such field ('Did you mean'), or it is no list of objects (nor null).
    """
    parts = parts_of(schema)
    if field not in parts.fields:
        raise SchemaError(
            f"no field {field!r}; there are {', '.join(parts.fields)}.{did_you_mean(field, parts.fields)}"
        )
    _, array = _list_of(field, parts)
    given: Any = _ANY_OBJECT if array.get("maxItems") == 0 else array.get("items")
    item = _followed(given, parts)
    if array.get("type") != "array" or not (item.get("type") == "object" or "properties" in item):
        wanted = _followed(parts.fields[field], parts)
        raise SchemaError(f"the field {field!r} is no list of objects: its schema is {dict(wanted)!r:.200}.")
    definitions = used_definitions([item], parts.definitions)
    if item is not given and definition_of(given["$ref"]) in definitions:
        item = given  # a recursive model is written as pydantic writes it: a reference at the root
    return trusted_schema({"$defs": frozen_dict(definitions), **item} if definitions else item)


def with_items(schema: Schema, field: str, item: Schema | None) -> Schema:
    """Give a data model's schema with other items in a list field, at the same place.

    A field that may be null stays one that may be null.

    Args:
        schema: Schema of a data model.
        field: Its list field.
        item: Schema of the new items; None for a list that has none.
    """
    parts = parts_of(schema)
    written, array = _list_of(field, parts)
    new: dict[str, Any] = {keyword: value for keyword, value in array.items() if keyword in _KEPT}
    definitions = parts.definitions
    if item is None:
        new["maxItems"] = 0
    else:
        held = beside(definitions, parts_of(item))
        definitions = {**definitions, **held.definitions}
        new["items"] = frozen_dict(_without(held.schema, "$defs"))
    new["type"] = "array"
    if array is not written:
        new = {**_without(written, "anyOf", "default"), "anyOf": frozen_list([frozen_dict(new), _NULL])}
    if "default" in written and not written["default"]:  # null and the empty list hold whatever the items are
        new["default"] = written["default"]
    fields = {**parts.fields, field: frozen_dict(new)}
    definitions = used_definitions([*fields.values(), parts.extra], definitions)
    return Parts(fields, parts.required, parts.extra, definitions, parts.title, parts.description).schema


_KEPT = ("title", "description", "minItems", "maxItems")
"""What stays true of a list whose items change one by one."""

_NULL = frozen_dict({"type": "null"})

_ANY_OBJECT = frozen_dict({"type": "object"})
"""What an item of a list is that has none."""


def _list_of(field: str, parts: Parts) -> tuple[FrozenDict, FrozenDict]:
    """The schema of a field, and that of the list in it: itself, or what stands beside null."""
    written = _followed(parts.fields[field], parts)
    arms: Any = written.get("anyOf", ())
    others = [arm for arm in arms if not (is_object(arm) and arm.get("type") == "null")]
    return written, _followed(others[0], parts) if len(arms) == 2 and len(others) == 1 else written


def _without(schema: FrozenDict, *keywords: str) -> dict[str, Any]:
    """A schema without some of its keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def _followed(schema: Any, parts: Parts) -> FrozenDict:
    """The schema itself, or what its one reference goes to."""
    name = definition_of(schema["$ref"]) if is_object(schema) and "$ref" in schema else None
    found: Any = schema if name is None else parts.definitions[name]
    return found if isinstance(found, FrozenDict) else frozen_dict({})

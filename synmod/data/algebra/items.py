"""Items: the schema of what a list field holds, and of a data model whose list field holds something else."""

from __future__ import annotations

from typing import Any

from synmod.data.schemas.parts import Parts, parts_of, used_definitions
from synmod.data.schemas.schema import Schema, trusted_schema
from synmod.data.schemas.subschemas import definition_of
from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, frozen_dict, is_object
from synmod.leaves.suggest import did_you_mean

from .definitions import beside


def items_of(schema: Schema, field: str) -> Schema:
    """Give the schema of the objects in a list field, as one that stands by itself.

    Args:
        schema: Schema of a data model.
        field: Its list field.

    Raises:
        SchemaError: There is no such field ('Did you mean'), or it is no list of objects.
    """
    parts = parts_of(schema)
    if field not in parts.fields:
        raise SchemaError(
            f"no field {field!r}; there are {', '.join(parts.fields)}.{did_you_mean(field, parts.fields)}"
        )
    wanted = _followed(parts.fields[field], parts)
    given: Any = wanted.get("items")
    item = _followed(given, parts)
    if wanted.get("type") != "array" or not (item.get("type") == "object" or "properties" in item):
        raise SchemaError(f"the field {field!r} is no list of objects: its schema is {dict(wanted)!r:.200}.")
    definitions = used_definitions([item], parts.definitions)
    if item is not given and definition_of(given["$ref"]) in definitions:
        item = given  # a recursive model is written as pydantic writes it: a reference at the root
    return trusted_schema({"$defs": frozen_dict(definitions), **item} if definitions else item)


def with_items(schema: Schema, field: str, item: Schema) -> Schema:
    """Give a data model's schema with other items in a list field, at the same place.

    Args:
        schema: Schema of a data model.
        field: Its list field.
        item: Schema of the new items.
    """
    parts = parts_of(schema)
    held = beside(parts.definitions, parts_of(item))
    inside = frozen_dict({keyword: value for keyword, value in held.schema.items() if keyword != "$defs"})
    array = {keyword: value for keyword, value in _followed(parts.fields[field], parts).items() if keyword in _KEPT}
    fields = {**parts.fields, field: frozen_dict({**array, "items": inside, "type": "array"})}
    definitions = used_definitions([*fields.values(), parts.extra], {**parts.definitions, **held.definitions})
    return Parts(fields, parts.required, parts.extra, definitions, parts.title, parts.description).schema


_KEPT = ("title", "description", "minItems", "maxItems")
"""What stays true of a list whose items change one by one."""


def _followed(schema: Any, parts: Parts) -> FrozenDict:
    """The schema itself, or what its one reference goes to."""
    name = definition_of(schema["$ref"]) if is_object(schema) and "$ref" in schema else None
    found: Any = schema if name is None else parts.definitions[name]
    return found if isinstance(found, FrozenDict) else frozen_dict({})

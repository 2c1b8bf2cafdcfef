"""The root of a data model's schema: its declared fields, with a root reference followed one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from synmod.leaves.frozen import is_object

from .closed import target_of
from .schema import Schema

_NO_FIELDS: Final[Mapping[str, Any]] = {}


def root_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the schema that declares the fields: the root, or the definition a root `$ref` names."""
    reference = schema.get("$ref")
    if "properties" in schema or not isinstance(reference, str):
        return schema
    target = target_of(schema, reference)
    return target if is_object(target) else schema


def properties_of(schema: Schema) -> Mapping[str, Any]:
    """Give the declared fields with their schemas, in order."""
    return root_of(schema).get("properties", _NO_FIELDS)

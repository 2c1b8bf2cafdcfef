"""The root of a data model's schema: its declared fields, with a root reference followed one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from synmod.data.schema import Schema

_NO_FIELDS: Final[Mapping[str, Any]] = {}


def root_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the schema that declares the fields: the root, or the definition a root `$ref` names."""
    reference = schema.get("$ref")
    if "properties" in schema or not isinstance(reference, str):
        return schema
    target: Any = schema
    for step in reference.removeprefix("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        target = target[int(step)] if isinstance(target, list) else target[step]
    return target if isinstance(target, Mapping) else schema


def properties_of(schema: Schema) -> Mapping[str, Any]:
    """Give the declared fields with their schemas, in order."""
    return root_of(schema).get("properties", _NO_FIELDS)

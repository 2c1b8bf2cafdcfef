"""Containment: whether everything that one data model needs is in another."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from synmod.data.schemas.parts import Parts, parts_of
from synmod.data.schemas.rooted import properties_of
from synmod.data.schemas.schema import Schema
from synmod.data.subtyping.subtype import is_subschema
from synmod.data.symbols import declare
from synmod.data.value import JsonDataModel, to_value
from synmod.errors import ArgumentError, SchemaError

from .kept import Kept

_known: Kept[bool] = Kept(room=4_096)


def contains(whole: Any, part: Any) -> bool:
    """Tell whether everything that `part` requires is declared and required in `whole`: `part in whole`.

    What `part` makes optional may be missing, and fits if it is there. Annotations and further fields do not matter.

    Args:
        whole: Anything with a schema: a value, symbol, class, instance or schema dict.
        part: Likewise; or a str, which asks for a key.

    Returns:
        Whether each value of `whole` can be read as a `part`.

    Raises:
        ArgumentError: `whole` or `part` has no schema.

    Example:
        >>> one = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
        >>> two = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
        >>> contains(two, one)
        True

    Source: Synalinks' `contains`; differs: structural, and required fields must be required.
    """
    if isinstance(part, str):
        return holds(whole, part)
    try:
        return includes(declare(whole), declare(part))
    except ArgumentError:
        raise
    except SchemaError:
        return False


def holds(whole: Any, part: Any) -> bool:
    """Answer `part in whole`: a key that is there (declared, on classes and symbols), or containment."""
    if isinstance(part, str):
        if isinstance(whole, JsonDataModel):
            return part in whole._json
        if isinstance(whole, BaseModel):
            return part in to_value(whole)._json
        return part in properties_of(declare(whole))
    try:
        return contains(whole, part)
    except ArgumentError:
        return False


def includes(whole: Schema, part: Schema) -> bool:
    """Tell whether a schema contains another; kept per pair."""
    if whole is part:
        return True
    key = (id(whole), id(part))
    known = _known.find(key)
    return _known.keep(key, _includes(parts_of(whole), parts_of(part)), (whole, part)) if known is None else known


def _includes(whole: Parts, part: Parts) -> bool:
    if not set(part.required) <= set(whole.required):
        return False
    shared = [name for name in part.fields if name in whole.fields]
    if not shared:
        return True
    return is_subschema(_restricted(whole, shared, False), _restricted(part, shared, True))


def _restricted(parts: Parts, names: list[str], extra: bool) -> Schema:
    """Write the schema of some fields alone."""
    fields = {name: parts.fields[name] for name in names}
    return Parts(fields, (), extra, parts.definitions).schema

"""Structural subtyping: whether values of one schema are known to satisfy another, without looking at them."""

from __future__ import annotations

from typing import Any, Final

from synmod.data.schemas.schema import Schema, schema_from
from synmod.data.validation.validate import checker_of

from .proof import Proof

_MAX_KEPT: Final = 1_024
"""How many answers are kept with a schema."""


def is_subschema(sub: Any, sup: Any) -> bool:
    """Tell whether every value that is valid for `sub` is known to be valid for `sup`.

    Args:
        sub: A schema: a `Schema`, a dict, True, or a data model, which stands for its schema.
        sup: Another.

    Returns:
        True if it is proven; False if it is wrong, or cannot be proven. Annotations do not count.

    Raises:
        SchemaError: One of them is no schema that could be declared.

    Example:
        >>> is_subschema({"type": "integer"}, {"type": ["number", "null"]})
        True

    Source: TypeScript's assignability; differs: decided from JSON Schema, recursive types by induction.
    """
    if sub is sup:
        return True
    try:
        return sub._subtypes[sup._serial]
    except (AttributeError, KeyError):
        return _decided(_schema(sub), _schema(sup))


def _schema(x: Any) -> Schema:
    """Take a schema as it is given, or that of a data model."""
    get_schema = None if isinstance(x, dict) else getattr(x, "get_schema", None)
    return x if isinstance(x, Schema) else schema_from(get_schema() if get_schema else x, root="any")


def _decided(sub: Schema, sup: Schema) -> bool:
    """Decide, and keep the answer with `sub`."""
    if sub is sup:
        return True
    proven = Proof(checker_of(sub), checker_of(sup)).succeeds()
    if len(sub._subtypes) >= _MAX_KEPT:
        sub._subtypes = {}
    sub._subtypes[sup._serial] = proven
    return proven

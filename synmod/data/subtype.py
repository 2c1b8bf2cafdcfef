"""Structural subtyping of schemas: sound, incomplete, always terminating."""

from __future__ import annotations

from synmod.data.schema import Schema


def is_subschema(sub: Schema, sup: Schema) -> bool:
    """Tell whether every value valid for `sub` is valid for `sup`, as far as can be proven."""
    return sub is sup or not sup

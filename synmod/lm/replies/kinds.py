"""Kinds of JSON that a schema wants at its root: what to look for in a text."""

from __future__ import annotations

from typing import Final

from synmod.data import Schema
from synmod.leaves.frozen import Json, is_array, is_object

__all__ = ["kind_of", "wanted_kinds"]

_CONTAINERS: Final = frozenset({"object", "array"})
_KINDS: Final[dict[type, frozenset[str]]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"integer", "number"}),
    str: frozenset({"string"}),
    type(None): frozenset({"null"}),
}
_MOST_STEPS: Final = 50


def kind_of(json: Json) -> frozenset[str]:
    """Give the type words of JSON Schema that may hold for a value."""
    if is_object(json):
        return frozenset({"object"})
    if is_array(json):
        return frozenset({"array"})
    return next((kinds for kind, kinds in _KINDS.items() if type(json) is kind), frozenset[str]())


def wanted_kinds(schema: Schema) -> frozenset[str]:
    """Give the kinds that a schema names at its root; where it names none, objects and arrays."""
    return _named(schema, schema, _MOST_STEPS) or _CONTAINERS


def _named(part: Json, root: Schema, steps: int) -> frozenset[str]:
    """Collect the kinds that a part of a schema names, through references and alternatives."""
    if not is_object(part) or steps == 0:
        return frozenset()
    kinds = part.get("type")
    if kinds is not None:
        return frozenset([kinds]) if isinstance(kinds, str) else frozenset(kinds)
    if "const" in part:
        return kind_of(part["const"])
    if "enum" in part:
        return frozenset[str]().union(*map(kind_of, part["enum"]))
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        return _named(root.get("$defs", {}).get(name), root, steps - 1)
    arms: list[Json] = [arm for key in ("anyOf", "oneOf", "allOf") for arm in part.get(key, ())]
    return frozenset[str]().union(*[_named(arm, root, steps - 1) for arm in arms[:_MOST_STEPS]])

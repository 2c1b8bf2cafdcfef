"""Drawing a value for a schema, part by part; what hangs together too tightly for that is drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from synmod.data import Schema, is_valid, trusted_schema
from synmod.leaves.frozen import Json, frozen, is_array, is_object
from synmod.testing.instances.containers import array_of, object_of
from synmod.testing.instances.joining import joined, without
from synmod.testing.instances.scalars import number_of, text_of

__all__ = ["Drawing"]

_KIND_OF_KEYWORD: Final[Mapping[str, str]] = {
    "properties": "object", "required": "object", "additionalProperties": "object", "minProperties": "object",
    "patternProperties": "object", "propertyNames": "object", "items": "array", "prefixItems": "array",
    "contains": "array", "minItems": "array", "uniqueItems": "array", "minLength": "string", "maxLength": "string",
    "pattern": "string", "format": "string", "minimum": "number", "maximum": "number", "exclusiveMinimum": "number",
    "exclusiveMaximum": "number", "multipleOf": "number",
}  # fmt: skip
_SCALARS: Final = ("string", "integer", "boolean", "null")
_DEEPEST: Final = 6
_BOTTOM: Final = 40
_MOST_STEPS: Final = 24

# A part with one of these may be drawn wrongly, so it is looked at by itself, not only with the whole.
_TIGHT: Final = frozenset({"anyOf", "contains", "dependentSchemas", "if", "not", "oneOf", "pattern", "uniqueItems"})
_TRIES: Final = 12


class Drawing:
    """One draw.

    Args:
        root: The whole schema, to which references refer.
        random: Where chance comes from.
        bold: From 0 to 1: how likely optional parts are.
    """

    __slots__ = ("_bold", "_root", "random")

    def __init__(self, root: Schema, random: Random, bold: float) -> None:
        self.random = random
        self._root = root
        self._bold = bold

    def value(self, schema: Json, depth: int) -> Json:
        """Draw a value for a part of the schema."""
        if depth > _BOTTOM:
            return None  # a schema whose values never end
        tight = is_object(schema) and not _TIGHT.isdisjoint(schema)
        json: Json = None
        for _ in range(_TRIES if tight else 1):
            json = self._drawn(self.in_place(schema, depth), depth)
            if not tight or self._fits(schema, json):
                break
        return json

    def likes_more(self, depth: int, *, always_above: bool = False) -> bool:
        """Draw whether an optional part is there; never deep down."""
        if depth >= _DEEPEST:
            return False
        return always_above or self.random.random() < 0.6 * self._bold

    def in_place(self, schema: Json, depth: int) -> dict[str, Json]:
        """Take references, alternatives and conditions into the part itself; alternatives are drawn."""
        part = joined(schema, {})
        for _ in range(_MOST_STEPS):
            word = next((word for word in ("$ref", "allOf", "anyOf", "oneOf", "if") if word in part), None)
            if word is None:
                break
            rest, inner = without(part, word), part[word]
            if word == "$ref":
                part = joined(rest, self._target(inner))
            elif word == "allOf":
                part = rest
                for piece in inner:
                    part = joined(part, piece)
            elif word == "if":
                holds = self.random.random() < 0.5
                chosen = joined(inner, part.get("then", True)) if holds else part.get("else", True)
                part = joined(without(without(rest, "then"), "else"), chosen)
            else:
                part = joined(rest, self._arm(inner, depth))
        return part

    def _fits(self, part: Mapping[str, Json], json: Json) -> bool:
        """Tell whether a value satisfies a part."""
        return is_valid(trusted_schema({**part, "$defs": self._root.get("$defs", {})}), frozen(json))

    def _arm(self, arms: list[Json], depth: int) -> Json:
        """Choose an alternative; deep down the plainest one."""
        if depth < _DEEPEST:
            return self.random.choice(arms)
        return min(arms, key=lambda arm: _weight(self._target(arm["$ref"]) if "$ref" in joined(arm, {}) else arm))

    def _target(self, reference: str) -> Json:
        """Follow a reference inside the schema."""
        part: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            part = part[int(step)] if is_array(part) else part.get(step, True)
        return part

    def _drawn(self, part: Mapping[str, Json], depth: int) -> Json:
        """Draw a value for a part without alternatives."""
        if "const" in part:
            return part["const"]
        if "enum" in part:
            return self.random.choice(part["enum"]) if part["enum"] else None
        kind = self._kind(part, depth)
        if kind == "object":
            return object_of(self, part, depth)
        if kind == "array":
            return array_of(self, part, depth)
        if kind == "string":
            return text_of(part, self.random)
        if kind == "boolean":
            return self.random.random() < 0.5
        return None if kind == "null" else number_of(part, self.random, whole=kind == "integer")

    def _kind(self, part: Mapping[str, Json], depth: int) -> str:
        """Choose a type."""
        kinds = part.get("type")
        if isinstance(kinds, str):
            return kinds
        if kinds is None:
            told = next((kind for word, kind in _KIND_OF_KEYWORD.items() if word in part), None)
            return told or self.random.choice(_SCALARS)
        plain = [kind for kind in kinds if kind not in ("object", "array")]
        return self.random.choice((plain if depth >= _DEEPEST else None) or kinds or _SCALARS)


def _weight(part: Json) -> int:
    """How much a part asks for: constants least, references most."""
    if not is_object(part) or part.get("type") == "null" or "const" in part or "enum" in part:
        return 0
    if part.get("type") == "array" and not part.get("minItems"):
        return 1
    if part.get("type") in ("object", "array") or "properties" in part:
        return 3 if part.get("required") else 2
    return 4 if not {"$ref", "anyOf", "oneOf", "allOf"}.isdisjoint(part) else 1

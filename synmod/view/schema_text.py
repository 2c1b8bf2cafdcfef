"""Schemas in a line: `Query(query: str)`, as a signature in Python would say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from synmod.flow import MAPPING, kind_of, leaves

_LONGEST: Final = 72
"""Characters of one schema; the rest of its fields are left out."""

_DEEPEST: Final = 4
_MOST_CHOICES: Final = 3
_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict",
    "array": "list",
}


def schema_text(schema: Any) -> str:
    """Write a schema with its title and fields; one that is no object by its type."""
    if not isinstance(schema, Mapping):
        return _type(schema, {}, 0)
    known = cast("Mapping[str, Any]", schema)
    fields: Any = known.get("properties")
    if not isinstance(fields, Mapping):
        return _type(known, known, 0)
    shown: list[str] = []
    room = _LONGEST - len(title_text(known))
    for name, field in cast("Mapping[str, Any]", fields).items():
        text = f"{name}: {_type(field, known, 0)}"
        room -= len(text) + 2
        if room < 0 and shown:
            shown.append("...")
            break
        shown.append(text)
    return f"{title_text(known)}({', '.join(shown)})"


def title_text(schema: Any) -> str:
    """The title of a schema; without one, what it is."""
    title: Any = cast("Mapping[str, Any]", schema).get("title") if isinstance(schema, Mapping) else None
    return title if isinstance(title, str) and title else _type(schema, {}, 0)


def nest_text(nest: Any) -> str:
    """Write the schemas of a nest; several in the brackets of their container."""
    if not kind_of(nest):
        return schema_text(nest)
    parts = [schema_text(leaf) for leaf in leaves(nest)]
    if kind_of(nest) == MAPPING and len(nest) == len(parts):
        return f"{{{', '.join(f'{key}: {part}' for key, part in zip(nest, parts, strict=True))}}}"
    return f"({', '.join(parts)})"


def _type(schema: Any, root: Mapping[str, Any], depth: int) -> str:
    """Write the type that a schema describes, in the words of Python."""
    if not isinstance(schema, Mapping):
        return "never" if schema is False else "any"
    known = cast("Mapping[str, Any]", schema)
    if depth > _DEEPEST:
        return "..."
    if "$ref" in known:
        return _referred(str(known["$ref"]), root)
    for word in ("enum", "const"):
        if word in known:
            return _choices(known[word] if word == "enum" else [known[word]])
    for word in ("anyOf", "oneOf"):
        if word in known:
            return " | ".join(dict.fromkeys(_type(part, root, depth + 1) for part in known[word]))
    kind: Any = known.get("type")
    if isinstance(kind, str):
        return _of_kind(kind, known, root, depth)
    if isinstance(kind, Sequence):
        return " | ".join(_of_kind(str(one), known, root, depth) for one in cast("Sequence[Any]", kind))
    return "any"


def _of_kind(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """Write one type, with what is in a list or a dict."""
    if kind == "array" and "items" in schema:
        return f"list[{_type(schema['items'], root, depth + 1)}]"
    if kind == "object":
        if isinstance(schema.get("title"), str) and "properties" in schema:
            return str(schema["title"])
        if isinstance(schema.get("additionalProperties"), Mapping):
            return f"dict[str, {_type(schema['additionalProperties'], root, depth + 1)}]"
    return _TYPES.get(kind, kind)


def _referred(reference: str, root: Mapping[str, Any]) -> str:
    """Name what a reference leads to by the last step of the reference, which is how models are referred to."""
    name = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    found: Any = root.get("$defs", {}).get(name)
    if isinstance(found, Mapping) and "properties" not in found and "$ref" not in found:
        return _type(found, root, 1)
    return name if name not in ("", "#") else title_text(root)


def _choices(values: Sequence[Any]) -> str:
    """Write the values there are to choose from."""
    shown = [repr(value) for value in values[:_MOST_CHOICES]]
    return " | ".join([shown[0], "..."] if len(values) > _MOST_CHOICES else shown)

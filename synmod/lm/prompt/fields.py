"""What a schema says of its fields, in words for a model to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from synmod.lm.prompt.escape import value_text
from synmod.lm.prompt.subschemas import alternatives, fields_of, is_array, is_object, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from synmod.leaves.frozen import Json

_DEEPEST: Final = 6  # nested fields below this say nothing that helps to read the inputs


def input_fields(schema: Mapping[str, Json], without: Iterable[str] = ()) -> str:
    """List the fields of a schema, one a line, nested ones indented below their field.

    Args:
        schema: JSON schema of the inputs.
        without: Top-level fields to leave out.

    Returns:
        Lines such as `- query (string): what the user asks`; `""` for a schema without fields.

    Example:
        >>> input_fields({"properties": {"query": {"type": "string", "description": "what the user asks"}}})
        '- query (string): what the user asks'

    Source: DSPy adapters' field lists.
    """
    return "\n".join(_lines(resolved(schema, schema), schema, (), frozenset(without)))


def default_instructions(schema: Mapping[str, Json] | None) -> str:
    r"""Write the instructions of a program that has none: what the output model says of itself.

    Args:
        schema: JSON schema of the output, None for a reply in plain text.

    Returns:
        The description of the schema (the docstring of its class) and the output fields with their descriptions;
        `""` where nothing is known.

    Example:
        >>> default_instructions({"description": "A capital.", "properties": {"city": {"description": "its name"}}})
        'A capital.\n\nGive the field `city` (its name).'

    Source: DSPy `Predict`, Synalinks `Generator`.
    """
    if schema is None:
        return ""
    parts: list[str] = []
    if description := _meaning(schema, schema):
        parts.append(description)
    named = [_named(name, field, schema) for name, field in fields_of(resolved(schema, schema)).items()]
    if len(named) == 1:
        parts.append(f"Give the field {named[0]}.")
    elif named:
        parts.append(f"Give the fields {', '.join(named[:-1])} and {named[-1]}.")
    return "\n\n".join(parts)


def _named(name: str, field: Json, root: Mapping[str, Json]) -> str:
    """A field and what it means, for a sentence."""
    meaning = _meaning(field, root).strip()
    return f"`{name}` ({meaning})" if meaning else f"`{name}`"


def _lines(
    schema: Mapping[str, Json], root: Mapping[str, Json], above: tuple[int, ...], hidden: frozenset[str]
) -> Iterator[str]:
    """The lines of one object and of the objects inside it; an object inside itself is listed once."""
    indent = "  " * len(above)
    for name, field in fields_of(schema).items():
        if name in hidden:
            continue
        meaning = _meaning(field, root)
        yield f"{indent}- {name} ({_type_words(field, root, ())})" + (f": {meaning}" if meaning else "")
        for inner in _objects(field, root, ()):
            if id(inner) not in above and inner is not schema and len(above) < _DEEPEST:
                yield from _lines(inner, root, (*above, id(schema)), frozenset())


def _meaning(field: Json, root: Mapping[str, Json]) -> str:
    """The description beside a field, else that of what it refers to."""
    if not is_object(field):
        return ""
    return str(field.get("description") or resolved(field, root).get("description") or "")


def _type_words(field: Json, root: Mapping[str, Json], above: tuple[int, ...]) -> str:
    """The type of a field in words: `string`, `list of integer`, `"a" or "b"`, `string or null`."""
    target = resolved(field, root)
    if "enum" in target:
        return " or ".join(value_text(value) for value in target["enum"])
    if "const" in target:
        return value_text(target["const"])
    if id(target) not in above:
        above = (*above, id(target))
        if arms := alternatives(target):
            return " or ".join(dict.fromkeys(_type_words(arm, root, above) for arm in arms))
        if is_object(target.get("items")):
            return f"list of {_type_words(target['items'], root, above)}"
    kind = target.get("type", "object" if "properties" in target else "any value")
    names = kind if is_array(kind) else [str(kind)]
    return " or ".join("list" if name == "array" else name for name in names)


def _objects(field: Json, root: Mapping[str, Json], above: tuple[int, ...]) -> Iterator[Mapping[str, Json]]:
    """The objects with fields that stand in a field: itself, its items, its alternatives."""
    target = resolved(field, root)
    if id(target) in above:
        return
    if "properties" in target:
        yield target
        return
    items = target.get("items")
    for part in [items] if is_object(items) else alternatives(target):
        yield from _objects(part, root, (*above, id(target)))

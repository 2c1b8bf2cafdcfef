"""The keywords of JSON Schema 2020-12 that hold subschemas, walks over those, and the references between them.

Only these places are walked: a `$ref` inside a default, an enum or an example is data. What a walk leaves unchanged
is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeGuard, cast
from urllib.parse import unquote

from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list, is_array, is_object

Step = str | int

ONE_SUBSCHEMA: Final = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords whose value is a schema."""

SUBSCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""

SUBSCHEMA_MAPS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value is an object of schemas."""

IN_PLACE: Final = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose subschemas are applied to the same value as the schema itself; `$ref` is another."""

ANNOTATIONS: Final = frozenset(
    {"$comment", "contentEncoding", "contentMediaType", "contentSchema", "default", "deprecated", "description"}
    | {"discriminator", "examples", "format", "readOnly", "title", "writeOnly"}
)
"""Keywords that describe a value and demand nothing of it."""

_DEFS: Final = "#/$defs/"
_MISSING: Final = object()


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield every direct subschema with the steps to it, in document order; malformed keywords are passed over."""
    for keyword, value in schema.items():
        if keyword in ONE_SUBSCHEMA:
            yield (keyword,), value
        elif keyword in SUBSCHEMA_LISTS and is_array(value):
            for index, part in enumerate(value):
                yield (keyword, index), part
        elif keyword in SUBSCHEMA_MAPS and is_object(value):
            for name, part in value.items():
                yield (keyword, name), part


def mapped(schema: Any, change: Callable[[FrozenDict], FrozenDict]) -> Any:
    """Apply `change` to every schema inside a frozen schema, innermost first, then to itself."""
    if not is_object(schema):
        return schema
    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        new = value
        if keyword in ONE_SUBSCHEMA:
            new = mapped(value, change)
        elif keyword in SUBSCHEMA_LISTS and is_array(value):
            arms = [mapped(arm, change) for arm in value]
            new = value if all(a is b for a, b in zip(arms, value, strict=True)) else frozen_list(arms)
        elif keyword in SUBSCHEMA_MAPS and is_object(value):
            parts = {name: mapped(part, change) for name, part in value.items()}
            new = value if all(parts[name] is part for name, part in value.items()) else frozen_dict(parts)
        if new is not value:
            changed[keyword] = new
    return change(frozen_dict({**schema, **changed}) if changed else cast("FrozenDict", schema))


def without_annotations(schema: Any) -> Any:
    """Return what a schema demands, without what it describes."""

    def bare(here: FrozenDict) -> FrozenDict:
        if here.keys().isdisjoint(ANNOTATIONS):
            return here
        return frozen_dict({key: value for key, value in here.items() if key not in ANNOTATIONS})

    return mapped(schema, bare)


def target_of(root: Mapping[str, Any], reference: str) -> Any:
    """Return what a local reference names.

    Raises:
        SchemaError: There is nothing at that place.
    """
    place: Any = root
    for step in reference.split("/")[1:]:
        name = unescape(step)
        if is_object(place):
            place = place.get(name, _MISSING)
        elif is_array(place) and name.isdecimal() and len(name) < 10 and name == str(int(name)):
            place = place[int(name)] if int(name) < len(place) else _MISSING
        else:
            place = _MISSING
        if place is _MISSING:
            raise SchemaError(f"The schema has nothing at {reference!r:.200}, to which it refers.")
    return place


def references(schema: Any) -> set[str]:
    """Return every reference in a schema: `$ref`s and the targets of discriminator mappings."""
    found = set[str]()
    pending = [schema]
    while pending:
        here = pending.pop()
        if is_object(here):
            found.update(target for target in (here.get("$ref"), *_mapping(here).values()) if _is_local(target))
            pending.extend(part for _, part in subschemas(here))
    return found


def _mapping(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the mapping of a discriminator, empty where there is none."""
    discriminator = schema.get("discriminator")
    mapping = discriminator.get("mapping") if is_object(discriminator) else None
    return mapping if is_object(mapping) else {}


def _is_local(target: object) -> TypeGuard[str]:
    """Whether a value is a reference into the schema itself."""
    return isinstance(target, str) and target.startswith("#")


def rereferenced(schema: Any, change: Callable[[str], str]) -> Any:
    """Rewrite every reference in a frozen schema."""

    def rewrite(here: FrozenDict) -> FrozenDict:
        new: dict[str, Any] = {}
        reference = here.get("$ref")
        if _is_local(reference) and (target := change(reference)) != reference:
            new["$ref"] = target
        mapping = _mapping(here)
        targets = {value: change(target) if _is_local(target) else target for value, target in mapping.items()}
        if targets != mapping:
            new["discriminator"] = frozen_dict({**here["discriminator"], "mapping": frozen_dict(targets)})
        return frozen_dict({**here, **new}) if new else here

    return mapped(schema, rewrite)


def definition_of(reference: str) -> str | None:
    """Return the name of the root's definition that a reference goes through, None if it goes elsewhere."""
    return unescape(reference[len(_DEFS) :].partition("/")[0]) if reference.startswith(_DEFS) else None


def unescape(step: str) -> str:
    """Read one step of a reference."""
    return unquote(step).replace("~1", "/").replace("~0", "~")


def escape(step: str) -> str:
    """Write one step of a reference."""
    return step.replace("%", "%25").replace("~", "~0").replace("/", "~1")


def renamed_definitions(schema: Any, names: Mapping[str, str]) -> Any:
    """Let references to definitions follow their new names."""
    if not names:
        return schema

    def change(reference: str) -> str:
        name = definition_of(reference)
        if name is None or name not in names:
            return reference
        rest = reference[len(_DEFS) :].partition("/")[2]
        return _DEFS + escape(names[name]) + ("/" + rest if rest else "")

    return rereferenced(schema, change)


def used_definitions(roots: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the definitions that `roots` refer to, directly or through others, in their order."""
    if not definitions:
        return {}
    used = set[str]()
    pending = list(roots)
    while pending:
        for reference in references(pending.pop()):
            name = definition_of(reference)
            if name is not None and name in definitions and name not in used:
                used.add(name)
                pending.append(definitions[name])
    return {name: definition for name, definition in definitions.items() if name in used}

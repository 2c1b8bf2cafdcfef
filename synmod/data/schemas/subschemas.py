"""What can be asked of all schemas inside a schema, or changed in them, at once: references, names, annotations.

Only these places are walked: a `$ref` inside a default, an enum or an example is data. Unchanged parts are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list, is_array, is_object

from .keywords import ANNOTATIONS, ONE_SUBSCHEMA, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, subschemas

_DEFS: Final = "#/$defs/"


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
            new = _same_or(value, [mapped(arm, change) for arm in value])
        elif keyword in SUBSCHEMA_MAPS and is_object(value):
            arms = {name: mapped(arm, change) for name, arm in value.items()}
            new = value if all(arms[name] is arm for name, arm in value.items()) else frozen_dict(arms)
        if new is not value:
            changed[keyword] = new
    return change(frozen_dict({**schema, **changed}) if changed else cast("FrozenDict", schema))


def _same_or(old: list[Any], new: list[Any]) -> list[Any]:
    return old if all(a is b for a, b in zip(old, new, strict=True)) else frozen_list(new)


def references(schema: Any) -> set[str]:
    """Give every reference in a schema: `$ref`s and the targets of discriminator mappings."""
    found = set[str]()
    pending = [schema]
    while pending:
        here = pending.pop()
        if is_object(here):
            found.update(_references_here(here))
            pending.extend(part for _, part in subschemas(here))
    return found


def _references_here(schema: Mapping[str, Any]) -> Iterator[str]:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield reference
    yield from (target for target in _mapping(schema).values() if isinstance(target, str) and target.startswith("#"))


def _mapping(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the mapping of a discriminator, empty where there is none."""
    discriminator = schema.get("discriminator")
    mapping = discriminator.get("mapping") if is_object(discriminator) else None
    return mapping if is_object(mapping) else {}


def rereferenced(schema: Any, change: Callable[[str], str]) -> Any:
    """Rewrite every reference in a frozen schema; what has none is shared."""

    def rewrite(here: FrozenDict) -> FrozenDict:
        new: dict[str, Any] = {}
        reference = here.get("$ref")
        if isinstance(reference, str) and (target := change(reference)) != reference:
            new["$ref"] = target
        mapping = _mapping(here)
        targets = {
            value: change(target) if isinstance(target, str) and target.startswith("#") else target
            for value, target in mapping.items()
        }
        if targets != mapping:
            new["discriminator"] = frozen_dict({**here["discriminator"], "mapping": frozen_dict(targets)})
        return frozen_dict({**here, **new}) if new else here

    return mapped(schema, rewrite)


def definition_of(reference: str) -> str | None:
    """Give the name of the definition at the root that a reference goes through, None if it goes elsewhere."""
    if not reference.startswith(_DEFS):
        return None
    return unescape(reference[len(_DEFS) :].partition("/")[0])


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


def without_annotations(schema: Any) -> Any:
    """Give what a schema demands, without what it tells."""

    def bare(here: FrozenDict) -> FrozenDict:
        if here.keys().isdisjoint(ANNOTATIONS):
            return here
        return frozen_dict({key: value for key, value in here.items() if key not in ANNOTATIONS})

    return mapped(schema, bare)

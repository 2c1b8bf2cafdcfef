"""Schemas as interned frozen objects, and what a schema must be before it is one of them.

Equal schemas, key order included, are one object, so that "the same schema" is `is`, and what is known of a schema is
kept with it: that it was checked, how it validates, its parts, what it is a subschema of.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import count
from json import JSONEncoder
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves.frozen import CONTAINERS, FrozenDict, Json, fill, frozen, frozen_dict, is_object, thaw
from synmod.leaves.names import pointer

from .engine import IsValid, MalformedSchemaError, compiled, matcher
from .subschemas import ANNOTATIONS, IN_PLACE, Step, definition_of, references, subschemas, target_of, unescape

Root: TypeAlias = Literal["object", "any"]
"""What must stand at the root: an object, as in a data model, or anything, as in a Variable."""

MAX_NESTED: Final = 50
"""How many subschemas may stand inside one another, and be applied to one value through one another."""

MAX_SUBSCHEMAS: Final = 10_000
"""How many subschemas a schema may have."""

MAX_AT_ONE_PLACE: Final = 1_000
"""Against how many subschemas one value may be checked, references and combinations expanded."""

MAX_VALUE_DEPTH: Final = 100
"""How deep a value of a recursive schema may nest: validators recurse, and would exhaust the stack of a thread."""

_MAX_NESTING: Final = 200
"""How deep the JSON of a schema may nest: two levels for each of 50 subschemas, and an example at the bottom."""


class Schema(FrozenDict):
    """A JSON Schema, frozen and interned; made by `schema_from` and `trusted_schema`.

    Attributes:
        serial: A number that no other schema ever has, unlike an id.
        checked: Whether it is known to be well formed, closed and within the limits.
        validator: Its compiled form, once somebody needed it (`validator_of`).
        parts: What merging works on, once somebody needed it (`parts_of`).
        known: Answers about this schema and others, by question and serial of the other.
    """

    __slots__ = ("checked", "known", "parts", "serial", "validator")

    serial: int
    checked: bool
    validator: IsValid | None
    parts: Any
    known: dict[tuple[str, int], bool]

    def __reduce__(self) -> tuple[Any, ...]:
        return trusted_schema, (thaw(self),)


_ENCODER: Final = JSONEncoder(ensure_ascii=False)  # may write NaN, which frozen JSON never is

_interned: WeakValueDictionary[str, Schema] = WeakValueDictionary()
_recent: deque[Schema] = deque(maxlen=256)  # so that the schema of a dict, and what is known of it, is found again
_interning = threading.RLock()  # reentrant: a finaliser may run while it is held
_serials = count()


def schema_from(json: Json, *, root: Root = "object") -> Schema:
    """Check a schema from outside, whatever it came from, and intern it.

    Args:
        json: A JSON Schema, read as 2020-12, or True for anything.
        root: "object" demands an object at the root, as a data model needs it.

    Returns:
        The one `Schema` of that content, without `$schema` and `$id`; a root `$ref` to an object is resolved one step.

    Raises:
        SchemaError: It is not a schema, is not closed, uses keywords of older drafts, or has no object at its root.
            Names the pointer.
        SchemaTooComplex: It is over the limits of complexity. Names the pointer and the limit.
        DataError: It is not JSON.

    Example:
        >>> schema_from({"type": "object", "properties": {"a": {"type": "integer"}}})
        {'type': 'object', 'properties': {'a': {'type': 'integer'}}}

    Source: jsonschema's `check_schema`; differs: closed, bounded, once for each schema.
    """
    if isinstance(json, Schema) and json.checked:
        schema = json
    else:
        written = _frozen_schema(json)
        schema = _interned.get(_text_of(written)) or _intern(_without_names(written))
        if not schema.checked:
            _check(schema)
    schema = _with_resolved_root(schema)
    if root == "object" and not _is_of_objects(schema):
        raise SchemaError(
            f"The schema of a data model has an object at its root ('type': 'object', or 'properties'), "
            f"not {schema.get('type') or 'a schema of another kind'}: put it under a key of an object."
        )
    return schema


def trusted_schema(json: Json) -> Schema:
    """Intern a schema that needs no check: a result of the algebra, or of another `Schema`.

    Raises:
        SchemaError: It is neither an object nor True.
    """
    return json if isinstance(json, Schema) else _intern(_frozen_schema(json))


def validator_of(schema: Schema) -> IsValid:
    """Return the compiled form of a schema; it is compiled once."""
    if schema.validator is None:
        schema.validator = _guarded(schema, compiled(thaw(schema)))
    return schema.validator


def at(steps: tuple[Step, ...]) -> str:
    """Name a place in a schema by its JSON Pointer."""
    return f"Schema at {pointer(steps) or 'its root'}"


def _frozen_schema(json: Json) -> FrozenDict:
    """Freeze the JSON of a schema; True becomes the object that demands nothing."""
    if json is True:
        return frozen_dict({})
    if json is False:
        raise SchemaError("The schema False admits no value: write what is allowed.")
    if not is_object(json):
        raise SchemaError(f"A schema is an object or True, not a value of type {type(json).__name__}.")
    try:
        return frozen(json, _MAX_NESTING, SchemaTooComplex)
    except SchemaTooComplex as error:
        raise SchemaTooComplex(f"{error} A schema has at most {MAX_NESTED} subschemas inside one another.") from None


def _without_names(schema: FrozenDict) -> FrozenDict:
    """Take off what names the draft and the document: references inside the schema do not need them."""
    kept = {key: value for key, value in schema.items() if not (key in _NAMES and type(value) is str)}
    return schema if len(kept) == len(schema) else frozen_dict(kept)


_NAMES: Final = ("$schema", "$id", "id")


def _text_of(written: FrozenDict) -> str:
    """Return the text that is equal for equal schemas only: kinds of numbers and the order of keys count."""
    return _ENCODER.encode(written)


def _intern(written: FrozenDict) -> Schema:
    """Return the one object of this content."""
    text = _text_of(written)
    with _interning:
        schema = _interned.get(text)
        if schema is None:
            schema = Schema.__new__(Schema)
            fill(schema, written)
            schema.serial = next(_serials)
            schema.checked = False
            schema.validator = schema.parts = None
            schema.known = {}
            _interned[text] = schema
            _recent.append(schema)
        return schema


def _with_resolved_root(schema: Schema) -> Schema:
    """Resolve a bare `$ref` at the root one step, where it names an object: recursive models are written that way."""
    if "$ref" not in schema or not schema.keys() <= _BARE_REFERENCE:
        return schema
    target = target_of(schema, schema["$ref"])
    if not is_object(target) or "$ref" in target or not _is_of_objects(target):
        return schema
    resolved = trusted_schema(frozen_dict({**{key: schema[key] for key in schema if key != "$ref"}, **target}))
    resolved.checked = True
    return resolved


def _is_of_objects(schema: Mapping[str, Any]) -> bool:
    return schema.get("type", "object" if "properties" in schema else None) == "object"


def _check(schema: Schema) -> None:
    """Check what does not depend on where a schema is used, and compile it.

    Raises:
        SchemaError: It is malformed, not closed, or written for an older draft.
        SchemaTooComplex: It is over a limit.
    """
    positions = _positions(schema)
    for steps, part in positions:
        for pattern_steps, pattern in _patterns(part):
            try:
                matcher(pattern)
            except MalformedSchemaError:
                raise SchemaError(
                    f"{at((*steps, *pattern_steps))}: the pattern {pattern!r:.200} does not compile: patterns run in "
                    "a linear-time engine, which has no look-around, no backreferences and a limit of size."
                ) from None
    _check_expansion(schema, positions)
    try:
        schema.validator = _guarded(schema, compiled(thaw(schema)))
    except MalformedSchemaError as error:
        hint = next((_HINTS[step] for step in error.steps[-1:] if step in _HINTS), "")
        raise SchemaError(f"{at(error.steps)}: {str(error)[:300]}{hint and f': {hint}'}.") from None
    schema.checked = True


_HINTS: Final[Mapping[Any, str]] = {
    "exclusiveMaximum": "the bound itself is written here today",
    "exclusiveMinimum": "the bound itself is written here today",
    "items": "a list of schemas is written 'prefixItems' today",
    "type": "write one or a list of array, boolean, integer, null, number, object, string",
}

_BARE_REFERENCE: Final = ANNOTATIONS | {"$ref", "$defs", "definitions"}

_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("$anchor", "$dynamicAnchor"), "name the place by its JSON Pointer instead: '#/$defs/name'"),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), "write a '$ref' to '#' or '#/...'"),
    "$id": "only the root may have one; references are '#' or '#/...'",
    "$schema": "only the root may name a draft",
    "$vocabulary": "schemas are of the standard vocabulary of 2020-12",
    "additionalItems": "write the list of 'items' as 'prefixItems', and 'additionalItems' as 'items'",
    "dependencies": "write 'dependentRequired' for lists of names, 'dependentSchemas' for schemas",
}


def _positions(root: Schema) -> list[tuple[tuple[Step, ...], Any]]:
    """List every subschema with the steps to it, the targets of references included.

    Raises:
        SchemaError: A keyword is refused, or a reference leads out of the schema or to nothing.
        SchemaTooComplex: There are too many subschemas, or too many inside one another.
    """
    found: list[tuple[tuple[Step, ...], Any]] = []
    seen: set[tuple[str, ...]] = set()
    pending: list[tuple[tuple[Step, ...], Any, int]] = [((), root, 0)]
    while pending:
        steps, schema, depth = pending.pop()
        place = tuple(map(str, steps))
        if place in seen:
            continue
        seen.add(place)
        found.append((steps, schema))
        if len(found) > MAX_SUBSCHEMAS + 1:
            raise SchemaTooComplex(f"{at(steps)}: the limit of {MAX_SUBSCHEMAS:,} subschemas is passed here.")
        if depth > MAX_NESTED:
            raise SchemaTooComplex(f"{at(steps)}: the limit of {MAX_NESTED} subschemas inside one another is passed.")
        if not is_object(schema):
            continue
        for keyword in _REFUSED.keys() & schema.keys():
            raise SchemaError(f"{at((*steps, keyword))}: {keyword!r} is not supported: {_REFUSED[keyword]}.")
        if isinstance(reference := schema.get("$ref"), str):
            pending.append((tuple(map(unescape, reference.split("/")[1:])), _target(root, reference, steps), 0))
        inside = [((*steps, *more), part, depth + 1) for more, part in subschemas(schema)]
        pending.extend(reversed(inside))
    return found


def _target(root: Schema, reference: str, steps: tuple[Step, ...]) -> Any:
    """Return what a reference names, which must be a schema."""
    where = at((*steps, "$ref"))
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaError(
            f"{where}: {reference!r:.200} leads out of the schema: put what it names under '$defs', "
            "and refer to it as '#/$defs/name'."
        )
    try:
        target = target_of(root, reference)
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None
    if not is_object(target) and type(target) is not bool:
        raise SchemaError(f"{where}: {reference!r:.200} names a value that is not a schema.")
    return target


def _patterns(schema: Any) -> list[tuple[tuple[Step, ...], str]]:
    """List the patterns of one schema with the steps to them."""
    if not is_object(schema):
        return []
    named: Any = schema.get("patternProperties")
    found: list[tuple[tuple[Step, ...], Any]] = [(("patternProperties", name), name) for name in named or ()]
    found.append((("pattern",), schema.get("pattern")))
    return [(steps, pattern) for steps, pattern in found if isinstance(pattern, str)]


def _check_expansion(root: Schema, positions: list[tuple[tuple[Step, ...], Any]]) -> None:
    """Count against how many subschemas a value is checked where each schema stands.

    Raises:
        SchemaError: A reference leads back to itself without a property or an item between.
        SchemaTooComplex: There are too many, or too many behind one another.
    """
    measured: dict[int, tuple[int, int] | None] = {}  # schemas in all, and behind one another; None while under way

    def measure(schema: Any, steps: tuple[Step, ...], behind: int) -> tuple[int, int]:
        if not is_object(schema):
            return 1, 0
        if id(schema) in measured:
            known = measured[id(schema)]
            if known is None:
                raise SchemaError(
                    f"{at(steps)}: a reference leads back here with no property or item between: "
                    "let the cycle pass through 'properties', 'items' or 'additionalProperties'."
                )
            return known
        measured[id(schema)] = None
        parts = [((*steps, *more), part) for more, part in subschemas(schema) if more[0] in IN_PLACE]
        if isinstance(reference := schema.get("$ref"), str):
            parts.append((steps, target_of(root, reference)))
        inner = [measure(part, place, behind + 1) for place, part in parts] if behind <= MAX_NESTED else [(0, behind)]
        total, height = 1 + sum(size for size, _ in inner), 1 + max((height for _, height in inner), default=0)
        if total > MAX_AT_ONE_PLACE:
            raise SchemaTooComplex(
                f"{at(steps)}: a value here is checked against more than the limit of "
                f"{MAX_AT_ONE_PLACE:,} subschemas, references and combinations expanded."
            )
        if height > MAX_NESTED + 1:
            raise SchemaTooComplex(f"{at(steps)}: the limit of {MAX_NESTED} subschemas behind one another is passed.")
        measured[id(schema)] = total, height
        return total, height

    for steps, schema in positions:
        measure(schema, steps, 0)


def _guarded(schema: Schema, is_valid: IsValid) -> IsValid:
    """Make values of unbounded depth invalid where the validator would follow them: in recursive schemas."""
    if not _is_recursive(schema):
        return is_valid
    return lambda json: not nests_too_deep(json) and is_valid(json)


def _is_recursive(schema: Schema) -> bool:
    """Whether a definition refers to itself, or a reference leads elsewhere than to a definition."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    targets = {name: set(map(definition_of, references(part))) for name, part in definitions.items()}
    outside = references({key: value for key, value in schema.items() if key != "$defs"})
    if None in {name for names in (*targets.values(), set(map(definition_of, outside))) for name in names}:
        return True
    try:
        TopologicalSorter(targets).prepare()
    except CycleError:
        return True
    return False


def nests_too_deep(json: Json) -> bool:
    """Whether a value nests deeper than validators may follow."""
    level: list[Any] = [json] if isinstance(json, CONTAINERS) else []
    for _ in range(MAX_VALUE_DEPTH + 1):
        inside = [container.values() if is_object(container) else container for container in level]
        level = [part for parts in inside for part in parts if isinstance(part, CONTAINERS)]
        if not level:
            return False
    return True

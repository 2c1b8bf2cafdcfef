"""The checks of a schema before it is used: well formed, closed and within the limits of complexity."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves import Json, frozen_dict, is_object, pointer

from . import schema as schemas
from .schema import Schema, is_foreign, steps_of, subschemas, target_of
from .validators import MalformedSchemaError, matcher, validator_of

Root: TypeAlias = Literal["object", "any"]
"""What the root must be: an object, as in a data model, or anything, as in a Variable."""

Steps: TypeAlias = tuple[str | int, ...]
"""The steps to a place in a schema."""

MAX_NESTED: Final = 50
"""How deep subschemas may nest."""

MAX_SUBSCHEMAS: Final = 10_000
"""How many subschemas a schema may have."""

MAX_AT_ONE_PLACE: Final = 1_000
"""How many subschemas one value may be checked against, references and combinations expanded."""

# -- checked schemas ---------------------------------------------------------------------------------------------------


def schema_from(json: Json, *, root: Root = "object") -> Schema:
    """Check a schema from outside, and intern it.

    Args:
        json: A JSON Schema, read as 2020-12, or True for anything.
        root: "object" demands an object at the root, as a data model does.

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
    if is_foreign(json):
        return json
    if is_object(json) and not _NAMES.isdisjoint(json):  # references inside the schema do not need them
        json = {key: value for key, value in json.items() if not (key in _NAMES and type(value) is str)}
    schema = schemas.intern_schema(json)
    if not schema.checked:
        _check(schema)
        own = schemas.with_own_definitions(schema)
        schema.checked = own is schema  # one that was rewritten is rewritten each time
        schema, own.checked = own, True
    schema = _with_resolved_root(schema)
    if root == "object" and not _is_of_objects(schema):
        raise SchemaError(
            f"The schema of a data model must have an object at its root ('type': 'object', or 'properties'), "
            f"not {schema.get('type') or 'a schema of another kind'}: put it under a key of an object."
        )
    return schema


_NAMES: Final = frozenset({"$schema", "$id", "id"})
"""The keywords that name the draft and the document."""


def _at(steps: Steps) -> str:
    """Return the name of a place in a schema: its JSON Pointer."""
    return f"Schema at {pointer(steps) or 'its root'}"


def _with_resolved_root(schema: Schema) -> Schema:
    """Resolve a bare `$ref` at the root one step, where it names an object: recursive models are written that way."""
    if "$ref" not in schema or not schema.keys() <= schemas.NO_DEMANDS | {"$ref"}:
        return schema
    target = target_of(schema, schema["$ref"])
    if not is_object(target) or "$ref" in target or not _is_of_objects(target):
        return schema
    resolved = schemas.intern_schema(frozen_dict({**{key: schema[key] for key in schema if key != "$ref"}, **target}))
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
    _check_expansion(schema, _positions(schema))
    try:
        validator_of(schema)
    except MalformedSchemaError as error:
        hint = next((_HINTS[step] for step in error.steps[-1:] if step in _HINTS), "")
        raise SchemaError(f"{_at(error.steps)}: {str(error)[:300]}{hint and f': {hint}'}.") from None
    schema.checked = True


_HINTS: Final[Mapping[Any, str]] = {
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), "write the bound itself here"),
    "items": "write a list of schemas as 'prefixItems'",
    "type": "write one or a list of array, boolean, integer, null, number, object, string",
}

_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("$anchor", "$dynamicAnchor"), "name the place by its JSON Pointer instead: '#/$defs/name'"),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), "write a '$ref' to '#' or '#/...'"),
    "$id": "only the root may have one; references are '#' or '#/...'",
    "$schema": "only the root may name a draft",
    "$vocabulary": "schemas use the standard vocabulary of 2020-12",
    "additionalItems": "write the list of 'items' as 'prefixItems', and 'additionalItems' as 'items'",
    "dependencies": "write 'dependentRequired' for lists of names, 'dependentSchemas' for schemas",
}


def _positions(root: Schema) -> list[tuple[Steps, Any]]:
    """List every subschema with the steps to it, the targets of references included.

    Raises:
        SchemaError: A keyword is refused, a pattern does not compile, or a reference has no target in the schema.
        SchemaTooComplex: There are too many subschemas, or they nest too deep.
    """
    positions: list[tuple[Steps, Any]] = []
    visited: set[tuple[str, ...]] = set()
    pending: list[tuple[Steps, Any, int]] = [((), root, 0)]
    while pending:
        steps, schema, depth = pending.pop()
        place = tuple(map(str, steps))
        if place in visited:
            continue
        visited.add(place)
        positions.append((steps, schema))
        if len(positions) > MAX_SUBSCHEMAS + 1:
            raise SchemaTooComplex(f"{_at(steps)}: the limit of {MAX_SUBSCHEMAS:,} subschemas is exceeded here.")
        if depth > MAX_NESTED:
            raise SchemaTooComplex(f"{_at(steps)}: the limit of {MAX_NESTED} nested subschemas is exceeded here.")
        if not is_object(schema):
            continue
        for keyword in _REFUSED.keys() & schema.keys():
            raise SchemaError(f"{_at((*steps, keyword))}: {keyword!r} is not supported: {_REFUSED[keyword]}.")
        _check_patterns(schema, steps)
        if isinstance(reference := schema.get("$ref"), str):
            pending.append((steps_of(reference), _target(root, reference, steps), 0))
        pending.extend(reversed([((*steps, *more), part, depth + 1) for more, part in subschemas(schema)]))
    return positions


def _target(root: Schema, reference: str, steps: Steps) -> Any:
    """Return the target of a reference, which must be a schema."""
    where = _at((*steps, "$ref"))
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaError(
            f"{where}: {reference!r:.200} leads out of the schema: put its target under '$defs', "
            "and refer to it as '#/$defs/name'."
        )
    try:
        target = target_of(root, reference)
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None
    if not is_object(target) and type(target) is not bool:
        raise SchemaError(f"{where}: {reference!r:.200} names a value that is not a schema.")
    return target


def _check_patterns(schema: Mapping[str, Any], steps: Steps) -> None:
    """Raise SchemaError for a pattern that the linear-time engine cannot run."""
    keys: Any = schema.get("patternProperties", ())
    for place, pattern in (("pattern",), schema.get("pattern")), *((("patternProperties", key), key) for key in keys):
        try:
            if isinstance(pattern, str):
                matcher(pattern)
        except MalformedSchemaError:
            raise SchemaError(
                f"{_at((*steps, *place))}: the pattern {pattern!r:.200} does not compile: patterns run in "
                "a linear-time engine, which has no look-around, no backreferences and a size limit."
            ) from None


def _check_expansion(root: Schema, positions: list[tuple[Steps, Any]]) -> None:
    """Count, at the place of each schema, the subschemas that a value is checked against.

    Raises:
        SchemaError: A reference leads back to itself without a property or an item between.
        SchemaTooComplex: There are too many, or a chain of them is too long.
    """
    measured: dict[int, int | None] = {}  # how many schemas in all; None while under way

    def measure(schema: Any, steps: Steps, depth: int) -> int:
        if not is_object(schema):
            return 1
        if id(schema) not in measured:
            if depth > MAX_NESTED:
                raise SchemaTooComplex(f"{_at(steps)}: the limit of {MAX_NESTED} subschemas in one chain is exceeded.")
            measured[id(schema)] = None
            parts = [((*steps, *more), part) for more, part in subschemas(schema) if more[0] in schemas.IN_PLACE]
            if isinstance(reference := schema.get("$ref"), str):
                parts.append((steps_of(reference), target_of(root, reference)))
            measured[id(schema)] = 1 + sum(measure(part, place, depth + 1) for place, part in parts)
        total = measured[id(schema)]
        if total is None:
            raise SchemaError(
                f"{_at(steps)}: a reference leads back here with no property or item between: "
                "let the cycle pass through 'properties', 'items' or 'additionalProperties'."
            )
        if total > MAX_AT_ONE_PLACE:
            raise SchemaTooComplex(
                f"{_at(steps)}: a value here is checked against more than the limit of "
                f"{MAX_AT_ONE_PLACE:,} subschemas, references and combinations expanded."
            )
        return total

    for steps, schema in positions:
        measure(schema, steps, 0)

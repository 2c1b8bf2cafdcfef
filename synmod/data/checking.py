"""The checks of a schema before it is used, and the libraries that validate: jsonschema-rs, else jsonschema.

The libraries only decide whether a value is valid; `validation.py` finds out why it is not, because the error lists of
both grow exponentially with nested alternatives. They are imported at the first check.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote

from pydantic_core import SchemaError as PatternError, SchemaValidator, core_schema

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves import CONTAINERS, Json, frozen_dict, is_object, pointer, thaw

from .schema import (
    IN_PLACE,
    NO_DEMANDS,
    IsValid,
    Schema,
    is_recursive,
    is_unchecked,
    steps_of,
    subschemas,
    target_of,
    trusted_schema,
    with_own_definitions,
)

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

MAX_VALUE_DEPTH: Final = 100
"""How deep a value of a recursive schema may nest: validators recurse, and would exhaust the stack of a thread."""

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
    if is_unchecked(json):
        return json
    if is_object(json) and not _NAMES.isdisjoint(json):  # references inside the schema do not need them
        json = {key: value for key, value in json.items() if not (key in _NAMES and type(value) is str)}
    schema = trusted_schema(json)
    if not schema.checked:
        _check(schema)
        own = with_own_definitions(schema)
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


def validator_of(schema: Schema) -> IsValid:
    """Return the compiled form of a schema; it is compiled once.

    For a recursive schema, values of unbounded depth are invalid: the validator would recurse into them.

    Raises:
        MalformedSchemaError: A keyword has an invalid value.
    """
    if schema.validator is None:
        is_valid = compiled(thaw(schema))
        if is_recursive(schema):
            schema.validator = lambda json: not nests_too_deep(json) and is_valid(json)
        else:
            schema.validator = is_valid
    return schema.validator


def _at(steps: Steps) -> str:
    """Return the name of a place in a schema: its JSON Pointer."""
    return f"Schema at {pointer(steps) or 'its root'}"


def _with_resolved_root(schema: Schema) -> Schema:
    """Resolve a bare `$ref` at the root one step, where it names an object: recursive models are written that way."""
    if "$ref" not in schema or not schema.keys() <= NO_DEMANDS | {"$ref"}:
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
    found: list[tuple[Steps, Any]] = []
    seen: set[tuple[str, ...]] = set()
    pending: list[tuple[Steps, Any, int]] = [((), root, 0)]
    while pending:
        steps, schema, depth = pending.pop()
        place = tuple(map(str, steps))
        if place in seen:
            continue
        seen.add(place)
        found.append((steps, schema))
        if len(found) > MAX_SUBSCHEMAS + 1:
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
    return found


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
    named: Any = schema.get("patternProperties", ())
    for place, pattern in (
        (("pattern",), schema.get("pattern")),
        *((("patternProperties", name), name) for name in named),
    ):
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
            parts = [((*steps, *more), part) for more, part in subschemas(schema) if more[0] in IN_PLACE]
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


def nests_too_deep(json: Json) -> bool:
    """Whether a value nests deeper than validators may follow."""
    level: list[Any] = [json] if isinstance(json, CONTAINERS) else []
    for _ in range(MAX_VALUE_DEPTH + 1):
        inside = [container.values() if is_object(container) else container for container in level]
        level = [part for parts in inside for part in parts if isinstance(part, CONTAINERS)]
        if not level:
            return False
    return True


# -- the libraries -----------------------------------------------------------------------------------------------------


class MalformedSchemaError(ValueError):
    """A keyword has an invalid value; `steps` lead to its place."""

    def __init__(self, steps: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.steps = steps


def compiled(schema: dict[str, Any]) -> IsValid:
    """Compile a plain schema of 2020-12: patterns run in linear time, and nothing is fetched.

    Raises:
        MalformedSchemaError: A keyword has an invalid value.
    """
    _quote_references(schema)
    try:
        import jsonschema_rs as library
    except ImportError:  # no wheel for this platform
        return _fallback().compiled(schema)
    as_written = deepcopy(schema)
    _read_as_unicode(schema)
    for each in (schema, as_written):  # as written where the Unicode classes are too large, and for its faults
        try:
            return library.Draft202012Validator(each, pattern_options=library.RegexOptions(), offline=True).is_valid
        except library.ValidationError as error:
            fault = MalformedSchemaError(tuple(error.instance_path), error.message)
    raise fault


_IN_FRAGMENTS: Final = "/~!$&'()*+,;=:@"


def _quote_references(root: dict[str, Any]) -> None:
    """Percent-encode the references of a plain schema: libraries read them as URIs, in which names have no spaces."""
    pending, seen = [root], set[int]()
    while pending:
        part = pending.pop()
        if not is_object(part) or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(reference := part.get("$ref"), str) and reference.startswith("#/"):
            pending.append(target_of(root, reference))
            part["$ref"] = f"#{quote(pointer(steps_of(reference)), safe=_IN_FRAGMENTS)}"
        pending += [below for _, below in subschemas(part)]


_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_CLASSES: Final = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}
_INSIDE_BRACKETS: Final = {**_CLASSES, r"\w": _WORD, r"\W": r"\W"}
_TOKEN: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)


def _read_as_unicode(schema: Any) -> None:
    r"""Let `\w` and `\d` in the patterns of a plain schema match every script, as in pydantic; else they are ASCII."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if is_object(part):
            if isinstance(pattern := part.get("pattern"), str):
                part["pattern"] = _in_unicode(pattern)
            if is_object(named := part.get("patternProperties")):
                part["patternProperties"] = {_in_unicode(pattern): named[pattern] for pattern in named}
            pending += [below for _, below in subschemas(part)]


def _in_unicode(pattern: str) -> str:
    r"""Return a pattern with Unicode classes in place of its `\w` and `\d`; none says `\W` inside brackets."""
    is_inside = False

    def written(token: re.Match[str]) -> str:
        nonlocal is_inside
        if token[0] in "[]":
            is_inside = token[0] == "["
        return (_INSIDE_BRACKETS if is_inside else _CLASSES).get(token[0], token[0])

    return _TOKEN.sub(written, pattern)


@lru_cache(maxsize=512)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern that is searched for anywhere in a text.

    Raises:
        MalformedSchemaError: It has a syntax error, look-around or a backreference, or is too large.
    """
    return compiled({"pattern": pattern})


@lru_cache(maxsize=1)
def _fallback() -> "_Fallback":
    return _Fallback()


class _Fallback:
    """The jsonschema package, with patterns in the engine of pydantic and each reference checked once per value.

    Otherwise nested repetitions and recursive alternatives would take exponential time. Only patterns of keys beside
    `unevaluatedProperties` still run in Python's engine.
    """

    def __init__(self) -> None:
        import jsonschema

        library: Any = jsonschema  # it is not typed
        self._standard = library.Draft202012Validator
        self._invalid = library.ValidationError
        overridden: dict[str, Any] = {
            "$ref": self._reference,
            "additionalProperties": self._additional_properties,
            "multipleOf": self._multiple_of,
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
        }
        self._validator = library.validators.extend(self._standard, overridden)
        self._verdicts: dict[tuple[str, int], bool] = {}  # for the current value, by reference and id of a part
        self._one_at_a_time = Lock()

    def compiled(self, schema: dict[str, Any]) -> IsValid:
        """Compile a schema."""
        from jsonschema.exceptions import SchemaError

        try:
            self._standard.check_schema(schema, format_checker=None)
        except SchemaError as error:
            raise MalformedSchemaError(tuple(error.absolute_path), error.message) from None
        except RecursionError:
            raise SchemaTooComplex("The schema nests too deep for the jsonschema package.") from None
        if "pattern" in schema:
            _engine(schema["pattern"])
        validator = self._validator(schema)

        def is_valid(json: Json) -> bool:
            with self._one_at_a_time:
                self._verdicts.clear()
                try:
                    return validator.is_valid(json)
                except RecursionError:
                    raise SchemaTooComplex("The value nests too deep for the jsonschema package.") from None

        return is_valid

    def _reference(self, validator: Any, reference: str, json: Any, schema: Any) -> Iterator[Any]:
        key = reference, id(json)
        if key not in self._verdicts:
            faults = self._standard.VALIDATORS["$ref"](validator, reference, json, schema)
            self._verdicts[key] = next(iter(faults), None) is None
        if not self._verdicts[key]:
            yield self._invalid(reference)

    def _multiple_of(self, _: Any, step: float, number: Any, __: Any) -> Iterator[Any]:
        """Divide decimally, as jsonschema-rs does: 0.3 is a multiple of 0.1."""
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if is_number and _decimal(number) % _decimal(step):
            yield self._invalid(step)

    def _pattern(self, _: Any, pattern: str, text: Any, __: Any) -> Iterator[Any]:
        if isinstance(text, str) and not _engine(pattern)(text):
            yield self._invalid(pattern)

    def _pattern_properties(self, validator: Any, parts: Mapping[str, Any], json: Any, _: Any) -> Iterator[Any]:
        for pattern, part in parts.items() if is_object(json) else ():
            for name in filter(_engine(pattern), json):
                yield from validator.descend(json[name], part)

    def _additional_properties(self, validator: Any, extra: Any, json: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        known: Any = schema.get("properties", ())
        patterns = [_engine(pattern) for pattern in schema.get("patternProperties", ())]
        for name in json if is_object(json) else ():
            if name not in known and not any(matches(name) for matches in patterns):
                yield from validator.descend(json[name], extra)


def _decimal(number: float) -> Fraction:
    """Return a number as it is written; a whole one exactly."""
    return Fraction(number) if number == number // 1 else Fraction(str(number))


@lru_cache(maxsize=512)
def _engine(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern with the linear-time engine that comes with pydantic."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except PatternError as error:
        raise MalformedSchemaError(("pattern",), str(error)) from None

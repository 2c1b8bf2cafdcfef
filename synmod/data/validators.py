"""Compiled schemas: jsonschema-rs decides whether a value is valid, or jsonschema where that has no wheel.

They only decide whether; `faults.py` finds out why not, because the error lists of both grow exponentially with nested
alternatives. Both are imported at the first check.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

from pydantic_core import SchemaError as PatternError, SchemaValidator, core_schema

from synmod.errors import SchemaTooComplex
from synmod.leaves import CONTAINERS, Json, is_object, pointer, thaw

from .schema import IsValid, Schema, is_recursive, steps_of, subschemas, target_of

MAX_VALUE_DEPTH: Final = 100
"""How deep a value of a recursive schema may nest: validators recurse, and would exhaust the stack of a thread."""


def validator_of(schema: Schema) -> IsValid:
    """Return the compiled form of a schema; it is compiled once.

    For a recursive schema, values of unbounded depth are invalid: the validator would recurse into them.

    Raises:
        MalformedSchemaError: A keyword has an invalid value.
    """
    if schema.validator is None:
        is_valid = compile_schema(thaw(schema))
        if is_recursive(schema):
            schema.validator = lambda json: not nests_too_deep(json) and is_valid(json)
        else:
            schema.validator = is_valid
    return schema.validator


def nests_too_deep(json: Json) -> bool:
    """Whether a value nests deeper than validators may follow."""
    level: list[Any] = [json] if isinstance(json, CONTAINERS) else []
    for _ in range(MAX_VALUE_DEPTH + 1):
        inside = [container.values() if is_object(container) else container for container in level]
        level = [part for parts in inside for part in parts if isinstance(part, CONTAINERS)]
        if not level:
            return False
    return True


class MalformedSchemaError(ValueError):
    """A keyword has an invalid value; `steps` lead to its place."""

    def __init__(self, steps: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.steps = steps


def compile_schema(schema: dict[str, Any]) -> IsValid:
    """Compile a plain schema of 2020-12: patterns run in linear time, and nothing is fetched.

    Raises:
        MalformedSchemaError: A keyword has an invalid value.
    """
    for part in _parts(schema):
        if isinstance(reference := part.get("$ref"), str) and reference.startswith("#/"):
            # libraries read it as a URI, in which names have no spaces
            part["$ref"] = f"#{quote(pointer(steps_of(reference)), safe=_IN_FRAGMENTS)}"
    try:
        import jsonschema_rs as library
    except ImportError:  # no wheel for this platform
        return _fallback().compile(schema)
    for plain in (_with_unicode_classes(schema), schema):  # as written where these are too large, and for its faults
        try:
            return library.Draft202012Validator(plain, pattern_options=library.RegexOptions(), offline=True).is_valid
        except library.ValidationError as error:
            fault = MalformedSchemaError(tuple(error.instance_path), error.message)
    raise fault


_IN_FRAGMENTS: Final = "/~!$&'()*+,;=:@"


def _parts(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each subschema of a plain schema once, the targets of references included."""
    pending, visited = [root], set[int]()
    while pending:
        part = pending.pop()
        if is_object(part) and id(part) not in visited:
            visited.add(id(part))
            if isinstance(reference := part.get("$ref"), str) and reference.startswith("#/"):
                pending.append(target_of(root, reference))
            pending += [subschema for _, subschema in subschemas(part)]
            yield part


_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_CLASSES: Final = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}
_INSIDE_BRACKETS: Final = {**_CLASSES, r"\w": _WORD, r"\W": r"\W"}  # there is no such class for `\W`
_TOKEN: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)


def _with_unicode_classes(schema: dict[str, Any]) -> dict[str, Any]:
    r"""Return a copy in which `\w` and `\d` in patterns match every script, as in pydantic; else they are ASCII."""
    copy = deepcopy(schema)
    for part in _parts(copy):
        if isinstance(pattern := part.get("pattern"), str):
            part["pattern"] = _in_unicode(pattern)
        if is_object(fields := part.get("patternProperties")):
            part["patternProperties"] = {_in_unicode(pattern): field for pattern, field in fields.items()}
    return copy


def _in_unicode(pattern: str) -> str:
    r"""Return a pattern with Unicode classes in place of its `\w` and `\d`."""
    is_inside = False

    def replace(token: re.Match[str]) -> str:
        nonlocal is_inside
        if token[0] in "[]":
            is_inside = token[0] == "["
        return (_INSIDE_BRACKETS if is_inside else _CLASSES).get(token[0], token[0])

    return _TOKEN.sub(replace, pattern)


@lru_cache(maxsize=512)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern that is searched for anywhere in a text.

    Raises:
        MalformedSchemaError: It has a syntax error, look-around or a backreference, or is too large.
    """
    return compile_schema({"pattern": pattern})


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

    def compile(self, schema: dict[str, Any]) -> IsValid:
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
        declared: Any = schema.get("properties", ())
        patterns = [_engine(pattern) for pattern in schema.get("patternProperties", ())]
        for name in json if is_object(json) else ():
            if name not in declared and not any(matches(name) for matches in patterns):
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

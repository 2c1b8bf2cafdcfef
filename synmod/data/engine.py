"""The one door to the libraries that validate JSON: jsonschema-rs, or jsonschema where that has no wheel.

Everything above asks only whether a value is valid; why it is not is found in `validation.py`, because the error lists
of both libraries grow exponentially with nested alternatives. The libraries are imported at the first check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias

from pydantic_core import SchemaError as PatternError, SchemaValidator, core_schema

from synmod.errors import SchemaTooComplex
from synmod.leaves.frozen import Json, is_object

IsValid: TypeAlias = Callable[[Json], bool]


class MalformedSchemaError(ValueError):
    """A keyword holds what it cannot hold; `steps` lead to the place."""

    def __init__(self, steps: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.steps = steps


def compiled(schema: dict[str, Any]) -> IsValid:
    """Compile a plain schema of 2020-12: patterns run in linear time, and nothing is fetched.

    Raises:
        MalformedSchemaError: A keyword holds what it cannot hold.
    """
    try:
        import jsonschema_rs as library
    except ImportError:  # no wheel for this platform
        return _fallback().compiled(schema)
    try:
        return library.Draft202012Validator(schema, pattern_options=library.RegexOptions(), offline=True).is_valid
    except library.ValidationError as error:
        raise MalformedSchemaError(tuple(error.instance_path), error.message) from None


@lru_cache(maxsize=512)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern that is searched for anywhere in a text.

    Raises:
        MalformedSchemaError: It has a syntax error, look-around or a backreference, or is too large.
    """
    return compiled({"pattern": pattern})


@lru_cache(maxsize=1)
def _fallback() -> _Fallback:
    return _Fallback()


class _Fallback:
    """The jsonschema package, with patterns in the engine of pydantic and each reference checked once per value.

    Else nested repetitions and recursive alternatives would take exponential time. Only patterns of keys beside
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
        self._verdicts: dict[tuple[str, int], bool] = {}  # of the value under way, by reference and id of a part
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
        if is_number and Fraction(str(number)) % Fraction(str(step)):
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


@lru_cache(maxsize=512)
def _engine(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern with the linear-time engine that pydantic carries."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except PatternError as error:
        raise MalformedSchemaError(("pattern",), str(error)) from None

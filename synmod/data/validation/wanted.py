"""What a schema wants, in words: for the errors that tell somebody what to write instead."""

from __future__ import annotations

from itertools import islice
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, Final

from synmod.data.schemas.keywords import ASSERTIONS
from synmod.leaves.frozen import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .check import Compiler

MAX_SHOWN: Final = 200
"""How many characters of a value an error shows."""

_ENCODER: Final = JSONEncoder(ensure_ascii=False)
_CHOICES: Final = 12


def shown(json: Any) -> str:
    """Write a value as JSON text, cut to 200 characters; of a large value no more is written than is shown."""
    text = ""
    if isinstance(json, str):
        text = _ENCODER.encode(json[:MAX_SHOWN])
        return text if len(json) <= MAX_SHOWN and len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    for chunk in _ENCODER.iterencode(json):
        text += chunk[: MAX_SHOWN + 1]
        if len(text) > MAX_SHOWN:
            return text[: MAX_SHOWN - 1] + "…"
    return text


def described(schema: Any, compiler: Compiler, *, within: int = 2) -> str:
    """Say what a schema wants, in a few words; alternatives are taken apart `within` levels."""
    schema = compiler.behind_references(schema)
    if not is_object(schema):
        return "anything" if schema else "nothing"
    for keyword in ("const", "enum", "type"):
        if keyword in schema:
            return wanted(keyword, schema, compiler)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and within:
            return _alternatives(schema[keyword], compiler, within - 1)
    return f"a value for {shown(schema)}" if ASSERTIONS & schema.keys() else "anything"


def wanted(keyword: str, schema: Mapping[str, Any], compiler: Compiler) -> str:
    """Say what one keyword of a schema wants."""
    value = schema[keyword]
    if keyword in _OF_KEYWORD:
        return _OF_KEYWORD[keyword](value)
    if keyword in ("anyOf", "oneOf"):
        return ("exactly one of: " if keyword == "oneOf" else "") + _alternatives(value, compiler, 2)
    if keyword == "not":
        return f"not {described(value, compiler)}"
    if keyword == "contains":
        least, most = schema.get("minContains", 1), schema.get("maxContains")
        many = f"at least {least}" if most is None else f"{least} to {most}"
        return f"{many} item(s) that are {described(value, compiler)}"
    return f"{keyword} {shown(value)}"


def _alternatives(arms: list[Any], compiler: Compiler, within: int) -> str:
    return _joined([described(arm, compiler, within=within) for arm in islice(arms, _CHOICES + 1)])


def _joined(texts: Iterable[str]) -> str:
    """Join alternatives, each once."""
    several = list(dict.fromkeys(texts))
    return " or ".join(several[:_CHOICES]) + (" or …" if len(several) > _CHOICES else "")


def _types(value: Any) -> str:
    return _joined(value if is_array(value) else (value,))


def _members(value: list[Any]) -> str:
    some = ", ".join(shown(member) for member in islice(value, _CHOICES))
    return f"one of {some}" + (", …" if len(value) > _CHOICES else "")


def _count(bound: str, unit: str) -> Callable[[Any], str]:
    return lambda value: f"{bound} {value} {unit}"


_OF_KEYWORD: Final[Mapping[str, Callable[[Any], str]]] = {
    "const": shown,
    "enum": _members,
    "exclusiveMaximum": lambda value: f"a number under {value}",
    "exclusiveMinimum": lambda value: f"a number over {value}",
    "maxItems": _count("at most", "items"),
    "maxLength": _count("at most", "characters"),
    "maxProperties": _count("at most", "keys"),
    "maximum": lambda value: f"a number of at most {value}",
    "minItems": _count("at least", "items"),
    "minLength": _count("at least", "characters"),
    "minProperties": _count("at least", "keys"),
    "minimum": lambda value: f"a number of at least {value}",
    "multipleOf": lambda value: f"a multiple of {value}",
    "pattern": lambda value: f"a text that matches {shown(value)}",
    "type": _types,
    "uniqueItems": lambda _: "items that all differ",
}

"""The text of a file: written one key per line, and read strictly within limits.

Two parsers must never see two documents in one text, and nothing beyond the limits is even parsed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from itertools import accumulate
from math import isfinite
from typing import Any, Final, NoReturn

from pydantic_core import PydanticSerializationError, to_json

from synmod.errors import ArgumentError, SaveError, SaveProblem
from synmod.leaves.frozen import Json

from .problems import malformed, shown

MAX_DIGITS: Final = 1_000
"""How many digits an int may have, as everywhere in synmod."""

_DEEPEST: Final = 200
"""The largest `max_depth`: what reads a document may recurse."""

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_HIDDEN = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of one `save` or `load`; a caller may raise them, a file cannot.

    Attributes:
        max_bytes: Size of the file.
        max_depth: Nesting of the whole document, at most 200; `[]` is 1.
        max_values: Number of JSON values: commas and opening brackets outside strings.

    Raises:
        ArgumentError: A limit is not a positive int, or `max_depth` is over 200.

    Example:
        >>> FileLimits(max_bytes=64 * 2**20).max_depth
        64

    Source: safetensors' header cap, SQLite's run-time limits.
    """

    max_bytes: int = 16 * 2**20
    max_depth: int = 64
    max_values: int = 250_000

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if type(limit) is not int or limit < 1:
                raise ArgumentError(f"FileLimits({field.name}={limit!r:.100}): wanted an int of at least 1.")
        if self.max_depth > _DEEPEST:
            raise ArgumentError(f"FileLimits(max_depth={self.max_depth}): wanted at most {_DEEPEST}.")


DEFAULT_LIMITS = FileLimits()
"""What holds without an argument."""


def limits_or_default(limits: FileLimits | None) -> FileLimits:
    """Return the limits that hold.

    Raises:
        ArgumentError: It is something else.
    """
    if limits is None:
        return DEFAULT_LIMITS
    if not isinstance(limits, FileLimits):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
        raise ArgumentError(f"limits is a {type(limits).__name__}, wanted sm.FileLimits(...).")
    return limits


def write_json(document: Json, limits: FileLimits) -> str:
    """Return the text of a document, with a line feed at the end.

    Raises:
        SaveError: It would be beyond a limit, so that a load would refuse it.
    """
    try:
        data = to_json(document, indent=2)
    except PydanticSerializationError:  # its writer recurses, to about 250 levels
        found = {"max_depth": (_DEEPEST + 1, limits.max_depth)}
        raise _too_large(found) from None
    values, depth = _measure(data)
    found = {
        "max_bytes": (len(data) + 1, limits.max_bytes),
        "max_depth": (depth, limits.max_depth),
        "max_values": (values, limits.max_values),
    }
    found = {name: pair for name, pair in found.items() if pair[0] > pair[1]}
    if found:
        raise _too_large(found)
    text = data.decode()
    return (text if text.isascii() else _HIDDEN.sub(_escaped, text)) + "\n"


def _too_large(found: dict[str, tuple[int, int]]) -> SaveError:
    """Return the error that names each limit that a file would pass."""
    problems = [
        SaveProblem(
            "",
            f"{name} is {most:,}, the file has {size:,}: {size - most:,} too many",
            f"pass limits=sm.FileLimits({name}={size}) to save and to load, or keep large data outside the program",
        )
        for name, (size, most) in found.items()
    ]
    text = "; ".join(f"{problem.what}: {problem.remedy}" for problem in problems)
    return SaveError(f"The file would be too large: {text}", problems)


def _escaped(found: re.Match[str]) -> str:
    """Return a character that a diff would hide or misplace as its escape."""
    return f"\\u{ord(found.group()):04x}"


def _measure(data: bytes) -> tuple[int, int]:
    """Return the number of JSON values, never too small, and the depth, exact for a text that is JSON."""
    outside = _STRINGS.sub(b"", data)
    values = 1 + outside.count(b",") + outside.count(b"[") + outside.count(b"{")
    brackets = outside.translate(None, _NO_BRACKETS)
    return values, max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def read_json(data: bytes, limits: FileLimits) -> Json:
    """Return the document of a text; what is beyond a limit is not parsed.

    Raises:
        FormatError: It is not a JSON text, is beyond a limit, or another parser could read it otherwise: a byte order
            mark, a duplicate key, NaN or infinity, a number that overflows, an int over 1,000 digits, a lone surrogate.
    """
    if len(data) > limits.max_bytes:
        raise _beyond("bytes", len(data), "max_bytes", limits.max_bytes)
    values, depth = _measure(data)
    if values > limits.max_values:
        raise _beyond("JSON values", values, "max_values", limits.max_values)
    if depth > limits.max_depth:
        raise _beyond("levels of nesting", depth, "max_depth", limits.max_depth)
    try:
        text = data.decode()
        document = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
        )
        if _SURROGATE.search(data):
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise malformed((), f"not UTF-8 at byte {error.start}.") from None
    except UnicodeEncodeError:
        raise malformed((), "a lone surrogate in a string: no UTF-8 file can hold it.") from None
    except json.JSONDecodeError as error:
        raise malformed((), f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise malformed((), f"nested over {_DEEPEST} levels, or loaded from a stack that is almost full.") from None
    return document


def encoded(text: str) -> bytes:
    """Return the UTF-8 of a text.

    Raises:
        FormatError: It has a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise malformed((), f"a lone surrogate at character {error.start}: this is not Unicode text.") from None


def _beyond(what: str, size: int, name: str, most: int) -> Exception:
    """Return the error of a text that is beyond a limit."""
    return malformed((), f"{size:,} {what}, and {name} is {most:,}: limits=sm.FileLimits({name}=...) raises it.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of two equal keys two parsers would keep different ones."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise malformed((), f"the key {shown(key)} stands twice in one object.")
            seen.add(key)
    return made


def _no_constant(word: str) -> NoReturn:
    """Raise for what Python's parser takes beyond JSON."""
    raise malformed((), f"{word} is not JSON.")


def _finite(digits: str) -> float:
    """Return a number that does not overflow."""
    number = float(digits)
    if not isfinite(number):
        raise malformed((), f"the number {digits[:40]} overflows.")
    return number


def _short(digits: str) -> int:
    """Return an int, which is not too long to be converted."""
    if len(digits) > MAX_DIGITS and len(digits.lstrip("-")) > MAX_DIGITS:
        raise malformed((), f"an int of over {MAX_DIGITS:,} digits.")
    return int(digits)

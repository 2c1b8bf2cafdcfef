"""The strict parser of documents: every way in which two readers could see two documents is refused."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from synmod.saving.text.deep import parse_deep
from synmod.saving.text.faults import malformed, shown
from synmod.saving.text.footprint import footprint, room, values_for
from synmod.saving.text.scan import measure

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.saving.text.limits import FileLimits
    from synmod.saving.text.scan import Measures

__all__ = ["parse_document"]

MAX_DIGITS = 1_000
"""How many digits an int may have, as everywhere in synmod."""

_NUMBERS = bytes(48 if byte in b"0123456789" else 101 if byte in b"eE" else 32 for byte in range(256))
_LONG_NUMBER = b"0" * (MAX_DIGITS + 1)
_LARGE_NUMBERS = (b"e000", b"0" * 100)  # without any of these no number of a text overflows
_BOM = b"\xef\xbb\xbf"
_SHALLOW = 200
"""How deep Python's own parser may recurse, whatever stack the caller stands on."""


def parse_document(data: bytes, limits: FileLimits) -> tuple[Json, int, int]:
    """Measure, then parse, a JSON text.

    Returns:
        The document, how deep it nests, and how many JSON values it has.

    Raises:
        FormatError: It is no JSON text, or beyond a limit, or one that would take too much memory, or one that another
            parser would read otherwise: a BOM, a duplicate key, NaN or infinity, a number that overflows, an int over
            1,000 digits, a lone surrogate.
    """
    if len(data) > limits.max_bytes:
        raise malformed((), f"over {limits.max_bytes:,} bytes: that is max_bytes; limits=FileLimits(...) raises it.")
    if data.startswith(_BOM):
        raise malformed((), "begins with a byte order mark: save it as UTF-8 without BOM.")
    measures = measure(data, limits.max_values)
    if measures.values > limits.max_values:
        raise malformed(
            (),
            f"{measures.values:,} JSON values, and max_values is {limits.max_values:,}: "
            "limits=FileLimits(max_values=...) raises it.",
        )
    if not measures.balanced:
        raise malformed((), "not JSON: its brackets do not match (cut off?).")
    if measures.depth > limits.max_depth:
        raise malformed(
            (),
            f"nested {measures.depth:,} deep, and max_depth is {limits.max_depth:,}: "
            "limits=FileLimits(max_depth=...) raises it.",
        )
    needed, allowed = footprint(measures, len(data)), room(limits, len(data))
    if needed > allowed:
        raise malformed(
            (),
            f"{measures.objects:,} objects and {measures.arrays:,} arrays would take some {needed >> 20:,} MiB in "
            f"memory, and a file of this size may take {allowed >> 20:,} MiB: "
            f"limits=FileLimits(max_values={values_for(needed, len(data))}) makes room.",
        )
    return _parse(data, measures), measures.depth, measures.values


def encoded(text: str) -> bytes:
    """UTF-8 of a text that was handed in.

    Raises:
        FormatError: It has a lone surrogate, so it is no Unicode text.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise malformed((), f"a lone surrogate at character {error.start}: this is no Unicode text.") from None


def _parse(data: bytes, measures: Measures) -> Json:
    """Decode and parse what has been measured."""
    shapes = data.translate(_NUMBERS, b"+")
    large_number = any(shape in shapes for shape in _LARGE_NUMBERS)
    long_number = _LONG_NUMBER in shapes
    del shapes
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise malformed((), f"not UTF-8 at byte {error.start}.") from None
    numbers: dict[str, Any] = {
        "parse_constant": _no_constant,
        "parse_float": _finite if large_number else float,
        "parse_int": _short if long_number else None,
    }
    try:
        if measures.depth > _SHALLOW:
            return parse_deep(text, object_pairs_hook=_unique, **numbers)
        kept = _KeyCount()
        parsed = json.loads(text, object_hook=kept.count, **numbers)
        return parsed if kept.keys == measures.keys else json.loads(text, object_pairs_hook=_unique, **numbers)
    except json.JSONDecodeError as error:
        raise malformed((), f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None


class _KeyCount:
    """Counts the keys of the objects that were made: fewer than the text has, and a key stands twice somewhere.

    Cheaper than `_unique`, which makes a tuple of every entry before there is an object.
    """

    def __init__(self) -> None:
        self.keys = 0

    def count(self, made: dict[str, Any]) -> dict[str, Any]:
        """Count the keys of an object, and hand it on."""
        self.keys += len(made)
        return made


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; of two equal keys two parsers would keep different ones."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise malformed((), f"the key {shown(key)} stands twice in one object.")
            seen.add(key)
    return made


def _no_constant(word: str) -> NoReturn:
    """Refuse what Python's parser takes beyond JSON."""
    raise malformed((), f"{word} is not JSON.")


def _finite(digits: str) -> float:
    """Refuse a number that overflows."""
    number = float(digits)
    if not isfinite(number):
        raise malformed((), f"the number {digits[:40]} overflows.")
    return number


def _short(digits: str) -> int:
    """Refuse an int that is too long to be JSON of ours, before it is converted."""
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise malformed((), f"an int of over {MAX_DIGITS:,} digits.")
    return int(digits)

"""Measures of a JSON text before it is parsed: its depth, and how many values of which kind, at the price of copies.

Only C-speed operations on the whole text, block by block; parsing first and counting later would cost twenty times
the file.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

__all__ = ["Measures", "measure"]

_BLOCK = 1 << 20
_KEPT = b'[]{},:"'
_SPACE = b" \t\n\r"
_SCALAR = 48  # ord("0"): stands for whatever a scalar is written with
_OUTLINE = bytes(byte if byte in _KEPT else _SCALAR for byte in range(256))
_BRACKETS = bytes(1 if byte in b"[{" else 0 for byte in range(256))
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = (-1, 1)


class Measures(NamedTuple):
    """What the brackets, commas and colons outside strings say; exact for every text that is JSON.

    Objects and arrays are those that hold something; a container without anything is one of the empties.
    """

    depth: int
    values: int
    balanced: bool
    objects: int = 0
    arrays: int = 0
    empties: int = 0
    keys: int = 0


def measure(data: bytes, max_values: int) -> Measures:
    """Measure a JSON text; the depth of one with too many values is not sought.

    For a text that is no JSON the numbers are only plausible: the parser refuses it afterwards.
    """
    plain = _without_escapes(data)
    texts = plain.count(b'"') // 2
    if texts > 2 * max_values:  # each text is a value, or the key of one
        return Measures(0, (texts + 1) // 2, balanced=True)
    outside = _outside_strings(plain)
    objects, arrays = outside.count(b"{"), outside.count(b"[")
    opened = objects + arrays
    empty_objects, empty_arrays = outside.count(b"{}"), outside.count(b"[]")
    empties = empty_objects + empty_arrays
    values = max(1 + outside.count(b",") + opened - empties, opened)
    if opened != outside.count(b"]") + outside.count(b"}"):
        return Measures(0, values, balanced=False)
    if values > max_values:
        return Measures(0, values, balanced=True)
    brackets = outside.translate(_BRACKETS, _NO_BRACKETS)
    depths = accumulate(map(_STEPS.__getitem__, brackets))
    deepest = max(depths, default=0)
    return Measures(deepest, values, True, objects - empty_objects, arrays - empty_arrays, empties, outside.count(b":"))


def _without_escapes(data: bytes) -> bytes:
    """Take out what could be taken for the end of a text: backslash pairs, then quotes after a single backslash."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data


def _outside_strings(plain: bytes) -> bytes:
    """Leave brackets, commas and colons outside strings, and a mark where a scalar is."""
    outline = plain.translate(_OUTLINE, _SPACE)
    parts: list[bytes] = []
    inside = 0
    for start in range(0, len(outline), _BLOCK):
        pieces = outline[start : start + _BLOCK].split(b'"')
        parts.append((b"0" if inside else b"") + b"0".join(pieces[inside::2]))
        inside = (inside + len(pieces) - 1) % 2
    return b"".join(parts)

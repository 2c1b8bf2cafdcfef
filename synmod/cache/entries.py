"""An entry: JSON that was remembered, when it was made, and how much room it takes."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, NamedTuple

from synmod.leaves.frozen import FrozenDict, Json, frozen

_DEEPEST: Final = 300
"""How deep an entry may nest: a schema has at most 200 levels, a value 50, and both stand a little below the top."""

_ROUND_IT: Final = 256
"""Bytes that an entry takes beside its text: the key, here and in an index, digest, times, and slack of a page."""

_read: Final = json.JSONDecoder().raw_decode  # half of what `decode` takes, which looks for white space too
_text: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class Entry(NamedTuple):
    """Something remembered.

    Attributes:
        value: A frozen JSON object.
        made: When, in seconds since 1970.
        size: The bytes that it counts for.
    """

    value: FrozenDict
    made: float
    size: int


def entry_of(value: Json, made: float) -> tuple[Entry, str]:
    """Make an entry of a JSON object, and give its text too.

    Raises:
        DataError: Something in it is no JSON.
    """
    content = frozen(value, _DEEPEST)
    text = _text(content)
    return Entry(content, made, len(text.encode()) + _ROUND_IT), text


def digest_of(key: str, made_us: int, body: bytes) -> bytes:
    """Give the digest of a row: whatever of it is damaged, it no longer fits."""
    return hashlib.sha256(f"{key} {made_us} ".encode() + body).digest()


def entry_from(key: str, row: tuple[Any, ...]) -> Entry | None:
    """Read a row of a file; None where it is not what was written. Hot."""
    body, digest, made_us = row
    if type(body) is not bytes or type(made_us) is not int or digest != digest_of(key, made_us, body):
        return None
    value = frozen(_read(body.decode())[0], _DEEPEST)
    return Entry(value, made_us / 1e6, len(body) + _ROUND_IT)

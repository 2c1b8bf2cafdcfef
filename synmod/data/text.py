"""JSON as text: the one reader of foreign JSON, and the writer."""

from __future__ import annotations

import json as _json
from typing import Any, Final

from synmod.errors import ArgumentError, DataError
from synmod.leaves.frozen import MAX_DEPTH, MAX_DIGITS, Json, frozen

__all__ = ["dump_json", "parse_frozen", "parse_json"]


def parse_json(text: str | bytes) -> Json:
    """Return the JSON of a text from elsewhere, read strictly.

    Args:
        text: A str, or bytes in UTF-8.

    Returns:
        The value, in plain dicts and lists.

    Raises:
        DataError: It is not JSON, or not JSON that can be kept: NaN, a number that overflows, an int over 1,000 digits,
            half a surrogate pair, a key twice in an object, nesting over 50, trailing text, a byte order mark. Names
            line and column where the syntax is wrong, else the pointer or the key.
        ArgumentError: It is neither str nor bytes.

    Example:
        >>> parse_json('{"a": [1, 2.0]}')
        {'a': [1, 2.0]}

    Source: Python's `json.loads`; differs: nothing is repaired, and deep input is not a RecursionError.
    """
    return _read(text)[0]


def parse_frozen(text: str | bytes) -> Json:
    """Return the JSON of a text as `parse_json` does, frozen.

    Raises:
        DataError, ArgumentError: As `parse_json`.
    """
    return _read(text)[1]


def _read(text: str | bytes) -> tuple[Json, Json]:
    """Return the value, plain and frozen."""
    try:
        json = _DECODER.decode(_decoded(text))
    except _json.JSONDecodeError as error:
        what = "text after the JSON value" if error.msg == "Extra data" else error.msg
        raise DataError(f"line {error.lineno} column {error.colno}: not JSON: {what}.") from None
    except RecursionError:
        raise DataError(f"The text nests over {MAX_DEPTH} levels, which is not JSON here.") from None
    except DataError:
        raise
    except ValueError:  # Python does not read an int of that length
        raise DataError(f"An int has over {MAX_DIGITS:,} digits, which is the limit: write a string.") from None
    return json, frozen(json)


def dump_json(json: Json, indent: int | None = None) -> str:
    """Return JSON as text; every character that can be shown is written as it is.

    Args:
        json: A JSON value, plain or frozen, or a data model.
        indent: Spaces for each level; None for one line.

    Returns:
        The text, from which `parse_json` reads the same value.

    Raises:
        DataError: It is not a JSON value.

    Example:
        >>> dump_json({"a": "é"})
        '{"a": "é"}'

    Source: Python's `json.dumps`; differs: `ensure_ascii=False`, and nothing is converted.
    """
    json = frozen(json)
    return _ENCODER.encode(json) if indent is None else _json.dumps(json, ensure_ascii=False, indent=indent)


def _decoded(text: str | bytes) -> str:
    """Return the characters; strict UTF-8 without a byte order mark."""
    if isinstance(text, bytes | bytearray):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            before = bytes(text[: error.start]).decode()
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise DataError(
                f"line {line} column {column}: not JSON: the bytes are not UTF-8 ({error.reason})."
            ) from None
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (callers may be untyped)
        raise ArgumentError(f"JSON is read from a str or from bytes, not from a value of type {type(text).__name__}.")
    if text.startswith("\ufeff"):
        raise DataError("line 1 column 1: not JSON: a byte order mark (BOM); leave it out.")
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise DataError(f"The key {twice!r:.100} stands twice in one object: write each key once.")
    return made


# Kept, since the library makes new ones at each call that does not want its defaults. NaN is refused in freezing.
_DECODER: Final = _json.JSONDecoder(object_pairs_hook=_object)
_ENCODER: Final = _json.JSONEncoder(ensure_ascii=False, allow_nan=False)

"""The text of a document: what `json.dumps(document, indent=2, ensure_ascii=False)` gives, and a few more escapes.

Written without recursion, and faster than the library's own indented writer. A schema that stands in many places is
written once.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from itertools import repeat
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from synmod.data.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.frozen import Json

__all__ = ["compact", "digest", "layout"]

_HIDDEN = re.compile("[\x80-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C1 controls, line separators and bidirectional overrides: characters that would make a diff show something else."""

_SHALLOW = 200
_COMPACT = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))
_CONTAINERS = (dict, list)


def layout(document: Json) -> tuple[str, int]:
    """Write a document, one key a line, with a line feed at the end; and tell how deep it nests."""
    text, depth = _written(document, "\n", "  ", ": ")
    return (text if text.isascii() else _HIDDEN.sub(_escaped, text)) + "\n", depth


def compact(content: Json, depth: int) -> str:
    """Write on one line without spaces; `depth` tells whether Python's own writer can nest as deep."""
    return _COMPACT.encode(content) if depth <= _SHALLOW else _written(content, "", "", ":")[0]


def digest(rest: dict[str, Json], depth: int) -> str:
    """Tell the digest of a document: over every top-level key but the header, in file order.

    Raises:
        UnicodeEncodeError: There is a lone surrogate in it.
    """
    return sha256(compact(rest, depth).encode()).hexdigest()


def _escaped(found: re.Match[str]) -> str:
    """One hidden character as a JSON escape."""
    return f"\\u{ord(found.group()):04x}"


_Entries: TypeAlias = "Iterator[tuple[str | None, Json]]"
_Memo: TypeAlias = "tuple[int, int] | None"


def _written(content: Json, newline: str, indent: str, colon: str) -> tuple[str, int]:
    """Write a JSON value, and tell how deep it nests. This is the hot loop of saving: one piece an entry."""
    if not isinstance(content, _CONTAINERS) or not content:
        return _scalar(content), int(isinstance(content, _CONTAINERS))
    pieces: list[str] = []
    add = pieces.append
    schemas: dict[tuple[int, int], tuple[int, int]] = {}  # a schema at a depth -> where its pieces lie
    stack: list[tuple[_Entries, str, str, _Memo, int]] = []
    depth = deepest = begun = 0
    memo: _Memo = None
    entries, separator, comma, closing = _opened("", content, newline, indent)
    while True:
        for key, value in entries:
            kind = cast("object", type(value))
            start = separator if key is None else f"{separator}{quoted(key)}{colon}"
            separator = comma
            if kind is str:
                add(start + quoted(value))
            elif kind is int:
                add(f"{start}{value}")
            elif not isinstance(value, _CONTAINERS):
                add(start + _scalar(value))
            elif not value:
                add(start + _scalar(value))
                deepest = max(deepest, depth + 1)
            else:
                inside: _Memo = None
                if kind is Schema:
                    add(start)
                    inside, start = (id(cast("object", value)), depth), ""
                    if inside in schemas:
                        first, end = schemas[inside]
                        pieces += pieces[first:end]
                        continue
                stack.append((entries, comma, closing, memo, begun))
                depth += 1
                memo, begun = inside, len(pieces)
                entries, separator, comma, closing = _opened(start, value, newline + indent * depth, indent)
                break
        else:
            add(closing)
            deepest = max(deepest, depth)
            if memo is not None:
                schemas[memo] = begun, len(pieces)
            if not stack:
                return "".join(pieces), deepest + 1
            entries, comma, closing, memo, begun = stack.pop()
            separator = comma
            depth -= 1


def _opened(start: str, container: Any, outer: str, indent: str) -> tuple[_Entries, str, str, str]:
    """The entries of a container that begins on the line `outer`; what stands before the first, between, and after."""
    inner = outer + indent
    if isinstance(container, dict):
        return iter(cast("dict[str, Json]", container).items()), f"{start}{{{inner}", "," + inner, outer + "}"
    return zip(repeat(None), container), f"{start}[{inner}", "," + inner, outer + "]"  # one of them has no end


def _scalar(value: Json) -> str:
    """Write what is no container, or an empty one."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _CONTAINERS):
        return "{}" if isinstance(value, dict) else "[]"
    return float.__repr__(value) if isinstance(value, float) else int.__repr__(value)

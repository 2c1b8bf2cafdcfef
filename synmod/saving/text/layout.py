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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from synmod.data import Schema
from synmod.leaves.frozen import FrozenDict, FrozenList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.frozen import Json

__all__ = ["Text", "compact", "compact_plain", "compact_sections", "digest", "layout"]

_HIDDEN = re.compile("[\x80-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C1 controls, line separators and bidirectional overrides: characters that would make a diff show something else."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))
_CONTAINERS = (dict, list)
_SHALLOW = 200
"""How deep the library's own writer may recurse, whatever stack the caller stands on."""


class Text(NamedTuple):
    """A JSON text with its measures: how deep it nests, and how many values it holds."""

    text: str
    depth: int
    values: int


def layout(document: Json) -> Text:
    """Write a document, one key a line, with a line feed at the end."""
    text, depth, values = _Writer("\n", "  ", ": ").write(document)
    return Text((text if text.isascii() else _HIDDEN.sub(_escaped, text)) + "\n", depth, values)


def compact(content: Json) -> str:
    """Write on one line without spaces, as `json.dumps` does with these separators."""
    return _Writer("", "", ":").write(content).text


def compact_plain(content: Json, depth: int) -> str:
    """The same for what a parser gave, whose depth is known: the library's own writer is faster where nothing repeats.

    Raises:
        TypeError, ValueError: It is no JSON after all.
    """
    return _COMPACT.encode(content) if depth <= _SHALLOW else compact(content)


def compact_sections(sections: dict[str, Json], depth: int) -> str:
    """The same for the sections of a program that is being written, whose schemas stand in two known places."""
    if depth > _SHALLOW or "graph" not in sections:
        return compact(sections)
    parts: list[str] = []
    for name, content in sections.items():
        if name == "graph":
            inner = [
                f'"{key}":{compact(part) if key == "variables" else _COMPACT.encode(part)}'
                for key, part in content.items()
            ]
            parts.append(f'"{name}":{{{",".join(inner)}}}')
        else:
            parts.append(f'"{name}":{compact(content) if name == "data_models" else _COMPACT.encode(content)}')
    return f"{{{','.join(parts)}}}"


def digest(compact_text: str) -> str:
    """Tell the digest of a document: over every top-level key but the header, on one line, in file order.

    Raises:
        UnicodeEncodeError: There is a lone surrogate in it.
    """
    return sha256(compact_text.encode()).hexdigest()


def _escaped(found: re.Match[str]) -> str:
    """One hidden character as a JSON escape."""
    return f"\\u{ord(found.group()):04x}"


_Entries: TypeAlias = "Iterator[tuple[str | None, object]]"
_Memo: TypeAlias = "tuple[int, int] | None"


class _Writer:
    """Writes one text: the hot loop of saving, one piece an entry.

    A schema that stands in many places at one depth is written once. On one line, frozen values go through the
    library's own writer, since those are known to be shallow.
    """

    def __init__(self, newline: str, indent: str, colon: str) -> None:
        self._newline = newline
        self._indent = indent
        self._colon = colon
        self._one_line = not newline
        self._signs: list[tuple[str, str, str, str, str]] = []  # what opens, parts and closes containers, by depth
        self._written: dict[tuple[int, int], tuple[str, int, int]] = {}  # a schema at a depth -> text, deepest, values

    def write(self, content: Json) -> Text:
        """Write a whole JSON value."""
        if not isinstance(content, _CONTAINERS) or not content:
            return Text(_scalar(content), int(isinstance(content, _CONTAINERS)), 1)
        pieces: list[str] = []
        add = pieces.append
        colon, one_line = self._colon, self._one_line
        stack: list[tuple[_Entries, str, str, _Memo, int, int]] = []
        depth = deepest = begun = counted = 0
        values = 1 + len(cast("dict[str, Json]", content))
        memo: _Memo = None
        entries, separator, comma, closing = self._opened("", content, 0)
        while True:
            for key, value in entries:
                kind = type(value)
                start = separator if key is None else f"{separator}{quoted(key)}{colon}"
                separator = comma
                if kind is str:
                    add(start + quoted(cast("str", value)))
                elif kind is int:
                    add(f"{start}{value}")
                elif not isinstance(value, _CONTAINERS):
                    add(start + _scalar(value))
                elif not value:
                    add(start + _scalar(value))
                    deepest = max(deepest, depth + 1)
                elif one_line and (kind is FrozenDict or kind is FrozenList):
                    add(start + _COMPACT.encode(value))
                else:
                    inside: _Memo = None
                    if kind is Schema:
                        add(start)
                        inside, start = (id(cast("object", value)), depth), ""
                        known = self._written.get(inside)
                        if known is not None:
                            add(known[0])
                            deepest = max(deepest, known[1])
                            values += known[2]
                            continue
                    stack.append((entries, comma, closing, memo, begun, counted))
                    depth += 1
                    memo, begun, counted = inside, len(pieces), values
                    values += len(cast("dict[str, Json]", value))
                    entries, separator, comma, closing = self._opened(start, value, depth)
                    break
            else:
                add(closing)
                deepest = max(deepest, depth)
                if memo is not None:
                    text = "".join(pieces[begun:])
                    pieces[begun:] = (text,)
                    self._written[memo] = text, deepest, values - counted
                if not stack:
                    return Text("".join(pieces), deepest + 1, values)
                entries, comma, closing, memo, begun, counted = stack.pop()
                separator = comma
                depth -= 1

    def _opened(self, start: str, container: Any, depth: int) -> tuple[_Entries, str, str, str]:
        """The entries of a container; what stands before the first, between two, and after the last."""
        while depth >= len(self._signs):
            outer = self._newline + self._indent * len(self._signs)
            inner = outer + self._indent
            self._signs.append(("{" + inner, "," + inner, outer + "}", "[" + inner, outer + "]"))
        opening, comma, closing, opening_array, closing_array = self._signs[depth]
        if isinstance(container, dict):
            return iter(cast("dict[str, Json]", container).items()), start + opening, comma, closing
        return zip(repeat(None), container), start + opening_array, comma, closing_array  # one of them has no end


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

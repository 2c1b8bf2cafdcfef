"""Where a JSON text holds what Python's parser reads, or cannot say where it stumbled, and we refuse."""

from __future__ import annotations

import re
from json import JSONDecodeError, loads
from math import isfinite
from typing import Final

from synmod.leaves.frozen import MAX_DEPTH, MAX_DIGITS

_PART: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"'  # a string
    r"|-?Infinity|NaN"
    r"|-?\d+(?P<fraction>\.\d+)?(?P<exponent>[eE][-+]?\d+)?"
    r"|[][{}:]",
    re.DOTALL,
)


def fault_in(text: str) -> str | None:
    """Find the first thing that is refused, and describe it with line and column; no recursion.

    The text is taken as well formed up to there; a fault of syntax is what Python's parser tells itself.
    """
    open_keys: list[set[str] | None] = []  # the keys seen in each open object; None for an array
    for match in _PART.finditer(text):
        part = match[0]
        if part in "]}":
            del open_keys[-1:]
        elif part in "[{":
            open_keys.append(set() if part == "{" else None)
            if len(open_keys) > MAX_DEPTH:
                return _described(text, match, f"nesting over {MAX_DEPTH} levels", f"the limit is {MAX_DEPTH}")
        elif part[0] == '"':
            found = _fault_of_string(text, match, open_keys)
            if found:
                return _described(text, match, *found)
        elif part != ":" and (found := _fault_of_number(part, match)):
            return _described(text, match, *found)
    return None


def _fault_of_string(text: str, match: re.Match[str], open_keys: list[set[str] | None]) -> tuple[str, str] | None:
    try:
        string: str = loads(match[0])
    except JSONDecodeError:
        return None
    try:
        string.encode()
    except UnicodeEncodeError:
        return "a lone surrogate", "text is limited to whole Unicode characters"
    seen = open_keys[-1] if open_keys else None
    if seen is not None and _IS_KEY.match(text, match.end()):
        if string in seen:
            return f"the key {match[0]:.100} twice in one object", "give each key once"
        seen.add(string)
    return None


def _fault_of_number(part: str, match: re.Match[str]) -> tuple[str, str] | None:
    if part.endswith(("y", "N")):
        return part, "write null or a string"
    if match["fraction"] or match["exponent"]:
        return None if isfinite(float(part)) else (f"{part:.40}, which overflows", "write null or a string")
    if len(part.lstrip("-")) > MAX_DIGITS:
        return f"an int of over {MAX_DIGITS:,} digits", f"the limit is {MAX_DIGITS:,}; write a string"
    return None


_IS_KEY: Final = re.compile(r"[ \t\r\n]*:")


def _described(text: str, match: re.Match[str], what: str, remedy: str) -> str:
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - text.rfind("\n", 0, match.start())
    return f"line {line} column {column}: not JSON: {what}: {remedy}."

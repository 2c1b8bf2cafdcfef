"""Plain text: tables whose columns stand under one another, whatever characters are in the cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from unicodedata import combining, east_asian_width

_GAP: Final = "  "
_LINE_BREAKS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Write what is no printable character as an escape: no control character reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _LINE_BREAKS.get(c) or c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """How many columns a text takes: wide characters two, accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lay out a table.

    Args:
        headings: One for each column.
        rows: The cells.
        right: Which columns are set to the right, as numbers are.

    Returns:
        The lines: headings, a rule, a line a row; without blanks at their ends.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([width(heading), *(width(row[i]) for row in cells)]) for i, heading in enumerate(headings)]
    lines = [_line(headings, widths, right), _GAP.join("─" * wide for wide in widths)]
    return lines + [_line(row, widths, right) for row in cells]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Set one line."""
    padded = [
        " " * (wide - width(cell)) + cell if is_right else cell + " " * (wide - width(cell))
        for cell, wide, is_right in zip(cells, widths, right, strict=True)
    ]
    return _GAP.join(padded).rstrip()

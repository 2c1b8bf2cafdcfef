"""Plain-text tables, and numbers as text."""

from collections.abc import Sequence
from typing import Final
from unicodedata import combining, east_asian_width

_GAP: Final = "  "
_LINE_BREAKS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return a text with unprintable characters escaped, so that no control character reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _LINE_BREAKS.get(c) or c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """Return how many columns a text takes: wide characters two, accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, most: int) -> str:
    """Return a text, cut short if it has more characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return the lines of a table.

    Args:
        headings: One for each column.
        rows: The cells.
        right: Which columns are right-aligned, as numbers are.

    Returns:
        The lines: headings, a rule, one line per row; without trailing blanks.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([width(heading), *(width(row[i]) for row in cells)]) for i, heading in enumerate(headings)]
    lines = [_line(headings, widths, right), _GAP.join("─" * wide for wide in widths)]
    return lines + [_line(row, widths, right) for row in cells]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Return one line."""
    padded = [
        " " * (wide - width(cell)) + cell if is_right else cell + " " * (wide - width(cell))
        for cell, wide, is_right in zip(cells, widths, right, strict=True)
    ]
    return _GAP.join(padded).rstrip()


_KILO: Final = 1000


def size_text(size: int) -> str:
    """Return a number of bytes as text."""
    if size < _KILO:
        return f"{size} B"
    return f"{size / _KILO:.1f} kB" if size < _KILO**2 else f"{size / _KILO**2:.1f} MB"


def dollars_text(cost_usd: float | None) -> str:
    """Return a cost as text; "?" if no price is known."""
    if cost_usd is None:
        return "?"
    if not cost_usd:
        return "$0"
    return f"${cost_usd:.6f}" if cost_usd < 0.01 else f"${cost_usd:,.4f}"


def plural(count: int, word: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"

"""How wide a text is, by a small table: the page must be laid out without asking a font.

Thousandths of the font size, as in the widest of the usual sans-serif faces: no text may leave its box.
"""

from __future__ import annotations

from typing import Final
from unicodedata import combining, east_asian_width

_GROUPS: Final = {
    " 'iljIJ|/\\": 340,
    "-.,:;()[]!frt": 441,
    '_`*"?csz': 550,
    "kvxyL": 600,
    "abdeghnopqu0123456789$µ{}EFSTY": 650,
    "ABCKPRVXZ": 700,
    "DGHNOQU&": 790,
    "w+<=>~^#→": 840,
    "M": 890,
    "mW@%…": 1000,
}
_WIDTHS: Final = {letter: width for letters, width in _GROUPS.items() for letter in letters}
_OTHER: Final = 720
_WIDE: Final = 1000
_BOLD: Final = 112
_ELLIPSIS: Final = "…"


def text_width(text: str, size: int, *, bold: bool = False) -> int:
    """The width of a text in a font of this size, rounded up."""
    thousandths = 0
    for letter in text:
        width = _WIDTHS.get(letter)
        if width is None:
            width = 0 if combining(letter) else _WIDE if east_asian_width(letter) in "WF" else _OTHER
        thousandths += width
    if bold:
        thousandths = thousandths * _BOLD // 100
    return -(-thousandths * size // 1000)


def fitted(text: str, size: int, room: int, *, bold: bool = False) -> str:
    """A text, cut where it is wider than its room."""
    text = text[:200]
    if text_width(text, size, bold=bold) <= room:
        return text
    while text and text_width(text + _ELLIPSIS, size, bold=bold) > room:
        text = text[:-1]
    return text.rstrip() + _ELLIPSIS

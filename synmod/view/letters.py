"""How wide a text is, by a small table: the page must be laid out without asking a font.

Thousandths of the font size, as in the usual sans-serif faces, rather too wide than too narrow.
"""

from __future__ import annotations

from typing import Final
from unicodedata import combining, east_asian_width

_GROUPS: Final = {
    "'il|.,:;!`jI": 290,
    'ft()[]{}/\\-r"*': 390,
    "Jcksvxyz?_ ": 540,
    "abdeghnopqu0123456789Lµ$#+<=>~^": 620,
    "ABEFKPSTVXYZ&": 700,
    "CDGHNOQRUw→": 770,
    "mMW%@": 960,
}
_WIDTHS: Final = {letter: width for letters, width in _GROUPS.items() for letter in letters}
_OTHER: Final = 640
_WIDE: Final = 1000
_BOLD: Final = 107
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

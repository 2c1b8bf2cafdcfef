"""Texts for patterns: a text that a regular expression matches, drawn at random.

Reads the expressions that JSON schemas may hold here (no look-around, no back references); what it does not know, such
as rare classes of Unicode, it answers with a likely text, and the caller validates.
"""

from __future__ import annotations

import string
from random import Random
from typing import Final

__all__ = ["text_for"]

_MOST_REPEATS: Final = 3
_ANYTHING: Final = string.ascii_lowercase + string.digits
_PRINTABLE: Final = "".join(chr(code) for code in range(32, 127))
_CLASSES: Final = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
    "D": string.ascii_lowercase,
    "W": " -.",
    "S": _ANYTHING,
}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}
_POSIX: Final = {
    "alpha": string.ascii_letters,
    "digit": string.digits,
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "space": " ",
    "punct": string.punctuation,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
_UNICODE: Final = {"L": "aé", "Lu": "AÉ", "Ll": "aé", "N": "17", "Nd": "17", "P": ".,", "S": "+", "Z": " ", "Zs": " "}


def text_for(pattern: str, random: Random) -> str:
    """Draw a text that a pattern matches."""
    return _Reader(pattern, random).alternatives()


class _Reader:
    """Reads an expression from left to right, and writes a text for it as it goes."""

    __slots__ = ("_at", "_pattern", "_random")

    def __init__(self, pattern: str, random: Random) -> None:
        self._pattern = pattern
        self._random = random
        self._at = 0

    def alternatives(self) -> str:
        """Read `a|b|c` to the end, or to the closing parenthesis; write one of them."""
        texts = [self._sequence()]
        while self._next_is("|"):
            texts.append(self._sequence())
        return self._random.choice(texts)

    def _sequence(self) -> str:
        """Read pieces with their quantifiers."""
        text: list[str] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            start = self._at
            piece = self._piece()
            end = self._at
            least, most = self._quantifier()
            count = self._random.randint(least, max(least, min(most, least + _MOST_REPEATS)))
            if count:
                text.append(piece)
            for _ in range(count - 1):
                after, self._at = self._at, start
                text.append(self._piece())
                assert self._at == end
                self._at = after
        return "".join(text)

    def _piece(self) -> str:
        """Read a group, a class, an escape, an anchor or a character."""
        sign = self._take()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._random.choice(self._class() or _ANYTHING)
        if sign == "\\":
            return self._random.choice(self._escape(inside=False) or [""])
        if sign == ".":
            return self._random.choice(_ANYTHING)
        return "" if sign in "^$" else sign

    def _group(self) -> str:
        """Read what stands in parentheses; names and flags say nothing about the text."""
        if self._next_is("?"):
            while self._at < len(self._pattern) and self._pattern[self._at] not in ":>)":
                self._at += 1
            if self._take() == ")":
                return ""
        text = self.alternatives()
        self._next_is(")")
        return text

    def _class(self) -> str:
        """Read `[...]`; give the characters that it allows."""
        negated = self._next_is("^")
        signs: list[str] = []
        first = True
        while self._at < len(self._pattern) and (first or self._pattern[self._at] != "]"):
            first = False
            signs.extend(self._class_part())
        self._next_is("]")
        return "".join(sign for sign in _PRINTABLE if sign not in signs) if negated else "".join(signs)

    def _class_part(self) -> str:
        """Read a character, a range or a class inside `[...]`."""
        if self._pattern.startswith("[:", self._at):
            name = self._pattern[self._at + 2 : self._pattern.index(":]", self._at)]
            self._at += len(name) + 4
            return _POSIX.get(name, _ANYTHING)
        sign = self._take()
        low = self._escape(inside=True) if sign == "\\" else sign
        coming = self._pattern[self._at : self._at + 2]
        if len(low) != 1 or coming[:1] != "-" or coming in ("-", "-]"):
            return low
        self._at += 1
        sign = self._take()
        high = self._escape(inside=True) if sign == "\\" else sign
        return "".join(map(chr, range(ord(low), min(ord(high), ord(low) + 200) + 1)))

    def _escape(self, *, inside: bool) -> str:
        """Read what follows a backslash; give the characters that it stands for."""
        sign = self._take()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign in "xuU":
            return self._code_point(sign)
        if sign in "pP":
            name = self._braced() or self._take()
            return _UNICODE.get(name, "a") if sign == "p" else "-"
        return "" if not inside and sign in "bBAzZ" else sign

    def _code_point(self, sign: str) -> str:
        """Read the number of a character."""
        digits = self._braced()
        if not digits:
            width = {"x": 2, "u": 4, "U": 8}[sign]
            digits = self._pattern[self._at : self._at + width]
            self._at += width
        return chr(int(digits, 16))

    def _braced(self) -> str:
        """Read `{...}` if it comes next."""
        if not self._next_is("{"):
            return ""
        end = self._pattern.index("}", self._at)
        text, self._at = self._pattern[self._at : end], end + 1
        return text

    def _quantifier(self) -> tuple[int, int]:
        """Read `*`, `+`, `?` or `{m,n}`, and how lazy it is; give the least and the most repetitions."""
        sign = self._pattern[self._at : self._at + 1]
        bounds = {"*": (0, 10**6), "+": (1, 10**6), "?": (0, 1)}.get(sign)
        if bounds is not None:
            self._at += 1
        elif sign == "{" and self._pattern[self._at + 1 : self._at + 2].isdigit():
            least, comma, most = self._braced().partition(",")
            bounds = int(least), int(most) if most else (10**6 if comma else int(least))
        else:
            return 1, 1
        self._next_is("?")
        return bounds

    def _take(self) -> str:
        """Read one character."""
        sign = self._pattern[self._at : self._at + 1]
        self._at += 1
        return sign

    def _next_is(self, sign: str) -> bool:
        """Read a character if it is this one."""
        found = self._pattern[self._at : self._at + 1] == sign
        self._at += found
        return found

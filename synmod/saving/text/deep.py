"""A JSON parser without recursion, for callers who raise `max_depth` beyond what Python's own parser can nest."""

from __future__ import annotations

import json
import re
from json import decoder
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json

__all__ = ["parse_deep"]

_text: Callable[[str, int, bool], tuple[str, int]] = cast("Any", decoder).scanstring  # typeshed lacks it
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_CONSTANTS = ("NaN", "Infinity", "-Infinity")


def parse_deep(
    text: str,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any],
    parse_constant: Callable[[str], Any],
    parse_float: Callable[[str], float],
    parse_int: Callable[[str], int] | None,
) -> Json:
    """Parse like `json.loads` with these hooks, however deep the text nests.

    Raises:
        json.JSONDecodeError: It is no JSON text.
    """
    return _Parser(text, object_pairs_hook, parse_constant, parse_float, parse_int or int).run()


class _Parser:
    """A position in the text, and the stack of the containers that are still open."""

    def __init__(self, text: str, pairs: Any, constant: Any, number: Any, integer: Any) -> None:
        self.text = text
        self.at: int = 0
        self.pairs = pairs
        self.constant = constant
        self.number = number
        self.integer = integer
        self.open: list[Any] = []  # lists of items, and lists of pairs with the key that waits for its value
        self.keys: list[str | None] = []

    def run(self) -> Json:
        """Parse the whole text."""
        while True:
            value, begun = self.begin()
            while not begun:
                if not self.open:
                    self.skip()
                    if self.at != len(self.text):
                        self.fail("Extra data")
                    return value
                self.put(value)
                if self.follows():
                    break
                value = self.close()

    def begin(self) -> tuple[Any, bool]:
        """Read a value; True where it is a container that now stands open and has an entry."""
        self.skip()
        sign = self.text[self.at : self.at + 1]
        if sign not in ("[", "{"):
            return self.scalar(sign), False
        self.at += 1
        self.skip()
        closing = "]" if sign == "[" else "}"
        if self.text[self.at : self.at + 1] == closing:
            self.at += 1
            return ([] if sign == "[" else self.pairs([])), False
        self.open.append([])
        self.keys.append(None)
        if sign == "{":
            self.key()
        return None, True

    def put(self, value: Any) -> None:
        """Add a value to the innermost container."""
        key = self.keys[-1]
        self.open[-1].append(value if key is None else (key, value))

    def follows(self) -> bool:
        """Step over a comma; False at the end of the innermost container."""
        self.skip()
        sign = self.text[self.at : self.at + 1]
        if sign == ",":
            self.at += 1
            if self.keys[-1] is not None:
                self.skip()
                self.key()
            return True
        if sign != ("]" if self.keys[-1] is None else "}"):
            self.fail("Expecting ',' delimiter")
        self.at += 1
        return False

    def close(self) -> Any:
        """Finish the innermost container."""
        entries, key = self.open.pop(), self.keys.pop()
        return entries if key is None else self.pairs(entries)

    def key(self) -> None:
        """Read a key and its colon."""
        if self.text[self.at : self.at + 1] != '"':
            self.fail("Expecting property name enclosed in double quotes")
        self.keys[-1], self.at = _text(self.text, self.at + 1, True)
        self.skip()
        if self.text[self.at : self.at + 1] != ":":
            self.fail("Expecting ':' delimiter")
        self.at += 1

    def scalar(self, sign: str) -> Any:
        """Read a string, a number or a word."""
        if sign == '"':
            value, self.at = _text(self.text, self.at + 1, True)
            return value
        for word in (*_WORDS, *_CONSTANTS):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return _WORDS[word] if word in _WORDS else self.constant(word)
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            return self.fail("Expecting value")
        self.at = found.end()
        whole, fraction, exponent = found.groups()
        return self.integer(whole) if fraction is None and exponent is None else self.number(found.group())

    def skip(self) -> None:
        """Step over white space."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def fail(self, message: str) -> Any:
        """Refuse the text here."""
        raise json.JSONDecodeError(message, self.text, self.at)

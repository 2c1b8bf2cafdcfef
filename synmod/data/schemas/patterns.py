"""Regular expressions in linear time: the engine that pydantic carries, with what they cost to make and to run."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import pydantic_core
from pydantic_core import SchemaValidator, core_schema

MAX_WEIGHT: Final = 500_000
"""What all patterns of a schema may weigh together: about half a second of compiling."""

_PART: Final = re.compile(
    r"\\[pP](?:\{[^}]*\}|.)"  # a class of Unicode
    r"|\\."
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a class of characters
    r"|\{\d+(?:,\d*)?\}"  # a repetition
    r"|\(\?[^:()]*[:)]?|[()]|.",
    re.DOTALL,
)

# States of the automaton, roughly; a class of Unicode letters has hundreds, a negated class a handful.
_LETTERS: Final = 400
_DIGITS: Final = 40
_SOME: Final = 5


class BadPattern(ValueError):
    """A pattern that the engine does not take."""


class Pattern:
    """One compiled pattern; it is searched for anywhere in a text, as JSON Schema wants."""

    __slots__ = ("_engine", "source", "weight")

    def __init__(self, source: str) -> None:
        """Compile.

        Raises:
            BadPattern: It has a syntax error, look-around or a backreference, or is too large. Says which.
        """
        self.source = source
        self.weight = weight_of(source)
        if self.weight > MAX_WEIGHT:
            raise BadPattern("it is too large")
        try:
            self._engine = SchemaValidator(core_schema.str_schema(pattern=source, regex_engine="rust-regex"))
        except pydantic_core.SchemaError as error:
            raise BadPattern(str(error).rsplit("error: ", 1)[-1].strip()[:200]) from None

    def found_in(self, text: str) -> bool:
        """Search."""
        return self._engine.isinstance_python(text)

    def checks(self, text: str) -> int:
        """Tell as how many keyword checks a search counts: one, and more where the text is long."""
        return 1 + len(text) * self.weight // 1_000


@lru_cache(maxsize=512)
def compiled(source: str) -> Pattern:
    """Compile a pattern, or find it among those compiled lately.

    Raises:
        BadPattern: The engine does not take it.
    """
    return Pattern(source)


def weight_of(source: str) -> int:
    """Estimate the size of the automaton of a pattern, without building it."""
    groups = [0]
    last = 0
    for part in _PART.findall(source):
        if part == "(" or (part.startswith("(?") and not part.endswith(")")):
            groups.append(0)
        elif part == ")":
            last = groups.pop() if len(groups) > 1 else 0
            groups[-1] += last
        elif part[0] == "{" and len(part) > 1:
            times = max(map(int, re.findall(r"\d{1,9}", part)), default=1)
            groups[-1] += last * times
            last *= 1 + times
        else:
            last = _atom_weight(part)
            groups[-1] += last
    return sum(groups)


def _atom_weight(part: str) -> int:
    """Estimate one character or class."""
    if part[0] == "[":
        inside = part[1:-1]
        shorthand = sum(_LETTERS for letter in re.findall(r"\\([pPwW])", inside) if letter)
        return shorthand + _DIGITS * len(re.findall(r"\\[dD]", inside)) + (_SOME if inside[:1] == "^" else 1)
    if part[0] == "\\":
        return {"p": _LETTERS, "P": _LETTERS, "w": _LETTERS, "W": _LETTERS, "d": _DIGITS, "D": _DIGITS}.get(
            part[1:2], _SOME
        )
    return _SOME if part == "." else 1

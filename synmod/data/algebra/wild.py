"""Names with wild characters: `*` is any text, `?` one character; `~1 ~2 ~3 ~4 ~0` stand for `/ # * ? ~`."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {"~0": "~", "~1": "/", "~2": "#", "~3": "*", "~4": "?"}

_TEXT: Final = "any text"
_CHARACTER: Final = "any character"


class WildName:
    """One name of a pattern.

    Attributes:
        text: The name without escapes; with its wild characters where it has some.
        wild: Whether it has some.
    """

    __slots__ = ("_tokens", "text", "wild")

    def __init__(self, written: str) -> None:
        self._tokens = _tokens(written)
        self.wild = any(len(token) > 1 for token in self._tokens)
        self.text = "".join({_TEXT: "*", _CHARACTER: "?"}.get(token, token) for token in self._tokens)

    def matches(self, name: str) -> bool:
        """Tell whether a name fits, in time of the product of the lengths."""
        if not self.wild:
            return name == self.text
        tokens = self._tokens
        at = here = mark = 0
        star = -1
        while here < len(name):
            token = tokens[at] if at < len(tokens) else None
            if token == _TEXT:
                star, mark = at, here
                at += 1
            elif token == _CHARACTER or token == name[here]:
                at += 1
                here += 1
            elif star >= 0:
                mark += 1
                at, here = star + 1, mark
            else:
                return False
        return all(token == _TEXT for token in tokens[at:])


def escaped(name: str) -> str:
    """Write a name so that it stands for itself in a pattern."""
    name = name.replace("~", "~0")
    for escape, character in _ESCAPES.items():
        name = name if character == "~" else name.replace(character, escape)
    return name


def _tokens(written: str) -> list[str]:
    """Take a name apart: single characters, and what stands for any."""
    tokens: list[str] = []
    at = 0
    while at < len(written):
        escape = written[at : at + 2]
        if escape in _ESCAPES:
            tokens.append(_ESCAPES[escape])
            at += 2
        else:
            tokens.append({"*": _TEXT, "?": _CHARACTER}.get(written[at], written[at]))
            at += 1
    return tokens

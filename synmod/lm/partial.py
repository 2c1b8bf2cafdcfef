"""JSON whose text has not arrived whole: the value so far, at a cost that grows with what is new."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, Final

from pydantic_core import from_json

from synmod.leaves import Json, frozen_dict, frozen_list

_DEEPEST: Final = 50
LONGEST_NUMBER: Final = 1_000
"""Characters of a number; a longer one is not JSON of ours."""
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_CHARACTERS: Final = re.compile(
    r"""(?:[^"\\\x00-\x1f]++
    | \\["\\/bfnrt]
    | \\u(?![dD][89abAB])[0-9a-fA-F]{4}
    | \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    )*+""",
    re.VERBOSE,
)
_LONGEST_ESCAPE: Final = 12  # of both halves of a character
_SCALAR: Final = re.compile(r"[-+.0-9A-Za-z]++")
_LITERALS: Final = ("true", "false", "null")
_NOTHING: Final = object()


class PartialJson:
    r"""Reads JSON in pieces; knows the value so far: texts as far as they go, numbers once they have ended.

    What follows the value is ignored.

    Example:
        >>> partial = PartialJson()
        >>> for piece in ('{"a": 1', '2, "b": ["x', 'y"'):
        ...     partial.feed(piece)
        ...     print(partial.value)
        {}
        {'a': 12, 'b': ['x']}
        {'a': 12, 'b': ['xy']}

    Source: the partial mode of jiter; differs: a piece costs its own length, not that of all before it.
    """

    def __init__(self) -> None:
        self._rest = ""  # of a token that has not ended
        # Containers that have not ended, plain, the outermost first; what they hold is frozen.
        self._open: list[Any] = []
        self._keys: list[str] = []  # for each open object, the last key
        self._text: list[str] | None = None  # of a text that has not ended
        self._is_key = False
        self._next = "value"  # what may come: value, key, colon, comma; with a question mark: or the end of a container
        self._root: Any = _NOTHING
        self._is_broken = False

    @property
    def value(self) -> Json:
        """The value so far, frozen; None if nothing is known, or the text is not JSON."""
        if self._is_broken:
            return None
        inner = _NOTHING if self._open or self._root is _NOTHING else self._root
        if self._text is not None and not self._is_key:
            self._text = ["".join(self._text)]
            inner = self._text[0]
        keys = [*self._keys]
        for container in reversed(self._open):
            is_object = _is_object(container)
            key = keys.pop() if is_object else ""
            if inner is _NOTHING:
                inner = _frozen(container)
            elif is_object:
                inner = frozen_dict({**container, key: inner})
            else:
                inner = frozen_list(chain(container, (inner,)))
        return None if inner is _NOTHING else inner

    def feed(self, text: str) -> None:
        """Read the next piece of the text."""
        if self._is_broken or (self._root is not _NOTHING and not self._open):
            return
        text, at, goes_on = self._rest + text, 0, True
        try:
            while goes_on and at < len(text) and (self._root is _NOTHING or self._open):
                at, goes_on = self._token(text, at) if self._text is None else self._characters(text, at, self._text)
        except ValueError:
            self._is_broken = True
        self._rest = text[at:]

    def _token(self, text: str, at: int) -> tuple[int, bool]:
        """Read a token outside of a text; return where it ends, and whether it has ended."""
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        sign, expected = text[at : at + 1], self._next.rstrip("?")
        if not sign:
            return at, False
        if sign == '"' and expected in ("key", "value"):
            self._text, self._is_key = [], expected == "key"
        elif sign in "{[" and expected == "value":
            self._begin(dict if sign == "{" else list)
        elif sign in "}]" and self._open and (self._next == "comma" or self._next.endswith("?")):
            self._end(dict if sign == "}" else list)
        elif sign == "," and self._next == "comma":
            self._next = "key" if _is_object(self._open[-1]) else "value"
        elif sign == ":" and self._next == "colon":
            self._next = "value"
        elif expected == "value":
            return self._scalar(text, at)
        else:
            raise ValueError
        return at + 1, True

    def _scalar(self, text: str, at: int) -> tuple[int, bool]:
        """Read a number, a truth value or null."""
        scalar = _SCALAR.match(text, at)
        if scalar is None or scalar.end() - at > LONGEST_NUMBER:
            raise ValueError
        if scalar.end() == len(text) and scalar[0] not in _LITERALS:
            return at, False
        self._put(from_json(scalar[0], allow_inf_nan=False))
        return scalar.end(), True

    def _characters(self, text: str, at: int, before: list[str]) -> tuple[int, bool]:
        """Read on in a text, as far as it goes."""
        characters = _CHARACTERS.match(text, at)
        run = characters[0] if characters else ""
        if run:
            before.append(from_json(f'"{run}"') if "\\" in run else run)
        at += len(run)
        if text[at : at + 1] == '"':
            new, self._text = "".join(before), None
            if self._is_key:
                self._name(new)
            else:
                self._put(new)
            return at + 1, True
        if at < len(text) and (text[at] != "\\" or len(text) - at >= _LONGEST_ESCAPE):
            raise ValueError
        return at, False

    def _begin(self, kind: type) -> None:
        """Begin a container."""
        if len(self._open) == _DEEPEST:
            raise ValueError
        self._open.append(kind())
        self._next = "value?"
        if kind is dict:
            self._keys.append("")
            self._next = "key?"

    def _name(self, key: str) -> None:
        """Take a key of the innermost object; one that repeats is not JSON of ours."""
        if key in self._open[-1]:
            raise ValueError
        self._keys[-1], self._next = key, "colon"

    def _put(self, value: Json) -> None:
        """Put a whole value where it belongs."""
        if not self._open:
            self._root = value
        elif _is_object(self._open[-1]):
            self._open[-1][self._keys[-1]] = value
        else:
            self._open[-1].append(value)
        self._next = "comma"

    def _end(self, kind: type) -> None:
        """End the innermost container."""
        container: Any = self._open.pop()
        if type(container) is not kind:
            raise ValueError
        if kind is dict:
            self._keys.pop()
        self._put(_frozen(container))


def _frozen(container: Any) -> Json:
    """Return a copy of a plain container of frozen values."""
    return frozen_dict(container) if _is_object(container) else frozen_list(container)


def _is_object(container: Any) -> bool:
    """Whether a container is an object."""
    return type(container) is dict


class GrowingJson:
    """The value in a text that arrives in pieces, at any of them; cheap if they are read in order.

    Args:
        kind: The type of the value, None for any; another value is not shown.
    """

    def __init__(self, kind: type | None) -> None:
        self._kind = kind
        self._pieces: list[str] = []
        self._read = 0  # how many the reader has been fed
        self._reader = PartialJson()

    def add(self, piece: str) -> int:
        """Add a piece; return how many there are."""
        self._pieces.append(piece)
        return len(self._pieces)

    def at(self, count: int) -> Json:
        """Return the value in the first pieces."""
        if count < self._read:
            self._read, self._reader = 0, PartialJson()
        self._reader.feed("".join(self._pieces[self._read : count]))
        self._read = count
        value = self._reader.value
        return value if self._kind is None or isinstance(value, self._kind) else None

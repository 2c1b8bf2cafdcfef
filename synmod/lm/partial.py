"""JSON whose text has not arrived whole: the value so far, at a cost that grows with what is new."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic_core import from_json

from synmod.leaves import Json, frozen_dict, frozen_list, is_object

_DEEPEST: Final = 50
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_SIGN: Final = re.compile(r'[][{}:,"]|true|false|null|[-+.0-9eE]{1,1000}+(?=[ \t\r\n,\]}])')
_BEGINNING: Final = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|[-+.0-9eE]{1,1000})?\Z")
"""Of a sign that has not ended."""
_CHARACTERS: Final = re.compile(
    r"""(?:[^"\\\x00-\x1f]++
    | \\["\\/bfnrt]
    | \\u(?![dD][89abAB])[0-9a-fA-F]{4}
    | \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    )*+""",
    re.VERBOSE,
)
_LONGEST_ESCAPE: Final = 12  # of both halves of a character
_DIGITS: Final = (*"-0123456789",)
_NOTHING: Final[Any] = object()


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
        self._rest = ""  # of a sign or an escape that has not ended
        self._open: list[tuple[Any, str]] = []  # containers that have not ended, plain, and their last keys
        self._text: list[str] | None = None  # of a text that has not ended
        self._root: Any = _NOTHING
        self._next = "value"  # what may come: value, key, colon, comma; with a question mark: or the end of a container
        self._is_broken = False

    @property
    def value(self) -> Json:
        """The value so far, frozen; None if nothing is known, or the text is not JSON."""
        inner = self._root
        if self._text is not None and self._next.startswith("value"):
            self._text = ["".join(self._text)]
            inner = self._text[0]
        for container, key in reversed(self._open):
            if inner is _NOTHING:
                inner = _frozen(container)
            elif is_object(container):
                inner = frozen_dict({**container, key: inner})
            else:
                inner = frozen_list([*container, inner])
        return None if self._is_broken or inner is _NOTHING else inner

    @property
    def has_ended(self) -> bool:
        """Whether nothing that follows would count: the value is whole, or the text is not JSON."""
        return self._is_broken or self._root is not _NOTHING

    @property
    def number(self) -> str:
        """The text of a number at the end, which may go on; "" for none. One of over 1,000 characters is not JSON."""
        return self._rest if self._text is None and self._rest[:1] in _DIGITS else ""

    def feed(self, text: str) -> None:
        """Read the next piece of the text."""
        text, at, before = self._rest + text, 0, -1
        try:
            while at > before and not self.has_ended:
                before, at = at, self._read_sign(text, at) if self._text is None else self._read_text(text, at)
        except ValueError:
            self._is_broken = True
        self._rest = "" if self.has_ended else text[at:]

    def _read_sign(self, text: str, at: int) -> int:
        """Read white space and what follows it outside of a text; return where that ends."""
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if sign := _SIGN.match(text, at):
            self._take(sign[0])
            return sign.end()
        if not _BEGINNING.match(text, at):
            raise ValueError
        return at

    def _take(self, sign: str) -> None:
        """Take a bracket, a number, or another sign.

        Raises:
            ValueError: It may not come here.
        """
        is_end = self._next == "comma" or self._next.endswith("?")
        expected = self._next.rstrip("?")
        if sign == '"' and expected in ("key", "value"):
            self._text = []
        elif sign in "{[" and expected == "value" and len(self._open) < _DEEPEST:
            self._open.append(({}, "") if sign == "{" else ([], ""))
            self._next = "key?" if sign == "{" else "value?"
        elif sign in "}]" and is_end and self._open and is_object(self._open[-1][0]) is (sign == "}"):
            self._put(_frozen(self._open.pop()[0]))
        elif sign == "," and self._next == "comma":
            self._next = "key" if is_object(self._open[-1][0]) else "value"
        elif sign == ":" and self._next == "colon":
            self._next = "value"
        elif expected == "value" and sign not in "{}[]:,":
            self._put(from_json(sign, allow_inf_nan=False))
        else:
            raise ValueError

    def _read_text(self, text: str, at: int) -> int:
        """Read on in a text, as far as it goes; return where that is."""
        assert self._text is not None
        characters = _CHARACTERS.match(text, at)
        if run := characters[0] if characters else "":
            self._text.append(from_json(f'"{run}"') if "\\" in run else run)
        at += len(run)
        if text[at : at + 1] == '"':
            whole, self._text = "".join(self._text), None
            self._put_key(whole) if self._next.startswith("key") else self._put(whole)
            return at + 1
        if at < len(text) and (text[at] != "\\" or len(text) - at >= _LONGEST_ESCAPE):
            raise ValueError
        return at

    def _put_key(self, key: str) -> None:
        """Put a key into the innermost object; one that repeats is not JSON of ours."""
        container, _ = self._open[-1]
        if key in container:
            raise ValueError
        self._open[-1], self._next = (container, key), "colon"

    def _put(self, value: Json) -> None:
        """Put a whole value where it belongs."""
        self._next = "comma"
        if not self._open:
            self._root = value
            return
        container, key = self._open[-1]
        if is_object(container):
            container[key] = value
        else:
            container.append(value)


def _frozen(container: Any) -> Json:
    """Return a copy of a plain container of frozen values."""
    return frozen_dict(container) if is_object(container) else frozen_list(container)


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

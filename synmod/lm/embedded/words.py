"""Texts as words: what is compared, searched and counted."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.frozen import Json

_WORD: Final = re.compile(r"\w+")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_GRAM_LENGTHS: Final = (3, 4)


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.lower())


def features(said: list[str]) -> Counter[str]:
    """Count what two texts are compared by: words, and the 3- and 4-grams of each word with a space at both ends."""
    return Counter(chain.from_iterable(map(word_features, said)))


@lru_cache(maxsize=8192)
def word_features(word: str) -> tuple[str, ...]:
    """A word and its grams; kept, since texts of one program share their words."""
    padded = f" {word} "
    grams = (padded[start : start + n] for n in _GRAM_LENGTHS for start in range(len(padded) - n + 1))
    return (word, *grams)


def token_count(text: str, *, again: bool) -> int:
    """Count words and signs of a turn; its examples, the longest part, and a turn that comes `again` once."""
    if again:
        return _kept_tokens(text)
    before, opening, rest = text.partition("<examples>")
    examples, closing, after = rest.partition("</examples>")
    # A tag begins and ends with a sign, so the parts can be counted apart.
    return sum(map(_tokens, (before, opening, closing, after))) + _kept_tokens(examples)


def _tokens(text: str) -> int:
    """Count words and signs."""
    return len(_TOKEN.findall(text))


_kept_tokens = lru_cache(maxsize=64)(_tokens)


def leaf_text(json: Json) -> str:
    """The strings and numbers of a JSON value, in order, one a line; its text where it is one string."""
    return "\n".join(_leaves(json))


def _leaves(json: Json) -> Iterator[str]:
    """The strings and numbers of a JSON value, in order."""
    if isinstance(json, str):
        yield json
    elif isinstance(json, dict):
        for value in json.values():  # pyright: ignore[reportUnknownVariableType]  (JSON is Any)
            yield from _leaves(value)
    elif isinstance(json, list):
        for value in json:  # pyright: ignore[reportUnknownVariableType]  (JSON is Any)
            yield from _leaves(value)
    elif isinstance(json, (int, float)) and not isinstance(json, bool):
        yield repr(json)

"""Rule lines: `label: word, phrase; word` in the instructions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from synmod.lm.embedded.words import words

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE: Final = re.compile(
    r"""\s* (?:[-*\u2022]\s*)?
        (?P<head> "[^"]*" | '[^']*' | `[^`]*` | \u201c[^\u201d]*\u201d | [^:=]+? )
        \s* (?: : | => | -> | \u2192 | = ) \s*
        (?P<listed> \S.*)""",
    re.VERBOSE,
)
_QUOTES: Final = "*\"'`\u2018\u2019\u201c\u201d"
_NO_LABEL: Final = frozenset("`()[]{}<>?!")
_LONGEST_LABEL: Final = 5  # words; a longer head is a sentence, which labels nothing unless a field has that value


class Rule(NamedTuple):
    """One rule: its label as it is written, and the words and phrases that speak for it."""

    label: str
    listed: tuple[str, ...]

    @property
    def names_a_label(self) -> bool:
        """Whether the head can be a value of a field that declares no values."""
        return len(self.label.split()) <= _LONGEST_LABEL and _NO_LABEL.isdisjoint(self.label)

    def hits(self, spoken: str) -> int:
        """How many of the listed words and phrases stand whole in a line that `spoken` made."""
        return sum(listed in spoken for listed in self.listed)


def spoken(said: list[str]) -> str:
    """The words of a text in one line, in which a phrase is found whole by a plain search."""
    return f" {' '.join(said)} "


@lru_cache(maxsize=128)
def rules_of(instructions: str) -> Mapping[str, Rule]:
    """The rules of the instructions, by their label in folded case; lines of one label are one rule."""
    rules: dict[str, Rule] = {}
    for line in instructions.split("\n"):
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            continue
        label = found["head"].strip().strip(_QUOTES).strip()
        listed = [phrase for item in re.split("[,;]", found["listed"]) if (phrase := spoken(words(item))).strip()]
        if not label or not listed:
            continue
        before = rules.get(label.casefold(), Rule(label, ()))
        rules[label.casefold()] = Rule(before.label, tuple(dict.fromkeys((*before.listed, *listed))))
    return rules

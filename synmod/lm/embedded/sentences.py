"""String fields: the nearest example's value, else the sentence of the input that most of the rest speaks of."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from synmod.lm.embedded.fitting import meets_text_demands
from synmod.lm.embedded.words import features, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import Json
    from synmod.lm.embedded.columns import Field
    from synmod.lm.embedded.scene import Scene

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_FEW_WORDS: Final = 12


def string(target: Mapping[str, Json], field: Field, scene: Scene) -> str:
    """Answer a string field that is open."""
    for index in scene.nearest:
        if isinstance(field.seen[index], str) and meets_text_demands(field.seen[index], target):
            return field.seen[index]
    text = telling(scene, f"sentences of {field.path}")
    if isinstance(longest := target.get("maxLength"), int):
        text = text[:longest]
    if meets_text_demands(text, target):
        return text
    offered = [target[key] for key in ("default",) if key in target] + list(target.get("examples") or ())
    return next((value for value in offered if isinstance(value, str) and meets_text_demands(value, target)), text)


def telling(scene: Scene, purpose: str) -> str:
    """The sentence of the input that overlaps most with the rest of it, else its first twelve words."""
    sentences = [stripped for part in _SENTENCE_END.split(scene.asked) if (stripped := part.strip())]
    if len(sentences) > 1:
        overlaps = _overlaps(sentences)
        if any(overlaps):
            overlaps = scene.noise.added([float(overlap) for overlap in overlaps], purpose)
            return sentences[max(range(len(sentences)), key=overlaps.__getitem__)]
    return " ".join(scene.asked.split()[:_FEW_WORDS])


def _overlaps(sentences: list[str]) -> list[Fraction]:
    """The square of the cosine of each sentence with all others together, exact."""
    counted = [features(words(sentence)) for sentence in sentences]
    together: dict[str, int] = {}
    for counts in counted:
        for feature, count in counts.items():
            together[feature] = together.get(feature, 0) + count
    whole = sum(count * count for count in together.values())
    overlaps: list[Fraction] = []
    for counts in counted:
        own = sum(count * count for count in counts.values())
        shared = sum(count * together[feature] for feature, count in counts.items()) - own
        rest = whole - 2 * shared - own
        overlaps.append(Fraction(shared * shared, own * rest) if own and rest else Fraction(0))
    return overlaps

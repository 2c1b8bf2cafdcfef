"""The examples of a prompt, indexed by what they are compared by."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from synmod.data.text import parse_json
from synmod.errors import DataError
from synmod.lm.embedded.words import features, leaf_text
from synmod.lm.prompt.subschemas import is_object

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json


class Pair(NamedTuple):
    """An earlier question of the user and its answer, as texts."""

    asked: str
    answered: str


class ExampleSet:
    """Examples and their counts: similarity to a text is the cosine of the counts, each times its weight.

    The weight of what `df` of `n` examples hold is `(n + 1) / (df + 1)`: division, multiplication and square roots
    alone, which every platform rounds alike.
    """

    __slots__ = ("_norms", "_postings", "outputs", "unseen")

    def __init__(self, texts: list[str], outputs: list[Json]) -> None:
        self.outputs = outputs
        counted = [features(text) for text in texts]
        holders: dict[str, list[tuple[int, int]]] = {}
        for index, counts in enumerate(counted):
            for feature, count in counts.items():
                holders.setdefault(feature, []).append((index, count))
        above = len(texts) + 1
        self.unseen = float(above * above)
        self._postings = {feature: ((above / (len(held) + 1)) ** 2, held) for feature, held in holders.items()}
        self._norms = [
            sum(count * count * self._postings[feature][0] for feature, count in counts.items()) for counts in counted
        ]

    def _norm(self, counts: dict[str, int]) -> float:
        """The square of the length of an example's weighted counts."""
        return sum(count * count * self._postings[feature][0] for feature, count in counts.items())

    def similarities(self, text: str) -> list[float]:
        """The similarity of a text to each example, from 0 to 1."""
        if not self.outputs:
            return []
        norm = 0.0
        products = [0.0] * len(self.outputs)
        for feature, count in features(text).items():
            posting = self._postings.get(feature)
            if posting is None:
                norm += count * count * self.unseen
                continue
            weight, held = posting
            norm += count * count * weight
            share = count * weight
            for index, times in held:
                products[index] += share * times
        return [product and product / sqrt(norm * own) for product, own in zip(products, self._norms, strict=True)]


@lru_cache(maxsize=64)
def example_set(lines: str, pairs: tuple[Pair, ...], structured: bool) -> ExampleSet:
    """Parse and index the lines of `<examples>` and the pairs before the question; kept per text.

    Where JSON is wanted (`structured`), a pair whose answer is prose says nothing.
    """
    texts: list[str] = []
    outputs: list[Json] = []
    for line in lines.split("\n"):
        example = parsed(line)
        if is_object(example) and "inputs" in example and "outputs" in example:
            texts.append(leaf_text(example["inputs"]))
            outputs.append(example["outputs"])
    for pair in pairs:
        answer = parsed(pair.answered) if structured else pair.answered
        if answer is not None:
            texts.append(pair.asked)
            outputs.append(answer)
    return ExampleSet(texts, outputs)


def parsed(text: str) -> Json:
    """The JSON of a text; None where it is none."""
    try:
        return parse_json(text)
    except DataError:
        return None

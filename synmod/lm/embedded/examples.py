"""The examples of a prompt, indexed by what they are compared by."""

from __future__ import annotations

from functools import lru_cache
from math import fsum, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from synmod.data import parse_json
from synmod.errors import DataError
from synmod.lm.embedded.columns import Field
from synmod.lm.embedded.words import features, leaf_text, word_features, words
from synmod.lm.prompt.subschemas import is_object

if TYPE_CHECKING:
    from collections import Counter

    from synmod.leaves.frozen import Json

_MOST_SHARES: Final = 10_000  # kept for each set of examples, at 40 bytes


class Pair(NamedTuple):
    """An earlier question of the user and its answer, as texts."""

    asked: str
    answered: str


class ExampleSet:
    """Examples and their counts: similarity to a text is the cosine of the counts, each times its weight.

    The weight of what `df` of `n` examples hold is `(n + 1) / (df + 1)`: division, multiplication, square roots and
    exact sums alone, which every platform rounds alike.

    Attributes:
        outputs: What each example answers.
        whole: The same as the place that the whole answer has.
    """

    __slots__ = ("_by_word", "_norms", "_postings", "_room", "_unseen", "_weights", "outputs", "whole")

    def __init__(self, texts: list[str], outputs: list[Json]) -> None:
        self.outputs = outputs
        self.whole = Field("", outputs)
        counted = [features(words(text)) for text in texts]
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for index, counts in enumerate(counted):
            for feature, count in counts.items():
                self._postings.setdefault(feature, []).append((index, count))
        above = len(texts) + 1
        self._unseen = float(above * above)
        self._weights = {feature: _squared(above / (len(held) + 1)) for feature, held in self._postings.items()}
        self._norms = [self._norm(counts) for counts in counted]
        self._by_word: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {}
        self._room = _MOST_SHARES

    def _norm(self, counts: Counter[str]) -> float:
        """The square of the length of weighted counts."""
        weight, unseen = self._weights.get, self._unseen
        return fsum([count * count * weight(feature, unseen) for feature, count in counts.items()])

    def similarities(self, said: list[str]) -> list[float]:
        """The similarity of the words of a text to each example, from 0 to 1."""
        if not self.outputs:
            return []
        products = [0.0] * len(self.outputs)
        for word in said:
            indices, shares = self._by_word.get(word) or self._keep(word)
            for index, share in zip(indices, shares, strict=True):
                products[index] += share
        norm = self._norm(features(said))
        return [product and product / sqrt(norm * own) for product, own in zip(products, self._norms, strict=True)]

    def _keep(self, word: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """The examples that share something with a word, and what it adds to the product with each; kept."""
        shares: dict[int, float] = {}
        for feature in word_features(word):
            for index, count in self._postings.get(feature, ()):
                shares[index] = shares.get(index, 0.0) + count * self._weights[feature]
        self._room -= len(shares) + 1
        if self._room < 0:  # begin anew
            self._by_word, self._room = {}, _MOST_SHARES
        kept = self._by_word[word] = tuple(shares), tuple(shares.values())
        return kept


def _squared(weight: float) -> float:
    """The square by one multiplication: a power is not rounded alike by every mathematical library."""
    return weight * weight


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

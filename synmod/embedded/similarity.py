"""The similarity of texts, by their words and parts of words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from synmod.leaves import Json

from .prompts import WORD


class ExampleIndex:
    """Examples, with the weighted counts of words and n-grams by which a question is compared with them."""

    def __init__(self, examples: Sequence[tuple[str, Json]]) -> None:
        self.outputs = [output for _, output in examples]
        features = [_features(question) for question, _ in examples]
        self._places: dict[str, list[tuple[int, int]]] = {}
        for place, counts in enumerate(features):
            for feature, count in counts.items():
                self._places.setdefault(feature, []).append((place, count))
        above = len(examples) + 1
        self._unseen = float(above * above)
        # Rare features weigh more. Squares of quotients are equal on every platform, logarithms are not.
        self._weights = {feature: (above / (len(places) + 1)) ** 2 for feature, places in self._places.items()}
        self._norms = [self._norm(counts) for counts in features]

    def similarities(self, question: str) -> list[float]:
        """Return the cosine similarity of the question and each example."""
        counts = _features(question)
        products = [0.0] * len(self._norms)
        for feature, count in counts.items():
            if places := self._places.get(feature):
                weight = count * self._weights[feature]
                for place, example_count in places:
                    products[place] += weight * example_count
        norm = self._norm(counts)
        return [product and product / math.sqrt(norm * own) for product, own in zip(products, self._norms, strict=True)]

    def _norm(self, counts: Mapping[str, int]) -> float:
        """Return the squared norm of weighted counts."""
        weights = self._weights
        return math.fsum(count * count * weights.get(feature, self._unseen) for feature, count in counts.items())


def _features(text: str) -> Counter[str]:
    """Count the features of a text: words, and the 3- and 4-grams of each word with a space at both ends."""
    return Counter(feature for word in WORD.findall(text.lower()) for feature in _word_features(word))


@lru_cache(maxsize=8192)
def _word_features(word: str) -> tuple[str, ...]:
    """Return a word and its n-grams; cached, since the texts of a program share words."""
    padded = f" {word} "
    return (word, *(padded[at : at + n] for n in (3, 4) for at in range(len(padded) - n + 1)))

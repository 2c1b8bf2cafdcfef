"""The embedding model `embedded/hash`."""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from synmod.errors import ConfigError
from synmod.leaves import aio
from synmod.lm import EmbeddingReply, EmbeddingRequest
from synmod.scope import Usage

from .prompts import WORD

_DIMENSIONS: Final = 256
_LENGTHS: Final = (3, 4, 5, 6)  # of subwords


class HashAdapter:
    """The adapter of `embedded/hash`: texts that share words or parts of words have similar vectors.

    Each distinct word, and each of its subwords of 3 to 6 characters, adds 1 or -1 to one of 256 numbers, chosen by its
    hash. The vector is normalised; that of a text without words is zero. Vectors are the same in every process.

    Example:
        >>> first, second = sm.run(sm.EmbeddingModel("embedded/hash")(["a red car", "A red car!"])).vectors
        >>> first == second
        True

    Source: the subwords of fastText (Bojanowski et al. 2017), feature hashing with signs (Weinberger et al. 2009);
    differs: nothing is learned.
    """

    name = "embedded"
    version = 2

    async def send(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Embed the texts of a request, and yield to other tasks after each.

        Raises:
            ConfigError: `dimensions` were given, and are not 256.
        """
        if request.params.get("dimensions", _DIMENSIONS) != _DIMENSIONS:
            raise ConfigError(f"embedded/hash: dimensions: its vectors have {_DIMENSIONS}; leave it out.")
        vectors: list[tuple[float, ...]] = []
        tokens = 0
        for text in request.texts:
            words, sums = WORD.findall(text.casefold()), [0] * _DIMENSIONS
            for word in set(words):
                for place, sign in _terms(word):
                    sums[place] += sign
            length = math.sqrt(sum(number * number for number in sums)) or 1.0
            vectors.append(tuple([number / length for number in sums]))
            tokens += len(words)
            await aio.checkpoint()
        return EmbeddingReply(tuple(vectors), Usage(prompt_tokens=tokens, cost_usd=0.0))


@lru_cache(maxsize=20_000)
def _terms(word: str) -> list[tuple[int, int]]:
    """Return (place, 1 or -1) for a word and each of its subwords, which include its ends."""
    ended = f"<{word}>"
    subwords = [ended[at : at + length] for length in _LENGTHS for at in range(len(ended) - length + 1)]
    numbers = [int.from_bytes(blake2b(part.encode(), digest_size=8).digest()) for part in (word, *subwords)]
    return [(number % _DIMENSIONS, 1 if number >> 8 & 1 else -1) for number in numbers]

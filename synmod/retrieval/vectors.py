"""The index of vectors: passages found by the exact cosine of their vectors with that of the query."""

import math
import os
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final

from synmod import errors, lm
from synmod.leaves import check_type
from synmod.registry import register_own

from .filters import Where
from .indexes import MOST_ROWS, PASSAGE_TABLE, StoredIndex, check_search, passages_of_rows, select_passages
from .retrieve import FoundPassage

_NUMBER_BYTES: Final = 8


@register_own()
class VectorIndex(StoredIndex):
    """Finds passages by meaning: by the exact cosine of their vectors with that of the query.

    Every vector is compared, in a thread: 10,000 of 384 numbers take a few milliseconds where numpy is installed, which
    keeps them in memory, and about 100 without it. For millions, derive an `Index` that queries a vector database.

    Args:
        embedding_model: The model of the vectors, or its name. A file belongs to the model that filled it.
        path: The file, which processes may share; missing folders are made. None for memory.
        name: The name in a saved file; by default that of the file without its ending.
        query_prefix: Text that the model wants before a query, such as "query: " for E5 or "search_query: " for Nomic.
        passage_prefix: The same before a passage, such as "passage: ". A file belongs to the one that filled it.

    Raises:
        ConfigError: `embedding_model` is not a model, `path` is not a path, `name` is empty, or a prefix is not a str.

    Example:
        >>> async def main(index):
        ...     await index.add([{"id": "tea", "text": "Tea is a drink."}, {"id": "sea", "text": "The sea is deep."}])
        ...     return [passage.id for passage in await index.search("How deep are seas?", k=1)]
        >>> sm.run(main, VectorIndex("embedded/hash"))
        ['sea']

    Source: exhaustive search, as in FAISS's flat index; differs: in a SQLite file.
    """

    _format = 202
    _schema = (PASSAGE_TABLE, "CREATE TABLE about (model TEXT, numbers INTEGER)")

    def __init__(
        self,
        embedding_model: lm.EmbeddingModel | str,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
    ) -> None:
        super().__init__(path, name=name)
        for what, prefix in (("query_prefix", query_prefix), ("passage_prefix", passage_prefix)):
            check_type(f"VectorIndex: {what}", prefix, str, "a text", error=errors.ConfigError)
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix
        self._matrix: _Matrix | None = None
        self.embedding_model = lm.resolve_embedding_model(embedding_model, "VectorIndex: embedding_model")

    async def search(self, query: str, k: int = 5, *, where: Where | None = None) -> list[FoundPassage]:
        """Return the passages whose vectors have the highest cosine with that of a query.

        Args:
            query: Any text.
            k: How many at most.
            where: A filter of their metadata, as for `KeywordIndex.search`.

        Returns:
            Passages with their cosine, the best first; ties in the order in which they were added.

        Raises:
            ArgumentError: `query` is not a str, `k` not a whole number above 0, or `where` not a filter.
            ConfigError: The index was loaded by its name alone, or was filled by another embedding model or with
                another `passage_prefix`.
            DataError: The file cannot be used.
            ModelError: Raised by the embedding model.
        """
        self.check_bound()
        fits = check_search(query, k, where)
        (vector,) = (await self.embedding_model([f"{self.query_prefix}{query}"])).vectors
        return await self._in_thread(self._nearest, vector, k, fits)

    def _nearest(
        self, connection: sqlite3.Connection, vector: Sequence[float], k: int, fits: Callable[[str], bool] | None
    ) -> list[FoundPassage]:
        """Return the passages nearest to a vector, among those whose metadata satisfies a filter."""
        self._check_model(connection, len(vector))
        if _numpy() is not None:
            best = self._matrix_of(connection, len(vector)).nearest(connection, vector, k, fits)
            statement = "SELECT id, metadata, text FROM passage WHERE number = ?"
            return passages_of_rows((*connection.execute(statement, (number,)).fetchone(), x) for number, x in best)
        connection.create_function("cosine", 1, cosine_to(vector), deterministic=True)
        statement = (
            "SELECT id, metadata, text, score FROM passage JOIN (SELECT number AS best, cosine(vector) AS score"
            " FROM passage WHERE fits(metadata) ORDER BY score DESC, number LIMIT ?)"
            " ON number = best ORDER BY score DESC, number"
        )
        return select_passages(connection, statement, (min(k, MOST_ROWS),), fits)

    def _matrix_of(self, connection: sqlite3.Connection, length: int) -> "_Matrix":
        """Return all vectors as a matrix, which is read again when this or another process has changed the file."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        stamp = (connection, version, connection.total_changes)
        if self._matrix is None or self._matrix.stamp != stamp:
            self._matrix = _Matrix(stamp, connection, length)
        return self._matrix

    async def _vectors(self, texts: Sequence[str]) -> Sequence[bytes | None]:
        prefixed = [f"{self.passage_prefix}{text}" for text in texts]
        return [pack_vector(vector) for vector in (await self.embedding_model(prefixed)).vectors]

    @property
    def _vector_source(self) -> str:
        """The origin of the vectors in the file: the model, and the prefix of passages if it is not empty."""
        model = self.embedding_model.model
        return f"{model}, passage_prefix={self.passage_prefix!r}" if self.passage_prefix else model

    def _check_vectors(self, connection: sqlite3.Connection, vectors: Sequence[bytes | None]) -> None:
        numbers = max(len(vector or b"") for vector in vectors) // _NUMBER_BYTES
        if numbers and not self._check_model(connection, numbers):
            connection.execute("INSERT INTO about VALUES (?, ?)", (self._vector_source, numbers))

    def _check_model(self, connection: sqlite3.Connection, numbers: int) -> bool:
        """Whether the file holds vectors already.

        Raises:
            ConfigError: They are from another model or another prefix, or have another length.
        """
        stored, own = connection.execute("SELECT * FROM about").fetchone(), (self._vector_source, numbers)
        if stored is not None and stored != own:
            was, now = (f"{model!r} with {length} numbers" for model, length in (stored, own))
            which = f"VectorIndex {self.name!r}: its vectors are of {was}, and this is {now}"
            raise errors.ConfigError(f"{which}. Use that model and prefix, or another file.")
        return stored is not None


def pack_vector(vector: Sequence[float]) -> bytes:
    """Return a vector, normalised, as bytes; no bytes for a zero vector, which has no direction."""
    length = math.hypot(*vector)
    return array("d", [number / length for number in vector]).tobytes() if length else b""


def cosine_to(vector: Sequence[float]) -> Callable[[bytes], float]:
    """Return a function from a packed vector to its cosine. Hot: called for every passage.

    For unit vectors it is 1 - d * d / 2 with their distance d, which Python computes faster than their dot product.
    """
    length = math.hypot(*vector)
    own = tuple([number / (length or 1.0) for number in vector])
    unpack, distance = Struct(f"{len(own)}d").unpack, math.dist

    def cosine(packed: bytes) -> float:
        return max(-1.0, 1.0 - distance(own, unpack(packed)) ** 2 / 2) if packed and length else 0.0

    return cosine


@cache
def _numpy() -> Any:
    """Return numpy, which is imported by the first search; None where it is not installed."""
    try:
        import numpy as np
    except ImportError:
        return None
    return np


class _Matrix:
    """The vectors of an index as one matrix of numpy, with the numbers of their passages.

    Raises:
        OSError: A vector in the file is damaged.
    """

    def __init__(self, stamp: tuple[Any, ...], connection: sqlite3.Connection, length: int) -> None:
        numpy, self.stamp = _numpy(), stamp
        rows = connection.execute("SELECT number, vector FROM passage ORDER BY number").fetchall()
        width, zero = length * _NUMBER_BYTES, bytes(length * _NUMBER_BYTES)
        if any(not isinstance(vector, bytes) or len(vector) not in (0, width) for _, vector in rows):
            raise OSError("a vector in it is damaged")
        self.numbers = numpy.array([number for number, _ in rows], dtype=numpy.int64)
        packed = b"".join([vector or zero for _, vector in rows])
        self.vectors = numpy.frombuffer(packed, dtype=numpy.float64).reshape(len(rows), length)

    def nearest(
        self, connection: sqlite3.Connection, vector: Sequence[float], k: int, fits: Callable[[str], bool] | None
    ) -> list[tuple[int, float]]:
        """Return the numbers of the nearest passages with their cosines, the best first."""
        numpy = _numpy()
        own = numpy.array(vector) / (math.hypot(*vector) or 1.0)
        numbers, cosines = self.numbers, numpy.clip(numpy.round(self.vectors @ own, 12), -1.0, 1.0)
        if fits is not None:
            connection.create_function("fits", 1, fits)
            rows = connection.execute("SELECT number FROM passage WHERE fits(metadata)").fetchall()
            chosen = numpy.isin(numbers, [number for (number,) in rows])
            numbers, cosines = numbers[chosen], cosines[chosen]
        if k < len(cosines):  # only the best are sorted, with those that equal the last of them
            chosen = cosines >= numpy.partition(cosines, -k)[-k]
            numbers, cosines = numbers[chosen], cosines[chosen]
        order = numpy.argsort(-cosines, kind="stable")[:k]
        return list(zip(numbers[order].tolist(), cosines[order].tolist(), strict=True))

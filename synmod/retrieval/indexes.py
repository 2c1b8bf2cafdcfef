"""The indexes: passages found by their words (BM25), or by the cosine of their vectors."""

import math
import os
import re
import sqlite3
import unicodedata
from array import array
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final

from synmod import errors, lm
from synmod.leaves import check_int, must_be
from synmod.registry import register_own

from .stored import PASSAGE_TABLE, FoundPassage, StoredIndex, select_passages

_NUMBER_BYTES: Final = 8
_MOST_WORDS: Final = 256  # of a query
_WORD: Final = re.compile(r"\w+")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_ALONE: Final = r"([\u3040-\u30ff\u3400-\u9fff])"  # Chinese and Japanese have no spaces between words; slow to compile


@register_own()
class KeywordIndex(StoredIndex):
    """Finds passages by their words, ranked by BM25: SQLite's full-text search.

    Case, accents and English endings are ignored. Any text is a query; it has no special characters.

    Args:
        path: The file, which processes may share; missing folders are made. None for memory.
        name: The name in a saved file; by default that of the file without its ending.

    Raises:
        ConfigError: `path` is not a path, or `name` is empty.

    Example:
        >>> async def main(index):
        ...     await index.add([{"id": "tea", "text": "Tea is a drink."}, {"id": "sea", "text": "The sea is deep."}])
        ...     return [passage.id for passage in await index.search("How deep is the sea?")]
        >>> sm.run(main, KeywordIndex())
        ['sea', 'tea']

    Source: SQLite FTS5; Robertson's BM25.
    """

    _format = 102
    _schema = (
        PASSAGE_TABLE,
        "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')",
        "CREATE TRIGGER added AFTER INSERT ON passage BEGIN"
        " INSERT INTO words (rowid, text) VALUES (new.number, plain(new.text)); END",
        "CREATE TRIGGER removed AFTER DELETE ON passage BEGIN DELETE FROM words WHERE rowid = old.number; END",
        "CREATE TRIGGER changed AFTER UPDATE ON passage BEGIN"
        " UPDATE words SET text = plain(new.text) WHERE rowid = old.number; END",
    )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.create_function("plain", 1, _fold_text, deterministic=True)
        super()._prepare(connection)

    async def search(self, query: str, k: int = 5) -> list[FoundPassage]:
        """Return the passages that share words with a query, ranked by BM25.

        Args:
            query: Any text; its first 256 distinct words are used.
            k: How many at most.

        Returns:
            Passages with their scores, the best first.

        Raises:
            ArgumentError: `query` is not a str, or `k` not a whole number above 0.
            ConfigError: The index was loaded by its name alone.
            DataError: The file cannot be used.
        """
        self.check_bound()
        _check_search(query, k)
        words = list(dict.fromkeys(_WORD.findall(_fold_text(query))))[:_MOST_WORDS]
        if not words:
            return []
        expression = " OR ".join(f'"{word}"' for word in words)
        statement = (
            "SELECT passage.id, passage.metadata, passage.text, -bm25(words) FROM words JOIN passage"
            " ON passage.number = words.rowid WHERE words MATCH ? ORDER BY bm25(words), passage.number LIMIT ?"
        )
        return await self._in_thread(select_passages, statement, (expression, k))


@register_own()
class VectorIndex(StoredIndex):
    """Finds passages by meaning: by the exact cosine of their vectors with that of the query.

    Every vector is compared; 10,000 of 256 numbers take about 80 ms in a thread. For millions, derive an `Index` that
    queries a vector database.

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

    Source: exhaustive search, as in FAISS's flat index; differs: in a SQLite file, no numpy.
    """

    _format = 201
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
            if not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
                raise errors.ConfigError(must_be(f"VectorIndex: {what}", "a text", prefix))
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix
        self.embedding_model = lm.resolve_embedding_model(embedding_model, "VectorIndex: embedding_model")

    async def search(self, query: str, k: int = 5) -> list[FoundPassage]:
        """Return the passages whose vectors have the highest cosine with that of a query.

        Args:
            query: Any text.
            k: How many at most.

        Returns:
            Passages with their cosine, the best first; ties in the order in which they were added.

        Raises:
            ArgumentError: `query` is not a str, or `k` not a whole number above 0.
            ConfigError: The index was loaded by its name alone, or was filled by another embedding model or with
                another `passage_prefix`.
            DataError: The file cannot be used.
            ModelError: Raised by the embedding model.
        """
        self.check_bound()
        _check_search(query, k)
        (vector,) = (await self.embedding_model([f"{self.query_prefix}{query}"])).vectors
        return await self._in_thread(self._nearest, vector, k)

    def _nearest(self, connection: sqlite3.Connection, vector: Sequence[float], k: int) -> list[FoundPassage]:
        """Return the passages nearest to a vector."""
        self._check_model(connection, len(vector))
        connection.create_function("cosine", 1, _cosine_to(vector), deterministic=True)
        statement = (
            "SELECT id, metadata, text, score FROM passage JOIN (SELECT number AS best, cosine(vector) AS score"
            " FROM passage ORDER BY score DESC, number LIMIT ?) ON number = best ORDER BY score DESC, number"
        )
        return select_passages(connection, statement, (k,))

    async def _vectors(self, texts: Sequence[str]) -> Sequence[bytes | None]:
        prefixed = [f"{self.passage_prefix}{text}" for text in texts]
        return [_pack_vector(vector) for vector in (await self.embedding_model(prefixed)).vectors]

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


def _check_search(query: Any, k: Any) -> None:
    """Raise ArgumentError for a query that is not a text, or a `k` that is not a count."""
    if not isinstance(query, str):
        raise errors.ArgumentError(must_be("search: query", "a text", query))
    check_int("search: k", k)


def _fold_text(text: str) -> str:
    """Return a text without case and accents, with spaces around each Chinese or Japanese character."""
    text = text.casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return re.sub(_ALONE, r" \1 ", text)


def _pack_vector(vector: Sequence[float]) -> bytes:
    """Return a vector, normalised, as bytes; no bytes for a zero vector, which has no direction."""
    length = math.hypot(*vector)
    return array("d", [number / length for number in vector]).tobytes() if length else b""


def _cosine_to(vector: Sequence[float]) -> Callable[[bytes], float]:
    """Return a function from a packed vector to its cosine. Hot: called for every passage.

    For unit vectors it is 1 - d * d / 2 with their distance d, which Python computes faster than their dot product.
    """
    length = math.hypot(*vector)
    own = tuple([number / (length or 1.0) for number in vector])
    unpack, distance = Struct(f"{len(own)}d").unpack, math.dist

    def cosine(packed: bytes) -> float:
        return max(-1.0, 1.0 - distance(own, unpack(packed)) ** 2 / 2) if packed and length else 0.0

    return cosine

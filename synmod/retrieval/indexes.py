"""The indexes in SQLite: passages found by their words (BM25), or by the cosine of their vectors."""

import json
import math
import os
import re
import sqlite3
import unicodedata
import weakref
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, ClassVar, Final, TypeVar, cast

from synmod import errors, lm
from synmod.cache import database
from synmod.leaves import aio, check_int, must_be
from synmod.registry import register_own

from .retrieve import FoundPassage, Index, Passage

T = TypeVar("T")

_ID: Final = 0x53594E49  # "SYNI", the application_id that identifies the database
_AT_ONCE: Final = 1_024  # passages that are embedded and committed together
_NUMBER_BYTES: Final = 8
_MOST_WORDS: Final = 256  # of a query
_WORD: Final = re.compile(r"\w+")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_ALONE: Final = r"([\u3040-\u30ff\u3400-\u9fff])"  # Chinese and Japanese have no spaces between words; slow to compile
_UPSERT: Final = (
    "INSERT INTO passage (id, vector, metadata, text) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "vector = excluded.vector, metadata = excluded.metadata, text = excluded.text"
)

_PASSAGE_TABLE: Final = (
    "CREATE TABLE passage (number INTEGER PRIMARY KEY, id TEXT UNIQUE, vector BLOB, metadata TEXT, text TEXT)"
)

Row = tuple[str, str, str]
"""Id, metadata as JSON text, and text of a passage."""


class StoredIndex(Index):
    """An index in a SQLite file that processes share, or in memory; its subclasses implement the search.

    One connection, used by one thread at a time. Once `add` or `remove` has returned, its changes survive a `kill -9`.

    Args:
        path: The file; missing folders are made. None for memory.
        name: The name in a saved file; by default that of the file without its ending.

    Raises:
        ConfigError: `path` is not a path, or `name` is empty.
    """

    _format: ClassVar[int]
    _schema: ClassVar[tuple[str, ...]]

    def __init__(self, path: str | os.PathLike[str] | None = None, *, name: str | None = None) -> None:
        who = type(self).__name__
        self.path = None if path is None else database.absolute_path(who, path)
        self.name = os.path.splitext(os.path.basename(self.path or "memory"))[0] if name is None else name
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(must_be(f"{who}: name", "a text", name))
        self._lock = aio.lock()
        self._one_thread = aio.ThreadLimit(1)
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._finalizer: weakref.finalize[..., Any] | None = None

    # -- for users

    async def add(self, passages: Iterable[Passage | Mapping[str, Any]]) -> int:
        """Add passages; one with a known id replaces the old one, and an unchanged one costs nothing.

        They are committed in batches of 1,024: after a failure or a cancellation the same call resumes.

        Args:
            passages: Passages, or dicts with their fields.

        Returns:
            How many were new or changed.

        Raises:
            DataError: An item is not a passage (names the index), or the file cannot be used.
            ModelError: Raised by the embedding model of a `VectorIndex`.

        Example:
            >>> index = sm.KeywordIndex()
            >>> sm.run(index.add([{"id": "1", "text": "Tea is a drink."}])), len(index)
            (1, 1)
        """
        self.check_bound()
        rows = [_row(passage, at) for at, passage in enumerate(_list_of(passages, "passages"))]
        rows, changed = list({row[0]: row for row in rows}.values()), 0
        for at in range(0, len(rows), _AT_ONCE):
            new = await self._in_thread(self._new_rows, rows[at : at + _AT_ONCE])
            vectors = await self._vectors([text for _, _, text in new])
            await self._in_thread(self._write, new, vectors)
            changed += len(new)
        return changed

    async def remove(self, ids: Iterable[str]) -> int:
        """Remove the passages with these ids; return how many there were.

        Args:
            ids: The ids; unknown ones are skipped.

        Raises:
            DataError: `ids` is a str, or the file cannot be used.

        Example:
            >>> index = sm.KeywordIndex()
            >>> sm.run(index.add([{"id": "1", "text": "tea"}])), sm.run(index.remove(["1", "2"])), len(index)
            (1, 1, 0)
        """
        keys = [(str(key),) for key in _list_of(ids, "ids")]

        def delete(connection: sqlite3.Connection) -> int:
            return connection.executemany("DELETE FROM passage WHERE id = ?", keys).rowcount

        return await self._in_thread(database.in_transaction, delete) if keys else 0

    def __len__(self) -> int:
        """Return the number of passages; blocks the event loop until a search or write under way has ended."""
        return self._with_connection(_count)

    def close(self) -> None:
        """Close the file, and block the event loop meanwhile; the next use opens it again. One in memory is kept."""
        with self._lock:
            if self.path is not None and self._finalizer is not None:
                self._finalizer()
                self._connection = self._finalizer = None

    async def aclose(self) -> None:
        """Close the file without blocking the event loop."""
        await aio.to_thread(self.close, limiter=self._one_thread)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'path', None)!r}, name={self.name!r})"

    # -- for subclasses

    async def _vectors(self, texts: Sequence[str]) -> Sequence[bytes | None]:
        """Return the vector to store with each text; None for no vector."""
        return [None] * len(texts)

    def _check_vectors(self, connection: sqlite3.Connection, vectors: Sequence[bytes | None]) -> None:
        """Check, within the transaction, that new vectors fit the stored ones."""

    # -- the database

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in a thread, with the connection as its first argument."""
        return await aio.to_thread(self._with_connection, function, *args, limiter=self._one_thread)

    def _with_connection(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function, with the connection as its first argument.

        Raises:
            DataError: SQLite cannot use the file.
        """
        self.check_bound()
        with self._lock:
            try:
                return function(self._open(), *args)
            except (sqlite3.Error, OSError, OverflowError) as error:
                where = f"in {self.path}" if self.path else "in memory"
                raise errors.DataError(f"{type(self).__name__} {self.name!r} {where}: {error}.") from None

    def _open(self) -> sqlite3.Connection:
        """Return the connection of this process; a forked child opens its own."""
        if self._connection is not None and (self.path is None or self._process == os.getpid()):
            return self._connection
        connection = database.open_database(self.path, self._prepare)
        self._connection, self._process = connection, os.getpid()
        self._finalizer = weakref.finalize(self, database.close_database, self._process, connection)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check an existing database, or create the tables of a new one."""
        number, version = database.numbers_of(connection)
        if not number and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            statements = (f"PRAGMA application_id = {_ID}", f"PRAGMA user_version = {self._format}", *self._schema)
            for statement in statements:
                connection.execute(statement)
        elif (number, version) != (_ID, self._format):
            raise OSError(f"it is not a file of a {type(self).__name__}, or of another format")

    def _new_rows(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that are new or changed."""
        query = "SELECT metadata, text FROM passage WHERE id = ?"
        return [row for row in rows if connection.execute(query, row[:1]).fetchone() != row[1:]]

    def _write(self, connection: sqlite3.Connection, rows: Sequence[Row], vectors: Sequence[bytes | None]) -> None:
        """Commit rows with their vectors."""
        values = [(key, vector, *rest) for (key, *rest), vector in zip(rows, vectors, strict=True)]

        def write(connection: sqlite3.Connection) -> None:
            self._check_vectors(connection, vectors)
            connection.executemany(_UPSERT, values)

        if values:
            database.in_transaction(connection, write)


def _list_of(items: Any, what: str) -> list[Any]:
    """Return passages or ids as a list; raise DataError for a text or a single passage."""
    if isinstance(items, str | bytes | Mapping | Passage) or not isinstance(items, Iterable):
        raise errors.DataError(must_be(what, "a list of them", cast("object", items)))
    return list(cast("Iterable[Any]", items))


def _row(item: Any, at: int) -> Row:
    """Return a passage as a row.

    Raises:
        DataError: It is not a passage; names the index.
    """
    try:
        passage = item if isinstance(item, Passage) else Passage(**item)
        text = json.dumps(passage.get_json()["metadata"], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        f"{passage.id}{text}{passage.text}".encode()  # SQLite takes no lone surrogates
    except (TypeError, ValueError) as error:
        raise errors.DataError(f"passages[{at}]: not a passage with id, text and metadata: {error}") from None
    return passage.id, text, passage.text


def _count(connection: sqlite3.Connection) -> int:
    """Return how many passages there are."""
    return connection.execute("SELECT count(*) FROM passage").fetchone()[0]


def _select_passages(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[FoundPassage]:
    """Return the passages that a statement finds."""
    rows = connection.execute(statement, values).fetchall()
    try:
        return [FoundPassage(id=i, metadata=json.loads(m), text=t, score=score) for i, m, t, score in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise OSError(f"a passage in it is damaged: {error}") from None


# -- by words and by vectors -------------------------------------------------------------------------------------------


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
        _PASSAGE_TABLE,
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
        return await self._in_thread(_select_passages, statement, (expression, k))


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
    _schema = (_PASSAGE_TABLE, "CREATE TABLE about (model TEXT, numbers INTEGER)")

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
        return _select_passages(connection, statement, (k,))

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

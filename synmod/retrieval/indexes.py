"""Indexes in SQLite: what they share, and the index that finds passages by their words (BM25)."""

import json
import os
import re
import sqlite3
import unicodedata
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from synmod import errors
from synmod.cache import database
from synmod.leaves import aio, check_int, must_be
from synmod.registry import register_own

from .filters import Where, check_where, predicate_of
from .retrieve import FoundPassage, Index, Passage, list_of

T = TypeVar("T")

_ID: Final = 0x53594E49  # "SYNI", the application_id that identifies the database
_AT_ONCE: Final = 1_024  # passages that are embedded and committed together
_MOST_WORDS: Final = 256  # of a query
MOST_ROWS: Final = 2**63 - 1  # the largest number of SQLite
_WORD: Final = re.compile(r"\w+")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_ALONE: Final = r"([\u3040-\u30ff\u3400-\u9fff])"  # Chinese and Japanese have no spaces between words; slow to compile
_UPSERT: Final = (
    "INSERT INTO passage (id, vector, metadata, text) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "vector = excluded.vector, metadata = excluded.metadata, text = excluded.text"
)

PASSAGE_TABLE: Final = (
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
        rows = [_row(passage, at) for at, passage in enumerate(list_of(passages, "passages"))]
        rows, changed = list({row[0]: row for row in rows}.values()), 0
        for at in range(0, len(rows), _AT_ONCE):
            new = await self._in_thread(self._new_rows, rows[at : at + _AT_ONCE])
            vectors = await self._vectors([text for _, _, text in new])
            await self._in_thread(self._write, new, vectors)
            changed += len(new)
        return changed

    async def remove(self, ids: Iterable[str] | None = None, *, where: Where | None = None) -> int:
        """Remove the passages with these ids, or those whose metadata satisfies a filter; return how many there were.

        Args:
            ids: The ids; unknown ones are skipped.
            where: The filter, as for `search`; in place of `ids`.

        Raises:
            ArgumentError: `where` is not a filter, or there is neither or both of `ids` and `where`.
            DataError: `ids` is a str, or the file cannot be used.

        Example:
            >>> index = sm.KeywordIndex()
            >>> sm.run(index.add([{"id": "1", "text": "tea"}])), sm.run(index.remove(["1", "2"])), len(index)
            (1, 1, 0)
        """
        if (ids is None) is (where is None):
            raise errors.ArgumentError(f"{type(self).__name__}.remove: pass either ids or where=.")
        if where is not None:
            fits = predicate_of(check_where("remove", where) or {})
            return await self._in_thread(_delete_where, fits)
        keys = [(str(key),) for key in list_of(ids, "ids")]

        def delete(connection: sqlite3.Connection) -> int:
            return connection.executemany("DELETE FROM passage WHERE id = ?", keys).rowcount

        return await self._in_thread(database.in_transaction, delete) if keys else 0

    async def get(self, id: str) -> Passage | None:  # noqa: A002  # the name of the field
        """Return the passage with this id; None if it is missing.

        Args:
            id: The id.

        Raises:
            DataError: The file cannot be used.

        Example:
            >>> index = sm.KeywordIndex()
            >>> sm.run(index.add([{"id": "1", "text": "tea"}])), sm.run(index.get("1")).text, sm.run(index.get("2"))
            (1, 'tea', None)
        """
        statement = "SELECT id, metadata, text, 0.0 FROM passage WHERE id = ?"
        passages = await self._in_thread(select_passages, statement, (str(id),))
        return Passage(id=id, text=passages[0].text, metadata=passages[0].metadata) if passages else None

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


def _row(item: Any, at: int) -> Row:
    """Return a passage as a row.

    Raises:
        DataError: It is not a passage; names the index.
    """
    try:
        if isinstance(item, str):
            raise TypeError("a text; sm.passages(text) makes passages of one.")
        passage = item if isinstance(item, Passage) else Passage(**item)
        text = json.dumps(passage.get_json()["metadata"], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        f"{passage.id}{text}{passage.text}".encode()  # SQLite takes no lone surrogates
    except (TypeError, ValueError) as error:
        raise errors.DataError(f"passages[{at}]: not a passage with id, text and metadata: {error}") from None
    return passage.id, text, passage.text


def _count(connection: sqlite3.Connection) -> int:
    """Return how many passages there are."""
    return connection.execute("SELECT count(*) FROM passage").fetchone()[0]


def _delete_where(connection: sqlite3.Connection, fits: Callable[[str], bool]) -> int:
    """Remove the passages whose metadata satisfies a filter; return how many there were."""
    connection.create_function("fits", 1, fits)
    statement = "DELETE FROM passage WHERE fits(metadata)"
    return database.in_transaction(connection, lambda connection: connection.execute(statement).rowcount)


def select_passages(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any], fits: Callable[[str], bool] | None = None
) -> list[FoundPassage]:
    """Return the passages that a statement selects, which may call `fits` on their metadata; None fits all.

    Raises:
        OSError: One of them is damaged.
    """
    connection.create_function("fits", 1, fits or bool)  # no metadata is an empty text
    return passages_of_rows(connection.execute(statement, values).fetchall())


def passages_of_rows(rows: Iterable[tuple[Any, Any, Any, float]]) -> list[FoundPassage]:
    """Return passages with their scores.

    Raises:
        OSError: One of them is damaged.
    """
    try:
        return [FoundPassage(id=i, metadata=json.loads(m), text=t, score=score) for i, m, t, score in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise OSError(f"a passage in it is damaged: {error}") from None


# -- by words ---------------------------------------------------------------------------------------------------------


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

    async def search(self, query: str, k: int = 5, *, where: Where | None = None) -> list[FoundPassage]:
        """Return the passages that share words with a query, ranked by BM25.

        Args:
            query: Any text; its first 256 distinct words are used.
            k: How many at most.
            where: A filter of their metadata, such as `{"lang": "en", "year": {"gte": 2024}}`: a field equals a value,
                or satisfies each of `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `in`.

        Returns:
            Passages with their scores, the best first.

        Raises:
            ArgumentError: `query` is not a str, `k` not a whole number above 0, or `where` not a filter.
            ConfigError: The index was loaded by its name alone.
            DataError: The file cannot be used.
        """
        self.check_bound()
        fits = check_search(query, k, where)
        words = list(dict.fromkeys(_WORD.findall(_fold_text(query))))[:_MOST_WORDS]
        if not words:
            return []
        expression = " OR ".join(f'"{word}"' for word in words)
        statement = (
            "SELECT passage.id, passage.metadata, passage.text, -bm25(words) FROM words JOIN passage"
            " ON passage.number = words.rowid WHERE words MATCH ? AND fits(passage.metadata)"
            " ORDER BY bm25(words), passage.number LIMIT ?"
        )
        return await self._in_thread(select_passages, statement, (expression, min(k, MOST_ROWS)), fits)


def check_search(query: Any, k: Any, where: Where | None) -> Callable[[str], bool] | None:
    """Return whether metadata, as JSON text, satisfies a filter, as a function; None without a filter.

    Raises:
        ArgumentError: The query is not a text, `k` not a count, or `where` not a filter.
    """
    if not isinstance(query, str):
        raise errors.ArgumentError(must_be("search: query", "a text", query))
    check_int("search: k", k)
    return predicate_of(where) if check_where("search", where) and where else None


def _fold_text(text: str) -> str:
    """Return a text without case and accents, with spaces around each Chinese or Japanese character."""
    text = text.casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return re.sub(_ALONE, r" \1 ", text)

"""An index: what `Retrieve` searches; and one that keeps its passages in SQLite.

An index is a graph node by reference, like a live model: programs share it, and no file holds its passages or its path.
"""

import json
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self, TypeVar, cast

from pydantic import Field

from synmod import data, errors, tree
from synmod.cache import database
from synmod.leaves import aio, must_be
from synmod.registry import register_own

T = TypeVar("T")

_ID: Final = 0x53594E49  # "SYNI", the application_id that identifies the database
_AT_ONCE: Final = 1_024  # passages that are embedded and committed together
_UPSERT: Final = (
    "INSERT INTO passage (id, vector, metadata, text) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "vector = excluded.vector, metadata = excluded.metadata, text = excluded.text"
)

PASSAGE_TABLE: Final = (
    "CREATE TABLE passage (number INTEGER PRIMARY KEY, id TEXT UNIQUE, vector BLOB, metadata TEXT, text TEXT)"
)

Row = tuple[str, str, str]
"""Id, metadata as JSON text, and text of a passage."""


@register_own()
class Passage(data.DataModel, defer_build=True):
    """A piece of text that an index holds.

    Attributes:
        id: Its id; adding another passage with this id replaces it.
        text: The text that is searched.
        metadata: Any JSON, returned with it.
    """

    id: str
    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)


@register_own()
class FoundPassage(Passage, defer_build=True):
    """A passage that a search found.

    Attributes:
        id: Its id.
        text: Its text.
        metadata: The JSON that was added with it.
        score: How well it fits, the higher the better: BM25, or the cosine.
    """

    score: float


class Index:
    """Base class of what `Retrieve` searches: derive from it, set `name`, implement `search`.

    Attributes:
        name: The name in a saved file, under which `sm.load(..., indexes={name: index})` supplies a live index.
        is_bound: False for an index that was loaded by its name alone.

    Example:
        >>> class Fixed(Index):
        ...     name = "fixed"
        ...     async def search(self, query, k=5):
        ...         return [FoundPassage(id="1", text="Tea is a drink.", score=1.0)][:k]
        >>> sm.run(Fixed().search("tea"))[0].text
        'Tea is a drink.'

    Source: LlamaIndex's retrievers; differs: a node of the graph by reference, never part of a saved program.
    """

    name: str
    is_bound: bool = True

    @classmethod
    def unbound(cls, name: str) -> Self:
        """Return an index known only by its name: everything except a search works."""
        index = cls.__new__(cls)
        index.name, index.is_bound = name, False
        return index

    def check_bound(self) -> None:
        """Raise ConfigError, with the code to write, if only the name is known."""
        if not self.is_bound:
            remedy = f"Write load(..., indexes={{{self.name!r}: {type(self).__name__}(path)}})"
            raise errors.ConfigError(f"the index {self.name!r} was loaded by its name alone. {remedy}.")

    async def search(self, query: str, k: int = 5) -> list[FoundPassage]:
        """Return the passages that fit a query best.

        Args:
            query: Any text.
            k: How many at most.

        Returns:
            Passages with their scores, the best first.
        """
        raise NotImplementedError(f"{type(self).__name__} has no search.")

    def __copy__(self, memo: object = None) -> Self:
        return self

    __deepcopy__ = __copy__


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


# -- helpers -----------------------------------------------------------------------------------------------------------


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


def select_passages(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[FoundPassage]:
    """Return the passages that a statement finds."""
    rows = connection.execute(statement, values).fetchall()
    try:
        return [FoundPassage(id=i, metadata=json.loads(m), text=t, score=score) for i, m, t, score in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise OSError(f"a passage in it is damaged: {error}") from None


tree.register_impl(
    tree.NodeImpl(Index, flatten=lambda index: ((), {"name": index.name}), by_reference=True, subclasses=True)
)

"""Indexes: passages in SQLite, found by words (BM25) or by the cosine of their vectors; and a block that searches one.

An index is a graph node by reference, like a live model: programs share it, and no file holds its passages or its path.
"""

import json
import math
import os
import re
import sqlite3
import unicodedata
import weakref
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, ClassVar, Final, Self, TypeVar, Unpack, cast

from pydantic import Field

from synmod import data, errors, lm, tree
from synmod.leaves import aio, check_int, did_you_mean, make_file, path_text
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

T = TypeVar("T")

_TEXT: Final = ("string", ["string", "null"])
_ID: Final = 0x53594E49  # "SYNI", the application_id that identifies the database
_WAIT_S: Final = 10.0  # for a write of another process
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
        try:
            self.path = None if path is None else os.path.abspath(path_text(path))
        except errors.ArgumentError:
            raise errors.ConfigError(
                f"{who}: path is {path!r:.100}; write that of a file, or None for memory."
            ) from None
        self.name = os.path.splitext(os.path.basename(self.path or "memory"))[0] if name is None else name
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(f"{who}: name is {name!r:.100}; write a text.")
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
            >>> index = KeywordIndex()
            >>> sm.run(index.add([{"id": "1", "text": "Tea is a drink."}])), len(index)
            (1, 1)
        """
        self.check_bound()
        rows = {row[0]: row for row in [_row(each, at) for at, each in enumerate(_listed(passages, "passages"))]}
        listed, changed = list(rows.values()), 0
        for at in range(0, len(listed), _AT_ONCE):
            new = await self._run(self._unknown, listed[at : at + _AT_ONCE])
            vectors = await self._vectors([text for _, _, text in new])
            await self._run(self._write, new, vectors)
            changed += len(new)
        return changed

    async def remove(self, ids: Iterable[str]) -> int:
        """Remove the passages with these ids; return how many there were.

        Args:
            ids: The ids; unknown ones are skipped.

        Raises:
            DataError: `ids` is a str, or the file cannot be used.

        Example:
            >>> index = KeywordIndex()
            >>> sm.run(index.add([{"id": "1", "text": "tea"}])), sm.run(index.remove(["1", "2"])), len(index)
            (1, 1, 0)
        """
        listed = [(str(each),) for each in _listed(ids, "ids")]

        def removed(connection: sqlite3.Connection) -> int:
            return connection.executemany("DELETE FROM passage WHERE id = ?", listed).rowcount

        return await self._run(_committed, removed) if listed else 0

    def __len__(self) -> int:
        """Return the number of passages, after any search under way."""
        return self._used(_count)

    def close(self) -> None:
        """Close the file; the next use opens it again. An index in memory is kept."""
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

    def _check(self, connection: sqlite3.Connection, vectors: Sequence[bytes | None]) -> None:
        """Check, within the transaction, that new vectors fit the stored ones."""

    # -- the database

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in a thread, with the connection as its first argument."""
        return await aio.to_thread(self._used, function, *args, limiter=self._one_thread)

    def _used(self, function: Callable[..., T], *args: Any) -> T:
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
        if self.path is not None:
            make_file(self.path)
        opened = sqlite3.connect(
            self.path or ":memory:", timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            _committed(opened, self._prepare)
            with suppress(sqlite3.OperationalError):  # another process is switching at this moment
                opened.execute("PRAGMA journal_mode = WAL")
            opened.execute("PRAGMA synchronous = NORMAL")  # only a crash of the machine may lose recent commits
        except BaseException:
            opened.close()
            raise
        self._connection, self._process = opened, os.getpid()
        self._finalizer = weakref.finalize(self, _closed, opened, self._process)
        return opened

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check an existing database, or create the tables of a new one."""
        number, version = (connection.execute(f"PRAGMA {x}").fetchone()[0] for x in ("application_id", "user_version"))
        if not number and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            statements = (f"PRAGMA application_id = {_ID}", f"PRAGMA user_version = {self._format}", *self._schema)
            for statement in statements:
                connection.execute(statement)
        elif (number, version) != (_ID, self._format):
            raise OSError(f"it is not a file of a {type(self).__name__}, or of another format")

    def _unknown(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that are new or changed."""
        query = "SELECT metadata, text FROM passage WHERE id = ?"
        return [row for row in rows if connection.execute(query, row[:1]).fetchone() != row[1:]]

    def _write(self, connection: sqlite3.Connection, rows: Sequence[Row], vectors: Sequence[bytes | None]) -> None:
        """Commit rows with their vectors."""
        values = [(key, vector, *rest) for (key, *rest), vector in zip(rows, vectors, strict=True)]

        def write(connection: sqlite3.Connection) -> None:
            self._check(connection, vectors)
            connection.executemany(_UPSERT, values)

        if values:
            _committed(connection, write)


_PASSAGES: Final = (
    "CREATE TABLE passage (number INTEGER PRIMARY KEY, id TEXT UNIQUE, vector BLOB, metadata TEXT, text TEXT)"
)


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
        ...     return [found.id for found in await index.search("How deep is the sea?")]
        >>> sm.run(main, KeywordIndex())
        ['sea', 'tea']

    Source: SQLite FTS5; Robertson's BM25.
    """

    _format = 102
    _schema = (
        _PASSAGES,
        "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')",
        "CREATE TRIGGER added AFTER INSERT ON passage BEGIN"
        " INSERT INTO words (rowid, text) VALUES (new.number, plain(new.text)); END",
        "CREATE TRIGGER removed AFTER DELETE ON passage BEGIN DELETE FROM words WHERE rowid = old.number; END",
        "CREATE TRIGGER changed AFTER UPDATE ON passage BEGIN"
        " UPDATE words SET text = plain(new.text) WHERE rowid = old.number; END",
    )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.create_function("plain", 1, _plain, deterministic=True)
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
        words = list(dict.fromkeys(_WORD.findall(_plain(query))))[:_MOST_WORDS]
        if not words:
            return []
        asked = " OR ".join(f'"{word}"' for word in words)
        statement = (
            "SELECT passage.id, passage.metadata, passage.text, -bm25(words) FROM words JOIN passage"
            " ON passage.number = words.rowid WHERE words MATCH ? ORDER BY bm25(words), passage.number LIMIT ?"
        )
        return await self._run(_found, statement, (asked, k))


@register_own()
class VectorIndex(StoredIndex):
    """Finds passages by meaning: by the exact cosine of their vectors with that of the query.

    Every vector is compared; 10,000 of 256 numbers take about 80 ms in a thread. For millions, derive an `Index` that
    queries a vector database.

    Args:
        embedding_model: The model of the vectors, or its name. A file belongs to the model that filled it.
        path: The file, which processes may share; missing folders are made. None for memory.
        name: The name in a saved file; by default that of the file without its ending.
        query_prefix: What the model wants before a query, such as "query: " for E5 or "search_query: " for Nomic.
        passage_prefix: What it wants before a passage, such as "passage: ". A file belongs to the one that filled it.

    Raises:
        ConfigError: `embedding_model` is not a model, `path` is not a path, `name` is empty, or a prefix is not a str.

    Example:
        >>> async def main(index):
        ...     await index.add([{"id": "tea", "text": "Tea is a drink."}, {"id": "sea", "text": "The sea is deep."}])
        ...     return [found.id for found in await index.search("How deep are seas?", k=1)]
        >>> sm.run(main, VectorIndex("embedded/hash"))
        ['sea']

    Source: exhaustive search, as in FAISS's flat index; differs: in a SQLite file, no numpy.
    """

    _format = 201
    _schema = (_PASSAGES, "CREATE TABLE about (model TEXT, numbers INTEGER)")

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
                raise errors.ConfigError(f"VectorIndex: {what} is {prefix!r:.100}; write a text.")
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix
        self.embedding_model = lm.embedding_model_from(embedding_model, "VectorIndex: embedding_model")

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
        return await self._run(self._nearest, vector, k)

    def _nearest(self, connection: sqlite3.Connection, vector: Sequence[float], k: int) -> list[FoundPassage]:
        """Return the passages nearest to a vector."""
        self._check_model(connection, len(vector))
        connection.create_function("cosine", 1, _cosine_to(vector), deterministic=True)
        statement = (
            "SELECT id, metadata, text, score FROM passage JOIN (SELECT number AS best, cosine(vector) AS score"
            " FROM passage ORDER BY score DESC, number LIMIT ?) ON number = best ORDER BY score DESC, number"
        )
        return _found(connection, statement, (k,))

    async def _vectors(self, texts: Sequence[str]) -> Sequence[bytes | None]:
        prefixed = [f"{self.passage_prefix}{text}" for text in texts]
        return [_packed(vector) for vector in (await self.embedding_model(prefixed)).vectors]

    @property
    def _maker(self) -> str:
        """What the vectors of the file depend on: the model, and the prefix of passages if there is one."""
        model = self.embedding_model.model
        return f"{model}, passage_prefix={self.passage_prefix!r}" if self.passage_prefix else model

    def _check(self, connection: sqlite3.Connection, vectors: Sequence[bytes | None]) -> None:
        numbers = max(len(vector or b"") for vector in vectors) // _NUMBER_BYTES
        if numbers and not self._check_model(connection, numbers):
            connection.execute("INSERT INTO about VALUES (?, ?)", (self._maker, numbers))

    def _check_model(self, connection: sqlite3.Connection, numbers: int) -> bool:
        """Whether the file holds vectors already.

        Raises:
            ConfigError: They are from another model or another prefix, or have another length.
        """
        known, own = connection.execute("SELECT * FROM about").fetchone(), (self._maker, numbers)
        if known is not None and known != own:
            was, now = (f"{model!r} with {length} numbers" for model, length in (known, own))
            which = f"VectorIndex {self.name!r}: its vectors are of {was}, and this is {now}"
            raise errors.ConfigError(f"{which}. Use that model and prefix, or another file.")
        return known is not None


# -- helpers -----------------------------------------------------------------------------------------------------------


def _listed(given: Any, what: str) -> list[Any]:
    """Return passages or ids as a list; raise DataError for a text or a single passage."""
    if isinstance(given, str | bytes | Mapping | Passage) or not isinstance(given, Iterable):
        raise errors.DataError(f"{what}: got {type(cast('object', given)).__name__}, wanted a list of them.")
    return list(cast("Iterable[Any]", given))


def _row(given: Any, at: int) -> Row:
    """Return a passage as a row.

    Raises:
        DataError: It is not a passage; names the index.
    """
    try:
        passage = given if isinstance(given, Passage) else Passage(**given)
        text = json.dumps(passage.get_json()["metadata"], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        for each in (passage.id, text, passage.text):
            each.encode()
    except (TypeError, ValueError) as error:
        raise errors.DataError(f"passages[{at}]: not a passage with id, text and metadata: {error}") from None
    return passage.id, text, passage.text


def _count(connection: sqlite3.Connection) -> int:
    """Return how many passages there are."""
    return connection.execute("SELECT count(*) FROM passage").fetchone()[0]


def _found(connection: sqlite3.Connection, statement: str, given: Sequence[Any]) -> list[FoundPassage]:
    """Return the passages that a statement finds."""
    rows = connection.execute(statement, given).fetchall()
    try:
        return [FoundPassage(id=i, metadata=json.loads(m), text=t, score=score) for i, m, t, score in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise OSError(f"a passage in it is damaged: {error}") from None


def _check_search(query: Any, k: Any) -> None:
    """Raise ArgumentError for a query that is not a text, or a `k` that is not a count."""
    if not isinstance(query, str):
        raise errors.ArgumentError(f"search: query is a {type(query).__name__}; write a text.")
    check_int("search: k", k)


def _plain(text: str) -> str:
    """Return a text without case and accents, with spaces around each Chinese or Japanese character."""
    text = text.casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return re.sub(_ALONE, r" \1 ", text)


def _packed(vector: Sequence[float]) -> bytes:
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


def _committed(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run a function in one transaction."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        return work(connection)


def _closed(connection: sqlite3.Connection, process: int) -> None:
    """Close a connection, in the process that made it."""
    if process == os.getpid():
        connection.close()


tree.register_impl(
    tree.NodeImpl(Index, flatten=lambda index: ((), {"name": index.name}), by_reference=True, subclasses=True)
)


# -- the block ---------------------------------------------------------------------------------------------------------


@register_own()
class Passages(data.DataModel, defer_build=True):
    """The passages that a search found.

    Attributes:
        passages: The passages, the best first.
    """

    passages: list[FoundPassage]


@register_own()
class Retrieve(Module):
    """Finds the passages of an index that fit a text in the inputs.

    Args:
        index: A `KeywordIndex`, a `VectorIndex`, or an `Index` of your own. It is held by reference: a saved program
            holds only its name, and `sm.load(path, indexes={name: index})` supplies a live one.
        k: How many passages at most.
        field: The field of the inputs that holds the query; None for the only text among them.
        return_inputs: Whether the output begins with the fields of the inputs.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model with the query
        outputs: `passages`, a list of `id`, `text`, `metadata`, `score`; with `return_inputs` the inputs' fields first

    Raises:
        ConfigError: `index` is not an Index, or `k` not a whole number above 0. When called: the index was loaded by
            its name alone.
        SchemaError: The inputs have no such field ('Did you mean'), or several texts and `field` is None.

    Example:
        >>> class Question(sm.DataModel):
        ...     question: str
        >>> index = sm.KeywordIndex()
        >>> added = sm.run(index.add([{"id": "sea", "text": "The sea is deep."}]))
        >>> sm.run(Retrieve(index), Question(question="How deep is it?")).passages[0]["id"]
        'sea'

    Source: DSPy's `Retrieve`, Synalinks' knowledge retrieval; differs: no global retriever, scores come with the texts.
    """

    def __init__(
        self,
        index: Index,
        k: int = 5,
        *,
        field: str | None = None,
        return_inputs: bool = False,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        if not isinstance(index, Index):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(f"Retrieve: index is {index!r:.100}; write a KeywordIndex or another Index.")
        self.k = check_int("Retrieve: k", k, error=errors.ConfigError)
        self.index, self.field, self.return_inputs = index, field, return_inputs

    async def call(self, inputs: Any) -> Any:
        """Return the passages that the index finds for the query in the inputs."""
        query = inputs[self._query_field(inputs)]
        self.index.check_bound()
        passages = Passages(passages=await self.index.search(query, self.k)).to_json_data_model()
        return data.ops.concat(inputs, passages) if self.return_inputs else passages

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the passages as a symbol; with `return_inputs` after the fields of the inputs."""
        self._query_field(inputs)
        passages = data.symbol(data.schema_of(Passages), Passages)
        return data.ops.concat(inputs, passages) if self.return_inputs else passages

    def _query_field(self, inputs: Any) -> str:
        """Return the name of the field that holds the query.

        Raises:
            SchemaError: There is none, or it is ambiguous.
        """
        fields = data.parts_of(data.schema_of(inputs)).fields
        texts = [name for name, schema in fields.items() if schema.get("type") in _TEXT]
        if self.field in texts or (self.field is None and len(texts) == 1):
            return self.field or texts[0]
        hint = "" if self.field is None else did_you_mean(self.field, texts)
        what = "no field=... names the text to search for" if self.field is None else f"no text {self.field!r}"
        has = f"the inputs have {', '.join(texts) or 'none'}"
        raise errors.SchemaError(f"{self.path or self.name}: {what}; {has}.{hint}")

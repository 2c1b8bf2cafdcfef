"""Cache: JSON objects by key, in a SQLite file that processes share, or in memory."""

import errno
import hashlib
import json
import logging
import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, Self

from synmod.errors import ArgumentError, ConfigError, DataError
from synmod.leaves import FrozenDict, Json, aio, check_int, check_seconds, checks_keywords, frozen

from .database import absolute_path, close_database, numbers_of, open_database
from .flights import SingleFlight

_LOG: Final = logging.getLogger("synmod.cache")
_ID: Final = 0x53594E43  # "SYNC", the application_id by which `file` and this room recognise the database
_FORMAT: Final = 2
_BY_USE: Final = "CREATE INDEX entry_by_use ON entry (used, size)"
_SCHEMA: Final = (
    "CREATE TABLE entry (key TEXT PRIMARY KEY, body TEXT, made REAL, used INTEGER, size INTEGER)",
    _BY_USE,
    "CREATE TABLE total (bytes INTEGER)",
    "INSERT INTO total VALUES (0)",
    "CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN UPDATE total SET bytes = bytes + new.size; END",
    "CREATE TRIGGER entry_removed AFTER DELETE ON entry BEGIN UPDATE total SET bytes = bytes - old.size; END",
    f"PRAGMA application_id = {_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)
_COUNT_AGAIN: Final = ("DELETE FROM total", "INSERT INTO total SELECT coalesce(sum(max(size, 0)), 0) FROM entry")
_PUT: Final = "INSERT INTO entry VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM entry), ?)"
_FIND: Final = "SELECT body, made FROM entry WHERE key = ?"
_LIST: Final = "SELECT key, body FROM entry WHERE key BETWEEN ? AND ? ORDER BY used"
_USE: Final = "UPDATE entry SET used = (SELECT max(used) + 1 FROM entry) WHERE key = ?"
_PAIRS: Final = (  # a text of damaged bytes is read as well
    "SELECT CAST(json_extract(body, ?, ?) AS BLOB) FROM entry WHERE json_valid(body) AND json_type(body) = 'object'"
)
_OLDEST: Final = (
    "DELETE FROM entry WHERE rowid = (SELECT rowid FROM entry ORDER BY used LIMIT 1) AND (SELECT bytes FROM total) > ?"
)

_READ_WAIT_S: Final = 0.05  # a read blocks the event loop; it waits only while another process opens or closes the file
_MOST_USES: Final = 4_000
_AT_ONCE: Final = 200  # entries per commit: about 10 ms
_IN_PLACE: Final = 100  # commits until one waits for the disk, in a thread
_DEEPEST: Final = 300  # a schema has at most 200 levels, a value 50, and both are nested in an entry
_ENTRY_BYTES: Final = 256  # what an entry takes in addition to its text

_canonical: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_text: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def key_of(json: Json) -> str:
    """Return the key of a request.

    Args:
        json: The request, as JSON; the order of keys does not matter.

    Returns:
        The SHA-256 (hex) of its canonical text.

    Example:
        >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
        True

    Source: content addressing, as in Git; RFC 8785 for the canonical text.
    """
    return hashlib.sha256(_canonical(json).encode()).hexdigest()


@dataclass(slots=True, eq=False)
class _Entry:
    """An entry to commit, and whether it is stored; None until then."""

    key: str
    body: str
    created: float
    size: int
    is_stored: bool | None = None


class _Database(NamedTuple):
    """The connections of one process; in memory both are the same one."""

    reader: sqlite3.Connection
    reading: threading.RLock
    writer: sqlite3.Connection
    process: int
    place: tuple[int, int] | None = None
    """What identifies the file; None in memory."""
    has_log: bool = False
    """Whether the file has a log beside it, in WAL mode."""


class Cache:
    """Remembers JSON objects by key: in memory, or in a file that other processes may use at the same time.

    A file is SQLite in WAL mode, made when it is first used (0600). An entry for which `keep` has returned survives a
    `kill -9`. Damage loses entries but never raises: a row that is not JSON is not found; a file that is damaged or of
    another format is moved aside (`.corrupt-1`); if nothing can be written, the cache continues in memory. The latter
    two are logged to `synmod.cache`. Without room, the least recently used entry is deleted first.

    One Cache serves any number of modules, tasks, threads and event loops. Copies of a program share it, and a pickle
    opens the same path; a saved program does not contain it, so pass one to the loaded program.

    Args:
        path: The file; missing folders are made. None for memory.
        max_bytes: How many bytes the entries may take together; the file is about as large. None for no limit.
        ttl_s: How many seconds an entry is valid; None for no limit.
        shared: Whether other processes may use the file at the same time. If not, a commit needs no thread: it takes a
            tenth of a millisecond in place, and one in a hundred waits for the disk, in a thread. Nothing is kept in
            files that were removed or replaced meanwhile.

    Attributes:
        flights: The work under way of all users of this cache, by key; equal work runs once.
        fault: Why entries were not kept, the last time; None while all were.

    Raises:
        ConfigError: `path` is not a path, `max_bytes` not an int above 0, or `ttl_s` not a number above 0.

    Example:
        >>> async def main(cache):
        ...     await cache.keep("question", {"answer": "Paris"})
        ...     value = await cache.find("question")
        ...     await cache.aclose()
        ...     return value
        >>> sm.run(main, Cache("answers.db"))
        {'answer': 'Paris'}

    Source: DiskCache; differs: JSON instead of pickle (CVE-2025-69872), damage is a miss.
    """

    __module__ = "synmod.cache"
    __slots__ = (
        *("__weakref__", "_commits", "_database", "_finalizer", "_lock", "_one_writer", "_uses", "_waiting"),
        *("fault", "flights", "max_bytes", "path", "shared", "ttl_s"),
    )

    @checks_keywords
    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | None = 1 << 30,
        ttl_s: float | None = None,
        shared: bool = True,
    ) -> None:
        self.path = None if path is None else absolute_path("Cache", path)
        self.max_bytes = None if max_bytes is None else check_int("Cache: max_bytes", max_bytes, error=ConfigError)
        self.ttl_s = None if ttl_s is None else check_seconds("Cache: ttl_s", ttl_s, error=ConfigError)
        self.shared = shared
        self.flights = SingleFlight()
        self.fault: Exception | None = None
        self._lock = aio.lock()
        self._one_writer = aio.ThreadLimit(1)
        self._database: _Database | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._uses: dict[str, None] = {}
        """The keys found since the last commit, the most recent last."""
        self._waiting: deque[_Entry] = deque()
        self._commits = 0

    async def find(self, key: str, *, ttl_s: float | None = None) -> FrozenDict | None:
        """Return the JSON object under a key.

        Waits only if the file is not open yet, or is being closed; not a cancellation point otherwise.

        Args:
            key: A short ASCII text, such as `key_of` returns.
            ttl_s: How many seconds old it may be; if the cache has a `ttl_s` too, the shorter one applies.

        Returns:
            The frozen JSON object; None if it is missing, too old or damaged.

        Raises:
            ArgumentError: The key is not an ASCII text.
            OSError: Another program keeps a file busy that is not `shared`, or it cannot be read.
        """
        _check_key(key)
        row = None
        for _ in range(2):  # once more, if it was closed in the meantime: an entry that is there is not missing
            database = self._database
            if database is None or database.process != os.getpid():
                database = self._open() if self.path is None else await self._open_in_thread()
            try:
                with database.reading:  # an open statement of another thread would show an older state of the file
                    row = database.reader.execute(_FIND, (key,)).fetchone()
                break
            except sqlite3.ProgrammingError:
                await self._open_in_thread()
            except (sqlite3.Error, UnicodeError) as error:
                if _is_damage(error):
                    await aio.to_thread(self._set_aside, database, error, limiter=self._one_writer)
                elif not self.shared and hasattr(error, "sqlite_errorcode"):  # busy; not a row whose text is damaged
                    row = await aio.to_thread(self._read_patiently, key, limiter=self._one_writer)
                break
        if row is None:
            return None
        value = _read(row[0])
        limits = [limit for limit in (self.ttl_s, ttl_s) if limit is not None]
        if value is None or (limits and not abs(_age(row[1])) <= min(limits)):
            return None
        if self.max_bytes is not None:
            self._uses.pop(key, None)
            self._uses[key] = None
            if len(self._uses) > _MOST_USES:
                self._uses.pop(next(iter(self._uses)), None)
        return value

    async def keep(self, key: str, value: Json) -> bool:
        """Store a JSON object; return when it is committed, together with all that are waiting at that moment.

        A cancellation while it waits does not undo it. An object that cannot be written (a full disk, a file that
        another process locks for 10 s) is not kept, and this is logged.

        Args:
            key: A short ASCII text, such as `key_of` returns.
            value: A JSON object.

        Returns:
            Whether it is kept: in the file, where there is one.

        Raises:
            ArgumentError: The key is not an ASCII text.
            DataError: The value is not a JSON object.
        """
        _check_key(key)
        if not isinstance(value, dict):
            raise DataError(f"A cache remembers JSON objects, not a {type(value).__name__}: write {{'value': ...}}.")
        body = _text(frozen(value, _DEEPEST))
        entry = _Entry(key, body, aio.wall_time(), len(body.encode()) + _ENTRY_BYTES)
        self._waiting.append(entry)
        if self.path is None:
            self._write()
        elif not self.shared:
            await aio.checkpoint()  # commit in the next iteration, with all that are stored in this one
        while entry.is_stored is None:  # a commit that had begun before does not include it
            if self.shared or self._commits % _IN_PLACE == 0:
                await self.flights.run(("commit", os.getpid()), self._write_in_thread)
            else:
                self._write()
        return entry.is_stored

    def _read_patiently(self, key: str) -> Any:
        """Return a row, for which this waits as long as for a commit (OSError: in vain)."""
        try:
            with self._lock:
                return self._open().writer.execute(_FIND, (key,)).fetchone()
        except sqlite3.Error as error:
            raise OSError(f"{self.path}: {error}") from error

    async def _open_in_thread(self) -> _Database:
        """Return the connections of this process, as soon as no thread opens or closes them."""
        return await aio.to_thread(self._open, limiter=self._one_writer)

    async def _write_in_thread(self) -> None:
        """Write in a thread, so that waiting for the disk does not block the event loop."""
        await aio.to_thread(self._write, limiter=self._one_writer)

    def items(self, prefix: str = "") -> list[tuple[str, FrozenDict]]:
        """Return the keys that begin with a text, and their objects, least recently used first, without damaged rows.

        Without `max_bytes` no use is noted, and the order is that of the commits.

        Raises:
            OSError: Another program keeps the file busy, or it cannot be read; the cause is what SQLite raised.
        """
        rows = self._rows(_LIST, (prefix, f"{prefix}\x7f"))
        return [(key, value) for key, body in rows if (value := _read(body)) is not None]

    def change(self, put: Mapping[str, Json], remove: Iterable[str] = ()) -> None:
        """Store and delete objects in one commit, in place.

        Raises:
            OSError: The file cannot be written; the cause is what SQLite raised.
        """
        now, texts = aio.wall_time(), {key: _text(frozen(value, _DEEPEST)) for key, value in put.items()}
        with self._lock:
            database = self._open()
            try:
                with database.writer as writer:
                    writer.execute("BEGIN IMMEDIATE")
                    writer.executemany("DELETE FROM entry WHERE key = ?", [(key,) for key in (*texts, *remove)])
                    for key, body in texts.items():
                        writer.execute(_PUT, (key, body, now, len(body.encode()) + _ENTRY_BYTES))
            except sqlite3.Error as error:
                raise OSError(f"{self.path}: {error}") from error
            if self.path is not None and database.writer is database.reader:
                raise OSError(f"{self.path} cannot be used") from self.fault

    def pairs(self, first: str, second: str) -> list[tuple[Any, Any]]:
        """Return the values of two fields of each object, None for one that it lacks, without reading the rest of it.

        Example:
            >>> cache = Cache()
            >>> aio.drive(cache.keep("k", {"a": 1, "b": [2], "c": "..."}))
            True
            >>> cache.pairs("a", "b")
            [(1, [2])]
        """
        return [tuple(json.loads(row)) for (row,) in self._rows(_PAIRS, (f"$.{first}", f"$.{second}"))]

    def _rows(self, sql: str, parameters: tuple[str, ...]) -> list[Any]:
        """Return the rows of a SELECT (OSError where SQLite cannot read)."""
        try:
            while True:
                database = self._open()
                with database.reading:
                    if self._database is database:  # else another thread has closed it
                        return database.reader.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise OSError(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Close the file; the next use opens it again. What is in memory is kept."""
        with self._lock:
            database = self._database
            if database is None or self.path is None:
                return
            if (self._uses or self._waiting) and database.process == os.getpid():
                self._write()
            self._disconnect(database)

    async def aclose(self) -> None:
        """Close the file without blocking the event loop."""
        await aio.to_thread(self.close, limiter=self._one_writer)

    # -- the database -------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Commit the waiting entries, and note in each whether it is stored."""
        with self._lock:
            entries = [self._waiting.popleft() for _ in range(min(len(self._waiting), _AT_ONCE))]
            is_stored = False
            try:
                is_stored = self._commit(entries)
            finally:
                for entry in entries:
                    entry.is_stored = is_stored

    def _commit(self, entries: Sequence[_Entry]) -> bool:
        """Commit entries, and the uses since the last commit; return whether they were kept.

        Entries beyond `max_bytes` are deleted, least recently used first.
        """
        for _ in range(2):  # once more, in a new file, if the old one is damaged
            database = self._open()
            uses, self._uses = self._uses, {}
            try:
                with database.writer as writer:
                    writer.execute("BEGIN IMMEDIATE")
                    writer.executemany(_USE, [(key,) for key in uses])
                    for entry in entries:
                        writer.execute("DELETE FROM entry WHERE key = ?", (entry.key,))
                        if self.max_bytes is None or entry.size <= self.max_bytes:
                            writer.execute(_PUT, (entry.key, entry.body, entry.created, entry.size))
                        while self.max_bytes is not None and writer.execute(_OLDEST, (self.max_bytes,)).rowcount:
                            pass
                if not self.shared and self._commits and self._commits % _IN_PLACE == 0:
                    writer.execute("PRAGMA wal_checkpoint")
                self._commits += 1
                if not self.shared:
                    self._check_place(database)
                return self.path is None or database.writer is not database.reader
            except (sqlite3.Error, UnicodeError, OSError) as error:
                if not _is_damage(error):
                    self.fault = error
                    _LOG.warning("Cache %s: %s. Entries not kept: %d.", self.path, error, len(entries))
                    return False
                self._set_aside(database, error)
        return False

    def _check_place(self, database: _Database) -> None:
        """Raise an OSError if the open files have lost their names, and with them what is written to them."""
        if self.path is not None and database.place is not None:
            if _place(self.path) != database.place:
                raise OSError(errno.ESTALE, "another file has taken its place", self.path)
            if database.has_log:
                os.stat(f"{self.path}-wal")

    def _open(self) -> _Database:
        """Return the connections of this process; if the file cannot be used, those of a database in memory."""
        if self._database is not None and self._database.process != os.getpid():
            self._database = None  # a forked child neither uses nor closes the parent's, which the finalizer keeps
        with self._lock:
            while self._database is None:
                try:
                    database = _connect(self.path, self.shared)
                except (sqlite3.Error, UnicodeError, OSError) as error:
                    if _is_damage(error) and self._move(error):
                        continue
                    self.fault = error
                    _LOG.warning("Cache %s: %s. It continues in memory.", self.path, error)
                    database = _connect(None, self.shared)
                self._database = database
                self._finalizer = weakref.finalize(
                    self, close_database, database.process, database.reader, database.writer
                )
            return self._database

    def _set_aside(self, database: _Database, error: Exception) -> None:
        """Close a damaged file and move it away, unless another thread has done so; the next use begins a new one."""
        with self._lock:
            if self._database is database:
                self._disconnect(database)
                self._move(error)

    def _disconnect(self, database: _Database) -> None:
        """Close the connections, as soon as no thread reads: the process would crash. A forked child closes nothing."""
        with database.reading if database.process == os.getpid() else nullcontext():
            if self._finalizer is not None:
                self._finalizer()
            self._database = self._finalizer = None

    def _move(self, error: Exception) -> bool:
        """Move a damaged file aside, with its log and the index of that; return whether the path is free."""
        path = self.path
        if path is None:
            return False
        target = next(name for number in count(1) if not os.path.lexists(name := f"{path}.corrupt-{number}"))
        try:
            for part in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.replace(f"{path}{part}", f"{target}{part}")
            os.replace(path, target)
        except FileNotFoundError:  # another process was faster
            return True
        except OSError:
            return False
        _LOG.warning("Cache %s: %s. The file was moved to %s; a new one is begun.", path, error, target)
        return True

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {"max_bytes": self.max_bytes, "ttl_s": self.ttl_s, "shared": self.shared}
        return partial(Cache, self.path, **settings), ()

    def __repr__(self) -> str:
        return f"Cache({self.path!r}, max_bytes={self.max_bytes}, ttl_s={self.ttl_s})"


def _read(body: Any) -> FrozenDict | None:
    """Return the object of a row; None where it is damaged."""
    try:
        value: Any = frozen(json.loads(body), _DEEPEST)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if type(value) is FrozenDict else None


def _age(created: Any) -> float:
    """Return the age of a row in seconds, below 0 if a clock was set back since; NaN if it is damaged."""
    return aio.wall_time() - created if isinstance(created, float | int) else float("nan")


def _connect(path: str | None, shared: bool) -> _Database:
    """Connect to a file, or to a new database in memory.

    Raises:
        sqlite3.Error: SQLite cannot use it, or it is of another format.
        OSError: It cannot be written, or is another database.
    """
    writer = open_database(path, _prepare)
    if path is None:
        return _Database(writer, threading.RLock(), writer, os.getpid())
    try:
        if not shared:
            writer.execute("PRAGMA wal_autocheckpoint = 0")  # a checkpoint waits for the disk
        reader = sqlite3.connect(path, timeout=_READ_WAIT_S, isolation_level=None, check_same_thread=False)
        has_log = writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        return _Database(reader, threading.RLock(), writer, os.getpid(), _place(path), has_log)
    except BaseException:
        writer.close()
        raise


def _place(path: str) -> tuple[int, int]:
    """Return the identity of the file at a path (OSError without one)."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _prepare(writer: sqlite3.Connection) -> None:
    """Check an old database, which must hold our tables and triggers and no others, or make those of a new one."""
    number, version = numbers_of(writer)
    parts = {sql for (sql,) in writer.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")}
    if not number and not parts:
        for statement in _SCHEMA:
            writer.execute(statement)
    elif number != _ID and _BY_USE not in parts:
        raise OSError("it is another database")
    elif (number, version) != (_ID, _FORMAT) or parts != {sql for sql in _SCHEMA if sql.startswith("CREATE")}:
        raise sqlite3.DatabaseError(f"it is damaged, or of another format ({version}, not {_FORMAT})")
    else:
        for statement in _COUNT_AGAIN:
            writer.execute(statement)


def _is_damage(error: Exception) -> bool:
    """Whether an error is about the content of the file, not about its place or another process."""
    if isinstance(error, sqlite3.OperationalError):  # no table of that name; a text that cannot be read has no code
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.DataError):  # closed in the meantime; too large
        return False
    return isinstance(error, sqlite3.Error | UnicodeError)  # UnicodeError: from a message that quotes damaged bytes


def _check_key(key: Any) -> None:
    """Raise an ArgumentError for a key that is not ASCII text, since a file might confuse it with another."""
    if not isinstance(key, str) or not key.isascii():
        raise ArgumentError(f"A key of a cache is a short ASCII text, not {key!r:.100}: key_of(json) makes one.")

"""The file: one SQLite table of JSON text in WAL mode, so that readers never wait for the writer or another process."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from synmod.cache.entries import digest_of
from synmod.cache.faults import Unusable, fault_of
from synmod.cache.place import make_place

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID: Final = 0x53594E43  # "SYNC": application_id, so that `file` and we tell it from other databases
_FORMAT: Final = 1
_WAIT_S: Final = 10.0
_GLANCE_S: Final = 0.002  # a reader stands on an event loop; it has to wait only where the file is opened or closed

_CHECKED_PAGES: Final = 8_192
"""How large a file may be (32 MiB) to be checked whole when it is opened, before anything is added to it."""

_SCHEMA: Final = (
    "CREATE TABLE entry (key TEXT PRIMARY KEY, body TEXT NOT NULL, digest BLOB NOT NULL, made_us INTEGER NOT NULL, "
    "used INTEGER NOT NULL, size INTEGER NOT NULL)",
    "CREATE INDEX entry_by_use ON entry (used, size)",
    "CREATE TABLE total (bytes INTEGER NOT NULL)",
    "CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN UPDATE total SET bytes = bytes + new.size; END",
    "CREATE TRIGGER entry_changed AFTER UPDATE OF size ON entry "
    "BEGIN UPDATE total SET bytes = bytes + new.size - old.size; END",
    "CREATE TRIGGER entry_removed AFTER DELETE ON entry BEGIN UPDATE total SET bytes = bytes - old.size; END",
)
_SCHEMA_TEXTS: Final = {statement.encode() for statement in _SCHEMA}
_READ: Final = "SELECT body, digest, made_us FROM entry WHERE key = ?"
_TOTAL: Final = "SELECT bytes FROM total"
_TOUCH: Final = "UPDATE entry SET used = ? WHERE key = ?"
_WRITE: Final = (
    "INSERT INTO entry (key, body, digest, made_us, used, size) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) "
    "DO UPDATE SET body = excluded.body, digest = excluded.digest, made_us = excluded.made_us, used = excluded.used, "
    "size = excluded.size"
)


class Row(NamedTuple):
    """What is written of an entry."""

    key: str
    text: str
    made_us: int
    size: int


class Database:
    """An open file: one connection that writes, one that reads. Made by one thread; reads come from any.

    Raises:
        Unusable: The file cannot serve; see its `fault`.
        sqlite3.Error, OSError: Likewise, where SQLite or the system say so; see `fault_of`.
    """

    __slots__ = ("_counted", "_path", "_place", "_reader", "_reading", "_writer")

    def __init__(self, path: str) -> None:
        self._path = path
        self._counted = False
        self._reading = threading.Lock()
        make_place(path)
        self._writer = self._reader = _connected(path, _WAIT_S)
        try:
            self._reader = _connected(path, _GLANCE_S)
            _prepare(self._writer)
            self._reader.execute("PRAGMA query_only = ON")
            self._place = _place_of(path)
        except BaseException:
            self.close()
            raise

    @property
    def is_in_place(self) -> bool:
        """Whether the path still leads to this file: somebody may have moved or deleted it."""
        return _place_of(self._path) == self._place

    def read(self, key: str) -> tuple[Any, ...] | None:
        """Give body, digest and time of a row."""
        with self._reading:
            return self._reader.execute(_READ, (key,)).fetchone()

    def write(self, rows: Iterable[Row], touched: Iterable[str], max_bytes: int) -> None:
        """Write rows and uses in one transaction, all or nothing; what there is no room for goes, oldest use first."""
        run = self._writer.execute
        run("BEGIN IMMEDIATE")
        try:
            self._put(rows, touched, max_bytes)
            run("COMMIT")
        except (TypeError, OverflowError) as error:  # a number that is none, or has grown beyond all bounds
            raise Unusable("corrupt", f"a number is damaged ({error})") from None
        finally:
            if self._writer.in_transaction:
                run("ROLLBACK")

    def _put(self, rows: Iterable[Row], touched: Iterable[str], max_bytes: int) -> None:
        """Write rows and uses, the latest use with the highest number."""
        run = self._writer.execute
        used: int = run("SELECT coalesce(max(used), 0) FROM entry").fetchone()[0]
        for key in touched:
            used += 1
            run(_TOUCH, (used, key))
        for key, text, made_us, size in rows:
            used += 1
            run(_WRITE, (key, text, digest_of(key, made_us, text.encode()), made_us, used, size))
            self._make_room(max_bytes)  # row by row, lest the file grow by a whole batch first

    def _make_room(self, max_bytes: int) -> None:
        """Delete the entries whose use is longest ago."""
        run = self._writer.execute
        over = run(_TOTAL).fetchone()[0] - max_bytes
        if over <= 0:
            return
        if not self._counted:  # the sum has no digest, so nothing goes before it was made once more
            run("UPDATE total SET bytes = (SELECT coalesce(sum(size), 0) FROM entry)")
            self._counted = True
            over = run(_TOTAL).fetchone()[0] - max_bytes
        doomed: list[tuple[int]] = []
        for row, size in run("SELECT rowid, size FROM entry ORDER BY used, rowid") if over > 0 else ():
            doomed.append((row,))
            over -= size
            if over <= 0:
                break
        self._writer.executemany("DELETE FROM entry WHERE rowid = ?", doomed)

    def close(self) -> None:
        """Let go of the file; the last one who does takes the log in."""
        with self._reading:
            self._reader.close()
        self._writer.close()


def _connected(path: str, wait_s: float) -> sqlite3.Connection:
    """Connect; text comes as bytes, since damaged text may be none."""
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
    connection.text_factory = bytes
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, check those of an old one, and see that it can be written."""
    run = connection.execute
    ends = time.monotonic() + _WAIT_S
    while True:
        try:
            run("PRAGMA cell_size_check = ON")
            run("PRAGMA trusted_schema = OFF")
            run("BEGIN IMMEDIATE")
            _check_content(connection)
            run("COMMIT")
            if run("PRAGMA journal_mode = WAL").fetchone()[0] != b"wal":
                raise Unusable("unwritable", "the file system has no shared memory, which a log needs")
            run("PRAGMA synchronous = NORMAL")  # a crash of the process loses nothing; of the machine, the last moments
            return
        except sqlite3.Error as error:
            if connection.in_transaction:
                run("ROLLBACK")
            if fault_of(error) != "busy" or time.monotonic() > ends:  # switching to WAL does not wait by itself
                raise
            time.sleep(0.01)


def _check_content(connection: sqlite3.Connection) -> None:
    """Refuse what is not a cache of this format; an empty file becomes one."""
    run = connection.execute
    number, version = (run(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    found = {sql for (sql,) in run("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}
    if not found and (number, version) == (0, 0):
        for statement in _SCHEMA:
            run(statement)
        run("INSERT INTO total VALUES (0)")
        run(f"PRAGMA application_id = {_ID}")
        run(f"PRAGMA user_version = {_FORMAT}")
        return
    if number != _ID and found.isdisjoint(_SCHEMA_TEXTS):
        raise Unusable("unwritable", "it is another database")
    if number == _ID and version > _FORMAT:
        raise Unusable("corrupt", f"it is of format {version}, newer than {_FORMAT}")
    if (number, version) != (_ID, _FORMAT) or found != _SCHEMA_TEXTS:
        raise Unusable("corrupt", "its tables are not those of a cache")
    if run("PRAGMA page_count").fetchone()[0] <= _CHECKED_PAGES and run("PRAGMA quick_check(1)").fetchone()[0] != b"ok":
        raise Unusable("corrupt", "it is damaged")


def _place_of(path: str) -> tuple[int, int] | None:
    """Tell which file a path leads to."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino

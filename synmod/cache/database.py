"""SQLite databases in the manner of this library: made with their tables, in WAL mode, closed by their own process."""

import os
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from synmod.errors import ArgumentError, ConfigError
from synmod.leaves import files, must_be

T = TypeVar("T")

_WAIT_S: Final = 10.0  # for another process that writes


def absolute_path(what: str, path: Any) -> str:
    """Return the absolute path of a file, so that a later change of the working folder does not matter.

    Raises:
        ConfigError: It is not a path.
    """
    try:
        text = files.path_text(path)
    except ArgumentError:
        text = ""
    if not text:
        raise ConfigError(must_be(f"{what}: path", "the path of a file, or None for memory", path))
    return os.path.abspath(text)


def open_database(path: str | None, prepare: Callable[[sqlite3.Connection], object]) -> sqlite3.Connection:
    """Connect to a file, or to a new database in memory; threads may share the connection, one at a time.

    Args:
        path: The file, which is made with its folders; None for memory.
        prepare: Checks an old database, or makes the tables of a new one, in one transaction.

    Raises:
        sqlite3.Error: SQLite cannot use the file, or raised by `prepare`.
        OSError: The file cannot be written, or raised by `prepare`.
    """
    if path is not None:
        files.make_file(path)
    connection = sqlite3.connect(path or ":memory:", timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = OFF")  # new tables hold nothing yet that could be lost
        in_transaction(connection, prepare)
        if path is not None:
            _use_wal(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode; a file system without shared memory keeps the older journal.

    Tries again while another process does the same, since SQLite then fails without waiting.
    """
    ends = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL")  # only a crash of the machine may lose the last moments


def numbers_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the version of the format; zeros for a new database."""
    number, version = (connection.execute(f"PRAGMA {x}").fetchone()[0] for x in ("application_id", "user_version"))
    return number, version


def in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run a function in one transaction."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        return work(connection)


def close_database(process: int, *connections: sqlite3.Connection) -> None:
    """Close connections, in the process that made them: a forked child leaves those of its parent."""
    if process == os.getpid():
        for connection in connections:
            connection.close()

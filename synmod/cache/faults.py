"""What a failure of SQLite means for a cache: wait, go elsewhere, or begin anew."""

from __future__ import annotations

import sqlite3
from typing import Final, Literal

Fault = Literal["busy", "unwritable", "corrupt"]

_FAULTS: Final[dict[int, Fault]] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_PROTOCOL: "busy",
    sqlite3.SQLITE_AUTH: "unwritable",
    sqlite3.SQLITE_CANTOPEN: "unwritable",
    sqlite3.SQLITE_FULL: "unwritable",
    sqlite3.SQLITE_IOERR: "unwritable",
    sqlite3.SQLITE_NOLFS: "unwritable",
    sqlite3.SQLITE_NOMEM: "unwritable",
    sqlite3.SQLITE_PERM: "unwritable",
    sqlite3.SQLITE_READONLY: "unwritable",
}


class Unusable(Exception):
    """A file that cannot serve.

    Attributes:
        fault: Why: `busy`, `unwritable` or `corrupt`.
    """

    def __init__(self, fault: Fault, why: str) -> None:
        super().__init__(why)
        self.fault: Fault = fault


def fault_of(error: Exception) -> Fault:
    """Tell what an error of SQLite or of the system means; whatever is not about the place is about the content."""
    if isinstance(error, Unusable):
        return error.fault
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):  # closed meanwhile
        return "busy"
    if isinstance(error, sqlite3.Error):
        return _FAULTS.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF, "corrupt")
    return "corrupt" if isinstance(error, UnicodeError) else "unwritable"

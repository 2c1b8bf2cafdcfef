"""`Table`: a SQLite file that a model may read, one SELECT at a time."""

import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

from synmod.errors import ConfigError, ToolError
from synmod.leaves import aio, check_int, check_seconds, did_you_mean, mend, must_be
from synmod.registry import register_own

from .retrieve import Index

T = TypeVar("T")

_STEPS: Final = 1_000  # of SQLite between two looks at the clock
_MOST_CHARACTERS: Final = 100_000  # of a result, and of the description
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # bytes of a value
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,  # long patterns take exponential time, which nothing can interrupt
}
_FORBIDDEN_FUNCTIONS: Final = ("load_extension", "fts3_tokenizer")
_OF_JSON: Final = ("json_each", "json_tree")


@register_own()
class Table(Index):
    """A SQLite file as a tool of an `Agent`, read-only: the model writes one SELECT and reads the rows.

    Its description holds the schema. It is held by reference: a saved program has its name, and
    `sm.load(path, indexes={name: table})` supplies a live one. It has no `search`.

    Args:
        path: The file, which must exist.
        tables: The names of the tables and views that can be read, a view with the tables that it reads; None for all.
        seconds: How long a query may take.
        rows: How many rows a query returns at most.
        name: The name of the tool and in a saved file; by default that of the file without its ending.

    Raises:
        ConfigError: The file cannot be read, has no such table ('Did you mean'), or an argument is invalid.
        ToolError: When called: SQLite refuses the query, it reads something else, takes longer than `seconds`, or its
            result is too long. A model reads it and tries again.

    Example:
        >>> import sqlite3, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "shop.db")
        >>> connection = sqlite3.connect(path)
        >>> rows = connection.executescript("CREATE TABLE sale (item, price); INSERT INTO sale VALUES ('tea', 3)")
        >>> connection.close()
        >>> sm.run(Table(path), "SELECT item, price FROM sale")
        {'columns': ['item', 'price'], 'rows': [['tea', 3]], 'more': False}

    Source: SQLite's authorizer and progress handler, as in Datasette.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        tables: Iterable[str] | None = None,
        seconds: float = 2,
        rows: int = 100,
        name: str | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.seconds = check_seconds("Table: seconds", seconds, error=ConfigError)
        self.rows = check_int("Table: rows", rows, error=ConfigError)
        self.name = name or self.path.stem
        try:
            schema = self._read(_schema)
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(f"Table: {self.path}: {error}.") from None
        if isinstance(tables, str):
            raise ConfigError(must_be("Table: tables", "a list of names", tables))
        names = list(schema) if tables is None else list(tables)
        for table in names:
            if table not in schema:
                raise ConfigError(f"Table: {self.path} has no table {table!r}.{did_you_mean(table, schema)}")
        self.tables = tuple(names)
        self._virtual = [name for name in names if schema[name].upper().startswith("CREATE VIRTUAL")]
        parts = [name for name in schema if name.startswith(tuple(f"{table}_" for table in self._virtual))]
        self._readable = frozenset(name.casefold() for name in (*names, *parts, *_OF_JSON))
        self._hidden = frozenset(map(str.casefold, schema)) - self._readable
        head = "Run one SELECT of SQLite, read-only, and return its rows. The tables:"
        self.description = "\n".join([head, *(schema[table] for table in names)])[:_MOST_CHARACTERS]

    @property
    def __name__(self) -> str:
        """The name of the tool."""
        return re.sub(r"^(?=\d)|[^A-Za-z0-9_]", "_", self.name)[:64]

    async def __call__(self, sql: str) -> dict[str, Any]:
        """Run one SELECT.

        Args:
            sql: The statement.

        Returns:
            `columns`, `rows`, and `more`, whether rows were left out.

        Raises:
            ToolError: SQLite refuses the query, it takes too long, or its result is too long.
            ConfigError: The table was loaded by its name alone.
        """
        self.check_bound()
        try:
            return await aio.to_thread(self._read, self._select, sql, abandon=True)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError, UnicodeError, ValueError) as error:
            raise ToolError(f"{self.name}: {mend(str(error))}.") from None

    def _read(self, work: Callable[..., T], *args: Any) -> T:
        """Return what a function returns for a connection of its own, which can only read."""
        address = f"{self.path.as_uri()}?mode=ro"
        connection = sqlite3.connect(address, timeout=self.seconds, uri=True, isolation_level=None)
        try:
            return work(connection, *args)
        finally:
            connection.close()

    def _select(self, connection: sqlite3.Connection, sql: str) -> dict[str, Any]:
        """Return the first rows of a statement.

        Raises:
            sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError: SQLite refuses the statement.
            ToolError: It takes too long, or the result is too long.
        """
        ends = time.monotonic() + self.seconds
        connection.text_factory = _decode
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        for table in (*self._virtual, *_OF_JSON):  # connects a virtual table, which the authorizer would refuse
            quoted = table.replace('"', '""')
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0').fetchall()  # noqa: S608  # its own table
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
        try:
            cursor = connection.execute(sql)
            columns = [str(column[0]) for column in cursor.description or ()]
            if not columns:
                raise ToolError(f"{self.name}: that is not a SELECT.")
            rows, size = list[list[Any]](), 0
            while len(rows) < self.rows and (row := cursor.fetchone()):
                rows.append([_plain(value) for value in row])
                size += sum(len(value) if isinstance(value, str) else 8 for value in rows[-1])
                if size > _MOST_CHARACTERS:
                    raise ToolError(f"{self.name}: the result has over {_MOST_CHARACTERS:,} characters; select less.")
            return {"columns": columns, "rows": rows, "more": cursor.fetchone() is not None}
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise ToolError(f"{self.name}: no result within {self.seconds:g} s; select less.") from None
            raise

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, _: str | None
    ) -> int:
        """Return whether SQLite may do something: read a table on the list, or call a function."""
        table = (first or "").casefold()
        is_allowed = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
        if action == sqlite3.SQLITE_READ:  # without a database: `count(*)` of a table, or a part of the query itself
            is_part = database is None and table not in self._hidden and not table.startswith(("sqlite_", "pragma_"))
            is_allowed = is_part or table in self._readable
        elif action == sqlite3.SQLITE_FUNCTION:
            is_allowed = second not in _FORBIDDEN_FUNCTIONS
        elif action == sqlite3.SQLITE_PRAGMA:
            is_allowed = first == "data_version"  # full-text search reads it
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the statement that made each table and view, by name."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
    return {name: sql for name, sql in rows if not name.startswith("sqlite_")}


def _decode(text: bytes) -> str:
    """Return a text of SQLite, which may hold any bytes."""
    return text.decode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """Return a value of SQLite as JSON: bytes by their number, infinity as text."""
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value

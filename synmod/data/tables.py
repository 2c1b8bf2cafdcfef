"""Rows of files: the content of a table as JSON, row by row.

Each reader takes the bytes of a file and yields the place of each row with the row, or with the error that reading it
raised, so that all faults of a file are listed at once. Values that JSON lacks are written as pydantic writes them.
"""

import csv
import io
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast

from synmod.errors import ConfigError, DataError
from synmod.leaves import is_object, parse_json

from .declaring import plain_json

Rows = Iterator[tuple[str, Any]]


class Cells(dict[str, Any]):
    """A row of a CSV file or a table: an empty cell is nothing, and a text may be JSON of another type."""


@contextmanager
def import_for(what: str, install: str) -> Generator[None]:
    """Turn the error of an import inside the block into one that names what pip installs.

    Args:
        what: The name of what needs the library.
        install: The argument of pip.

    Raises:
        ConfigError: The library is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{what} needs another library ({error}): pip install {install}.") from None


def _decode(content: bytes) -> str:
    """Return the text of a file in UTF-8 (DataError for another encoding)."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"line {line}: the text is not in UTF-8 ({error.reason}); save it as UTF-8.") from None


# -- JSON --------------------------------------------------------------------------------------------------------------


def _rows_of_lines(content: bytes) -> Rows:
    """Yield the rows of a file with JSON in each line."""
    for number, line in enumerate(_decode(content).split("\n"), 1):
        if line.strip():
            yield f"line {number}", _parse_line(line)


def _rows_of_json(content: bytes) -> Rows:
    """Yield the rows of a JSON file (DataError where it holds something else than a list)."""
    text = _decode(content)
    try:
        rows: Any = parse_json(text)
    except ValueError as error:
        first = text.strip().partition("\n")[0]
        hint = "" if isinstance(_parse_line(first), Exception) else " A file of one row per line is called .jsonl."
        raise DataError(f"{error}{hint}") from None
    if is_object(rows) and "calls" in rows:  # a trace is one row
        rows = [rows]
    if not isinstance(rows, list):
        shape = f"an object of {', '.join(map(repr, rows)):.100}" if is_object(rows) else f"{rows!r:.100}"
        raise DataError(f"the file holds {shape}; wanted a list of rows, [{{...}}, {{...}}].")
    yield from ((f"row {number}", row) for number, row in enumerate(cast("list[Any]", rows)))


def _parse_line(line: str) -> Any:
    """Return the row in a line of JSON, or the error that it is."""
    try:
        row = parse_json(line)
    except ValueError as error:
        line = line.rstrip()
        has_comma = line.endswith(",") and not isinstance(_parse_line(line[:-1]), Exception)
        return DataError(f"{error}{' Leave out the comma at the end of the line.' if has_comma else ''}")
    if isinstance(row, list):
        return DataError("the line is a list; write one row per line, {...}, or call a file that is one list .json.")
    return row


# -- texts with separators ---------------------------------------------------------------------------------------------


def _rows_of_csv(content: bytes, delimiters: str = ",;\t") -> Rows:
    """Yield the rows of a CSV file.

    Args:
        content: The file.
        delimiters: The first of them that the header contains separates the cells.

    Raises:
        DataError: No header, one that names a column twice, or a line that cannot be read.
    """
    text = _decode(content)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # of the process; a lower one would cut documents
    first = text.partition("\n")[0]
    delimiter = next((mark for mark in delimiters if mark in first), delimiters[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, cast("list[str]", []))
        _check_header(header)
        for cells in filter(None, reader):
            fault = None if len(cells) == len(header) else DataError(f"{len(cells)} cells for {len(header)} columns.")
            yield f"line {reader.line_num}", fault or Cells(zip(header, cells, strict=True))
    except csv.Error as error:
        is_open = "end of data" in str(error)  # at the end of the file, wherever the cell begins
        hint = " (a cell begins with a quotation mark, and none ends it: double those in a text)" if is_open else ""
        raise DataError(f"line {reader.line_num}: {error}{hint}") from None


def _check_header(names: list[str]) -> None:
    """Raise DataError unless there are columns, each named once."""
    if not names or len(set(names)) != len(names):
        raise DataError(f"the first line names the columns, each once; it is {names!r:.200}.")


# -- YAML --------------------------------------------------------------------------------------------------------------


def _rows_of_yaml(content: bytes) -> Rows:
    """Yield the rows of a YAML file that holds a list; its tags make JSON, dates and bytes, and nothing else.

    Raises:
        ConfigError: PyYAML is not installed.
        DataError: It is not YAML, not a list, or has an alias: aliases of aliases grow without end.
    """
    with import_for("load_examples: a YAML file", "pyyaml"):
        import yaml as library
    yaml: Any = library
    text, kind = _decode(content), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, kind) if "*" in text else ():
            if isinstance(event, yaml.AliasEvent):
                raise DataError(f"line {event.start_mark.line + 1}: *{event.anchor} is an alias; write its value out.")
        loader = kind(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f"line {mark.line + 1}: "
        raise DataError(f"{line}{getattr(error, 'problem', None) or error}") from None
    if not isinstance(root, yaml.SequenceNode):
        raise DataError("the file does not hold a list of rows; begin each with a dash: `- text: ...`.")
    for node in root.value:
        yield f"line {node.start_mark.line + 1}", _read_or_error(loader.construct_document, node)


def _read_or_error(read: Callable[[Any], Any], x: Any) -> Any:
    """Return a row that is read from something as JSON, or the error that reading it raised."""
    try:
        return plain_json(read(x))
    except DataError as error:
        return error
    except Exception as error:  # noqa: BLE001  # what the constructors of dates, numbers and texts raise
        return DataError(f"it cannot be read: {getattr(error, 'problem', None) or error}")


# -- Arrow -------------------------------------------------------------------------------------------------------------


def _rows_of_arrow(content: bytes, kind: str = "feather") -> Rows:
    """Yield the rows of a file of Apache Arrow, batch by batch.

    Args:
        content: The file.
        kind: `"parquet"`; or `"feather"`, for files and streams of Arrow itself, too.

    Raises:
        ConfigError: pyarrow is not installed.
        DataError: The file is broken, or names a column twice.
    """
    with import_for(f"load_examples: a {kind} file", "pyarrow"):
        import pyarrow as pa  # pyright: ignore[reportMissingImports]  # not in every environment
        from pyarrow import feather, parquet  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    arrow, library = cast("tuple[Any, Any]", (pa, parquet if kind == "parquet" else feather))
    source, number = arrow.BufferReader(content), 0
    try:
        if kind == "parquet":
            file = library.ParquetFile(source)
            names, batches = file.schema_arrow.names, file.iter_batches(batch_size=1000)
        else:
            is_file = content.startswith((b"ARROW1", b"FEA1"))  # a stream begins with its first message
            table = library.read_table(source) if is_file else arrow.ipc.open_stream(source).read_all()
            names, batches = table.schema.names, table.to_batches()
        _check_header(names)
        for batch in batches:
            for row in _rows_of_batch(batch):
                yield f"row {number}", row
                number += 1
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(f"not a whole {kind} file; the fault is after {number} rows: {error}") from None


def _rows_of_batch(batch: Any) -> Iterator[Any]:
    """Yield the rows of a batch as cells, each or the error that it is; a number that is NaN is missing."""

    def read(row: dict[str, Any]) -> dict[str, Any]:
        cells = [{name: None if isinstance(cell, float) and cell != cell else cell} for name, cell in row.items()]
        # each cell alone, so that an error has the name of its column
        return {name: value for cell in cells for name, value in plain_json(cell).items()}

    batch.validate(full=True)  # without it, what a broken file holds is read from anywhere in memory
    for cells in batch.to_pylist():
        row = _read_or_error(read, cells)
        yield row if isinstance(row, DataError) else Cells(row)


ROW_READERS: Final[Mapping[str, Callable[[bytes], Rows]]] = {
    ".jsonl": _rows_of_lines,
    ".json": _rows_of_json,
    ".csv": _rows_of_csv,
    ".tsv": partial(_rows_of_csv, delimiters="\t"),
    ".yaml": _rows_of_yaml,
    ".yml": _rows_of_yaml,
    ".parquet": partial(_rows_of_arrow, kind="parquet"),
    ".arrow": _rows_of_arrow,
    ".feather": _rows_of_arrow,
}
"""Readers of files by their suffix: each yields the place of a row, and the row or the error that it is."""

"""Examples: read the rows of a data set in any form, and split them."""

import os
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import count, islice, starmap
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

from synmod import leaves
from synmod.data import ROW_READERS, Cells, DataModel, JsonDataModel, SymbolicDataModel, import_for, schema_of
from synmod.errors import ArgumentError, DataError, SchemaError, SynmodWarning, TrainerError, notes_of
from synmod.flow import in_thread
from synmod.module import Module
from synmod.scope import Tracer

from .rows import Columns, Example, as_json, digest_of, input_names, names_in, outputs_of, with_id

T = TypeVar("T")
_MOST_HELD_OUT: Final = 200
_FAULTS_SHOWN: Final = 50
_PLACES_SHOWN: Final = 3
_AT_ONCE: Final = 500  # rows that are read before other tasks run


# -- reading -----------------------------------------------------------------------------------------------------------


@leaves.checks_keywords
async def load_examples(
    source: Any,
    y: Any = None,
    *,
    program: Module | None = None,
    rename: Mapping[str, str] | None = None,
    id: str | None = None,  # noqa: A002  # the word of the contract
    group: str | None = None,
    limit: int | None = None,
    module: str | None = None,
    split: str | None = None,
) -> list[Example]:
    """Read rows of any form, and check all of them before anything is run.

    Args:
        source: Data models, dicts, other records (pydantic models, dataclasses, named tuples), `Example`s or
            `(inputs, target)` pairs in a list or any other iterable, sync or async; a path that ends with `.jsonl`,
            `.json`, `.csv`, `.tsv`, `.yaml` or `.yml` (PyYAML), `.parquet`, `.arrow` or `.feather` (pyarrow); a table
            of pandas, polars, pyarrow, or Hugging Face; `"hf:name"` or `"hf:name:configuration"`, a data set of the
            Hugging Face hub (extra `datasets`). Dates and times become texts, decimals numbers.
        y: The name of the target field, or a list of such names; or the targets, one per row.
        program: Its inputs decide which fields are inputs; without `y` the others are the target.
        rename: New names of columns by old ones.
        id: The column that names the rows.
        group: The column of what belongs together, and stays on one side of a split.
        limit: How many rows are read at most.
        module: The name or path of a module: the source is a file or list of `sm.hooks_lib.Recorder`, or a trace or the
            JSON of one, and each call of the module that returned something is a row, with its outputs as the target.
        split: The split of a data set of the hub, such as `"train"`; None where it has only one.

    Returns:
        The rows; with a program, their inputs are data models.

    Raises:
        DataError: Rows that cannot be read, or whose target is not JSON; lists all of them. The file or the data set
            cannot be read, or has no call of the module.
        ArgumentError: Rows cannot be read from the source, `y` is neither names nor targets, targets and
            rows differ in number, or the limit is not a whole number; `y` beside `module`, or `split` for anything but
            a data set of the hub, which has several.
        ConfigError: The library that reads such a file is not installed; has the command that installs it.
        OSError: The file cannot be read.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     text: str
        >>> rows = [{"text": "Where is it?", "label": "shipping"}]
        >>> sm.run(load_examples(rows, "label"))[0].target
        {'label': 'shipping'}

    Source: Keras data adapters, DSPy's `DataLoader`; differs: nothing is imported, all faults at once.
    """
    if limit is not None:
        leaves.check_int("load_examples: limit", limit, 0)
    if module is None:
        records = await _read_records(source, limit, split)
    elif y is not None:
        raise ArgumentError("load_examples: the outputs of the module's calls are the target; leave out y or module.")
    else:
        recorded = source.to_json() if isinstance(source, Tracer) else source
        rows = await _read_records([recorded] if leaves.is_object(recorded) else recorded, None, split)
        records = _calls_of(module, rows, [] if program is None else input_names(program))[:limit]
    renamed = dict(rename or {})
    is_name = y is None or isinstance(y, str)
    fields = {} if is_name else {renamed.get(name, name): None for _, row in records for name in names_in(row)}
    names, targets = _names_or_rows(y, fields if records else None)
    if targets is not None and (len(targets) < len(records) or (limit is None and len(targets) > len(records))):
        hint = leaves.did_you_mean(targets[0], fields) if targets and isinstance(targets[0], str) else ""
        raise ArgumentError(
            f"load_examples: {len(targets)} targets for {len(records)} rows; give one each, or names of fields.{hint}"
        )
    rows = records
    if targets is not None:  # an error that reading a row raised stays
        pairs = zip(records, targets, strict=False)
        rows = [(place, row if isinstance(row, Exception) else (row, target)) for (place, row), target in pairs]
    outputs = await outputs_of(program, next((_inputs_in(row) for _, row in rows), None))
    return await read_examples(rows, Columns(program, outputs, names, renamed, id, group), are_json=True)


async def rows_without_targets(source: Any, program: Module) -> list[Example]:
    """Return the rows that a program is called with; other fields are extra. Errors of `load_examples`."""
    return await read_examples(await _read_records(source), Columns(program, targets=()))


async def read_examples(rows: Sequence[tuple[str, Any]], columns: Columns, *, are_json: bool = False) -> list[Example]:
    """Return rows as examples.

    Args:
        rows: Each with its place, or the error that reading it raised.
        columns: Read them.
        are_json: Whether targets must be JSON.

    Raises:
        DataError: Rows that cannot be read; lists all of them, equal faults once.
    """
    examples: list[Example] = []
    faults: dict[str, list[str]] = {}
    notes: dict[str, None] = {}
    for number, (place, record) in enumerate(rows):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await leaves.aio.checkpoint()
        try:
            if isinstance(record, Exception):
                raise record
            example = columns.example(record)
            for leaf in leaves.leaves(example.target) if are_json else ():
                if not isinstance(leaf, str):
                    leaves.frozen({"target": leaf})  # which raises for what is not JSON
            examples.append(example)
        except (DataError, SchemaError, ArgumentError) as error:
            faults.setdefault(str(error), []).append(place)
            notes |= dict.fromkeys(notes_of(error))
    if faults:
        raise DataError("\n".join([list_faults(faults, len(rows), "cannot be read"), *notes]))
    return examples


async def rows_to_score(source: Any, y: Any, program: Module, *, builds: bool) -> tuple[Any, Any]:
    """Return the rows of an evaluation, with ids, and the nest of symbols that the program returns.

    A list, a table or a file is read and checked before anything is run. Another iterable is a stream: each of its rows
    is read when there is room for it, and memory does not grow with their number.

    Args:
        source: As for `load_examples`.
        y: Names of target fields, or the targets; with them, streams are read before, too.
        program: The program to evaluate.
        builds: Whether it may be built here.

    Raises:
        ArgumentError: It has no rows that can be read, a tuple of another length, or an id twice.
        DataError: Rows that cannot be read; lists all of them.
    """
    is_file = isinstance(source, str | os.PathLike)
    table: Any = cast("Any", source) if is_file else _table(source)
    if y is not None or is_file:
        rows = await load_examples(table, y, program=program)
        outputs = await outputs_of(program, rows[0].inputs if rows else None, builds=builds)
    elif not isinstance(table, Sized):
        outputs = await outputs_of(program, builds=builds)
        columns, ids, numbers = Columns(program, outputs, keeps_inputs=True), set[str](), count()
        return flat_map(lambda row: (columns.read(next(numbers), row, ids),), table), outputs
    else:
        records, ids = list(cast("Iterable[Any]", table)), set[str]()
        outputs = await outputs_of(program, next(map(_inputs_in, records), None), builds=builds)
        columns = Columns(program, outputs, keeps_inputs=True)
        for number, row in enumerate(records):
            columns.check_shape(number, row, ids)
        rows = await read_examples([(f"row {number}", row) for number, row in enumerate(records)], columns)
    return [*starmap(with_id, enumerate(rows))], outputs


def flat_map(work: Callable[[Any], Iterable[T]], rows: Any) -> Iterator[T] | AsyncIterator[T]:
    """Yield all that a function returns for each row of an iterable, sync or async, when the row is taken."""

    async def later() -> AsyncIterator[T]:
        try:
            async for row in rows:
                for item in work(row):
                    yield item
        finally:
            await leaves.close_generator(rows)

    return later() if isinstance(rows, AsyncIterable) else (item for row in rows for item in work(row))


def list_faults(faults: Mapping[str, Sequence[str]], rows: int, what: str) -> str:
    """Return a text that lists the faults of rows, each with its first places.

    Args:
        faults: Places by the text of their fault.
        rows: How many rows there are.
        what: The predicate of the faulty rows, such as `cannot be read`.
    """
    lines = [f"{_places(places)}: {text}" for text, places in islice(faults.items(), _FAULTS_SHOWN)]
    more = [f"and {len(faults) - _FAULTS_SHOWN} more faults"] if len(faults) > _FAULTS_SHOWN else []
    return "\n  ".join([f"{sum(map(len, faults.values()))} of {rows} rows {what}:", *lines, *more])


def _places(places: Sequence[str]) -> str:
    """Return the first places of a fault as text."""
    more = f" and {len(places) - _PLACES_SHOWN} more" if len(places) > _PLACES_SHOWN else ""
    return f"{', '.join(places[:_PLACES_SHOWN])}{more}"


def _inputs_in(row: Any) -> Any:
    """Return the inputs of a row that has been read but not split."""
    if isinstance(row, Example):
        return row.inputs
    return cast("Any", row)[0] if isinstance(row, tuple) and row else cast("Any", row)


def _names_or_rows(y: Any, fields: Iterable[str] | None) -> tuple[tuple[str, ...] | None, Sequence[Any] | None]:
    """Return the names of target fields, or the targets themselves.

    Args:
        y: The argument of `load_examples`.
        fields: The names of the fields of all rows, to tell names from targets that are texts; None without rows.

    Raises:
        ArgumentError: It is neither.
    """
    if y is None or isinstance(y, str):
        return None if y is None else (y,), None
    if isinstance(y, Module | Mapping) or not isinstance(y, Iterable):
        raise ArgumentError(
            f"load_examples: y is a {type(cast('Any', y)).__name__}; give the name of a field, a list of names, or one "
            "target per row. A program goes into program=."
        )
    targets = list(cast("Iterable[Any]", y))
    if targets and all(isinstance(target, str) and (fields is None or target in fields) for target in targets):
        return tuple(targets), None
    return None, targets


async def _read_records(source: Any, limit: int | None = None, split: str | None = None) -> list[tuple[str, Any]]:
    """Return each row, or the error that reading it raised, with its place.

    Raises:
        ArgumentError: Nothing that rows can be read from.
    """
    if isinstance(source, str) and source.startswith("hf:"):
        source = await _load_from_hub(source, split)
    elif split is not None:
        raise ArgumentError(f"load_examples: split= is for data sets of the hub, 'hf:name'; got {source!r:.100}.")
    if isinstance(source, str | os.PathLike):
        rows = _file(Path(cast("str", source)))
        return await in_thread(list[tuple[str, Any]])(islice(rows, limit))  # a large file takes seconds
    rows: Any = _table(source)
    if not is_data(rows):
        raise ArgumentError(
            f"load_examples: the source is a {type(source).__name__}; give a list of rows ([x] for a single one), "
            "a file, or a table."
        )
    if not isinstance(rows, AsyncIterable):
        return [(f"row {number}", row) for number, row in enumerate(islice(cast("Iterable[Any]", rows), limit))]
    records: list[tuple[str, Any]] = []
    if limit != 0:
        async for row in cast("AsyncIterable[Any]", rows):
            records.append((f"row {len(records)}", row))
            if len(records) == limit:
                break
    return records


async def _load_from_hub(source: str, split: str | None) -> Any:
    """Return a data set of the Hugging Face hub, loaded in a thread; errors of `load_examples`."""
    with import_for(f"load_examples: {source}", "'synmod-lm[datasets]'"):
        import datasets  # pyright: ignore[reportMissingImports]  # not in every environment
    library = cast("Any", datasets)
    _, name, configuration, *_ = [*source.split(":", 2), None]
    try:
        rows = await in_thread(library.load_dataset)(name, configuration, split=split)
    except Exception as error:  # of the hub, of files, of the network
        raise DataError(f"load_examples: {source}: {error}") from error
    if isinstance(rows, Mapping):
        splits = cast("Mapping[str, Any]", rows)
        if len(splits) != 1:
            raise ArgumentError(f"load_examples: {source} has several splits: give split=, one of {', '.join(splits)}.")
        return next(iter(splits.values()))
    return rows


def _calls_of(module: str, records: Iterable[tuple[str, Any]], names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the calls of a module that returned something as examples.

    Args:
        module: Its name or path, or the end of its path.
        records: Rows of a Recorder, or traces as JSON.
        names: The names of the module's inputs, for calls by position and by name at once.

    Raises:
        DataError: There are none.
    """
    begun: dict[Any, Any] = {}
    paths: dict[str, None] = {}
    rows: list[tuple[str, Any]] = []
    for place, record in records:
        try:
            for call in () if isinstance(record, Exception) else _calls_in(record, begun):
                name, path, outputs = call["name"], call["path"], call.get("outputs")
                paths.update(dict.fromkeys((str(path or name), str(name))))
                if outputs is not None and (module in (name, path) or path.endswith(f"/{module}")):
                    rows.append((place, Example(None, _arguments_of(call, names), outputs)))
            rows += [(place, record)] if isinstance(record, Exception) else []
        except DataError as error:
            rows.append((place, error))
        except (AttributeError, KeyError, TypeError):
            rows.append((place, DataError("it is neither a record of a Recorder nor a trace.")))
    if not rows:
        hint = leaves.did_you_mean(module, paths) or f" It has {', '.join(paths) or 'no calls'}."
        raise DataError(f"load_examples: there is no call of the module {module!r} with outputs.{hint}")
    return rows


def _calls_in(record: Any, begun: dict[Any, Any]) -> Iterator[Any]:
    """Yield the calls of a trace, or the call that ends with an event; `begun` has the events of those that began."""
    if record.get("event") == "call_begin":
        begun[record["call_id"]] = record
    elif record.get("event") == "call_end":
        yield {**begun.pop(record["call_id"], {}), **record}
    calls = [*reversed(record.get("calls", ()))]
    while calls:
        yield (call := calls.pop())
        calls += reversed(call["children"])


def _arguments_of(call: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the arguments of a recorded call: the only one itself, several by name, or by position without names.

    Raises:
        DataError: Some are by name, and the names of the others are not known.
    """
    positional = call["inputs"]
    named = {name: value for name, value in call.get("kwargs", {}).items() if name != "training"}
    if len(positional) + len(named) == 1:
        argument = [*positional, *named.values()][0]
        if len(names) < 2 or not leaves.is_object(argument) or not argument.keys().isdisjoint(names):
            return argument
    if len(positional) <= len(names) or not positional:
        return {**dict(zip(names, positional, strict=False)), **named}
    if named:
        raise DataError("the module was called by position and by name; give it as program=.")
    return positional


def _table(source: Any) -> Any:
    """Return the rows of a table as dicts; anything else as it is."""
    if hasattr(source, "to_dicts"):  # polars
        return [Cells(row) for row in source.to_dicts()]
    if hasattr(source, "to_pylist"):  # pyarrow
        return [Cells(row) for row in source.to_pylist()]
    if hasattr(source, "to_dict") and not hasattr(source, "column_names") and not hasattr(source, "to_frame"):  # pandas
        rows = source.to_dict("records")
        return [Cells((str(name), None if _is_missing(cell) else cell) for name, cell in row.items()) for row in rows]
    if hasattr(source, "column_names"):  # Hugging Face: an iterable of dicts
        rows = map(Cells, source)
        return [*rows] if isinstance(source, Sized) else rows
    return source  # a column of pandas is an iterable of values


def _is_missing(cell: Any) -> bool:
    """Whether a cell is a missing value of pandas; others may be arrays, which compare cell by cell."""
    return type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _file(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a file with their places.

    Raises:
        ArgumentError: Another kind of file.
        ConfigError: The library that reads this kind is not installed.
        DataError: A whole file that cannot be read.
        OSError: It cannot be opened.
    """
    kind = path.suffix.lower()
    if kind not in ROW_READERS:
        *kinds, last = ROW_READERS
        raise ArgumentError(
            f"load_examples: {path}: it reads {', '.join(kinds)} and {last}. Read another kind with a library of "
            "tables, such as pandas, and give the table."
        )
    try:
        yield from ROW_READERS[kind](path.read_bytes())
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


# -- splitting ---------------------------------------------------------------------------------------------------------


async def load_training_rows(
    x: Any,
    y: Any,
    program: Module,
    validation_data: Any = None,
    share: float | Literal["auto"] = "auto",
    *,
    shuffle: bool = True,
    seed: int = 0,
) -> tuple[list[Example], list[Example]]:
    """Return the rows to train on and those to compare candidates on; errors of `load_examples`.

    Args:
        x: As for `load_examples`.
        y: Names of the target fields, or the targets.
        program: The program to train.
        validation_data: As `x`, or `(x, y)`; None for a share of the rows.
        share: The share that is set aside; `"auto"` for half, at most 200.
        shuffle: Whether the rows to train on are drawn in another order.
        seed: The seed of the draws.

    Raises:
        TrainerError: No rows, or a share that is not a number from 0.0 to below 1.0.
    """
    rows = [] if x is None else await load_examples(x, y, program=program)
    if not rows:
        raise TrainerError("fit: there are no rows: give fit(x, y).")
    if validation_data is not None:
        names, _ = _names_or_rows(y, {name for row in rows for name in names_in(row.target)})
        is_pair = isinstance(validation_data, tuple)
        source, targets = cast("tuple[Any, Any]", validation_data) if is_pair else (validation_data, names or None)
        held_out = await load_examples(source, targets, program=program)
    else:
        rows, held_out = split(rows, share, seed=seed, closed=_stratum_field(await outputs_of(program, rows[0].inputs)))
    both = {digest_of(row.inputs) for row in rows} & {digest_of(row.inputs) for row in held_out}
    if both:
        warnings.warn(
            f"{len(both)} rows have equal inputs in the training and the validation data: memorised "
            "examples inflate the validation score.",
            SynmodWarning,
            stacklevel=3,
        )
    if shuffle:
        leaves.rng(seed, 0, "train").shuffle(rows)
    leaves.rng(seed, 0, "validation").shuffle(held_out)
    return rows, held_out


def split(
    rows: Sequence[Example], share: float | Literal["auto"] = "auto", *, seed: int = 0, closed: str | None = None
) -> tuple[list[Example], list[Example]]:
    """Return the rows that are kept and those set aside, both in order.

    Rows of one group stay together. Where a field of the target is closed, each of its values is set aside in
    proportion, to within one row (or one group).

    Args:
        rows: All rows.
        share: The share that is set aside; `"auto"` for half, at most 200.
        seed: The seed of the draws.
        closed: The field of the target that is closed; None for no strata.

    Raises:
        TrainerError: A share that is not between 0 and 1.
    """
    if share != "auto" and not (type(share) in (int, float) and 0 <= share < 1):
        raise TrainerError(f"validation_split is {share!r:.100}; give a share from 0.0 to below 1.0, or 'auto'.")
    size = min(_MOST_HELD_OUT, len(rows) // 2) if share == "auto" else round(len(rows) * share)
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(number if row.group is None else row.group, []).append(number)
    strata: dict[str, list[list[int]]] = {}
    for members in groups.values():
        strata.setdefault(_stratum(rows[members[0]].target, closed), []).append(members)
    order = leaves.rng(seed, 0, "split")
    aside: set[int] = set()
    due = 0.0
    for name in sorted(strata):
        units = strata[name]
        order.shuffle(units)
        due += size * sum(map(len, units)) / len(rows)
        for members in units:
            if len(aside) + len(members) <= due + 1e-9 + 0.5 and len(aside) + len(members) < len(rows):
                aside.update(members)
    if size and not aside and len(groups) > 1:  # every group is larger than what was wanted
        aside.update(min(groups.values(), key=len))
    return [row for number, row in enumerate(rows) if number not in aside], [rows[number] for number in sorted(aside)]


def _stratum(target: Any, closed: str | None) -> str:
    """Return the value of the closed field as text."""
    if closed is None:
        return ""
    json = as_json(target)
    return leaves.dump_json(json.get(closed) if leaves.is_object(json) else json)


def _stratum_field(outputs: Any) -> str | None:
    """Return the first closed field of what a program returns; None where that is not one data model."""
    schema: Any = schema_of(outputs) if isinstance(outputs, SymbolicDataModel) else {}
    for name, part in schema.get("properties", {}).items():
        declared = schema.get("$defs", {}).get(part.get("$ref", "").rsplit("/", 1)[-1], part)
        if "enum" in declared or declared.get("type") == "boolean":
            return name
    return None


def is_data(data: Any) -> bool:
    """Whether rows can be read from something; a single row, such as a data model, is not a data set."""
    single = (str, bytes, Mapping, DataModel, JsonDataModel, Example)
    return isinstance(data, (AsyncIterable, Iterable)) and not isinstance(data, single)


def is_source(data: Any) -> bool:
    """Whether something is data, a file or a table."""
    return isinstance(data, str | os.PathLike) or is_data(_table(data))

"""Examples: rows of a data set, whatever form they come in, and how they are split."""

import csv
import io
import os
import warnings
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, cast

from synmod.cache import key_of
from synmod.data import (
    DataModel,
    JsonDataModel,
    SymbolicDataModel,
    is_valid,
    label,
    parse_json,
    schema_from,
    schema_of,
    symbol,
)
from synmod.errors import ArgumentError, DataError, SchemaError, SynmodWarning, TrainerError, add_note, whole
from synmod.leaves import SEQUENCE, Json, did_you_mean, dump_json, frozen, is_object, kind_of, leaves, rng, thaw
from synmod.leaves.names import checks_keywords
from synmod.module import Module, build, declared_inputs, own_inputs_of

_MOST_HELD_OUT: Final = 200
_FAULTS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Example:
    """One row: what goes into a program, and what should come out.

    Attributes:
        id: Names the row; None for the position, as text.
        inputs: What the program is called with: data models, or JSON of its Input.
        target: The wanted output; None if there is none.
        extra: Further columns, which a reward may take.
        group: Rows of one group stay on one side of a split.

    Raises:
        ArgumentError: The id is neither a text nor None.

    Example:
        >>> Example("faq-1", {"question": "Who?"}, {"answer": "Nobody."}).id
        'faq-1'

    Source: DSPy's `Example`; differs: inputs and target are fields of their own.
    """

    id: str | None
    inputs: Any
    target: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    group: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # rows come from anywhere
            raise ArgumentError(
                f"Example: the id is {self.id!r:.100}; write it as text, or None: Example(None, inputs, target)."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON, what is not JSON as its text."""
        return {name: thaw(as_json(getattr(self, name))) for name in self.__slots__}


class Several(tuple[Any, ...]):
    """The inputs of a program that takes more than one, in order."""

    __slots__ = ()


def numbered(number: int, row: Any, known: set[str]) -> Example:
    """Return a row of a data set as an example; one without an id is named by its number.

    Args:
        number: Its place in the data set.
        row: `(inputs, target)`, inputs alone, or an `Example`.
        known: The ids of the rows before it; that of an `Example` is added.

    Raises:
        ArgumentError: A tuple of another length, or an explicit id that came before.
    """
    try:
        if not isinstance(row, Example):
            return Example(str(number), *_pair_of(row))
        _check_id(row, known)
    except DataError as error:
        raise ArgumentError(f"row {number}: {error}") from None
    return replace(row, id=str(number)) if row.id is None else row


def _pair_of(row: Any) -> tuple[Any, Any]:
    """Return the inputs of a row, and its target where it is a pair.

    Raises:
        DataError: A tuple of another length.
    """
    pair = cast("tuple[Any, ...]", row) if isinstance(row, tuple) else (row, None)
    if len(pair) != 2:
        raise DataError(f"it is a tuple of {len(pair)}; give (inputs, target), or inputs alone.")
    return pair


def _check_id(example: Example, known: set[str]) -> None:
    """Add the id of a row to those that are known.

    Raises:
        DataError: It came before.
    """
    if example.id in known:
        raise DataError(f"the id {example.id!r} is there twice; ids name one row each.")
    if example.id is not None:
        known.add(example.id)


# -- reading -----------------------------------------------------------------------------------------------------------


def input_names(program: Module) -> list[str]:
    """Return the names of what a program takes: those of its Inputs, else the parameters of its `call`."""
    if own_inputs_of(program):
        nest = declared_inputs(program)
        if is_object(nest):
            return [str(name) for name in nest]
        return [label(leaf) or f"input_{number}" for number, leaf in enumerate(leaves(nest))]
    return [parameter.name for parameter in _parameters(program)] or ["inputs"]


def declared_of(program: Module) -> Any:
    """Return the symbols of what a program declares to take: a list where its `call` has several parameters."""
    declared, parameters = declared_inputs(program), _parameters(program)
    if own_inputs_of(program) or len(parameters) < 2 or kind_of(declared) == SEQUENCE:
        return declared
    return [None if each.model is None else symbol(schema_of(each.model), each.model) for each in parameters]


def _parameters(program: Module) -> list[Any]:
    """Return what the `call` of a program takes by position, but for the mode."""
    return [each for each in program._record.declaration.call.positional if each.name != "training"]


def defaults_of(program: Module) -> dict[str, Any]:
    """Return what stands for each input that a row may leave out: the default of a parameter, or None."""
    names, own = input_names(program), leaves(own_inputs_of(program))
    if own:
        origins = [(name, symbol._origin) for name, symbol in zip(names, own, strict=True)]
        return {name: None for name, origin in origins if origin is not None and origin.optional}
    call = program._record.declaration.call
    optional = [each for each in call.positional if each.takes_none or not each.required]
    return {each.name: None if each.required else call.signature.parameters[each.name].default for each in optional}


@checks_keywords
async def load_examples(
    source: Any,
    y: Any = None,
    *,
    program: Module | None = None,
    rename: Mapping[str, str] | None = None,
    id: str | None = None,  # noqa: A002  # the word of the contract
    group: str | None = None,
    limit: int | None = None,
) -> list[Example]:
    """Read rows of any form, and check all of them before anything is run.

    Args:
        source: Data models, dicts, `Example`s or `(inputs, target)` pairs in a list or any other iterable, sync or
            async; a path that ends with `.jsonl`, `.json` or `.csv`; a table of pandas, polars, pyarrow,
            or Hugging Face.
        y: The name of the target field, or a list of such names; or the targets, one per row.
        program: Its inputs decide which fields are inputs; without `y` the others are the target.
        rename: New names of columns by old ones.
        id: The column that names the rows.
        group: The column of what belongs together, and stays on one side of a split.
        limit: How many rows are read at most.

    Returns:
        The rows; with a program, their inputs are data models.

    Raises:
        DataError: Rows that cannot be read, or whose target is not JSON; lists all of them.
        ArgumentError: The source is nothing that rows can be read from, `y` is neither names nor targets, targets and
            rows differ in number, or the limit is not a whole number.
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
        whole("load_examples: limit", limit, 0)
    found, renamed = await _records(source, limit), dict(rename or {})
    is_name = y is None or isinstance(y, str)
    fields = {} if is_name else {renamed.get(name, name): None for _, row in found for name in _fields_of(row)}
    names, targets = _names_or_rows(y, fields if found else None)
    if targets is not None and (len(targets) < len(found) or (limit is None and len(targets) > len(found))):
        hint = did_you_mean(targets[0], fields) if targets and isinstance(targets[0], str) else ""
        raise ArgumentError(
            f"load_examples: {len(targets)} targets for {len(found)} rows; give one each, or names of fields.{hint}"
        )
    outputs = await outputs_of(program) if any(isinstance(record, Cells) for _, record in found) else None
    columns = Columns(program, names, renamed, id, group, outputs)
    examples: list[Example] = []
    faults: list[str] = []
    known: set[str] = set()
    for number, (place, record) in enumerate(found):
        try:
            if isinstance(record, Exception):
                raise record
            example = columns.example(record if targets is None else (record, targets[number]))
            _check_id(example, known)
            for leaf in leaves(example.target):
                if not isinstance(leaf, str):
                    frozen({"target": leaf})  # which raises for what is not JSON
            examples.append(example)
        except (DataError, SchemaError, ArgumentError) as error:
            faults.append(f"{place}: {error}")
    if faults:
        shown = "\n  ".join(faults[:_FAULTS_SHOWN])
        more = f"\n  and {len(faults) - _FAULTS_SHOWN} more" if len(faults) > _FAULTS_SHOWN else ""
        raise DataError(f"{len(faults)} of {len(found)} rows cannot be read:\n  {shown}{more}")
    return examples


def _names_or_rows(y: Any, fields: Iterable[str] | None) -> tuple[tuple[str, ...], Sequence[Any] | None]:
    """Return the names of target fields, or the targets themselves.

    Args:
        y: What was given.
        fields: The names of the fields of all rows, to tell names from targets that are texts; None without rows.

    Raises:
        ArgumentError: It is neither.
    """
    if y is None or isinstance(y, str):
        return () if y is None else (y,), None
    if isinstance(y, Module | Mapping) or not isinstance(y, Iterable):
        raise ArgumentError(
            f"load_examples: y is a {type(cast('Any', y)).__name__}; give the name of a field, a list of names, or one "
            "target per row. A program goes into program=."
        )
    targets = list(cast("Iterable[Any]", y))
    if targets and all(isinstance(each, str) and (fields is None or each in fields) for each in targets):
        return tuple(targets), None
    return (), targets


def _fields_of(row: Any) -> Iterable[str]:
    """Return the names of a row's fields; nothing if it is not a record."""
    if isinstance(row, JsonDataModel):
        return row.keys()
    if isinstance(row, DataModel):
        return type(row).model_fields
    return map(str, cast("Mapping[Any, Any]", row)) if isinstance(row, Mapping) else ()


async def _records(source: Any, limit: int | None) -> list[tuple[str, Any]]:
    """Return each row, or the error that reading it raised, with its place.

    Raises:
        ArgumentError: Nothing that rows can be read from.
    """
    if isinstance(source, str | os.PathLike):
        return list(islice(_file(Path(cast("str", source))), limit))
    rows: Any = _table(source)
    if not is_data(rows):
        raise ArgumentError(
            f"load_examples: the source is a {type(source).__name__}; give a list of rows ([x] for a single one), "
            "a file, or a table."
        )
    if not isinstance(rows, AsyncIterable):
        return [(f"row {number}", row) for number, row in enumerate(islice(cast("Iterable[Any]", rows), limit))]
    found: list[tuple[str, Any]] = []
    if limit != 0:
        async for row in cast("AsyncIterable[Any]", rows):
            found.append((f"row {len(found)}", row))
            if len(found) == limit:
                break
    return found


def _table(source: Any) -> Any:
    """Return the rows of a table as dicts; anything else as it is."""
    if hasattr(source, "to_dicts"):  # polars
        return source.to_dicts()
    if hasattr(source, "to_pylist"):  # pyarrow
        return source.to_pylist()
    if hasattr(source, "to_dict") and not hasattr(source, "column_names") and not hasattr(source, "to_frame"):  # pandas
        rows = source.to_dict("records")
        return [{str(name): None if _is_missing(cell) else cell for name, cell in row.items()} for row in rows]
    return source  # the tables of Hugging Face are iterables of dicts; a column of pandas is one of values


def _is_missing(cell: Any) -> bool:
    """Whether a cell is what pandas writes for nothing; others may be arrays, which compare cell by cell."""
    return type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _file(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a file with their places.

    Raises:
        ArgumentError: Another kind of file.
        DataError: A whole file that cannot be read.
        OSError: It cannot be opened.
    """
    kind = path.suffix.lower()
    if kind not in (".jsonl", ".json", ".csv"):
        raise ArgumentError(f"load_examples: {path}: it reads .jsonl, .json and .csv.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if kind == ".csv":
            yield from _lines_of_csv(text)
        elif kind == ".jsonl":
            for number, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield f"line {number}", _parsed(line)
        else:
            rows: Any = parse_json(text)
            if not isinstance(rows, list):
                raise DataError("the file holds no list of rows.")
            yield from ((f"row {number}", row) for number, row in enumerate(cast("list[Any]", rows)))
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}: {error}") from None


def _parsed(line: str) -> Any:
    """Return a line of JSON, or the error that it is."""
    try:
        return parse_json(line)
    except ValueError as error:
        return DataError(str(error))


class Cells(dict[str, str]):
    """A row of text, to be read by the schemas of its fields."""


def _lines_of_csv(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a CSV file with their places.

    Raises:
        DataError: No header, or one that names a column twice.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, cast("list[str]", []))
    if not header or len(set(header)) != len(header):
        raise DataError(f"the first line names the columns, each once; it is {header!r:.200}.")
    for cells in filter(None, reader):
        fault = None if len(cells) == len(header) else DataError(f"{len(cells)} cells for {len(header)} columns.")
        yield f"line {reader.line_num}", fault or Cells(zip(header, cells, strict=True))


def _read_cell(text: str, fields: Mapping[str, Any], name: str) -> Any:
    """Return a cell by the schema of its field: text where that allows text, else JSON; nothing is null."""
    accepts = fields.get(name)
    if accepts is None or accepts(text):
        return text
    for written in (text, text.strip().lower()) if text else ("null",):
        value = _parsed(written)
        if not isinstance(value, DataError) and accepts(value):
            return value
    return text


def _accepts(symbol: SymbolicDataModel | None) -> dict[str, Any]:
    """Return for each field of a declaration a function that checks whether a value satisfies it."""
    if symbol is None:
        return {}
    schema: Any = schema_of(symbol)
    defs = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {
        name: partial(is_valid, schema_from({**defs, **part}, root="any"))
        for name, part in schema.get("properties", {}).items()
    }


class Columns:
    """What the fields of rows are: inputs, target, or neither.

    Args:
        program: Its inputs decide; None without a program.
        targets: Names of target fields; empty for those that are left.
        rename: New names of columns by old ones.
        id: The column that names rows.
        group: The column of what belongs together.
        outputs: What the program returns, where cells of text are read by it.
    """

    def __init__(
        self,
        program: Module | None,
        targets: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002  # as above
        group: str | None = None,
        outputs: SymbolicDataModel | None = None,
    ) -> None:
        self._targets, self._rename, self._id, self._group = tuple(targets), rename or {}, id, group
        nest = None if program is None else declared_of(program)
        names = [] if program is None else input_names(program)
        by_name = is_object(nest) or len(names) > 1
        self._symbols: dict[str, Any] = dict(zip(names, leaves(nest), strict=False)) if by_name else {}
        self._single: Any = None if by_name else next(iter(leaves(nest)), None)
        self._inputs: list[str] = names if by_name else [] if self._single is None else list(self._single.keys())
        schema: Any = {} if self._single is None else schema_of(self._single)
        self._defaults = defaults_of(program) if program and by_name else {}
        required: list[str] = names if by_name else schema.get("required", [])
        self._required = [name for name in required if name not in self._defaults]
        schemas = {name: schema_of(each) for name, each in self._symbols.items() if each is not None}
        of_inputs = {name: partial(is_valid, each) for name, each in schemas.items()}
        self._cells = {**_accepts(outputs), **_accepts(self._single), **of_inputs}

    def example(self, row: Any) -> Example:
        """Return a row as an example.

        Raises:
            DataError, SchemaError: It cannot be read.
        """
        if isinstance(row, tuple):
            inputs, target = _pair_of(row)
            return replace(self.example(inputs), target=target)
        if isinstance(row, Example):
            return replace(row, inputs=self._wrapped(row.inputs))
        if isinstance(row, DataModel | JsonDataModel):
            if not self._targets and (not self._inputs or set(_fields_of(row)) <= set(self._inputs)):
                return Example(None, row)
            row = as_json(row)
        if not isinstance(row, Mapping):
            raise DataError(f"it is a {type(row).__name__}; give a data model, a dict, an Example, or a pair.")
        return self._split(cast("Mapping[Any, Any]", row))

    def _split(self, row: Mapping[Any, Any]) -> Example:
        """Return the example of a row of fields."""
        fields = {self._rename.get(str(name), str(name)): value for name, value in row.items()}
        if isinstance(row, Cells):
            fields = {name: _read_cell(cell, self._cells, name) for name, cell in fields.items()}
        marks = [name for name in (self._id, self._group) if name is not None]
        missing = [name for name in (*self._targets, *marks) if name not in fields]
        if missing:
            raise DataError(f"there is no field {missing[0]!r}.{did_you_mean(missing[0], fields)}")
        rest = [name for name in fields if name not in self._inputs and name not in marks]
        targets = self._targets or (rest if self._inputs else [])
        inputs = self._inputs or [name for name in rest if name not in targets]
        target = {name: fields[name] for name in targets}
        name, group = (None if mark is None else _mark(mark, fields[mark]) for mark in (self._id, self._group))
        return Example(
            name,
            self._wrapped({name: fields[name] for name in inputs if name in fields}, fields),
            target or None,
            {name: fields[name] for name in rest if name not in target and name not in inputs},
            group,
        )

    def _wrapped(self, inputs: Any, fields: Mapping[str, Any] | None = None) -> Any:
        """Return inputs as data models, as far as the program declares them.

        Args:
            inputs: JSON or data models.
            fields: The whole row, where they were taken from one.

        Raises:
            DataError, SchemaError: An input is missing, or misses its schema.
        """
        if is_object(inputs):
            missing = [name for name in self._required if name not in inputs]
            if missing:
                raise DataError(f"there is no input {missing[0]!r}.{did_you_mean(missing[0], fields or inputs)}")
            if self._symbols:
                given = {**self._defaults, **inputs}
                return {name: fitted(symbol, given[name]) for name, symbol in self._symbols.items()}
        return inputs if self._single is None else fitted(self._single, inputs)


def _mark(name: str, value: Any) -> str:
    """Return the id or group of a row as text."""
    if value is None or isinstance(value, Mapping | list | float):
        raise DataError(f"{name!r} is {value!r:.100}; an id or group is a text or a whole number.")
    return str(value)


# -- splitting ---------------------------------------------------------------------------------------------------------


async def training_rows(
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
        x: What `load_examples` reads.
        y: Names of the target fields, or the targets.
        program: What is trained.
        validation_data: As `x`, or `(x, y)`; None for a share of the rows.
        share: The share that is set aside; `"auto"` for half, at most 200.
        shuffle: Whether the rows to train on are drawn in another order.
        seed: What the draws depend on.

    Raises:
        TrainerError: No rows, or a share that is not a number from 0.0 to below 1.0.
    """
    rows = [] if x is None else await load_examples(x, y, program=program)
    if not rows:
        raise TrainerError("fit: there are no rows: give fit(x, y).")
    if validation_data is not None:
        names, _ = _names_or_rows(y, {name for row in rows for name in _fields_of(row.target)})
        is_pair = isinstance(validation_data, tuple)
        given, targets = cast("tuple[Any, Any]", validation_data) if is_pair else (validation_data, names or None)
        held_out = await load_examples(given, targets, program=program)
    else:
        rows, held_out = split(rows, share, seed=seed, closed=_closed_field(await outputs_of(program)))
    both = {digest_of(row.inputs) for row in rows} & {digest_of(row.inputs) for row in held_out}
    if both:
        warnings.warn(
            f"{len(both)} rows have equal inputs among train and validation rows: what is learned by heart scores.",
            SynmodWarning,
            stacklevel=3,
        )
    if shuffle:
        rng(seed, 0, "train").shuffle(rows)
    rng(seed, 0, "validation").shuffle(held_out)
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
        seed: What is drawn depends on it.
        closed: The field of the target that is closed; None for no strata.

    Raises:
        TrainerError: A share that is not between 0 and 1.
    """
    if share != "auto" and not (type(share) in (int, float) and 0 <= share < 1):
        raise TrainerError(f"validation_split is {share!r:.100}; give a share from 0.0 to below 1.0, or 'auto'.")
    wanted = min(_MOST_HELD_OUT, len(rows) // 2) if share == "auto" else round(len(rows) * share)
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(number if row.group is None else row.group, []).append(number)
    strata: dict[str, list[list[int]]] = {}
    for members in groups.values():
        strata.setdefault(_stratum(rows[members[0]].target, closed), []).append(members)
    order = rng(seed, 0, "split")
    taken: set[int] = set()
    due = 0.0
    for name in sorted(strata):
        units = strata[name]
        order.shuffle(units)
        due += wanted * sum(map(len, units)) / len(rows)
        for members in units:
            if len(taken) + len(members) <= due + 1e-9 + 0.5 and len(taken) + len(members) < len(rows):
                taken.update(members)
    if wanted and not taken and len(groups) > 1:  # every group is larger than what was wanted
        taken.update(min(groups.values(), key=len))
    return [row for number, row in enumerate(rows) if number not in taken], [rows[number] for number in sorted(taken)]


def _stratum(target: Any, closed: str | None) -> str:
    """Return the value of the closed field as text."""
    if closed is None:
        return ""
    json = as_json(target)
    return dump_json(json.get(closed) if is_object(json) else json)


async def outputs_of(program: Module | None) -> SymbolicDataModel | None:
    """Return what a program returns, where that is one data model; builds it, which calls no model."""
    declared = None if program is None else declared_inputs(program)
    if program is None or declared is None:
        return None
    own = own_inputs_of(program)
    if not own and len(input_names(program)) > 1:
        return None
    outputs = leaves(await build(program, *(() if own else (declared,))))
    return outputs[0] if len(outputs) == 1 else None


def _closed_field(symbol: SymbolicDataModel | None) -> str | None:
    """Return the first closed field of what a program returns."""
    schema: Any = {} if symbol is None else schema_of(symbol)
    for name, part in schema.get("properties", {}).items():
        declared = schema.get("$defs", {}).get(part.get("$ref", "").rsplit("/", 1)[-1], part)
        if "enum" in declared or declared.get("type") == "boolean":
            return name
    return None


# -- one row -----------------------------------------------------------------------------------------------------------


def is_data(data: Any) -> bool:
    """Whether rows can be read from something; a single row, such as a data model, is not a data set."""
    single = (str, bytes, Mapping, DataModel, JsonDataModel, Example)
    return isinstance(data, (AsyncIterable, Iterable)) and not isinstance(data, single)


def inputs_for(program: Module, example: Example) -> Any:
    """Return the inputs of an example as data: plain JSON is wrapped by what the program declares.

    Raises:
        ArgumentError: Plain JSON, and the program declares no input; names the row.
        SchemaError: The JSON does not satisfy the declared schema.
    """
    inputs = example.inputs
    if type(inputs) is JsonDataModel:  # hot: most rows
        return cast("Any", inputs)
    found = leaves(inputs)
    is_wrapped = isinstance(inputs, Several) or (
        bool(found) and all(isinstance(leaf, JsonDataModel | DataModel | SymbolicDataModel | None) for leaf in found)
    )
    if is_wrapped and not is_object(inputs):
        return inputs
    declared: Any = declared_of(program)
    if declared is None and not is_wrapped:
        raise ArgumentError(
            f"example {example.id!r}: its inputs are plain JSON, and {program.name!r} declares no schema for them; "
            "give data models, put an Input in front, sm.Sequential([sm.Input(Query), ...]), or annotate its "
            "`call(self, inputs: Query)`."
        )
    try:
        if is_object(inputs) and kind_of(declared) == SEQUENCE:
            parts = dict(zip(input_names(program), leaves(declared), strict=True))
            if own_inputs_of(program) or set(inputs) <= set(parts):
                given = inputs if len(inputs) == len(parts) else {**defaults_of(program), **inputs}
                return Several(fitted(part, given.get(name)) for name, part in parts.items())
            declared = leaves(declared)[0]  # the others have defaults
        return inputs if is_wrapped else fitted(declared, inputs)
    except SchemaError as error:
        add_note(error, "All fields of a dict are inputs here; with a target, write the row as (inputs, target).")
        raise


def fitted(declared: Any, inputs: Any) -> Any:
    """Return JSON wrapped where `declared` has a symbol; what fits nowhere is left to the program's own check."""
    if inputs is None or isinstance(inputs, JsonDataModel | DataModel):
        return cast("Any", inputs)
    if isinstance(declared, SymbolicDataModel):
        known: Any = {"data_model": declared._model} if declared._model else {"schema": declared._schema}
        return JsonDataModel[Any](inputs, **known)
    if is_object(declared) and is_object(inputs):
        return {name: fitted(declared.get(name), part) for name, part in inputs.items()}
    if kind_of(declared) == kind_of(inputs) == SEQUENCE:
        return [fitted(wanted, part) for wanted, part in zip(declared, inputs, strict=False)]
    return inputs


def digest_of(nest: Any) -> str:
    """Return a digest of what a row holds."""
    return key_of({"row": as_json(nest)})


def as_json(nest: Any) -> Json:
    """Return a nest of data models as frozen JSON, tuples as lists; what is not JSON as its text."""
    if type(nest) is JsonDataModel:  # hot: the inputs and outputs of every call that is recorded
        return nest._json
    if isinstance(nest, tuple | list):
        return frozen([as_json(each) for each in cast("list[Any]", nest)])
    if is_object(nest):
        return frozen({str(key): as_json(each) for key, each in nest.items()})
    try:
        return frozen(nest)
    except ValueError:
        return repr(nest)

"""Rows of a data set: the inputs and the target of a program, and which fields of a row are which."""

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from synmod import data
from synmod.cache import key_of
from synmod.errors import ArgumentError, DataError, SchemaError, SynmodError
from synmod.journal import as_json
from synmod.leaves import SEQUENCE, check_type, did_you_mean, empty_object, is_object, kind_of, leaves, thaw
from synmod.module import Module, build, input_declaration, own_inputs_of

from .targets import Targets, fields_of, read_fields, twin_of


@dataclass(frozen=True, slots=True)
class Example:
    """One row: the inputs of a program, and the expected outputs.

    Attributes:
        id: Names the row; None for the position, as text.
        inputs: The inputs of the program: data models, or JSON of its Input.
        target: The expected outputs; None for no target.
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
    extra: Mapping[str, Any] = field(default_factory=empty_object)
    group: str | None = None

    def __post_init__(self) -> None:
        check_type("Example: id", self.id, str | None, "a text, or None: Example(None, inputs, target)")

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON; any other value becomes its text."""
        return {name: thaw(as_json(getattr(self, name))) for name in self.__slots__}


class PositionalInputs(tuple[Any, ...]):
    """The inputs of a program that takes more than one, in order."""

    __slots__ = ()


# -- what a program declares -------------------------------------------------------------------------------------------


def input_names(program: Module) -> list[str]:
    """Return the names of the inputs of a program: those of its Inputs, else the parameters of its `call`."""
    if own_inputs_of(program):
        nest = input_declaration(program)
        if is_object(nest):
            return [str(name) for name in nest]
        return [data.label(leaf) or f"input_{number}" for number, leaf in enumerate(leaves(nest))]
    return [parameter.name for parameter in _parameters(program)] or ["inputs"]


def input_symbols(program: Module) -> Any:
    """Return the symbols of the inputs that a program declares: a list if its `call` has several parameters."""
    declared, parameters = input_declaration(program), _parameters(program)
    if own_inputs_of(program) or len(parameters) < 2 or kind_of(declared) == SEQUENCE:
        return declared
    return [None if p.model is None else data.symbol(data.schema_of(p.model), p.model) for p in parameters]


def _parameters(program: Module) -> list[Any]:
    """Return the positional parameters of a program's `call`, but for the mode."""
    return [p for p in program._record.declaration.call.positional if p.name != "training"]


def defaults_of(program: Module) -> dict[str, Any]:
    """Return the value of each input that a row may leave out: the default of a parameter, or None."""
    names, own = input_names(program), leaves(own_inputs_of(program))
    if own:
        origins = [(name, symbol._origin) for name, symbol in zip(names, own, strict=True)]
        return {name: None for name, origin in origins if origin is not None and origin.optional}
    call = program._record.declaration.call
    optional = [p for p in call.positional if p.takes_none or not p.required]
    return {p.name: None if p.required else call.signature.parameters[p.name].default for p in optional}


async def outputs_of(program: Module | None, first: Any = None, *, builds: bool = True) -> Any:
    """Return the nest of symbols that a program returns, None if only a call shows it; calls no model.

    Args:
        program: Any module.
        first: The inputs of a row: a program that declares none is built on their schemas.
        builds: Whether a module without Inputs may be built, which runs its `call` on symbols.
    """
    if program is None:
        return None
    with suppress(SynmodError):  # a program that cannot be built raises when it is called
        if (spec := program.output_spec) is not None:
            return spec
        if own_inputs_of(program):
            return await build(program)
        inputs = leaves(input_symbols(program))
        if not inputs or None in inputs:
            inputs = leaves(first)
        kinds = data.DataModel | data.JsonDataModel | data.SymbolicDataModel
        if builds and inputs and all(isinstance(value, kinds) for value in inputs):
            return await build(program, *inputs)
    return None


# -- inputs and outputs of a row ---------------------------------------------------------------------------------------


def inputs_for(program: Module, example: Example) -> Any:
    """Return the inputs of an example as data; plain JSON is wrapped by the schemas that the program declares.

    Raises:
        ArgumentError: Plain JSON, and the program declares no input; names the row.
        SchemaError: The JSON does not satisfy the declared schema.
    """
    inputs = example.inputs
    if type(inputs) is data.JsonDataModel:  # hot: most rows
        return cast("Any", inputs)
    parts, kinds = leaves(inputs), data.JsonDataModel | data.DataModel | data.SymbolicDataModel | None
    are_models = bool(parts) and all(isinstance(part, kinds) for part in parts)
    is_wrap = are_models or isinstance(inputs, PositionalInputs)
    if is_wrap and not is_object(inputs):
        return inputs
    declared: Any = input_symbols(program)
    if declared is None and not is_wrap:
        raise ArgumentError(
            f"example {example.id!r}: its inputs are plain JSON, and {program.name!r} declares no schema for them; "
            "give data models, put an Input in front, sm.Sequential([sm.Input(Query), ...]), or annotate its "
            "`call(self, inputs: Query)`."
        )
    if is_object(inputs) and kind_of(declared) == SEQUENCE:
        parts = dict(zip(input_names(program), leaves(declared), strict=True))
        if own_inputs_of(program) or set(inputs) <= set(parts):
            values = inputs if len(inputs) == len(parts) else {**defaults_of(program), **inputs}
            return PositionalInputs(wrap_input(part, values.get(name)) for name, part in parts.items())
        declared = leaves(declared)[0]  # the others have defaults
    return inputs if is_wrap else wrap_input(declared, inputs)


def wrap_inputs(declared: Any, inputs: Any) -> Any:
    """Return JSON wrapped where `declared` has a symbol; the program itself checks the rest."""
    if inputs is None or isinstance(inputs, data.JsonDataModel | data.DataModel):
        return cast("Any", inputs)
    if isinstance(declared, data.SymbolicDataModel):
        declaration: Any = {"data_model": declared._model} if declared._model else {"schema": declared._schema}
        return data.JsonDataModel(data.plain_json(inputs), **declaration)
    if is_object(declared) and is_object(inputs):
        return {name: wrap_inputs(declared.get(name), part) for name, part in inputs.items()}
    if kind_of(declared) == kind_of(inputs) == SEQUENCE:
        return [wrap_inputs(symbol, part) for symbol, part in zip(declared, inputs, strict=False)]
    return inputs


def wrap_input(declared: Any, value: Any) -> Any:
    """Return one input as a data model; a bare value becomes the only field of the input.

    Args:
        declared: The symbol of the input.
        value: JSON, a data model, or a record: a pydantic model, dataclass or named tuple.
    """
    if isinstance(value, data.DataModel | data.JsonDataModel | None) or is_object(value):
        return wrap_inputs(declared, value)
    record = read_fields(value)
    names = declared.keys() if isinstance(declared, data.SymbolicDataModel) else ()
    if len(names) == 1 and not (is_object(record) and names[0] in record):
        return wrap_inputs(declared, {names[0]: value})
    return wrap_inputs(declared, record)


def digest_of(nest: Any) -> str:
    """Return a digest of what a row holds."""
    return key_of({"row": as_json(nest)})


# -- columns -----------------------------------------------------------------------------------------------------------


def with_id(number: int, row: Example) -> Example:
    """Return a row, which has its number as id where it has none. Hot."""
    return row if row.id is not None else Example(str(number), row.inputs, row.target, row.extra, row.group)


def pair_of(row: Any) -> tuple[Any, Any]:
    """Return the inputs and the target of a pair (DataError for a tuple of another length)."""
    pair = cast("tuple[Any, ...]", row)
    if len(pair) != 2:
        raise DataError(f"it is a tuple of {len(pair)}; give (inputs, target), or inputs alone.")
    return pair


def check_id(name: str | None, ids: set[str]) -> None:
    """Add the id of a row to those that are known (DataError if it came before)."""
    if name in ids:
        raise DataError(f"the id {name!r} is there twice; ids name one row each.")
    if name is not None:
        ids.add(name)


def names_in(row: Any) -> Iterable[str]:
    """Return the names of a row's fields; nothing if it is not a record."""
    if isinstance(row, data.JsonDataModel):
        return row.keys()
    if isinstance(row, data.DataModel):
        return type(row).model_fields
    row = row if isinstance(row, Example) else read_fields(row)
    return map(str, cast("Mapping[Any, Any]", row)) if isinstance(row, Mapping) else ()


class Columns:
    """Reads rows by the names of their fields, each an input, a part of the target, or neither.

    Args:
        program: Its inputs decide; None without a program.
        outputs: The nest of symbols that it returns; None if unknown.
        targets: Names of target fields; None for all other fields, which must be fields of the output.
        rename: New names of columns by old ones.
        id: The column that names rows.
        group: The column of the group.
        keeps_inputs: Whether inputs that cannot be read are kept as they are, so that only the run of that row fails.
        symbols: The inputs that rows have, by name; None for all that the program declares.
    """

    def __init__(
        self,
        program: Module | None,
        outputs: Any = None,
        targets: Sequence[str] | None = None,
        rename: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002  # the word of the contract
        group: str | None = None,
        *,
        keeps_inputs: bool = False,
        symbols: Mapping[str, data.SymbolicDataModel] | None = None,
    ) -> None:
        self._chosen, self._rename, self._id, self._group = targets, rename or {}, id, group
        self._ids, self._keeps_inputs = set[str](), keeps_inputs
        self.targets = Targets(outputs)
        nest = None if program is None else input_symbols(program)
        names = [] if program is None else input_names(program)
        by_name = is_object(nest) or len(names) > 1
        if symbols is not None:
            names, nest = [*symbols], [*symbols.values()]
        self._symbols: dict[str, Any] = dict(zip(names, leaves(nest), strict=False)) if by_name else {}
        self._single: Any = None
        self._defaults = defaults_of(program) if program and by_name else {}
        several = {name: data.schema_of(part) for name, part in self._symbols.items() if part is not None}
        self._fields: dict[str, data.Schema | None] = {**dict.fromkeys(self._symbols), **several}
        self._required = [name for name in self._symbols if name not in self._defaults]
        if not by_name:
            self._read_single(next(iter(leaves(nest)), None))
        self._takes_more = program is not None and not own_inputs_of(program)
        self._sole: Columns | None = None  # reads rows of the fields of the only input that must be there
        if len(self._required) == 1 and self._symbols.get(self._required[0]) is not None and not own_inputs_of(program):
            self._sole = copy(self)
            self._sole._read_single(self._symbols[self._required[0]])

    def _read_single(self, single: data.SymbolicDataModel | None) -> None:
        """Read rows by the fields of one input."""
        self._single, self._symbols, self._defaults, self._sole = single, {}, {}, None
        self._fields = {**fields_of(single)}
        self._required = [] if single is None else [*data.parts_of(data.schema_of(single)).required]

    def check_shape(self, number: int, row: Any, ids: set[str]) -> None:
        """Raise ArgumentError for a tuple that is not a pair, or an explicit id that came before; note the id."""
        try:
            if type(row) is tuple:
                pair_of(row)
            if isinstance(row, Example):
                check_id(row.id, ids)
        except DataError as error:
            raise ArgumentError(f"row {number}: {error}") from None

    def read(self, number: int, row: Any, ids: set[str]) -> Example:
        """Return a row of a data set as an example; one without an id is named by its number.

        Args:
            number: Its place in the data set.
            row: `(inputs, target)`, inputs alone, a dict of both, or an `Example`.
            ids: The ids of the Examples before it; that of an `Example` is added.

        Raises:
            ArgumentError: A tuple of another length, an explicit id that came before, or nothing that is a row.
            DataError, SchemaError: It cannot be read.
        """
        self.check_shape(number, row, ids)
        return with_id(number, self.example(row))

    def example(self, row: Any) -> Example:
        """Return a row as an example: inputs as data models, its target read by what the program returns.

        Raises:
            DataError, SchemaError: It cannot be read, or no output can have its target.
        """
        if isinstance(row, Example):
            check_id(row.id, self._ids)
            return replace(row, inputs=self.wrap(row.inputs), target=self.targets.read(row.target))
        row = self._by_name(row)
        pair: tuple[Any, Any] = pair_of(cast("Any", row)) if isinstance(row, tuple) else (row, _ABSENT)
        inputs, target = self._by_name(pair[0]), pair[1]
        if isinstance(inputs, data.DataModel | data.JsonDataModel):
            if self._is_input(inputs, has_target=target is not _ABSENT):
                return Example(None, inputs, None if target is _ABSENT else self.targets.read(target))
            inputs = as_json(inputs)
        if isinstance(inputs, Mapping):
            fields = cast("Mapping[Any, Any]", inputs)
            record = {self._rename.get(name, name): value for name, value in fields.items()} if self._rename else fields
            return self.example(self._record(record)) if self._is_record(record) else self._split(fields, target)
        if target is _ABSENT and isinstance(inputs, str) and len(self._fields) == 1 and self._single is not None:
            return Example(None, self.wrap(inputs))
        if target is _ABSENT:
            names = ", ".join(map(repr, names_in(inputs)))
            fields = f" with the fields {names:.200}, none of which is an input ({', '.join(self._fields)})"
            remedy = "give a data model, a dict, a dataclass, an Example, or a pair"
            raise DataError(f"it is a {type(inputs).__name__}{fields if names else ''}; {remedy}.")
        return Example(None, self.wrap(inputs), self.targets.read(target))

    def _by_name(self, value: Any) -> Any:
        """Return the fields of a record by name, where one of them is an input; anything else as it is.

        A named tuple without any, such as one of inputs and target, is read like another tuple.
        """
        record = read_fields(value)
        if record is value or not is_object(record):
            return value
        if not self._fields:
            is_pair = isinstance(next(iter(record.values()), None), data.DataModel | data.JsonDataModel)
            return value if is_pair else record
        names = {self._rename.get(name, name) for name in record}
        return record if self._is_record(record) or not names.isdisjoint(self._fields) else value

    def _is_record(self, row: Mapping[Any, Any]) -> bool:
        """Whether a row is an Example as JSON: `{"inputs": ..., "target": ...}`, of a program without such an input."""
        return (
            "inputs" in row and "inputs" not in self._fields and bool(self._fields) and {*row} <= {*Example.__slots__}
        )

    def _record(self, row: Mapping[Any, Any]) -> Example:
        """Return the Example that a row is as JSON; errors of `_mark`."""
        marks = {name: _mark(name, row[name]) for name in ("id", "group") if row.get(name) is not None}
        return Example(marks.get("id"), row["inputs"], row.get("target"), row.get("extra") or {}, marks.get("group"))

    def _is_input(self, row: Any, *, has_target: bool) -> bool:
        """Whether a data model is inputs as a whole: no field of it belongs to the target."""
        names = names_in(row)
        if self._chosen and not has_target:
            return False
        rest = [name for name in names if name not in self._fields]
        if not self._fields or not rest:
            return True
        outputs = self.targets.fields
        return self._takes_more and (has_target or not any(name in outputs or twin_of(name, outputs) for name in rest))

    def _split(self, row: Mapping[Any, Any], target: Any) -> Example:
        """Return the example of a row of fields, and of its target where it has one of its own."""
        if self._sole is not None and not any(name in self._symbols for name in row):
            return self._sole._split(row, target)
        names = {self._rename.get(str(name), str(name)): value for name, value in row.items()}
        marks = [name for name in (self._id, self._group) if name is not None]
        chosen = () if target is not _ABSENT else self._chosen
        for name in (*(chosen or ()), *marks):
            if name not in names:
                raise DataError(f"there is no field {name!r}.{did_you_mean(name, names)}")
        row_id, group = (None if mark is None else _mark(mark, names[mark]) for mark in (self._id, self._group))
        check_id(row_id, self._ids)  # before its columns, so that both faults are listed
        fields = self._cells(names) if isinstance(row, data.Cells) else names
        self._check_required(fields)
        rest = [name for name in fields if name not in self._fields and name not in marks]
        if chosen is None and self._fields:
            self._check_known({name: fields[name] for name in rest})
        targets = (rest if self._fields else []) if chosen is None else [name for name in chosen if name in fields]
        inputs = [*self._fields] or [name for name in rest if name not in targets]
        for name in rest:
            twin = twin_of(name, self._fields)
            if twin is not None and twin not in fields:
                raise DataError(f"the column {name!r} is not an input. Did you mean {twin!r}?")
        if target is _ABSENT:
            target = self._target({name: fields[name] for name in targets})
        values = {name: fields[name] for name in inputs if name in fields}
        extra = {name: fields[name] for name in rest if name not in targets and name not in inputs}
        return Example(row_id, self.wrap(values), self.targets.read(target), extra, group)

    def _target(self, columns: Mapping[str, Any]) -> Any:
        """Return the target in its columns: the object in the only one, where that has the fields of the output."""
        if len(columns) != 1:
            return columns or None
        ((name, value),) = columns.items()
        return value if self._is_whole(name, value) else columns

    def _is_whole(self, name: str, value: Any) -> bool:
        """Whether a column is not a field of the output but an object of such fields."""
        outputs = self.targets.fields
        return name not in outputs and is_object(value) and bool(value) and all(key in outputs for key in value)

    def _check_known(self, rest: Mapping[str, Any]) -> None:
        """Raise DataError for columns that are neither inputs nor outputs, where none is named as the target."""
        unknown = self.targets.unknown(rest)
        if unknown:
            name, fields = unknown[0], {**self._fields, **self.targets.fields}
            new = {name: twin_of(name, fields) or next(iter(self.targets.fields))}
            y = [column for column, value in rest.items() if column not in unknown or self._is_whole(column, value)]
            form = _row_form(unknown, {part: reader.fields for part, reader in self.targets.parts.items()})
            raise DataError(
                f"neither an input ({', '.join(self._fields)}) nor a field of the output "
                f"({', '.join(self.targets.fields)}): {', '.join(map(repr, unknown))}.{did_you_mean(name, fields)}"
                f"{form} Rename it, as in sm.load_examples(rename={new}); or name the target, y={y or '[...]'}; others "
                "are extra."
            )

    def _cells(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of a file or table without its empty cells, texts of a file read by the schemas of their fields.

        An empty cell is null where its field may be null, absent where the field may be left out, else an empty text.
        """
        fields: dict[str, Any] = {}
        for name, cell in row.items():
            schema = self._fields.get(name) or self.targets.fields.get(name)
            if cell not in _EMPTY if isinstance(cell, str | None) else True:
                fields[name] = cell if schema is None else _read_cell(cell, schema, self._only_field(name))
            elif schema is None or data.is_valid(schema, None):
                fields[name] = cell if schema is None else None
            elif (name in self._required and name in self._fields) or (cell == "" and data.is_valid(schema, "")):
                fields[name] = cell
        return fields

    def _only_field(self, name: str) -> data.Schema | None:
        """Return the schema of the only field of an input or output that is named, among several of them."""
        part = self.targets.parts.get(name)
        fields = fields_of(self._symbols.get(name)) or ({} if part is None else part.fields)
        return next(iter(fields.values())) if len(fields) == 1 else None

    def _check_required(self, fields: Mapping[str, Any]) -> None:
        """Raise DataError where an input is missing."""
        for name in self._required:
            if name not in fields and not self._keeps_inputs:
                twin = twin_of(name, fields)
                rename = f" Rename it: sm.load_examples(rename={{{twin!r}: {name!r}}})." if twin else ""
                names = ", ".join(map(repr, fields)) or "none"
                form = _row_form(fields, {name: fields_of(symbol) for name, symbol in self._symbols.items()})
                remedy = form or _record_form(fields) or did_you_mean(name, fields) + rename
                raise DataError(f"there is no input {name!r}.{remedy} The columns are {names:.300}.")

    def wrap(self, inputs: Any) -> Any:
        """Return inputs as data models, as far as the program declares them.

        Args:
            inputs: JSON or data models; of several inputs a dict, or a list in their order.

        Raises:
            DataError, SchemaError: An input is missing, or misses its schema.
        """
        try:
            return self._read_inputs(inputs)
        except (DataError, SchemaError):
            if self._keeps_inputs:
                return inputs
            raise

    def _read_inputs(self, inputs: Any) -> Any:
        """Return inputs as data models; errors of `wrap`."""
        if self._symbols and isinstance(inputs, list | tuple) and not isinstance(inputs, PositionalInputs):
            values = cast("Sequence[Any]", inputs)
            if len(values) != len(self._symbols):
                raise DataError(f"it has {len(values)} inputs; the program takes {', '.join(self._symbols)}.")
            inputs = dict(zip(self._symbols, values, strict=True))
        if len(self._symbols) == 1 and not (is_object(inputs) and self._symbols.keys() == inputs.keys()):
            inputs = dict.fromkeys(self._symbols, inputs)
        if is_object(inputs):
            self._check_required(inputs)
            if self._symbols:
                values = {**self._defaults, **inputs}
                if missing := [name for name in self._symbols if name not in values]:
                    raise DataError(f"there is no input {missing[0]!r}.")
                if unknown := [name for name in inputs if name not in self._symbols]:
                    raise DataError(f"there is no input {unknown[0]!r}; there are {', '.join(self._symbols)}.")
                return {name: wrap_input(self._symbols.get(name), value) for name, value in values.items()}
        return inputs if self._single is None else wrap_input(self._single, inputs)


def _row_form(columns: Iterable[str], parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how a row is written whose columns are fields of one of several inputs or outputs; `""` if none is."""
    for name, fields in parts.items():
        for column in columns:
            if column in fields and column not in parts:
                return f" A row has a column per input and output: write {{{name!r}: {{{column!r}: ...}}, ...}}."
    return ""


def _record_form(columns: Container[str]) -> str:
    """Return how a row that was recorded, or an Example as JSON, is read; `""` if it is neither."""
    if "call_id" in columns:
        return " The calls of a Recorder are read by module=, the name or path of one."
    return ' A target beside "inputs" is "target", as in {"inputs": ..., "target": ...}.' if "inputs" in columns else ""


_ABSENT: Final = object()
_EMPTY: Final = ("", None)
_BOOLS: Final = {"yes": True, "no": False, "1": True, "0": False, "1.0": True, "0.0": False}
"""What tables write for true and false, beside these words themselves."""


def _read_cell(cell: Any, schema: data.Schema, only: data.Schema | None) -> Any:
    """Return a text by the schema of its field: as it is where that allows it, else as JSON, where it is some.

    Args:
        cell: The text; anything else is returned as it is, but for 1 and 0 where the field is a bool, and a whole
            number written as a float.
        schema: That of the field.
        only: That of the only field in it, for which a bare value may stand.
    """
    word = _BOOLS.get(str(cell).strip().lower())
    if word is not None and data.is_valid(schema, word) and not data.is_valid(schema, cell):
        return word
    if isinstance(cell, float) and cell.is_integer() and not data.is_valid(schema, cell + 0.5):
        return int(cell)  # pandas has no whole numbers in a column with empty cells
    if not isinstance(cell, str) or data.is_valid(schema, cell):
        return cell
    if only is not None and (value := _read_cell(cell, only, None)) is not cell:
        return value
    for written in (cell, cell.strip().lower()):
        try:
            value = data.parse_json(written)
        except ValueError:
            continue
        if data.is_valid(schema, value):
            return value
    return cell


def _mark(name: str, value: Any) -> str:
    """Return the id or group of a row as text."""
    if value is None or isinstance(value, Mapping | list | float):
        raise DataError(f"{name!r} is {value!r:.100}; an id or group is a text or a whole number.")
    return str(value)

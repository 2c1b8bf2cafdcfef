"""Examples: rows of a data set, whatever form they come in."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
from synmod.errors import ArgumentError
from synmod.leaves.frozen import Json, frozen, is_object
from synmod.leaves.nests import SEQUENCE, kind_of, leaves
from synmod.module import Module, declared_inputs


class UnreadableRow(ArgumentError):
    """A row of plain JSON for a program that declares no schema: no row can be read, so the evaluation ends."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row: what goes into a program, and what should come out.

    Attributes:
        id: Names the row; None for the position, as text.
        inputs: What the program is called with: data models, or JSON of its Input.
        target: What should come out; None where nobody knows.
        extra: Further columns, which a reward may ask for.
        group: Rows of one group stay on one side of a split.

    Example:
        >>> Example("faq-1", {"question": "Who?"}, {"answer": "Nobody."}).id
        'faq-1'

    Source: DSPy's `Example`; differs: inputs and target are told apart by place.
    """

    id: str | None
    inputs: Any
    target: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    group: str | None = None


class Several(tuple[Any, ...]):
    """The inputs of a program that takes more than one, in order."""

    __slots__ = ()


class ExampleReader:
    """Turns the rows of one data set into examples, in order."""

    def __init__(self) -> None:
        self._explicit: set[str] = set()
        self._position = -1

    def read(self, row: Any) -> Example:
        """Return the next row as an example.

        Args:
            row: `(inputs, target)`, inputs alone, or an `Example`.

        Raises:
            ArgumentError: A tuple of another length, an explicit id that is not a text or came before.
        """
        self._position += 1
        if isinstance(row, Example):
            if row.id is None:
                return replace(row, id=str(self._position))
            if not isinstance(row.id, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # rows come from anywhere
                raise ArgumentError(f"row {self._position}: the id is {row.id!r:.100}; write it as text, or None.")
            if row.id in self._explicit:
                raise ArgumentError(f"row {self._position}: the id {row.id!r} is there twice; ids name one row each.")
            self._explicit.add(row.id)
            return row
        if not isinstance(row, tuple):
            return Example(str(self._position), row)
        pair = cast("tuple[Any, ...]", row)
        if len(pair) != 2:
            raise ArgumentError(
                f"row {self._position} is a tuple of {len(pair)}; give (inputs, target), or inputs alone."
            )
        return Example(str(self._position), *pair)


def is_data(data: Any) -> bool:
    """Whether rows can be read from something; a single row, such as a data model, is not a data set."""
    single = (str, bytes, Mapping, DataModel, JsonDataModel, Example)
    return isinstance(data, (AsyncIterable, Iterable)) and not isinstance(data, single)


def inputs_for(program: Module, example: Example) -> Any:
    """Return the inputs of an example as data: plain JSON is wrapped by what the program declares.

    Raises:
        UnreadableRow: Plain JSON, and the program declares no input; names the row.
        SchemaError: The JSON does not satisfy the declared schema.
    """
    inputs = example.inputs
    if all(isinstance(leaf, JsonDataModel | DataModel | SymbolicDataModel | None) for leaf in leaves(inputs)):
        return inputs
    declared = declared_inputs(program)
    if declared is None:
        raise UnreadableRow(
            f"example {example.id!r}: its inputs are plain JSON, and {program.name!r} declares no schema for them; "
            "give data models, or annotate `call(self, inputs: Query)`."
        )
    return _fitted(declared, inputs)


def _fitted(declared: Any, inputs: Any) -> Any:
    """Return JSON wrapped where `declared` has a symbol; what fits nowhere is left to the program's own check."""
    if inputs is None or isinstance(inputs, JsonDataModel | DataModel):
        return cast("Any", inputs)
    if isinstance(declared, SymbolicDataModel):
        return _wrapped(declared, inputs)
    if is_object(declared) and is_object(inputs):
        return {name: _fitted(declared.get(name), part) for name, part in inputs.items()}
    if kind_of(declared) == kind_of(inputs) == SEQUENCE:
        return [_fitted(wanted, part) for wanted, part in zip(declared, inputs, strict=False)]
    return inputs


def _wrapped(symbol: SymbolicDataModel, json: Any) -> JsonDataModel[Any]:
    """Return a value of plain JSON for a symbol, of its class where it has one."""
    if symbol._model is not None:
        return JsonDataModel(json, data_model=symbol._model)
    return JsonDataModel(json, schema=symbol._schema)


def as_json(nest: Any) -> Json:
    """Return a nest of data models as frozen JSON, tuples as lists; what is not JSON as its text."""
    if isinstance(nest, tuple | list):
        return frozen([as_json(each) for each in cast("list[Any]", nest)])
    if is_object(nest):
        return frozen({str(key): as_json(each) for key, each in nest.items()})
    try:
        return frozen(nest)
    except ValueError:
        return repr(nest)

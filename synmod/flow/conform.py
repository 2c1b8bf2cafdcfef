"""What a step returned, held to what was recorded of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from synmod.data import JsonDataModel, Schema, admit, is_subschema
from synmod.errors import CallError
from synmod.flow.record import SymbolRef
from synmod.flow.steps import Declared
from synmod.leaves.nests import aligned, map_leaves


def conformed(value: Any, declared: Declared, where: str) -> Any:
    """Give `value` with the recorded schema; None passes.

    Raises:
        CallError: It is no value.
        SchemaError: The schema does not allow it. Begins with `where`.
    """
    if value is None:
        return None
    if type(value) is not JsonDataModel:
        raise CallError(
            f"{where}: the step was recorded as giving one value {declared.name!r}, but returned "
            f"{type(value).__name__}: return what the symbolic call promised."
        )
    if value._schema is declared.schema:
        return value
    if not is_subschema(value._schema, declared.schema):  # the value itself may still fit
        where += f": the output was recorded as {_title(declared.schema)}, got {_title(value._schema)}"
    return admit(value, declared.schema, declared.data_model, where)


def conformed_nest(gives: Any, output: Any, symbols: Sequence[Declared], where: str) -> Iterator[tuple[int, Any]]:
    """Pair the numbers of a step's outputs with the values that came, each held to its schema.

    Raises:
        CallError: The structure is another one than was recorded.
        SchemaError: A value does not fit. Begins with `where`.
    """
    pairs = aligned(gives, output)
    if pairs is None:
        raise CallError(
            f"{where}: the step was recorded as giving {_shape(gives)}, but returned {_shape(output)}: return the same "
            "structure as the symbolic call, or None."
        )
    for path, ref, value in pairs:
        if isinstance(ref, SymbolRef):
            place = f"{where}, output {'/'.join(map(str, path))}"
            yield ref.index, conformed(value, symbols[ref.index], place)


def _title(schema: Schema) -> str:
    """Write a schema by its title and fields."""
    return f"{schema.get('title', 'data')}({', '.join(schema.get('properties', {}))})"


def _shape(nest: Any) -> str:
    """Write the structure of a nest, leaves as dots."""
    return repr(map_leaves(lambda leaf: None if leaf is None else _Dot(), nest))[:200]


class _Dot:
    """A leaf, in a structure that is shown."""

    def __repr__(self) -> str:
        return "*"

"""Inputs: the symbols that start a graph."""

from __future__ import annotations

from typing import Any

from synmod.data import SymbolicDataModel, declare, model_of, symbol
from synmod.errors import ArgumentError
from synmod.flow import Origin


def Input(  # noqa: N802  # read as a noun, as in Keras
    data_model: Any = None, schema: Any = None, name: str | None = None, optional: bool = False
) -> SymbolicDataModel:
    """Make a symbol that starts a graph.

    Args:
        data_model: A data-model class, an instance, a value, a symbol, or a JSON Schema; exactly one of this and
            `schema`.
        schema: A JSON Schema.
        name: Label, by which the program also takes this input as a keyword; default the snake case of the title.
        optional: Whether an entry call may give None for it.

    Returns:
        A new symbol, also where a symbol is given.

    Raises:
        ArgumentError: Neither `data_model` nor `schema`, or both; or what declares no data.
        SchemaError: The schema is bad, or its root is no object.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.Input(Query).keys()
        ('question',)

    Source: Keras `Input`.
    """
    if (data_model is None) == (schema is None):
        fault = "neither" if data_model is None else "both"
        raise ArgumentError(
            f"Input got {fault} of data_model and schema; give exactly one: sm.Input(data_model=Query)."
        )
    source = schema if data_model is None else data_model
    label = name or (source._label if isinstance(source, SymbolicDataModel) else None)
    made = symbol(declare(source), model_of(source), label)
    made._origin = Origin(None, optional=optional)
    return made


def is_optional(given: SymbolicDataModel) -> bool:
    """Tell whether an entry call may give None for a symbol."""
    origin: Origin | None = given._origin
    return origin is not None and origin.optional

"""Nests of declarations: what `input_spec`, `output_spec` and `sm.build` take, as nests of symbols."""

from __future__ import annotations

from typing import Any

from synmod.data.declare import declare, model_of, schema_of
from synmod.data.model import DataModel
from synmod.data.symbol import SymbolicDataModel, symbol
from synmod.data.value import JsonDataModel
from synmod.errors import ArgumentError
from synmod.flow.nest import MAPPING, is_leaf, kind_of, leaves, map_leaves


def symbols_of(spec: Any, where: str) -> Any:
    """Turn a nest of declarations into the same nest of fresh symbols.

    Args:
        spec: Data model classes, instances or values, symbols, schemas, None; lists, tuples and dicts of them. A dict
            that holds a data model or a symbol at any depth is a nest, any other dict is a schema.
        where: What is declared, for messages.

    Returns:
        The nest with a fresh symbol for each declaration, None for None.

    Raises:
        ArgumentError: A leaf declares nothing.
        SchemaError: A schema cannot be used.
    """
    if spec is None or _is_declaration(spec):
        return _symbol(spec, where)
    if kind_of(spec) == MAPPING and not any(_is_declaration(leaf) for leaf in leaves(spec)):
        return _symbol(spec, where)
    if is_leaf(spec):
        raise ArgumentError(
            f"{where}: {spec!r} declares no data; give a data model, a schema, a symbol, or a nest of them."
        )
    if kind_of(spec) == MAPPING:
        return {key: symbols_of(item, where) for key, item in spec.items()}
    items = [symbols_of(item, where) for item in spec]
    return type(spec)(*items) if hasattr(spec, "_fields") else type(spec)(items)


def _is_declaration(x: Any) -> bool:
    if isinstance(x, type):
        return hasattr(x, "model_fields")
    return isinstance(x, JsonDataModel | SymbolicDataModel | DataModel)


def _symbol(x: Any, where: str) -> SymbolicDataModel | None:
    if x is None:
        return None
    if isinstance(x, JsonDataModel | SymbolicDataModel):
        return symbol(schema_of(x), x._model, x._label)
    if isinstance(x, dict | bool) or _is_declaration(x):
        return symbol(declare(x), model_of(x))
    raise ArgumentError(f"{where}: {x!r} declares no data; give a data model, a schema or a symbol.")


def fresh(nest: Any) -> Any:
    """Stand a fresh symbol in the place of every value and symbol of a nest: schemas, never data."""
    return map_leaves(_fresh_leaf, nest)


def _fresh_leaf(leaf: Any) -> Any:
    return (
        symbol(leaf._schema, leaf._model, leaf._label) if isinstance(leaf, JsonDataModel | SymbolicDataModel) else leaf
    )

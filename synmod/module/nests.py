"""Nests of data and of declarations, and how messages show them.

A nest is data, None, or lists, tuples, dicts and other containers of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Final, TypeGuard

from pydantic import BaseModel

from synmod import data
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, schema_of, symbol
from synmod.errors import ArgumentError, CallError
from synmod.leaves import KeyPath
from synmod.leaves.nests import LEAF, MAPPING, flatten_one_level, kind_of, leaves, map_leaves

DATA: Final = (JsonDataModel, SymbolicDataModel)


# -- names in messages -------------------------------------------------------------------------------------------------


def title_of(schema: Mapping[str, Any]) -> str:
    """Return the title of a schema, else its fields."""
    return str(schema.get("title") or f"an object with {', '.join(schema.get('properties', {})) or 'no field'}")


def fields_text(schema: Mapping[str, Any]) -> str:
    """Return the title and the fields of a schema."""
    return f"{schema.get('title', 'a value')}({', '.join(schema.get('properties', {}))})"


class Unquoted(str):
    """A str whose repr has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def shape(nest: Any) -> str:
    """Show a nest by the titles of its leaves."""
    return str(
        map_leaves(lambda leaf: Unquoted(title_of(leaf._schema) if is_datum(leaf) else type(leaf).__name__), nest)
    )


def place_of(argument: int | str, path: KeyPath = ()) -> str:
    """Name a place in the arguments: `argument 0, key 'docs', index 2`."""
    steps = (f", key {step!r}" if isinstance(step, str) else f", index {step}" for step in path)
    return f"argument {argument!r}{''.join(steps)}"


# -- nests -------------------------------------------------------------------------------------------------------------


def is_datum(leaf: Any) -> TypeGuard[JsonDataModel[Any] | SymbolicDataModel]:
    """Whether a leaf is a value or a symbol."""
    return isinstance(leaf, DATA)


def leaves_of_any(x: Any) -> list[Any]:
    """Return the leaves of any object; a container that holds itself is one leaf."""
    try:
        return leaves(x)
    except CallError:
        return [x]


def is_data(nest: Any) -> bool:
    """Whether a nest holds only values, symbols and None."""
    return all(leaf is None or isinstance(leaf, DATA) for leaf in leaves_of_any(nest))


def is_nothing(nest: Any) -> bool:
    """Whether a nest is None, or is not empty and holds only None."""
    parts = leaves_of_any(nest)
    return bool(parts) and all(leaf is None for leaf in parts)


def fresh(nest: Any) -> Any:
    """Return a nest with a fresh symbol in place of every value and symbol."""
    return map_leaves(lambda x: symbol(x._schema, x._model, x._label) if is_datum(x) else x, nest)


def is_declaration(x: Any) -> bool:
    """Whether an object is a declaration of data other than a schema."""
    if isinstance(x, type):
        return hasattr(x, "model_fields")
    return isinstance(x, JsonDataModel | SymbolicDataModel | DataModel)


def symbols_of(spec: Any, at: str) -> Any:
    """Return a nest of declarations as the same nest of fresh symbols.

    Args:
        spec: Data model classes, instances or values, symbols, schemas, None; lists, tuples and dicts of them. A dict
            that holds a data model or a symbol at any depth is a nest, any other dict is a schema.
        at: The name of the declaration, for messages.

    Raises:
        ArgumentError: A leaf does not declare data.
        SchemaError: A schema is unusable.
    """
    if kind_of(spec) == MAPPING and not any(map(is_declaration, leaves(spec))):
        return symbol(data.declare(spec), None)
    if kind_of(spec) != LEAF:
        parts = flatten_one_level(spec)
        return parts.rebuild([symbols_of(part, at) for part in parts.children])
    if spec is None:
        return None
    if is_datum(spec):
        return symbol(schema_of(spec), spec._model, spec._label)
    if isinstance(spec, bool) or is_declaration(spec):
        return symbol(data.declare(spec), data.model_of(spec))
    raise ArgumentError(
        f"{at}: {spec!r:.200} does not declare data; use a data model, a schema, a symbol, or a nest of them."
    )


def is_record(x: Any) -> bool:
    """Whether an object is an instance of a dataclass or of a pydantic class."""
    return not isinstance(x, type) and (isinstance(x, BaseModel) or is_dataclass(x))


def is_plain(nest: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a nest is a dict or a dataclass without any leaf of these kinds: plain JSON, or one record."""
    is_one = kind_of(nest) == MAPPING or is_record(nest)
    return is_one and not any(isinstance(leaf, kinds) for leaf in leaves(nest))

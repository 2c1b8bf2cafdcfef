"""Declarations: whatever a user may write where a data model is expected, turned into its schema."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from synmod.data.schemas.schema import Root, Schema, schema_from, trusted_schema
from synmod.errors import ArgumentError, SchemaError

from .class_schema import schema_of_class
from .described import Described


def declare(x: Any, *, root: Root = "object") -> Schema:
    """Give the schema that a declaration stands for.

    Args:
        x: A data-model or pydantic class, an instance of one, a JsonDataModel, a SymbolicDataModel, a schema dict, or
            True (any JSON, where `root` is "any").
        root: "object" for data models; "any" for Variables, whose schema may be of any kind.

    Returns:
        The interned schema.

    Raises:
        SchemaError: The schema is bad, or its root is no object.
        SchemaTooComplex: The schema costs more than the complexity budget allows.
        ArgumentError: `x` declares nothing.

    Example:
        >>> declare({"type": "object", "properties": {"a": {"type": "integer"}}})["type"]
        'object'

    Source: Synalinks' `data_model or schema` arguments; differs: one function, and the schema is checked.
    """
    if isinstance(x, Described):
        return x._schema
    if isinstance(x, type):
        if issubclass(x, BaseModel):
            return _rooted(schema_of_class(x), root)
    elif isinstance(x, BaseModel):
        return _rooted(schema_of_class(type(x)), root)
    elif isinstance(x, dict):
        return schema_from(x, root=root)
    elif x is True and root == "any":
        return trusted_schema(True)
    elif isinstance(x, bool):
        raise SchemaError(f"The schema {x} cannot stand here: write a schema with an object at its root.")
    raise ArgumentError(
        f"{x!r:.200} declares no data: write a DataModel class, a data model, a symbol or a JSON Schema as a dict."
    )


def _rooted(schema: Schema, root: Root) -> Schema:
    """Check the root of a schema that was declared before, maybe for another purpose."""
    return schema if root == "any" else schema_from(schema, root=root)


def model_of(x: Any) -> type[BaseModel] | None:
    """Give the class behind a declaration or a value, None where only a schema is known."""
    if isinstance(x, Described):
        return x._model
    cls = x if isinstance(x, type) else type(x)
    return cls if issubclass(cls, BaseModel) else None


def schema_of(x: Any) -> Schema:
    """Give the schema of a value, symbol, class or instance; no copy.

    Raises:
        ArgumentError: `x` is none of them.
    """
    if isinstance(x, Described):
        return x._schema
    cls = x if isinstance(x, type) else type(x)
    if issubclass(cls, BaseModel):
        return schema_of_class(cls)
    raise ArgumentError(f"{x!r:.200} has no schema: it is no data model.")

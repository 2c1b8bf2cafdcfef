"""What a Variable starts with: its schema and first value, from whatever the constructor was given."""

from __future__ import annotations

from inspect import iscoroutine
from typing import TYPE_CHECKING, Any

from synmod.data import Schema, declare, model_of, trusted_schema
from synmod.errors import ArgumentError
from synmod.leaves.frozen import Json, frozen, json_equal
from synmod.tree.variable.containers import class_of
from synmod.tree.variable.initializers import Empty, empty_value

if TYPE_CHECKING:
    from collections.abc import Callable


def declared_schema(kind: str, data_model: Any, schema: Any, initializer: Any) -> Schema | None:
    """Give the declared schema, None where there is none."""
    if data_model is None and isinstance(initializer, Empty):
        data_model = initializer.data_model
    if data_model is None:
        return None if schema is None else declare(schema, root="any")
    declared = declare(data_model, root="any")
    if schema is not None and not json_equal(declare(schema, root="any"), declared):
        raise ArgumentError(f"{kind}: `schema` and `data_model` differ: give one of them.")
    return declared


def first_value(kind: str, value: Json, initializer: Any, data_model: Any, declared: Schema | None) -> Json:
    """Find the first value, frozen."""
    if value is not None:
        if initializer is not None:
            raise ArgumentError(f"{kind}: `value` and `initializer` both give a first value: give one of them.")
        return frozen(value)
    if isinstance(initializer, Empty):
        return _emptiest(declared, data_model if initializer.data_model is None else initializer.data_model)
    if callable(initializer):
        return frozen(_called(kind, initializer, declared))
    if initializer is not None:
        return frozen(initializer)
    if not isinstance(data_model, type) and hasattr(class_of(data_model), "__synmod_json__"):
        return frozen(data_model)
    return _emptiest(declared, data_model)


def _emptiest(declared: Schema | None, data_model: Any) -> Json:
    """Give the emptiest value of what was declared; None where nothing was."""
    if declared is None:
        return None
    return frozen(empty_value(declared, None if data_model is None else model_of(data_model)))


def _called(kind: str, initializer: Callable[[Schema], Json], declared: Schema | None) -> Json:
    """Run an initializer, which must be plain."""
    value = initializer(trusted_schema(True) if declared is None else declared)
    if iscoroutine(value):
        value.close()
        raise ArgumentError(f"{kind}: the initializer is async; a first value is made by a plain function.")
    return value

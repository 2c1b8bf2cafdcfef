"""Symbols: a schema that stands for a value to come, which may turn out to be None."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, cast

from pydantic import BaseModel

from synmod.data.schemas.rooted import properties_of
from synmod.data.schemas.schema import Schema
from synmod.errors import ArgumentError, FieldError, SymbolicValueError
from synmod.leaves.frozen import json_equal
from synmod.leaves.names import did_you_mean

from .declare import declare, model_of
from .described import Described, field_list, importable
from .labels import label_of

RECORDERS: dict[str, Callable[..., Any]] = {}
"""What higher rooms know of symbols: "operation" records a step, "path" tells the module path being traced."""


class SymbolicDataModel(Described[Any]):
    """A schema without a value: stands for the value that a program will have here, or for None.

    Args:
        schema: A JSON Schema with an object at its root.
        data_model: A data-model class, instance, value or symbol to take the schema of.
        name: Label; the snake case of the schema's title if None.

    Raises:
        ArgumentError: Neither `schema` nor `data_model`, or two that differ.
        SchemaError: The schema is bad, or its root is no object.

    Example:
        >>> x = SymbolicDataModel(schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        >>> "a" in x
        True

    Source: Keras' `KerasTensor`, Synalinks' `SymbolicDataModel`.
    """

    __module__ = "synmod.data"
    __slots__ = ("__weakref__", "_origin")

    _origin: Any

    def __init__(self, schema: Any = None, data_model: Any = None, name: str | None = None) -> None:
        declared, model = declaration(schema, data_model, "SymbolicDataModel")
        _fill(self, declared, model, name)

    @property
    def name(self) -> str:
        """The label. Where a field `name` is declared, that field is what was asked, and it has no value yet."""
        if "name" in properties_of(self._schema):
            self._refuse_value("name")
        return self._label or label_of(self._schema)

    def keys(self) -> tuple[str, ...]:
        """Give the declared fields, in order."""
        return tuple(properties_of(self._schema))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def get(self, key: str, default: Any = None) -> NoReturn:  # noqa: ARG002  (as of values)
        """Refuse: a symbol has no value (SymbolicValueError)."""
        self._refuse_value(key)

    def get_json(self) -> NoReturn:
        """Refuse: a symbol has no value (SymbolicValueError)."""
        self._refuse_value(None)

    def prettify_json(self) -> NoReturn:
        """Refuse: a symbol has no value (SymbolicValueError)."""
        self._refuse_value(None)

    def to(self, model: Any = None) -> NoReturn:  # noqa: ARG002  (as of values)
        """Refuse: a symbol has no value (SymbolicValueError)."""
        self._refuse_value(None)

    def __getitem__(self, key: str) -> NoReturn:
        self._refuse_value(key)

    def __getattr__(self, key: str) -> NoReturn:
        try:
            declared = properties_of(self._schema)
        except AttributeError:  # not filled yet: copy and pickle look around
            raise AttributeError(key) from None
        if key in declared:
            self._refuse_value(key)
        raise FieldError(
            f"The symbol has no field {key!r}; its fields are {field_list(declared)}.{did_you_mean(key, declared)}"
        )

    def _refuse_value(self, key: str | None) -> NoReturn:
        path = RECORDERS["path"]() if "path" in RECORDERS else ""
        what = f"the field {key!r}" if key is not None else "the JSON"
        raise SymbolicValueError(
            f"{path or 'Here'}: {what} of a symbol ({self._label}) was read, but a symbol only has a schema; its value "
            "comes when the program runs. Declare the output (`-> Answer` on `call`, or `output_spec`), override "
            "`compute_output_spec`, or combine symbols with the functions of `sm.ops`."
        )

    def __copy__(self) -> SymbolicDataModel:
        return symbol(self._schema, self._model, self._label)

    def __deepcopy__(self, memo: object) -> SymbolicDataModel:
        return symbol(self._schema, self._model, self._label)

    def __reduce__(self) -> tuple[Any, ...]:
        return symbol, (self._schema, importable(self._model), self._label)

    def __repr__(self) -> str:
        """Show label and fields."""
        return f"SymbolicDataModel({self._label!r}: {field_list(self.keys())})"


def _fill(new: SymbolicDataModel, schema: Schema, model: type[BaseModel] | None, name: str | None) -> None:
    new._schema = schema
    new._model = model
    new._label = name or label_of(schema)
    new._origin = None


def symbol(schema: Schema, data_model: type[BaseModel] | None = None, name: str | None = None) -> SymbolicDataModel:
    """Make a symbol of a schema that is known to be good; nothing is checked."""
    new = SymbolicDataModel.__new__(SymbolicDataModel)
    _fill(new, schema, data_model, name)
    return new


def declaration(schema: Any, data_model: Any, what: str) -> tuple[Schema, type[BaseModel] | None]:
    """Resolve the pair of arguments `schema`, `data_model` to one schema and, where known, its class.

    Raises:
        ArgumentError: Neither is given, or two that differ.
        SchemaError: The schema is bad, or its root is no object.
    """
    if data_model is None:
        if schema is None:
            raise ArgumentError(f"{what} needs a schema: give `schema=` (a JSON Schema) or `data_model=` (a class).")
        return declare(schema), model_of(schema)
    declared = declare(data_model)
    if schema is not None and not json_equal(declare(schema), declared):
        raise ArgumentError(f"{what}: `schema` and `data_model` differ; give one of them.")
    return declared, model_of(data_model)


def is_symbolic(x: Any) -> bool:
    """Tell whether `x` is a symbol, or a nest of lists, tuples and dicts that holds one.

    Args:
        x: Anything.

    Returns:
        True if a symbol is found.

    Example:
        >>> is_symbolic([1, {"a": SymbolicDataModel(schema={"type": "object", "properties": {}})}])
        True

    Source: Keras' `any_symbolic_tensors`.
    """
    pending: list[Any] = [x]
    seen = set[int]()
    while pending:
        nest = pending.pop()
        if isinstance(nest, SymbolicDataModel):
            return True
        if id(nest) not in seen:
            seen.add(id(nest))
            pending.extend(_parts_of_nest(nest))
    return False


def _parts_of_nest(x: Any) -> list[Any]:
    """Give what a container holds, nothing for anything else."""
    if isinstance(x, Mapping):
        return list(cast("Mapping[Any, Any]", x).values())
    return list(cast("list[Any]", x)) if isinstance(x, list | tuple | set | frozenset) else []

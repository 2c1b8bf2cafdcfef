"""How anything declares data: classes, values and symbols by their schema, and plain schemas.

The operators `+ & | ^ ~`, `in` and the methods of values are functions of `ops`, which combines what is declared here;
`data/__init__.py` binds them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod.errors import ArgumentError, SchemaError
from synmod.leaves import dump_json, json_equal, snake_case, thaw

from . import checking
from .classes import schema_of_class
from .schema import Schema

if TYPE_CHECKING:
    from .models import SymbolicDataModel

ModelT = TypeVar("ModelT", bound=BaseModel, default=Any)

# -- what has a schema -------------------------------------------------------------------------------------------------


class Operand:
    """Something with a schema that the operators `+ & | ^ ~` take."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _binary(self, operand: Any) -> Any: ...

        __add__ = __radd__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _binary

        def __invert__(self) -> Any: ...
        def __contains__(self, part: Any) -> bool: ...


class OperandClass(type):
    """The operators between classes: each makes a new symbol. `|` stays Python's union of types."""

    if TYPE_CHECKING:

        def _binary(cls, operand: Any) -> SymbolicDataModel: ...

        __add__ = __radd__ = __and__ = __rand__ = __xor__ = __rxor__ = _binary

        def __invert__(cls) -> SymbolicDataModel: ...
        def __contains__(cls, part: Any) -> bool: ...


class HasSchema(Operand, Generic[ModelT]):
    """What values and symbols share: a schema, possibly the class behind it, a label, and the operations."""

    __slots__ = ("_label", "_model", "_schema")

    _schema: Schema
    _model: type[BaseModel] | None
    _label: str | None

    def get_schema(self) -> dict[str, Any]:
        """Return a fresh plain copy of the JSON Schema."""
        return thaw(self._schema)

    def prettify_schema(self) -> str:
        """Return the JSON Schema as text with an indent of two."""
        return dump_json(self._schema, indent=2)

    if TYPE_CHECKING:

        def in_mask(self, mask: Any, *, recursive: bool = False) -> Any:
            """Keep only the fields named; see `sm.ops.in_mask`."""

        def out_mask(self, mask: Any, *, recursive: bool = False) -> Any:
            """Remove the fields named; see `sm.ops.out_mask`."""

        def prefix(self, prefix: str) -> Any:
            """Rename every top-level field `k` to `prefix_k`; see `sm.ops.prefix`."""

        def suffix(self, suffix: str) -> Any:
            """Rename every top-level field `k` to `k_suffix`; see `sm.ops.suffix`."""

        def factorize(self, names: Mapping[str, str] | None = None) -> Any:
            """Gather numbered repeats into arrays; see `sm.ops.factorize`."""


# -- declarations ------------------------------------------------------------------------------------------------------

_NOT_IN_A_NAME: Final = re.compile(r"\W+")


def declare(x: Any, *, root: checking.Root = "object") -> Schema:
    """Return the schema of a declaration.

    Args:
        x: A data-model or pydantic class, an instance of one, a JsonDataModel, a SymbolicDataModel, a schema dict, or
            True (any JSON, where `root` is "any").
        root: "object" for data models; "any" for Variables, whose schema may be of any kind.

    Returns:
        The interned schema.

    Raises:
        SchemaError: The schema is bad, or its root is not an object.
        SchemaTooComplex: The schema is over the limits of complexity.
        ArgumentError: `x` declares nothing.

    Example:
        >>> declare({"type": "object", "properties": {"a": {"type": "integer"}}})["type"]
        'object'

    Source: Synalinks' `data_model or schema` arguments; differs: one function, and the schema is checked.
    """
    if isinstance(x, bool) and not (x and root == "any"):
        raise SchemaError(f"The schema {x} cannot be used here: write a schema with an object at its root.")
    return checking.schema_from(x if isinstance(x, dict | bool) else schema_of(x), root=root)


def declaration(schema: Any, data_model: Any, what: str) -> tuple[Schema, type[BaseModel] | None]:
    """Resolve the pair of arguments `schema`, `data_model` to one schema and, where known, its class.

    Raises:
        ArgumentError: Neither is given, or the two differ.
        SchemaError: The schema is bad, or its root is not an object.
    """
    if data_model is None:
        if schema is None:
            raise ArgumentError(f"{what} needs a schema: write `schema=` (a JSON Schema) or `data_model=` (a class).")
        return declare(schema), model_of(schema)
    declared = declare(data_model)
    if schema is not None and not json_equal(declare(schema), declared):
        raise ArgumentError(f"{what}: `schema` and `data_model` differ; write one of them.")
    return declared, model_of(data_model)


def schema_of(x: Any) -> Schema:
    """Return the schema of a value, symbol, class or instance: frozen and interned, not a copy.

    Raises:
        ArgumentError: `x` is none of them.

    Example:
        >>> schema_of(sm.SymbolicDataModel(schema={"type": "object", "properties": {"a": {}}}))["properties"]
        {'a': {}}

    Source: Keras' `KerasTensor.shape`.
    """
    if isinstance(x, HasSchema):
        return x._schema
    if (model := model_of(x)) is not None:
        return schema_of_class(model)
    if isinstance(x, type):
        raise ArgumentError(
            f"The class {x.__name__} does not declare data: make it the type of a field, "
            f"`class Query(sm.DataModel): field: {x.__name__}`, or derive it from sm.DataModel."
        )
    raise ArgumentError(
        f"{x!r:.200} does not declare data: write a DataModel class, a data model, a symbol or a JSON Schema as a dict."
    )


def model_of(x: Any) -> type[BaseModel] | None:
    """Return the class behind a declaration, a value or a symbol; None where only a schema is known."""
    if isinstance(x, HasSchema):
        return x._model
    cls = x if isinstance(x, type) else type(x)
    return cls if issubclass(cls, BaseModel) else None


def label(x: HasSchema[Any]) -> str:
    """Return the label of a value or a symbol, even where a declared field `name` hides it."""
    return x._label or label_of(x._schema)


def label_of(schema: Schema) -> str:
    """Return the label of a nameless value or symbol: the snake case of the schema's title."""
    title = schema.get("title")
    words = _NOT_IN_A_NAME.sub("_", title).strip("_") if isinstance(title, str) else ""
    return snake_case(words) if words else "data_model"


def field_list(names: Iterable[str]) -> str:
    """Return the names of fields as an error shows them."""
    return ", ".join(map(repr, names)) or "none"


def importable(model: type[BaseModel] | None) -> type[BaseModel] | None:
    """Return a class if a pickle can name it; a class made in a function is left out, its schema is enough."""
    if model is None:
        return None
    target: Any = sys.modules.get(model.__module__)
    for step in model.__qualname__.split("."):
        target = getattr(target, step, None)
    return model if target is model else None

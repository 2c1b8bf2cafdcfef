"""Symbols: a schema that stands for a value to come; and how any declaration of data becomes a schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, NoReturn, cast

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod.errors import ArgumentError, FieldError, SchemaError, SymbolicValueError
from synmod.leaves.frozen import dump_json, json_equal, thaw
from synmod.leaves.names import did_you_mean, snake_case

from .class_schema import schema_of_class
from .operators import OPERATORS, Operand
from .parts import properties_of
from .schema import Root, Schema, schema_from, trusted_schema

ModelT = TypeVar("ModelT", bound=BaseModel, default=Any)

RECORDERS: dict[str, Callable[..., Any]] = {}
"""What higher rooms do with symbols: "operation" records a step, "path" returns the module path being traced."""

_NOT_IN_A_NAME: Final = re.compile(r"\W+")


class Described(Operand, Generic[ModelT]):
    """What values and symbols share: a schema of their own, maybe a class behind it, a label, and the operations."""

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

    def in_mask(self, mask: Any, *, recursive: bool = False) -> Any:
        """Keep only the fields named; see `sm.ops.in_mask`."""
        return OPERATORS["in_mask"](self, mask, recursive=recursive)

    def out_mask(self, mask: Any, *, recursive: bool = False) -> Any:
        """Remove the fields named; see `sm.ops.out_mask`."""
        return OPERATORS["out_mask"](self, mask, recursive=recursive)

    def prefix(self, prefix: str) -> Any:
        """Rename every top-level field `k` to `prefix_k`; see `sm.ops.prefix`."""
        return OPERATORS["prefix"](self, prefix)

    def suffix(self, suffix: str) -> Any:
        """Rename every top-level field `k` to `k_suffix`; see `sm.ops.suffix`."""
        return OPERATORS["suffix"](self, suffix)

    def factorize(self, names: Mapping[str, str] | None = None) -> Any:
        """Gather numbered repeats into arrays; see `sm.ops.factorize`."""
        return OPERATORS["factorize"](self, names)


class SymbolicDataModel(Described[Any]):
    """A schema without a value: stands for the value that a program will have here, or for None.

    Args:
        schema: A JSON Schema with an object at its root.
        data_model: A data-model class, instance, value or symbol to take the schema of.
        name: Label; the snake case of the schema's title if None.

    Raises:
        ArgumentError: Neither `schema` nor `data_model`, or two that differ.
        SchemaError: The schema is bad, or its root is not an object.

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
        """The label. Where a field `name` is declared, the field is meant, and it has no value yet."""
        if "name" in properties_of(self._schema):
            self._refuse_value("name")
        return label(self)

    def keys(self) -> tuple[str, ...]:
        """Return the declared fields, in order."""
        return tuple(properties_of(self._schema))

    def __iter__(self) -> NoReturn:  # else Python would iterate by index
        self._refuse_value(None)

    def __bool__(self) -> NoReturn:  # noqa: PLE0304  (it raises)
        """Raise SymbolicValueError: the value may turn out to be None, and the other branch would be lost."""
        self._refuse_value(None)

    def get(self, key: str, default: Any = None) -> NoReturn:  # noqa: ARG002  (as of values)
        """Raise SymbolicValueError: a symbol has no value."""
        self._refuse_value(key)

    def get_json(self) -> NoReturn:
        """Raise SymbolicValueError: a symbol has no value."""
        self._refuse_value(None)

    def prettify_json(self) -> NoReturn:
        """Raise SymbolicValueError: a symbol has no value."""
        self._refuse_value(None)

    def to(self, model: Any = None) -> NoReturn:  # noqa: ARG002  (as of values)
        """Raise SymbolicValueError: a symbol has no value."""
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
        what = f"the field {key!r}" if key is not None else "the value"
        raise SymbolicValueError(
            f"{traced_path() or 'Here'}: {what} of a symbol ({self._label}) was read, but a symbol only has a schema; "
            "its value comes when the program runs. Combine symbols with the functions of `sm.ops`; where the value "
            "decides, write sm.Route or sm.Branch for an `if`, sm.Map for a loop, sm.Lambda for a function of it, or a "
            "class with `call`, which declares its output (`-> Answer`, `output_spec` or `compute_output_spec`)."
        )

    def __copy__(self, memo: object = None) -> SymbolicDataModel:
        return symbol(self._schema, self._model, self._label)

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        return symbol, (self._schema, importable(self._model), self._label)

    def __str__(self) -> NoReturn:  # noqa: PLE0307  (it raises)
        """Raise SymbolicValueError: a text of a symbol, in a prompt say, would never show the value."""
        self._refuse_value(None)

    def __format__(self, spec: str) -> NoReturn:
        self._refuse_value(None)

    def __repr__(self) -> str:
        """Show label and fields."""
        return f"SymbolicDataModel({self._label!r}: {field_list(self.keys())})"


def _fill(new: SymbolicDataModel, schema: Schema, model: type[BaseModel] | None, name: str | None) -> None:
    new._schema = schema
    new._model = model
    new._label = name or label_of(schema)
    new._origin = None


def symbol(schema: Schema, data_model: type[BaseModel] | None = None, name: str | None = None) -> SymbolicDataModel:
    """Return a symbol of a schema that is known to be good; nothing is checked.

    For blocks that compute the schema of their output.

    Args:
        schema: A schema as `schema_of` returns it.
        data_model: The class behind it, if any.
        name: Label; the snake case of the schema's title if None.

    Example:
        >>> x = SymbolicDataModel(schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        >>> symbol(schema_of(x), name="again")
        SymbolicDataModel('again': 'a')

    Source: Keras' `KerasTensor`.
    """
    new = SymbolicDataModel.__new__(SymbolicDataModel)
    _fill(new, schema, data_model, name)
    return new


def declare(x: Any, *, root: Root = "object") -> Schema:
    """Return the schema that a declaration stands for.

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
    if isinstance(x, Described):
        return x._schema
    if (model := model_of(x)) is not None:
        schema = schema_of_class(model)
        return schema if root == "any" else schema_from(schema, root=root)
    if isinstance(x, dict):
        return schema_from(x, root=root)
    if x is True and root == "any":
        return trusted_schema(True)
    if isinstance(x, bool):
        raise SchemaError(f"The schema {x} cannot stand here: write a schema with an object at its root.")
    raise ArgumentError(
        f"{x!r:.200} does not declare data: write a DataModel class, a data model, a symbol or a JSON Schema as a dict."
    )


def declaration(schema: Any, data_model: Any, what: str) -> tuple[Schema, type[BaseModel] | None]:
    """Resolve the pair of arguments `schema`, `data_model` to one schema and, where known, its class.

    Raises:
        ArgumentError: Neither is given, or two that differ.
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
        >>> schema_of(SymbolicDataModel(schema={"type": "object", "properties": {"a": {}}}))["properties"]
        {'a': {}}

    Source: Keras' `KerasTensor.shape`.
    """
    if isinstance(x, Described):
        return x._schema
    if (model := model_of(x)) is not None:
        return schema_of_class(model)
    raise ArgumentError(f"{x!r:.200} has no schema: it is not a data model.")


def model_of(x: Any) -> type[BaseModel] | None:
    """Return the class behind a declaration, a value or a symbol; None where only a schema is known."""
    if isinstance(x, Described):
        return x._model
    cls = x if isinstance(x, type) else type(x)
    return cls if issubclass(cls, BaseModel) else None


def label(x: Described[Any]) -> str:
    """Return the label of a value or a symbol, also where a declared field `name` hides it."""
    return x._label or label_of(x._schema)


def label_of(schema: Schema) -> str:
    """Return the label of what nobody named: the snake case of the schema's title."""
    title = schema.get("title")
    words = _NOT_IN_A_NAME.sub("_", title).strip("_") if isinstance(title, str) else ""
    return snake_case(words) if words else "data_model"


def field_list(names: Iterable[str]) -> str:
    """Return the fields there are, as an error shows them."""
    return ", ".join(map(repr, names)) or "none"


def importable(model: type[BaseModel] | None) -> type[BaseModel] | None:
    """Return a class if a pickle can name it; a class made in a function is left out, its schema is enough."""
    if model is None:
        return None
    found: Any = sys.modules.get(model.__module__)
    for step in model.__qualname__.split("."):
        found = getattr(found, step, None)
    return model if found is model else None


def traced_path() -> str:
    """Return the path of the module that runs or is traced, "" where there is none."""
    return RECORDERS["path"]() if "path" in RECORDERS else ""


def is_symbolic(x: Any) -> bool:
    """Whether `x` is a symbol, or a nest of lists, tuples, sets and mappings that holds one.

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
        if id(nest) in seen:
            continue
        seen.add(id(nest))
        if isinstance(nest, Mapping):
            pending.extend(cast("Mapping[Any, Any]", nest).values())
        elif isinstance(nest, list | tuple | set | frozenset):
            pending.extend(cast("list[Any]", nest))
    return False

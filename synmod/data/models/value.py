"""Values: frozen JSON with the schema it satisfies."""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from typing import Any, overload

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod.data.schemas.parts import Parts
from synmod.data.schemas.rooted import properties_of
from synmod.data.schemas.schema import Schema
from synmod.data.subtyping.subtype import is_subschema
from synmod.data.text import dump_json
from synmod.data.validation.validate import validate
from synmod.errors import ArgumentError, DataError, FieldError, SymbolicValueError
from synmod.leaves.frozen import FrozenDict, frozen, is_object, json_equal, thaw
from synmod.leaves.names import did_you_mean

from .class_schema import dump, dump_and_schema
from .described import Described, ModelT, field_list, importable
from .labels import label_of
from .symbol import SymbolicDataModel, declaration, symbol
from .typed import typed_instance, validator_faults

OtherT = TypeVar("OtherT", bound=BaseModel)


class JsonDataModel(Described[ModelT]):
    """A frozen JSON value with its schema; `JsonDataModel[Answer]` in annotations.

    Args:
        json: A JSON object (dict) or a data model.
        schema: JSON Schema of it.
        data_model: Class, value or symbol to take the schema of; the class's own validators run too.
        name: Label; the snake case of the schema's title if None.

    Raises:
        ArgumentError: Neither `schema` nor `data_model` for plain JSON, or two that differ.
        DataError: `json` is no JSON.
        SchemaError: The value does not satisfy the schema, or the schema is bad.

    Example:
        >>> x = JsonDataModel({"a": 1}, schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        >>> x.a, x["a"]
        (1, 1)

    Source: Synalinks' `JsonDataModel`; differs: frozen, and validated when made.
    """

    __module__ = "synmod.data"
    __slots__ = ("__weakref__", "_json", "_parts")

    _json: FrozenDict
    _parts: Parts | None  # of a result of merging, whose schema is written when it is first asked

    @overload
    def __new__(
        cls, json: Any, schema: Any = None, *, data_model: type[OtherT], name: str | None = None
    ) -> JsonDataModel[OtherT]: ...
    @overload
    def __new__(
        cls, json: OtherT, schema: None = None, data_model: None = None, name: str | None = None
    ) -> JsonDataModel[OtherT]: ...
    @overload
    def __new__(
        cls, json: Any, schema: Any = None, data_model: Any = None, name: str | None = None
    ) -> JsonDataModel[Any]: ...
    def __new__(cls, json: Any, schema: Any = None, data_model: Any = None, name: str | None = None) -> Any:
        """Check and freeze."""
        return _checked(json, schema, data_model, name)

    @property
    def name(self) -> Any:
        """The field `name` where it is declared, else the label."""
        if "name" in self._json or "name" in properties_of(self._schema):
            return self["name"]
        return self._label or label_of(self._schema)

    def get_json(self) -> dict[str, Any]:
        """Give a fresh plain copy of the JSON."""
        return thaw(self._json)

    def prettify_json(self) -> str:
        """Write the JSON with an indent of two."""
        return dump_json(self._json, indent=2)

    def keys(self) -> KeysView[str]:
        """Give the keys that are there, in order."""
        return self._json.keys()

    def get(self, key: str, default: Any = None) -> Any:
        """Give the frozen JSON of a field, or `default` where it is absent."""
        return self._json.get(key, default)

    @overload
    def to(self, model: None = None) -> ModelT: ...
    @overload
    def to(self, model: type[OtherT]) -> OtherT: ...
    def to(self, model: type[BaseModel] | None = None) -> Any:
        """Give the typed instance.

        Fields that the class does not declare are left out, unless it allows extras; nothing is coerced.

        Args:
            model: A pydantic class; the class this value was made with or declared by if None.

        Returns:
            A new instance, built by pydantic, validators included.

        Raises:
            ArgumentError: No class is given or known.
            SchemaError: A field is missing or wrong.
        """
        return typed_instance(self._json, model or self._model)

    def to_symbolic_data_model(self, name: str | None = None) -> SymbolicDataModel:
        """Give a symbol of the same schema."""
        return symbol(self._schema, self._model, name or self._label)

    def __getitem__(self, key: str) -> Any:
        try:
            return self._json[key]
        except KeyError:
            return _absent(self, key)

    def __getattr__(self, key: str) -> Any:
        if key == "_schema" and self._parts is not None:
            _put_schema(self, self._parts.schema)
            return self._parts.schema
        try:
            json = self._json
        except AttributeError:  # not filled yet: copy and pickle look around
            raise AttributeError(key) from None
        return json[key] if key in json else _absent(self, key)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"This value is frozen: {key!r} cannot be set. Make a new one from a changed get_json().")

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, JsonDataModel):
            return json_equal(self._json, other._json)
        if isinstance(other, BaseModel) and hasattr(type(other), "__synmod_json__"):
            return json_equal(self._json, dump(other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._json)

    def __synmod_json__(self) -> FrozenDict:
        return self._json

    def __copy__(self) -> JsonDataModel[ModelT]:
        return self

    def __deepcopy__(self, memo: object) -> JsonDataModel[ModelT]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._json, self._schema, importable(self._model), self._label)

    def __repr__(self) -> str:
        """Show the JSON, cut."""
        return f"JsonDataModel({dict(self._json)!s:.500})"


_new: Any = object.__new__
_put_json: Any = JsonDataModel.__dict__["_json"].__set__
_put_parts: Any = JsonDataModel.__dict__["_parts"].__set__
_put_schema: Any = Described.__dict__["_schema"].__set__
_put_model: Any = Described.__dict__["_model"].__set__
_put_label: Any = Described.__dict__["_label"].__set__


def wrap(
    json: FrozenDict, schema: Schema, data_model: type[BaseModel] | None = None, name: str | None = None
) -> JsonDataModel[Any]:
    """Make a value of frozen JSON that is known to be valid; nothing is checked.

    Hot: every result of the algebra and every model reply ends here.
    """
    new = _new(JsonDataModel)
    _put_json(new, json)
    _put_schema(new, schema)
    _put_model(new, data_model)
    _put_label(new, name)
    _put_parts(new, None)
    return new


def wrap_parts(json: FrozenDict, parts: Parts) -> JsonDataModel[Any]:
    """Make a value of a result of merging; its schema is written when somebody asks."""
    new = _new(JsonDataModel)
    _put_json(new, json)
    _put_model(new, None)
    _put_label(new, None)
    _put_parts(new, parts)
    return new


def to_value(x: OtherT, name: str | None = None) -> JsonDataModel[OtherT]:
    """Turn an instance of a data model into a value."""
    json, schema = dump_and_schema(x)
    return wrap(json, schema, type(x), name)


def admit(
    x: Any, schema: Schema, model: type[BaseModel] | None = None, where: str = "", name: str | None = None
) -> JsonDataModel[Any]:
    """Let JSON or a data model in at an edge: give a value that carries `schema`.

    A value whose schema is known to be a subschema is not walked. Where the class is known its validators run too, once
    for a value that was not made from an instance; the value keeps the JSON it came with.

    Raises:
        DataError: `x` is no JSON object.
        SchemaError: It does not satisfy the schema or the class. Begins with `where`.
    """
    if isinstance(x, BaseModel):
        x = to_value(x)
    if isinstance(x, JsonDataModel):
        json, known, made_with = x._json, x._schema, x._model
        name = name or x._label
    else:
        _refuse_no_value(x)
        json, known, made_with = frozen(x), None, None
        if not isinstance(json, FrozenDict):
            raise DataError(f"{where or 'The value'}: a data model is a JSON object; got {x!r:.200}.")
    if known is not schema and not (known is not None and is_subschema(known, schema)):
        validate(schema, json, where)
    if model is not None and not (made_with is not None and issubclass(made_with, model)):
        validator_faults(model, json, where)
    return wrap(json, schema, model or made_with, name)


def _checked(json: Any, schema: Any, data_model: Any, name: str | None) -> JsonDataModel[Any]:
    """Resolve the arguments of `JsonDataModel`."""
    if schema is None and data_model is None:
        if isinstance(json, BaseModel):
            return to_value(json, name)
        if isinstance(json, JsonDataModel):
            return wrap(json._json, json._schema, json._model, name or json._label)
        _refuse_no_value(json)
        raise ArgumentError("JsonDataModel of plain JSON needs `schema=` (a JSON Schema) or `data_model=` (a class).")
    declared, model = declaration(schema, data_model, "JsonDataModel")
    return admit(json, declared, model, name or label_of(declared), name)


def _refuse_no_value(x: Any) -> None:
    """Refuse what has a schema but no value."""
    if isinstance(x, SymbolicDataModel):
        raise SymbolicValueError("A symbol has no value: give JSON, or a data model.")
    if isinstance(x, type):
        raise DataError(f"The class {x.__name__} has no value at run time: give an instance, or JSON.")


def _absent(x: JsonDataModel[Any], key: str) -> Any:
    """Give the declared default of a field that is not there, or say what is."""
    declared = properties_of(x._schema)
    if key in declared:
        field = declared[key]
        if is_object(field) and "default" in field:
            return field["default"]
        raise FieldError(f"The field {key!r} is declared, but absent here: read it with `get({key!r}, ...)`.")
    known = [*x._json, *(field for field in declared if field not in x._json)]
    raise FieldError(f"There is no field {key!r}; there are {field_list(known)}.{did_you_mean(key, known)}")

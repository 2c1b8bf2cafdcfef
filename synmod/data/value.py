"""Values: frozen JSON with the schema it satisfies."""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from typing import Any, overload

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from typing_extensions import TypeVar

from synmod.errors import ArgumentError, DataError, FieldError, Problem, SchemaError, SymbolicValueError
from synmod.leaves.frozen import FrozenDict, dump_json, frozen, frozen_dict, is_array, is_object, json_equal, thaw
from synmod.leaves.names import did_you_mean, pointer

from .class_schema import dump, schema_of_class
from .parts import properties_of
from .schema import Schema
from .subschema import is_subschema
from .symbols import (
    Described,
    ModelT,
    SymbolicDataModel,
    declaration,
    declare,
    field_list,
    importable,
    label,
    label_of,
    symbol,
)
from .validation import validate

OtherT = TypeVar("OtherT", bound=BaseModel)

_MOST_FAULTS = 10


class JsonDataModel(Described[ModelT]):
    """A frozen JSON value with its schema; `JsonDataModel[Answer]` in annotations.

    Args:
        json: A JSON object (dict) or a data model.
        schema: JSON Schema of it.
        data_model: Class, value or symbol to take the schema of; the class's own validators run too.
        name: Label; the snake case of the schema's title if None.

    Raises:
        ArgumentError: Neither `schema` nor `data_model` for plain JSON, or two that differ.
        DataError: `json` is not JSON.
        SchemaError: The value does not satisfy the schema, or the schema is bad.

    Example:
        >>> x = JsonDataModel({"a": 1}, schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        >>> x.a, x["a"]
        (1, 1)

    Source: Synalinks' `JsonDataModel`; differs: frozen, and validated when made.
    """

    __module__ = "synmod.data"
    __slots__ = ("__weakref__", "_json")

    _json: FrozenDict

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
        if schema is None and data_model is None:
            if isinstance(json, BaseModel):
                return to_value(json, name)
            if isinstance(json, JsonDataModel):
                return wrap(json._json, json._schema, json._model, name or json._label)
            _refuse_no_value(json)
            raise ArgumentError(
                "JsonDataModel of plain JSON needs `schema=` (a JSON Schema) or `data_model=` (a class)."
            )
        declared, model = declaration(schema, data_model, "JsonDataModel")
        return admit(json, declared, model, name or label_of(declared), name)

    @staticmethod
    def of(
        json: Any, schema: Any, data_model: type[BaseModel] | None = None, name: str | None = None
    ) -> JsonDataModel[Any]:
        """Return a value whose JSON is known to satisfy its schema: it is frozen, but not validated.

        For blocks that put a value together from valid parts.

        Args:
            json: A JSON object, plain or frozen.
            schema: Its schema: as `schema_of` returns it, or any declaration.
            data_model: The class behind it, which `to()` builds, if any.
            name: Label; the snake case of the schema's title if None.

        Raises:
            DataError: `json` is not a JSON object.
            SchemaError: The schema is bad.
            ArgumentError: `schema` does not declare data.

        Example:
            >>> JsonDataModel.of({"a": 1}, {"type": "object", "properties": {"a": {"type": "integer"}}})
            JsonDataModel({'a': 1})
        """
        json = frozen(json)
        if not isinstance(json, FrozenDict):
            raise DataError(f"A data model is a JSON object; got {json!r:.200}.")
        return wrap(json, declare(schema), data_model, name)

    @property
    def name(self) -> Any:
        """The field `name` where it is declared, else the label."""
        if "name" in self._json or "name" in properties_of(self._schema):
            return self["name"]
        return label(self)

    def get_json(self) -> dict[str, Any]:
        """Return a fresh plain copy of the JSON."""
        return thaw(self._json)

    def prettify_json(self) -> str:
        """Return the JSON as text with an indent of two."""
        return dump_json(self._json, indent=2)

    def keys(self) -> KeysView[str]:
        """Return the keys that are there, in order."""
        return self._json.keys()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the frozen JSON of a field, or `default` where it is absent."""
        return self._json.get(key, default)

    @overload
    def to(self, model: None = None) -> ModelT: ...
    @overload
    def to(self, model: type[OtherT]) -> OtherT: ...
    def to(self, model: type[BaseModel] | None = None) -> Any:
        """Return the typed instance.

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
        """Return a symbol of the same schema."""
        return symbol(self._schema, self._model, name or self._label)

    def __getitem__(self, key: str) -> Any:
        try:
            return self._json[key]
        except KeyError:
            return _absent(self, key)

    def __getattr__(self, key: str) -> Any:
        try:
            json = self._json
        except AttributeError:  # not filled yet: copy and pickle look around
            raise AttributeError(key) from None
        return json[key] if key in json else _absent(self, key)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"This value is frozen: {key!r} cannot be set. Make a new one from a changed get_json().")

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __bool__(self) -> bool:
        """Always true: only None means 'not there'."""
        return True

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

    def __copy__(self, memo: object = None) -> JsonDataModel[ModelT]:
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._json, self._schema, importable(self._model), self._label)

    def __repr__(self) -> str:
        """Show the JSON, cut."""
        return f"JsonDataModel({dict(self._json)!s:.500})"


_new: Any = object.__new__
_put_json: Any = JsonDataModel.__dict__["_json"].__set__
_put_schema: Any = Described.__dict__["_schema"].__set__
_put_model: Any = Described.__dict__["_model"].__set__
_put_label: Any = Described.__dict__["_label"].__set__


def wrap(
    json: FrozenDict, schema: Schema, data_model: type[BaseModel] | None = None, name: str | None = None
) -> JsonDataModel[Any]:
    """Return a value of frozen JSON that is known to be valid; nothing is checked.

    Hot: every result of the algebra and every model reply ends here.
    """
    new = _new(JsonDataModel)
    _put_json(new, json)
    _put_schema(new, schema)
    _put_model(new, data_model)
    _put_label(new, name)
    return new


def to_value(x: OtherT, name: str | None = None) -> JsonDataModel[OtherT]:
    """Return the value of an instance of a data model."""
    return wrap(dump(x), schema_of_class(type(x)), type(x), name)


def admit(
    x: Any, schema: Schema, model: type[BaseModel] | None = None, where: str = "", name: str | None = None
) -> JsonDataModel[Any]:
    """Check JSON or a data model at an edge, and return a value that carries `schema`.

    A value whose schema is known to be a subschema is not walked. Where the class is known its validators run too, once
    for a value that was not made from an instance; the value keeps the JSON it came with.

    Raises:
        DataError: `x` is not JSON.
        SchemaError: It is not an object, or does not satisfy the schema or the class. Begins with `where`.
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
            fault = Problem("", "an object", f"{dump_json(json):.200}")
            raise SchemaError(f"{where or 'The value'}: a data model is a JSON object; got {fault.got}.", [fault])
    if known is not schema and not (known is not None and is_subschema(known, schema)):
        validate(schema, json, where)
    if model is not None and not (made_with is not None and issubclass(made_with, model)):
        validator_faults(model, json, where)
    return wrap(json, schema, model or made_with, name)


def _refuse_no_value(x: Any) -> None:
    """Raise for what has a schema but no value."""
    if isinstance(x, SymbolicDataModel):
        raise SymbolicValueError("A symbol has no value: write JSON, or a data model.")
    if isinstance(x, type):
        raise DataError(f"The class {x.__name__} has no value at run time: write an instance, or JSON.")


def _absent(x: JsonDataModel[Any], key: str) -> Any:
    """Return the declared default of a field that is not there, or raise FieldError with the fields that are."""
    declared = properties_of(x._schema)
    if key in declared:
        field = declared[key]
        if is_object(field) and "default" in field:
            return field["default"]
        raise FieldError(f"The field {key!r} is declared, but absent here: read it with `get({key!r}, default=None)`.")
    known = [*x._json, *(field for field in declared if field not in x._json)]
    raise FieldError(f"There is no field {key!r}; there are {field_list(known)}.{did_you_mean(key, known)}")


def typed_instance(json: FrozenDict, model: Any) -> BaseModel:
    """Return an instance of `model`, built from the fields it declares.

    Raises:
        ArgumentError: `model` is not a pydantic class.
        SchemaError: A field is missing or wrong.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        got = "only a schema is known here" if model is None else f"got {model!r:.100}"
        raise ArgumentError(f"There is no class to build: {got}. Write x.to(Model) with a data-model class.")
    schema = schema_of_class(model)
    if model.model_config.get("extra") != "allow":
        declared = properties_of(schema)
        if not json.keys() <= declared.keys():
            json = frozen_dict({key: value for key, value in json.items() if key in declared})
    validate(schema, json, model.__name__)
    return validator_faults(model, json, model.__name__)


def validator_faults(model: type[BaseModel], json: FrozenDict, where: str) -> BaseModel:
    """Run the validators of a class on JSON that is valid for its schema; return the instance.

    Raises:
        SchemaError: The class does not accept it. Begins with `where`.
    """
    try:
        # From text, so that strict classes read dates, and no frozen part gets into an instance. The whole is made
        # plain beforehand, since pydantic tries all else before a subclass of dict.
        return model.model_validate_json(to_json(dict(json)))
    except ValidationError as error:
        faults = [
            Problem(pointer(_place(fault["loc"], json)), fault["msg"], f"{fault['input']!r:.200}")
            for fault in error.errors(include_url=False)[:_MOST_FAULTS]
        ]
        lines = "\n".join(f"  {fault.pointer or 'the whole'}: {fault.wanted}; got {fault.got}" for fault in faults)
        raise SchemaError(f"{where}: the class does not accept the value:\n{lines}", faults) from error


def _place(steps: tuple[str | int, ...], json: Any) -> list[str | int]:
    """Keep the steps that lead somewhere in the JSON: pydantic also names the alternatives it has tried."""
    place: list[str | int] = []
    for step in steps:
        if is_object(json) and step in json:
            json = json[str(step)]
        elif is_array(json) and isinstance(step, int) and step < len(json):
            json = json[step]
        else:
            continue
        place.append(step)
    return place

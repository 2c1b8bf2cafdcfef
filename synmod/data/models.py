"""Data models, values and symbols: what flows through a program.

`DataModel` is a typed class, `JsonDataModel` a frozen value with its schema, `SymbolicDataModel` a schema that stands
for a value to come. `ReadyMade` is the base class of the data models of this library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, dataclass_transform, get_args, overload

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import TypeVar

from synmod import registry
from synmod.errors import DataError, FieldError, Problem, SchemaError, SymbolicValueError
from synmod.leaves import FrozenDict, did_you_mean, dump_json, frozen, is_mapping, is_object, json_equal, leaves, thaw
from synmod.leaves.nests import map_leaves

from . import declaring, subschema
from .declaring import HasSchema, ModelT, Operand, OperandClass, declaration, dump, label, label_of, schema_of_class
from .faults import validate
from .schema import Schema, properties_of

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

OtherT = TypeVar("OtherT", bound=BaseModel)


@dataclass(frozen=True)
class SymbolTracing:
    """What higher rooms do with symbols; `synmod/__init__.py` sets the instance.

    Attributes:
        record_operation: Records an operation, by name, plan, operands and keywords, in the symbol that it returned.
        current_path: Returns the path of the module that runs or is traced, or "".
    """

    record_operation: Callable[[str, Any, tuple[Any, ...], Mapping[str, Any], SymbolicDataModel], None]
    current_path: Callable[[], str]
    instance: ClassVar[SymbolTracing]


class SymbolicDataModel(HasSchema[Any]):
    """A schema in place of the value that a program will have at this point, which may be None.

    Args:
        schema: A JSON Schema with an object at its root.
        data_model: A data-model class, instance, value or symbol to take the schema of.
        name: Label; the snake case of the schema's title if None.

    Raises:
        ArgumentError: Neither `schema` nor `data_model` is given, or the two differ.
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
        self._fill(declared, model, name)

    def _fill(self, schema: Schema, model: type[BaseModel] | None, name: str | None) -> None:
        self._schema = schema
        self._model = model
        self._label = name or label_of(schema)
        self._origin = None

    @property
    def name(self) -> str:
        """The label; SymbolicValueError if a field `name` is declared, since the field has no value yet."""
        if "name" in properties_of(self._schema):
            self._refuse_value("name")
        return label(self)

    def keys(self) -> tuple[str, ...]:
        """Return the declared fields, in order."""
        return tuple(properties_of(self._schema))

    def get(self, key: str, default: Any = None) -> NoReturn:  # noqa: ARG002  (as of values)
        """Raise SymbolicValueError: a symbol has no value."""
        self._refuse_value(key)

    def get_json(self, *_: Any, **__: Any) -> NoReturn:
        """Raise SymbolicValueError: a symbol has no value, so any truth value, iteration or f-string would be wrong."""
        self._refuse_value()

    __getitem__ = get
    to = prettify_json = __iter__ = __len__ = __bool__ = __format__ = get_json

    def __getattr__(self, key: str) -> NoReturn:
        try:
            declared = properties_of(self._schema)
        except AttributeError:  # not filled yet: copy and pickle probe for attributes
            raise AttributeError(key) from None
        if key in declared:
            self._refuse_value(key)
        hint = did_you_mean(key, declared)
        raise FieldError(f"The symbol has no field {key!r}; its fields are {declaring.field_list(declared)}.{hint}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, JsonDataModel | DataModel):  # it would always be False
            self._refuse_value()
        return self is other

    __hash__ = object.__hash__

    def _refuse_value(self, key: str | None = None) -> NoReturn:
        place = SymbolTracing.instance.current_path()
        what = f"the value of {self!r}" if key is None else f"the field {key!r} of the symbol {self._label!r}"
        raise SymbolicValueError(
            f"{f'{place}: ' if place else ''}{what} was read, but a symbol only has a schema; its value comes when the "
            "program runs. Combine symbols with the functions of `sm.ops`; where the value decides, write sm.Route or "
            "sm.Branch for an `if`, sm.Map for a loop, sm.Lambda for a function of it, or a class with `call`, which "
            "declares its output (`-> Answer`, `output_spec` or `compute_output_spec`)."
        )

    def __copy__(self, memo: object = None) -> SymbolicDataModel:
        return symbol(self._schema, self._model, self._label)

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        return symbol, (self._schema, declaring.importable(self._model), self._label)

    def __repr__(self) -> str:
        """Show label and fields."""
        return f"SymbolicDataModel({self._label!r}: {declaring.field_list(self.keys())})"


def symbol(schema: Schema, data_model: type[BaseModel] | None = None, name: str | None = None) -> SymbolicDataModel:
    """Return a symbol of a schema that is known to be valid; nothing is checked.

    For blocks that compute the schema of their output.

    Args:
        schema: A schema as `schema_of` returns it.
        data_model: The class behind it, if any.
        name: Label; the snake case of the schema's title if None.

    Example:
        >>> x = SymbolicDataModel(schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        >>> symbol(sm.data.schema_of(x), name="again")
        SymbolicDataModel('again': 'a')

    Source: Keras' `KerasTensor`.
    """
    new = SymbolicDataModel.__new__(SymbolicDataModel)
    new._fill(schema, data_model, name)
    return new


class JsonDataModel(HasSchema[ModelT]):
    """A frozen JSON value with its schema; `JsonDataModel[Answer]` in annotations.

    Args:
        json: A JSON object (dict) or a data model.
        schema: Its JSON Schema.
        data_model: Class, value or symbol to take the schema of; the class's own validators run too.
        name: Label; the snake case of the schema's title if None.

    Raises:
        ArgumentError: Neither `schema` nor `data_model` is given for plain JSON, or the two differ.
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
            _require_value(json)
        declared, model = declaration(schema, data_model, "JsonDataModel")
        return value_from(json, declared, model, name or label_of(declared), name)

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
        return wrap(json, declaring.declare(schema), data_model, name)

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
        """Return the keys that are present, in order."""
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
            A new instance, built by pydantic, validators included; for a `Wrapped` value, the bare value.

        Raises:
            ArgumentError: No class is given or known.
            SchemaError: A field is missing or wrong.
        """
        instance = declaring.build_instance(self._json, model or self._model)
        return vars(instance)["value"] if model is None and isinstance(instance, Wrapped) else instance

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
        except AttributeError:  # not filled yet: copy and pickle probe for attributes
            raise AttributeError(key) from None
        return json[key] if key in json else _absent(self, key)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"This value is frozen: {key!r} cannot be set. Make a new one from a changed get_json().")

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __bool__(self) -> bool:
        """Return True: only None means 'absent'."""
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, JsonDataModel):
            return json_equal(self._json, other._json)
        if isinstance(other, BaseModel) and hasattr(type(other), "__synmod_json__"):
            return json_equal(self._json, dump(other))
        return _equals_mapping(self._json, other)

    def __hash__(self) -> int:
        return hash(self._json)

    def __synmod_json__(self) -> FrozenDict:
        return self._json

    def __copy__(self, memo: object = None) -> JsonDataModel[ModelT]:
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._json, self._schema, declaring.importable(self._model), self._label)

    def _repr_html_(self) -> str:
        """Return a table of the fields, for notebooks."""
        return _fields_table(self._json)

    def __repr__(self) -> str:
        """Show the JSON, cut."""
        return f"JsonDataModel({dict(self._json)!s:.500})"


def _equals_mapping(json: FrozenDict, other: object) -> bool:
    """Whether a mapping holds equal JSON; NotImplemented for anything else."""
    if not is_mapping(other):
        return NotImplemented
    try:
        return json_equal(json, dict(other))
    except DataError:
        return False


def _fields_table(json: Mapping[str, Any]) -> str:
    """Return a line per field: texts as they are, all else as JSON."""
    from synmod.leaves import html_table

    rows = ((key, value if isinstance(value, str) else dump_json(value)) for key, value in json.items())
    return html_table(("field", "value"), rows)


_new: Any = object.__new__
_put_json: Any = JsonDataModel.__dict__["_json"].__set__
_put_schema: Any = HasSchema.__dict__["_schema"].__set__
_put_model: Any = HasSchema.__dict__["_model"].__set__
_put_label: Any = HasSchema.__dict__["_label"].__set__


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


def value_from(
    x: Any, schema: Schema, model: type[BaseModel] | None = None, where: str = "", name: str | None = None
) -> JsonDataModel[Any]:
    """Check JSON or a data model from outside, and return a value with `schema`.

    A value whose schema is known to be a subschema is not validated again. If the class is known, its validators run
    too, unless the value was made with that class; the value keeps its JSON.

    Raises:
        DataError: `x` is not JSON.
        SchemaError: It is not an object, or does not satisfy the schema or the class. Begins with `where`.
    """
    if isinstance(x, BaseModel):
        x = to_value(x)
    if isinstance(x, JsonDataModel):
        json, own_schema, own_model = x._json, x._schema, x._model
        name = name or x._label
    else:
        _require_value(x)
        json, own_schema, own_model = frozen(x), None, None
        if not isinstance(json, FrozenDict):
            fault = Problem("", "an object", f"{dump_json(json):.200}")
            raise SchemaError(f"{where or 'The value'}: a data model is a JSON object; got {fault.got}.", [fault])
    if own_schema is None or not subschema.proven(own_schema, schema):
        validate(schema, json, where)
    if model is not None and not (own_model is not None and issubclass(own_model, model)):
        declaring.run_validators(model, json, where)
    return wrap(json, schema, model or own_model, name)


def _require_value(x: Any) -> None:
    """Raise for what has a schema but no value."""
    if isinstance(x, SymbolicDataModel):
        raise SymbolicValueError("A symbol has no value: write JSON, or a data model.")
    if isinstance(x, type):
        raise DataError(f"The class {x.__name__} has no value at run time: write an instance, or JSON.")


def _absent(x: JsonDataModel[Any], key: str) -> Any:
    """Return the declared default of an absent field, or raise FieldError with the fields that are present."""
    declared = properties_of(x._schema)
    if key in declared:
        field = declared[key]
        if is_object(field) and "default" in field:
            return field["default"]
        raise FieldError(f"The field {key!r} is declared, but absent here: read it with `get({key!r}, default=None)`.")
    names = [*x._json, *(field for field in declared if field not in x._json)]
    hint = did_you_mean(key, names)
    if key in vars(dict) or key in vars(BaseModel):
        hint = f" {key!r} is a method of another type: write x.get_json() for the dict, x.to() for the instance."
    raise FieldError(f"There is no field {key!r}; there are {declaring.field_list(names)}.{hint}")


@dataclass_transform(kw_only_default=True, field_specifiers=(Field, PrivateAttr))
class DataModelClass(OperandClass, ModelMetaclass):
    """The class of data-model classes: pydantic's, with operators between classes."""


def _as_plain(leaf: Any) -> Any:
    """Return the JSON of a value, anything else as it is."""
    return leaf.get_json() if isinstance(leaf, JsonDataModel) else leaf


class DataModel(BaseModel, Operand, metaclass=DataModelClass):  # noqa: PLW1641  # hashed as pydantic decides
    """A typed JSON object: fields as in pydantic; unknown ones are an error, assignments are validated.

    Operators on classes and instances: `+ & ^ ~` and `in`; on classes `|` is Python's union.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or wrong, at construction or assignment.

    Example:
        >>> class Query(DataModel):
        ...     question: str
        >>> Query(question="why?").get_json()
        {'question': 'why?'}

    Source: Synalinks' `DataModel`, pydantic.
    """

    __module__ = "synmod.data"

    # without `constants`, pydantic writes infinity as null in a field of Any
    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True, ser_json_inf_nan="constants")

    if not TYPE_CHECKING:

        def __init__(self, /, **fields: Any) -> None:
            """Make an instance; a value among the fields becomes its JSON. Hot, so `super()` is left out."""
            try:
                self.__pydantic_validator__.validate_python(fields, self_instance=self)
            except ValidationError as error:
                names = {fault["loc"][0] for fault in error.errors(include_url=False) if fault["loc"]} & fields.keys()
                plain = {name: map_leaves(_as_plain, fields[name]) for name in names}
                same = all(plain[name] is fields[name] for name in names)
                if same or any(isinstance(value, Iterator) for value in fields.values()):  # it has been read
                    raise
                self.__pydantic_validator__.validate_python({**fields, **plain}, self_instance=self)

        __init__.__pydantic_base_init__ = True  # for pydantic: it need not be called for an instance inside another

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        """Return a fresh plain copy of the JSON Schema (2020-12, by alias).

        Raises:
            SchemaError: The class breaks a rule of data models; names the field.
        """
        return thaw(schema_of_class(cls))

    @classmethod
    def prettify_schema(cls) -> str:
        """Return the JSON Schema as text with an indent of two."""
        return dump_json(schema_of_class(cls), indent=2)

    def get_json(self) -> dict[str, Any]:
        """Return the JSON by alias, None and defaults kept.

        Raises:
            DataError: It does not satisfy the schema of the class, as after a field was edited in place.
        """
        return thaw(dump(self))

    def prettify_json(self) -> str:
        """Return the JSON as text with an indent of two."""
        return dump_json(dump(self), indent=2)

    def _repr_html_(self) -> str:
        """Return a table of the fields, for notebooks."""
        return _fields_table(dump(self))

    def to_json_data_model(self, name: str | None = None) -> JsonDataModel[Self]:
        """Return the frozen value of this instance."""
        return to_value(self, name)

    @classmethod
    def to_symbolic_data_model(cls, name: str | None = None) -> SymbolicDataModel:
        """Return a symbol of this class's schema."""
        return symbol(schema_of_class(cls), cls, name)

    def __getitem__(self, key: str) -> Any:
        return to_value(self)[key]

    def __eq__(self, other: object) -> bool:
        if is_mapping(other):
            return _equals_mapping(dump(self), other)
        return super().__eq__(other)

    def __synmod_json__(self) -> FrozenDict:
        return dump(self)


class Wrapped(DataModel):
    """A value that is not an object, such as a list: subclasses declare the field `value`; `.to()` returns it bare."""

    model_config = ConfigDict(defer_build=True)


for own in (DataModel, Wrapped):  # a user's class is completed when it is defined
    del own.model_config["defer_build"]
registry.admit(DataModel)


def is_symbolic(x: Any) -> bool:
    """Whether `x` is a symbol, or a nest that holds one.

    Args:
        x: Anything.

    Returns:
        True if a symbol is found.

    Raises:
        CallError: Containers nest more than 100 deep, or one holds itself.

    Example:
        >>> is_symbolic([1, {"a": SymbolicDataModel(schema={"type": "object", "properties": {}})}])
        True

    Source: Keras' `any_symbolic_tensors`.
    """
    return any(isinstance(leaf, SymbolicDataModel) for leaf in leaves(x))


# -- ready-made classes ------------------------------------------------------------------------------------------------

FieldFault = tuple[str, str, Any]
"""Field, what is wrong with it, its value."""

_FOR_PEOPLE: Final = re.compile(r"\n\n(?:Args|Attributes|Example|Raises|Source):")


def _cut_description(schema: dict[str, Any]) -> None:
    """Cut a description for language models: arguments, errors and examples are for people."""
    if "description" in schema:
        schema["description"] = _FOR_PEOPLE.split(schema["description"], maxsplit=1)[0]


SHORT_DESCRIPTION: Final = ConfigDict(json_schema_extra=_cut_description, defer_build=True)
"""Configuration of a ready-made class: its schema has a short description, and is made when it is first needed."""

PROVIDER_CONFIG: Final[ConfigDict] = {**SHORT_DESCRIPTION, "extra": "allow"}
"""Configuration of what a provider writes: keys of its own stay as they are, and are sent back to it."""


class ReadyMade(DataModel):
    """A data model of ours: takes its first fields by position, writes a constant `type`, and checks the whole.

    Keys that the class does not declare, where it takes any, come in by dicts only: a misspelt keyword is an error.
    """

    model_config = SHORT_DESCRIPTION

    _positions: ClassVar[tuple[str, ...] | None] = None
    """The fields that come by position; None for all but `type`."""
    _constructors: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**self._by_name(args, fields))

        __init__.__pydantic_base_init__ = True  # for pydantic: it need not be called for a dict inside another

    @classmethod
    def _by_name(cls, args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments by name (TypeError for too many, or one given twice)."""
        names = cls._positions
        if names is None:
            names = tuple(name for name in cls.model_fields if name != "type")
        if len(args) > len(names):
            most = f"at most {len(names)} positional arguments {names}"
            raise TypeError(f"{cls.__name__} takes {most}, got {len(args)}.{cls._constructors}")
        positional = dict(zip(names, args, strict=False))
        for name in positional.keys() & fields.keys():
            raise TypeError(f"{cls.__name__} got {name!r} twice, by position and by keyword.")
        if unknown := [name for name in fields if name not in cls._keywords()]:
            raise ValidationError.from_exception_data(
                cls.__name__,
                [InitErrorDetails(type="extra_forbidden", loc=(name,), input=fields[name]) for name in unknown],
            )
        return {**positional, **fields}

    @classmethod
    def _keywords(cls) -> Iterable[str]:
        """Return the names of the keywords."""
        return cls.model_fields

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Write the constant `type` where it is missing."""
        kind = cls.model_fields.get("type")
        if kind is None or not is_mapping(value):
            return value
        return {"type": get_args(kind.annotation)[0], **value}

    def _faults(self) -> Iterator[FieldFault]:
        """Yield the faults of the fields taken together."""
        yield from ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Raise pydantic's ValidationError, with each fault at its field."""
        faults = [
            InitErrorDetails(
                type=PydanticCustomError("field_fault", "{what}", {"what": what}), loc=(field,), input=value
            )
            for field, what, value in self._faults()
        ]
        if faults:
            raise ValidationError.from_exception_data(type(self).__name__, faults)
        return self

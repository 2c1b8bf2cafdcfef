"""Data models: pydantic classes whose schema and JSON are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

from synmod.leaves.frozen import FrozenDict, dump_json, thaw
from synmod.registry import admit

from .class_schema import dump, schema_of_class
from .operators import OPERATORS, Operand, OperandClass
from .symbols import SymbolicDataModel, symbol
from .value import JsonDataModel, to_value

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class DataModelClass(OperandClass, ModelMetaclass):
    """The class of data-model classes: pydantic's, with operators between classes."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> type:
        """Defer only `DataModel` itself: a user's class is completed when it is defined, as pydantic's users expect."""
        asked: Any = namespace.get("model_config") or {}
        if "defer_build" not in asked and globals().get("DataModel") in bases:
            config.setdefault("defer_build", False)
        return super().__new__(mcs, name, bases, namespace, **config)


class DataModel(BaseModel, Operand, metaclass=DataModelClass):
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

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=True,
        defer_build=True,
        ser_json_inf_nan="constants",  # in a field of Any they would be written as null
    )

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
            DataError: It does not satisfy the schema of the class, such as a field edited in place.
        """
        return thaw(dump(self))

    def prettify_json(self) -> str:
        """Return the JSON as text with an indent of two."""
        return dump_json(dump(self), indent=2)

    def to_json_data_model(self, name: str | None = None) -> JsonDataModel[Self]:
        """Return the frozen value of this instance."""
        return to_value(self, name)

    @classmethod
    def to_symbolic_data_model(cls, name: str | None = None) -> SymbolicDataModel:
        """Return a symbol of this class's schema."""
        return symbol(schema_of_class(cls), cls, name)

    def __getitem__(self, key: str) -> Any:
        return to_value(self)[key]

    def __contains__(self, key: Any) -> bool:
        return OPERATORS["holds"](self, key)

    def __synmod_json__(self) -> FrozenDict:
        return dump(self)


admit(DataModel)

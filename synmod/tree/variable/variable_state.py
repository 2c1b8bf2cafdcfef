"""One leaf of a State: what a Variable was at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from synmod.data import declare, validate
from synmod.errors import ArgumentError
from synmod.leaves.frozen import FrozenDict, Json, frozen, json_equal
from synmod.tree.variable import about

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data import Schema

VariableClass: TypeAlias = type[Any]
"""A class derived from Variable, which this file, being below it, does not know."""

_EMPTY: Final = about.about(True, None, None, {})


@final
class VariableState:
    """Type, value, schema and metadata of a Variable; frozen, and always valid.

    Args:
        type: Class of the Variable.
        value: JSON or a data model that satisfies the schema.
        schema: JSON Schema, or what else declares one; `{}` admits anything.
        metadata: `trainable` (the Variable's own bit), `name`, `description` and free metadata in one mapping.

    Raises:
        ArgumentError: `type` is no class.
        DataError: The value is no JSON.
        SchemaError: The value does not satisfy the schema.

    Example:
        >>> from synmod.tree import Param
        >>> VariableState(Param, "brief", {"type": "string"}).to_variable().value
        'brief'

    Source: Flax NNX `VariableState`.
    """

    __slots__ = ("metadata", "schema", "type", "value")

    type: VariableClass
    value: Json
    schema: Schema
    metadata: FrozenDict

    def __init__(
        self,
        type: VariableClass,  # noqa: A002  (the name of the field)
        value: Json,
        schema: Json = True,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        if not hasattr(type, "trainable_default"):
            raise ArgumentError(f"The type of a VariableState is a Variable class, such as sm.Param, not {type!r}.")
        declared = declare(schema, root="any")
        kept = frozen(value)
        validate(declared, kept, type.__name__)
        says = {"trainable": type.trainable_default, **(metadata or {})}
        _filled(self, type, kept, declared, about.checked(says))

    @property
    def trainable(self) -> bool:
        """The Variable's own bit."""
        return self.metadata["trainable"]

    @property
    def name(self) -> str | None:
        """The label."""
        return self.metadata.get("name")

    @property
    def description(self) -> str | None:
        """What the Variable is for."""
        return self.metadata.get("description")

    def to_variable(self) -> Any:
        """Make a new Variable of this."""
        return self.type._made(self.value, self.schema, self.metadata)

    def with_value(self, value: Json) -> VariableState:
        """Give the same leaf with another value.

        Raises:
            DataError: It is no JSON.
            SchemaError: It does not satisfy the schema.
        """
        kept = frozen(value)
        validate(self.schema, kept, self.type.__name__)
        return snapshot(self.type, kept, self.schema, self.metadata)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A VariableState is frozen: {name!r} cannot be set. Use State.replace or State.map.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A VariableState is frozen: {name!r} cannot be deleted.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VariableState):
            return NotImplemented
        return (
            self.type is other.type
            and json_equal(self.value, other.value)
            and (self.schema is other.schema or json_equal(self.schema, other.schema))
            and (self.metadata is other.metadata or json_equal(self.metadata, other.metadata))
        )

    def __hash__(self) -> int:
        return hash((self.type, self.value))

    def __copy__(self) -> VariableState:
        return self

    def __deepcopy__(self, memo: object) -> VariableState:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.type, self.value, dict(self.schema), self.metadata)

    def __repr__(self) -> str:
        return f"VariableState({self.type.__name__}, {self.value!r:.80})"


_put_type: Any = VariableState.__dict__["type"].__set__
_put_value: Any = VariableState.__dict__["value"].__set__
_put_schema: Any = VariableState.__dict__["schema"].__set__
_put_metadata: Any = VariableState.__dict__["metadata"].__set__


def snapshot(cls: VariableClass, value: Json, schema: Schema, metadata: FrozenDict) -> VariableState:
    """Make a leaf of parts that are known to fit. Hot: one for each leaf of a split."""
    leaf = _new(VariableState)
    _put_type(leaf, cls)
    _put_value(leaf, value)
    _put_schema(leaf, schema)
    _put_metadata(leaf, metadata)
    return leaf


_new: Any = object.__new__


def _filled(
    leaf: VariableState, cls: VariableClass, value: Json, schema: Schema, metadata: FrozenDict
) -> VariableState:
    _put_type(leaf, cls)
    _put_value(leaf, value)
    _put_schema(leaf, schema)
    _put_metadata(leaf, metadata)
    return leaf


def _again(cls: VariableClass, value: Json, schema: Json, metadata: FrozenDict) -> VariableState:
    """Rebuild a pickled leaf."""
    return VariableState(cls, value, schema, metadata)

"""Variables: the only state of a program. A Variable holds frozen JSON, a schema and metadata; writes are atomic.

Reads go through the open layers (overlays, traces) of the running task, in one ContextVar. `VariableState` is a frozen
snapshot of a Variable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from inspect import iscoroutine
from typing import Any, ClassVar, Final, NoReturn, Self, TypeAlias, final

from synmod import data, leaves, registry
from synmod.errors import ArgumentError, DataError, FieldError, SchemaError
from synmod.leaves import FrozenDict, FrozenList, Json
from synmod.scope import notify_assign

from .initializers import Empty, empty_value

MISSING: Final[Any] = object()
"""A missing value, where None is a value."""

LABELS: Final = frozenset({"trainable", "name", "description"})
"""The metadata keys with a meaning of their own; all other keys are free."""


def class_of(x: object) -> type[Any]:
    """Return the class of an object; for type checkers, which report `type(x)` of an Any as partly unknown."""
    return type(x)


class Immutable:
    """A class whose attributes are set once, on creation; a copy of an instance is the instance itself."""

    __slots__ = ()

    def _put(self, **attributes: Any) -> None:
        """Set the attributes of a new instance."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A {type(self).__name__} is frozen: {name!r} cannot be set. Make a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A {type(self).__name__} is frozen: {name!r} cannot be deleted. Make a new one.")

    def __copy__(self, memo: object = None) -> Self:
        return self

    __deepcopy__ = __copy__


# -- layers over values ------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Layer:
    """Values by the identity of their Variable, over an outer layer or the live values.

    A context manager: inside the block, and in the tasks started there, the layer is innermost.

    Args:
        members: Identities of the Variables whose writes go to this layer; None for all.
        values: First values, by identity; the caller keeps those Variables alive.
        silent: Whether writes send no event.
        remember: Is called with each Variable before its live value or its metadata changes; None for nothing.

    Attributes:
        outer: The layer around, set on entry.
        written: The Variables that were written, by identity.
    """

    members: Container[int] | None
    values: dict[int, Json]
    silent: bool = False
    remember: Callable[[Variable], None] | None = None
    outer: Layer | None = field(default=None, init=False)
    written: dict[int, Variable] = field(default_factory=dict[int, Any], init=False)

    def __enter__(self) -> None:
        self.outer = LAYER.get()
        LAYER.set(self)

    def __exit__(self, *_: object) -> None:
        """Remove the layer, wherever it is in this context: a block inside it may still be open."""
        layer = LAYER.get()
        if layer is self:
            LAYER.set(self.outer)
        while layer is not None:
            if layer.outer is self:
                layer.outer = self.outer
            layer = layer.outer


LAYER: Final[ContextVar[Layer | None]] = ContextVar("synmod_overlay", default=None)
"""The innermost layer of this context."""


def discard_writes() -> Layer:
    """Return a block in which `assign` validates but its writes are discarded at the end; no live value changes.

    Source: Keras' symbolic calls, which write nothing.
    """
    return Layer(None, {}, silent=True)


class keep_writes:  # noqa: N801  # read as a word: `with keep_writes(...):`
    """Set all layers aside: what this block reads and writes is live.

    Args:
        remember: Is called with each Variable before its value or its metadata changes.
    """

    __slots__ = ("_layer", "_token")

    def __init__(self, remember: Callable[[Variable], None]) -> None:
        self._layer = Layer((), {}, remember=remember)

    def __enter__(self) -> None:
        self._token = LAYER.set(self._layer)

    def __exit__(self, *_: object) -> None:
        leaves.reset(LAYER, self._token)


# -- parts -------------------------------------------------------------------------------------------------------------


def validate_metadata(metadata: Mapping[str, Json]) -> FrozenDict:
    """Return metadata, checked and frozen, with the labels `trainable`, `name` and `description` if they are not None.

    Raises:
        ArgumentError: `trainable` is not a bool, or `description` not a str.
        BadNameError: `name` is not an identifier.
        DataError: Free metadata is not JSON.
    """
    trainable, description = metadata.get("trainable", True), metadata.get("description")
    if not isinstance(trainable, bool):
        raise ArgumentError(leaves.must_be("trainable", "True, False or None", trainable))
    if description is not None and not isinstance(description, str):
        raise ArgumentError(leaves.must_be("description", "a str", description))
    checked: dict[str, Any] = {"trainable": trainable}
    if metadata.get("name") is not None:
        checked["name"] = leaves.check_name(metadata["name"], "variable")
    if description is not None:
        checked["description"] = leaves.frozen(description)
    for key, value in metadata.items():
        if key not in LABELS:
            try:
                checked[key] = leaves.frozen(value)
            except DataError as error:
                raise DataError(f"Metadata {key!r}: {error}") from None
    return leaves.frozen_dict(checked)


_TYPES: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (FrozenDict, "object"))


def _schema_of_json(json: leaves.Json) -> data.Schema:
    """Return the JSON type of a frozen value as its schema; `{}` for null.

    Example:
        >>> _schema_of_json("hello")
        {'type': 'string'}
    """
    if json is None:
        return data.declare(True, root="any")
    name = next((name for cls, name in _TYPES if isinstance(json, cls)), "array")
    return data.declare({"type": name}, root="any")


def _resolve_schema(kind: str, data_model: Any, schema: Any, initializer: Any) -> data.Schema | None:
    """Return the declared schema of a Variable; None if nothing declares one.

    Raises:
        ArgumentError: `schema` and `data_model` differ.
    """
    if data_model is None and isinstance(initializer, Empty):
        data_model = initializer.data_model
    if schema is None and data_model is None:
        return None
    return data.declaration(schema, data_model, kind, root="any")[0]


def _first_value(
    kind: str, value: leaves.Json, initializer: Any, data_model: Any, declared: data.Schema | None
) -> leaves.Json:
    """Return the first value of a Variable, frozen.

    Raises:
        ArgumentError: `value` and `initializer` are both given, or the initializer is async.
    """
    if value is not None:
        if initializer is not None:
            raise ArgumentError(f"{kind}: `value` and `initializer` are both given: pass only one of them.")
        return leaves.frozen(value)
    if initializer is not None and not isinstance(initializer, Empty):
        result = initializer({} if declared is None else declared) if callable(initializer) else initializer
        if iscoroutine(result):
            result.close()
            raise ArgumentError(f"{kind}: the initializer is async; it must be a plain function.")
        return leaves.frozen(result)
    if initializer is None and not isinstance(data_model, type) and hasattr(data_model, "__synmod_json__"):
        return leaves.frozen(data_model)
    model = data_model if initializer is None or initializer.data_model is None else initializer.data_model
    return None if declared is None else empty_value(declared, model)


# -- Variables ---------------------------------------------------------------------------------------------------------


@registry.register_own()
class Variable:
    """A piece of JSON state that belongs to a program: saved with it, trained with it.

    Args:
        value: First value: JSON or a data model.
        initializer: Alternative to `value`: JSON, a data model, or a plain callable that takes the schema.
        data_model: Class, symbol or instance that declares the schema; an instance is the first value too.
        schema: JSON Schema; by default the JSON type of the first value, `{}` for None.
        trainable: Whether training may change the Variable; None takes `trainable_default` of the class.
        name: Label, an identifier.
        description: The purpose of the Variable.
        **metadata: Free JSON, such as `tag`; read as `variable.metadata["tag"]`.

    Raises:
        ArgumentError: `value` and `initializer` are both given, `schema` and `data_model` differ, or the initializer is
            async.
        SchemaError: The first value does not satisfy the schema, no value is given and no empty value satisfies it, or
            the schema is invalid.
        DataError: The value or the metadata is not JSON.
        BadNameError: `name` is not an identifier.

    Example:
        >>> style = Param("brief", name="style", tag="prompt")
        >>> style.assign("long")
        >>> style.value, style.version
        ('long', 1)

    Source: Keras and NNX Variables; differs: frozen JSON, validated writes, reads through overlays.
    """

    __slots__ = ("__weakref__", "_labels", "_lock", "_schema", "_value", "_version")

    trainable_default: ClassVar[bool] = True
    """The value of `trainable` for Variables of the class that do not set it."""

    def __init__(
        self,
        value: Json = None,
        *,
        initializer: Any = None,
        data_model: Any = None,
        schema: Any = None,
        trainable: bool | None = None,
        name: str | None = None,
        description: str | None = None,
        **metadata: Json,
    ) -> None:
        kind = type(self).__name__
        bit = type(self).trainable_default if trainable is None else trainable
        labels = validate_metadata({**metadata, "trainable": bit, "name": name, "description": description})
        where = kind if name is None else f"{kind} {name!r}"
        if isinstance(value, Variable) or isinstance(initializer, Variable):
            raise SchemaError(f"{where}: a Variable is not a value: pass `other.value`.")
        declared = _resolve_schema(kind, data_model, schema, initializer)
        first = _first_value(kind, value, initializer, data_model, declared)
        if declared is None:
            declared = _schema_of_json(first)
        else:
            data.validate(declared, first, where)
        self._value = first
        self._schema = declared
        self._labels = labels
        self._version = 0
        self._lock = threading.RLock()

    @classmethod
    def of_parts(cls, value: Json, schema: data.Schema, metadata: FrozenDict) -> Self:
        """Make a Variable of parts known to be valid, without running `__init__`. Hot: once per leaf of a merge."""
        new: Self = object.__new__(cls)
        new._value = value
        new._schema = schema
        new._labels = metadata
        new._version = 0
        new._lock = threading.RLock()
        return new

    @property
    def value(self) -> Json:
        """The value as frozen JSON, read from the overlay inside one. Setting it calls `assign`."""
        layer = LAYER.get()
        if layer is not None:  # hot, so without calls or locks: values are never removed from a layer
            key = id(self)
            while layer is not None:
                if key in layer.values:
                    return layer.values[key]
                layer = layer.outer
        return self._value

    @value.setter
    def value(self, json: Json) -> None:
        self.assign(json)

    @property
    def schema(self) -> data.Schema:
        """The JSON Schema that every value satisfies."""
        return self._schema

    @property
    def version(self) -> int:
        """The number of assignments to the live value. A cache must use the value itself as its key."""
        return self._version

    @property
    def trainable(self) -> bool:
        """Whether training may change the Variable; a frozen module above overrides this without changing it."""
        return self._labels["trainable"]

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self.set_metadata({"trainable": trainable})

    @property
    def name(self) -> str | None:
        """The label; it is not used to save, match or filter."""
        return self._labels.get("name")

    @name.setter
    def name(self, name: str | None) -> None:
        self.set_metadata({"name": name})

    @property
    def description(self) -> str | None:
        """The purpose of the Variable."""
        return self._labels.get("description")

    @description.setter
    def description(self, description: str | None) -> None:
        self.set_metadata({"description": description})

    @property
    def metadata(self) -> FrozenDict:
        """The free metadata, frozen."""
        return leaves.frozen_dict({key: value for key, value in self._labels.items() if key not in LABELS})

    @property
    def full_metadata(self) -> FrozenDict:
        """The metadata with `trainable`, `name` and `description` in it, frozen."""
        return self._labels

    def set_metadata(self, changes: Mapping[str, Json]) -> None:
        """Change some metadata; None removes a name or description.

        Raises:
            ArgumentError, BadNameError, DataError: As for the constructor.
        """
        with self._lock:
            labels = validate_metadata({**self._labels, **changes})
            self._remember()
            self._labels = labels

    def get(self, key: str, default: Json = None) -> Json:
        """Return a field of a value that is an object, or `default` if the field is absent.

        Raises:
            DataError: The value is not an object.
        """
        value = self.value
        if isinstance(value, FrozenDict):
            return value.get(key, default)
        raise DataError(f"{self._where()} holds {value!r:.200}, which has no fields: read `.value`.")

    def __getitem__(self, key: str | int) -> Json:
        value = self.value
        if isinstance(value, FrozenDict):
            if key in value:
                return value[key]  # pyright: ignore[reportArgumentType]  (only a str can be in it)
            fields = ", ".join(map(repr, value)) or "none"
            raise FieldError(
                f"{self._where()} has no field {key!r}; its fields: {fields}.{leaves.did_you_mean(key, value)}"
            )
        if isinstance(value, FrozenList) and isinstance(key, int):
            return value[key]
        raise DataError(f"{self._where()} holds {value!r:.200}, which has no field {key!r}: read `.value`.")

    def __contains__(self, key: object) -> bool:
        value = self.value
        return isinstance(value, FrozenDict | FrozenList) and key in value

    __iter__ = None  # without it Python would iterate by way of __getitem__

    def assign(self, json: Json) -> None:
        """Set the whole value.

        Inside an overlay of the program the write goes to the overlay. Atomic and thread-safe.

        Args:
            json: JSON or a data model that satisfies the schema.

        Raises:
            SchemaError: `json` does not satisfy the schema, or is a Variable. The value is untouched.
            DataError: `json` is not JSON. The value is untouched.

        Source: Keras `Variable.assign`; differs: validated.
        """
        new = self._validate(json)
        with self._lock:
            old = self.value
            new = self._apply_on_assign(old, new, self._schema)
            is_due, version = self._put(new), self._version
        if is_due:
            notify_assign(self, self.name or "", old, new, version)

    def on_assign(self, old: Json, new: Json) -> Json:  # noqa: ARG002  (for subclasses)
        """Inspect or replace a validated value before it is assigned; for subclasses.

        Args:
            old: The present value.
            new: The value about to be assigned.

        Returns:
            Another value, which is validated again; None keeps `new`.
        """
        return None

    def replace(self, value: Json = MISSING, **metadata: Json) -> Self:
        """Return a new Variable with the same type and schema.

        Args:
            value: The value; the present value by default.
            **metadata: `trainable`, `name`, `description` and free metadata to change.

        Raises:
            SchemaError: The value does not satisfy the schema.
        """
        new = self.value if value is MISSING else self._validate(value)
        labels = validate_metadata({**self._labels, **metadata}) if metadata else self._labels
        return type(self).of_parts(new, self._schema, labels)

    def to_state(self) -> VariableState:
        """Return a frozen snapshot; its `to_variable()` is the inverse."""
        return snapshot(type(self), self.value, self._schema, self._labels)

    def snapshot(self) -> tuple[Any, ...]:
        """Return the live value, version, metadata and schema, for `restore`; overlays are ignored."""
        with self._lock:
            return self._value, self._version, self._labels, self._schema

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Restore what `snapshot` returned, without validation or event."""
        with self._lock:
            self._value, self._version, self._labels, self._schema = snapshot

    def _validate(self, json: Json) -> Json:
        """Freeze and validate a value."""
        if isinstance(json, Variable):
            raise SchemaError(f"{self._where()}: a Variable is not a value: assign `other.value`.")
        try:
            new = leaves.frozen(json)
        except DataError as error:
            raise DataError(f"{self._where()}: {error}") from None
        data.validate(self._schema, new, self._where())
        return new

    def _apply_on_assign(self, old: Json, new: Json, schema: data.Schema) -> Json:
        """Return the value to assign: a subclass may replace or refuse `new` in `on_assign`."""
        if type(self).on_assign is Variable.on_assign:
            return new
        replacement = self.on_assign(old, new)
        if replacement is None:
            return new
        replacement = leaves.frozen(replacement)
        data.validate(schema, replacement, self._where())
        return replacement

    def _put(self, new: Json) -> bool:
        """Set the value, live or in the layer that takes the write; return whether an event is due."""
        layer = LAYER.get()
        while layer is not None and not (layer.members is None or id(self) in layer.members):
            layer = layer.outer
        if layer is None:
            self._remember()
            self._value = new
            self._version += 1
            return True
        layer.values[id(self)] = new
        layer.written[id(self)] = self
        return not layer.silent

    def _remember(self) -> None:
        """Notify the `keep_writes` block around this code, if there is one, before the Variable changes."""
        layer = LAYER.get()
        while layer is not None and layer.remember is None:
            layer = layer.outer
        if layer is not None and layer.remember is not None:
            layer.remember(self)

    def _where(self) -> str:
        kind, name = type(self).__name__, self.name
        return kind if name is None else f"{kind} {name!r}"

    def __copy__(self) -> Self:
        return self.replace()

    def __deepcopy__(self, memo: object) -> Self:
        return self.replace()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.value, dict(self._schema), self._labels)

    def __format__(self, spec: str) -> NoReturn:
        """Raise, since an f-string of a Variable would put its repr into a prompt.

        Raises:
            ArgumentError: Always.
        """
        raise ArgumentError(
            f"{self._where()}: write {{variable.value}} to put its value into a text, or {{variable!r}} to show it."
        )

    def __repr__(self) -> str:
        label = "" if self.name is None else f", name={self.name!r}"
        return f"{type(self).__name__}({self.value!r:.80}{label})"


registry.admit(Variable)


class Write:
    """A prepared write: the constructor runs everything that can fail; `commit` and `notify` cannot.

    Args:
        variable: The Variable.
        value: The new value, valid; an equal value is not assigned.
        metadata: The new metadata; None keeps the present.
        schema: The new schema; None keeps the present.

    Raises:
        SchemaError: The value that `on_assign` returned does not satisfy the schema.
        Exception: Any exception of `on_assign`.
    """

    __slots__ = ("_is_due", "_metadata", "_new", "_old", "_schema", "_version", "variable")

    def __init__(
        self, variable: Variable, value: Json, metadata: FrozenDict | None = None, schema: data.Schema | None = None
    ) -> None:
        self.variable = variable
        self._old = self._new = variable.value
        if not leaves.frozen_equal(self._old, value):
            self._new = variable._apply_on_assign(self._old, value, schema or variable._schema)
        same = metadata is None or leaves.frozen_equal(metadata, variable._labels)
        self._metadata = None if same else metadata
        self._schema = schema
        self._is_due = False
        self._version = 0

    @property
    def is_change(self) -> bool:
        """Whether the write changes the value or the metadata."""
        return self._new is not self._old or self._metadata is not None

    def commit(self) -> None:
        """Write the value, metadata and schema."""
        variable = self.variable
        with variable._lock:
            variable._remember()
            if self._schema is not None:
                variable._schema = self._schema
            if self._metadata is not None:
                variable._labels = self._metadata
            if self._new is not self._old:
                self._is_due = variable._put(self._new)
                self._version = variable._version

    def notify(self) -> None:
        """Send the event of the assignment; called after all writes."""
        if self._is_due:
            notify_assign(self.variable, self.variable.name or "", self._old, self._new, self._version)


@registry.register_own()
class Param(Variable):
    """State that training may change: instructions, examples, plans."""

    __slots__ = ()


@registry.register_own()
class Memory(Variable):
    """State that a program remembers between calls."""

    __slots__ = ()
    trainable_default = False


@registry.register_own()
class Stat(Variable):
    """State that a metric counts or sums up."""

    __slots__ = ()
    trainable_default = False


@registry.register_own()
class OptState(Variable):
    """State of an optimizer."""

    __slots__ = ()
    trainable_default = False


@registry.register_own()
class Intermediate(Variable):
    """An intermediate value, recorded on the way to a result."""

    __slots__ = ()
    trainable_default = False


def _rebuild(cls: type[Variable], value: Json, schema: Json, metadata: FrozenDict) -> Variable:
    return cls.of_parts(value, data.intern_schema(schema), metadata)


# -- the leaf of a State ----------------------------------------------------------------------------------------------

VariableClass: TypeAlias = type[Variable]


@final
class VariableState(Immutable):
    """Type, value, schema and metadata of a Variable; frozen, and always valid.

    Args:
        type: Class of the Variable.
        value: JSON or a data model that satisfies the schema.
        schema: JSON Schema, or a data model that declares one; `{}` accepts anything.
        metadata: `trainable`, `name`, `description` and free metadata in one mapping.

    Raises:
        ArgumentError: `type` is not a Variable class.
        DataError: The value is not JSON.
        SchemaError: The value does not satisfy the schema.

    Example:
        >>> VariableState(Param, "brief", {"type": "string"}).to_variable().value
        'brief'

    Source: Flax NNX `VariableState`.
    """

    __slots__ = ("metadata", "schema", "type", "value")

    type: VariableClass
    value: Json
    schema: data.Schema
    metadata: FrozenDict

    def __init__(
        self,
        type: VariableClass,  # noqa: A002  (the name of the field)
        value: Json,
        schema: Json = True,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        if not isinstance(type, _CLASS) or not issubclass(type, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(f"The type of a VariableState is a Variable class, such as sm.Param, not {type!r}.")
        declared = data.declare(schema, root="any")
        json = leaves.frozen(value)
        data.validate(declared, json, type.__name__)
        labels = validate_metadata({"trainable": type.trainable_default, **(metadata or {})})
        self._put(type=type, value=json, schema=declared, metadata=labels)

    @property
    def trainable(self) -> bool:
        """Whether training may change the Variable, apart from frozen modules above it."""
        return self.metadata["trainable"]

    @property
    def name(self) -> str | None:
        """The label."""
        return self.metadata.get("name")

    @property
    def description(self) -> str | None:
        """The purpose of the Variable."""
        return self.metadata.get("description")

    def to_variable(self) -> Variable:
        """Return a new Variable with this type, value, schema and metadata."""
        return self.type.of_parts(self.value, self.schema, self.metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VariableState):
            return NotImplemented
        return (
            self.type is other.type
            and leaves.json_equal(self.value, other.value)
            and (self.schema is other.schema or leaves.json_equal(self.schema, other.schema))
            and (self.metadata is other.metadata or leaves.json_equal(self.metadata, other.metadata))
        )

    def __hash__(self) -> int:
        return hash((self.type, self.value))

    def __reduce__(self) -> tuple[Any, ...]:
        return VariableState, (self.type, self.value, dict(self.schema), self.metadata)

    def __repr__(self) -> str:
        return f"VariableState({self.type.__name__}, {self.value!r:.80})"


_CLASS = type
_set_slot = object.__setattr__
_new_leaf: Any = object.__new__


def snapshot(cls: VariableClass, value: Json, schema: data.Schema, metadata: FrozenDict) -> VariableState:
    """Make a leaf of parts known to be valid. Hot: once per leaf of a split."""
    leaf = _new_leaf(VariableState)
    _set_slot(leaf, "type", cls)
    _set_slot(leaf, "value", value)
    _set_slot(leaf, "schema", schema)
    _set_slot(leaf, "metadata", metadata)
    return leaf

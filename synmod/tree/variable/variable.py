"""Variables: the only state of a program. Frozen JSON, a schema, metadata; written whole or not at all."""

from __future__ import annotations

import threading
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from synmod.data import Schema, trusted_schema, validate
from synmod.errors import DataError, FieldError, SchemaError
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen
from synmod.leaves.names import did_you_mean
from synmod.registry import admit
from synmod.scope import notify_assign
from synmod.tree.variable import about
from synmod.tree.variable.first_value import declared_schema, first_value
from synmod.tree.variable.initializers import schema_of_json
from synmod.tree.variable.overlay import LAYER, MISSING, layer_for
from synmod.tree.variable.variable_state import VariableState, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_FIRST_WRITE = threading.Lock()


class Variable:
    """A piece of JSON state that belongs to a program: saved with it, trained with it.

    Args:
        value: First value: JSON or a data model.
        initializer: First value in another form: JSON, a data model, or a plain callable that is given the schema.
        data_model: Class, symbol or instance to take the schema of; an instance is the first value too.
        schema: JSON Schema; without one, the JSON type of the first value, `{}` for None.
        trainable: Own bit; None takes `trainable_default` of the class.
        name: Label, an identifier.
        description: What it is for.
        **metadata: Free JSON, such as `tag`; read as `variable.metadata["tag"]`.

    Raises:
        ArgumentError: `value` and `initializer` together, `schema` and `data_model` that differ, an async initializer.
        SchemaError: The first value does not satisfy the schema, or the schema is bad.
        DataError: Something is no JSON.
        BadNameError: `name` is no identifier.

    Example:
        >>> style = Param("brief", name="style", tag="prompt")
        >>> style.assign("long")
        >>> style.value, style.version
        ('long', 1)

    Source: Keras and NNX Variables; differs: frozen JSON, validated writes, read through overlays.
    """

    __slots__ = ("__weakref__", "_about", "_own_lock", "_schema", "_value", "_version")

    trainable_default: ClassVar[bool] = True
    """What `trainable=None` means for the class."""

    _own_slots: ClassVar[tuple[str, ...]] = ()
    _keeps_extra: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        slots = [name for name, member in vars(cls).items() if isinstance(member, MemberDescriptorType)]
        cls._own_slots = (*cls._own_slots, *slots)
        cls._keeps_extra = bool(cls._own_slots or cls.__dictoffset__)

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
        says = about.about(
            type(self).trainable_default if trainable is None else trainable, name, description, metadata
        )
        if isinstance(value, Variable) or isinstance(initializer, Variable):
            raise SchemaError(f"{_where(kind, name)}: a Variable is no value: give `other.value`.")
        declared = declared_schema(kind, data_model, schema, initializer)
        first = first_value(kind, value, initializer, data_model, declared)
        if declared is None:
            declared = schema_of_json(first)
        else:
            validate(declared, first, _where(kind, name))
        self._fill(first, declared, says)

    @classmethod
    def _made(cls, value: Json, schema: Schema, says: FrozenDict, extra: Mapping[str, Any] | None = None) -> Self:
        """Make one of parts that are known to fit, without running `__init__`."""
        new: Self = object.__new__(cls)
        new._value = value
        new._schema = schema
        new._about = says
        new._version = 0
        new._own_lock = None
        if extra:
            new._take_extra(extra)
        return new

    def _extra(self) -> Mapping[str, Any] | None:
        """Give what a subclass keeps on its instances, in slots or in a `__dict__`."""
        held = {name: getattr(self, name) for name in self._own_slots if hasattr(self, name)}
        held.update(getattr(self, "__dict__", ()))
        return held or None

    def _fill(self, value: Json, schema: Schema, says: FrozenDict) -> None:
        self._value = value
        self._schema = schema
        self._about = says
        self._version = 0
        self._own_lock: threading.RLock | None = None

    @property
    def _lock(self) -> threading.RLock:
        """Held while a value or label changes; made by the first who wants it, since most copies are never written."""
        if self._own_lock is None:
            with _FIRST_WRITE:
                self._own_lock = self._own_lock or threading.RLock()
        return self._own_lock

    @property
    def value(self) -> Json:
        """The frozen JSON; inside an overlay of the program, the overlay's."""
        layer = LAYER.get()
        while layer is not None:
            value = layer.values.get(id(self), MISSING)
            if value is not MISSING:
                return value
            layer = layer.outer
        return self._value

    @property
    def schema(self) -> Schema:
        """The JSON Schema that every value satisfies."""
        return self._schema

    @property
    def version(self) -> int:
        """How often the live value was assigned; a cache must key on the value itself."""
        return self._version

    @property
    def trainable(self) -> bool:
        """The Variable's own bit; a frozen module above masks it, and never changes it."""
        return self._about["trainable"]

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self._say({"trainable": trainable})

    @property
    def name(self) -> str | None:
        """The label; nothing is saved, matched or filtered by it."""
        return self._about.get("name")

    @name.setter
    def name(self, name: str | None) -> None:
        self._say({"name": name})

    @property
    def description(self) -> str | None:
        """What the Variable is for."""
        return self._about.get("description")

    @description.setter
    def description(self, description: str | None) -> None:
        self._say({"description": description})

    @property
    def metadata(self) -> FrozenDict:
        """The free metadata, frozen."""
        return about.free_of(self._about)

    def get(self, key: str, default: Json = None) -> Json:
        """Give a field of a value that is an object, or `default` where it is absent.

        Raises:
            DataError: The value is no object.
        """
        value = self.value
        if isinstance(value, FrozenDict):
            return value.get(key, default)
        raise DataError(f"{_where_of(self)} holds {value!r:.200}, which has no fields: read `.value`.")

    def __getitem__(self, key: str | int) -> Json:
        value = self.value
        if isinstance(value, FrozenDict):
            if key in value:
                return value[key]  # pyright: ignore[reportArgumentType]  (only a str can be in it)
            known = ", ".join(map(repr, value)) or "none"
            raise FieldError(f"{_where_of(self)} has no field {key!r}; there are {known}.{did_you_mean(key, value)}")
        if isinstance(value, FrozenList) and isinstance(key, int):
            return value[key]
        raise DataError(f"{_where_of(self)} holds {value!r:.200}, which has no field {key!r}: read `.value`.")

    def __contains__(self, key: object) -> bool:
        value = self.value
        return isinstance(value, FrozenDict | FrozenList) and key in value

    __iter__ = None  # without it Python would iterate by way of __getitem__

    def assign(self, json: Json) -> None:
        """Set the whole value.

        Inside an overlay of the program the write goes to the overlay. All or nothing, exact under threads.

        Args:
            json: JSON or a data model that satisfies the schema.

        Raises:
            SchemaError: It does not; or it is itself a Variable. The value is untouched.
            DataError: It is no JSON. The value is untouched.

        Source: Keras `Variable.assign`; differs: validated.
        """
        new = self._admit(json)
        self._change(lambda old: new)  # noqa: ARG005  (whatever was there)

    def _change(self, fn: Callable[[Json], Json], *, is_admitted: bool = True) -> None:
        """Set what `fn` makes of the present value; nobody writes in between."""
        with self._lock:
            old = self.value
            new = fn(old)
            new = self._seen_by_class(old, new if is_admitted else self._admit(new))
            is_told, version = self._put(new)
        if is_told:
            notify_assign(self, self.name or "", old, new, version)

    def on_assign(self, old: Json, new: Json) -> Json:  # noqa: ARG002  (for subclasses)
        """Look at a validated value before it is swapped in; for subclasses.

        Args:
            old: The present value.
            new: The one to come.

        Returns:
            Another value, which is validated again; None keeps `new`.
        """
        return None

    def replace(self, value: Json = MISSING, **metadata: Json) -> Self:
        """Give a new Variable of this type and schema.

        Args:
            value: Its value; this one's if left out.
            **metadata: `trainable`, `name`, `description` and free metadata to change.

        Raises:
            SchemaError: The value does not satisfy the schema.
        """
        new = self.value if value is MISSING else self._admit(value)
        return type(self)._made(new, self._schema, about.changed(self._about, metadata), self._extra())

    def to_state(self) -> VariableState:
        """Give a frozen snapshot; its `to_variable()` is the way back."""
        return snapshot(type(self), self.value, self._schema, self._about)

    def snapshot(self) -> tuple[Any, ...]:
        """Return the live value, version, metadata and schema, for `restore`; overlays are passed over."""
        with self._lock:
            return self._value, self._version, self._about, self._schema

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Put back what `snapshot` returned, without validation or event: the end of a build that failed."""
        with self._lock:
            self._value, self._version, self._about, self._schema = snapshot

    def _admit(self, json: Json, schema: Schema | None = None) -> Json:
        """Freeze and validate a value; against the schema to come, where there is one."""
        if isinstance(json, Variable):
            raise SchemaError(f"{_where_of(self)}: a Variable is no value: assign `other.value`.")
        try:
            new = frozen(json)
        except DataError as error:
            raise DataError(f"{_where_of(self)}: {error}") from None
        if schema is not None or new is not self._value or not isinstance(new, FrozenDict | FrozenList):
            validate(self._schema if schema is None else schema, new, _where_of(self))
        return new

    def _seen_by_class(self, old: Json, new: Json, schema: Schema | None = None) -> Json:
        """Let a subclass change or refuse the value."""
        if type(self).on_assign is Variable.on_assign:
            return new
        other = self.on_assign(old, new)
        return new if other is None else self._admit(other, schema)

    def _put(self, new: Json) -> tuple[bool, int]:
        """Swap the value, here or in the layer that takes it; tell whether anybody is to hear of it."""
        layer = layer_for(self)
        if layer is None:
            self._value = new
            self._version += 1
            return True, self._version
        layer.write(self, new)
        return not layer.silent, self._version

    def _take_extra(self, extra: Mapping[str, Any] | None) -> None:
        """Become on one's instance what a subclass kept on another."""
        held = extra or {}
        for name in self._own_slots:
            if name not in held and hasattr(self, name):
                object.__delattr__(self, name)
        mine: dict[str, Any] = getattr(self, "__dict__", {})
        mine.clear()
        for name, value in held.items():
            object.__setattr__(self, name, value)

    def _say(self, changes: dict[str, Json]) -> None:
        with self._lock:
            self._about = about.changed(self._about, changes)

    def __copy__(self) -> Self:
        return self.replace()

    def __deepcopy__(self, memo: object) -> Self:
        return self.replace()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.value, dict(self._schema), self._about, self._extra())

    def __repr__(self) -> str:
        label = "" if self.name is None else f", name={self.name!r}"
        return f"{type(self).__name__}({self.value!r:.80}{label})"


admit(Variable)


class Param(Variable):
    """What training may change: instructions, examples, plans."""

    __slots__ = ()


class Memory(Variable):
    """What a program remembers between calls."""

    __slots__ = ()
    trainable_default = False


class Stat(Variable):
    """What a metric counts."""

    __slots__ = ()
    trainable_default = False


class OptState(Variable):
    """What an optimizer keeps for itself."""

    __slots__ = ()
    trainable_default = False


class Intermediate(Variable):
    """What was noted on the way to a result."""

    __slots__ = ()
    trainable_default = False


def _where(kind: str, name: str | None) -> str:
    return kind if name is None else f"{kind} {name!r}"


def _where_of(variable: Variable) -> str:
    return _where(type(variable).__name__, variable.name)


def _again(
    cls: type[Variable], value: Json, schema: Json, says: FrozenDict, extra: Mapping[str, Any] | None
) -> Variable:
    """Rebuild a pickled Variable."""
    return cls._made(value, trusted_schema(schema), says, extra)

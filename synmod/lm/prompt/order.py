"""Declared field order: a value is shown in the order in which its schema declares its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from synmod.leaves.frozen import Json
from synmod.lm.prompt.subschemas import fields_of, is_array, is_object, resolved

Ordering: TypeAlias = Callable[[Json], Json]
"""Gives a value with its keys in declared order: the value itself where they stand so already."""


def ordering(schema: Mapping[str, Json]) -> Ordering:
    """Work out, once, how values of a schema are put in order.

    Args:
        schema: JSON schema of the values.

    Returns:
        A function from value to ordered value. Declared fields come first, in declared order, then the others as
        they stand; nothing is added or left out.

    Example:
        >>> ordering({"properties": {"a": {}, "b": {}}})({"b": 1, "c": 2, "a": 3})
        {'a': 3, 'b': 1, 'c': 2}

    Source: pydantic's dump, which follows the declaration.
    """
    return _ordering(schema, schema, {}) or _as_it_is


def _as_it_is(value: Json) -> Json:
    return value


def _ordering(field: Json, root: Mapping[str, Json], known: dict[int, _Slot]) -> Ordering | None:
    """The ordering of a subschema, None where there is nothing to order below it."""
    target = resolved(field, root)
    slot = known.get(id(target))
    if slot is not None:
        return slot  # a recursive type: filled by the time it is called
    slot = known[id(target)] = _Slot()
    slot.ordering = _made(target, root, known)
    return slot.ordering


def _made(target: Mapping[str, Json], root: Mapping[str, Json], known: dict[int, _Slot]) -> Ordering | None:
    """The ordering of an object, a list, or a choice of these."""
    if "properties" in target:
        return _FieldOrder({name: _ordering(field, root, known) for name, field in fields_of(target).items()})
    if is_object(target.get("items")):
        item = _ordering(target["items"], root, known)
        return item and _ItemOrder(item)
    if is_object(target.get("additionalProperties")):
        inner = _ordering(target["additionalProperties"], root, known)
        return inner and _ValueOrder(inner)
    arms = [
        (resolved(arm, root), _ordering(arm, root, known)) for arm in target.get("anyOf") or target.get("oneOf") or ()
    ]
    choices = [(arm, inner) for arm, inner in arms if inner is not None]
    return _ArmOrder(choices) if choices else None


class _Slot:
    """Stands for the ordering of a type while that type is being read."""

    __slots__ = ("ordering",)

    def __init__(self) -> None:
        self.ordering: Ordering | None = None

    def __call__(self, value: Json) -> Json:
        return value if self.ordering is None else self.ordering(value)


class _FieldOrder:
    """Orders the keys of an object."""

    __slots__ = ("inner", "names")

    def __init__(self, fields: dict[str, Ordering | None]) -> None:
        self.names = list(fields)
        self.inner = {name: order for name, order in fields.items() if order is not None}

    def __call__(self, value: Json) -> Json:
        if not is_object(value):
            return value
        if not self.inner and list(value) == self.names:
            return value
        placed = {name: value[name] for name in self.names if name in value}
        placed.update(value)
        for name, order in self.inner.items():
            if name in placed:
                placed[name] = order(placed[name])
        return placed


class _ItemOrder:
    """Orders each item of a list."""

    __slots__ = ("item",)

    def __init__(self, item: Ordering) -> None:
        self.item = item

    def __call__(self, value: Json) -> Json:
        return [self.item(item) for item in value] if is_array(value) else value


class _ValueOrder:
    """Orders each value of an open dictionary."""

    __slots__ = ("inner",)

    def __init__(self, inner: Ordering) -> None:
        self.inner = inner

    def __call__(self, value: Json) -> Json:
        return {key: self.inner(item) for key, item in value.items()} if is_object(value) else value


class _ArmOrder:
    """Orders by the first alternative whose fields the value has."""

    __slots__ = ("arms",)

    def __init__(self, arms: list[tuple[Mapping[str, Json], Ordering]]) -> None:
        self.arms = arms

    def __call__(self, value: Json) -> Json:
        for arm, order in self.arms:
            if _fits(arm, value):
                return order(value)
        return value


def _fits(arm: Mapping[str, Json], value: Json) -> bool:
    """Whether the keys of a value are those of an alternative."""
    if not is_object(value):
        return is_array(value) and "items" in arm
    fields = fields_of(arm)
    return value.keys() >= set(arm.get("required", ())) and (
        value.keys() <= fields.keys() or arm.get("additionalProperties", True) is not False
    )

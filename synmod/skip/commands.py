"""`stash`, `pop` and `peek`: plain functions that act on the lane of the running call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from synmod.data import (
    DataModel,
    JsonDataModel,
    Schema,
    SymbolicDataModel,
    includes,
    is_subschema,
    symbol,
    to_value,
    validate,
    wrap,
)
from synmod.errors import SchemaError, SkipError, SymbolicValueError
from synmod.leaves.frozen import FrozenDict, frozen, is_object
from synmod.module import DeclaredSkips
from synmod.scope import current_call

from .lane import Lane, Slot, shown

_REQUIRED: Final[Any] = object()
UNKNOWN: Final[Any] = object()
"""Stands in the lane for a value whose schema is not known."""

ADJECTIVES: Final = {"stash": "stashable", "pop": "poppable", "peek": "peekable"}


class UntypedSkipError(SkipError, SymbolicValueError):
    """The schema of a value in the lane is needed, and nobody has declared it."""


UntypedSkipError.__name__ = UntypedSkipError.__qualname__ = "SkipError"


def stash(name: str, value: Any, replace: bool = False) -> None:
    """Put a value into the lane, past the modules that come next.

    Args:
        name: A name that the class of the running module has declared by `@skippable(stash=...)`.
        value: A data model, JSON, or None, which is a value like any other. It is held by reference.
        replace: Whether it may take the place of a value that nobody has popped (in loops).

    Raises:
        SkipError: The name is not declared, the slot is occupied, or no skippable call is running.
        SchemaError: The skip is typed, and the value does not satisfy its schema.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     async def call(self, inputs):
        ...         stash("doc", inputs)
        ...         return inputs

    Source: torchgpipe's `stash`; differs: a function of its own, and a second value is an error.
    """
    lane, skips = _running("stash", name)
    key = lane.isolated.get(name), name
    if not replace:
        known = None if lane.symbolic else lane.find(key)  # alternatives are called side by side, on symbols
        if known is not None or ("stash", name) in lane.done:
            by = "in this call" if known is None else f"by {known.producer!r}"
            remedy = "Pop it first, isolate the pair in a Namespace, or stash(..., replace=True) in a loop."
            raise _fault(lane, "stash", name, f"has already been stashed {by}", remedy)
    schema = skips.schemas.get(name)
    if schema is not None and value is not None:
        value = _admitted(value, schema, skips.models.get(name), f"{lane.label}: stash({name!r})")
    if lane.symbolic:
        value = as_symbol(value, schema, skips.models.get(name))
    lane.stashed[key] = Slot(value, lane.place, replaces=replace)
    lane.done.add(("stash", name))


def pop(name: str, default: Any = _REQUIRED) -> Any:
    """Take a value out of the lane.

    Args:
        name: A name that the class of the running module has declared by `@skippable(pop=...)`.
        default: What is returned where an optional name is absent.

    Returns:
        The value, on symbols a symbol with its schema.

    Raises:
        SkipError: The name is not declared, was popped before in this call, or is absent and there is no default; or
            no skippable call is running.
        SchemaError: The consumer is typed, and the value does not have what it declares.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     async def call(self, inputs):
        ...         return inputs + pop("doc")

    Source: torchgpipe's `pop`; differs: checked before the module runs.
    """
    lane, skips = _running("pop", name)
    if ("pop", name) in lane.done:
        raise _fault(lane, "pop", name, "has already been popped", "Keep the value of the first pop in a variable.")
    key = lane.isolated.get(name), name
    slot = lane.held.get(key)
    if slot is None and name in skips.optional and lane.find(key) is not None and lane.reserve(key):
        slot = lane.held[key]
    lane.done.add(("pop", name))
    if slot is not None:
        lane.take(key, slot)
    return _value_of(lane, skips, "pop", name, slot, default)


def peek(name: str, default: Any = _REQUIRED) -> Any:
    """Read a value in the lane without taking it.

    Args:
        name: A name that the class of the running module has declared by `@skippable(peek=...)`.
        default: What is returned where an optional name is absent.

    Returns:
        The value, on symbols a symbol with its schema.

    Raises:
        SkipError: The name is not declared, or is absent and there is no default; or no skippable call is running.
        SchemaError: The consumer is typed, and the value does not have what it declares.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(peek=["doc"])
        ... class Judge(sm.Module):
        ...     async def call(self, inputs):
        ...         return inputs + peek("doc")

    Source: a reader beside torchgpipe's `pop`.
    """
    lane, skips = _running("peek", name)
    key = lane.isolated.get(name), name
    slot = None if ("pop", name) in lane.done else lane.held.get(key)
    return _value_of(lane, skips, "peek", name, slot or lane.find(key), default)


def as_symbol(value: Any, schema: Schema | None, model: Any) -> Any:
    """Return what stands for a value on symbols: a symbol of the declared schema, else of its own; JSON as it is."""
    if value is None:
        return None
    if schema is not None:
        return symbol(schema, model)
    if isinstance(value, DataModel):
        value = to_value(value)
    if isinstance(value, JsonDataModel | SymbolicDataModel):
        return symbol(value._schema, value._model, value._label)
    return value


def untyped(lane: Lane, name: str, why: str) -> UntypedSkipError:
    """Return the error of a skip whose schema is needed and not known."""
    return UntypedSkipError(
        f"{lane.label}: the schema of {name!r} is not known: {why}. Type the skip: "
        f"@skippable(pop={{{name!r}: Model}}), or stash={{{name!r}: Model}} at its producer."
    )


def _running(word: str, name: str) -> tuple[Lane, DeclaredSkips]:
    """Return the lane of the running call, and what its module declares, for a command that it has declared."""
    frame = current_call()
    lane: Any = None if frame is None else frame.layer
    if lane is None or lane.skips is None:
        where = "no module call is running" if frame is None else f"the running call is {frame.path or frame.name!r}"
        raise SkipError(
            f"{word}({name!r}) outside a skippable call: {where}. Commands belong into `call` of a class decorated "
            f"with @skippable({word}=[{name!r}])."
        )
    skips: DeclaredSkips = lane.skips
    if name not in getattr(skips, word):
        declared = ", ".join(f"{each}={sorted(getattr(skips, each))}" for each in ADJECTIVES)
        remedy = f"It declares {declared}: write @skippable({word}=[{name!r}])."
        raise _fault(lane, word, name, f"has not been declared as {ADJECTIVES[word]}", remedy)
    return lane, skips


def _fault(lane: Lane, word: str, name: str, what: str, remedy: str) -> SkipError:
    """Return the error of a command, with the place of the call and its slot."""
    return SkipError(f"{lane.label}: {word}({name!r}): {shown((lane.isolated.get(name), name))} {what}. {remedy}")


def _value_of(lane: Lane, skips: DeclaredSkips, word: str, name: str, slot: Slot | None, default: Any) -> Any:
    """Return the value of a slot as the consumer gets it, held to what the consumer declares."""
    if slot is None:
        if default is not _REQUIRED:
            return default
        raise _fault(lane, word, name, "has not been stashed", f"If it may be absent, write {word}({name!r}, None).")
    value, schema = slot.value, skips.schemas.get(name)
    if value is UNKNOWN:
        if schema is None:
            raise untyped(lane, name, f"its producer {slot.producer!r} does not declare it")
        return symbol(schema, skips.models.get(name))
    if schema is not None and value is not None:
        _hold_to_declared(value, schema, f"{lane.label}: {word}({name!r}), stashed by {slot.producer!r}")
    return as_symbol(value, None, None) if lane.symbolic else value


def _admitted(value: Any, schema: Schema, model: Any, place: str) -> Any:
    """Return a value that satisfies the schema of a typed skip; plain JSON objects become data.

    Raises:
        SchemaError: It does not satisfy the schema.
        DataError: It is not JSON.
    """
    known = _schema_of(value)
    if known is not None:
        if known is schema or is_subschema(known, schema):
            return value
        if isinstance(value, SymbolicDataModel):
            raise SchemaError(f"{place}: the skip is declared as {_title(schema)}, got {_title(known)}.")
    json: Any = frozen(value)
    validate(schema, json, place)
    return wrap(json, schema, model) if known is None and isinstance(json, FrozenDict) else value


def _hold_to_declared(value: Any, schema: Schema, place: str) -> None:
    """Check that a value has what its consumer declares; it may have more.

    Raises:
        SchemaError: It does not.
    """
    known = _schema_of(value)
    if known is not None and (known is schema or includes(known, schema)):
        return
    lacking = () if known is None else lacking_fields(known, schema)
    if lacking:
        raise SchemaError(f"{place}: the field {', '.join(map(repr, lacking))} is missing, which {_title(schema)} has.")
    json = frozen(value)
    fields = schema.get("properties")
    if fields and is_object(json):
        json = frozen({key: part for key, part in json.items() if key in fields})
    validate(schema, json, place)


def lacking_fields(schema: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that `wanted` requires and `schema` does not."""
    there = schema.get("required", ())
    return tuple(name for name in wanted.get("required", ()) if name not in there)


def _schema_of(value: Any) -> Schema | None:
    """Return the schema of data; None for plain JSON."""
    if isinstance(value, DataModel):
        value = to_value(value)
    return value._schema if isinstance(value, JsonDataModel | SymbolicDataModel) else None


def _title(schema: Mapping[str, Any]) -> str:
    return f"{schema.get('title', 'a value')}({', '.join(schema.get('properties', {}))})"

"""The lane on symbols: what runs to find out schemas stashes and pops symbols.

Where modules are called on symbols one by one, there is no call around them to hold the lane: it runs along the
symbols. A stash is remembered by the step that its call records, and a pop looks in the history of its inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, symbol, to_value
from synmod.errors import SkipError, SymbolicValueError
from synmod.flow import step_of
from synmod.skip.namespace import Key, shown
from synmod.skip.slots import TAKEN, Slot

if TYPE_CHECKING:
    from synmod.data import Schema
    from synmod.flow import Step
    from synmod.skip.commands import Command
    from synmod.skip.layers import Layer

UNKNOWN: Final[Any] = object()
"""Stands in the lane for a value of which no schema is known."""


class UntypedSkipError(SkipError, SymbolicValueError):
    """The schema of a value in the lane is asked for, and nobody has told it."""


UntypedSkipError.__name__ = UntypedSkipError.__qualname__ = "SkipError"


def as_stashed(value: Any, schema: Schema | None, model: Any) -> Any:
    """What goes into the lane for a value: a symbol, of the declared schema if the skip is typed."""
    if value is None:
        return None
    if schema is not None:
        return symbol(schema, model)
    if isinstance(value, DataModel):
        value = to_value(value)
    if isinstance(value, JsonDataModel | SymbolicDataModel):
        return symbol(value._schema, value._model, value._label)
    return value


def as_popped(command: Command, layer: Layer, slot: Slot, schema: Schema | None, model: Any) -> Any:
    """What a consumer gets on symbols: a fresh symbol of what was stashed, else of what it declares.

    Raises:
        SkipError: Nobody has declared it.
    """
    value = slot.value
    if value is not UNKNOWN:
        return symbol(value._schema, value._model, value._label) if isinstance(value, SymbolicDataModel) else value
    if schema is not None:
        return symbol(schema, model)
    raise untyped(f"{layer.label}: {command!r}", command._name, f"its producer {slot.producer!r} does not tell it")


def untyped(place: str, name: str, why: str) -> UntypedSkipError:
    """The error of a skip whose schema is asked for and not known."""
    return UntypedSkipError(
        f"{place}: the schema of {name!r} is not known: {why}. Type the skip: "
        f"@skippable(pop={{{name!r}: Model}}), or stash={{{name!r}: Model}} at its producer."
    )


def from_history(key: Key, inputs: Iterable[Any], *, taken_too: bool) -> Slot | None:
    """The nearest stash of a key among the steps that led to these symbols; None where there is none.

    `taken_too` says that one counts which a step after it has popped: that is a fault of the wiring, which is told of
    with all others when the program is made.
    """
    pending: deque[Step] = deque(_steps_of(inputs))
    seen: set[int] = set()
    while pending:
        step = pending.popleft()
        if id(step) in seen:
            continue
        seen.add(id(step))
        aside = step.aside or {}
        if key in aside and aside[key] is not TAKEN:
            return Slot(aside[key], step.name)
        if key in aside and not taken_too:
            return None
        pending.extend(_steps_of(step.inputs))
    return None


def _steps_of(inputs: Iterable[Any]) -> Iterator[Step]:
    """The steps that made these symbols."""
    for each in inputs:
        step = step_of(each) if isinstance(each, SymbolicDataModel) else None
        if step is not None:
            yield step


def assumed(key: Key, schema: Schema | None, model: Any) -> Slot | None:
    """What stands for a value that comes from elsewhere: a symbol of the declared schema; None for an untyped one."""
    return None if schema is None else Slot(symbol(schema, model), f"elsewhere ({shown(key)})")

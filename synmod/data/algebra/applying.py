"""How operations are applied: values at once, by kept plans; symbols by a plan that is recorded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from synmod.data.parts import parts_of
from synmod.data.symbols import RECORDERS, SymbolicDataModel, schema_of, symbol
from synmod.data.value import JsonDataModel, wrap
from synmod.errors import ArgumentError

from .accepted import as_operand, refuse_class_beside
from .kept import Kept
from .merge import Concatenation
from .operations import OPERATIONS
from .plans import Plan

_merges: Kept[Concatenation] = Kept()
_plans: Kept[Plan] = Kept(room=4_096)


def are_values(operands: Sequence[Any]) -> bool:
    """Tell whether all operands, two at least, are values. Hot: the short way for most operations."""
    for x in operands:
        if type(x) is not JsonDataModel:
            return False
    return len(operands) > 1


def checked_operands(operands: tuple[Any, ...], name: str) -> list[Any]:
    """Check what was given: two or more operands that may stand there."""
    if len(operands) < 2:
        raise ArgumentError(f"{name} takes two or more operands, got {len(operands)}.")
    return [as_operand(x, name) for x in operands]


def single(present: list[Any]) -> Any:
    """Give the only operand that is there; of a class a symbol."""
    if not present:
        return None
    (x,) = present
    return symbol(schema_of(x), x) if isinstance(x, type) else x


def together(name: str, present: Sequence[Any]) -> Any:
    """Put operands together that are all there."""
    return merged(present) if are_values(present) else planned(name, present)


def merged(values: Sequence[JsonDataModel[Any]]) -> JsonDataModel[Any]:
    """Concatenate values by the plan kept for their schemas. Hot."""
    parts = tuple([parts_of(value._schema) for value in values])
    key = tuple(map(id, parts))
    merge = _merges.find(key)
    if merge is None:
        merge = Concatenation(parts)
        _merges.keep(key, merge, parts, 10 + len(merge.parts.fields))
    return wrap(merge([value._json for value in values]), merge.parts.schema)


def planned(name: str, operands: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> SymbolicDataModel | None:
    """Plan an operation on symbols or classes, and record it where a symbol takes part; None for values alone."""
    symbolic = classes = False
    for x in operands:
        symbolic = symbolic or isinstance(x, SymbolicDataModel)
        classes = classes or isinstance(x, type)
    if not symbolic and not classes:
        return None
    if classes:
        refuse_class_beside(operands, name)
    plan = OPERATIONS[name].plan(operands, kwargs)
    schema = plan.schema
    if schema is None:
        return None
    output = symbol(schema)
    if symbolic and "operation" in RECORDERS:
        RECORDERS["operation"](name, plan, tuple(operands), dict(kwargs or {}), output)
    return output


def on_one(name: str, x: Any, kwargs: dict[str, Any], more: Hashable) -> Any:
    """Apply an operation of one operand; `more` stands for the keyword arguments in the key of its plan."""
    operand: Any = x if type(x) is JsonDataModel else as_operand(x, name)
    if operand is None:
        return None
    if type(operand) is not JsonDataModel:
        return planned(name, (operand,), kwargs)
    schema = operand._schema
    key = (name, more, id(schema))
    plan = _plans.find(key)
    if plan is None:
        plan = _plans.keep(key, OPERATIONS[name].plan((schema,), kwargs), (schema,))
    return plan.apply([operand])

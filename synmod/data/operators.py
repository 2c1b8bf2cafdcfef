"""The operators `+ & | ^ ~` and `in`, as the methods that data models, values and symbols share.

Each method looks its function up in `OPERATORS`, which `ops` fills: values stand below the functions that make them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .symbols import SymbolicDataModel

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Functions by their name in `sm.ops`, and `is_operand`: whether an operator takes something at all."""


def _combine(name: str, left: Any, right: Any, other: Any) -> Any:
    """Apply a binary operation, or let Python look for another way where the `other` operand is not data. Hot."""
    if isinstance(other, Operand) or OPERATORS["is_operand"](other):
        return OPERATORS[name](left, right)
    return NotImplemented


class Operand:
    """Something with a schema that the operators `+ & | ^ ~` take."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _combine("concat", self, other, other)

    def __radd__(self, other: Any) -> Any:
        return _combine("concat", other, self, other)

    def __and__(self, other: Any) -> Any:
        return _combine("logical_and", self, other, other)

    def __rand__(self, other: Any) -> Any:
        return _combine("logical_and", other, self, other)

    def __or__(self, other: Any) -> Any:
        return _combine("logical_or", self, other, other)

    def __ror__(self, other: Any) -> Any:
        return _combine("logical_or", other, self, other)

    def __xor__(self, other: Any) -> Any:
        return _combine("logical_xor", self, other, other)

    def __rxor__(self, other: Any) -> Any:
        return _combine("logical_xor", other, self, other)

    def __invert__(self) -> Any:
        return OPERATORS["logical_not"](self)

    def __contains__(self, part: Any) -> bool:
        return OPERATORS["holds"](self, part)


class OperandClass(type):
    """The operators between classes: each makes a new symbol. `|` stays Python's union of types."""

    def __add__(cls, other: Any) -> SymbolicDataModel:
        return _combine("concat", cls, other, other)

    def __radd__(cls, other: Any) -> SymbolicDataModel:
        return _combine("concat", other, cls, other)

    def __and__(cls, other: Any) -> SymbolicDataModel:
        return _combine("logical_and", cls, other, other)

    def __rand__(cls, other: Any) -> SymbolicDataModel:
        return _combine("logical_and", other, cls, other)

    def __xor__(cls, other: Any) -> SymbolicDataModel:
        return _combine("logical_xor", cls, other, other)

    def __rxor__(cls, other: Any) -> SymbolicDataModel:
        return _combine("logical_xor", other, cls, other)

    def __invert__(cls) -> SymbolicDataModel:
        return OPERATORS["logical_not"](cls)

    def __contains__(cls, part: Any) -> bool:
        return OPERATORS["holds"](cls, part)

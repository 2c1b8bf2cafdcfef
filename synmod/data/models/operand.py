"""What may stand beside an operator: the dunder methods that data models, values and symbols share.

Each method looks its operation up in `OPERATORS`, a small table that `ops` fills: the classes are below the algebra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .symbol import SymbolicDataModel

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Functions by their name in `sm.ops`, and `is_operand`, which tells what an operator takes at all."""


def combine(name: str, left: Any, right: Any, other: Any) -> Any:
    """Apply a binary operation, or let Python look for another way where the `other` operand is no data. Hot."""
    if isinstance(other, Operand) or OPERATORS["is_operand"](other):
        return OPERATORS[name](left, right)
    return NotImplemented


class Operand:
    """Something with a schema that the operators `+ & | ^ ~` take."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return combine("concat", self, other, other)

    def __radd__(self, other: Any) -> Any:
        return combine("concat", other, self, other)

    def __and__(self, other: Any) -> Any:
        return combine("logical_and", self, other, other)

    def __rand__(self, other: Any) -> Any:
        return combine("logical_and", other, self, other)

    def __or__(self, other: Any) -> Any:
        return combine("logical_or", self, other, other)

    def __ror__(self, other: Any) -> Any:
        return combine("logical_or", other, self, other)

    def __xor__(self, other: Any) -> Any:
        return combine("logical_xor", self, other, other)

    def __rxor__(self, other: Any) -> Any:
        return combine("logical_xor", other, self, other)

    def __invert__(self) -> Any:
        return OPERATORS["logical_not"](self)


class OperandClass(type):
    """The operators between classes: each gives a new symbol. `|` stays Python's union of types."""

    def __add__(cls, other: Any) -> SymbolicDataModel:
        return combine("concat", cls, other, other)

    def __radd__(cls, other: Any) -> SymbolicDataModel:
        return combine("concat", other, cls, other)

    def __and__(cls, other: Any) -> SymbolicDataModel:
        return combine("logical_and", cls, other, other)

    def __rand__(cls, other: Any) -> SymbolicDataModel:
        return combine("logical_and", other, cls, other)

    def __xor__(cls, other: Any) -> SymbolicDataModel:
        return combine("logical_xor", cls, other, other)

    def __rxor__(cls, other: Any) -> SymbolicDataModel:
        return combine("logical_xor", other, cls, other)

    def __invert__(cls) -> SymbolicDataModel:
        return OPERATORS["logical_not"](cls)

    def __contains__(cls, key: Any) -> bool:
        return OPERATORS["holds"](cls, key)

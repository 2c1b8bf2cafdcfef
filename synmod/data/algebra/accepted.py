"""What an operation of the algebra takes, and what it says of anything else."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel

from synmod.data.operators import Operand, OperandClass
from synmod.data.symbols import RECORDERS, Described
from synmod.data.value import to_value
from synmod.errors import ArgumentError, DataError


def is_operand(x: Any) -> bool:
    """Tell whether an operator takes `x`; where not, Python says so with its own TypeError.

    Raises:
        DataError: `x` is a coroutine or another awaitable.
    """
    if x is None or isinstance(x, Operand | OperandClass):
        return True
    _refuse_awaitable(x, "an operator")
    return False


def as_operand(x: Any, name: str) -> Any:
    """Give `x` as an operation sees it: instances become values; classes, symbols and None stay.

    Raises:
        DataError: `x` is a coroutine or another awaitable.
        ArgumentError: It is no data.
    """
    if isinstance(x, Operand):
        return to_value(x) if isinstance(x, BaseModel) else cast("Any", x)
    if x is None or isinstance(x, OperandClass):
        return x
    _refuse_awaitable(x, name)
    cls = x if isinstance(x, type) else type(x)
    if issubclass(cls, BaseModel):
        raise ArgumentError(
            f"{name}: {cls.__name__} is a pydantic model without operators: derive it from sm.DataModel."
        )
    raise ArgumentError(f"{name} takes data models, symbols and None, got {x!r:.100} of type {type(x).__name__}.")


def _refuse_awaitable(x: Any, name: str) -> None:
    if inspect.isawaitable(x):
        if inspect.iscoroutine(x):
            x.close()  # nobody can run it any more, so nobody is warned that it never ran
        raise DataError(f"{name} got a coroutine in place of data: write `await` before the call.")


def refuse_class_beside(operands: Sequence[Any], name: str) -> None:
    """Refuse a class beside a value or a symbol.

    Raises:
        DataError: There is one.
    """
    cls = next(x for x in operands if isinstance(x, type))
    if any(isinstance(x, Described) for x in operands):
        raise DataError(
            f"{name}: the class {cls.__name__} stands beside data, but a class has no value at run time: give an "
            "instance, or `sm.Input(data_model=...)` in a program."
        )


def traced_path() -> str:
    """Give the path of the module that runs or is traced, "" where none is or nobody can tell."""
    return RECORDERS["path"]() if "path" in RECORDERS else ""

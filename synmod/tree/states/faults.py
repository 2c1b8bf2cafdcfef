"""Faults of States, collected so that one error names all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from synmod.errors import Problem, StateError, StateSchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fault(NamedTuple):
    """One thing that does not fit: where it comes in definition order, what is said of it, and schema problems."""

    order: float
    text: str
    problems: tuple[Problem, ...] = ()


def raise_faults(what: str, faults: Sequence[Fault]) -> None:
    """Raise one error for all faults, in definition order; nothing if there are none.

    Raises:
        StateSchemaError: A value misses its schema.
        StateError: Anything else.
    """
    if not faults:
        return
    ordered = sorted(faults, key=lambda fault: fault.order)
    text = "\n".join([f"{what}: the State does not fit.", *(f"  {fault.text}" for fault in ordered)])
    problems = [problem for fault in ordered for problem in fault.problems]
    raise StateSchemaError(text, problems) if problems else StateError(text)

"""Code of classes that a file names: whatever it raises becomes a LoadError that says where."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from synmod.errors import LoadError
from synmod.saving.text.faults import load_fault

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["guarded"]

T = TypeVar("T")


def guarded(
    call: Callable[[], T], where: tuple[str | int, ...], cls: type, label: Callable[[], str] | None = None
) -> T:
    """Run code of a class that a file names.

    Args:
        call: What to run.
        where: The place in the document.
        cls: The class.
        label: Tells where the object stands in the program.

    Raises:
        LoadError: It raised; the cause is what it raised. Cancellation and interrupts pass.
    """
    try:
        return call()
    except LoadError:
        raise
    except Exception as error:  # a class may raise anything; its error becomes one of the file
        place = "" if label is None else f"{label()!r} "
        text = f"{place}({cls.__qualname__}) cannot be made: {type(error).__name__}: {error}"
        raise load_fault(where, text) from error

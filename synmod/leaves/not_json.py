"""What is no JSON, and what to write instead."""

from __future__ import annotations

from enum import Enum
from typing import Final

MAX_DEPTH: Final = 50
"""How deep JSON may nest; `[]` is 1."""

MAX_DIGITS: Final = 1_000
"""How many digits an int may have."""

INT_END: Final = 10**MAX_DIGITS
"""The first int with too many digits."""

_SHOWN = 100


class Fault(Exception):
    """Something in a container is no JSON; caught where the path to the container is known.

    Attributes:
        key: Where it stands in its container; None for the container itself.
        what: What was found.
        remedy: What to do about it.
        too_deep: Whether it would be JSON if it stood less deep.
    """

    def __init__(self, key: str | int | None, what: str, remedy: str, *, too_deep: bool = False) -> None:
        super().__init__(what)
        self.key = key
        self.what = what
        self.remedy = remedy
        self.too_deep = too_deep

    def text(self, where: str) -> str:
        """Write the message of the error."""
        return f"{where or 'The value'}: {self.what} is not JSON: {self.remedy}."


def value_fault(value: object, key: str | int | None = None) -> Fault:
    """Describe a value that is no JSON."""
    return Fault(key, *_found_and_remedy(value))


def key_fault(key: object) -> Fault:
    """Describe a key that is no str."""
    return Fault(None, f"the key {_shown(key)} of type {type(key).__name__}", "write str(key)")


def depth_fault(key: str | int | None, limit: int) -> Fault:
    """Describe a container that stands too deep."""
    return Fault(key, f"nesting over {limit} levels", f"the limit is {limit}", too_deep=True)


def cycle_fault(key: str | int | None) -> Fault:
    """Describe a container that holds itself."""
    return Fault(key, "a container inside itself", "JSON has no cycles; write an id instead")


def check_text(text: str, key: str | int | None = None) -> None:
    """Refuse half of a surrogate pair, which no UTF-8 file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"a lone surrogate (character {error.start} of a str)"
        raise Fault(key, found, "text is limited to whole Unicode characters") from None


def _found_and_remedy(value: object) -> tuple[str, str]:
    kind = type(value)
    found = f"a value of type {kind.__name__}"
    if kind is float:
        return f"{value} (type float)", "write None or a string"
    if kind is int:
        return f"an int of over {MAX_DIGITS:,} digits", f"the limit is {MAX_DIGITS:,}; write a string"
    if isinstance(value, Enum):
        return found, "write x.value"
    if hasattr(kind, "item") and hasattr(kind, "dtype"):
        return found, "write x.tolist()" if getattr(value, "shape", ()) else "write x.item()"
    if isinstance(value, list | tuple | set | frozenset):
        return found, "write list(x)"
    if isinstance(value, dict):
        return found, "write dict(x)"
    for plain in (str, int, float):
        if isinstance(value, plain):
            return found, f"write {plain.__name__}(x)"
    if isinstance(value, type):
        found = f"the class {value.__name__}"
    return found, "declare a field of that type in a DataModel, or write a string"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

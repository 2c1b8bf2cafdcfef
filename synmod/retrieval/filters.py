"""Filters of passages by their metadata: `where={"lang": "en", "year": {"gte": 2024}}`."""

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from synmod.errors import ArgumentError, SynmodError
from synmod.leaves import did_you_mean, must_be

Where = Mapping[str, Any]
"""A value that a field of the metadata must equal, or conditions on it, by the name of the field."""

_ORDERS: Final = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_OPERATORS: Final = ("eq", "ne", *_ORDERS, "in")
_WANTED: Final = "a text, a finite number, True, False or None"
_MISSING: Final = object()


def check_where(what: str, where: Any, error: type[SynmodError] = ArgumentError) -> Where | None:
    """Return a filter, checked.

    Args:
        what: The receiver, for the message.
        where: The filter; None for no filter.
        error: The class of the error.

    Raises:
        SynmodError: It is not a mapping from names to values or conditions; of the class `error`.
    """
    if where is None:
        return None
    if not isinstance(where, Mapping):
        raise error(must_be(f"{what}: where", "a mapping such as {'lang': 'en'}", where))
    for field, condition in cast("Mapping[Any, Any]", where).items():
        name = f"{what}: where[{field!r}]"
        if not isinstance(field, str):
            raise error(f"{name}: the name of a field must be a text.")
        for operation, value in _conditions(condition).items():
            if operation not in _OPERATORS:
                hint = did_you_mean(operation, _OPERATORS)
                raise error(f"{name}: no operator {operation!r}; write one of {', '.join(_OPERATORS)}.{hint}")
            if operation == "in" and not isinstance(value, (list, tuple, set, frozenset)):
                raise error(must_be(f"{name}['in']", "a list of values", value))
            for item in cast("list[Any]", value if operation == "in" else [value]):
                if _kind(item) is None:
                    raise error(must_be(name, _WANTED, item))
    return cast("Where", where)


def predicate_of(where: Where) -> Callable[[str], bool]:
    """Return a function that returns whether metadata, as JSON text, satisfies a checked filter.

    A value equals only values of its own kind: `True` is not 1, and null is not a missing field. Texts and numbers have
    an order among their own kind, and False is below True. A missing field satisfies `ne` alone.
    """
    tests = [(name, *item) for name, condition in where.items() for item in _conditions(condition).items()]

    def fits(text: str) -> bool:
        metadata = json.loads(text)
        return all(_holds(metadata.get(name, _MISSING), operation, value) for name, operation, value in tests)

    return fits


def _conditions(condition: Any) -> Mapping[str, Any]:
    """Return conditions as operators with their values; a bare value must be equal."""
    return cast("Mapping[str, Any]", condition) if isinstance(condition, Mapping) else {"eq": condition}


def _holds(actual: Any, operation: str, value: Any) -> bool:
    """Whether a value of the metadata satisfies one condition."""
    if operation == "in":
        return any(_equal(actual, item) for item in value)
    if operation in ("eq", "ne"):
        return _equal(actual, value) is (operation == "eq")
    kind = _kind(actual)
    return kind == _kind(value) and kind not in (None, "null") and _ORDERS[operation](actual, value)


def _equal(actual: Any, value: Any) -> bool:
    """Whether two values are of one kind and equal."""
    kind = _kind(actual)
    return kind is not None and kind == _kind(value) and actual == value


def _kind(value: Any) -> str | None:
    """Return the kind of a value; None for one that a filter cannot hold."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    is_number = isinstance(value, (int, float)) and value - value == 0  # neither infinite nor NaN
    return "number" if is_number else None

"""What a member says: the fields of its output that a block goes by.

A member may hand on its inputs (`return_inputs=True`), which can have fields of the same names. Merging puts what the
member says itself last, numbered where the name is taken, so that inputs cannot speak for it.
"""

from __future__ import annotations

import re
from typing import Any

from synmod.data import parts_of, schema_of
from synmod.errors import SchemaError
from synmod.leaves.names import did_you_mean


def must_have(kind: str, whose: str, x: Any, name: str) -> None:
    """Check that a value or symbol may have a field that the user named: it declares the field, or is open.

    Raises:
        SchemaError: It never has ('Did you mean').
    """
    parts = parts_of(schema_of(x))
    if name not in parts.fields and parts.extra is False:
        raise SchemaError(
            f"{kind}: {whose} has no field {name!r}; there are {', '.join(parts.fields)}."
            f"{did_you_mean(name, parts.fields)}"
        )


def said(value: Any, name: str) -> Any:
    """What a member's output says in a field; None for nothing."""
    return value.get(_own_field(value, name) or name)


def must_say(kind: str, who: str, symbol: Any, name: str) -> None:
    """Check the wiring, before anything runs.

    Raises:
        SchemaError: The member's output does not declare the field.
    """
    if _own_field(symbol, name) is None:
        raise SchemaError(f"{kind}: the {who} gives no {name!r}; it gives {', '.join(symbol.keys())}.")


def _own_field(x: Any, name: str) -> str | None:
    """The last declared field of that name, or of that name with the number that merging gave it."""
    ours = re.compile(rf"{re.escape(name)}(_\d+)?")
    return next((field for field in reversed([*parts_of(schema_of(x)).fields]) if ours.fullmatch(field)), None)

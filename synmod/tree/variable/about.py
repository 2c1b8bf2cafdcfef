"""What a Variable says of itself besides value and schema: `trainable`, `name`, `description` and free metadata.

All of it is one frozen object, swapped whole, which Variables, VariableStates and VariableDefs share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, DataError
from synmod.leaves.frozen import FrozenDict, Json, frozen, frozen_dict
from synmod.leaves.names import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN = frozenset({"trainable", "name", "description"})
"""The keys with a meaning of their own; every other one is free."""


def about(trainable: bool, name: str | None, description: str | None, free: Mapping[str, Json]) -> FrozenDict:
    """Check and freeze what a Variable says of itself.

    Raises:
        ArgumentError: `trainable` is no bool, or `description` no text.
        BadNameError: `name` is no identifier.
        DataError: Free metadata that is no JSON.
    """
    if not isinstance(trainable, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  (callers are not all typed)
        raise ArgumentError(f"trainable must be True, False or None, not {trainable!r}.")
    says: dict[str, Any] = {"trainable": trainable}
    if name is not None:
        says["name"] = check_name(name, "variable")
    if description is not None:
        if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            raise ArgumentError(f"description must be a text, not {description!r:.200}.")
        says["description"] = frozen(description)
    for key, value in free.items():
        try:
            says[key] = frozen(value)
        except DataError as error:
            raise DataError(f"Metadata {key!r}: {error}") from None
    return frozen_dict(says)


def checked(says: Mapping[str, Json], default_trainable: bool = True) -> FrozenDict:
    """Check metadata that comes as one mapping, such as that of a State."""
    free = {key: value for key, value in says.items() if key not in OWN}
    return about(says.get("trainable", default_trainable), says.get("name"), says.get("description"), free)


def changed(says: FrozenDict, changes: Mapping[str, Json]) -> FrozenDict:
    """Give the metadata with some keys set; None takes a name or description away."""
    return checked({**says, **changes}) if changes else says


def free_of(says: FrozenDict) -> FrozenDict:
    """Give the free part."""
    return frozen_dict({key: value for key, value in says.items() if key not in OWN})

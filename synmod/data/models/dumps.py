"""Freezing what pydantic has written of an instance, and listing which of its fields hold containers."""

from __future__ import annotations

from typing import Any

from synmod.leaves.frozen import CONTAINERS, FrozenDict, frozen


def frozen_fields(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Return the frozen dump of an instance, and the keys under which containers stand (DataError). Hot."""
    json = frozen(plain)
    return json, [key for key, value in json.items() if isinstance(value, CONTAINERS)]

"""Migrations: pure functions on JSON, each from one format to the next, applied in turn in memory.

Purpose: every released format stays readable for ever; the file on disk stays as it is. Floor: 8 (saving). State: none.
Speed: nothing for a file of the newest format. Must never know: modules, registries, files.

One file each (`v1_to_v2.py`), a function `migrate(document) -> document`, entered in `MIGRATIONS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json

__all__ = ["MIGRATIONS", "migrated"]

MIGRATIONS: tuple[Callable[[dict[str, Json]], dict[str, Json]], ...] = ()
"""The n-th (from 0) turns format n + 1 into format n + 2."""


def migrated(document: dict[str, Json], version: int) -> dict[str, Json]:
    """Bring a document of a released format to the newest one."""
    for migrate in MIGRATIONS[version - 1 :]:
        document = migrate(document)
    return document

"""Saving and loading: programs as one JSON file that anybody can read, and load without running anybody's code.

Floor: 8. Purpose: terms, documents, the two stages of a load, variables files, digests. State: the ids that stand-ins
keep, by identity and weakly; entries in the tree room's table. Speed: saving at most twice `json.dump(indent=2)` plus
the fsync, loading at most three times parsing, digest and the constructors; all but the entries is loaded when a
function is first asked for. Must never know: Program, training; how a provider is reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.files import write_atomic
from synmod.leaves.late import opened_late
from synmod.saving import codec, own_classes

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.saving.api import aload, aloads, dumps, load, loads, reseal, save
    from synmod.saving.text.limits import FileLimits
    from synmod.saving.variables_file import LoadReport, load_variables, save_variables

__all__ = [
    "FileLimits",
    "LoadReport",
    "aload",
    "aloads",
    "codec",
    "dumps",
    "load",
    "load_variables",
    "loads",
    "own_classes",
    "reseal",
    "save",
    "save_variables",
    "write_atomic",
]


def _parts() -> tuple[ModuleType, ...]:
    """Load what saves and loads."""
    from synmod.saving import api, variables_file
    from synmod.saving.text import limits

    return api, limits, variables_file


if TYPE_CHECKING:  # for the rooms above
    from synmod.saving.text.document import FIRST_READERS as FIRST_READERS
    from synmod.saving.text.document import FORMAT as FORMAT
    from synmod.saving.text.footprint import footprint as footprint
    from synmod.saving.text.layout import compact as compact
    from synmod.saving.text.layout import compact_plain as compact_plain
    from synmod.saving.text.layout import layout as layout
    from synmod.saving.text.parse import parse_document as parse_document
    from synmod.saving.text.scan import measure as measure

_FOR_ROOMS = {
    "FIRST_READERS": "synmod.saving.text.document",
    "FORMAT": "synmod.saving.text.document",
    "compact": "synmod.saving.text.layout",
    "compact_plain": "synmod.saving.text.layout",
    "footprint": "synmod.saving.text.footprint",
    "layout": "synmod.saving.text.layout",
    "measure": "synmod.saving.text.scan",
    "parse_document": "synmod.saving.text.parse",
}
__getattr__, __dir__ = opened_late(globals(), _parts, inner=_FOR_ROOMS)

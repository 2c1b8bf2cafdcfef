"""Saving and loading: programs as one JSON file that anybody can read, and load without running anybody's code.

Floor: 8. Purpose: terms, documents, the two stages of a load, variables files, digests. State: the ids that stand-ins
keep, by identity and weakly; entries in the tree room's table. Speed: saving at most twice `json.dump(indent=2)` plus
the fsync, loading at most three times parsing, digest and the constructors. Must never know: Program, training; how a
provider is reached.
"""

from synmod.leaves.files import write_atomic
from synmod.saving import codec
from synmod.saving.api import aload, aloads, dumps, load, loads, reseal, save
from synmod.saving.limits import FileLimits
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
    "reseal",
    "save",
    "save_variables",
    "write_atomic",
]

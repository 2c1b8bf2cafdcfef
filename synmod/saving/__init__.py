"""Saving and loading: programs as JSON files that people can read, and that load without running their author's code.

Floor: 8. Purpose: the text of a file, its terms and tables, a program out and in, files of Variables alone.
State: the ids of data models that this process does not know, by the symbols in place of them, weakly.
Speed: saving at most twice `json.dumps(indent=2)` plus the fsync, loading at most four times
parsing and the constructors. Must never know: Program, training; how a provider is reached.
"""

from synmod.leaves import write_atomic

from .document import FIRST_READERS, FORMAT, FileLimits, in_file, read_document, write_document
from .read import decode_graphdef, load, loads
from .variables import LoadReport, load_variables, save_variables
from .write import dumps, encode_graphdef, save

__all__ = [
    "FIRST_READERS", "FORMAT", "FileLimits", "LoadReport", "decode_graphdef", "dumps", "encode_graphdef", "in_file",
    "load", "load_variables", "loads", "read_document", "save", "save_variables", "write_atomic", "write_document",
]

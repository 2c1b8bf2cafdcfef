"""Saving and loading: programs as one JSON file that anybody can read, and load without running anybody's code.

Floor: 8. Purpose: the text of a file, its terms and tables, a program out and in, files of Variables alone.
State: the ids of data models that this process does not know, by the symbols that stand in for them, weakly; entries in
the tree room's table. Speed: saving at most twice `json.dumps(indent=2)` plus the fsync, loading at most four times
parsing and the constructors. Must never know: Program, training; how a provider is reached.
"""

from synmod.leaves import write_atomic as write_atomic

from .document import (
    FIRST_READERS as FIRST_READERS, FORMAT as FORMAT, FileLimits as FileLimits, in_file as in_file,
    read_document as read_document, write_document as write_document,
)
from .read import LoadReport as LoadReport, load as load, load_variables as load_variables, loads as loads
from .write import dumps as dumps, save as save, save_variables as save_variables

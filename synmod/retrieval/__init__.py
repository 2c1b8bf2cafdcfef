"""Retrieval: passages of text in a file or in memory, found by words or by meaning, and the block that searches them.

Floor: 7. Purpose: `passages`, `KeywordIndex`, `VectorIndex`, `HybridIndex`, `Retrieve`; `Table`, a SQLite file to read.
State: each index holds its connection to SQLite, and a `VectorIndex` its vectors where numpy is installed. Speed: a
search among 10,000 passages takes about a millisecond by words, and a few by 384 numbers each, in a thread.
Must never know: the purpose of the passages, programs, saving, training.
"""

from .filters import Where
from .indexes import KeywordIndex
from .nearest import Nearest
from .passages import passages
from .retrieve import FoundPassage, HybridIndex, Index, Passage, Passages, QueryPassage, Retrieve
from .table import Table
from .vectors import VectorIndex

__all__ = [
    "FoundPassage", "HybridIndex", "Index", "KeywordIndex", "Nearest", "Passage", "Passages", "QueryPassage",
    "Retrieve", "Table", "VectorIndex", "Where", "passages",
]

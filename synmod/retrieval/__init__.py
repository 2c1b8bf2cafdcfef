"""Retrieval: passages of text in a file or in memory, found by words or by meaning, and the block that searches them.

Floor: 7. Purpose: `KeywordIndex`, `VectorIndex`, `Retrieve`. State: each index holds its connection to SQLite. Speed: a
search among 10,000 passages takes about a millisecond by words, and about 80 by 256 numbers each, in a thread.
Must never know: the purpose of the passages, programs, saving, training.
"""

from .indexes import KeywordIndex, VectorIndex
from .retrieve import FoundPassage, Index, Passage, Passages, Retrieve

__all__ = ["FoundPassage", "Index", "KeywordIndex", "Passage", "Passages", "Retrieve", "VectorIndex"]

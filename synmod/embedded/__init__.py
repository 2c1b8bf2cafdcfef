"""Models in the process: `embedded/nearest` and `embedded/rules` answer from their prompts, `embedded/hash` embeds.

Floor: 6. Purpose: programs that get better or worse with their prompts, for first steps, tests, docs and benchmarks.
State: none; caches of parsed texts. Speed: a reply takes less than a millisecond per example; it is the same in every
process. Must never know: a module, a program, a network.
"""

from .hashing import HashAdapter
from .nearest import FORMATS, NearestAdapter, within
from .prompts import json_or_none
from .rules import RulesAdapter

__all__ = ["FORMATS", "HashAdapter", "NearestAdapter", "RulesAdapter", "json_or_none", "within"]

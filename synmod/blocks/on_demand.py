"""The blocks that not every program has, and the data models of blocks: loaded when one of them is first asked for."""

from synmod.blocks.best_of import BestOf
from synmod.blocks.branch import Branch
from synmod.blocks.cached import Cached
from synmod.blocks.critique import Critique
from synmod.blocks.fallback import Fallback, Retry
from synmod.blocks.guard import Guard
from synmod.blocks.majority import Majority
from synmod.blocks.map import Map
from synmod.blocks.refine import Refine
from synmod.blocks.repeat import Repeat
from synmod.blocks.route import Route
from synmod.blocks.self_critique import SelfCritique
from synmod.blocks.thinking import Thinking

__all__ = [
    "BestOf",
    "Branch",
    "Cached",
    "Critique",
    "Fallback",
    "Guard",
    "Majority",
    "Map",
    "Refine",
    "Repeat",
    "Retry",
    "Route",
    "SelfCritique",
    "Thinking",
]

"""Ready-made modules: each a short example of how a module is written.

Floor: 7. Purpose: generators, decisions, samples, branches, loops, functions, and the algebra of data as modules.
State: Variables of its modules only. Speed: a Generator call on a model without latency costs at most 120 µs.
Must never know: the insides of other rooms, Program, files, training.
"""

from .again import Fallback, Repeat, Retry
from .algebra import And, Concat, Factorize, InMask, Not, Or, OutMask, Prefix, Suffix, Xor
from .cached import Cached
from .decision import Decision
from .functions import Constant, Identity, Lambda
from .generator import Generator
from .many import Map, Parallel
from .refine import Refine
from .routing import Branch, Guard, Route
from .sampling import BestOf, Majority
from .thinking import ChainOfThought, Critique, SelfCritique, Thinking

__all__ = [
    "And",
    "BestOf",
    "Branch",
    "Cached",
    "ChainOfThought",
    "Concat",
    "Constant",
    "Critique",
    "Decision",
    "Factorize",
    "Fallback",
    "Generator",
    "Guard",
    "Identity",
    "InMask",
    "Lambda",
    "Majority",
    "Map",
    "Not",
    "Or",
    "OutMask",
    "Parallel",
    "Prefix",
    "Refine",
    "Repeat",
    "Retry",
    "Route",
    "SelfCritique",
    "Suffix",
    "Thinking",
    "Xor",
]

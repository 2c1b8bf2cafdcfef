"""Ready-made modules: each a short example of how a module is written.

Floor: 7. Purpose: generators, decisions, samples, branches, loops, functions, and the algebra of data as modules.
State: Variables of its modules only. Speed: a Generator call on a model without latency costs at most 120 µs.
Must never know: the insides of other rooms, Program, files, training.
"""

from .again import (
    BestOf as BestOf, Cached as Cached, Majority as Majority, Refine as Refine, Repeat as Repeat, Retry as Retry,
)
from .functions import (
    And as And, Concat as Concat, Constant as Constant, Factorize as Factorize, Identity as Identity, InMask as InMask,
    Lambda as Lambda, Not as Not, Or as Or, OutMask as OutMask, Prefix as Prefix, Suffix as Suffix, Xor as Xor,
)
from .generator import (
    ChainOfThought as ChainOfThought, Critique as Critique, Generator as Generator, SelfCritique as SelfCritique,
    Thinking as Thinking,
)
from .routing import (
    Branch as Branch, Decision as Decision, Fallback as Fallback, Guard as Guard, Map as Map, Parallel as Parallel,
    Route as Route,
)

"""Ready-made modules: each a short example of how a module of one's own is written.

Floor: 7. Purpose: generators, decisions, samples, branches, loops, functions, and the algebra of data as modules.
State: Variables of its modules only. Speed: a Generator call on a model without latency costs at most 120 µs.
Must never know: the insides of the module room, Program, files, training.
"""

from typing import TYPE_CHECKING, Any

from synmod.blocks.chain_of_thought import ChainOfThought
from synmod.blocks.decision import Decision
from synmod.blocks.generator import Generator
from synmod.blocks.masking import InMask, OutMask
from synmod.blocks.merging import And, Concat, Not, Or, Xor
from synmod.blocks.parallel import Parallel
from synmod.blocks.plain import Constant, Identity, Lambda
from synmod.blocks.renaming import Factorize, Prefix, Suffix

if TYPE_CHECKING:
    from synmod.blocks.on_demand import (
        BestOf,
        Branch,
        Cached,
        Critique,
        Fallback,
        Guard,
        Majority,
        Map,
        Refine,
        Repeat,
        Retry,
        Route,
        SelfCritique,
        Thinking,
    )

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


def __getattr__(name: str) -> Any:
    """Load the other blocks when one of them is first asked for: they cost time that `import synmod` has not."""
    if name not in __all__:
        raise AttributeError(f"module 'synmod.blocks' has no attribute {name!r}")
    from synmod.blocks import on_demand

    globals().update({lazy: getattr(on_demand, lazy) for lazy in on_demand.__all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Ready-made modules: each a short example of how a module of one's own is written.

Floor: 7. Purpose: generators, decisions, samples, branches, loops, functions, and the algebra of data as modules.
State: Variables of its modules only. Speed: a Generator call on a model without latency costs at most 120 µs.
Must never know: the insides of the module room, Program, files, training.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.registry import own_later

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.blocks.chain_of_thought import ChainOfThought
    from synmod.blocks.decision import Decision
    from synmod.blocks.generator import Generator
    from synmod.blocks.masking import InMask, OutMask
    from synmod.blocks.merging import And, Concat, Not, Or, Xor
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
    from synmod.blocks.parallel import Parallel
    from synmod.blocks.plain import Constant, Identity, Lambda
    from synmod.blocks.renaming import Factorize, Prefix, Suffix

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


def _parts() -> tuple[ModuleType, ...]:
    """Load the usual blocks: a program that is made of other modules needs none."""
    from synmod.blocks import chain_of_thought, decision, generator, masking, merging, parallel, plain, renaming

    return chain_of_thought, decision, generator, masking, merging, parallel, plain, renaming


def _other_parts() -> tuple[ModuleType, ...]:
    """Load the other blocks, which most programs do without."""
    from synmod.blocks import on_demand

    return (on_demand,)


__getattr__, __dir__ = opened_late(globals(), _parts, _other_parts)
own_later(partial(__getattr__, "Thinking"))

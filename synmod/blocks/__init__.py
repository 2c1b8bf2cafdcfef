"""Ready-made modules: each a short example of how a module of one's own is written.

Floor: 7. Purpose: generators, decisions, parallel branches, functions, and the algebra of data as modules.
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
    from synmod.blocks.thinking import Thinking

__all__ = [
    "And",
    "ChainOfThought",
    "Concat",
    "Constant",
    "Decision",
    "Factorize",
    "Generator",
    "Identity",
    "InMask",
    "Lambda",
    "Not",
    "Or",
    "OutMask",
    "Parallel",
    "Prefix",
    "Suffix",
    "Thinking",
    "Xor",
]


def __getattr__(name: str) -> Any:
    """Load `Thinking` when it is first asked for: a data model costs time that `import synmod` has not."""
    if name == "Thinking":
        from synmod.blocks.thinking import Thinking

        return Thinking
    raise AttributeError(f"module 'synmod.blocks' has no attribute {name!r}")

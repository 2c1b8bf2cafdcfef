"""Ready-made modules: each a short example of how a module is written.

Floor: 7. Purpose: generators, decisions, samples, branches, loops, functions, and the algebra of data as modules.
State: Variables of its modules only. Speed: a Generator call on a model without latency costs at most 120 µs.
Must never know: the internals of other rooms, Program, files, training.
"""

from .agent import Agent
from .again import BestOf, Cached, Majority, Refine, Repeat, Retry
from .code import AskModel, Code, CodeAct, PromptText, ask_model
from .conversation import Compact
from .decision import Decision
from .functions import And, Concat, Constant, Factorize, Identity, InMask, Lambda, Not, Or, OutMask, Prefix, Suffix, Xor
from .generator import ChainOfThought, Critique, Generator, SelfCritique, Thinking
from .routing import Branch, Choose, Fallback, Guard, Map, Parallel, Route
from .servers import mcp_tools
from .tools import Tool

__all__ = [
    "Agent", "And", "AskModel", "BestOf", "Branch", "Cached", "ChainOfThought", "Choose", "Code", "CodeAct", "Compact",
    "Concat", "Constant", "Critique", "Decision", "Factorize", "Fallback", "Generator", "Guard", "Identity", "InMask",
    "Lambda", "Majority", "Map", "Not", "Or", "OutMask", "Parallel", "Prefix", "PromptText", "Refine", "Repeat",
    "Retry", "Route", "SelfCritique", "Suffix", "Thinking", "Tool", "Xor", "ask_model", "mcp_tools",
]

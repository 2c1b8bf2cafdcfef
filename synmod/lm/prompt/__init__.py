"""Prompts as pure functions: from what a program declares and what it was given to chat messages.

Floor: 5, inside lm. Purpose: the five slots of a prompt, their order, and the boundaries that no value can close.
State: a bounded cache per `Layout` of what does not depend on the inputs. Speed: under 50 microseconds for a small
prompt. Must never know: modules, models, adapters, event loops.
"""

from synmod.lm.prompt.fields import default_instructions, input_fields
from synmod.lm.prompt.layout import Layout
from synmod.lm.prompt.slots import SLOTS, Slots
from synmod.lm.prompt.template import Template

__all__ = ["SLOTS", "Layout", "Slots", "Template", "default_instructions", "input_fields"]

"""Test doubles, public: language models that need no provider.

Floor: above everything; nobody inside synmod imports it. Purpose: to test programs offline and exactly.
State: none. Speed: a call of a double costs what the layers of a model call cost.
Must never know: a network, a key, a file outside of what a test hands it.
"""

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.testing.function_lm import FunctionLM
from synmod.testing.saves import assert_saves
from synmod.testing.schema_lm import SchemaLM
from synmod.testing.scripted_lm import ScriptedLM

__all__ = ["FunctionLM", "SchemaLM", "ScriptedLM", "assert_saves"]

if TYPE_CHECKING:  # for the rooms above
    from synmod.testing.instances import instance_of as instance_of
    from synmod.testing.instances.pattern_texts import text_for as text_for

_FOR_ROOMS = {
    "instance_of": "synmod.testing.instances",
    "text_for": "synmod.testing.instances.pattern_texts",
}
__getattr__, __dir__ = opened_late(globals(), inner=_FOR_ROOMS)

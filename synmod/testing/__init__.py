"""Test doubles, public: language models that need no provider.

Floor: above everything; nobody inside synmod imports it. Purpose: to test programs offline and exactly.
State: none. Speed: a call of a double costs what the layers of a model call cost.
Must never know: a network, a key, a file outside of what a test hands it.
"""

from .instances import instance_of, text_for
from .models import FunctionLM, SchemaLM, ScriptedLM
from .saves import assert_saves

__all__ = ["FunctionLM", "SchemaLM", "ScriptedLM", "assert_saves", "instance_of", "text_for"]

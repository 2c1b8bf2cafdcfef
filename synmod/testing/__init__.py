"""Test doubles, public: language models that need no provider, and tasks whose best score is known.

Floor: above everything; nothing inside synmod imports it. Purpose: to test programs offline and exactly.
State: none. Speed: a call of a double costs only the layers of a model call.
Must never know: a network, a key, a file that a test does not pass to it.
"""

from .comparing import assert_not_worse
from .instances import instance_of, text_for
from .models import FunctionLM, SchemaLM, ScriptedLM, assert_saves
from .tasks import ChoiceTask, RuleTask, Task, tickets
from .wrappers import ChaosLM, Fault, RecordReplayLM

__all__ = [
    "ChaosLM", "ChoiceTask", "Fault", "FunctionLM", "RecordReplayLM", "RuleTask", "SchemaLM", "ScriptedLM", "Task",
    "assert_not_worse", "assert_saves", "instance_of", "text_for", "tickets",
]

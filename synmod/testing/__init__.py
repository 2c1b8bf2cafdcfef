"""Test doubles, public: language models that need no provider, and tasks whose best score is known.

Floor: above everything; nobody inside synmod imports it. Purpose: to test programs offline and exactly.
State: none. Speed: a call of a double costs what the layers of a model call cost.
Must never know: a network, a key, a file outside of what a test hands it.
"""

from .instances import instance_of as instance_of, text_for as text_for
from .models import (
    FunctionLM as FunctionLM, SchemaLM as SchemaLM, ScriptedLM as ScriptedLM, assert_saves as assert_saves,
)
from .tasks import ChoiceTask as ChoiceTask, RuleTask as RuleTask, Task as Task, tickets as tickets

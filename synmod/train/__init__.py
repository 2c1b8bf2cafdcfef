"""Judging programs on data: examples, rewards, metrics, evaluations.

Floor: 9. Purpose: many examples through one program, each scored inside its own call; what was finished is never lost.
State: none. Speed: some 100 µs per example beside its call; memory does not grow with the data where results are not
kept. Must never know: Program, how a provider is reached.
"""

from synmod.scope import Feedback as Feedback

from . import metrics as metrics, rewards as rewards
from .evaluating import evaluate as evaluate
from .evaluation import Evaluation as Evaluation, ExampleError as ExampleError, ExampleResult as ExampleResult
from .examples import Example as Example

"""Judging programs on data, and making them better: rewards, metrics, evaluations, the Trainer and its bench.

Floor: 9. Purpose: many examples through one program, each scored inside its own call; candidates as overlays; runs that
resume. State: none. Speed: some 100 µs per example beside its call; memory does not grow with the data where results
are not kept. Must never know: Program, how a provider is reached.
"""

from synmod.scope import Feedback as Feedback

from . import callbacks as callbacks, metrics as metrics, rewards as rewards
from .batches import Batch as Batch, Batches as Batches, Context as Context
from .bench import Bench as Bench
from .callbacks import Monitor as Monitor, MonitorRecord as MonitorRecord
from .checkpoints import latest_checkpoint as latest_checkpoint, list_checkpoints as list_checkpoints
from .evaluating import evaluate as evaluate, predicted as predicted
from .evaluation import (
    Comparison as Comparison, Evaluation as Evaluation, ExampleError as ExampleError, ExampleResult as ExampleResult,
)
from .examples import (
    Example as Example, as_json as as_json, load_examples as load_examples, training_rows as training_rows,
)
from .fitting import BatchEndParam as BatchEndParam
from .history import History as History
from .optimizer import (
    Candidate as Candidate, FeedbackByPath as FeedbackByPath, FeedbackItem as FeedbackItem, Optimizer as Optimizer,
    Race as Race, Target as Target, TargetKind as TargetKind, crossover as crossover, mean as mean,
    optimizer_from as optimizer_from, positive as positive,
)
from .rollouts import CallRecord as CallRecord, Rollout as Rollout
from .runs import Budget as Budget, Run as Run
from .trainer import Trainer as Trainer
from .proposer import (
    Proposer as Proposer, ReflectionInputs as ReflectionInputs, is_too_long as is_too_long, records_of as records_of,
    reflection_inputs as reflection_inputs,
)
from .routing import blamed as blamed

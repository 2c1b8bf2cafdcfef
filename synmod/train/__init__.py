"""Judging programs on data, and making them better: rewards, metrics, evaluations, the Trainer and its bench.

Floor: 9. Purpose: many examples through one program, each scored inside its own call; candidates as overlays; runs that
resume. State: none. Speed: some 100 µs per example beside its call; memory does not grow with the data where results
are not kept. Must never know: Program, how a provider is reached.
"""

from synmod.journal import Run
from synmod.scope import Feedback

from . import callbacks, metrics, rewards
from .batches import Batch, Batches, Context
from .bench import Bench
from .callbacks import Monitor, MonitorRecord
from .candidates import LEFT_OUT, Candidate, Race, Target, TargetKind, crossover, mean, mean_bounds, row_losses
from .checkpoints import latest_checkpoint, list_checkpoints
from .credit import FeedbackByPath, FeedbackItem
from .evaluation import Comparison, Evaluation, evaluate, predict_rows
from .examples import load_examples, load_training_rows, rows_without_targets
from .fitting import BatchEndParam
from .history import History, Worth
from .optimizer import (
    Optimizer, Proposer, ReflectionInputs, optimizer_from, real_number, records_of, whole_number,
    whole_numbers,
)
from .metrics import Metrics
from .rollouts import CallRecord, ExampleError, ExampleResult, Executor, Rollout, RunOutcome, RunRow
from .rows import Example, PositionalInputs, as_json, inputs_for
from .runs import Budget, Runner
from .trainer import Trainer

__all__ = [
    "LEFT_OUT", "Batch", "BatchEndParam", "Batches", "Bench", "Budget", "CallRecord", "Candidate", "Comparison",
    "Context", "Evaluation", "Example", "ExampleError", "ExampleResult", "Executor", "Feedback", "FeedbackByPath",
    "FeedbackItem", "History", "Metrics", "Monitor", "MonitorRecord", "Optimizer", "PositionalInputs", "Proposer",
    "Race", "ReflectionInputs", "Rollout", "Run", "RunOutcome", "RunRow", "Runner", "Target", "TargetKind", "Trainer",
    "Worth", "as_json", "callbacks", "crossover", "evaluate", "inputs_for", "latest_checkpoint", "list_checkpoints",
    "load_examples", "load_training_rows", "mean", "mean_bounds", "metrics", "optimizer_from", "predict_rows",
    "real_number", "records_of", "rewards", "row_losses", "rows_without_targets", "whole_number",
    "whole_numbers",
]

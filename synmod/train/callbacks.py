"""Callbacks of a training run, and the Monitor, which records what its modules read and return. `sm.callbacks`."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from synmod import errors, flow, leaves, lm, module, saving, scope, tree

from . import candidates, checkpoints, history, runs
from .rows import as_json

if TYPE_CHECKING:
    from .trainer import Trainer

_LOG: Final = logging.getLogger("synmod.train")


class TrainingEvent(NamedTuple):
    """The state of a run when a callback is called.

    Attributes:
        trainer: The trainer.
        epoch: Number of the epoch, from 0.
        step: Number of the step, from 0.
        logs: Numbers so far, by name.
        spent: The price of the run so far.
        replayed: Whether a resumed run is still reading its journal, and has not called a model.
        candidate: The new candidate, for `on_candidate`.
        budget: How many rollouts the run may take.
    """

    trainer: Trainer
    epoch: int
    step: int
    logs: Mapping[str, Any]
    spent: runs.Budget
    replayed: bool = False
    candidate: candidates.Candidate | None = None
    budget: int | None = None


class Callback:
    """Override any of the methods, plain or async; each gets one frozen record. An error in one ends the run.

    Example:
        >>> class Print(Callback):
        ...     def on_epoch_end(self, event):
        ...         print(event.epoch, event.logs)

    Source: Keras' `Callback`; differs: one record, async methods, and `stop` ends through `finish`.
    """

    stopped: str | None = None
    """Why the run ends after the present step; None while it continues."""

    def stop(self, reason: str) -> None:
        """End the run after the present step, through the optimizer's `finish`."""
        self.stopped = reason

    def on_train_begin(self, event: TrainingEvent) -> Any:
        """The run begins."""

    def on_train_end(self, event: TrainingEvent) -> Any:
        """The run has ended."""

    def on_epoch_begin(self, event: TrainingEvent) -> Any:
        """An epoch begins."""

    def on_epoch_end(self, event: TrainingEvent) -> Any:
        """An epoch has ended."""

    def on_step_end(self, event: TrainingEvent) -> Any:
        """A step has ended."""

    def on_candidate(self, event: TrainingEvent) -> Any:
        """The program holds another candidate."""


_METHODS: Final = [name for name in vars(Callback) if name.startswith("on_")]


class LambdaCallback(Callback):
    """A callback made of functions.

    Args:
        **functions: By the name of the method.

    Raises:
        ArgumentError: A name that is not that of a method.

    Example:
        >>> LambdaCallback(on_epoch_end=lambda event: print(event.logs)).stopped is None
        True

    Source: Keras' `LambdaCallback`.
    """

    def __init__(self, **functions: Callable[[TrainingEvent], Any]) -> None:
        for name, function in functions.items():
            setattr(self, leaves.check_choice("LambdaCallback: a name", name, _METHODS), function)


class EarlyStopping(Callback):
    """Ends a run that no longer improves.

    An epoch in which the number is None is not counted: `val_reward` is None where the program was run on a part of the
    validation rows alone, which `val_reward_estimate` is the mean over. `best_val_reward` stays once it is there.

    Args:
        monitor: The number that counts, by its name in the logs.
        mode: Whether more or less of it is better.
        patience: Epochs without an improvement.
        min_delta: The least improvement that counts.

    Raises:
        TrainerError: (at the end of an epoch) The logs have no such number; lists those they have.

    Example:
        >>> EarlyStopping(patience=2).monitor
        'val_reward'

    Source: Keras' `EarlyStopping`.
    """

    def __init__(
        self,
        monitor: str = "val_reward",
        mode: Literal["max", "min"] = "max",
        patience: int = 5,
        min_delta: float = 0.0,
    ) -> None:
        self.mode = leaves.check_choice("EarlyStopping: mode", mode, ("max", "min"), error=errors.TrainerError)
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self._best: float | None = None
        self._waited = 0

    def on_train_begin(self, event: TrainingEvent) -> None:  # noqa: ARG002
        """Reset the count."""
        self._best, self._waited, self.stopped = None, 0, None

    def on_epoch_end(self, event: TrainingEvent) -> None:
        """Look at the number, and count."""
        names = [name for name, value in event.logs.items() if isinstance(value, int | float | None)]
        leaves.check_choice("EarlyStopping: monitor", self.monitor, names, error=errors.TrainerError)
        value = event.logs[self.monitor]
        if value is None:
            return
        signed = value if self.mode == "max" else -value
        if self._best is None or signed > self._best + self.min_delta:
            self._best, self._waited = signed, 0
        else:
            self._waited += 1
            if self._waited >= self.patience:
                self.stop(f"{self.monitor} has not improved for {self.patience} epochs")


class CSVLogger(Callback):
    """Writes one line per epoch, at once; a run that is resumed writes the file from the beginning, since it replays.

    Args:
        path: The file.

    Example:
        >>> CSVLogger("history.csv").path.name
        'history.csv'

    Source: Keras' `CSVLogger`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(leaves.path_text(path))
        self._rows: list[Mapping[str, Any]] = []

    def on_train_begin(self, event: TrainingEvent) -> None:  # noqa: ARG002
        """Begin the file."""
        self._rows.clear()
        history.write_csv(self.path, self._rows)

    def on_epoch_end(self, event: TrainingEvent) -> None:
        """Write the rows so far; the first line names the columns."""
        self._rows.append(event.logs)
        history.write_csv(self.path, self._rows)


class ProgressBar(Callback):
    """Shows how far a run is: the bar of `sm.evaluate`, by rollouts.

    Args:
        progress: Follows it; None for a bar on a terminal, False for nothing.

    Example:
        >>> ProgressBar().stopped is None
        True

    Source: Keras' progress bar.
    """

    def __init__(self, progress: flow.Progress | Literal[False] | None = None) -> None:
        self._shown = flow.open_progress(progress)
        self._seen = 0

    def on_train_begin(self, event: TrainingEvent) -> None:
        """Begin the bar."""
        self._seen = 0
        self._shown.begin("fit", event.budget)

    def on_step_end(self, event: TrainingEvent) -> None:
        """Move it on."""
        rollouts = event.spent.rollouts or 0
        best = event.logs.get("best_val_reward")
        numbers = {} if best is None else {"score": best}
        self._shown.advance(rollouts - self._seen, **numbers, cost_usd=event.spent.cost_usd or 0.0)
        self._seen = rollouts

    def on_train_end(self, event: TrainingEvent) -> None:  # noqa: ARG002
        """End it."""
        self._shown.end("done")


_TRACKER: Final = ("log_params", "log_metrics", "log_text", "log_artifact")


class Track(Callback):
    """Reports a run to a tracker of experiments: settings, numbers per step, changes of candidates, the program file.

    The tracker is called in the task of the run, as MLflow's present run is that of its thread. An error of it is a
    warning, and the run continues. A resumed run reports what it replays once more. API keys are replaced by `***`.

    Args:
        tracker: The module `mlflow`, or an object with these of its functions: `log_params(params)`,
            `log_metrics(metrics, step=)`, `log_text(text, artifact_file)`, `log_artifact(local_path)`.

    Raises:
        ArgumentError: The tracker has not all of them; lists those that it lacks.

    Example:
        >>> from types import SimpleNamespace
        >>> tracker = SimpleNamespace(log_params=print, log_metrics=print, log_text=print, log_artifact=print)
        >>> Track(tracker).stopped is None
        True

    Source: MLflow's autologging; Weights & Biases' callback for Keras.
    """

    def __init__(self, tracker: Any) -> None:
        missing = [name for name in _TRACKER if not callable(getattr(tracker, name, None))]
        if missing:
            kind = f"{type(tracker).__name__} lacks {', '.join(missing)}"
            raise errors.ArgumentError(f"Track: the {kind}; give mlflow, or an object with these functions.")
        self.tracker = tracker
        self._seed = tree.State()

    def on_train_begin(self, event: TrainingEvent) -> None:
        """Report the settings."""
        trainer = event.trainer
        self._seed = tree.state(trainer.program)
        settings = {
            "program": type(trainer.program).__name__,
            "reward": None if trainer.reward is None else trainer.reward.name,
            "seed": trainer.seed,
            "optimizer": None if trainer.optimizer is None else type(trainer.optimizer).__name__,
            "models": ", ".join(sorted({model.model for model in trainer.models()})),
            "budget_rollouts": event.budget,
        }
        self._report("log_params", {name: value for name, value in settings.items() if value is not None})

    def on_step_end(self, event: TrainingEvent) -> None:
        """Report the numbers of the moment."""
        numbers = {name: value for name, value in event.logs.items() if isinstance(value, int | float)}
        self._report("log_metrics", numbers, step=event.step)

    def on_candidate(self, event: TrainingEvent) -> None:
        """Report what the candidate changed of the seed."""
        if (candidate := event.candidate) is not None:
            changes = self._seed.diff(candidate.state)
            text = history.diff_text({path: pair for path, pair in changes.items() if pair[1]}, candidate.id)
            self._report("log_text", leaves.scrub(text), f"candidates/{candidate.id}.txt")

    def on_train_end(self, event: TrainingEvent) -> None:
        """Report the program as a file."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            file = Path(folder) / "program.json"
            self._report("log_artifact", lambda: str(saving.save(event.trainer.program, file)))

    def _report(self, function: str, *values: Any, **options: Any) -> None:
        """Call a function of the tracker on values, or on those that functions return; an error is a warning."""
        try:
            values = tuple(value() if callable(value) else value for value in values)
            getattr(self.tracker, function)(*values, **options)
        except Exception as error:  # noqa: BLE001  # of a tracker, which may raise anything
            fault = leaves.scrub(f"{type(error).__name__}: {scope.message_of(error)}")
            warnings.warn(f"Track: {function} failed: {fault:.500}", errors.SynmodWarning, stacklevel=2)


# -- at the end of an epoch --------------------------------------------------------------------------------------------


def do_checkpoint(prefix: str | os.PathLike[str], period: int = 1) -> Callable[..., None]:
    """Return an epoch-end callback that saves program and values.

    Args:
        prefix: As in `Trainer.save_checkpoint`; epoch n is saved as number n + 1.
        period: Every `period`-th epoch is saved.

    Raises:
        TrainerError: A period below 1.

    Example:
        >>> callable(do_checkpoint("run/agent", period=2))
        True

    Source: MXNet's `callback.do_checkpoint`.
    """
    return _every(period, partial(checkpoints.write_checkpoint, prefix))


def module_checkpoint(
    trainer: Trainer, prefix: str | os.PathLike[str], period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """Return an epoch-end callback that lets a trainer save a checkpoint.

    Args:
        trainer: The trainer to save.
        prefix: As in `Trainer.save_checkpoint`; epoch n is saved as number n + 1.
        period: Every `period`-th epoch is saved.
        save_optimizer_states: Whether the states of the optimizer are saved, too.

    Raises:
        TrainerError: A period below 1.

    Example:
        >>> from synmod.train import Trainer
        >>> import synmod as sm
        >>> callable(module_checkpoint(Trainer(sm.Identity()), "run/agent"))
        True

    Source: MXNet's `callback.module_checkpoint`.
    """

    def save(epoch: int, *_: object) -> None:
        trainer.save_checkpoint(prefix, epoch, save_optimizer_states)

    return _every(period, save)


def _every(period: int, save: Callable[..., None]) -> Callable[..., None]:
    """Return an epoch-end callback that saves under every n-th number.

    Raises:
        TrainerError: A period below 1.
    """
    leaves.check_int("period", period, error=errors.TrainerError)

    def at_epoch_end(epoch: int, *values: Any) -> None:
        if (epoch + 1) % period == 0:
            save(epoch + 1, *values)

    return at_epoch_end


# -- the monitor -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MonitorRecord:
    """The statistic of one value that a Monitor recorded.

    Attributes:
        step: Which `tic` it was, from 0.
        name: `path:input` or `path:output` of a module, or the path of a Variable.
        stat: The result of `stat_func`.
        row: Number of the row in its batch or evaluation; None for Variables, and for calls outside of both.

    Example:
        >>> MonitorRecord(0, "writer:output", {"characters": 12, "tokens": 3}, 4).row
        4

    Source: MXNet's `Monitor`; differs: a record instead of a tuple, with the row.
    """

    step: int
    name: str
    stat: leaves.Json
    row: int | None


class Monitor(scope.Hook):
    """Records the inputs and outputs of modules, and the values of Variables, at every n-th step.

    Args:
        interval: It is active at every `interval`-th `tic`, the first included.
        stat_func: Returns what to record of a value, given as plain JSON; None for its length in characters and tokens.
        pattern: A regular expression that names must begin with.
        sort: Whether records come by name instead of by row.

    Raises:
        TrainerError: An interval below 1, or a pattern that is not a regular expression.

    Example:
        >>> monitor = Monitor(10, pattern=".*:output")
        >>> monitor.toc()
        []

    Source: MXNet's `Monitor`; differs: a hook, with names by path.
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[Any], leaves.Json] | None = None,
        pattern: str = ".*",
        sort: bool = False,
    ) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise errors.TrainerError(f"Monitor: {pattern!r:.100} is not a regular expression: {error}.") from None
        self.interval = leaves.check_int("Monitor: interval", interval, error=errors.TrainerError)
        self.stat_func, self.sort = stat_func or _lengths, sort
        self.activated = False
        self._tics = 0
        self._seen: list[tuple[int | None, str, leaves.Json]] = []
        self._program: module.Module | None = None

    def install(self, program: module.Module) -> None:
        """Watch the Variables of a program, too."""
        self._program = program

    def tic(self) -> None:
        """Begin a step; at every n-th one what follows is noted."""
        self.activated = self._tics % self.interval == 0
        self._tics += 1
        self._seen.clear()

    def toc(self) -> list[MonitorRecord]:
        """End a step; return what was noted in it, by row, and the Variables last.

        Raises:
            Exception: Any error of `stat_func`.
        """
        if not self.activated:
            return []
        self.activated = False
        values = sorted(self._seen, key=lambda record: (record[0] is None, record[0] or 0))  # rows may run at once
        if self._program is not None:
            variables = tree.variables(self._program).items()
            values += [(None, name, variable.value) for name, variable in variables if self._pattern.match(name)]
        self._seen.clear()
        stats = ((row, name, self.stat_func(leaves.thaw(value))) for row, name, value in values)
        records = [MonitorRecord(self._tics - 1, name, stat, row) for row, name, stat in stats]
        return sorted(records, key=lambda record: record.name) if self.sort else records

    def toc_print(self) -> None:
        """End a step, and log a line for each record."""
        for record in self.toc():
            row = "" if record.row is None else f" row {record.row}"
            _LOG.info("Batch %d%s: %s %s", record.step, row, record.name, record.stat)

    def on_call_begin(self, event: scope.CallBegin) -> None:
        """Note the inputs of a call."""
        self._note(f"{event.path}:input", event.inputs[0] if len(event.inputs) == 1 else event.inputs)

    def on_call_end(self, event: scope.CallEnd) -> None:
        """Note the outputs of a call that did not fail."""
        if event.exception is None:
            self._note(f"{event.path}:output", event.outputs)

    def _note(self, name: str, value: Any) -> None:
        """Note a value whose name is wanted."""
        if self.activated and self._pattern.match(name):
            self._seen.append((runs.ROW.get(), name, as_json(value)))


def _lengths(json: leaves.Json) -> leaves.Json:
    """Return how long a value is: its text, or the text of its JSON."""
    characters = len(json if isinstance(json, str) else leaves.dump_json(json))
    return {"characters": characters, "tokens": lm.estimate_text(characters)}

"""Callbacks: what happens beside a training run, and the Monitor, which looks into it. `sm.callbacks`."""

from __future__ import annotations

import csv
import inspect
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from synmod.data import dump_json
from synmod.errors import ArgumentError, TrainerError
from synmod.flow import Progress, shown
from synmod.leaves import Json, did_you_mean, path_str, thaw
from synmod.lm import estimate_text
from synmod.module import Module
from synmod.scope import CallBegin, CallEnd, Hook
from synmod.tree import state

from .batches import current_row
from .checkpoints import write_checkpoint
from .examples import as_json
from .optimizer import Candidate

if TYPE_CHECKING:
    from .runs import Budget
    from .trainer import Trainer

_LOG: Final = logging.getLogger("synmod.train")
_METHODS: Final = (
    "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_step_end", "on_candidate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a run is.

    Attributes:
        trainer: What runs.
        epoch: Number of the epoch, from 0.
        step: Number of the step, from 0.
        logs: Numbers so far, by name.
        spent: What the run took so far.
        replayed: Whether a resumed run is still catching up, and pays for nothing.
        candidate: The one that was accepted, for `on_candidate`.
        budget: How many rollouts the run may take.
    """

    trainer: Trainer
    epoch: int
    step: int
    logs: Mapping[str, Any]
    spent: Budget
    replayed: bool = False
    candidate: Candidate | None = None
    budget: int | None = None


class Callback:
    """Override any of the methods, plain or async; each gets one frozen record. An error in one ends the run.

    Example:
        >>> class Print(Callback):
        ...     def on_epoch_end(self, moment):
        ...         print(moment.epoch, moment.logs)

    Source: Keras' `Callback`; differs: one record, async methods, and `stop` ends through `finish`.
    """

    stopped: str | None = None
    """Why the run shall end after the present step; None while it shall go on."""

    def stop(self, reason: str) -> None:
        """Let the run end after the present step, through the optimizer's `finish`."""
        self.stopped = reason

    def on_train_begin(self, moment: Moment) -> Any:
        """The run begins."""

    def on_train_end(self, moment: Moment) -> Any:
        """The run has ended."""

    def on_epoch_begin(self, moment: Moment) -> Any:
        """An epoch begins."""

    def on_epoch_end(self, moment: Moment) -> Any:
        """An epoch has ended."""

    def on_step_end(self, moment: Moment) -> Any:
        """A step has ended."""

    def on_candidate(self, moment: Moment) -> Any:
        """The program holds another candidate."""


async def tell(callbacks: Sequence[Callback], method: str, moment: Moment) -> None:
    """Call a method of each callback, in order."""
    for callback in callbacks:
        await awaited(getattr(callback, method)(moment))


async def awaited(result: Any) -> None:
    """Wait for what a callback returned, if it is async."""
    if inspect.isawaitable(result):
        await result


class LambdaCallback(Callback):
    """A callback made of functions.

    Args:
        **functions: By the name of the method.

    Raises:
        ArgumentError: There is no such method.

    Example:
        >>> LambdaCallback(on_epoch_end=lambda moment: print(moment.logs)).stopped is None
        True

    Source: Keras' `LambdaCallback`.
    """

    def __init__(self, **functions: Callable[[Moment], Any]) -> None:
        for name, function in functions.items():
            if name not in _METHODS:
                raise ArgumentError(f"LambdaCallback: there is no {name!r}.{did_you_mean(name, _METHODS)}")
            setattr(self, name, function)


class EarlyStopping(Callback):
    """Ends a run that no longer improves.

    Args:
        monitor: The number that counts, by its name in the logs.
        mode: Whether more or less of it is better.
        patience: Epochs without an improvement.
        min_delta: What an improvement is at least.

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
        if mode not in ("max", "min"):
            raise ArgumentError(f"EarlyStopping: mode is {mode!r}; write 'max' or 'min'.")
        self.monitor, self.mode, self.patience, self.min_delta = monitor, mode, patience, min_delta
        self._best: float | None = None
        self._waited = 0

    def on_train_begin(self, moment: Moment) -> None:  # noqa: ARG002
        """Begin anew."""
        self._best, self._waited, self.stopped = None, 0, None

    def on_epoch_end(self, moment: Moment) -> None:
        """Look at the number, and count."""
        if self.monitor not in moment.logs:
            names = [name for name, value in moment.logs.items() if isinstance(value, int | float)]
            raise TrainerError(
                f"EarlyStopping: there is no number {self.monitor!r}.{did_you_mean(self.monitor, names)} "
                f"There are: {', '.join(names)}."
            )
        value = moment.logs[self.monitor]
        if value is None:
            return
        signed = value if self.mode == "max" else -value
        if self._best is None or signed > self._best + self.min_delta:
            self._best, self._waited = signed, 0
            return
        self._waited += 1
        if self._waited >= self.patience:
            self.stop(f"{self.monitor} has not improved for {self.patience} epochs")


class CSVLogger(Callback):
    """Writes one line per epoch, at once; a run that is resumed begins the file anew, since it replays.

    Args:
        path: The file.

    Example:
        >>> CSVLogger("history.csv").path.name
        'history.csv'

    Source: Keras' `CSVLogger`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._names: list[str] = []

    def on_train_begin(self, moment: Moment) -> None:  # noqa: ARG002
        """Begin the file."""
        self._names = []
        self.path.write_text("", encoding="utf-8")

    def on_epoch_end(self, moment: Moment) -> None:
        """Write a line; the first one names the columns."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if not self._names:
                self._names = list(moment.logs)
                writer.writerow(self._names)
            writer.writerow([moment.logs.get(name) for name in self._names])


class ProgressBar(Callback):
    """Shows how far a run is: the bar of `sm.evaluate`, by rollouts.

    Args:
        progress: Follows it; None for a bar on a terminal.

    Example:
        >>> ProgressBar().stopped is None
        True

    Source: Keras' progress bar.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._shown = shown(progress)
        self._seen = 0

    def on_train_begin(self, moment: Moment) -> None:
        """Begin the bar."""
        self._seen = 0
        self._shown.begin("fit", moment.budget)

    def on_step_end(self, moment: Moment) -> None:
        """Move it on."""
        rollouts = moment.spent.rollouts or 0
        best = moment.logs.get("best_val_reward")
        numbers = {} if best is None else {"score": best}
        self._shown.advance(rollouts - self._seen, **numbers, cost_usd=moment.spent.cost_usd or 0.0)
        self._seen = rollouts

    def on_train_end(self, moment: Moment) -> None:  # noqa: ARG002
        """End it."""
        self._shown.end("done")


# -- at the end of an epoch --------------------------------------------------------------------------------------------


def do_checkpoint(prefix: str | os.PathLike[str], period: int = 1) -> Callable[..., None]:
    """Return an epoch-end callback that saves program and values.

    Args:
        prefix: As in `Trainer.save_checkpoint`; epoch n is saved as number n + 1.
        period: Every which number is saved.

    Raises:
        ArgumentError: A period below 1.

    Example:
        >>> callable(do_checkpoint("run/agent", period=2))
        True

    Source: MXNet's `callback.do_checkpoint`.
    """
    return _every("do_checkpoint", period, partial(write_checkpoint, prefix))


def module_checkpoint(
    trainer: Trainer, prefix: str | os.PathLike[str], period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """Return an epoch-end callback that lets a trainer save a checkpoint.

    Args:
        trainer: What is saved.
        prefix: As in `Trainer.save_checkpoint`; epoch n is saved as number n + 1.
        period: Every which number is saved.
        save_optimizer_states: Whether the states of the optimizer are saved, too.

    Raises:
        ArgumentError: A period below 1.

    Example:
        >>> from synmod.train import Trainer
        >>> import synmod as sm
        >>> callable(module_checkpoint(Trainer(sm.Identity()), "run/agent"))
        True

    Source: MXNet's `callback.module_checkpoint`.
    """

    def save(epoch: int, *_: object) -> None:
        trainer.save_checkpoint(prefix, epoch, save_optimizer_states)

    return _every("module_checkpoint", period, save)


def _every(what: str, period: int, save: Callable[..., None]) -> Callable[..., None]:
    """Return an epoch-end callback that saves under every n-th number.

    Raises:
        ArgumentError: A period below 1.
    """
    if type(period) is not int or period < 1:
        raise ArgumentError(f"{what}: period is {period!r:.100}; give a whole number of at least 1.")

    def at_epoch_end(epoch: int, *values: Any) -> None:
        if (epoch + 1) % period == 0:
            save(epoch + 1, *values)

    return at_epoch_end


# -- the monitor -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MonitorRecord:
    """What a Monitor noted of one value.

    Attributes:
        step: Which `tic` it was, from 0.
        name: `path:input` or `path:output` of a module, or the path of a Variable.
        stat: What `stat_func` returned.
        row: Number of the row in its batch; None for Variables, and for calls outside a batch.

    Example:
        >>> MonitorRecord(0, "writer:output", {"characters": 12, "tokens": 3}, 4).row
        4

    Source: MXNet's `Monitor`; differs: a record instead of a tuple, with the row.
    """

    step: int
    name: str
    stat: Json
    row: int | None


class Monitor(Hook):
    """Notes what goes in and out of modules, and what Variables hold, at every n-th step.

    Args:
        interval: At every which `tic` it is active; the first included.
        stat_func: What is noted of a value, which it gets as plain JSON; None for its length in characters and tokens.
        pattern: A regular expression that names must begin with.
        sort: Whether records come by name instead of by row.

    Raises:
        ArgumentError: An interval below 1, or a pattern that is none.

    Example:
        >>> monitor = Monitor(10, pattern=".*:output")
        >>> monitor.toc()
        []

    Source: MXNet's `Monitor`; differs: a hook, with names by path.
    """

    def __init__(
        self, interval: int, stat_func: Callable[[Any], Json] | None = None, pattern: str = ".*", sort: bool = False
    ) -> None:
        if type(interval) is not int or interval < 1:
            raise ArgumentError(f"Monitor: interval is {interval!r:.100}; give a whole number of at least 1.")
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise ArgumentError(f"Monitor: pattern {pattern!r:.100} is not a regular expression: {error}.") from None
        self.interval, self.stat_func, self.sort = interval, stat_func or _lengths, sort
        self.activated = False
        self._tics = 0
        self._seen: list[tuple[int | None, str, Json]] = []
        self._program: Module | None = None

    def install(self, program: Module) -> None:
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
            Exception: What `stat_func` raised.
        """
        if not self.activated:
            return []
        self.activated = False
        found = sorted(self._seen, key=lambda seen: (seen[0] is None, seen[0] or 0))  # rows may run at once
        if self._program is not None:
            values = state(self._program).items()
            found += [(None, name, leaf.value) for path, leaf in values if self._pattern.match(name := path_str(path))]
        self._seen.clear()
        records = [MonitorRecord(self._tics - 1, name, self.stat_func(thaw(value)), row) for row, name, value in found]
        return sorted(records, key=lambda record: record.name) if self.sort else records

    def toc_print(self) -> None:
        """End a step, and log a line for each record."""
        for record in self.toc():
            row = "" if record.row is None else f" row {record.row}"
            _LOG.info("Batch %d%s: %s %s", record.step, row, record.name, record.stat)

    def on_call_begin(self, event: CallBegin) -> None:
        """Note the inputs of a call."""
        self._note(f"{event.path}:input", event.inputs[0] if len(event.inputs) == 1 else event.inputs)

    def on_call_end(self, event: CallEnd) -> None:
        """Note the outputs of a call that did not fail."""
        if event.exception is None:
            self._note(f"{event.path}:output", event.outputs)

    def _note(self, name: str, value: Any) -> None:
        """Note a value whose name is wanted."""
        if self.activated and self._pattern.match(name):
            self._seen.append((current_row(), name, as_json(value)))


def _lengths(json: Json) -> Json:
    """Return how long a value is: its text, or the text of its JSON."""
    characters = len(json if isinstance(json, str) else dump_json(json))
    return {"characters": characters, "tokens": estimate_text(characters)}

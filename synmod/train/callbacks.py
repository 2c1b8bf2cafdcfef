"""Callbacks: what happens beside a training run. `sm.callbacks`."""

from __future__ import annotations

import csv
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from synmod.errors import ArgumentError, TrainerError
from synmod.flow import Progress, shown
from synmod.leaves.names import did_you_mean

from .optimizer import Candidate

if TYPE_CHECKING:
    from .history import Budget
    from .trainer import Trainer

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
        result = getattr(callback, method)(moment)
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

"""Metrics of an evaluation: fed row by row in input order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from synmod.errors import ArgumentError
from synmod.leaves.frozen_types import is_object
from synmod.train.example_result import ExampleResult


class _Mean:
    """The mean of a function `(y_true, y_pred) -> number`; a run that failed counts 0."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.reset_state()

    def reset_state(self) -> None:
        """Begin anew."""
        self._sum, self._rows = 0.0, 0

    def update_state(self, y_true: Any, y_pred: Any) -> None:
        """Take in one row."""
        self._rows += 1
        self._sum += 0.0 if y_pred is None else float(self._function(y_true, y_pred))

    def result(self) -> float:
        """The mean so far."""
        return self._sum / self._rows if self._rows else 0.0


class Metrics:
    """The metrics of one evaluation, by name.

    Args:
        metrics: Functions `(y_true, y_pred) -> number`, or objects with `update_state(y_true, y_pred)`, `result()` and
            `reset_state()`.

    Raises:
        ArgumentError: One is neither, or two have one name.
    """

    def __init__(self, metrics: Iterable[Any]) -> None:
        self._metrics: dict[str, Any] = {}
        for metric in metrics:
            name = str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))
            if name in self._metrics:
                raise ArgumentError(f"two metrics are called {name!r}; give one of them another name.")
            if not callable(getattr(metric, "update_state", None)):
                if not callable(metric):
                    raise ArgumentError(f"metric {name!r} is a {type(metric).__name__}; give a function, or a metric.")
                metric = _Mean(metric)
            metric.reset_state()
            self._metrics[name] = metric

    def update(self, result: ExampleResult) -> None:
        """Take in one run."""
        for metric in self._metrics.values():
            metric.update_state(result.target, result.outputs)

    def results(self) -> list[tuple[str, float]]:
        """The value of each metric; one of several values gives each under its own name."""
        found: list[tuple[str, float]] = []
        for name, metric in self._metrics.items():
            value: Any = metric.result()
            if is_object(value):
                found.extend((f"{name}/{key}", each) for key, each in value.items())
            else:
                found.append((name, value))
        return found

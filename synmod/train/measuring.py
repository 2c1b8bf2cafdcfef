"""Metrics of an evaluation: functions are asked inside each run, objects are fed row by row in input order."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from synmod.errors import ArgumentError, CallError
from synmod.leaves.frozen import is_object
from synmod.scope import phase
from synmod.train.example_result import ExampleResult


class Metrics:
    """The metrics of one evaluation, by name.

    Args:
        metrics: Functions `(y_true, y_pred) -> number`, plain or async, or objects with `update_state(y_true, y_pred)`,
            `result()` and `reset_state()`.

    Raises:
        ArgumentError: It is no list of them, one is neither, or two have one name.
    """

    def __init__(self, metrics: Iterable[Any]) -> None:
        if isinstance(metrics, str) or not isinstance(metrics, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # people give one
            raise ArgumentError(f"metrics is a {type(metrics).__name__}; give a list of them: metrics=[...].")
        self._metrics: dict[str, Any] = {}
        self._functions: dict[str, Any] = {}
        for metric in metrics:
            name = str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))
            if name in self._metrics:
                raise ArgumentError(f"two metrics are called {name!r}; give one of them another name.")
            if callable(getattr(metric, "update_state", None)):
                metric.reset_state()
                self._metrics[name] = metric
            elif callable(metric):
                self._metrics[name] = _Mean()
                self._functions[name] = metric
            else:
                raise ArgumentError(f"metric {name!r} is a {type(metric).__name__}; give a function, or a metric.")

    async def measure(self, y_true: Any, y_pred: Any) -> dict[str, float]:
        """Ask the functions for one output.

        Raises:
            CallError: One said what is no finite number.
            Exception: What it raised.
        """
        values: dict[str, float] = {}
        for name, function in self._functions.items():
            with phase("reward"):
                said = function(y_true, y_pred)
                if inspect.isawaitable(said):
                    said = await said
            if not isinstance(said, Real) or not math.isfinite(said):
                raise CallError(f"metric {name!r} is {said!r:.100}; a metric is a finite number, or a bool.")
            values[name] = float(said)
        return values

    def update(self, result: ExampleResult, values: Mapping[str, float]) -> None:
        """Take in one run; a function counts 0 where the program failed.

        Raises:
            Exception: What an object raised; the others have taken the run in.
        """
        failures: list[Exception] = []
        for name, metric in self._metrics.items():
            if isinstance(metric, _Mean):
                metric.add(values.get(name, 0.0))
                continue
            try:
                metric.update_state(result.target, result.outputs)
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                failures.append(error)
        if failures:
            raise failures[0]

    def check(self) -> None:
        """Ask each metric for its result once.

        Raises:
            Exception: What one raised.
        """
        for metric in self._metrics.values():
            metric.result()

    def results(self) -> list[tuple[str, float]]:
        """The value of each metric that has one; one of several values gives each under its own name."""
        found: list[tuple[str, float]] = []
        for name, metric in self._metrics.items():
            try:
                value: Any = metric.result()
            except Exception:  # noqa: BLE001, S112  # of a part of the data it may have none; `check` tells of the whole
                continue
            if is_object(value):
                found.extend((f"{name}/{key}", each) for key, each in value.items())
            else:
                found.append((name, value))
        return found


class _Mean:
    """The mean of what a function said."""

    def __init__(self) -> None:
        self._sum, self._rows = 0.0, 0

    def add(self, value: float) -> None:
        """Count one row."""
        self._rows += 1
        self._sum += value

    def result(self) -> float:
        """The mean so far."""
        return self._sum / self._rows if self._rows else 0.0

"""Metrics of an evaluation: functions are called inside each run, objects are fed row by row in input order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from synmod.errors import ArgumentError, CallError
from synmod.leaves.frozen import is_object
from synmod.scope import BoundReward

from .evaluation import ExampleResult

OFFERED: Final = ("inputs", "outputs", "target", "example_id", "extra")
"""What rewards and metrics may ask for by name."""


class Metrics:
    """The metrics of one evaluation, by name.

    Args:
        metrics: Functions that return a number, plain or async, or objects with `update_state`, `result()` and
            `reset_state()`. Functions and `update_state` ask by parameter name for what they judge.

    Raises:
        ArgumentError: It is not a list of them, one is neither or asks for something else, or two have one name.
    """

    def __init__(self, metrics: Iterable[Any]) -> None:
        if isinstance(metrics, str) or not isinstance(metrics, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # people give one
            raise ArgumentError(f"metrics is a {type(metrics).__name__}; give a list of them: metrics=[...].")
        self._metrics: dict[str, _Mean | _Stateful] = {}
        for metric in metrics:
            name = str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))
            if name in self._metrics:
                raise ArgumentError(f"two metrics are called {name!r}; give one of them another name.")
            is_stateful = callable(getattr(metric, "update_state", None))
            self._metrics[name] = _Stateful(name, metric) if is_stateful else _Mean(name, metric)

    async def measure(self, offered: Mapping[str, Any]) -> dict[str, float]:
        """Return the value of each function for one output.

        Args:
            offered: A value for each name of `OFFERED`.

        Raises:
            CallError: One returned something other than a finite number.
            Exception: What it raised.
        """
        return {
            name: await metric.value(offered) for name, metric in self._metrics.items() if isinstance(metric, _Mean)
        }

    def update(self, result: ExampleResult, values: Mapping[str, float]) -> None:
        """Take in one run; a function counts 0 where the program failed.

        Raises:
            Exception: What an object raised; the others have taken the run in.
        """
        failures: list[Exception] = []
        for name, metric in self._metrics.items():
            try:
                metric.add(values.get(name, 0.0), result)
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                failures.append(error)
        if failures:
            raise failures[0]

    def results(self) -> tuple[dict[str, float], Exception | None]:
        """Return the value of each metric that has one, and what the first of the others raised."""
        found: dict[str, float] = {}
        failure: Exception | None = None
        for name, metric in self._metrics.items():
            try:
                value = metric.result()
            except Exception as error:  # noqa: BLE001  # of a part of the data it may have none
                failure = failure or error
                continue
            found |= {f"{name}/{key}": each for key, each in value.items()} if is_object(value) else {name: value}
        return found, failure


class _Mean:
    """The mean of what a function returns."""

    def __init__(self, name: str, function: Any) -> None:
        self._name = name
        self._function = BoundReward(function, OFFERED, what=f"metric {name!r}")
        self._sum, self._rows = 0.0, 0

    async def value(self, offered: Mapping[str, Any]) -> float:
        """Return the value for one output."""
        value = (await self._function(**offered)).score
        if value is None:
            raise CallError(f"metric {self._name!r} has no score; a metric is a finite number, or a bool.")
        return value

    def add(self, value: float, _: ExampleResult) -> None:
        """Count one row."""
        self._rows += 1
        self._sum += value

    def result(self) -> float:
        """Return the mean so far."""
        return self._sum / self._rows if self._rows else 0.0


class _Stateful:
    """An object that is fed row by row."""

    def __init__(self, name: str, metric: Any) -> None:
        self._metric = metric
        self._update = BoundReward(metric.update_state, OFFERED[:-1], what=f"metric {name!r}")
        metric.reset_state()

    def add(self, _: float, result: ExampleResult) -> None:
        """Feed one row."""
        self._update.call(inputs=result.inputs, outputs=result.outputs, target=result.target, example_id=result.id)

    def result(self) -> Any:
        """Return its result so far."""
        return self._metric.result()

"""Evaluation: what a program is worth on a data set, as far as it was run."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from synmod.data import dump_json
from synmod.errors import DataError
from synmod.leaves.files import write_atomic
from synmod.leaves.frozen import thaw
from synmod.scope import Usage
from synmod.train.example_result import ExampleResult

_COLUMNS = ("id", "sample", "score", "error", "elapsed_s", "call_id", "inputs", "target", "outputs")


class Evaluation(list[tuple[str, float]]):
    """A list of `(metric name, value)`, with the scores and what became of each example.

    Args:
        metrics: The pairs of the list; the keywords are the attributes below.

    Attributes:
        score: Mean of the rewards, examples counting equally; None without a reward, or where nothing was scored.
        results: What became of each example, in input order; empty where results are not kept.
        errors: The results of those that failed, in input order.
        usage: What all model calls used.
        elapsed_s: Seconds from beginning to end.
        total: How many runs were made: examples times samples.
        scored: How many of them gave what was scored; one that failed stands in the score by `failure_score` alone.

    Example:
        >>> Evaluation([("accuracy", 0.9)], score=0.9, total=10, scored=10)
        Evaluation(score 0.9 over 10 of 10 (0 failed), accuracy 0.9)

    Source: MXNet's `Module.score`, DSPy's `Evaluate`; differs: failures are kept apart from scores.
    """

    def __init__(
        self,
        metrics: list[tuple[str, float]],
        *,
        score: float | None = None,
        results: tuple[ExampleResult, ...] = (),
        errors: tuple[ExampleResult, ...] = (),
        usage: Usage | None = None,
        elapsed_s: float = 0.0,
        total: int = 0,
        scored: int = 0,
    ) -> None:
        super().__init__(metrics)
        self.score = score
        self.results = results
        self.errors = errors
        self.usage = usage or Usage()
        self.elapsed_s = elapsed_s
        self.total = total
        self.scored = scored

    def __repr__(self) -> str:
        worth = "no score" if self.score is None else f"score {self.score:.4g}"
        metrics = "".join(f", {name} {value:.4g}" for name, value in self)
        failed = len(self.errors)
        well = self.total - failed if self.score is None else self.scored
        return f"Evaluation({worth} over {well} of {self.total} ({failed} failed){metrics})"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON.

        Raises:
            DataError: A target, an output or the result of a metric is no JSON; names its place.
        """
        return thaw(
            {
                "score": self.score,
                "metrics": dict(self),
                "total": self.total,
                "scored": self.scored,
                "usage": asdict(self.usage),
                "elapsed_s": self.elapsed_s,
                "results": [result.record() for result in self.results],
                "errors": [result.record() for result in self.errors],
            }
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one line a run; cells with data hold JSON, or the repr of what is none.

        Without results, the lines are those of the runs that failed.

        Args:
            path: Where to; replaced atomically.

        Returns:
            The path.

        Raises:
            OSError: The file cannot be written.
        """
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(_COLUMNS)
        for result in self.results or self.errors:
            record = result.record()
            error = "" if result.error is None else f"{result.error.type}: {result.error.message}"
            cells = ["" if record[name] is None else _cell(record[name]) for name in _COLUMNS[6:]]
            plain = (result.id, result.sample, "" if result.score is None else result.score, error)
            writer.writerow([*plain, f"{result.elapsed_s:.6f}", result.call_id or "", *cells])
        return write_atomic(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _cell(value: Any) -> str:
    """A value as JSON; a row whose target is a set or a function is a row as well."""
    try:
        return dump_json(thaw(value))
    except DataError:
        return repr(value)

"""The History that a fit returns, epoch by epoch."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self

from synmod import errors, leaves, tree, view

from . import runs
from .candidates import LEFT_OUT, Candidate, mean_bounds, row_losses

_OF_THIS_PROCESS: Final = ("seconds", "replayed")
"""Numbers that depend on more than data, seed and models: in rows and CSV, not in JSON."""
ESTIMATE: Final = "_estimate"
"""Ends the names of what was measured on a part of the validation rows only."""


OBJECTIVES: Final = ("score", "cost_usd", "elapsed_s")
"""What a frontier is made of; the first is the better the higher, the others the lower."""
_Z: Final = 1.96  # 95 % of a normal distribution


class Tradeoff(NamedTuple):
    """What a candidate is worth and costs.

    Attributes:
        candidate: The candidate.
        means: Means per validation row, by name.
        intervals: Their 95 % intervals.
    """

    candidate: Candidate
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, candidate: Candidate, names: Sequence[str]) -> Self:
        """Return the record of a candidate (LookupError: a cost of a row is not known)."""
        scores = candidate.scores["validation"]
        means: dict[str, float] = {}
        intervals: dict[str, tuple[float, float]] = {}
        for name in names:
            values = [*(scores if name == "score" else candidate.costs.get(name, {})).values()]
            if len(values) < len(scores):
                raise LookupError(f"{name} of {candidate.id} is not known: give its models a price=.")
            means[name] = math.fsum(values) / len(values)
            intervals[name] = mean_bounds(values, 0.0, _Z)
        return cls(candidate, means, intervals)

    def dominates(self, other: Tradeoff) -> bool:
        """Whether this one is as good in everything, and better in something."""
        gains = [(mean - other.means[name]) * (1 if name == "score" else -1) for name, mean in self.means.items()]
        return min(gains) >= 0 < max(gains)


class Worth(NamedTuple):
    """What a line or an example is worth: how much lower the mean score is without it, on the same rows.

    Attributes:
        path: The Variable.
        text: The line, or the example as JSON.
        worth: The mean loss without it; below 0 it does harm.
        low: The lower bound of that.
        high: The upper bound; either holds with a probability of 95 %.
    """

    path: str
    text: str
    worth: float
    low: float
    high: float


class History(list[dict[str, Any]]):
    """One dict per epoch: `epoch, step, reward, val_reward, best_val_reward, candidates, accepted, rollouts, ...`.

    `val_reward`, and a metric with `val_` before its name, is the mean over all validation rows, `best_val_reward` the
    highest such mean so far. Where the present State was run on a part of these rows, they are None, and
    `val_reward_estimate` and the like hold the mean over that part.

    Args:
        rows: The dicts; the other arguments are the attributes of the same names.

    Attributes:
        candidates: Those that were run, in the order in which they were made; the first one is the seed.
        best: The candidate that the program was left with; by default the seed.
        lines: The lines of the log, one dict per attempt.
        spent: The total price of the run, restarts included.
        stopped: `done`, `epochs`, `budget` or `callback`.

    Example:
        >>> import synmod as sm
        >>> rows = [{"epoch": 0, "val_reward": 0.5}, {"epoch": 1, "val_reward": 0.75}]
        >>> history = History(rows, candidates=[sm.Candidate("c0", sm.State())])
        >>> history.history["val_reward"]
        [0.5, 0.75]

    Source: Keras' `History`.
    """

    def __init__(
        self,
        rows: Iterable[dict[str, Any]] = (),
        *,
        candidates: Sequence[Candidate],
        best: Candidate | None = None,
        lines: Sequence[Mapping[str, leaves.Json]] = (),
        spent: runs.Budget | None = None,
        stopped: Literal["done", "epochs", "budget", "callback"] = "done",
    ) -> None:
        super().__init__(rows)
        self.candidates = tuple(candidates)
        self.best = best or self.candidates[0]
        self.lines = tuple(lines)
        self.spent = spent or runs.Budget()
        self.stopped = stopped

    @property
    def history(self) -> dict[str, list[Any]]:
        """The rows by name: a list of values each, None where an epoch has none."""
        names = dict.fromkeys(name for row in self for name in row)
        return {name: [row.get(name) for row in self] for name in names}

    @property
    def seed(self) -> Candidate:
        """The candidate that the program began with."""
        return self.candidates[0]

    def frontier(self, *names: str) -> list[Tradeoff]:
        """Return the candidates that no other one dominates: none is as good in everything and better in something.

        Only candidates that ran on all validation rows count. `score` is the better the higher, `cost_usd` and
        `elapsed_s` the lower, per row and with what the reward used.

        Args:
            *names: What counts, of these three; all of them by default.

        Returns:
            Records, the highest score first, with means per row and 95 % intervals by name.

        Raises:
            ArgumentError: A name is none of these ('Did you mean').
            LookupError: A cost is not known, since a model has no price.

        Example:
            >>> import synmod as sm
            >>> scores = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.0}]
            >>> costs = [{"cost_usd": {"a": 0.2, "b": 0.4}}, {"cost_usd": {"a": 0.1, "b": 0.1}}]
            >>> both = [
            ...     sm.Candidate(f"c{at}", sm.State(), scores={"validation": scores[at]}, costs=costs[at])
            ...     for at in (0, 1)
            ... ]
            >>> points = History(candidates=both).frontier("score", "cost_usd")
            >>> [(point.candidate.id, point.means["score"]) for point in points]
            [('c0', 1.0), ('c1', 0.5)]

        Source: Pareto's order; GEPA's frontier; differs: of dollars and seconds, too.
        """
        for name in names:
            leaves.check_choice("frontier: a name", name, OBJECTIVES, error=errors.ArgumentError)
        rows = max(len(each.scores.get("validation", ())) for each in self.candidates)
        whole = [each for each in self.candidates if len(each.scores.get("validation", ())) == rows > 0]
        points = [Tradeoff.of(candidate, names or OBJECTIVES) for candidate in whole]
        best = [point for point in points if not any(other.dominates(point) for other in points)]
        return sorted(best, key=lambda point: (-point.means.get("score", 0.0), *point.means.values()))

    def pick(self, **most: float) -> Candidate:
        """Return the candidate of the highest score within bounds per row.

        Args:
            **most: The most that it may cost: `cost_usd`, `elapsed_s`.

        Raises:
            ArgumentError: A name is none of these ('Did you mean'), or a bound is not a number.
            LookupError: No candidate that ran on all validation rows is within them, or a cost is not known.
        """
        for name, bound in most.items():
            leaves.check_choice("pick: a bound", name, OBJECTIVES[1:], error=errors.ArgumentError)
            leaves.check_number(f"pick: {name}", bound)
        for point in self.frontier("score", *most):
            if all(point.means[name] <= bound for name, bound in most.items()):
                return point.candidate
        bounds = ", ".join(f"{name} <= {bound:g}" for name, bound in most.items())
        raise LookupError(f"no candidate that ran on all validation rows has {bounds} per row.")

    def worth(self) -> list[Worth]:
        """Return what each line and example that `sm.optimizers.Prune` tried to leave out is worth, the most first.

        Raises:
            LookupError: Nothing was left out: it was another optimizer, or the budget was over before.

        Source: leave-one-out ablation.
        """
        by_id = {candidate.id: candidate for candidate in self.candidates}
        scores = [score for each in self.candidates for of_split in each.scores.values() for score in of_split.values()]
        width = max(scores, default=0.0) - min(scores, default=0.0) or 1.0
        parts: list[Worth] = []
        for shorter in self.candidates:
            if shorter.operator == LEFT_OUT and shorter.parents:
                whole = by_id[shorter.parents[0]]
                losses = row_losses(whole.scores, shorter.scores)
                worth = math.fsum(losses) / len(losses) if losses else 0.0
                for path, (old, new) in whole.state.diff(shorter.state).items():
                    text = _missing_line(*([] if leaf is None else _text(leaf.value) for leaf in (old, new)))
                    parts.append(Worth(path, text, worth, *mean_bounds(losses, width)))
        if not parts:
            raise LookupError("no part was left out in this run: fit with optimizer=sm.optimizers.Prune().")
        return sorted(parts, key=lambda part: -part.worth)

    def __repr__(self) -> str:
        score = "no score" if self.best.score is None else f"best {self.best.score:.4g}"
        return f"History({len(self)} epochs, {score}, {self.spent.rollouts} rollouts, stopped: {self.stopped})"

    def to_json(self) -> dict[str, Any]:
        """Return everything that is a function of data, seed and models, as plain JSON."""
        record = self.record()
        for part in (*record["epochs"], record["spent"]):
            for name in _OF_THIS_PROCESS:
                part.pop(name, None)
        return leaves.scrub_json(record)

    def record(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return leaves.thaw(
            {
                "epochs": [dict(row) for row in self],
                "candidates": [candidate.to_json() for candidate in self.candidates],
                "best": self.best.id,
                "lines": [dict(line) for line in self.lines],
                "spent": asdict(self.spent),
                "stopped": self.stopped,
            }
        )

    @classmethod
    def of_record(cls, record: Mapping[str, Any], like: tree.State) -> Self:
        """Return the History of a record.

        Args:
            record: As `record` returned it.
            like: A State of the same program.
        """
        plain: Any = leaves.thaw(record)
        for candidate in plain["candidates"]:
            candidate |= {"state": like.replace(candidate["state"]), "parents": tuple(candidate["parents"])}
        candidates = [Candidate(**candidate) for candidate in plain["candidates"]]
        best = next(candidate for candidate in candidates if candidate.id == plain["best"])
        return cls(
            plain["epochs"],
            candidates=candidates,
            best=best,
            lines=plain["lines"],
            stopped=plain["stopped"],
            spent=runs.Budget(**plain["spent"]),
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one line per epoch.

        Raises:
            OSError: The file cannot be written.
        """
        return write_csv(path, self)

    def to_html(self, path: str | os.PathLike[str], others: Sequence[History] = ()) -> Path:
        """Write a page without a script: numbers, picture, and each candidate with what it changed of the seed.

        Args:
            path: Where to; replaced atomically.
            others: Histories to show beside this one.

        Returns:
            The path.

        Raises:
            ArgumentError: `path` is not a path, or one of the others not a History.
            SaveError: The file cannot be written.
        """
        for other in others:
            leaves.check_type("to_html: others", other, History, "Histories")
        histories = {"this run": self, **{f"other {number}": other for number, other in enumerate(others, 1)}}
        records = {name: run.to_json() for name, run in histories.items()}
        pictures = [run.plot() for run in histories.values()]
        changes = {candidate.id: self.diff(candidate) for candidate in self.candidates}
        page = view.history_page(repr(self), records, pictures, changes)
        return leaves.write_atomic(leaves.path_text(path), page)

    def diff(self, candidate: Candidate | None = None) -> str:
        """Return what a candidate, by default the best one, changed of the seed, per path, as text."""
        changed = candidate or self.best
        return diff_text(self.seed.state.diff(changed.state), changed.id)

    def lineage(self) -> str:
        """Return who came from whom, as Mermaid text."""
        lines = ["graph TD"]
        for candidate in self.candidates:
            score = "" if candidate.score is None else f" {candidate.score:.3g}"
            lines.append(f'  {candidate.id}["{candidate.id} {candidate.operator}{score}"]')
            lines += [f"  {parent} --> {candidate.id}" for parent in candidate.parents]
        return "\n".join(lines)

    def plot(self, path: str | os.PathLike[str] | None = None) -> str:
        """Draw the reward over rollouts: the best so far as steps, and that of each epoch's State.

        Both are means over all validation rows; means over a part of them are circles. A notebook shows a History by
        its picture.

        Args:
            path: A file to write the picture to as well, `.svg` or `.html`.

        Returns:
            The picture as text: a page for `.html`, else SVG.

        Raises:
            ArgumentError: `path` is not a path, or has another extension.
            SaveError: The file cannot be written.
        """
        suffix = ".svg" if path is None else Path(leaves.path_text(path)).suffix
        if suffix not in (".svg", ".html"):
            raise errors.ArgumentError(f"History.plot writes .svg or .html, not {suffix or path!r}.")
        rows = max(len(candidate.scores.get("validation", ())) for candidate in self.candidates)
        ends = (0, self.seed), (self.spent.rollouts or 0, self.best)
        first, last = (
            [(at, mean)] if (mean := end.score) is not None and len(end.scores["validation"]) == rows else []
            for at, end in ends
        )
        best, present, estimates = (
            [(row["rollouts"], row[name]) for row in self if row.get(name) is not None]
            for name in ("best_val_reward", "val_reward", f"val_reward{ESTIMATE}")
        )
        series = {"best so far": _steps([*first, *best, *last]), "this State": [*first, *present, *last]}
        svg = _chart(series, estimates)
        text = f"<!doctype html><meta charset=utf-8><title>Validation reward</title>{svg}" if suffix == ".html" else svg
        if path is not None:
            leaves.write_atomic(path, text)
        return text

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows."""
        return self.plot()


def write_csv(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]], columns: Iterable[str] = ()) -> Path:
    """Write a line per row in a new file, or over an old one; the first line names the columns.

    Args:
        path: Where to.
        rows: Cells by column.
        columns: Those that come first, with or without rows.

    Raises:
        OSError: The file cannot be written.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(chain(columns, *rows))))
    writer.writeheader()
    writer.writerows(
        {name: leaves.scrub(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows
    )
    return leaves.write_atomic(path, text.getvalue().encode("utf-8", "backslashreplace"))


def diff_text(changes: Mapping[str, tuple[tree.VariableState | None, tree.VariableState | None]], name: str) -> str:
    """Return the changes of values of the seed as text, per path; `name` is that of the candidate."""
    from difflib import unified_diff

    parts: list[str] = []
    for path, (old, new) in changes.items():
        before, after = (_text(None if leaf is None else leaf.value) for leaf in (old, new))
        lines = list(unified_diff(before, after, "seed", name, lineterm="", n=1))[2:]
        parts.append("\n".join([path, *(f"  {line}" for line in lines)]))
    return "\n".join(parts)


def _text(value: leaves.Json) -> list[str]:
    """Return a value as lines; a list has one per item."""
    if leaves.is_array(value):
        return [leaves.dump_json(item) for item in value]
    return value.splitlines() if isinstance(value, str) else leaves.dump_json(value, indent=2).splitlines()


def _missing_line(before: Iterable[str], after: Iterable[str]) -> str:
    """Return the first line that only the first of two texts has."""
    remaining = filter(str.strip, after)
    return next((line for line in before if line.strip() and line != next(remaining, None)), "")


_LINES: Final = (("#1f6feb", 4), ("#6e7781", 1.5))  # colour and width, the wide one below
_FRAME: Final = """<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"
viewBox="0 0 640 320" font-size="12">
<rect width="100%" height="100%" fill="#ffffff"/><path d="M48,48 V272 H592" fill="none" stroke="#24292f"/>
<text x="48" y="36">validation reward</text><text x="592" y="292" text-anchor="end">{right:g} rollouts</text>
<text x="42" y="52" text-anchor="end">{high:.3g}</text><text x="42" y="276" text-anchor="end">{low:.3g}</text>
{lines}</svg>
"""


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the highest value up to each point as steps: each holds until the next one."""
    corners: list[tuple[float, float]] = []
    best = -math.inf
    for at, value in points:
        corners += [(at, best)] if corners else []
        best = max(best, value)
        corners.append((at, best))
    return corners


def _chart(series: Mapping[str, Sequence[tuple[float, float]]], estimates: Sequence[tuple[float, float]]) -> str:
    """Return rewards over rollouts as SVG: a line each of two series of points, by their labels, and circles."""
    points = [point for points_of_line in (*series.values(), estimates) for point in points_of_line] or [(0.0, 0.0)]
    right = max(at for at, _ in points) or 1.0
    low, high = min(value for _, value in points), max(value for _, value in points)
    low, high = (low, high) if high > low else (min(low, 0.0), max(high, 1.0))

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return 48 + 544 * point[0] / right, 272 - 224 * (point[1] - low) / (high - low)

    lines: list[str] = []
    for number, ((label, line), (colour, width)) in enumerate(zip(series.items(), _LINES, strict=True)):
        coordinates = " ".join(f"{across:.1f},{down:.1f}" for across, down in map(place, line))
        lines.append(f'<polyline points="{coordinates}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        lines.append(f'<text x="{48 + 100 * number}" y="306" fill="{colour}">{label}</text>')
    circle = f'<circle cx="{{:.1f}}" cy="{{:.1f}}" r="2.5" fill="none" stroke="{_LINES[1][0]}"/>'
    lines += [circle.format(*place(point)) for point in estimates]
    if estimates:
        lines.append(f'<text x="248" y="306" fill="{_LINES[1][0]}">\u25cb estimate from a part of the rows</text>')
    return _FRAME.format(right=right, high=high, low=low, lines="\n".join(lines))

"""History: what a run did, epoch by epoch, and what it found."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, Self

from synmod import errors, leaves, tree

from . import optimizer, runs

_OF_THIS_PROCESS: Final = ("seconds", "replayed")
"""What is not a function of data, seed and models: on the rows and in CSV, not in JSON."""
ESTIMATE: Final = "_estimate"
"""Ends the names of what was measured on a part of the validation rows only."""


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
        lines: What was tried, one dict each.
        spent: What the run took, what was paid for before a restart included.
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
        candidates: Sequence[optimizer.Candidate],
        best: optimizer.Candidate | None = None,
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
    def seed(self) -> optimizer.Candidate:
        """The candidate that the program began with."""
        return self.candidates[0]

    def __repr__(self) -> str:
        shown = "no score" if self.best.score is None else f"best {self.best.score:.4g}"
        return f"History({len(self)} epochs, {shown}, {self.spent.rollouts} rollouts, stopped: {self.stopped})"

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
        for each in plain["candidates"]:
            each |= {"state": like.replace(each["state"]), "parents": tuple(each["parents"])}
        candidates = [optimizer.Candidate(**each) for each in plain["candidates"]]
        best = next(each for each in candidates if each.id == plain["best"])
        return cls(
            plain["epochs"], candidates=candidates, best=best, lines=plain["lines"], stopped=plain["stopped"],
            spent=runs.Budget(**plain["spent"]),
        )  # fmt: skip

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one line per epoch.

        Raises:
            OSError: The file cannot be written.
        """
        return write_csv(path, self)

    def diff(self) -> str:
        """Return what the best candidate changed of the seed, per path, as text."""
        from difflib import unified_diff

        parts: list[str] = []
        for path, (old, new) in self.seed.state.diff(self.best.state).items():
            before, after = (_text(None if leaf is None else leaf.value) for leaf in (old, new))
            lines = list(unified_diff(before, after, "seed", self.best.id, lineterm="", n=1))[2:]
            parts.append("\n".join([path, *(f"  {line}" for line in lines)]))
        return "\n".join(parts)

    def lineage(self) -> str:
        """Return who came from whom, as Mermaid text."""
        lines = ["graph TD"]
        for each in self.candidates:
            score = "" if each.score is None else f" {each.score:.3g}"
            lines.append(f'  {each.id}["{each.id} {each.operator}{score}"]')
            lines += [f"  {parent} --> {each.id}" for parent in each.parents]
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
        rows = max(len(each.scores.get("validation", ())) for each in self.candidates)
        first, last = (
            [(at, each.score)] if each.score is not None and len(each.scores["validation"]) == rows else []
            for at, each in ((0, self.seed), (self.spent.rollouts or 0, self.best))
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


def _text(value: leaves.Json) -> list[str]:
    """Return a value as lines; a list has one per item."""
    if leaves.is_array(value):
        return [leaves.dump_json(item) for item in value]
    return value.splitlines() if isinstance(value, str) else leaves.dump_json(value, indent=2).splitlines()


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
    drawn: list[tuple[float, float]] = []
    best = -inf
    for at, value in points:
        drawn += [(at, best)] if drawn else []
        best = max(best, value)
        drawn.append((at, best))
    return drawn


def _chart(series: Mapping[str, Sequence[tuple[float, float]]], estimates: Sequence[tuple[float, float]]) -> str:
    """Return rewards over rollouts as SVG: a line each of two series of points, by their labels, and circles."""
    points = [point for each in (*series.values(), estimates) for point in each] or [(0.0, 0.0)]
    right = max(at for at, _ in points) or 1.0
    low, high = min(value for _, value in points), max(value for _, value in points)
    high = high if high > low else low + 1.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return 48 + 544 * point[0] / right, 272 - 224 * (point[1] - low) / (high - low)

    lines: list[str] = []
    for number, ((label, line), (colour, width)) in enumerate(zip(series.items(), _LINES, strict=True)):
        drawn = " ".join(f"{across:.1f},{down:.1f}" for across, down in map(place, line))
        lines.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        lines.append(f'<text x="{48 + 100 * number}" y="306" fill="{colour}">{label}</text>')
    circle = f'<circle cx="{{:.1f}}" cy="{{:.1f}}" r="2.5" fill="none" stroke="{_LINES[1][0]}"/>'
    lines += [circle.format(*place(point)) for point in estimates]
    if estimates:
        lines.append(f'<text x="248" y="306" fill="{_LINES[1][0]}">\u25cb estimate from a part of the rows</text>')
    return _FRAME.format(right=right, high=high, low=low, lines="\n".join(lines))

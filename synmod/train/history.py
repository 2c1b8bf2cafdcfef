"""History: what a run did, epoch by epoch, and what it found."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Literal

from synmod.data import dump_json, thaw
from synmod.errors import ArgumentError
from synmod.leaves import Json, is_array, write_atomic
from synmod.tree import State

from .optimizer import Candidate
from .runs import Budget

_OF_THIS_PROCESS: Final = ("seconds", "replayed")
"""What is not a function of data, seed and models: on the rows and in CSV, not in JSON."""


class History(list[dict[str, Any]]):
    """One dict per epoch: `epoch, step, reward, val_reward, best_val_reward, candidates, accepted, rollouts, ...`.

    Args:
        rows: The dicts; the other arguments are the attributes of the same names.

    Attributes:
        best: The candidate that the program was left with.
        seed: The candidate that it began with.
        candidates: Those that were run, in the order in which they were made.
        lines: What was tried, one dict each.
        spent: What the run took, what was paid for before a restart included.
        stopped: `done`, `epochs`, `budget` or `callback`.

    Example:
        >>> history = History([{"epoch": 0, "val_reward": 0.5}, {"epoch": 1, "val_reward": 0.75}])
        >>> history.history["val_reward"]
        [0.5, 0.75]

    Source: Keras' `History`.
    """

    def __init__(
        self,
        rows: Iterable[dict[str, Any]] = (),
        *,
        candidates: Sequence[Candidate] = (),
        best: Candidate | None = None,
        lines: Sequence[Mapping[str, Json]] = (),
        spent: Budget | None = None,
        stopped: Literal["done", "epochs", "budget", "callback"] = "done",
    ) -> None:
        super().__init__(rows)
        self.candidates = tuple(candidates)
        self.best = best
        self.lines = tuple(lines)
        self.spent = spent or Budget()
        self.stopped = stopped

    @property
    def history(self) -> dict[str, list[Any]]:
        """The rows by name: a list of values each, None where an epoch has none."""
        names = dict.fromkeys(name for row in self for name in row)
        return {name: [row.get(name) for row in self] for name in names}

    @property
    def seed(self) -> Candidate | None:
        """The candidate that the program began with."""
        return self.candidates[0] if self.candidates else None

    def __repr__(self) -> str:
        score = None if self.best is None else self.best.score
        shown = "no score" if score is None else f"best {score:.4g}"
        return f"History({len(self)} epochs, {shown}, {self.spent.rollouts} rollouts, stopped: {self.stopped})"

    def to_json(self) -> dict[str, Any]:
        """Return everything that is a function of data, seed and models, as plain JSON."""
        record = self.record()
        for part in (*record["epochs"], record["spent"]):
            for name in _OF_THIS_PROCESS:
                part.pop(name, None)
        return record

    def record(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return thaw(
            {
                "epochs": [dict(row) for row in self],
                "candidates": [candidate.to_json() for candidate in self.candidates],
                "best": None if self.best is None else self.best.id,
                "lines": [dict(line) for line in self.lines],
                "spent": asdict(self.spent),
                "stopped": self.stopped,
            }
        )

    @classmethod
    def of_record(cls, record: Mapping[str, Any], like: State) -> History:
        """Return the History of a record.

        Args:
            record: As `record` returned it.
            like: A State of the same program.
        """
        plain: Any = thaw(record)
        candidates: list[Candidate] = []
        for each in plain["candidates"]:
            each |= {"state": like.replace(each["state"]), "parents": tuple(each["parents"])}
            candidates.append(Candidate(**each))
        best = next((each for each in candidates if each.id == plain["best"]), None)
        spent = Budget(**plain["spent"])
        return cls(plain["epochs"], candidates=candidates, best=best, lines=plain["lines"], spent=spent,
                   stopped=plain["stopped"])  # fmt: skip

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one line per epoch.

        Raises:
            OSError: The file cannot be written.
        """
        columns = self.history
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return write_atomic(path, text.getvalue())

    def diff(self) -> str:
        """Return what the best candidate changed of the seed, per path, as text."""
        from difflib import unified_diff

        if self.best is None or self.seed is None:
            return ""
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

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the reward over rollouts, from the seed to the end: the best so far, and that of each epoch's State.

        Args:
            path: Where to; `.svg` or `.html`.

        Raises:
            ArgumentError: Another extension.
            OSError: The file cannot be written.
        """
        suffix = Path(path).suffix
        if suffix not in (".svg", ".html"):
            raise ArgumentError(f"History.plot writes .svg or .html, not {suffix or os.fspath(path)!r}.")
        first, last = (
            [(at, each.score)] if each is not None and each.score is not None else []
            for at, each in ((0, self.seed), (self.spent.rollouts or 0, self.best))
        )
        names = {"best_val_reward": "best so far", "val_reward": "this State"}
        series = {
            label: [*first, *((row["rollouts"], row[name]) for row in self if row.get(name) is not None), *last]
            for name, label in names.items()
        }
        return write_atomic(path, chart(series, "rollouts", "validation reward", as_page=suffix == ".html"))


def _text(value: Json) -> list[str]:
    """Return a value as lines; a list has one per item."""
    if is_array(value):
        return [dump_json(item) for item in value]
    return value.splitlines() if isinstance(value, str) else dump_json(value, indent=2).splitlines()


_WIDTH, _HEIGHT, _MARGIN = 640, 320, 48
_LINES: Final = (("#1f6feb", 4), ("#6e7781", 1.5))  # colour and width, the wide one below


def chart(series: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, *, as_page: bool) -> str:
    """Return lines over two axes as SVG, or as a page that holds it.

    Args:
        series: Points by the label of their line.
        x: What the horizontal axis shows.
        y: What the vertical one shows.
        as_page: Whether to return HTML.
    """
    points = [point for each in series.values() for point in each] or [(0.0, 0.0)]
    right = max(at for at, _ in points) or 1.0
    low, high = min(value for _, value in points), max(value for _, value in points)
    high = high if high > low else low + 1.0

    def place(at: float, value: float) -> str:
        across = _MARGIN + (_WIDTH - 2 * _MARGIN) * at / right
        down = _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * (value - low) / (high - low)
        return f"{across:.1f},{down:.1f}"

    frame = f"M{_MARGIN},{_MARGIN} V{_HEIGHT - _MARGIN} H{_WIDTH - _MARGIN}"
    parts = [f'<rect width="100%" height="100%" fill="#ffffff"/><path d="{frame}" fill="none" stroke="#24292f"/>']
    ticks = ((_MARGIN, f"{high:.3g}"), (_HEIGHT - _MARGIN, f"{low:.3g}"))
    parts += [f'<text x="{_MARGIN - 6}" y="{down + 4}" text-anchor="end">{text}</text>' for down, text in ticks]
    parts.append(f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 28}" text-anchor="end">{right:g} {x}</text>')
    parts.append(f'<text x="{_MARGIN}" y="{_MARGIN - 12}">{y}</text>')
    for number, (label, line) in enumerate(series.items()):
        colour, width = _LINES[number % len(_LINES)]
        drawn = " ".join(place(at, value) for at, value in line)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [
            f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="2.5" fill="{colour}"/>' for p in drawn.split()
        ]
        parts.append(f'<text x="{_MARGIN + 100 * number}" y="{_HEIGHT - 14}" fill="{colour}">{label}</text>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12">{"".join(parts)}</svg>\n'
    )
    return f"<!doctype html><meta charset=utf-8><title>{y}</title>{svg}" if as_page else svg

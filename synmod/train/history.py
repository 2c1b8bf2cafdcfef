"""The Ledger of a running fit, and the History that it returns, epoch by epoch."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from synmod import errors, leaves, scope, tree, view
from synmod.journal import Journal

from . import runs
from .candidates import LEFT_OUT, Candidate, CandidatePool, CandidateRecord, mean_bounds, row_losses
from .rollouts import Rollout

_UNLIMITED: Final = 1 << 62
_FAILED_STEPS: Final = 3
_Lane: TypeAlias = tuple[tuple[int, ...], Iterator[int]]
"""The place of running code in its step, a branch of a `gather`, and the numbers of what it notes next."""
_LANE: Final[ContextVar[_Lane | None]] = ContextVar("synmod_lane", default=None)
_OF_THIS_PROCESS: Final = ("seconds", "replayed")
"""Numbers that depend on more than data, seed and models: in rows and CSV, not in JSON."""
ESTIMATE: Final = "_estimate"
"""Ends the names of what was measured on a part of the validation rows only."""


class Ledger:
    """The books of a run: where it is, what it ran, and what that took. `fit` keeps them, the bench fills them.

    Args:
        journal: The records of earlier processes.
        limits: The budget of the run.
        pool: The candidates.
        train: Ids of the train rows.
        is_scored: Whether there is a reward, so that the best candidate is proved at the end.

    Attributes:
        batch: Ids of the rows of the present batch.
        lines: The lines of the log, in order: one dict per attempt.
        pool: The candidates.
        step: Number of the present step.
        counted: The keys of the rollouts that were needed, those under way included; needed again they are free.
        done: The rollouts that have a result, by key.
    """

    def __init__(
        self,
        journal: Journal,
        limits: runs.Budget,
        pool: CandidatePool,
        train: Collection[str],
        *,
        is_scored: bool = True,
    ) -> None:
        self.batch: tuple[str, ...] = ()
        self.done: dict[runs.Key, Rollout] = {}
        self.lines: list[dict[str, leaves.Json]] = []
        self.pool = pool
        self.step = 0
        self._journal, self._limits, self._is_scored = journal, limits, is_scored
        self._train = train
        self.counted: set[runs.Key] = set()
        self._lm_calls = self._tokens = 0
        self._costs: list[float] = []
        """Of each rollout and proposal; summed exactly, so that what finished first does not matter."""
        self._trained: dict[tuple[str, str, int], Rollout] = {}
        self._unordered: list[tuple[tuple[int, ...], dict[str, leaves.Json]]] = []
        self._lane: _Lane = (-1,), count(2)
        self._errors: set[str] = set()
        self._has_answer, self._failed_steps = False, 0
        self._pledged = 0
        """How many rollouts the run has taken when the present step has had all that it may take in any case."""
        self._reserved: set[tuple[str, str]] | None = None
        """Candidates and validation rows that the end will run; None at the end."""
        self._spare = _UNLIMITED
        """How many rollouts are left beside these."""

    # -- steps and places ---------------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Begin an epoch: no train row has been run in it."""
        self._trained.clear()

    def begin(self, step: int, batch: Sequence[str] = (), *, is_last: bool = False) -> None:
        """Begin a step; what is kept for the end may be spent in the last one."""
        self.step, self.batch = step, tuple(batch)
        self._reserved, self._pledged = None if is_last else set(), 0
        self._lane = (step,), count(1)
        self._errors, self._has_answer = set(), False

    def end(self) -> None:
        """End a step: put what was noted in it into order."""
        self._unordered.sort(key=lambda line: line[0])
        self.lines += [line for _, line in self._unordered]
        self._unordered.clear()

    def next_place(self) -> tuple[int, ...]:
        """Return a new place, after all before it in the lane of the running code."""
        place, numbers = _LANE.get() or self._lane
        return (*place, next(numbers))

    def branch(self, *place: int) -> AbstractContextManager[None]:
        """Return a block whose code has a lane of its own, which begins at a place."""
        return leaves.set_in_block(_LANE, (place, count(1)))

    def note_line(self, line: dict[str, leaves.Json]) -> None:
        """Note what was tried."""
        self._unordered.append((self.next_place(), line))

    def note_proposal(self, error: str = "") -> None:
        """Note that a proposer has answered in this step, or why it failed."""
        if error:
            self._errors.add(error)
        else:
            self._has_answer = True

    @property
    def proposal_error(self) -> str:
        """Why a proposer failed in this step; "" where none did."""
        return max(self._errors, default="")

    def check_proposals(self, optimizer: str) -> None:
        """Raise where proposers gave nothing but errors for three steps in a row; steps without a call do not count.

        Raises:
            TrainerError: They did.
        """
        if self._has_answer:
            self._failed_steps = 0
        elif self._errors:
            self._failed_steps += 1
        if self._failed_steps >= _FAILED_STEPS:
            raise errors.TrainerError(
                f"{optimizer}: in {self._failed_steps} steps the proposer gave nothing but errors, such as "
                f"{self.proposal_error.rstrip('.')}. Fix the cause, then run the same command again to resume."
            )

    # -- what was run and paid ----------------------------------------------------------------------------------------

    @property
    def rollouts(self) -> int:
        """How many rollouts were needed, recorded ones included and void ones not."""
        return len(self.counted)

    @property
    def pieces(self) -> int:
        """How many rollouts and proposals the run has needed."""
        return len(self._costs)

    @property
    def is_replaying(self) -> bool:
        """Whether the run was begun in an earlier process, and this one has paid for nothing yet."""
        return self._journal.pieces > 0 and not self._journal.live

    def spent(self) -> runs.Budget:
        """Return what the run took so far: every rollout and proposal once, recorded ones included."""
        cost, elapsed = math.fsum(self._costs), self._journal.elapsed_s
        return runs.Budget(self.rollouts, self._lm_calls, self._tokens, cost, elapsed)

    def pay(self, usage: scope.Usage) -> None:
        """Count what one rollout or proposal used."""
        self._lm_calls += usage.calls
        self._tokens += usage.prompt_tokens + usage.completion_tokens
        self._costs.append(usage.cost_usd or 0.0)

    def note_trained(self, record: CandidateRecord, rollout: Rollout) -> None:
        """Note that a step of this epoch ran a train row."""
        self._trained[record.state.fingerprint, rollout.id, rollout.sample] = rollout

    def train_rollouts(self) -> list[Rollout]:
        """Return what the steps of this epoch ran on train rows, by candidate, row and sample."""
        numbers = {row: number for number, row in enumerate(self._train)}
        ordered = sorted(
            (self.pool.order_of(fingerprint), numbers[row], sample, rollout)
            for (fingerprint, row, sample), rollout in self._trained.items()
        )
        return [rollout for *_, rollout in ordered]

    # -- what may still be run ----------------------------------------------------------------------------------------

    def pledge(self, cost: int) -> None:
        """Let the present step take some rollouts in any case; what it takes beyond them leaves the end its own."""
        self._pledged = self.rollouts + cost

    def finish_cost(self) -> int:
        """Return the most rollouts that it takes to complete the seed and the best candidate."""
        return len(self._pairs_of_the_end())

    def _pairs_of_the_end(self) -> set[tuple[str, str]]:
        """Return the candidates and validation rows that the end must run."""
        records = self.pool.finalists()[:2] if self._is_scored else []
        return {(record.state.fingerprint, row) for record in records for row in self.pool.missing(record)}

    @property
    def room(self) -> int:
        """How many rollouts the optimizer may take; those of the end are kept apart."""
        self.reserve()
        return self._spare

    @property
    def is_limited(self) -> bool:
        """Whether the budget limits rollouts."""
        return self._limits.rollouts is not None

    def reserve(self) -> None:
        """Keep apart what the end will cost, by what is known now; not while branches of a step run at once.

        So what fits does not depend on which branch was faster.
        """
        if _LANE.get() is not None or self._limits == runs.Budget():
            return
        if self._reserved is not None:
            self._reserved = self._pairs_of_the_end()
        end_cost, spent, limits = len(self._reserved or ()), self.spent(), self._limits
        left = [_UNLIMITED if limits.rollouts is None else limits.rollouts - self.rollouts]
        for most, used in (
            (limits.lm_calls, spent.lm_calls),
            (limits.tokens, spent.tokens),
            (limits.cost_usd, spent.cost_usd),
        ):
            if most and used and end_cost:  # as far as the average of a rollout foretells it
                left.append(int(self.rollouts * (most / used - 1)))
        self._spare = min(left) - end_cost

    def take(self, keys: set[runs.Key], record: CandidateRecord | None = None, rows: Iterable[str] = ()) -> None:
        """Count rollouts that are about to run.

        Args:
            keys: The rollouts, none of which was counted before.
            record: The candidate that they bring closer to all validation rows; None where they do not.
            rows: On which of these rows.

        Raises:
            BudgetExceeded: They do not fit into the room, or would leave none to complete the candidate at the end.
        """
        self.reserve()
        reserved, early, later = self._reserved or set[tuple[str, str]](), set[tuple[str, str]](), 0
        if record is not None:
            mine = {(record.state.fingerprint, row) for row in rows}
            missing = {(record.state.fingerprint, row) for row in self.pool.missing(record)}
            early = reserved & mine
            if self._reserved is not None and missing.isdisjoint(reserved):  # it may become the best one
                of_best = sum(fingerprint != self.pool.seed.state.fingerprint for fingerprint, _ in reserved)
                later = max(0, len(missing - mine) - of_best)
        fits = len(keys) + later <= self._spare + len(early)
        if not fits and self.rollouts + len(keys) > self._pledged:
            left, end = max(0, self._spare + len(reserved)), len(reserved) + later
            raise errors.BudgetExceeded(
                f"{len(keys)} rollouts do not fit: {left} are left, and the end needs {end} of them."
            )
        reserved -= early
        self._spare += len(early) - len(keys)
        self.counted |= keys

    def settle(self, counted: set[runs.Key], ended: Iterable[runs.Key]) -> None:
        """Count no longer what was taken and did not end: it was cancelled, or is void."""
        self.counted -= counted
        self.counted.update(ended)


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

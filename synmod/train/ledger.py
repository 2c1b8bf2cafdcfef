"""The books of a running fit: its place, what was run and paid, and what may still be run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import count
from typing import Final, TypeAlias

from synmod import errors, leaves, scope
from synmod.journal import Journal

from . import runs
from .candidates import CandidatePool, CandidateRecord
from .rollouts import Rollout

_UNLIMITED: Final = 1 << 62
_FAILED_STEPS: Final = 3
_Lane: TypeAlias = tuple[tuple[int, ...], Iterator[int]]
"""The place of running code in its step, a branch of a `gather`, and the numbers of what it notes next."""
_LANE: Final[ContextVar[_Lane | None]] = ContextVar("synmod_lane", default=None)


class Ledger:
    """The books of a run: where it is, what it ran, and what that took. `fit` turns the pages, the bench fills them.

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

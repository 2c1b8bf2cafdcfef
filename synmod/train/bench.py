"""The bench: an optimizer's only way to act. It runs candidates as overlays, counts what they cost, and calls models.

It is deterministic: whatever runs at once has a place of its own (a lane), and what is asked, noted and logged is
ordered by place, never by time.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import fsum, sqrt
from random import Random
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from synmod.cache import key_of
from synmod.data import JsonDataModel, Schema, parts_of, schema_of, thaw
from synmod.errors import BudgetExceeded, EvaluationError, TrainerError
from synmod.flow import together
from synmod.leaves import Json, aio, check_choice, check_int, is_object, json_equal, path_str, rng
from synmod.lm import LanguageModel, models_in_force, sample_number
from synmod.module import Module, build
from synmod.scope import Usage, phase, track_usage
from synmod.tree import State, state as state_of

from .batches import ROW
from .optimizer import Candidate, FeedbackByPath, FeedbackItem, Race, Routing, Target, values_at
from .rollouts import CallRecord, Executor, Ran, Rollout
from .rows import Example, as_json
from .runs import Budget, Key, Runner, identity_of

Split: TypeAlias = Literal["train", "validation"]
Word: TypeAlias = Literal["accepted", "no_gain", "worse", "duplicate", "invalid", "failed", "perfect"]
T = TypeVar("T")
_Job: TypeAlias = tuple[Key, Example, State, int, LanguageModel | None]
"""A key, and what it is made of: what `Runner.row` takes."""

_LOG: Final = logging.getLogger("synmod.train")
_SPLITS: Final[tuple[Split, ...]] = ("train", "validation")
_UNLIMITED: Final = 1 << 62
_OUTAGE_SHARE, _OUTAGE_ROWS, _FIRST_ROWS = 0.1, 5, 20  # when failures are an outage rather than bad luck
FINALISTS: Final = 3
"""How many candidates are completed on all validation rows at the end."""


_Lane: TypeAlias = tuple[tuple[int, ...], Iterator[int]]
"""The place of running code in its step, a branch of a `gather`, and the numbers of what it notes next."""
_LANE: Final[ContextVar[_Lane | None]] = ContextVar("synmod_lane", default=None)


@dataclass(slots=True, eq=False)
class Known:
    """What is known of a candidate: who made it and when, and its rollouts.

    Attributes:
        state: Values of the targets.
        order: The first place where it was noted.
        made: Where what made it was first noted; empty until then.
        parents: Fingerprints of what it was made of.
        operator: What made it.
        rollouts: What was run, by split, row and sample.
        scores: The mean score of each row that has one, by split.
        tokens: What these used.
    """

    state: State
    order: tuple[int, ...]
    made: tuple[int, ...] = ()
    parents: tuple[str, ...] = ()
    operator: str = ""
    rollouts: dict[Split, dict[str, dict[int, Rollout]]] = field(default_factory=lambda: {s: {} for s in _SPLITS})
    scores: dict[Split, dict[str, float]] = field(default_factory=lambda: {s: {} for s in _SPLITS})
    tokens: int = 0

    def add(self, split: Split, rollout: Rollout) -> None:
        """Take in a rollout."""
        samples = self.rollouts[split].setdefault(rollout.id, {})
        if rollout.sample not in samples:
            samples[rollout.sample] = rollout
            self.tokens += rollout.usage.prompt_tokens + rollout.usage.completion_tokens
            scores = [each.score for each in samples.values() if each.score is not None]
            if scores:
                self.scores[split][rollout.id] = fsum(scores) / len(scores)

    @property
    def compared(self) -> dict[str, float]:
        """Its scores on validation rows."""
        return self.scores["validation"]

    def rank(self) -> tuple[float, int, int, tuple[int, ...]]:
        """Return what orders candidates: higher mean first, then more rows, fewer tokens, the older one."""
        scores = self.compared
        return -fsum(scores.values()) / len(scores), -len(scores), self.tokens, self.order


class Bench:
    """Evaluates candidates on rows, calls models, and keeps count. The trainer makes it, one for each run.

    Args:
        runner: Runs rows.
        routing: Takes feedback to the targets.
        targets: The Variables that may change, by path text.
        examples: The rows of each split by id, in one seeded order.
        outputs: The schemas of what the program returns.
        limits: What the run may spend.
        run_seed: What `rng` draws from.

    Attributes:
        advice: What to do after a failure, and what is kept of the run.
        batch: Ids of the rows of the present batch.
        step: Number of the present step.
        lines: What was logged, in order.
        score_range: That of the reward; None without a reward.
        best_score: The highest score there is.
        width: The width of the range of scores.
        seed: The values that the run began with.
        targets: The Variables that may change, by path text.
        task: What the program is for.

    Source: GEPA's adapter; differs: deterministic under concurrency, exact budgets.
    """

    def __init__(
        self,
        runner: Runner,
        routing: Routing,
        *,
        targets: Mapping[str, Target],
        examples: Mapping[Split, Mapping[str, Example]],
        outputs: Iterable[Schema] = (),
        limits: Budget | None = None,
        run_seed: int = 0,
    ) -> None:
        self.targets, self.seed = dict(targets), runner.seed
        self.task = runner.program.description or runner.program.name
        self.score_range = None if runner.reward is None else runner.reward.range
        low, self.best_score = self.score_range or (0.0, 1.0)
        self.width = self.best_score - low
        self.batch: tuple[str, ...] = ()
        self.step = 0
        self.lines: list[dict[str, Json]] = []
        self._runner, self._routing, self._examples = runner, routing, examples
        self._limits, self._run_seed = limits or Budget(), run_seed
        self._pledged = 0
        """How many rollouts the run has taken when the present step has had all that it may take in any case."""
        self._reserved: set[tuple[str, str]] | None = None
        """Candidates and validation rows that the end will run; None at the end."""
        self._spare = _UNLIMITED
        """How many rollouts are left beside these."""
        fields = [name for schema in outputs for name in parts_of(schema).fields]
        self._field = fields[0] if len(fields) == 1 else None
        """The only field that the program returns; None where it returns several."""
        kept = "What finished is kept: mend" if runner.journal.is_kept else "Mend"
        self.advice = f"{kept} the cause and run the same line again."
        self._under_way: dict[Key, aio.Gate | None] = {}
        """Where others wait for a rollout; None where nobody does."""
        self._done: dict[Key, Rollout] = {}
        self._calls: dict[Key, tuple[CallRecord, ...]] = {}
        self._counted: set[Key] = set()
        """Keys of the rollouts that were needed, those under way included."""
        self._candidates: dict[str, Known] = {}
        self._held: list[Known] = []
        self._made_from: dict[tuple[str, str], set[str]] = {}
        self._unordered: list[tuple[tuple[int, ...], dict[str, Json]]] = []
        self._lm_calls = self._tokens = 0
        self._costs: list[float] = []
        """Of each rollout and proposal; summed exactly, so that what finished first does not matter."""
        self._trained: dict[tuple[str, str, int], Rollout] = {}
        self._rows = self._faults = 0
        self._first: list[bool] = []
        self._lane: _Lane = (-1,), count(1)
        self._of_seed = self.candidate(self.seed, operator="seed")

    @property
    def train(self) -> tuple[str, ...]:
        """Ids of the train rows."""
        return tuple(self._examples["train"])

    @property
    def validation(self) -> tuple[str, ...]:
        """Ids of the validation rows."""
        return tuple(self._examples["validation"])

    def example(self, row: str, split: Split = "train") -> Example:
        """Return a row."""
        return self._examples[split][row]

    def expected(self, row: str) -> Json:
        """Return the target of a train row as JSON; a label stands under the only field that the program returns."""
        target = as_json(self.example(row).target)
        is_whole = self._field is None or target is None or is_object(target)
        return target if is_whole else {self._field: target}

    @property
    def rollouts(self) -> int:
        """How many rollouts were needed, recorded ones included and void ones not."""
        return len(self._counted)

    @property
    def pieces(self) -> int:
        """How many rollouts and proposals the run has needed."""
        return len(self._costs)

    @property
    def is_replaying(self) -> bool:
        """Whether the run was begun in an earlier process, and this one has paid for nothing yet."""
        return self._runner.journal.pieces > 0 and not self._runner.journal.live

    def on(self, executor: Executor | None) -> AbstractAsyncContextManager[None]:
        """Return a block in which rows run elsewhere; None for here."""
        return self._runner.on(executor)

    # -- time, chance and room ----------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Begin an epoch: no train row has been run in it."""
        self._trained.clear()

    def begin(self, step: int, batch: Sequence[str] = (), *, is_last: bool = False) -> None:
        """Begin a step; what is kept for the end may be spent in the last one."""
        self.step, self.batch = step, tuple(batch)
        self._reserved, self._pledged = None if is_last else set(), 0
        if self._faults < self._rows:  # else everything failed so far: an outage is counted on
            self._rows = self._faults = 0
        self._lane = (step,), count(1)

    def end(self) -> None:
        """End a step: put what was noted in it into order."""
        self._unordered.sort(key=lambda noted: noted[0])
        self.lines += [line for _, line in self._unordered]
        self._unordered.clear()

    def spent(self) -> Budget:
        """Return what the run took so far: every rollout and proposal once, recorded ones included."""
        return Budget(self.rollouts, self._lm_calls, self._tokens, fsum(self._costs), self._runner.journal.elapsed_s)

    def _pay(self, usage: Usage) -> None:
        """Count what one rollout or proposal used."""
        self._lm_calls += usage.calls
        self._tokens += usage.prompt_tokens + usage.completion_tokens
        self._costs.append(usage.cost_usd or 0.0)

    def rng(self, purpose: str) -> Random:
        """Return the generator of one random choice: a function of seed, step and purpose."""
        return rng(self._run_seed, self.step, purpose)

    def pledge(self, cost: int) -> None:
        """Let the present step take some rollouts in any case; what it takes beyond them leaves the end its own."""
        self._pledged = self.rollouts + cost

    @property
    def room(self) -> int:
        """How many rollouts the optimizer may take; those of the end are kept apart."""
        self._reserve()
        return self._spare

    def _left(self, reserved: int) -> int:
        """Return how many rollouts the run may still take, as far as other limits can pay those that are reserved."""
        spent = self.spent()
        pairs = [(self._limits.lm_calls, spent.lm_calls), (self._limits.tokens, spent.tokens),
                 (self._limits.cost_usd, spent.cost_usd)]  # fmt: skip
        left = [_UNLIMITED if self._limits.rollouts is None else self._limits.rollouts - self.rollouts]
        left += [int(self.rollouts * (most / used - 1)) for most, used in pairs if most and used and reserved]
        return min(left)

    def _reserve(self) -> None:
        """Keep apart what the end will cost, by what is known now; not while branches of a step run at once.

        So what fits does not depend on which branch was faster.
        """
        if _LANE.get() is not None or self._limits == Budget():
            return
        if self._reserved is not None:
            self._reserved = {(known.state.fingerprint, row) for known in self._proved() for row in self.missing(known)}
        self._spare = self._left(len(self._reserved or ())) - len(self._reserved or ())

    def _take(self, new: set[Key], known: Known | None, split: Split, ids: Iterable[str]) -> None:
        """Count rollouts that are about to run.

        Raises:
            BudgetExceeded: They do not fit into the room, or would leave none to complete the candidate at the end.
        """
        self._reserve()
        reserved, early, later = self._reserved or set[tuple[str, str]](), set[tuple[str, str]](), 0
        if known is not None and split == "validation":
            missing = {(known.state.fingerprint, row) for row in self.missing(known)}
            early = reserved.intersection((known.state.fingerprint, row) for row in ids)
            if self._reserved is not None and missing.isdisjoint(reserved):  # it may become the best one
                of_best = sum(of != self.seed.fingerprint for of, _ in reserved)
                later = max(0, len(missing.difference((known.state.fingerprint, row) for row in ids)) - of_best)
        fits = len(new) + later <= self._spare + len(early)
        if not fits and self.rollouts + len(new) > self._pledged:
            end = len(reserved) + later
            left = max(0, self._spare + len(reserved))
            raise BudgetExceeded(f"{len(new)} rollouts do not fit: {left} are left, and the end needs {end} of them.")
        reserved -= early
        self._spare += len(early) - len(new)
        self._counted |= new

    def _next(self) -> tuple[int, ...]:
        """Return a new place, after all before it in the lane of the running code."""
        place, numbers = _LANE.get() or self._lane
        return (*place, next(numbers))

    async def gather(self, *coroutines: Coroutine[Any, Any, T]) -> list[T]:
        """Return the results of coroutines that run at once, in order; the first failure cancels the others."""
        place = self._next()
        self._reserve()

        async def run(index: int) -> T | BudgetExceeded:
            token = _LANE.set(((*place, index), count(1)))
            try:
                return await coroutines[index]
            except BudgetExceeded as error:
                return error
            finally:
                _LANE.reset(token)

        try:
            return await _to_the_end([partial(run, index) for index in range(len(coroutines))])
        finally:
            for each in coroutines:
                each.close()

    # -- candidates ---------------------------------------------------------------------------------------------------

    def present(self) -> State:
        """Return the values of the targets as they are."""
        return values_at(self._runner.program, self.targets)

    def complete(self, state: State) -> State:
        """Return a State with the seed's values where it has none.

        Raises:
            StateError: It has a path that is not a target, or a value misses its schema.
        """
        if list(state) == list(self.seed):
            return state
        return self.seed.replace(dict(state.items()))

    def candidate(self, state: State, *parents: State, operator: str = "") -> Known:
        """Note where a State came from; what is known already stands.

        Args:
            state: Values of the targets.
            *parents: What it was made of.
            operator: What made it.
        """
        state, order = self.complete(state), self._next()
        known = self._candidates.setdefault(state.fingerprint, Known(state, order))
        known.order = min(known.order, order)
        if operator and (not known.made or order < known.made):  # whichever came first in place, not in time
            known.made, known.operator = order, operator
            known.parents = tuple(self.complete(parent).fingerprint for parent in parents)
        return known

    def hold(self, state: State) -> None:
        """Note what the program holds now."""
        self._held.append(self.candidate(state))

    def _known(self, state: State) -> Known:
        """Return what is known of a State, which is noted nowhere if that is nothing."""
        state = self.complete(state)
        return self._candidates.get(state.fingerprint) or Known(state, (self.step,))

    def knows(self, state: State) -> bool:
        """Whether a State was a candidate before this step; what runs at once in it does not count."""
        return self._known(state).order[0] < self.step

    def scores(self, state: State, split: Split = "validation") -> dict[str, float]:
        """Return the score of each row that a State was run on, by id."""
        return dict(self._known(state).scores[split])

    def rollouts_of(self, state: State, split: Split = "validation") -> list[Rollout]:
        """Return a State's rollouts, in the order of the rows."""
        found = self._known(state).rollouts[split]
        return [found[row][sample] for row in self._examples[split] if row in found for sample in sorted(found[row])]

    def all_rollouts(self) -> list[Rollout]:
        """Return every rollout of the run, in no particular order."""
        return [*self._done.values()]

    def is_whole(self, state: State) -> bool:
        """Whether a State was run on all validation rows."""
        return self._known(state).rollouts["validation"].keys() >= self._examples["validation"].keys()

    def trained(self) -> list[Rollout]:
        """Return what the steps of this epoch ran on train rows, by candidate, row and sample."""
        places = {row: number for number, row in enumerate(self.train)}
        ran = self._trained.items()
        order = sorted((self._candidates[of].order, places[row], sample, rollout) for (of, row, sample), rollout in ran)
        return [rollout for *_, rollout in order]

    def shown(self) -> list[Known]:
        """Return the seed and what was run on validation rows."""
        return [each for each in self._candidates.values() if each.compared or each is self._of_seed]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the seed, `c0`, and what was run on validation rows, in the order in which they were made."""
        shown = sorted(self.shown(), key=lambda known: known.order)
        names = {known.state.fingerprint: f"c{number}" for number, known in enumerate(shown)}
        return tuple(
            Candidate(
                names[known.state.fingerprint], known.state, self._above(known, names),
                known.operator, max(0, known.order[0]),
                {split: dict(sorted(scores.items())) for split, scores in known.scores.items() if scores},
            )
            for known in shown
        )  # fmt: skip

    def _above(self, known: Known, names: Mapping[str, str]) -> tuple[str, ...]:
        """Return what a candidate was made of, by name; in place of what never ran on validation rows what that was."""
        above = list(known.parents)
        for each in above:
            if each not in names and each in self._candidates:
                above += [parent for parent in self._candidates[each].parents if parent not in above]
        found = dict.fromkeys(names[each] for each in above if each in names and each != known.state.fingerprint)
        return tuple(found)

    def ranking(self) -> list[Known]:
        """Return what has validation scores: higher mean first, then more rows, fewer tokens, the older one."""
        return sorted((each for each in self._candidates.values() if each.compared), key=Known.rank)

    # -- rollouts -----------------------------------------------------------------------------------------------------

    def made_from(self, path: str, entry: Json, row: str) -> None:
        """Note of which train row an entry of an examples Variable was made: that row never sees it."""
        self._made_from.setdefault((path, key_of({"entry": entry})), set()).add(row)

    def _guarded(self, state: State, row: str) -> State:
        """Return a State without the examples that show a train row: made from it, or of equal inputs."""
        changes: dict[str, Json] = {}
        inputs = as_json(self._examples["train"][row].inputs)
        for path, target in self.targets.items():
            if target.kind == "examples":
                value: Any = state[path].value
                kept = [
                    entry for entry in value
                    if row not in self._made_from.get((path, key_of({"entry": entry})), ())
                    and not json_equal(entry["inputs"], inputs)
                ]  # fmt: skip
                if len(kept) < len(value):
                    changes[path] = kept
        return state.replace(changes) if changes else state

    async def evaluate(
        self,
        state: State,
        ids: Iterable[str],
        *,
        split: Split = "validation",
        samples: int = 1,
        calls: bool = False,
        teacher: Mapping[str, Json] | LanguageModel | None = None,
    ) -> list[Rollout]:
        """Run a candidate on rows, all at once; what was run before is free.

        Args:
            state: Values of the targets.
            ids: The rows.
            split: Which rows these ids name.
            samples: Runs per row.
            calls: Whether the rollouts hold the calls of modules that own a target.
            teacher: Runs the rows in the candidate's place, to whom nothing is credited: values of the program by
                path, or a model that stands in for its models.

        Returns:
            The rollouts, in the order of `ids`.

        Raises:
            BudgetExceeded: They do not fit into the room; nothing was run.
            EvaluationError: Too many rollouts have no score, through an outage or a broken reward.
            TrainerError: An id is that of no row.
            StateError: A path of the State is not a target, or one of the teacher's is not in the program.
        """
        await aio.checkpoint()
        known, rows, ids = self.candidate(state), self._examples[split], list(ids)
        if unknown := [row for row in ids if row not in rows]:
            named = ", ".join(map(repr, unknown[:3]))
            raise TrainerError(f"bench.evaluate: {named} name no {split} row; give ids of bench.{split}.")
        credited = known if teacher is None else None
        run_as, model = known.state, teacher if isinstance(teacher, LanguageModel) else None
        if isinstance(teacher, Mapping):
            taught = state_of(self._runner.program).replace(teacher)
            run_as |= State.of_leaves({path: leaf for path, leaf in taught.items() if path_str(path) in teacher})
        train = self._examples["train"]  # a row of both splits is guarded in both
        shown = [(rows[row], self._guarded(run_as, row) if rows[row] == train.get(row) else run_as) for row in ids]
        jobs = [
            (self._runner.key(example, overlay, sample, model), example, overlay, sample, model)
            for example, overlay in shown
            for sample in range(samples)
        ]
        new = {key for key, *_ in jobs if key not in self._counted}
        self._take(new, credited, split, ids)
        try:
            found = await self._run(jobs)
            void = [job for job, rollout in zip(jobs, found, strict=True) if rollout.void]
            again = iter(await self._run(void))  # once more at the end: an outage may be over
            found = [next(again) if rollout.void else rollout for rollout in found]
        finally:
            ran = {key: self._done[key] for key, *_ in jobs if key in self._done}
            self._counted -= new
            self._counted |= ran.keys()  # what was cancelled or void does not count
            for rollout in ran.values() if credited is not None else ():
                known.add(split, rollout)
                if split == "train":
                    self._trained[known.state.fingerprint, rollout.id, rollout.sample] = rollout
        self._check_outage(credited, split, found)
        if calls:  # hot: rollouts are made without them, and made anew only where they are wanted
            return [replace(each, calls=self._calls.get(job[0], ())) for job, each in zip(jobs, found, strict=True)]
        return found

    async def _run(self, jobs: Sequence[_Job]) -> list[Rollout]:
        """Return the rollouts of rows: those that are not known are run, all at once."""
        missing = {
            job[0]: partial(self._rollout, number, *job) for number, job in enumerate(jobs) if job[0] not in self._done
        }
        ran = dict(zip(missing, await _to_the_end(missing.values()), strict=True))
        return [ran.get(job[0]) or self._done[job[0]] for job in jobs]

    async def _rollout(
        self, number: int, key: Key, example: Example, state: State, sample: int, model: LanguageModel | None
    ) -> Rollout | BudgetExceeded:
        """Return the rollout of a row: known, recorded, under way, or run now; or that the budget is spent.

        Raises:
            EvaluationError: A failure that is not about the row: no key, no model, a program that cannot be built.
        """
        while key in self._under_way:  # for another candidate, or of the same evaluation
            ended = self._under_way[key] = self._under_way[key] or aio.Gate()
            await ended.wait()
        if key not in self._done:
            self._under_way[key] = None
            token = ROW.set(number)
            try:
                ran = await self._runner.row(example, state, sample, model, key)
            except BudgetExceeded as error:
                return error
            finally:
                ROW.reset(token)
                if ended := self._under_way.pop(key):
                    ended.wake_all()
            rollout = self._judged(ran, example, state, sample)
            self._calls[key] = ran.calls
            if rollout.void:
                return rollout
            self._done[key] = rollout
            self._pay(rollout.usage)
        return self._done[key]

    def _judged(self, ran: Ran, example: Example, state: State, sample: int) -> Rollout:
        """Return the rollout of what became of a row.

        Raises:
            EvaluationError: The failure is not about the row.
            TrainerError: The reward gives a critique for a module that there is not.
        """
        if ran.fault == "fatal":
            cause = str(ran.error).rstrip(".")
            raise EvaluationError(
                f"row {example.id!r} failed for a reason that all rows share: {cause}. {self.advice}"
            ) from ran.failure
        if ran.feedback is not None:
            self._routing.check(ran.feedback)
        return ran.result(
            Rollout, example, ran.judged(self._runner.bound), sample, candidate=state.fingerprint,
            void=ran.fault == "void", metrics=None if ran.fault == "reward" else ran.values,
        )  # fmt: skip

    def _check_outage(self, known: Known | None, split: Split, rollouts: Sequence[Rollout]) -> None:
        """Raise where too many rollouts have no score.

        Raises:
            EvaluationError: Void rows and errors of the reward or a metric, over a tenth of the step and at least
                five; or over half of the seed's first 20.
        """
        silent = [rollout.void or rollout.metrics is None for rollout in rollouts]
        self._rows += len(rollouts)
        self._faults += sum(silent)
        first = min(_FIRST_ROWS, len(self.validation))
        if known is self._of_seed:
            self._first += silent[: first - len(self._first)]
        many = self._faults >= _OUTAGE_ROWS and self._faults > _OUTAGE_SHARE * self._rows
        if any(silent) and (many or sum(self._first) > first / 2):
            failures = (str(each.error).rstrip(".") for each, is_so in zip(rollouts, silent, strict=True) if is_so)
            raise EvaluationError(
                f"step {self.step}: {self._faults} of {self._rows} rollouts on {split} rows say nothing about the "
                f"program: {'; '.join([*dict.fromkeys(failures)][:3])}. {self.advice}"
            )

    # -- comparing ----------------------------------------------------------------------------------------------------

    async def race(self, challenger: State, incumbent: State, *, block: int, ids: Sequence[str] | None = None) -> Race:
        """Run a challenger against an incumbent on the same validation rows, block by block, while it may win.

        It is retired as soon as its mean difference lies more than a standard error below zero.

        Args:
            challenger: What may be better.
            incumbent: What it is compared with.
            block: Rows at a time.
            ids: The rows; None for all validation rows.

        Raises:
            TrainerError: `block` is not a count.

        Source: racing (Maron and Moore's Hoeffding races), paired.
        """
        rows, block = (
            self.validation if ids is None else tuple(ids),
            check_int("race: block", block, error=TrainerError),
        )
        gains: list[float] = []
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            await self.gather(self.evaluate(challenger, part), self.evaluate(incumbent, part))
            new, old = self.scores(challenger), self.scores(incumbent)
            gains = [new[row] - old[row] for row in rows[: start + block] if row in new and row in old]
            if self._is_beaten(gains):
                return Race(False, fsum(gains), len(gains))
        return Race(True, fsum(gains), len(gains))

    def _is_beaten(self, gains: Sequence[float]) -> bool:
        """Whether a challenger is worse, by paired differences."""
        n = len(gains)
        if not n:
            return False
        middle = fsum(gains) / n
        spread = sqrt(fsum((gain - middle) ** 2 for gain in gains) / (n - 1)) if n > 1 else 0.0
        return middle + max(spread, self.width / 4) / sqrt(n) < 0

    async def certified(self, state: State, *, most_rows: bool = False) -> State:
        """Return the best of what was evaluated, proved on all validation rows; the seed where nothing is better.

        Without a reward the State there is stands.

        Args:
            state: What the program holds.
            most_rows: Whether to prove those that were run on the most rows, rather than those of the highest means.
        """
        if self.score_range is None:
            return state
        self.hold(state)
        await self.prove([known.state for known in self.finalists(most_rows=most_rows)])
        old, ranked = self._of_seed.compared, self.ranking()
        complete = [known for known in ranked if not self.missing(known)]
        for known in complete or ranked:
            new = known.compared
            if fsum(new[row] - old[row] for row in new if row in old) > 0:
                return known.state
        return self.seed

    async def prove(self, states: Iterable[State]) -> None:
        """Run each State on the validation rows that it was not run on, as long as they fit into the room."""
        try:
            for state in states:
                missing = self.missing(self._known(state))
                if len(missing) <= self.room:
                    await self.evaluate(state, missing)
        except BudgetExceeded:
            _LOG.info("the budget is spent: the best is chosen of what is known.")

    def finalists(self, *, most_rows: bool = False) -> list[Known]:
        """Return what is completed at the end: the seed, which the others must beat, the best one, then the next ones.

        A State that the program has held and that was not run stands behind the best one: it may be better.
        """
        ranked = self.ranking()
        if most_rows:
            ranked.sort(key=lambda known: -len(known.compared))
        unknown = [known for known in dict.fromkeys(reversed(self._held)) if not known.compared]
        best = [*ranked[:1], *unknown, *ranked[1:]][:FINALISTS]
        return list(dict.fromkeys((self._of_seed, *best)))

    def _proved(self) -> list[Known]:
        """Return what the end must complete: the seed, and the best of the others."""
        return [] if self.score_range is None else self.finalists()[:2]

    def missing(self, known: Known) -> list[str]:
        """Return the validation rows that a candidate was not run on."""
        return [row for row in self.validation if row not in known.rollouts["validation"]]

    def finish_cost(self) -> int:
        """Return the most rollouts that it takes to complete the best one and the seed."""
        return sum(len(self.missing(known)) for known in self._proved())

    # -- models and words ---------------------------------------------------------------------------------------------

    async def ask(self, module: Module, inputs: Any) -> JsonDataModel[Any]:
        """Return the output of a module, called in phase `optimizer`; recorded, and drawn anew at each place.

        Args:
            module: Such as a `Proposer`.
            inputs: One data model.

        Raises:
            JournalError: The answer cannot be recorded.
            Exception: What the call raised; nothing is recorded then.
        """
        place = [self._run_seed, *self._next()]
        if not module.built:
            await build(module, schema_of(inputs))
        question = [as_json(inputs), identity_of(module), models_in_force()]
        key = key_of({"ask": place, "of": question})
        found = await self._runner.journal.find(key)
        piece: dict[str, Any] = found or {}
        if not isinstance(piece.get("outputs"), JsonDataModel):
            sample = rng(self._run_seed, self.step, f"ask/{'/'.join(map(str, place))}").randrange(1 << 31)
            with phase("optimizer"), sample_number(sample), track_usage() as usage, self._runner.within_time():
                output = await module(inputs)
            schema = thaw(schema_of(output))
            piece = {"outputs": JsonDataModel(thaw(as_json(output)), schema=schema), "usage": usage.total()}
            await self._runner.journal.keep(key, piece)
        self._pay(piece["usage"])
        return piece["outputs"]

    async def feedback(self, rollouts: Iterable[Rollout]) -> dict[str, tuple[FeedbackItem, ...]]:
        """Return the feedback of each target's module on rollouts that were run with `calls=True`."""
        return await self._routing.items(rollouts)

    def blamed(self, feedback: FeedbackByPath, rollouts: Iterable[Rollout]) -> dict[str, int]:
        """Return how many failing rollouts blame each target: those that their `parts` address, else all reached.

        Args:
            feedback: What `feedback` returned for them.
            rollouts: The rollouts.
        """
        return self._routing.blamed(feedback, rollouts, self.best_score)

    def log(self, operator: str, paths: Iterable[str], word: Word, gain: float = 0.0, rows: int = 0) -> None:
        """Write one line: what was tried, on which paths, and what became of it.

        Raises:
            TrainerError: An unknown word, or a path that is not a target.
        """
        check_choice("bench.log: word", word, get_args(Word), error=TrainerError)
        paths = [check_choice("bench.log: path", path, [*self.targets], error=TrainerError) for path in paths]
        line: dict[str, Json] = {
            "step": self.step, "operator": operator, "paths": paths, "word": word, "gain": gain, "rows": rows
        }  # fmt: skip
        self._unordered.append((self._next(), line))
        _LOG.info("step %d: %s of %s: %s, gain %.4g over %d rows", self.step, operator, paths, word, gain, rows)


async def _to_the_end(calls: Iterable[Callable[[], Awaitable[T | BudgetExceeded]]]) -> list[T]:
    """Return the results of calls that run at once; where a budget is spent the others end first: they are paid for.

    Raises:
        BudgetExceeded: The first that a call returned.
    """
    results = await together(*calls)
    for result in results:
        if isinstance(result, BudgetExceeded):
            raise result
    return results

"""The bench: an optimizer's only way to act. It runs candidates as overlays, compares them, and calls models.

It is deterministic: code that runs at once has a place of its own (a lane), and all records are ordered by place,
never by time.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import fsum, sqrt
from random import Random
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from synmod import errors
from synmod.cache import SingleFlight, key_of
from synmod.data import JsonDataModel, Schema, dump_json, parts_of, schema_of, thaw
from synmod.flow import together
from synmod.leaves import Json, aio, check_choice, check_int, is_object, json_equal, path_str, rng
from synmod.lm import LanguageModel, models_in_force, sample_number
from synmod.module import Module, build
from synmod.scope import is_from_enclosing_limit, phase, track_usage
from synmod.tree import State, state as state_of

from .candidates import Ledger, Race, Split, Target
from .credit import FeedbackByPath, FeedbackItem, Routing
from .optimizer import Optimizer, Proposer, check_reward, fault_of_proposal, proposer_inputs, records_of
from .rollouts import CallRecord, Rollout, RunOutcome
from .rows import Example, as_json
from .runs import Job, Key, identity_of

Word: TypeAlias = Literal["accepted", "no_gain", "worse", "duplicate", "invalid", "failed", "perfect"]
T = TypeVar("T")
_LOG: Final = logging.getLogger("synmod.train")
_OUTAGE_SHARE, _OUTAGE_ROWS, _FIRST_ROWS = 0.1, 5, 20  # when failures are an outage rather than bad luck


class Bench:
    """Evaluates candidates on rows, compares them, and calls models. The trainer makes it, one for each run.

    Args:
        ledger: The books of the run, which note what is run and what it takes.
        routing: Takes feedback to the targets.
        targets: The Variables that may change, by path text.
        outputs: The schemas of what the program returns.
        run_seed: The seed of `rng`.
        optimizer: Whose bench it is.

    Attributes:
        advice: A sentence on how to go on after a failure.
        best_score: The highest score there is.
        seed: The values that the run began with.
        targets: The Variables that may change, by path text.
        task: The description of the program.
        width: The width of the range of scores.

    Source: GEPA's adapter; differs: deterministic under concurrency, exact budgets.
    """

    def __init__(
        self,
        ledger: Ledger,
        routing: Routing,
        optimizer: Optimizer,
        targets: Mapping[str, Target],
        outputs: Iterable[Schema],
        run_seed: int,
    ) -> None:
        runner = ledger.runner
        low, self.best_score = (0.0, 1.0) if runner.reward is None else runner.reward.range
        self.seed, self.targets = runner.seed, dict(targets)
        self.task = runner.program.description or runner.program.name
        self.width = self.best_score - low
        prefix = "What finished is kept: mend" if runner.journal.is_kept else "Mend"
        self.advice = f"{prefix} the cause and run the same line again."
        self._ledger, self._pool, self._runner, self._routing = ledger, ledger.pool, runner, routing
        self._examples, self._run_seed, self._optimizer = ledger.examples, run_seed, optimizer
        fields = [name for schema in outputs for name in parts_of(schema).fields]
        self._field = fields[0] if len(fields) == 1 else None
        """The only field that the program returns; None where it returns several."""
        self._under_way = SingleFlight()
        self._calls: dict[Key, tuple[CallRecord, ...]] = {}
        self._sources: dict[tuple[str, str], set[str]] = {}
        self._proposer = optimizer.proposer or Proposer(optimizer.language_model)
        self._outage = _OutageCheck(min(_FIRST_ROWS, len(self.validation)), self.advice)

    @property
    def train(self) -> tuple[str, ...]:
        """Ids of the train rows."""
        return tuple(self._examples["train"])

    @property
    def validation(self) -> tuple[str, ...]:
        """Ids of the validation rows."""
        return tuple(self._examples["validation"])

    @property
    def batch(self) -> tuple[str, ...]:
        """Ids of the rows of the present batch."""
        return self._ledger.batch

    @property
    def step(self) -> int:
        """Number of the present step."""
        return self._ledger.step

    @property
    def rollouts(self) -> int:
        """How many rollouts the run has taken."""
        return self._ledger.rollouts

    @property
    def room(self) -> int:
        """How many rollouts may still be taken, beside those that the end needs."""
        return self._ledger.room

    @property
    def is_limited(self) -> bool:
        """Whether the budget limits rollouts."""
        return self._ledger.is_limited

    @property
    def proposal_error(self) -> str:
        """Why a proposal of this step failed; "" where none did."""
        return self._ledger.proposal_error

    def finish_cost(self) -> int:
        """Return the most rollouts that it takes to complete the seed and the best candidate."""
        return self._ledger.finish_cost()

    def example(self, row: str, split: Split = "train") -> Example:
        """Return a row."""
        return self._examples[split][row]

    def target_of(self, row: str, split: Split = "train") -> Json:
        """Return the target of a row as JSON; a label is returned under the name of the only output field."""
        target = as_json(self.example(row, split).target)
        is_whole = self._field is None or target is None or is_object(target)
        return target if is_whole else {self._field: target}

    def rng(self, purpose: str) -> Random:
        """Return the generator of one random choice: a function of seed, step and purpose."""
        return rng(self._run_seed, self.step, purpose)

    async def gather(self, *coroutines: Coroutine[Any, Any, T]) -> list[T]:
        """Return the results of coroutines that run at once, in order; the first failure cancels the others."""
        place = self._ledger.next_place()
        self._ledger.reserve()

        async def run(index: int) -> T | errors.BudgetExceeded:
            with self._ledger.branch(*place, index):
                try:
                    return await coroutines[index]
                except errors.BudgetExceeded as error:
                    return error

        try:
            return await _run_all([partial(run, index) for index in range(len(coroutines))])
        finally:
            for coroutine in coroutines:
                coroutine.close()

    # -- candidates ---------------------------------------------------------------------------------------------------

    def candidate(self, state: State, *parents: State, operator: str = "") -> None:
        """Note where a State came from; what is known already stays.

        Args:
            state: Values of the targets.
            *parents: The States that it was made from.
            operator: The operation that made it.
        """
        self._pool.note(state, self._ledger.next_place(), parents, operator)

    def knows(self, state: State) -> bool:
        """Whether a State was a candidate before this step; what runs at once in it does not count."""
        record = self._pool.find(state)
        return record is not None and record.order[0] < self.step

    def scores(self, state: State, split: Split = "validation") -> dict[str, float]:
        """Return the score of each row that a State was run on, by id."""
        record = self._pool.find(state)
        return {} if record is None else dict(record.scores[split])

    def missing(self, state: State) -> list[str]:
        """Return the validation rows that a State was not run on."""
        record = self._pool.find(state)
        return [*self.validation] if record is None else self._pool.missing(record)

    def note_source(self, path: str, entry: Json, row: str) -> None:
        """Note of which train row an entry of an examples Variable was made: that row never sees it."""
        self._sources.setdefault((path, key_of({"entry": entry})), set()).add(row)

    def _hide_answers(self, state: State, row: str) -> State:
        """Return a State without the examples that show a train row: made from it, or of equal inputs."""
        changes: dict[str, Json] = {}
        inputs = as_json(self._examples["train"][row].inputs)
        for path, target in self.targets.items():
            if target.kind == "examples":
                value: Any = state[path].value
                entries = [
                    entry
                    for entry in value
                    if row not in self._sources.get((path, key_of({"entry": entry})), ())
                    and not json_equal(entry["inputs"], inputs)
                ]
                if len(entries) < len(value):
                    changes[path] = entries
        return state.replace(changes) if changes else state

    # -- rollouts -----------------------------------------------------------------------------------------------------

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
                path, or a model in place of its models.

        Returns:
            The rollouts, in the order of `ids`.

        Raises:
            BudgetExceeded: They do not fit into the room; nothing was run.
            EvaluationError: Too many rollouts have no score, through an outage or a broken reward.
            TrainerError: An id is that of no row, or the optimizer compares scores and has no reward.
            StateError: A path of the State is not a target, or one of the teacher's is not in the program.
        """
        await aio.checkpoint()
        check_reward(self._optimizer, self._runner.reward)
        record = self._pool.note(state, self._ledger.next_place())
        rows, ids = self._examples[split], list(ids)
        if unknown := [row for row in ids if row not in rows]:
            unknown_ids = ", ".join(map(repr, unknown[:3]))
            raise errors.TrainerError(f"bench.evaluate: {unknown_ids} name no {split} row; give ids of bench.{split}.")
        run_as, model = record.state, teacher if isinstance(teacher, LanguageModel) else None
        if isinstance(teacher, Mapping):
            teacher_state = state_of(self._runner.program).replace(teacher)
            run_as |= State.of_leaves({path: leaf for path, leaf in teacher_state.items() if path_str(path) in teacher})
        train = self._examples["train"]  # a row of both splits is guarded in both
        jobs: list[Job] = []
        for row in ids:
            state = self._hide_answers(run_as, row) if rows[row] == train.get(row) else run_as
            jobs += [Job(rows[row], len(jobs), state, sample, model) for sample in range(samples)]
        keys = [*map(self._runner.key, jobs)]
        new, done = {*keys} - self._ledger.counted, self._ledger.done
        completes = teacher is None and split == "validation"
        self._ledger.take(new, record if completes else None, ids)
        try:
            rollouts = await self._run(keys, jobs)
            void = [at for at, rollout in enumerate(rollouts) if rollout.void]
            repeats = await self._run([keys[at] for at in void], [jobs[at] for at in void])
            for at, rollout in zip(void, repeats, strict=True):  # once more at the end: an outage may be over
                rollouts[at] = rollout
        finally:
            ended = {key: done[key] for key in keys if key in done}
            self._ledger.settle(new, ended)
            for rollout in ended.values() if teacher is None else ():
                record.add(split, rollout)
                if split == "train":
                    self._ledger.note_trained(record, rollout)
        is_seed = teacher is None and record is self._pool.seed
        self._outage.check(rollouts, self.step, split, is_seed=is_seed)
        if not calls:  # hot: rollouts are copied with their calls only on request
            return rollouts
        return [replace(of, calls=self._calls.get(key, ())) for key, of in zip(keys, rollouts, strict=True)]

    async def _run(self, keys: Sequence[Key], jobs: Sequence[Job]) -> list[Rollout]:
        """Return the rollouts of rows: those that are not known are run, all at once, and equal ones once."""
        calls = {
            key: partial(self._under_way.run, key, partial(self._rollout, key, job))
            for key, job in zip(keys, jobs, strict=True)
            if key not in self._ledger.done
        }
        rollouts = dict(zip(calls, await _run_all(calls.values()), strict=True))
        return [rollouts.get(key) or self._ledger.done[key] for key in keys]

    async def _rollout(self, key: Key, job: Job) -> Rollout | errors.BudgetExceeded:
        """Return the rollout of a row: known, recorded, or run now; or that the budget is spent.

        Raises:
            EvaluationError: A failure that is not about the row: no key, no model, a program that cannot be built.
        """
        if key in self._ledger.done:
            return self._ledger.done[key]
        try:
            outcome = await self._runner.run(job, key)
        except errors.BudgetExceeded as error:
            return error
        rollout = self._judge(outcome, job)
        self._calls[key] = outcome.calls
        if not rollout.void:
            self._ledger.done[key] = rollout
            self._ledger.pay(rollout.usage)
        return rollout

    def _judge(self, outcome: RunOutcome, job: Job) -> Rollout:
        """Return the rollout of what became of a row.

        Raises:
            EvaluationError: The failure is not about the row.
            TrainerError: The reward gives a critique for a module that there is not.
        """
        if outcome.fault == "fatal":
            cause = str(outcome.error).rstrip(".")
            raise errors.EvaluationError(
                f"row {job.example.id!r} failed for a reason that all rows share: {cause}. {self.advice}"
            ) from outcome.failure
        if outcome.feedback is not None:
            self._routing.check(outcome.feedback)
        feedback, is_void = outcome.final_feedback(self._runner.bound), outcome.fault == "void"
        metrics = None if outcome.fault == "reward" else outcome.values
        more = {"candidate": job.state.fingerprint if job.state else "", "void": is_void, "metrics": metrics}
        return outcome.result(Rollout, job.example, feedback, job.sample, **more)

    # -- comparing ----------------------------------------------------------------------------------------------------

    async def race(self, challenger: State, incumbent: State, *, block: int, ids: Sequence[str] | None = None) -> Race:
        """Run a challenger against an incumbent on the same validation rows, block by block, while it may win.

        It is retired as soon as its mean difference lies more than a standard error below zero.

        Args:
            challenger: The State that may be better.
            incumbent: The State that it must beat.
            block: Rows at a time.
            ids: The rows; None for all validation rows.

        Raises:
            TrainerError: `block` is not a count.

        Source: racing (Maron and Moore's Hoeffding races), paired.
        """
        check_int("race: block", block, error=errors.TrainerError)
        rows = self.validation if ids is None else tuple(ids)
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

    async def best_on_validation(self, state: State, *, most_rows: bool = False) -> State:
        """Return the best of what was evaluated, proved on all validation rows; the seed where nothing is better.

        Without a reward the present State stays.

        Args:
            state: The State of the program.
            most_rows: Whether to prove those that were run on the most rows, rather than those of the highest means.
        """
        if self._runner.reward is None:
            return state
        pool = self._pool
        pool.note_current(state, self._ledger.next_place())
        await self.complete_validation([record.state for record in pool.finalists(most_rows=most_rows)])
        old, ranked = pool.seed.compared, pool.best_first()
        complete = [record for record in ranked if not pool.missing(record)]
        for record in complete or ranked:
            new = record.compared
            if fsum(new[row] - old[row] for row in new if row in old) > 0:
                return record.state
        return self.seed

    async def complete_validation(self, states: Iterable[State]) -> None:
        """Run each State on the validation rows that it was not run on, as long as they fit into the room."""
        try:
            for state in states:
                missing = self.missing(state)
                if len(missing) <= self.room:
                    await self.evaluate(state, missing)
        except errors.BudgetExceeded:
            _LOG.info("the budget is spent: the best is chosen of what is known.")

    # -- models and words ---------------------------------------------------------------------------------------------

    async def ask(self, module: Module, inputs: Any) -> JsonDataModel[Any]:
        """Return the output of a module, called in phase `optimizer`; recorded, and a new draw at each place.

        Args:
            module: Such as a `Proposer`.
            inputs: One data model.

        Raises:
            JournalError: The answer cannot be recorded.
            Exception: Any error of the call; nothing is recorded then.
        """
        place = [self._run_seed, *self._ledger.next_place()]
        if not module.built:
            await build(module, schema_of(inputs))
        question = [as_json(inputs), identity_of(module), models_in_force()]
        key = key_of({"ask": place, "of": question})
        record = await self._runner.journal.find(key)
        piece: dict[str, Any] = record or {}
        if not isinstance(piece.get("outputs"), JsonDataModel):
            sample = rng(self._run_seed, self.step, f"ask/{'/'.join(map(str, place))}").randrange(1 << 31)
            with phase("optimizer"), sample_number(sample), track_usage() as usage, self._runner.within_time():
                output = await module(inputs)
            schema = thaw(schema_of(output))
            piece = {"outputs": JsonDataModel(thaw(as_json(output)), schema=schema), "usage": usage.total()}
            await self._runner.journal.keep(key, piece)
        self._ledger.pay(piece["usage"])
        return piece["outputs"]

    async def propose(
        self,
        state: State,
        path: str,
        evidence: Sequence[Rollout] | Sequence[FeedbackItem],
        *,
        rows: Sequence[str] | None = None,
        accepted: Sequence[Json] = (),
        tried: Sequence[Json] = (),
        hint: str = "",
    ) -> Json | None:
        """Return a better value of a target, from the optimizer's proposer; None where it gave none that can be used.

        A value that misses its schema, is too long, repeats the prompt or was tried before is requested once more, with
        the reason. Each such answer, and each failed call, is a line of the log.

        Args:
            state: Values of the targets.
            path: The target.
            evidence: Calls of the State on train rows: rollouts that were run with `calls=True`, or the feedback on
                the calls of the target's module, as `update` receives it.
            rows: The rows that feedback is numbered by; None for the present batch.
            accepted: Values of the target that were better than those before them.
            tried: Values of the target that were tried.
            hint: A further request to the model.

        Raises:
            TrainerError: The path is not that of a target.
            EvaluationError: The model cannot be called at all: no key, no model.
            JournalError: The answer cannot be recorded.
        """
        check_choice("bench.propose: path", path, [*self.targets], error=errors.TrainerError)
        rollouts = [item for item in evidence if isinstance(item, Rollout)]
        items = [item for item in evidence if isinstance(item, FeedbackItem)]
        if rollouts:
            rows, items = [rollout.id for rollout in rollouts], (await self.feedback(rollouts))[path]
        expected = [self.target_of(row) for row in (self.batch if rows is None else rows)]
        records, current = records_of(items, self.best_score, expected), state[path].value
        for _ in range(2):
            memory = {"accepted": [*accepted], "tried": [*tried], "hint": hint}
            inputs = proposer_inputs(self, state, path, records, **memory)
            try:
                value: Json = (await self.ask(self._proposer, inputs))["value"]
            except Exception as error:
                ours = errors.BudgetExceeded | errors.JournalError | errors.Paused
                if is_from_enclosing_limit(error) or isinstance(error, ours):
                    raise
                if isinstance(error, errors.AuthError | errors.ConfigError | errors.UnboundModelError):
                    cause = str(error).rstrip(".")
                    raise errors.EvaluationError(f"the proposer cannot be asked: {cause}. {self.advice}") from error
                self.log("reflect", [path], "failed")
                self._ledger.note_proposal(f"{type(error).__name__}: {error}")
                return None
            self._ledger.note_proposal()
            fault = fault_of_proposal(self._proposer, self.targets[path], value, current, hint)
            if fault is None and not self.knows(state.replace({path: value})):
                return value
            self.log("reflect", [path], "duplicate" if fault is None else "invalid")
            fault = fault or "was tried before"
            hint = f"{hint} Your last answer {fault}: write another one. It was {dump_json(value):.600}".strip()
        return None

    async def feedback(self, rollouts: Iterable[Rollout]) -> dict[str, tuple[FeedbackItem, ...]]:
        """Return the feedback of each target's module on rollouts that were run with `calls=True`."""
        return await self._routing.items(rollouts)

    def count_blame(self, feedback: FeedbackByPath, rollouts: Iterable[Rollout]) -> dict[str, int]:
        """Return how many failing rollouts blame each target: those that their `parts` address, else all reached.

        Args:
            feedback: The result of `feedback` for them.
            rollouts: The rollouts.
        """
        return self._routing.count_blame(feedback, rollouts, self.best_score)

    def log(self, operator: str, paths: Iterable[str], word: Word, gain: float = 0.0, rows: int = 0) -> None:
        """Write one line: what was tried, on which paths, and what became of it.

        Raises:
            TrainerError: An unknown word, or a path that is not a target.
        """
        check_choice("bench.log: word", word, get_args(Word), error=errors.TrainerError)
        paths = [check_choice("bench.log: path", path, [*self.targets], error=errors.TrainerError) for path in paths]
        line: Any = {"step": self.step, "operator": operator, "paths": paths, "word": word, "gain": gain, "rows": rows}
        self._ledger.note_line(line)
        _LOG.info("step %d: %s of %s: %s, gain %.4g over %d rows", self.step, operator, paths, word, gain, rows)


class _OutageCheck:
    """Whether so many rollouts have no score that it is an outage rather than bad luck.

    Args:
        first: How many of the seed's first rollouts are watched.
        advice: The last sentence of the error.
    """

    def __init__(self, first: int, advice: str) -> None:
        self._first, self._advice = first, advice
        self._step = self._rows = self._faults = 0
        self._of_seed: list[bool] = []

    def check(self, rollouts: Sequence[Rollout], step: int, split: Split, *, is_seed: bool) -> None:
        """Look at further rollouts.

        Raises:
            EvaluationError: Void rows and errors of the reward or a metric, over a tenth of the step and at least
                five; or over half of the seed's first 20.
        """
        if step != self._step and self._faults < self._rows:  # else everything failed so far: an outage is counted on
            self._rows = self._faults = 0
        self._step = step
        silent = [rollout.void or rollout.metrics is None for rollout in rollouts]
        self._rows += len(rollouts)
        self._faults += sum(silent)
        if is_seed:
            self._of_seed += silent[: self._first - len(self._of_seed)]
        many = self._faults >= _OUTAGE_ROWS and self._faults > _OUTAGE_SHARE * self._rows
        if any(silent) and (many or sum(self._of_seed) > self._first / 2):
            failed = (rollout for rollout, is_silent in zip(rollouts, silent, strict=True) if is_silent)
            causes = dict.fromkeys(str(rollout.error).rstrip(".") for rollout in failed)
            raise errors.EvaluationError(
                f"step {step}: {self._faults} of {self._rows} rollouts on {split} rows say nothing about the program: "
                f"{'; '.join([*causes][:3])}. {self._advice}"
            )


async def _run_all(calls: Iterable[Callable[[], Awaitable[T | errors.BudgetExceeded]]]) -> list[T]:
    """Return the results of calls that run at once; where a budget is spent the others end first: they are paid for.

    Raises:
        BudgetExceeded: The first that a call returned.
    """
    results = await together(*calls)
    for result in results:
        if isinstance(result, errors.BudgetExceeded):
            raise result
    return results

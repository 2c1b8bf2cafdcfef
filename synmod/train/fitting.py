"""fit: step by step until the epochs are over, the optimizer is done, or the budget cannot pay another step."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from synmod import cache, data, errors, leaves, module, scope, tree
from synmod.journal import Journal, Run, run_from

from . import batches, evaluation, rollouts, runs
from .binding import as_list, symbols_by_name
from .callbacks import Callback, TrainingEvent
from .candidates import Candidate, Split, mean
from .history import ESTIMATE, History
from .metrics import Metrics, metrics_from
from .optimizer import Optimizer, ReflectionInputs, check_reward, take_step, values_at
from .rewards import warn_of_zeros
from .rows import Example

if TYPE_CHECKING:
    from .trainer import Trainer

_LOG: Final = logging.getLogger("synmod.train")
Stopped = Literal["done", "epochs", "budget", "callback"]
_MOST_IDLE: Final = 100
"""How many steps in a row may try nothing new, where no number of epochs ends the run."""
_SPENT: Final = ("rollouts", "lm_calls", "tokens", "cost_usd")
_COUNTS: Final = {"epoch", "step", "best_val_reward", "candidates", "accepted", *_SPENT}
"""The names in a row of the History beside rewards and metrics."""


@dataclass(frozen=True, slots=True)
class BatchEndParam:
    """The argument of a batch-end callback.

    Attributes:
        epoch: Number of the epoch.
        nbatch: Number of the batch in it.
        eval_metric: The metrics, as they are.
        trainer: The trainer.

    Source: MXNet's `BatchEndParam`.
    """

    epoch: int
    nbatch: int
    eval_metric: Any
    trainer: Trainer


async def fit(
    trainer: Trainer,
    train: Any,
    *,
    eval_data: Any = None,
    eval_metric: Any = None,
    validation_metric: Any = None,
    num_epoch: int | None = None,
    begin_epoch: int = 0,
    optimizer: Any = "random_few_shot",
    optimizer_params: Mapping[str, Any] | None = None,
    initializer: Any = None,
    params: Any = None,
    aux: Any = None,
    allow_missing: bool = False,
    force_rebind: bool = False,
    force_init: bool = False,
    monitor: Any = None,
    batch_end_callback: Any = None,
    epoch_end_callback: Any = None,
    eval_end_callback: Any = None,
    callbacks: Callback | Sequence[Callback] = (),
    budget: Any = None,
    run: Any = None,
    durable_rows: bool = False,
    executor: rollouts.Executor | None = None,
) -> History:
    """Train: bind, initialise, and let the optimizer take a step per batch, until there is a reason to stop.

    Steps that were done before are kept. Data are read once, before the first call; a row without an id has the digest
    of its JSON as id.

    Args:
        trainer: The trainer.
        train: Batches, read once per epoch.
        eval_data: Validation rows, or batches of them; None for the train rows, with a warning.
        eval_metric: A metric or a list of them, in the forms of `sm.evaluate`; the History has them for train rows, and
            with `val_` before their names for validation rows.
        validation_metric: Metrics of validation rows, where they are others.
        num_epoch: The epoch before which it ends; required, unless there is a budget or the optimizer ends by itself.
        begin_epoch: Number of the first epoch.
        optimizer: As in `init_optimizer`.
        optimizer_params: As in `init_optimizer`.
        initializer: As in `init_params`.
        params: As in `init_params`.
        aux: As in `init_params`.
        allow_missing: As in `init_params`.
        force_rebind: Whether to bind a trainer again.
        force_init: Whether to initialise values again.
        monitor: A `Monitor` that looks into each step.
        batch_end_callback: One function or a list; each gets a `BatchEndParam`, after each step.
        epoch_end_callback: One function or a list; each gets `(epoch, program, params, aux)`.
        eval_end_callback: One function or a list; each gets a `BatchEndParam`, after an epoch's validation.
        callbacks: One of `sm.callbacks`, or a list.
        budget: Most rollouts, or a `sm.Budget`.
        run: A folder, or a `sm.Run`, that keeps every paid result: the same call again resumes.
        durable_rows: As in `sm.evaluate`: each call of a row is kept in the run.
        executor: Another place for rows, such as a `sm.DaskExecutor`; None for this process. An optimizer's models are
            asked from here.

    Returns:
        The History: one dict per epoch.

    Raises:
        TrainerError: No batch, no number of epochs, no callback, nothing to optimise, a budget that is too small.
        DataError: Targets that no output can have or match, or none where the reward needs them; lists all of them.
        EvaluationError: An outage, a broken program or reward; what finished is kept in `run`.
        RunError: The folder is of another run, or in use.

    Source: MXNet's `BaseModule.fit`; differs: budgets, runs that resume, a certified end.
    """
    _check_arguments(num_epoch, begin_epoch, as_list(callbacks))
    metrics = as_list(eval_metric)
    validation_metrics = metrics if validation_metric is None else as_list(validation_metric)
    rows = batches.read_rows(train, eval_data)
    if not trainer.bound or force_rebind:
        first = next(iter(rows[1].values()))
        await trainer.bind(_schemas_of(trainer, first.inputs), _declaration_of(first.target), force_rebind=force_rebind)
    if monitor is not None:
        trainer.install_monitor(monitor)
    if not trainer.params_initialized or force_init:
        await trainer.init_params(initializer, params, aux, allow_missing, force_init=force_init)
    if not trainer.optimizer_initialized or force_init:
        trainer.init_optimizer(optimizer, optimizer_params, force_init=force_init)
    limits = runs.budget_from(budget)
    epochs = None if num_epoch is None else range(begin_epoch, num_epoch)
    fitting = _Fitting(
        trainer,
        _require_optimizer(trainer, num_epoch, limits),
        rows,
        limits,
        epochs,
        begin_epoch,
        executor,
        metrics,
        validation_metrics,
        monitor,
        callbacks=as_list(callbacks),
        batch_end=as_list(batch_end_callback),
        epoch_end=as_list(epoch_end_callback),
        eval_end=as_list(eval_end_callback),
    )
    return await fitting.run(run_from(run, durable_rows), durable_rows)


def _check_arguments(num_epoch: int | None, begin_epoch: int, callbacks: Sequence[Callback]) -> None:
    """Raise TrainerError unless the numbers of epochs and the callbacks are what they must be."""
    for name, number in (("the number of epochs", num_epoch), ("begin_epoch", begin_epoch)):
        if number is not None:
            leaves.check_int(f"fit: {name}", number, 0, error=errors.TrainerError)
    for callback in callbacks:
        expected = "an object such as EarlyStopping()"
        leaves.check_type("fit: each of callbacks", callback, Callback, expected, error=errors.TrainerError)


def _require_optimizer(trainer: Trainer, num_epoch: int | None, limits: runs.Budget) -> Optimizer:
    """Return the optimizer of a trainer; raise TrainerError if it lacks a reward, or if nothing ends the fit."""
    optimizer = trainer.optimizer
    assert optimizer is not None
    check_reward(optimizer, trainer.reward)
    if num_epoch is None and not optimizer.ends and limits == runs.Budget():
        raise errors.TrainerError(
            f"fit: please specify number of epochs, or budget=...; {type(optimizer).__name__} does not end by "
            "itself. It is num_epoch= of a Trainer, epochs= of a Program."
        )
    return optimizer


@dataclass
class _Fitting:
    """One call of `fit`."""

    trainer: Trainer
    optimizer: Optimizer
    rows: batches.Rows
    limits: runs.Budget
    epochs: range | None
    epoch: int
    executor: rollouts.Executor | None
    metrics: Sequence[Any]
    validation_metrics: Sequence[Any]
    monitor: Any
    callbacks: Sequence[Callback]
    batch_end: Sequence[Any]
    epoch_end: Sequence[Any]
    eval_end: Sequence[Any]

    def __post_init__(self) -> None:
        self.batches, train, validation, self.order = self.rows
        splits: dict[Split, dict[str, Example]] = {"train": train, "validation": validation}
        self.examples: dict[Split, dict[str, Example]] = {
            split: dict(zip(of, self.trainer.wrap_rows(of.values()), strict=True)) for split, of in splits.items()
        }
        outputs, metrics = self.trainer.binding.columns.targets.outputs, [*self.metrics, *self.validation_metrics]
        checks = evaluation.target_checks(outputs, self.trainer.reward, metrics_from(metrics))
        for rows in self.examples.values():
            evaluation.check_targets([*rows.values()], checks, self.trainer.reward)
        self.targets = self.trainer.binding.targets_for(self.optimizer)
        self.seed = self._current_state()
        self.history: list[dict[str, Any]] = []
        self.trained = _Tally(self.metrics)
        self.validated: dict[str, _Tally] = {}
        """By fingerprint of the State that was run."""
        self.clock, self.step, self.idle = leaves.current_clock(), 0, 0

    async def run(self, folder: Run | None, durable_rows: bool = False) -> History:
        """Train, in a folder where one is given; what is finished there, with these limits, is returned as it is."""
        trainer, optimizer = self.trainer, self.optimizer
        if optimizer.proposer is not None and not optimizer.proposer.built:
            await module.build(optimizer.proposer, ReflectionInputs)  # what it is made of counts, built or not
        block: Any = nullcontext(Journal())
        if folder is not None:
            rows = {split: list(of.values()) for split, of in self.examples.items()}
            runner = runs.Runner(trainer.program, trainer.reward, trainer.context_pool, seed=self.seed)
            identity = {
                **runner.identity(rows, self.metrics),
                "validation metrics": [*map(runs.describe, self.validation_metrics)],
                "optimizer": runs.describe(optimizer),
                "seed": trainer.seed,
            }
            block = folder.open_journal(identity, self.seed.fingerprint, durable_rows=durable_rows)
        result = f"history/{cache.key_of([asdict(self.limits), repr(self.epochs), self.batches, self.order])}"
        async with block as journal:
            self.journal: Journal = journal
            finished = self._read_finished(await journal.read(result) or {})
            if finished is not None:
                return finished
            history = await self._run()
            if history.stopped != "callback":  # a run that a callback has ended may continue
                await journal.write(result, {**self._values(), "history": history.record()})
            return history

    def _read_finished(self, record: Mapping[str, Any]) -> History | None:
        """Return the History of a run that is over, whose values are held again; None where the record has none."""
        try:
            history = History.of_record(record["history"], self.seed)
            self._write(record)
        except (LookupError, TypeError, ValueError, StopIteration):
            return None
        return history

    async def _run(self) -> History:
        """Take the steps, then finish; a resumed run starts with the values that it began with."""
        for callback in self.callbacks:
            callback.stopped = None
        seed = await self.journal.read("seed")
        if seed is None:
            await self.journal.write("seed", self._values())
        else:
            self._write(seed)
            self.seed = self._current_state()
        functions = [*self.trained.metrics.functions, *Metrics(self.validation_metrics).functions]
        measures = Metrics({id(function): function for function in functions}.values())
        self.bench, self.ledger = self.trainer.open_run(
            self.optimizer, self.examples, self.limits, journal=self.journal, metrics=measures if functions else None
        )
        self._check_budget()
        await self._notify("on_train_begin")
        with self._limit_usage() as self.account:
            async with self.ledger.runner.on(self.executor):
                stopped = await self._steps()
                await self._finish()
        self._warn_of_zeros()
        candidates, best = self.ledger.pool.candidates(), self._current_candidate()
        lines, spent = self.ledger.lines, self.ledger.spent()
        history = History(self.history, candidates=candidates, best=best, lines=lines, spent=spent, stopped=stopped)
        await self._notify("on_train_end")
        return history

    def _current_state(self) -> tree.State:
        """Return the values of the targets as they are."""
        return values_at(self.trainer.program, self.targets)

    def _current_candidate(self) -> Candidate | None:
        """Return the candidate that the program holds; None where it is not one."""
        state = self._current_state()
        return next((candidate for candidate in self.ledger.pool.candidates() if candidate.state == state), None)

    def _warn_of_zeros(self) -> None:
        """Warn where the reward gave its lowest score to all that was run."""
        reward = self.trainer.reward
        done = self.ledger.done.values()
        scored = [rollout for rollout in done if rollout.error is None and rollout.score is not None]
        rows = {rollout.id for rollout in scored}
        if reward is not None and len(rows) > 1 and all(rollout.score == reward.bound().lowest for rollout in scored):
            warn_of_zeros("fit", reward, len(rows), min(scored, key=lambda rollout: rollout.id))

    def _values(self) -> dict[str, Any]:
        """Return what program and optimizer hold."""
        own = tree.state(self.optimizer, tree.OptState)
        return {"program": self._current_state().to_json(), "optimizer": own.to_json()}

    def _write(self, values: Mapping[str, Any]) -> None:
        """Let program and optimizer hold what they held."""
        tree.update(self.trainer.program, values["program"])
        tree.update(self.optimizer, values["optimizer"])

    async def _hold(self, before: tree.State) -> bool:
        """Note what the program holds after a step; return whether it changed."""
        present, ledger = self._current_state(), self.ledger
        ledger.pool.note_current(present, ledger.next_place())
        self._measure()
        if present == before:
            return False
        try:
            await self.journal.write(f"state/{present.fingerprint}", {"step": ledger.step})
        except OSError:
            tree.update(self.trainer.program, before)  # only what the run has noted lets it go on
            raise
        return True

    # -- limits --------------------------------------------------------------------------------------------------------

    def _limit_usage(self) -> AbstractContextManager[scope.Account | None]:
        """Return a block that holds model calls, tokens and dollars to what earlier processes left of them.

        `Runner` holds the time.
        """
        paid = self.journal.usage
        limits = {
            "calls": (self.limits.lm_calls, paid.calls),
            "tokens": (self.limits.tokens, paid.prompt_tokens + paid.completion_tokens),
            "cost_usd": (self.limits.cost_usd, paid.cost_usd or 0.0),
        }
        left: dict[str, Any] = {name: max(0, most - used) for name, (most, used) in limits.items() if most is not None}
        return scope.budget(**left) if left else nullcontext()

    def _check_budget(self) -> None:
        """Raise for a budget that cannot pay one step and the end, and log the plan.

        Raises:
            TrainerError: Names both numbers.
        """
        self.ledger.begin(0, self._batches_of_epoch()[0])
        need, end = self._step_cost(), self.ledger.finish_cost()
        epochs = "until it is done" if self.epochs is None else f"{len(self.epochs)} epochs"
        plan = type(self.optimizer).__name__, epochs, len(self.batches), need, end, self.limits
        _LOG.info("fit: %s, %s of %d batches, a step takes at most %d rollouts, the end %d; budget: %s", *plan)
        if self.limits.rollouts is not None and need + end > self.limits.rollouts:
            raise errors.TrainerError(
                f"fit: the budget of {self.limits.rollouts} rollouts is too small: a step takes up to {need} and the "
                f"end {end}, {need + end} together."
            )

    def _can_pay(self) -> bool:
        """Whether the budget pays another step and the end: rollouts exactly, the rest by what one took on average."""
        ledger, limits, spent = self.ledger, asdict(self.limits), asdict(self.ledger.spent())
        need = self._step_cost()
        ledger.pledge(need)
        share = (need + ledger.finish_cost()) / spent["rollouts"] if spent["rollouts"] else 0.0
        measured_limits = ("lm_calls", "tokens", "cost_usd", "seconds")
        return need <= ledger.room and all(
            limits[name] is None or spent[name] * (1 + share) <= limits[name] for name in measured_limits
        )

    def _step_cost(self) -> int:
        """Return the most rollouts that the next step takes in any case.

        Raises:
            TrainerError: The optimizer returned something else than a count.
        """
        cost = self.optimizer.step_cost(self.bench)
        return leaves.check_int(f"{type(self.optimizer).__name__}.step_cost", cost, 0, error=errors.TrainerError)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _batches_of_epoch(self) -> list[list[str]]:
        """Return the batches of the present epoch."""
        if self.order is None:
            return self.batches
        ids = [*chain(*self.batches)]
        return batches.cut(leaves.rng(self.order, self.epoch, "batches").sample(ids, len(ids)), self.batches)

    async def _steps(self) -> Stopped:
        """Take steps until there is a reason to stop; return it."""
        while self.epochs is None or self.epoch < self.epochs.stop:
            await self._notify("on_epoch_begin")
            began, first = self.clock.now(), self.step
            self.ledger.begin_epoch()
            self.trained = _Tally(self.metrics)
            stopped: Stopped | None = None
            for number, batch in enumerate(self._batches_of_epoch()):
                self.ledger.begin(self.step, batch)
                stopped = "done" if self._is_done() else None if self._can_pay() else "budget"
                stopped = stopped or await self._step(number, batch)
                if stopped:
                    break
            if self.step > first:
                await self._end_epoch(began)
                self.epoch += 1
                stopped = stopped or self._stopped_by_callback()
            if stopped:
                return stopped
        return "epochs"

    def _stopped_by_callback(self) -> Stopped | None:
        """Return why the run ends, if a callback ends it."""
        return "callback" if any(callback.stopped for callback in self.callbacks) else None

    def _count_known(self) -> int:
        """Return how many rollouts, proposals and States of the program there were."""
        return self.ledger.pieces + self.ledger.pool.count_current()

    def _is_done(self) -> bool:
        """Whether the optimizer is done, or has tried nothing new for too long."""
        if self.optimizer.done:
            return True
        is_idle = self.epochs is None and self.idle >= _MOST_IDLE
        if is_idle:
            _LOG.warning(
                "fit ends: the last %d steps of %s had no new State, rollout or proposal. Call self.note(accepted) in "
                "each update, such as self.note(race.won), or override done.",
                self.idle,
                type(self.optimizer).__name__,
            )
        return is_idle

    async def _step(self, number: int, batch: Sequence[str]) -> Stopped | None:
        """Take one step, and notify the callbacks; return why it is the last one, if it is."""
        before, count_before = self._current_state(), self._count_known()
        await leaves.aio.checkpoint()
        if self.monitor is not None:
            self.monitor.tic()
        if not await self._run_optimizer(batch):
            return "budget"
        if self.monitor is not None:
            self.monitor.toc_print()
        changed = await self._hold(before)
        self.idle = 0 if self._count_known() > count_before else self.idle + 1
        self.step += 1
        await _call(self.batch_end, BatchEndParam(self.epoch, number, self.metrics, self.trainer))
        if changed:
            await self._notify("on_candidate")
        await self._notify("on_step_end")
        return self._stopped_by_callback()

    async def _finish(self) -> None:
        """Leave the program with what `finish` of the optimizer returns, or with the best known State at a limit."""
        before = self._current_state()
        self.ledger.begin(self.ledger.step + 1, is_last=True)
        if not await self._run_optimizer(None):
            tree.update(self.trainer.program, await self.bench.best_on_validation(before))
        await self._hold(before)

    async def _run_optimizer(self, batch: Sequence[str] | None) -> bool:
        """Let the optimizer take a step on a batch, or finish if it is None; return whether the budget sufficed.

        Raises:
            BudgetExceeded: A limit around this run was hit, rather than one of its own.
        """
        trainer, bench, feedback = self.trainer, self.bench, {}
        try:
            with trainer.watch_rows():
                if batch is not None and self.optimizer.learns_from_batches:
                    rollouts = await bench.evaluate(self._current_state(), batch, split="train", calls=True)
                    feedback = trainer.feedback = trainer.drop_unrequested(await bench.feedback(rollouts))
                await take_step(trainer.program, self.optimizer, bench, feedback, finish=batch is None)
                self.ledger.check_proposals(type(self.optimizer).__name__)
        except errors.BudgetExceeded as error:
            if error.account not in (None, self.account):
                raise
            return False
        finally:
            self.ledger.end()
        return True

    def _measure(self) -> None:
        """Count what a step has run in the metrics: train rows, and validation rows of the present State."""
        present = self._current_state()
        self.trained.count(self.ledger.train_rollouts())
        tally = self.validated.setdefault(present.fingerprint, _Tally(self.validation_metrics))
        tally.count(self.ledger.pool.validation_rollouts(present))

    # -- what is reported ---------------------------------------------------------------------------------------------

    def _logs(self) -> dict[str, Any]:
        """Return the numbers of the present moment."""
        ledger, pool, present = self.ledger, self.ledger.pool, self._current_state()
        trained, spent = ledger.train_rollouts(), asdict(ledger.spent())
        is_whole = not self.bench.missing(present)
        reward = mean(list(self.bench.scores(present).values()))
        best = next((record.compared for record in pool.best_first() if not pool.missing(record)), None)
        validated = self.validated.get(present.fingerprint) or _Tally(self.validation_metrics)
        measured = {f"val_{name}": value for name, value in validated.results().items()}
        return {
            "epoch": self.epoch,
            "step": ledger.step,
            "reward": mean([rollout.score for rollout in trained if rollout.score is not None]),
            "val_reward": reward if is_whole else None,
            f"val_reward{ESTIMATE}": None if is_whole else reward,
            "best_val_reward": None if best is None else mean(list(best.values())),
            "candidates": len(pool.with_scores()),
            "accepted": sum(line["word"] == "accepted" for line in ledger.lines),
            **{name: spent[name] for name in _SPENT},
            **self.trained.results(),
            **{name: value if is_whole else None for name, value in measured.items()},
            **{f"{name}{ESTIMATE}": None if is_whole else value for name, value in measured.items()},
        }

    async def _end_epoch(self, began: float) -> None:
        """Write a row of the History, log it, and notify the callbacks."""
        seconds = self.clock.now() - began
        numbers = self._logs()
        self.history.append({**numbers, "seconds": seconds, "replayed": self.ledger.is_replaying})
        for name, value in numbers.items():
            if value is not None and name.startswith("val_"):
                _LOG.info("Epoch[%d] Validation-%s=%s", self.epoch, name.removeprefix("val_"), value)
            elif value is not None and name not in _COUNTS:
                _LOG.info("Epoch[%d] Train-%s=%s", self.epoch, name, value)
        _LOG.info("Epoch[%d] Time cost=%.3f", self.epoch, seconds)
        await self._notify("on_epoch_end")
        await _call(self.epoch_end, self.epoch, self.trainer.program, *self.trainer.get_params())
        await _call(self.eval_end, BatchEndParam(self.epoch, 0, self.metrics, self.trainer))

    async def _notify(self, method: str) -> None:
        """Call the callbacks."""
        if not self.callbacks:
            return
        ledger = self.ledger
        candidate = self._current_candidate() if method == "on_candidate" else None
        numbers = ledger.step, self._logs(), ledger.spent(), ledger.is_replaying
        event = TrainingEvent(self.trainer, self.epoch, *numbers, candidate, self.limits.rollouts)
        await _call([getattr(callback, method) for callback in self.callbacks], event)


class _Tally:
    """The metrics of a run over some rollouts, each of which counts once.

    Args:
        metrics: In the forms of `sm.evaluate`.
    """

    def __init__(self, metrics: Iterable[Any]) -> None:
        self.metrics = Metrics(metrics)
        self._counted: set[tuple[str, str, int]] = set()

    def count(self, rollouts: Iterable[rollouts.Rollout]) -> None:
        """Count the rollouts that were not counted before.

        Raises:
            Exception: Any error of a metric.
        """
        for rollout in rollouts:
            key = rollout.candidate, rollout.id, rollout.sample
            if key not in self._counted and rollout.metrics is not None:
                self._counted.add(key)
                self.metrics.update(rollout, rollout.metrics)

    def results(self) -> dict[str, Any]:
        """Return the value of each metric by name; None where no rollout was counted."""
        return {name: value if self._counted else None for name, value in self.metrics.results()[0].items()}


async def _call(functions: Iterable[Any], *args: Any) -> None:
    """Call plain or async functions, in order."""
    for function in functions:
        result = function(*args)
        if inspect.isawaitable(result):
            await result


def _schemas_of(trainer: Trainer, first: Any) -> Any:
    """Return the schemas of the inputs: what the program declares, else those of the first row's inputs.

    Raises:
        TrainerError: Inputs are plain JSON, and the program declares nothing.
    """
    names, declared = trainer.data_names, symbols_by_name(trainer.program)
    row: Any = {names[0]: first} if len(names) == 1 else cast("Any", first) if isinstance(first, Mapping) else {}
    pairs = [(name, _declaration_of(row.get(name)) if declared.get(name) is None else declared[name]) for name in names]
    if any(schema is None for _, schema in pairs):
        raise errors.TrainerError(
            f"fit: {trainer.program.name!r} declares no schema for plain JSON: give data models, or bind it first: "
            "await trainer.bind(Query)."
        )
    return pairs


def _declaration_of(value: Any) -> Any:
    """Return the class or schema of a data model; None of plain JSON."""
    is_model = isinstance(value, data.DataModel | data.JsonDataModel)
    return data.model_of(value) or data.schema_of(value) if is_model else None

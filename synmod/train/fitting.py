"""fit: step by step until the epochs are over, the optimizer is done, or the budget cannot pay another step."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from synmod.cache import key_of
from synmod.data import DataModel, JsonDataModel, model_of, schema_of
from synmod.errors import BudgetExceeded, SynmodWarning, TrainerError
from synmod.flow import leaves
from synmod.leaves import Json, aio, current_clock, rng
from synmod.module import build, declared_inputs, own_inputs_of
from synmod.scope import budget as limit_spending
from synmod.tree import OptState, State, state as state_of, update as write

from . import batches
from .batches import Batches
from .bench import Split
from .callbacks import Callback, Moment, awaited, tell
from .evaluation import Metrics
from .examples import Example
from .history import History
from .optimizer import Optimizer, mean, take_step, values_at
from .proposer import ReflectionInputs
from .rollouts import Executor, Rollout
from .runs import Budget, Journal, Run, budget_from, described, identity_of_run, run_from

if TYPE_CHECKING:
    from .trainer import Trainer

_LOG: Final = logging.getLogger("synmod.train")
Stopped = Literal["done", "epochs", "budget", "callback"]
_MOST_IDLE: Final = 100
"""How many steps in a row may need nothing and change nothing, where no number of epochs ends the run."""


@dataclass(frozen=True, slots=True)
class BatchEndParam:
    """What a batch-end callback gets.

    Attributes:
        epoch: Number of the epoch.
        nbatch: Number of the batch in it.
        eval_metric: The metrics, as they are.
        trainer: What runs.

    Source: MXNet's `BatchEndParam`.
    """

    epoch: int
    nbatch: int
    eval_metric: Any
    trainer: Trainer


@dataclass(slots=True)
class Rows:
    """The rows of a run.

    Attributes:
        batches: Ids of train rows.
        train: All of them, by id.
        validation: Those on which candidates are compared, likewise.
        seed: What the order of each epoch is drawn from; None for the same order in all.
    """

    batches: list[list[str]]
    train: dict[str, Example]
    validation: dict[str, Example]
    seed: int | None = None

    def of_epoch(self, epoch: int) -> list[list[str]]:
        """Return the batches of one epoch."""
        if self.seed is None:
            return self.batches
        order = iter(rng(self.seed, epoch, "batches").sample(sorted(self.train), len(self.train)))
        return [list(islice(order, len(batch))) for batch in self.batches]


def read_rows(train: Any, eval_data: Any) -> Rows:
    """Read the data of a run, once.

    Args:
        train: An iterable of batches.
        eval_data: Batches or rows for validation; None for the train rows, with a warning.

    Raises:
        TrainerError: No batch, an id that is there twice.
    """
    known: dict[str, Example] = {}
    given = [_read(batch, known) for batch in batches.batches_of(train)]
    if not given:
        raise TrainerError("fit: the train data have no batch.")
    validation: dict[str, Example] = {}
    if eval_data is None:
        warnings.warn("There are no validation rows: the train rows serve.", SynmodWarning, stacklevel=4)
    for batch in () if eval_data is None else batches.batches_of(eval_data):
        _read(batch, validation)
    seed = None
    if isinstance(train, Batches) and train.shuffle:  # which have an order of their own each time they are read
        seed, known = train.seed, dict(sorted(known.items()))
    return Rows(given, known, validation or known, seed)


def _read(batch: Any, known: dict[str, Example]) -> list[str]:
    """Add the rows of a batch to those that are known, and return their ids."""
    named: list[str] = []
    for row in map(batches.identified, batches.rows_of(batch)):
        name = cast("str", row.id)
        if batches.content_of(known.setdefault(name, row)) != batches.content_of(row):
            raise TrainerError(f"fit: the id {name!r} is there twice; ids name one row each.")
        named.append(name)
    return named


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
    callbacks: Sequence[Callback] = (),
    budget: Any = None,
    run: Any = None,
    executor: Executor | None = None,
) -> History:
    """Train: bind, initialise, and let the optimizer take a step per batch, until there is a reason to stop.

    What is done already is kept. Data are read once, before the first call; a row without an id has the digest of its
    JSON as id.

    Args:
        trainer: What trains.
        train: Batches, anew in each epoch.
        eval_data: Validation rows, or batches of them; None lets the train rows serve, with a warning.
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
        force_rebind: Whether a trainer that is bound is bound anew.
        force_init: Whether what is initialised is initialised anew.
        monitor: A `Monitor` that looks into each step.
        batch_end_callback: One function or a list; each gets a `BatchEndParam`, after each step.
        epoch_end_callback: One function or a list; each gets `(epoch, program, params, aux)`.
        eval_end_callback: One function or a list; each gets a `BatchEndParam`, after an epoch's validation.
        callbacks: Those of `sm.callbacks`.
        budget: Most rollouts, or a `sm.Budget`.
        run: A folder, or a `sm.Run`, that keeps what is paid for: the same line again resumes.
        executor: Another place for rows, such as a `sm.DaskExecutor`; None for this process. An optimizer's models are
            asked from here.

    Returns:
        The History: one dict per epoch.

    Raises:
        TrainerError: No batch, no number of epochs, nothing to optimise, a budget that is too small.
        EvaluationError: An outage, a broken program or reward; what finished is kept in `run`.
        RunError: The folder is of another run, or in use.

    Source: MXNet's `BaseModule.fit`; differs: budgets, runs that resume, a certified end.
    """
    rows = read_rows(train, eval_data)
    if not trainer.bound or force_rebind:
        await trainer.bind(_schemas_of(trainer, rows), _label_schema(rows), force_rebind=force_rebind)
    if monitor is not None:
        trainer.install_monitor(monitor)
    if not trainer.params_initialized or force_init:
        await trainer.init_params(initializer, params, aux, allow_missing, force_init=force_init)
    if not trainer.optimizer_initialized or force_init:
        trainer.init_optimizer(optimizer, optimizer_params, force_init=force_init)
    assert trainer.optimizer is not None
    limits = budget_from(budget)
    if num_epoch is None and not trainer.optimizer.ends and limits == Budget():
        raise TrainerError(
            "fit: please specify number of epochs: fit(num_epoch=...), or budget=...; "
            f"{type(trainer.optimizer).__name__} does not end by itself."
        )
    fitting = _Fitting(
        trainer, trainer.optimizer, rows, limits, range(begin_epoch, num_epoch) if num_epoch is not None else None,
        listed(eval_metric), listed(eval_metric if validation_metric is None else validation_metric), monitor,
        callbacks, listed(batch_end_callback), listed(epoch_end_callback), listed(eval_end_callback), begin_epoch,
        executor,
    )  # fmt: skip
    return await fitting.run(run_from(run))


@dataclass
class _Fitting:
    """One call of `fit`."""

    trainer: Trainer
    optimizer: Optimizer
    rows: Rows
    limits: Budget
    epochs: range | None
    metrics: Sequence[Any]
    validation_metrics: Sequence[Any]
    monitor: Any
    callbacks: Sequence[Callback]
    batch_end: Sequence[Any]
    epoch_end: Sequence[Any]
    eval_end: Sequence[Any]
    epoch: int
    executor: Executor | None

    def __post_init__(self) -> None:
        self.history, self.journal, self.account = History(), Journal(), None
        splits: dict[Split, dict[str, Example]] = {"train": self.rows.train, "validation": self.rows.validation}
        self.examples: dict[Split, dict[str, Example]] = {
            split: dict(zip(of, self.trainer.wrapped(of.values()), strict=True)) for split, of in splits.items()
        }
        self.targets = self.trainer.targets_of(self.optimizer)
        self.seed = values_at(self.trainer.program, self.targets)
        self.clock, self.idle = current_clock(), 0

    def identity(self) -> dict[str, Json]:
        """Return what a run is of, by name."""
        trainer = self.trainer
        rows = {split: list(of.values()) for split, of in self.examples.items()}
        of = identity_of_run(trainer.program, rows, trainer.reward, self.metrics, trainer.places, self.seed)
        return {**of, "optimizer": described(self.optimizer), "seed": trainer.seed}

    async def run(self, folder: Run | None) -> History:
        """Train, in a folder where one is given; what is finished there is returned as it is."""
        proposer = self.optimizer.proposer
        if proposer is not None and not proposer.built:
            await build(proposer, ReflectionInputs)  # what it is made of counts, built or not
        if folder is None:
            return await self._run()
        nodes = self.trainer.program, self.trainer.reward, self.optimizer
        async with folder.opened(self.identity(), self.seed.fingerprint, *nodes) as self.journal:
            finished = await self._finished()
            return await self._run() if finished is None else finished

    async def _run(self) -> History:
        """Take the steps, then finish."""
        for callback in self.callbacks:
            callback.stopped = None
        await self._begin_from_seed()
        self.bench = self.trainer.bench(
            self.optimizer, self.examples, journal=self.journal, room=self.limits.rollouts, seconds=self.limits.seconds
        )
        self._check_budget()
        await self._tell("on_train_begin")
        with self._limited():
            async with self.bench.on(self.executor):
                self.history.stopped = await self._steps()
                await self._finish()
        self._conclude()
        await self._tell("on_train_end")
        await self._keep_finished()
        return self.history

    # -- what stands in the journal beside rollouts and proposals ------------------------------------------------------

    async def _begin_from_seed(self) -> None:
        """Let a resumed run start where it began: with the values that program and optimizer had then."""
        entry = await self.journal.read("seed")
        if entry is None:
            await self.journal.write("seed", self._values())
        else:
            self._write(entry)
            self.seed = values_at(self.trainer.program, self.targets)

    def _values(self) -> dict[str, Any]:
        """Return what program and optimizer hold."""
        present = values_at(self.trainer.program, self.targets)
        return {"program": present.to_json(), "optimizer": state_of(self.optimizer, OptState).to_json()}

    def _write(self, values: Mapping[str, Any]) -> None:
        """Let program and optimizer hold what they held."""
        write(self.trainer.program, values["program"])
        write(self.optimizer, values["optimizer"])

    async def _hold(self, before: State) -> bool:
        """Note what the program holds after a step; return whether it changed."""
        present = self.bench.present()
        self.bench.hold(present)
        if present == before:
            return False
        try:
            await self.journal.write(f"state/{present.fingerprint}", {"step": self.bench.step})
        except OSError:
            write(self.trainer.program, before)  # only what the run has noted lets it go on
            raise
        return True

    def _key_of_finished(self) -> str:
        """Return where the result stands: with other limits the same run goes on."""
        epochs = None if self.epochs is None else [self.epochs.start, self.epochs.stop]
        return f"history/{key_of([asdict(self.limits), epochs])}"

    async def _finished(self) -> History | None:
        """Return the History of a run that has ended, and let the program hold what it held then."""
        entry = await self.journal.read(self._key_of_finished())
        if entry is None:
            return None
        self._write(entry)
        return History.of_record(entry["history"], self.seed)

    async def _keep_finished(self) -> None:
        """Record the result; what a callback has ended is decided anew."""
        if self.journal.is_kept and self.history.stopped != "callback":
            entry = {**self._values(), "history": self.history.record()}
            await self.journal.write(self._key_of_finished(), entry)

    # -- steps ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _limited(self) -> Generator[None]:
        """Hold model calls, tokens and dollars to what earlier processes left of them; `Runner` holds the time."""
        paid = self.journal.usage
        tokens = paid.prompt_tokens + paid.completion_tokens
        taken = {"calls": paid.calls, "tokens": tokens, "cost_usd": paid.cost_usd or 0.0}
        limits = {"calls": self.limits.lm_calls, "tokens": self.limits.tokens, "cost_usd": self.limits.cost_usd}
        left: dict[str, Any] = {
            name: max(0, limit - taken[name]) for name, limit in limits.items() if limit is not None
        }
        if not left:
            yield
            return
        with limit_spending(**left) as self.account:
            yield

    def _is_own(self, error: BudgetExceeded) -> bool:
        """Whether a limit of this run was hit, rather than one around it."""
        return error.account is None or error.account is self.account

    def _check_budget(self) -> None:
        """Raise for a budget that cannot pay one step and the end, and log the plan.

        Raises:
            TrainerError: Names both numbers.
        """
        bench = self.bench
        bench.begin(0, self.rows.of_epoch(self.epoch)[0])
        need, end = self.optimizer.step_cost(bench), bench.finish_cost()
        epochs = "until it is done" if self.epochs is None else f"{len(self.epochs)} epochs"
        _LOG.info(
            "fit: %s, %s of %d batches, a step takes at most %d rollouts, the end %d; budget: %s",
            type(self.optimizer).__name__, epochs, len(self.rows.batches), need, end, self.limits,
        )  # fmt: skip
        if self.limits.rollouts is not None and need + end > self.limits.rollouts:
            raise TrainerError(
                f"fit: the budget of {self.limits.rollouts} rollouts is too small: a step takes up to {need} and the "
                f"end {end}, {need + end} together."
            )

    async def _steps(self) -> Stopped:
        """Take steps until there is a reason to stop; return it."""
        step = 0
        while self.epochs is None or self.epoch < self.epochs.stop:
            await self._tell("on_epoch_begin")
            began, first = self.clock.now(), step
            self.bench.begin_epoch()
            stopped: Stopped | None = None
            for number, batch in enumerate(self.rows.of_epoch(self.epoch)):
                self.bench.begin(step, batch)
                stopped = self._reason_to_stop() or await self._step(number, batch)
                if stopped in ("done", "budget"):
                    break
                step += 1
                if stopped:
                    break
            if step > first:
                await self._end_epoch(began)
                self.epoch += 1
                stopped = stopped or self._told_to_stop()
            if stopped:
                return stopped
        return "epochs"

    def _reason_to_stop(self) -> Stopped | None:
        """Return why the next step is not taken; None if it is."""
        if self.optimizer.done or (self.epochs is None and self.idle >= _MOST_IDLE):
            return "done"
        if self.optimizer.step_cost(self.bench) + self.bench.finish_cost() > self.bench.room:
            return "budget"
        return None

    async def _step(self, number: int, batch: Sequence[str]) -> Stopped | None:
        """Take one step, and tell of it; return why it is the last one, if it is."""
        trainer, bench, feedback = self.trainer, self.bench, {}
        before, pieces = bench.present(), bench.pieces
        await aio.checkpoint()
        if self.monitor is not None:
            self.monitor.tic()
        try:
            with trainer.watching():
                if self.optimizer.learns_from_batches:
                    rollouts = await bench.evaluate(before, batch, split="train", calls=True)
                    feedback = trainer.feedback = await bench.feedback(rollouts)
                await take_step(trainer.program, self.optimizer, bench, feedback)
        except BudgetExceeded as error:
            if not self._is_own(error):
                raise
            return "budget"
        finally:
            bench.end()
        if self.monitor is not None:
            self.monitor.toc_print()
        changed = await self._hold(before)
        self.idle = 0 if changed or bench.pieces > pieces else self.idle + 1
        for callback in self.batch_end:
            await awaited(callback(BatchEndParam(self.epoch, number, self.metrics, trainer)))
        if changed:
            await self._tell("on_candidate")
        await self._tell("on_step_end")
        return self._told_to_stop()

    def _told_to_stop(self) -> Stopped | None:
        """Return whether a callback ends the run."""
        return "callback" if any(callback.stopped for callback in self.callbacks) else None

    async def _finish(self) -> None:
        """Leave the program with what the optimizer says at the end, or with the best that is known at a limit."""
        bench, before = self.bench, self.bench.present()
        bench.begin(bench.step + 1)
        try:
            await take_step(self.trainer.program, self.optimizer, bench, {}, finish=True)
        except BudgetExceeded as error:
            if not self._is_own(error):
                raise
            write(self.trainer.program, await bench.certified(before))
        finally:
            bench.end()
        await self._hold(before)

    # -- what is told -------------------------------------------------------------------------------------------------

    async def _logs(self) -> dict[str, Any]:
        """Return the numbers of the present moment."""
        bench = self.bench
        present = self.bench.present()
        best, trained, spent = bench.ranking()[:1], bench.trained(), bench.spent()
        return {
            "epoch": self.epoch,
            "step": bench.step,
            "reward": mean([rollout.score for rollout in trained if rollout.score is not None]),
            "val_reward": mean(list(bench.scores(present).values())),
            "best_val_reward": mean(list(best[0].compared.values())) if best else None,
            "candidates": bench.tried,
            "accepted": sum(line["word"] == "accepted" for line in bench.lines),
            "rollouts": spent.rollouts,
            "lm_calls": spent.lm_calls,
            "tokens": spent.tokens,
            "cost_usd": spent.cost_usd,
            **await self._measured("", trained, self.metrics),
            **await self._measured("val_", bench.rollouts_of(present), self.validation_metrics),
        }

    async def _measured(self, prefix: str, rollouts: Sequence[Rollout], wanted: Sequence[Any]) -> dict[str, Any]:
        """Return the metrics over rows that the present State has been run on."""
        if not wanted or not rollouts:
            return {}
        metrics = Metrics(wanted)
        for rollout in rollouts:
            offered = {"inputs": rollout.inputs, "outputs": rollout.outputs, "target": rollout.target,
                       "example_id": rollout.id, "extra": dict[str, Any](), "calls": ()}  # fmt: skip
            metrics.update(rollout, {} if rollout.error else await metrics.measure(offered))
        return {f"{prefix}{name}": value for name, value in metrics.results()[0].items()}

    async def _end_epoch(self, began: float) -> None:
        """Write a row of the History, log it, and tell the callbacks."""
        seconds = self.clock.now() - began
        row = {**await self._logs(), "seconds": seconds, "replayed": self.bench.is_replaying}
        self.history.append(row)
        for name, value in row.items():
            if value is not None and name == "reward":
                _LOG.info("Epoch[%d] Train-reward=%f", self.epoch, value)
            elif value is not None and name.startswith("val_"):
                _LOG.info("Epoch[%d] Validation-%s=%s", self.epoch, name.removeprefix("val_"), value)
        _LOG.info("Epoch[%d] Time cost=%.3f", self.epoch, seconds)
        await self._tell("on_epoch_end")
        params, aux = self.trainer.get_params()
        for callback in self.epoch_end:
            await awaited(callback(self.epoch, self.trainer.program, params, aux))
        for callback in self.eval_end:
            await awaited(callback(BatchEndParam(self.epoch, 0, self.metrics, self.trainer)))

    async def _tell(self, method: str) -> None:
        """Call the callbacks."""
        if not self.callbacks:
            return
        bench, candidate = self.bench, None
        if method == "on_candidate":
            present = bench.present()
            candidate = next((each for each in bench.candidates() if each.state == present), None)
        moment = Moment(
            self.trainer, self.epoch, bench.step, await self._logs(), bench.spent(), bench.is_replaying, candidate,
            self.limits.rollouts,
        )  # fmt: skip
        await tell(self.callbacks, method, moment)

    def _conclude(self) -> None:
        """Complete the History."""
        history, present = self.history, self.bench.present()
        history.candidates = self.bench.candidates()
        history.best = next((each for each in history.candidates if each.state == present), history.candidates[0])
        history.lines = tuple(self.bench.lines)
        history.spent = self.bench.spent()


def listed(given: Any) -> list[Any]:
    """Return one or several callbacks as a list."""
    return [] if given is None else list(cast("Iterable[Any]", given)) if isinstance(given, list | tuple) else [given]


def _schemas_of(trainer: Trainer, rows: Rows) -> Any:
    """Return the schemas of the inputs: what the program declares, else those of the first row."""
    program, names = trainer.program, trainer.data_names
    declared, first = declared_inputs(program), next(iter(rows.train.values())).inputs
    if own_inputs_of(program):
        return list(zip(names, leaves(declared), strict=True))
    if len(names) == 1:
        return [(names[0], _declared(first, declared, trainer))]
    return [(name, _declared(first[name], None, trainer)) for name in names]


def _declared(value: Any, declared: Any, trainer: Trainer) -> Any:
    """Return the declaration of one input.

    Raises:
        TrainerError: It is plain JSON, and the program declares nothing.
    """
    if isinstance(value, DataModel | JsonDataModel):
        return model_of(value) or schema_of(value)
    if declared is None:
        raise TrainerError(
            f"fit: {trainer.program.name!r} declares no schema for plain JSON: give data models, or bind it first: "
            "await trainer.bind(Query)."
        )
    return declared


def _label_schema(rows: Rows) -> Any:
    """Return the declaration of the targets, where they are data models."""
    target = next(iter(rows.train.values())).target
    return model_of(target) or schema_of(target) if isinstance(target, DataModel | JsonDataModel) else None

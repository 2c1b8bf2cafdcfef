"""fit: step by step until the epochs are over, the optimizer is done, or the budget cannot pay another step."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from synmod.cache import Cache, key_of
from synmod.data import DataModel, JsonDataModel, model_of, schema_of
from synmod.errors import BudgetExceeded, DeadlineExceeded, SynmodWarning, TrainerError
from synmod.flow import leaves
from synmod.leaves.aio import current_clock
from synmod.leaves.frozen import Json
from synmod.lm import models_in_force
from synmod.module import declared_inputs, own_inputs_of
from synmod.scope import budget as limit_spending, deadline, is_of_block_around
from synmod.tree import OptState, State, graphdef, state as state_of, update as write

from .batches import Batch, identified, rows_of
from .bench import Bench, Split
from .binding import wrapped
from .callbacks import Callback, Moment, tell
from .evaluation import Metrics
from .examples import Example, as_json
from .history import Budget, History, budget_from
from .optimizer import Optimizer, mean
from .rollouts import Rollout
from .runs import identity_of, name_of, run_from

if TYPE_CHECKING:
    from .trainer import Trainer

_LOG: Final = logging.getLogger("synmod.train")
Stopped = Literal["done", "epochs", "budget", "callback"]


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
    """The rows of a run: batches of train rows, and all rows by id."""

    batches: list[list[str]]
    train: dict[str, Example]
    validation: dict[str, Example]


def read_rows(train: Any, eval_data: Any) -> Rows:
    """Read the data of a run, once.

    Args:
        train: An iterable of batches.
        eval_data: Batches or rows for validation; None for the train rows, with a warning.

    Raises:
        TrainerError: No batch, an id that is there twice.
    """
    known: dict[str, Example] = {}
    batches = [_read(rows_of(batch), known) for batch in train]
    if not batches:
        raise TrainerError("fit: the train data have no batch.")
    validation: dict[str, Example] = {}
    if eval_data is None:
        warnings.warn("There are no validation rows: the train rows serve.", SynmodWarning, stacklevel=4)
        validation = known
    else:
        for each in eval_data:
            _read(rows_of(each) if hasattr(each, "data") else rows_of(Batch([each])), validation)
    return Rows(batches, known, validation or known)


def _read(rows: Iterable[Example], known: dict[str, Example]) -> list[str]:
    """Add rows to those that are known, and return their ids."""
    named = identified(rows, known)
    known.update((cast("str", row.id), row) for row in named)
    return [cast("str", row.id) for row in named]


async def fit(
    trainer: Trainer,
    train: Any,
    *,
    eval_data: Any = None,
    eval_metric: Any = None,
    validation_metric: Any = None,  # noqa: ARG001  # MXNet's word; the metrics are those of both
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
) -> History:
    """Train; see `Trainer.fit`."""
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
        trainer,
        rows,
        limits,
        metrics=listed(eval_metric),
        epochs=range(begin_epoch, num_epoch) if num_epoch is not None else None,
        begin=begin_epoch,
        monitor=monitor,
        callbacks=callbacks,
        batch_end=listed(batch_end_callback),
        epoch_end=listed(epoch_end_callback),
        eval_end=listed(eval_end_callback),
    )
    folder = run_from(run)
    if folder is None:
        return await fitting.run(None)
    with folder.opened(fitting.identity(), fitting.seed.fingerprint) as journal:
        return await fitting.run(journal)


class _Fitting:
    """One call of `fit`."""

    def __init__(
        self,
        trainer: Trainer,
        rows: Rows,
        limits: Budget,
        *,
        metrics: Sequence[Any],
        epochs: range | None,
        begin: int,
        monitor: Any,
        callbacks: Sequence[Callback],
        batch_end: Sequence[Any],
        epoch_end: Sequence[Any],
        eval_end: Sequence[Any],
    ) -> None:
        assert trainer.optimizer is not None
        self.trainer, self.rows, self.limits = trainer, rows, limits
        self.optimizer: Optimizer = trainer.optimizer
        self.metrics, self.epochs, self.monitor = metrics, epochs, monitor
        self.callbacks, self.batch_end, self.epoch_end, self.eval_end = callbacks, batch_end, epoch_end, eval_end
        self.epoch = begin
        self.history = History()
        self.replayed_from: int | None = None
        data = trainer.inputs
        self.examples: dict[Split, dict[str, Example]] = {
            "train": {key: wrapped(row, data) for key, row in rows.train.items()},
            "validation": {key: wrapped(row, data) for key, row in rows.validation.items()},
        }
        self.targets = trainer.targets_of(self.optimizer)
        self.seed = trainer.params_state(self.targets)
        self.clock = current_clock()
        self.started = self.clock.now()

    def identity(self) -> dict[str, Json]:
        """Return what a run is of, by name."""
        trainer, optimizer = self.trainer, self.optimizer
        others = state_of(trainer.program)
        others = State.of_leaves({path: leaf for path, leaf in others.items() if path not in self.seed})
        rows = [
            [split, key, as_json([row.inputs, row.target, dict(row.extra), row.group])]
            for split, of in self.examples.items()
            for key, row in of.items()
        ]
        return {
            "program": graphdef(trainer.program).fingerprint_with(name_of),
            "fixed values": others.fingerprint,
            "data": key_of({"rows": rows}),
            "reward": None if trainer.reward is None else key_of({"reward": identity_of(trainer.reward)}),
            "metrics": [type(metric).__name__ for metric in self.metrics],
            "optimizer": f"{type(optimizer).__name__} {graphdef(optimizer).fingerprint_with(name_of)}",
            "seed": trainer.seed,
            "models": [models_in_force(), [str(context.language_model) for context in trainer.places.contexts]],
        }

    async def run(self, journal: Cache | None) -> History:
        """Take the steps, then finish."""
        await self._begin_from_seed(journal)
        bench = self.trainer.bench(self.optimizer, self.examples, journal=journal, room=self.limits.rollouts)
        self.replays = journal is not None and any(not key.startswith(("state/", "seed")) for key, _ in journal.items())
        self._check_budget(bench)
        await self._tell("on_train_begin", bench)
        with ExitStack() as blocks:
            self._limit(blocks)
            stopped = await self._steps(bench, journal)
            await self._finish(bench, journal)
        self.history.stopped = stopped
        self._conclude(bench)
        await self._tell("on_train_end", bench)
        return self.history

    async def _begin_from_seed(self, journal: Cache | None) -> None:
        """Let a resumed run start where it began: with the values that program and optimizer had then."""
        if journal is None:
            return
        own = state_of(self.optimizer, OptState)
        entry = await journal.find("seed")
        if entry is None:
            await journal.keep("seed", {"program": self.seed.to_json(), "optimizer": own.to_json()})
            return
        write(self.trainer.program, entry["program"])
        write(self.optimizer, entry["optimizer"])
        self.seed = self.trainer.params_state(self.targets)

    def _limit(self, blocks: ExitStack) -> None:
        """Open the limits of model calls, tokens, dollars and time around the run."""
        limits = self.limits
        if (limits.lm_calls, limits.tokens, limits.cost_usd) != (None, None, None):
            blocks.enter_context(limit_spending(limits.lm_calls, limits.tokens, limits.cost_usd))
        if limits.seconds is not None:
            blocks.enter_context(deadline(limits.seconds))

    def _check_budget(self, bench: Bench) -> None:
        """Raise for a budget that cannot pay one step and the end, and log the plan.

        Raises:
            TrainerError: Names both numbers.
        """
        bench.begin(0, self.rows.batches[0])
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

    async def _steps(self, bench: Bench, journal: Cache | None) -> Stopped:
        """Take steps until there is a reason to stop; return it."""
        step = 0
        while self.epochs is None or self.epoch < self.epochs.stop:
            await self._tell("on_epoch_begin", bench)
            began, before = self.clock.now(), step
            stopped: Stopped | None = None
            for number, batch in enumerate(self._batches()):
                bench.begin(step, batch)
                if self.optimizer.done:
                    stopped = "done"
                elif self.optimizer.step_cost(bench) + bench.finish_cost() > bench.room:
                    stopped = "budget"
                if stopped:
                    break
                try:
                    changed = await self._step(bench, batch)
                except (BudgetExceeded, DeadlineExceeded) as error:
                    if not _ends_the_run(error):
                        raise
                    stopped = "budget"
                    break
                finally:
                    bench.end()
                step += 1
                await self._after_step(bench, journal, number, changed)
                if any(callback.stopped for callback in self.callbacks):
                    stopped = "callback"
                    break
            if step > before:
                await self._end_epoch(bench, began)
                self.epoch += 1
            if stopped:
                return stopped
        return "epochs"

    def _batches(self) -> Sequence[Sequence[str]]:
        """Return the batches of the present epoch, as ids."""
        return self.rows.batches

    async def _step(self, bench: Bench, batch: Sequence[str]) -> bool:
        """Take one step; return whether the program changed."""
        trainer, feedback = self.trainer, {}
        if self.monitor is not None:
            self.monitor.tic()
        if self.optimizer.learns_from_batches:
            present = trainer.params_state(self.targets)
            rollouts = await bench.evaluate(present, batch, split="train", calls=True)
            feedback = await bench.feedback(rollouts)
            trainer.feedback = feedback
        changed = await trainer.step(self.optimizer, bench, feedback)
        if self.monitor is not None:
            self.monitor.toc_print()
        return bool(changed)

    async def _after_step(self, bench: Bench, journal: Cache | None, number: int, changed: bool) -> None:
        """Note what the program holds now, and tell the callbacks."""
        present = self.trainer.params_state(self.targets)
        bench.candidate(present)
        if journal is not None and changed:
            await journal.keep(f"state/{present.fingerprint}", {"step": bench.step})
        for callback in self.batch_end:
            await _awaited(callback(BatchEndParam(self.epoch, number, self.metrics, self.trainer)))
        if changed:
            await self._tell("on_candidate", bench)
        await self._tell("on_step_end", bench)

    async def _finish(self, bench: Bench, journal: Cache | None) -> None:
        """Leave the program with what the optimizer says at the end."""
        bench.begin(bench.step + 1)
        try:
            await self.trainer.step(self.optimizer, bench, {}, finish=True)
        finally:
            bench.end()
        if journal is not None:
            present = self.trainer.params_state(self.targets)
            await journal.keep(f"state/{present.fingerprint}", {"step": bench.step})

    # -- what is told -------------------------------------------------------------------------------------------------

    def _spent(self, bench: Bench) -> Budget:
        """Return what the run took so far."""
        usage = bench.usage
        tokens = usage.prompt_tokens + usage.completion_tokens
        return Budget(bench.rollouts, usage.calls, tokens, usage.cost_usd, self.clock.now() - self.started)

    def _is_replaying(self, bench: Bench) -> bool:
        """Whether the run has paid for nothing yet, and did before."""
        return self.replays and not bench.is_live

    async def _logs(self, bench: Bench) -> dict[str, Any]:
        """Return the numbers of the present moment."""
        present = self.trainer.params_state(self.targets)
        best = bench.ranking()[:1]
        spent = self._spent(bench)
        return {
            "epoch": self.epoch,
            "step": bench.step,
            "reward": mean([score for row in bench.rollouts_of(present, "train") if (score := row.score) is not None]),
            "val_reward": mean(list(bench.scores(present).values())),
            "best_val_reward": mean(list(best[0].means().values())) if best else None,
            "candidates": len(bench.candidates()),
            "accepted": sum(line["word"] == "accepted" for line in bench.lines),
            "rollouts": spent.rollouts,
            "lm_calls": spent.lm_calls,
            "tokens": spent.tokens,
            "cost_usd": spent.cost_usd,
            **await self._measured("", bench.rollouts_of(present, "train")),
            **await self._measured("val_", bench.rollouts_of(present)),
        }

    async def _measured(self, prefix: str, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """Return the metrics over rows that the present State has been run on."""
        if not self.metrics or not rollouts:
            return {}
        metrics = Metrics(self.metrics)
        for rollout in rollouts:
            offered = {"inputs": rollout.inputs, "outputs": rollout.outputs, "target": rollout.target,
                       "example_id": rollout.id, "extra": dict[str, Any](), "calls": rollout.calls}  # fmt: skip
            metrics.update(rollout, {} if rollout.error else await metrics.measure(offered))
        return {f"{prefix}{name}": value for name, value in metrics.results()[0].items()}

    async def _end_epoch(self, bench: Bench, began: float) -> None:
        """Write a row of the History, log it, and tell the callbacks."""
        seconds = self.clock.now() - began
        row = {**await self._logs(bench), "seconds": seconds, "replayed": self._is_replaying(bench)}
        self.history.append(row)
        for name, value in row.items():
            if value is not None and name == "reward":
                _LOG.info("Epoch[%d] Train-reward=%f", self.epoch, value)
            elif value is not None and name.startswith("val_"):
                _LOG.info("Epoch[%d] Validation-%s=%s", self.epoch, name.removeprefix("val_"), value)
        _LOG.info("Epoch[%d] Time cost=%.3f", self.epoch, seconds)
        await self._tell("on_epoch_end", bench)
        params, aux = self.trainer.get_params()
        for callback in self.epoch_end:
            await _awaited(callback(self.epoch, self.trainer.program, params, aux))
        for callback in self.eval_end:
            await _awaited(callback(BatchEndParam(self.epoch, 0, self.metrics, self.trainer)))

    async def _tell(self, method: str, bench: Bench) -> None:
        """Call the callbacks."""
        if not self.callbacks:
            return
        candidate = None
        if method == "on_candidate":
            present = self.trainer.params_state(self.targets)
            candidate = next((each for each in bench.candidates() if each.state == present), None)
        moment = Moment(
            self.trainer, self.epoch, bench.step, await self._logs(bench), self._spent(bench),
            self._is_replaying(bench), candidate, self.limits.rollouts,
        )  # fmt: skip
        await tell(self.callbacks, method, moment)

    def _conclude(self, bench: Bench) -> None:
        """Complete the History."""
        history = self.history
        present = self.trainer.params_state(self.targets)
        history.candidates = bench.candidates()
        history.best = next((each for each in history.candidates if each.state == present), history.candidates[0])
        history.lines = tuple(bench.lines)
        history.spent = self._spent(bench)


def _ends_the_run(error: BaseException) -> bool:
    """Whether a limit of this run was hit, rather than one around it."""
    return not isinstance(error, BudgetExceeded) or error.account is None or is_of_block_around(error)


def listed(given: Any) -> list[Any]:
    """Return one or several callbacks as a list."""
    return [] if given is None else list(cast("Iterable[Any]", given)) if isinstance(given, list | tuple) else [given]


async def _awaited(result: Any) -> None:
    """Wait for what a callback returned, if it is async."""
    if isawaitable(result):
        await result


def _schemas_of(trainer: Trainer, rows: Rows) -> Any:
    """Return the schemas of the inputs: what the program declares, else those of the first row."""
    program = trainer.program
    first = next(iter(rows.train.values())).inputs
    if own_inputs_of(program):
        declared = leaves(declared_inputs(program))
        return list(zip(trainer.data_names, declared, strict=True))
    declared = declared_inputs(program)
    if len(trainer.data_names) == 1:
        return [(trainer.data_names[0], _declared(first, declared, trainer))]
    return [(name, _declared(first[name], None, trainer)) for name in trainer.data_names]


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

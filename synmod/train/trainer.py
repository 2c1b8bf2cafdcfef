"""The Trainer: drives one program through its life cycle. Values live once, in the program.

One table has what each method needs, and one decorator reads it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal, Self, cast

from synmod import data, flow, leaves, lm, scope, tree
from synmod.errors import SynmodWarning, TrainerError
from synmod.module import Module, build_and_check
from synmod.tree import State

from . import batches, binding, callbacks, checkpoints, evaluation, fitting, runs
from .bench import Bench
from .binding import Lifecycle, as_list, done, needs_its_steps
from .candidates import ExamplesBySplit, Ledger
from .credit import FeedbackItem, Routing
from .metrics import row_feeder
from .optimizer import Optimizer, optimizer_from, take_step, values_at
from .rewards import Reward, reward_from
from .rollouts import Rollout, RunOutcome
from .rows import Columns, Example


class Trainer:
    """Drives a program: fixes the schemas of its data, runs batches, routes feedback, and trains it by an optimizer.

    Args:
        program: Any module.
        reward: Judges each row: a Reward, a function, or a registered name; None for feedback from elsewhere.
        data_names: The program's inputs; read from the program where left out.
        label_names: The fields of the target that the reward needs.
        context: Where rows run: a `Context` or a list of them; None for here.
        work_load_list: Shares of a batch of `forward`, one per context; without it, and in whole runs, rows go to
            whichever context is free.
        fixed_param_names: Paths, globs or filters of Variables that are not trained.
        state_names: The same for Variables that are reset for each row; a `Memory` always is.
        seed: The seed of every random choice.
        concurrency: How many rows run at once in a context without a limit of its own; None for 64, or 10,000 if a
            model has batch jobs, which rows that wait together share.

    Attributes:
        binding: The schemas and classes that `bind` has fixed.
        feedback: The feedback that the last `backward` routed to each param, by path text.
        steps: The steps done, which methods need.
        unmatched: The paths of saved values that `load(strict=False)` left out.

    Raises:
        TrainerError: An unknown name, another number of work loads than contexts, a seed that is not a whole number.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> async def main(trainer):
        ...     await trainer.bind(Query)
        ...     return trainer.lifecycle
        >>> sm.run(main, Trainer(sm.Identity()))
        ('bind',)

    Source: MXNet's `Module`; differs: a wrong order is explained, flags turn last, files are JSON.
    """

    @leaves.checks_keywords
    def __init__(
        self,
        program: Module,
        *,
        reward: Any = None,
        data_names: Sequence[str] | None = None,
        label_names: Sequence[str] = (),
        context: batches.Context | Sequence[batches.Context] | None = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Any = (),
        state_names: Any = (),
        seed: int = 0,
        concurrency: int | None = None,
    ) -> None:
        leaves.check_type("Trainer: the program", program, Module, "a module", error=TrainerError)
        self._program = program
        self.reward: Reward | None = None if reward is None else reward_from(reward)
        self.data_names = binding.check_data_names(program, data_names)
        self.label_names = as_list(label_names)
        self.seed = leaves.check_int("Trainer: seed", seed, None, error=TrainerError)
        self.feedback: dict[str, tuple[FeedbackItem, ...]] = {}
        self.unmatched: tuple[str, ...] = ()
        self.optimizer: Optimizer | None = None
        contexts = as_list(context) or [batches.Context("local")]
        self.context_pool = batches.ContextPool(contexts, concurrency, work_load_list)
        self._fixed, self._state_names, self._updates = fixed_param_names, state_names, 0
        self._bound_reward = None if self.reward is None else self.reward.bound()
        self._asks_target = self._bound_reward is not None and "target" in self._bound_reward.asks_for
        self.steps, self.binding = Lifecycle(), binding.Binding(program)
        self._initial_states = self._initial_values = State()
        self._states: State | list[State] = State()
        self._rows: list[Example] = []
        self._outcomes: list[RunOutcome] = []
        self._seen_rows: dict[str, Example] = {}
        self._manual_run: tuple[Bench, Ledger] | None = None
        self._input_feedback: list[scope.Feedback] = []
        self._monitors: list[callbacks.Monitor] = []
        self._optimizer_states: checkpoints.Stored | None = None

    def __repr__(self) -> str:
        return f"Trainer({self.program.name!r}, lifecycle={self.lifecycle})"

    # -- what was done ------------------------------------------------------------------------------------------------

    @property
    def program(self) -> Module:
        """The program."""
        return self._program

    @property
    def lifecycle(self) -> tuple[str, ...]:
        """The steps done, in order."""
        return self.steps.names

    bound = done("bind", "Whether the schemas are fixed and the program is built.")
    for_training = done("bind for training", "Whether calls are recorded for `backward`.")
    inputs_need_grad = done("inputs_need_grad", "Whether the inputs get feedback too.")
    params_initialized = done("init_params", "Whether the parameters have their values.")
    optimizer_initialized = done("init_optimizer", "Whether there is an optimizer.")

    @property
    @needs_its_steps
    def data_schemas(self) -> list[tuple[str, Any]]:
        """`(name, schema)` of each input."""
        return [(name, data.schema_of(symbol)) for name, symbol in self.binding.inputs]

    @property
    @needs_its_steps
    def label_schemas(self) -> list[tuple[str, Any]]:
        """`(name, schema)` of the target; empty where none was bound."""
        return [] if self.binding.labels is None else [("label", self.binding.labels)]

    @property
    @needs_its_steps
    def output_schemas(self) -> list[tuple[str, Any]]:
        """`(name, schema)` of each output."""
        return list(self.binding.outputs)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs; empty before `bind`."""
        return [name for name, _ in self.binding.outputs]

    # -- bind ---------------------------------------------------------------------------------------------------------

    @needs_its_steps
    async def bind(
        self,
        data_schemas: Any,
        label_schemas: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Trainer | None = None,
        grad_req: str | Sequence[str] | Mapping[str, str] = "write",
    ) -> None:
        """Build the program on symbols, and fix what is trained; no model is called. All or nothing.

        Args:
            data_schemas: A data model, a JSON schema, or a list of `(name, schema)`.
            label_schemas: The schema of a target.
            for_training: Whether calls are recorded for `backward`.
            inputs_need_grad: Whether the inputs get feedback too.
            force_rebind: Whether to bind again; values and optimizer stay.
            shared_module: A trainer whose program's Variables become this program's, by path.
            grad_req: How feedback is kept: `"write"` keeps that of the last `backward`, `"add"` collects it until
                `update`, `"null"` takes none; one for all, a list in the order of params, or a dict by path or glob.

        Raises:
            TrainerError: Names that differ, a mask or request that names nothing, feedback for inputs without training.
            SchemaError: Schemas that do not fit.
            StateError: `shared_module` has other paths or schemas.
            SkipVerifyError: The skip connections do not match.
        """
        if self.bound and not force_rebind:
            _warn("Already bound: bind(force_rebind=True) binds anew.")
            return
        if inputs_need_grad and not for_training:
            raise TrainerError("inputs_need_grad needs for_training=True: nothing is recorded otherwise.")
        if shared_module is not None:
            leaves.check_type("shared_module", shared_module, Trainer, "the other Trainer", error=TrainerError)
            shared_module.steps.check("shared_module")
        inputs = binding.schemas_by_name(data_schemas, self.data_names)
        labels = None if label_schemas is None else data.declare(label_schemas)

        def plan(outputs: Any) -> binding.Binding:
            schemas = binding.output_schemas(outputs)
            if self.reward is not None:
                self.reward.target_check(outputs)
                if labels is not None:
                    self.reward.check_labels(outputs, labels)
                binding.warn_of_unasked(self.label_names, labels, self._asks_target)
            if shared_module is not None:
                binding.check_shared(self.program, shared_module.program)
            roles = binding.roles_of(self.program, self._fixed, self._state_names)
            requests = binding.requests_of(grad_req, [path for path in roles if roles[path] == "param"])
            columns = Columns(self.program, outputs, symbols=dict(inputs))
            return binding.Binding(self.program, inputs, labels, schemas, roles, requests, None, columns)

        bound = await build_and_check(plan, self.program, binding.arguments(self.program, dict(inputs)))
        if shared_module is not None:
            tree.share_variables(self.program, dict(tree.iter_graph(shared_module.program, tree.Variable)))
        self.binding = replace(bound, routing=Routing(self.program, bound.targets_for().values()))
        if not self.bound:
            self._initial_values = tree.state(self.program) | self._initial_values
            self._initial_states = self.binding.values("state")
        self._states, self._rows, self._outcomes = self._initial_states, [], []
        self._seen_rows, self._manual_run, self.feedback = {}, None, {}
        self.steps.drop("forward", "backward", "update", "bind for training", "inputs_need_grad")
        modes = {"bind": True, "bind for training": for_training, "inputs_need_grad": inputs_need_grad}
        self.steps.add(*(mode for mode, holds in modes.items() if holds))
        if shared_module is not None:
            self.steps.add("init_params")
            if shared_module.optimizer is not None:
                self.borrow_optimizer(shared_module)

    @needs_its_steps
    def reshape(self, data_schemas: Any, label_schemas: Any = None) -> None:
        """Take compatible schemas: equal ones, or ones with further optional fields; values and optimizer stay.

        Raises:
            TrainerError: Other names.
            SchemaError: A schema that is not compatible; nothing changed.
        """
        inputs = binding.schemas_by_name(data_schemas, self.data_names)
        self.binding = self.binding.reshape(inputs, None if label_schemas is None else data.declare(label_schemas))

    # -- parameters and states ----------------------------------------------------------------------------------------

    @needs_its_steps
    async def init_params(
        self,
        initializer: Any = None,
        params: Any = None,
        aux: Any = None,
        allow_missing: bool = False,
        allow_extra: bool = False,
        force_init: bool = False,
    ) -> None:
        """Set the first values of the Variables: those that are passed, else those that they have.

        With `initializer` or `force_init` the present values are replaced: an `init` in a Variable's metadata
        wins, then `initializer`, then the value it was made with. Fixed Variables change by given values alone.

        Args:
            initializer: A State, a dict by path, a plain or async function `(path, schema)`, or one of
                `sm.initializers`.
            params: Values of params and fixed Variables by path; all of them, unless `allow_missing`.
            aux: Values of the others, likewise.
            allow_missing: Let a Variable without a given value keep what it has.
            allow_extra: Skip unknown paths.
            force_init: Also where it was done before.

        Raises:
            StateError: Paths that are missing or unknown.
            StateSchemaError: Values that miss their schemas; nothing changed.
        """
        if self.params_initialized and not force_init:
            _warn("Parameters are initialized already: init_params(force_init=True) does it anew.")
            return
        presented, values = self.binding.check_presented(params, aux, allow_missing), dict[str, Any]()
        if initializer is not None or force_init:
            values = await self.binding.first_values(initializer, self._initial_values, presented)
        self._write(values, params or {}, aux or {}, allow_extra=allow_extra)

    @needs_its_steps
    def set_params(
        self,
        params: Any,
        aux: Any = None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Write values into the program, all or none; errors of `init_params`."""
        if self.params_initialized and not force_init:
            _warn("Parameters are initialized already: set_params(force_init=True) sets them.")
            return
        self.binding.check_presented(params, aux, allow_missing)
        self._write(params, aux or {}, allow_extra=allow_extra)

    def _write(self, *values: Any, allow_extra: bool = False) -> None:
        """Write values that were given into the program; states among them are what rows begin with."""
        tree.update(self.program, *values, allow_extra=allow_extra)
        self._initial_states = self._states = self.binding.values("state")
        self._manual_run = None  # it holds rollouts with the values before
        self.steps.add("init_params")

    @needs_its_steps
    def get_params(self) -> tuple[State, State]:
        """Return the State of params and fixed Variables, and that of aux Variables: a snapshot."""
        return self.binding.values("param", "fixed"), self.binding.values("aux")

    @needs_its_steps
    def set_states(
        self,
        states: Sequence[State | Mapping[str, Any]] | Sequence[Sequence[State]] | None = None,
        value: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the state Variables of the rows of the next forward; the others have their first values.

        Args:
            states: One State per row, or a list of such per context, as `get_states` returns.
            value: One `{path: json}` for every row.

        Raises:
            TrainerError: Both or neither is given, `states` is a single one, or lists per context of another number
                than rows.
            StateError: An unknown path; StateSchemaError: a value that misses its schema.
        """
        if (states is None) == (value is None):
            raise TrainerError(f"{'At least' if value is None else 'Only'} one of states & value must be given.")
        if isinstance(states, Mapping):
            raise TrainerError("set_states: states are one per row; for one that every row gets write value={...}.")
        if value is not None:
            self._states = self._initial_states.replace(value)
        else:
            values: list[Any] = list(states or ())
            if values and not isinstance(values[0], Mapping):  # a list per context
                values = batches.ungroup(values, [outcome.context for outcome in self._outcomes])
            self._states = [self._initial_states.replace(state) for state in values]

    @needs_its_steps
    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the states of the rows of the last forward, or those that were set since.

        Args:
            merge_multi_context: One State per row, in input order; False for a list of them per context.
        """
        states = [self._states] * max(1, len(self._rows)) if isinstance(self._states, State) else self._states
        return self._group_by_context(states, merge_multi_context)

    def _group_by_context(self, values: Sequence[Any], merge: bool) -> list[Any]:
        """Return values of rows in input order, or a list of them per context."""
        contexts = [outcome.context for outcome in self._outcomes]
        return list(values) if merge else batches.group_by_context(values, contexts, len(self.context_pool.contexts))

    # -- checkpoints --------------------------------------------------------------------------------------------------

    @needs_its_steps
    def save_checkpoint(
        self,
        prefix: str | os.PathLike[str],
        epoch: int,
        save_optimizer_states: bool = False,
        save_states: bool = False,
        keep: int | None = None,
    ) -> None:
        """Write program and values, so that `Trainer.load` goes on from there; all of it is plain JSON.

        The files are `prefix-program.json`, `prefix-0003.json` and, with the optimizer, `prefix-0003.states.json`; each
        is put in place whole, the values last. So a failure leaves the checkpoint before it whole.

        Args:
            prefix: The beginning of the names of the files, such as `run/agent`.
            epoch: Number of the epoch.
            save_optimizer_states: Whether the optimizer's states are saved, too.
            save_states: Whether the first values of state Variables are saved, too.
            keep: How many epochs stay, with this one; older ones are removed after a success. None for all.

        Raises:
            LifecycleError: `save_optimizer_states` is True without an optimizer.
            TrainerError: `epoch` or `keep` is not such a number.
            SaveError: Something cannot be saved; nothing of the checkpoints before it is lost.
        """
        if save_optimizer_states:
            self.steps.check("save_optimizer_states")
        values = *self.get_params(), self._initial_states if save_states else None
        optimizer = self.optimizer if save_optimizer_states else None
        models, initial_values = self.models(), self._initial_values
        checkpoints.write_checkpoint(prefix, epoch, self.program, *values, optimizer, keep, models, initial_values)

    @classmethod
    def load(
        cls,
        prefix: str | os.PathLike[str],
        epoch: int | None = None,
        load_optimizer_states: bool = False,
        *,
        program: Module | None = None,
        strict: bool = True,
        language_models: Any = None,
        indexes: Any = None,
        custom_objects: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Return a trainer of what `save_checkpoint` wrote: not bound yet, and its parameters have their values.

        Args:
            prefix: The beginning of the names of the files.
            epoch: Number of the epoch; None for the last one.
            load_optimizer_states: Whether the next `init_optimizer` begins with the saved states.
            program: Takes the values, in place of the program of the file.
            strict: Whether `program` must be what was saved; False takes what fits, and `unmatched` lists the rest.
            language_models: As in `sm.load`.
            indexes: As in `sm.load`.
            custom_objects: As in `sm.load`.
            **options: Those of the constructor.

        Raises:
            LoadError: Files are missing (names them, and the epochs that exist), or one cannot be read.
            StateError: `program` is another one, or the file lacks values of it; shows where it differs.
        """
        holders = {"language_models": language_models, "indexes": indexes, "custom_objects": custom_objects}
        checkpoint = checkpoints.load_checkpoint(prefix, epoch, load_optimizer_states, program, strict, **holders)
        program, values, unmatched, stored = checkpoint
        trainer = cls(program, **options)
        roles = binding.roles_of(program, trainer._fixed, trainer._state_names)
        trainer.binding, trainer._initial_values = binding.Binding(program, roles=roles), tree.state(program)
        trainer.binding.check_presented(values, values, allow_missing=not strict)
        trainer.unmatched, trainer._optimizer_states = unmatched, stored
        trainer._write(values)
        return trainer

    def models(self) -> list[lm.SharedModel]:
        """Return all models that may be called here; no file may have their keys."""
        return runs.models_of(self.program, self.reward, self.optimizer, context_pool=self.context_pool)

    @needs_its_steps
    def save_params(self, path: str | os.PathLike[str]) -> None:
        """Write the values of params, fixed and aux Variables; a file such as `prefix-0003.json`.

        Raises:
            SaveError: They cannot be saved; the file before it is whole.
        """
        leaves.write_atomic(path, checkpoints.values_text(*self.get_params(), None, self.models()))

    @needs_its_steps
    def load_params(self, path: str | os.PathLike[str]) -> None:
        """Set the values of a file that `save_params` or `save_checkpoint` wrote, all or none.

        Raises:
            FileNotFoundError: The file does not exist.
            LoadError: It is another file (contains 'Invalid param file').
            StateError: Its paths or values do not fit; nothing changed.
        """
        values = checkpoints.read_params(path)
        self.binding.check_presented(values, values, allow_missing=False)
        self._write(values)

    @needs_its_steps
    def save_optimizer_states(self, path: str | os.PathLike[str]) -> None:
        """Write what the optimizer keeps.

        Raises:
            SaveError: It cannot be saved; the file before it is whole.
        """
        leaves.write_atomic(path, checkpoints.optimizer_text(cast("Optimizer", self.optimizer), self.models()))

    @needs_its_steps
    def load_optimizer_states(self, path: str | os.PathLike[str]) -> None:
        """Restore the optimizer from a file that `save_optimizer_states` or `save_checkpoint` wrote.

        Raises:
            FileNotFoundError: The file does not exist.
            LoadError: It is another file.
            StateError: It is of another class of optimizers; names both.
        """
        checkpoints.put_states(cast("Optimizer", self.optimizer), checkpoints.read_optimizer(path))

    # -- the monitor --------------------------------------------------------------------------------------------------

    @needs_its_steps
    def install_monitor(self, monitor: callbacks.Monitor) -> None:
        """Let a monitor watch what runs, and the program's Variables.

        Raises:
            TrainerError: It is not a `Monitor`.
        """
        expected = "a Monitor, such as sm.Monitor(10)"
        leaves.check_type("install_monitor: its argument", monitor, callbacks.Monitor, expected, error=TrainerError)
        monitor.install(self.program)
        if monitor not in self._monitors:
            self._monitors.append(monitor)

    def watch_rows(self) -> AbstractContextManager[Any]:
        """Return a block in which the monitors watch."""
        return scope.hooks(*self._monitors) if self._monitors else nullcontext()

    # -- the optimizer ------------------------------------------------------------------------------------------------

    @needs_its_steps
    def init_optimizer(
        self,
        optimizer: Any = "random_few_shot",
        optimizer_params: Mapping[str, Any] | None = None,
        force_init: bool = False,
    ) -> None:
        """Take an optimizer.

        Args:
            optimizer: An Optimizer, or the name of one, such as `"gepa"`.
            optimizer_params: The arguments of a named optimizer.
            force_init: Also where there is one already.

        Raises:
            TrainerError: An unknown name; nothing that it may change.
        """
        if self.optimizer_initialized and not force_init:
            _warn("The optimizer is initialized already: init_optimizer(force_init=True) takes another.")
            return
        new = optimizer_from(optimizer, optimizer_params)
        if self.binding.has_params:
            self.binding.targets_for(new)
        if self._optimizer_states is not None:
            checkpoints.put_states(new, self._optimizer_states)
        self.optimizer, self._optimizer_states, self._manual_run = new, None, None
        self.steps.add("init_optimizer")

    @needs_its_steps
    def borrow_optimizer(self, other: Trainer) -> None:
        """Use the very optimizer of another trainer.

        Raises:
            TrainerError: It has none.
        """
        if other.optimizer is None:
            raise TrainerError("borrow_optimizer: the other trainer has no optimizer: call its init_optimizer first.")
        self.optimizer, self._manual_run = other.optimizer, None
        self.steps.add("init_optimizer")

    # -- running ------------------------------------------------------------------------------------------------------

    def _runner(self, **options: Any) -> runs.Runner:
        """Return what runs rows of the program in the contexts, each from the initial states."""
        pool = self.context_pool
        pool.most = max(pool.most, runs.most_at_once(pool.concurrency, self.models()))
        options = {"context_pool": pool, "initial_states": self._initial_states, **options}
        return runs.Runner(self.program, **options)

    def wrap_rows(self, rows: Iterable[Example]) -> list[Example]:
        """Return rows whose inputs and targets are data models: plain JSON is wrapped by the schemas that were bound.

        Raises:
            SchemaError: A value misses its schema; names the row.
            DataError: No output can have a target; names the row.
        """
        return [self.binding.wrap_row(row, number) for number, row in enumerate(rows)]

    @needs_its_steps
    async def forward(
        self, batch: Any, is_train: bool | None = None, on_error: Literal["raise", "collect"] = "raise"
    ) -> None:
        """Run every row of a batch as one call, all at once.

        Args:
            batch: A `Batch`, or an object with `data`.
            is_train: The mode of the calls; None for `for_training`.
            on_error: `"raise"` the first failure, after the others are cancelled, or `"collect"` it as a `Failed`.

        Raises:
            TrainerError: Lists of different lengths, too many slices.
            SchemaError: A row that misses the bound schema.
            DataError: An input that is missing or unknown, a label that no output can have.
            Exception: The first failure, with the number of its row as a note.
        """
        leaves.check_choice("forward: on_error", on_error, ("raise", "collect"), error=TrainerError)
        rows = self.wrap_rows(map(batches.with_digest_id, batches.rows_of(batch)))
        states = self._states
        if isinstance(states, State) or len(states) != len(rows):
            states = [states if isinstance(states, State) else self._initial_states] * len(rows)
        recorded, mode = self.for_training, self.for_training if is_train is None else is_train
        paths = self.binding.routing.paths if self.binding.routing and recorded else frozenset[str]()
        runner = self._runner(initial_states=State(), paths=paths, training=mode, all_calls=recorded)
        with self.watch_rows():
            self._outcomes = await runner.run_batch(rows, states, keeps_failures=on_error == "collect")
        self._rows = rows
        self._states = [outcome.state_after(state) for outcome, state in zip(self._outcomes, states, strict=True)]
        self._seen_rows.update((str(row.id), row) for row in rows)
        self.steps.drop("backward", "update")
        self.steps.add("forward")

    @needs_its_steps
    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last forward in input order, a `Failed` where a row failed.

        Args:
            merge_multi_context: False for a list of them per context.
        """
        pairs = enumerate(self._outcomes)
        outputs = [row.outputs if row.failure is None else flow.Failed(number, row.failure) for number, row in pairs]
        return self._group_by_context(outputs, merge_multi_context)

    @needs_its_steps
    async def update_metric(self, metric: Any, labels: Sequence[Any]) -> None:
        """Feed a metric with the outputs of the last forward, row by row.

        Raises:
            TrainerError: Another number of labels than rows.
        """
        if len(labels) != len(self._rows):
            raise TrainerError(f"update_metric: {len(labels)} labels for {len(self._rows)} rows.")
        feed = row_feeder(metric, getattr(metric, "name", type(metric).__name__))
        for row, outcome, label in zip(self._rows, self._outcomes, labels, strict=True):
            feed(outcome.result(Rollout, row if label is None else replace(row, target=label), None))

    # -- learning -----------------------------------------------------------------------------------------------------

    @needs_its_steps
    async def backward(self, out_grads: Sequence[scope.Feedback] | None = None) -> None:
        """Score every row of the last forward, and route the feedback to the params.

        Args:
            out_grads: One Feedback per row, in place of the reward.

        Raises:
            TrainerError: There is neither, labels are missing, or another number of `out_grads` than rows.
            DataError: Labels that no output can match.
            Exception: Any error of the reward, with the number of the row as a note.
        """
        if out_grads is None:
            names = self.label_names if self._asks_target else []
            if names or (self.reward is not None and self.reward.needs_target):
                batches.check_labels(self._rows, names)
            checks = evaluation.target_checks(self.binding.columns.targets.outputs, self.reward, ())
            evaluation.check_targets(self._rows, checks)
            feedbacks = await batches.judge_rows(self._rows, self._outcomes, self._bound_reward)
        else:
            feedbacks = list(out_grads)
        if [*map(type, feedbacks)] != [scope.Feedback] * len(self._rows):
            raise TrainerError(f"backward: out_grads are one sm.Feedback per row, {len(self._rows)} of them.")
        rollouts = [
            outcome.result(Rollout, row, feedback, calls=outcome.calls)
            for row, outcome, feedback in zip(self._rows, self._outcomes, feedbacks, strict=True)
        ]
        routing = cast("Routing", self.binding.routing)
        for path, items in self.drop_unrequested(await routing.items(rollouts)).items():
            previous = self.feedback.get(path, ()) if self.binding.requests[path] == "add" else ()
            self.feedback[path] = (*previous, *items)
        self._input_feedback = feedbacks
        self.steps.drop("update")
        self.steps.add("backward")

    def drop_unrequested(self, feedback: Mapping[str, tuple[FeedbackItem, ...]]) -> dict[str, tuple[FeedbackItem, ...]]:
        """Return feedback without that of params whose `grad_req` is `"null"`."""
        requests = self.binding.requests
        return {path: () if requests[path] == "null" else items for path, items in feedback.items()}

    @needs_its_steps
    async def forward_backward(self, batch: Any) -> None:
        """Run a batch and route its rewards; errors of both."""
        await self.forward(batch)
        await self.backward()

    @needs_its_steps
    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return for each of `data_names` one Feedback per row: that of the entry call.

        Args:
            merge_multi_context: False for a list of them per context.
        """
        return [self._group_by_context(self._input_feedback, merge_multi_context) for _ in self.data_names]

    @needs_its_steps
    async def update(self) -> tuple[tree.KeyPath, ...]:
        """Let the optimizer change the params, on the feedback of `backward`: all of its answer or nothing.

        Returns:
            The paths that changed.

        Raises:
            StateError: The answer has other paths; StateSchemaError: values that miss their schemas. Nothing changed.
            Exception: Any error of the optimizer.
        """
        optimizer, changed = cast("Optimizer", self.optimizer), tuple[tree.KeyPath, ...]()
        if self.binding.has_params:
            rows = self._seen_rows
            self._manual_run = self._manual_run or self.open_run(optimizer, {"train": rows, "validation": rows})
            bench, ledger = self._manual_run
            ledger.begin(self._updates, [str(row.id) for row in self._rows])
            mine = {path: items for path, items in self.feedback.items() if path in bench.targets}
            try:
                changed = await take_step(self.program, optimizer, bench, mine)
                ledger.check_proposals(type(optimizer).__name__)
            finally:
                ledger.end()
        self._updates += 1
        requests = self.binding.requests
        self.feedback = {path: () if requests[path] == "add" else items for path, items in self.feedback.items()}
        self.steps.add("update")
        return changed

    def open_run(
        self, optimizer: Optimizer, examples: ExamplesBySplit, limits: runs.Budget | None = None, **options: Any
    ) -> tuple[Bench, Ledger]:
        """Return the bench of a run on this program as it is, and the books that it fills.

        Args:
            optimizer: The optimizer, whose targets are trained.
            examples: Rows of each split by id, their inputs as data models.
            limits: How many rollouts the run may take, and how long; None for no limit.
            **options: The journal and the metrics of the `Runner`.

        Raises:
            TrainerError: Nothing that it may change.
        """
        targets, limits = self.binding.targets_for(optimizer), limits or runs.Budget()
        routing, seed = Routing(self.program, targets.values()), values_at(self.program, targets)
        options = {"reward": self.reward, "seconds": limits.seconds, **options}
        runner = self._runner(paths=routing.paths, seed=seed, **options)
        outputs = [schema for _, schema in self.binding.outputs]
        run_seed = self.seed if optimizer.seed is None else optimizer.seed
        ledger = Ledger(runner, limits, examples)
        return Bench(ledger, routing, optimizer, targets, outputs, run_seed), ledger

    # -- whole runs ---------------------------------------------------------------------------------------------------

    fit = fitting.fit

    @needs_its_steps
    async def score(
        self, eval_data: Any, eval_metric: Any = None, num_batch: int | None = None, **options: Any
    ) -> evaluation.Evaluation:
        """Evaluate the program on data; state Variables are reset for each row.

        Args:
            eval_data: Batches, or rows.
            eval_metric: A metric or a list of them, in the forms of `sm.evaluate`.
            num_batch: How many batches are run; None for all.
            **options: Further keywords of `sm.evaluate`, such as `max_errors`.

        Raises:
            EvaluationError: Too many failures, or one that is not about its row.
            Exception: Further ones of `sm.evaluate`.
        """
        eval_batches = batches.batches_of(eval_data, num_batch)
        rows = (row for batch in eval_batches for row in self.wrap_rows(batches.rows_of(batch, filling=False)))
        reward = options.pop("reward", self.reward)
        runner = self._runner(reward=None if reward is None else reward_from(reward))
        options = {"metrics": as_list(eval_metric), "concurrency": self.context_pool.size, **options}
        with self.watch_rows():
            return await evaluation.evaluate_rows(runner, rows, None, evaluation.EvaluationOptions(**options))

    @needs_its_steps
    async def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        *,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> list[Any]:
        """Return the outputs of all rows in order, without those that fill a batch.

        Args:
            eval_data: Batches, or rows, which are one batch.
            num_batch: How many batches are run; None for all.
            merge_batches: Whether they are one list; False for a list per batch.
            on_error: As in `forward`.

        Raises:
            Exception: The first failure, with the number of its row as a note.
        """
        parts = [outputs async for outputs, _, _ in self.iter_predict(eval_data, num_batch, on_error=on_error)]
        return [output for outputs in parts for output in outputs] if merge_batches else parts

    @needs_its_steps
    async def iter_predict(
        self, eval_data: Any, num_batch: int | None = None, *, on_error: Literal["raise", "collect"] = "raise"
    ) -> AsyncIterator[tuple[list[Any], int, Any]]:
        """Yield `(outputs, nbatch, batch)` of each batch; arguments and errors of `predict`."""
        for number, batch in enumerate(batches.batches_of(eval_data, num_batch)):
            rows = self.wrap_rows(batches.rows_of(batch, filling=False))
            with self.watch_rows():
                outputs = await evaluation.predict_rows(
                    self._runner(), rows, on_error=on_error, concurrency=self.context_pool.size, progress=False
                )
            yield outputs, number, batch


def _warn(text: str) -> None:
    """Warn the caller of a method that it changes nothing."""
    warnings.warn(text, SynmodWarning, stacklevel=4)

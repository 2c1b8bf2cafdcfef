"""The Trainer: drives one program through its life cycle. Values live once, in the program."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from synmod.cache import Cache
from synmod.data import declare, schema_of
from synmod.errors import StateError, SynmodWarning, TrainerError
from synmod.leaves.names import KeyPath, did_you_mean, path_str
from synmod.module import Module, build
from synmod.scope import BoundReward, Feedback
from synmod.tree import State, state as state_of, update as write, using

from .batches import Context, Places, identified, rows_of, sliced
from .bench import Bench, Split
from .binding import (
    Role,
    Schemas,
    check_compatible,
    check_data_names,
    first_values,
    named_schemas,
    output_schemas,
    requests_of,
    roles_of,
    share_program,
    targets_of,
    warn_of_unasked,
    wrapped,
)
from .evaluation import feed
from .examples import Example
from .fitting import fit
from .history import History
from .lifecycle import Lifecycle, needs_its_steps
from .optimizer import FeedbackItem, Optimizer, Target, optimizer_from
from .rewards import OFFERED, Reward, reward_from
from .rollouts import Row, by_context, judge_rows, run_rows
from .routing import Routing
from .runs import Runner

_LOG: Final = logging.getLogger("synmod.train")


class Trainer:
    """Drives a program: fixes the schemas of its data, runs batches, routes rewards, and lets an optimizer train it.

    Args:
        program: Any module.
        reward: What judges a row: a Reward, a function, or a registered name; None where feedback comes from elsewhere.
        data_names: The program's inputs; read from the program where left out.
        label_names: The fields of the target that the reward needs.
        context: Where rows run: a `Context` or a list of them; None for here.
        work_load_list: Shares of a batch, one per context; without it rows go to whichever context is free.
        fixed_param_names: Paths, globs or filters of Variables that are not trained.
        state_names: The same of Variables that each row begins with anew; a `Memory` is one in any case.
        seed: What every random choice is drawn from.
        concurrency: How many rows run at once in a context without a limit of its own.

    Attributes:
        program: The program.
        feedback: What the last `backward` routed to each param, by path text.
        unmatched: What `load(strict=False)` could not place.

    Raises:
        TrainerError: An unknown name, or another number of work loads than contexts.

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

    def __init__(
        self,
        program: Module,
        *,
        reward: Any = None,
        data_names: Sequence[str] | None = None,
        label_names: Sequence[str] = (),
        context: Context | Sequence[Context] | None = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Any = (),
        state_names: Any = (),
        seed: int = 0,
        concurrency: int = 64,
    ) -> None:
        if not isinstance(program, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise TrainerError(f"Trainer: the program is a {type(program).__name__}; give a module.")
        if type(concurrency) is not int or concurrency < 1:
            raise TrainerError(f"Trainer: concurrency is {concurrency!r}; give a whole number of at least 1.")
        contexts = [context] if isinstance(context, Context) else list(context or [Context("local")])
        if work_load_list is not None:
            if len(work_load_list) != len(contexts):
                raise TrainerError(f"work_load_list has {len(work_load_list)} entries for {len(contexts)} contexts.")
            if min(work_load_list) <= 0:
                raise TrainerError(f"work_load_list is {list(work_load_list)}; every work load is above 0.")
        self.program = program
        self.reward: Reward | None = None if reward is None else reward_from(reward)
        self.data_names = check_data_names(program, data_names)
        self.label_names = list(label_names)
        self.seed = seed
        self.feedback: dict[str, tuple[FeedbackItem, ...]] = {}
        self.unmatched: tuple[str, ...] = ()
        self.optimizer: Optimizer | None = None
        self.places = Places(contexts, concurrency)
        self._loads = work_load_list
        self._fixed, self._state_names = fixed_param_names, state_names
        self._lifecycle = Lifecycle()
        self._bound_reward = None if self.reward is None else BoundReward(self.reward, OFFERED)
        self.inputs: Schemas = []
        self._labels: Any = None
        self._outputs: list[tuple[str, Any]] = []
        self._roles: dict[KeyPath, Role] = {}
        self._requests: dict[str, str] = {}
        self._routing: Routing | None = None
        self._first = self._made = State()
        self._states: list[State] = []
        self._forward: list[Row] = []
        self._seen: dict[str, Example] = {}
        self._updates = 0
        self._hand: tuple[Optimizer, Bench] | None = None
        self._input_feedback: list[Feedback] = []
        self._monitors: list[Any] = []
        self.loaded: tuple[State, State] | None = None
        self.loaded_optimizer: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Trainer({self.program.name!r}, lifecycle={self.lifecycle})"

    def _warn(self, text: str) -> None:
        """Warn the caller of a method that it changes nothing."""
        warnings.warn(text, SynmodWarning, stacklevel=4)

    # -- what was done ------------------------------------------------------------------------------------------------

    @property
    def lifecycle(self) -> tuple[str, ...]:
        """The steps done, in order."""
        return self._lifecycle.steps

    @property
    def bound(self) -> bool:
        """Whether the schemas are fixed and the program is built."""
        return "bind" in self._lifecycle

    @property
    def for_training(self) -> bool:
        """Whether calls are recorded for `backward`."""
        return "bind for training" in self._lifecycle

    @property
    def inputs_need_grad(self) -> bool:
        """Whether the inputs get feedback too."""
        return "inputs_need_grad" in self._lifecycle

    @property
    def params_initialized(self) -> bool:
        """Whether the parameters have their values."""
        return "init_params" in self._lifecycle

    @property
    def optimizer_initialized(self) -> bool:
        """Whether there is an optimizer."""
        return "init_optimizer" in self._lifecycle

    @property
    @needs_its_steps
    def data_schemas(self) -> list[tuple[str, Any]]:
        """`(name, schema)` of each input."""
        return [(name, schema_of(symbol)) for name, symbol in self.inputs]

    @property
    @needs_its_steps
    def label_schemas(self) -> list[tuple[str, Any]]:
        """`(name, schema)` of the target; empty where none was bound."""
        return [] if self._labels is None else [("label", self._labels)]

    @property
    @needs_its_steps
    def output_schemas(self) -> list[tuple[str, Any]]:
        """`(name, schema)` of each output."""
        return list(self._outputs)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs; empty before `bind`."""
        return [name for name, _ in self._outputs]

    # -- bind ---------------------------------------------------------------------------------------------------------

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
            force_rebind: Bind anew; values and optimizer stay.
            shared_module: A trainer whose program's Variables become this program's, by path.
            grad_req: What becomes of feedback: `"write"` keeps that of the last `backward`, `"add"` collects it until
                `update`, `"null"` takes none; one for all, a list by params, or a dict by path or glob.

        Raises:
            TrainerError: Names that differ, a mask or request that names nothing, feedback for inputs without training.
            SchemaError: Schemas that do not fit.
            StateError: `shared_module` has other paths or schemas.
            SkipVerifyError: The skip connections do not match.
        """
        if self.bound and not force_rebind:
            self._warn("Already bound: bind(force_rebind=True) binds anew.")
            return
        if inputs_need_grad and not for_training:
            raise TrainerError("inputs_need_grad needs for_training=True: nothing is recorded otherwise.")
        data = named_schemas(data_schemas, self.data_names)
        outputs = output_schemas(await build(self.program, *(schema for _, schema in data)))
        labels = None if label_schemas is None else declare(label_schemas)
        if self.reward is not None:
            if len(outputs) == 1:
                self.reward.check(outputs[0][1], labels)
            warn_of_unasked(self.label_names, labels, self.reward.needs_target)
        if shared_module is not None:
            share_program(self.program, shared_module.program)
        roles = roles_of(self.program, self._fixed, self._state_names)
        requests = requests_of(grad_req, [path_str(path) for path, role in roles.items() if role == "param"])
        routing = Routing(self.program, targets_of(self.program, roles).values())
        self.inputs, self._labels, self._outputs = data, labels, outputs
        self._roles, self._requests, self._routing = roles, requests, routing
        if not self.bound:
            self._made, self._first = state_of(self.program), self._of_role("state")
        self._states, self._forward = [], []
        self._lifecycle.drop("forward", "backward", "update", "bind for training", "inputs_need_grad")
        self._lifecycle.add("bind")
        if for_training:
            self._lifecycle.add("bind for training")
        if inputs_need_grad:
            self._lifecycle.add("inputs_need_grad")
        if shared_module is not None and shared_module.params_initialized:
            self._lifecycle.add("init_params")
            if shared_module.optimizer is not None:
                self.borrow_optimizer(shared_module)
        if self.loaded is not None:
            params, aux = self.loaded
            write(self.program, params | aux)
            self.loaded = None
            self._lifecycle.add("init_params")

    @needs_its_steps
    def reshape(self, data_schemas: Any, label_schemas: Any = None) -> None:
        """Take compatible schemas: equal ones, or such with further optional fields; values and optimizer stay.

        Raises:
            TrainerError: Other names.
            SchemaError: A schema that is not compatible; nothing changed.
        """
        data = named_schemas(data_schemas, self.data_names)
        check_compatible(self.inputs, data)
        labels = self._labels if label_schemas is None else declare(label_schemas)
        self.inputs, self._labels = data, labels

    # -- parameters and states ----------------------------------------------------------------------------------------

    def _of_role(self, *roles: Role) -> State:
        """Return the State of the Variables of some classes."""
        everything = state_of(self.program)
        return State.of_leaves({path: everything[path] for path, role in self._roles.items() if role in roles})

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
        """Give the Variables their first values: those that are given, else those that they have.

        With `initializer` or `force_init` the values they have do not stand: then an `init` in a Variable's metadata
        wins, then `initializer`, then the value it was made with. Fixed Variables change by given values alone.

        Args:
            initializer: A State, a dict by path, a plain or async function `(path, schema)`, or one of
                `sm.initializers`.
            params: Values of params and fixed Variables by path; all of them, unless `allow_missing`.
            aux: Values of the others, likewise.
            allow_missing: Let a Variable without a given value keep what it has.
            allow_extra: Skip paths that there are not.
            force_init: Also where it was done before.

        Raises:
            StateError: Paths that are missing or unknown.
            StateSchemaError: Values that miss their schemas; nothing changed.
        """
        if self.params_initialized and not force_init:
            warnings.warn(
                "Parameters are initialized already; force_init=True does it anew.", SynmodWarning, stacklevel=2
            )
            return
        values = self._given(params, aux, allow_missing, allow_extra)
        if initializer is not None or force_init:
            first = await first_values(self.program, self._roles, initializer, self._made, skip=set(values))
            values = first | values
        write(self.program, values)
        self._first = self._of_role("state")
        self._lifecycle.add("init_params")

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
            self._warn("Parameters are initialized already: force_init=True sets them.")
            return
        write(self.program, self._given(params, aux, allow_missing, allow_extra))
        self._lifecycle.add("init_params")

    def _given(self, params: Any, aux: Any, allow_missing: bool, allow_extra: bool) -> dict[str, Any]:
        """Return given values by path text, checked for missing and unknown paths."""
        values: dict[str, Any] = {}
        missing: list[str] = []
        known = {path_str(path): role for path, role in self._roles.items()}
        for what, given, roles in (("params", params, ("param", "fixed")), ("aux", aux, ("aux", "state"))):
            if given is None:
                continue
            pairs = cast("Mapping[str | KeyPath, Any]", given).items()
            named = {path_str(path) if isinstance(path, tuple) else path: leaf for path, leaf in pairs}
            values.update(named)
            missing += [f"{path!r} is not presented in {what}" for path, role in known.items()
                        if role in roles[:2] and role != "state" and path not in named]  # fmt: skip
        if missing and not allow_missing:
            raise StateError(f"{'; '.join(missing)}. allow_missing=True keeps what they have.")
        unknown = [path for path in values if path not in known]
        if unknown and not allow_extra:
            raise StateError(
                f"Unknown paths: {', '.join(map(repr, unknown))}.{did_you_mean(unknown[0], known)} "
                "allow_extra=True skips them."
            )
        return {path: leaf for path, leaf in values.items() if path in known}

    def get_params(self) -> tuple[State, State]:
        """Return the State of params and fixed Variables, and that of the others: a snapshot."""
        if self.loaded is not None:
            return self.loaded
        self._lifecycle.check("get_params")
        return self._of_role("param", "fixed"), self._of_role("aux")

    @needs_its_steps
    def set_states(self, states: Sequence[State] | Sequence[Sequence[State]] | None = None, value: Any = None) -> None:
        """Give the state Variables of the next forward's rows their values.

        Args:
            states: One State per row, or a list of such per context, as `get_states` returns.
            value: One `{path: json}` for every row.

        Raises:
            TrainerError: Both or neither is given.
            StateError: An unknown path; StateSchemaError: a value that misses its schema.
        """
        if states is not None and value is not None:
            raise TrainerError("Only one of states & value can be given.")
        if states is None and value is None:
            raise TrainerError("At least one of states & value must be given.")
        if value is not None:
            self._first = self._first.replace(dict(value.items()))
            self._states = []
            return
        flat = [one for each in cast("Sequence[Any]", states) for one in ([each] if isinstance(each, State) else each)]
        self._states = [self._first.replace({path: leaf.value for path, leaf in one.items()}) for one in flat]

    @needs_its_steps
    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the states of the rows of the last forward: one State per row, or lists of them by context."""
        states = self._states or [self._first]
        return by_context(states, self._forward, len(self.places.contexts), merge_multi_context)

    def add_monitor(self, monitor: Any) -> None:
        """Let a monitor watch the rows of each forward."""
        self._monitors.append(monitor)

    # -- the optimizer ------------------------------------------------------------------------------------------------

    @needs_its_steps
    def init_optimizer(
        self, optimizer: Any = "random_few_shot", optimizer_params: Mapping[str, Any] | None = None,
        force_init: bool = False,
    ) -> None:  # fmt: skip
        """Take an optimizer.

        Args:
            optimizer: An Optimizer, or the name of one, such as `"gepa"`.
            optimizer_params: What an optimizer that is named is made with.
            force_init: Also where there is one already.

        Raises:
            TrainerError: An unknown name; nothing that it may change.
        """
        if self.optimizer_initialized and not force_init:
            warnings.warn(
                "The optimizer is initialized already; force_init=True takes another.", SynmodWarning, stacklevel=2
            )
            return
        made = optimizer_from(optimizer, optimizer_params)
        self.targets_of(made)
        if self.loaded_optimizer is not None:
            write(made, dict(self.loaded_optimizer))
            self.loaded_optimizer = None
        self.optimizer = made
        self._lifecycle.add("init_optimizer")

    @needs_its_steps
    def borrow_optimizer(self, other: Trainer) -> None:
        """Use the very optimizer of another trainer.

        Raises:
            TrainerError: It has none.
        """
        if other.optimizer is None:
            raise TrainerError("borrow_optimizer: the other trainer has no optimizer: call its init_optimizer first.")
        self.optimizer = other.optimizer
        self._lifecycle.add("init_optimizer")

    def targets_of(self, optimizer: Optimizer) -> dict[str, Target]:
        """Return what an optimizer may change, by path text.

        Raises:
            TrainerError: Nothing; lists the params and why none fits.
        """
        found = targets_of(self.program, self._roles)
        if optimizer.only is not None:
            wanted = {path_str(path) for path in state_of(self.program, optimizer.only)}
            found = {path: target for path, target in found.items() if path in wanted}
        found = {path: target for path, target in found.items() if target.kind in optimizer.kinds}
        if not found:
            shown = [f"{path_str(path)} ({role})" for path, role in self._roles.items()]
            raise TrainerError(
                f"{type(optimizer).__name__} has nothing to optimise: it changes {', '.join(optimizer.kinds)} of "
                f"trained Variables that its `only` takes. There are: {', '.join(shown) or 'none'}."
            )
        return found

    # -- running ------------------------------------------------------------------------------------------------------

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
            Exception: The first failure, with the number of its row as a note.
        """
        assert self._routing is not None
        rows = [wrapped(row, self.inputs) for row in identified(rows_of(batch), self._seen)]
        places = [None] * len(rows) if self._loads is None else sliced(len(rows), self._loads)
        carried = self._states if len(self._states) == len(rows) else [self._first] * len(rows)
        paths = self._routing.paths | ({""} if self.inputs_need_grad else set[str]())
        self._forward = await run_rows(
            self.program,
            rows,
            self.places,
            places,
            carried,
            training=self.for_training if is_train is None else is_train,
            paths=paths if self.for_training else frozenset(),
            keep_failures=on_error == "collect",
            monitors=self._monitors,
        )
        self._states = [row.after for row in self._forward]
        self._seen.update((cast("str", row.id), row) for row in rows)
        self._lifecycle.drop("backward", "update")
        self._lifecycle.add("forward")

    @needs_its_steps
    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last forward in input order, or lists of them by context."""
        return by_context([row.shown for row in self._forward], self._forward, len(self.places.contexts),
                           merge_multi_context)  # fmt: skip

    @needs_its_steps
    async def update_metric(self, metric: Any, labels: Sequence[Any]) -> None:
        """Feed a metric with the outputs of the last forward, row by row.

        Raises:
            TrainerError: Another number of labels than rows.
        """
        if len(labels) != len(self._forward):
            raise TrainerError(f"update_metric: {len(labels)} labels for {len(self._forward)} rows.")
        feed(metric, [row.rollout(label) for row, label in zip(self._forward, labels, strict=True)])

    # -- learning -----------------------------------------------------------------------------------------------------

    @needs_its_steps
    async def backward(self, out_grads: Sequence[Feedback] | None = None) -> None:
        """Ask the reward about every row of the last forward, and route what it says to the params.

        Args:
            out_grads: One Feedback per row, in place of the reward.

        Raises:
            TrainerError: There is neither, labels are missing, or another number of `out_grads` than rows.
            Exception: What the reward raised, with the number of the row as a note.
        """
        assert self._routing is not None
        if out_grads is not None and len(out_grads) != len(self._forward):
            raise TrainerError(f"backward: {len(out_grads)} out_grads for {len(self._forward)} rows.")
        given = await self._judged() if out_grads is None else list(out_grads)
        rollouts = [row.rollout(feedback=feedback) for row, feedback in zip(self._forward, given, strict=True)]
        items = await self._routing.items(rollouts)
        for path, new in items.items():
            request = self._requests.get(path, "write")
            kept = self.feedback.get(path, ()) if request == "add" else ()
            self.feedback[path] = () if request == "null" else (*kept, *new)
        self._input_feedback = list(given)
        self._lifecycle.drop("update")
        self._lifecycle.add("backward")

    async def _judged(self) -> list[Feedback]:
        """Return what the reward says of every row of the last forward."""
        if self._bound_reward is None or self.reward is None:
            raise TrainerError("backward needs a reward: give Trainer(reward=...), or backward(out_grads=[...]).")
        if self.reward.needs_target and any(row.example.target is None for row in self._forward):
            raise TrainerError(f"backward: the reward needs labels {self.label_names or ''}: give Batch(data, label).")
        return await judge_rows(self._forward, self._bound_reward)

    @needs_its_steps
    async def forward_backward(self, batch: Any) -> None:
        """Run a batch and route its rewards; errors of both."""
        await self.forward(batch)
        await self.backward()

    @needs_its_steps
    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return for each of `data_names` one Feedback per row."""
        found = by_context(self._input_feedback, self._forward, len(self.places.contexts), merge_multi_context)
        return [list(found) for _ in self.data_names]

    @needs_its_steps
    async def update(self) -> tuple[KeyPath, ...]:
        """Let the optimizer change the params, on the feedback of `backward`: all of its answer or nothing.

        Returns:
            The paths that changed.

        Raises:
            StateError: The answer has other paths; StateSchemaError: values that miss their schemas. Nothing changed.
            Exception: What the optimizer raised.
        """
        optimizer = self.optimizer
        assert optimizer is not None
        if not any(role == "param" for role in self._roles.values()):
            return ()
        if self._hand is None or self._hand[0] is not optimizer:
            self._hand = optimizer, self.bench(optimizer, {"train": self._seen, "validation": self._seen})
        bench = self._hand[1]
        bench.begin(self._updates, [row.example.id or "" for row in self._forward])
        try:
            changed = await self.step(optimizer, bench, self.feedback)
        finally:
            bench.end()
        self._updates += 1
        self.feedback = {
            path: () if self._requests.get(path) == "add" else items for path, items in self.feedback.items()
        }
        self._lifecycle.add("update")
        return changed

    def bench(
        self, optimizer: Optimizer, examples: Mapping[Split, Mapping[str, Example]], *, room: int | None = None,
        journal: Cache | None = None,
    ) -> Bench:  # fmt: skip
        """Return the bench of a run on this program as it is.

        Args:
            optimizer: Whose targets it offers.
            examples: Rows of each split by id, their inputs as data models.
            room: How many rollouts the run may take; None for any number.
            journal: Keeps what was paid for.
        """
        targets = self.targets_of(optimizer)
        routing = Routing(self.program, targets.values())
        runner = Runner(
            self.program,
            self.reward,
            self._bound_reward,
            places=self.places,
            journal=journal,
            paths=routing.paths,
            first=self._first,
            seed=self.params_state(targets),
        )
        return Bench(
            runner,
            routing,
            targets=targets,
            examples=examples,
            score_range=None if self.reward is None else self.reward.range,
            task=self.program.description or self.program.name,
            room=room,
            run_seed=self.seed if optimizer.seed is None else optimizer.seed,
        )

    async def step(
        self, optimizer: Optimizer, bench: Bench, feedback: Any, *, finish: bool = False
    ) -> tuple[KeyPath, ...]:
        """Take one step of an optimizer: program and optimizer change together, or not at all.

        Returns:
            The paths of the program that changed.
        """
        before = self.params_state(bench.targets)
        with using(optimizer) as own:
            after = await (optimizer.finish(before, bench) if finish else optimizer.update(before, feedback, bench))
        if not isinstance(after, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (users write optimizers)
            raise TrainerError(f"{type(optimizer).__name__}.update returned {after!r:.100}, which is not a sm.State.")
        unknown = [path_str(path) for path in after if path_str(path) not in bench.targets]
        if unknown:
            raise StateError(
                f"{type(optimizer).__name__}.update returned values for {unknown}, which it may not change."
            )
        changed = write(self.program, after)
        write(optimizer, own.changes)
        return changed

    def params_state(self, targets: Mapping[str, Target]) -> State:
        """Return the values of an optimizer's targets as they are."""
        everything = state_of(self.program)
        return State.of_leaves({path: leaf for path, leaf in everything.items() if path_str(path) in targets})

    # -- whole runs ---------------------------------------------------------------------------------------------------

    async def fit(self, train: Any, **options: Any) -> History:
        """Train."""
        return await fit(self, train, **options)

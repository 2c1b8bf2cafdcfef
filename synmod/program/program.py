"""`Program`: a module that runs a graph or a `call` of its own, with methods to train, save and load it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, overload

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod import module as modules, registry, saving, scope, train, tree
from synmod.data import JsonDataModel, SymbolicDataModel
from synmod.errors import BuildError, ConfigError, GraphError, LifecycleError, LoadError
from synmod.flow import Progress, Step, record_graph, run_plan, steps_between
from synmod.leaves import checks_keywords, copy_nest, did_you_mean, map_leaves, path_str
from synmod.module import AsyncCallee, Data, Module, where
from synmod.skip.wiring import verify_root

from .wiring import ProgramWiring, get_wiring, graph_execution, output_symbols

# -- wiring ------------------------------------------------------------------------------------------------------------


def take_graph(program: Program, inputs: Any, outputs: Any) -> None:
    """Make `program` functional, so that a call runs the graph between these symbols.

    Args:
        program: A program under construction, or in its own `build`.
        inputs: A nest of symbols.
        outputs: A nest of symbols.

    Raises:
        ConfigError: The class defines `call` as well.
        BuildError: The program has a graph already, or a subclass sets its graph outside its `build`.
        GraphError: The wiring is faulty, or an Input is named `training`.
        SkipVerifyError: The skip connections do not match.
    """
    record = program._record
    cls = type(program)
    if cls.call is not Program.call:
        raise ConfigError(
            f"class {cls.__name__} defines call, and {where(program)} was given a graph: a program runs one or the "
            "other. Leave out call, or the inputs and outputs."
        )
    if cls.__init__ is not Program.__init__ and modules.current_own_build(record) is None:
        raise BuildError(
            f"{where(program)}: class {cls.__name__} must call super().__init__(inputs=..., outputs=...) once, at the "
            "end of its build: `async def build(self, inputs): ...`."
        )
    if record.flow is not None:
        raise BuildError(f"{where(program)} has a graph already; call super().__init__(inputs=..., outputs=...) once.")
    steps = steps_between(inputs, outputs)
    if any(step.module is program for step in steps):
        raise BuildError(f"{where(program)} waits for itself: its graph has a step that calls it.")
    record.flow = record_graph(inputs, outputs, steps, _keys(program))
    record.declared = None
    wiring = ProgramWiring(program, (copy_nest(inputs), copy_nest(outputs), steps))
    if "training" in wiring.inputs.names:
        raise GraphError(
            f"{where(program)}: an Input is named 'training', which is a keyword of every call; give it another name: "
            "sm.Input(Training, name='training_data')."
        )
    object.__setattr__(program, "_wiring", wiring)
    if _is_root(program):
        verify_root(program)


def _is_root(program: Program) -> bool:
    """Whether no call of another module builds the program, so that its wiring can be checked as a whole."""
    frame = scope.current_call()
    while frame is not None and frame.owner is program._record:
        frame = frame.parent
    return frame is None or not program._record.constructed


def _keys(program: Program) -> Callable[[Module], str]:
    """Return a function that makes the module of a step an attribute of the program, once, and returns its name."""
    attributes = vars(program)
    names_of_modules = {id(child): name for name, child in reversed(attributes.items()) if isinstance(child, Module)}
    numbers = Counter[str]()  # so that thousands of equal names take linear time

    def key(module: Module) -> str:
        if id(module) not in names_of_modules:
            name = module.name
            while name in attributes or hasattr(type(program), name):
                numbers[module.name] += 1
                name = f"{module.name}_{numbers[module.name]}"
            setattr(program, name, module)
            names_of_modules[id(module)] = name
        return names_of_modules[id(module)]

    return key


# -- programs ----------------------------------------------------------------------------------------------------------


class Compiled(NamedTuple):
    """What `compile` was given: reward, optimizer and metrics, as objects."""

    reward: train.rewards.Reward | None
    optimizer: train.Optimizer
    metrics: list[Any]


M = TypeVar("M", bound=BaseModel, default=Any)
R = TypeVar("R")
Answer = TypeVar("Answer", bound=BaseModel)


@registry.register_own()
class Program(Module, Generic[M]):
    """A program: a graph of modules between inputs and outputs, or a subclass with `call`.

    Args:
        inputs: A symbol or a nest of symbols (`sm.Input`), where the graph begins.
        outputs: A symbol or a nest of symbols that modules and operators returned.
        name: Label; default is the class name in snake case.
        description: Label; default is the first paragraph of the class's own docstring.
        trainable: Whether the Variables below may be trained.
        hooks: Listeners.

    Raises:
        GraphError: The wiring is faulty, such as inputs without outputs; lists every fault.
        SkipVerifyError: The skip connections do not match.
        BuildError: A subclass sets its graph outside its `build`, or twice.
        ConfigError: A keyword is unknown, or a class with its own `call` is given a graph.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> x = sm.Input(Query)
        >>> program = sm.Program(inputs=x, outputs=x.prefix("my"))
        >>> sm.run(program, Query(question="Who?")).get_json()
        {'my_question': 'Who?'}

    Source: Keras functional models, Synalinks `Program`; differs: the constructor is synchronous, and a step starts as
    soon as its inputs are ready.
    """

    __slots__ = ("_compiled", "_trainer", "_wiring")
    _is_module_base: ClassVar[bool] = True

    if TYPE_CHECKING:
        call: Callable[..., object]  # a method of any signature may override it, and only one of the user's is awaited

        @overload
        def __call__(
            self, inputs: SymbolicDataModel, /, *more: SymbolicDataModel | None, training: bool | None = None
        ) -> Coroutine[Any, Any, SymbolicDataModel]: ...
        @overload
        def __call__(
            self: AsyncCallee[Data[Answer]], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, JsonDataModel[Answer]]: ...
        @overload
        def __call__(
            self: AsyncCallee[R], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, R]: ...
        @overload
        def __call__(
            self, /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, JsonDataModel[M]]: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    else:

        async def call(self, /, *inputs: Any, **keywords: Any) -> Any:
            """Run the graph on one argument with the structure of the inputs, one argument per input, or keywords."""
            values = self._input_values(inputs, keywords)
            if any(isinstance(value, SymbolicDataModel) for value in values):
                return output_symbols(self)
            wiring = get_wiring(self)
            if not wiring.inputs.takes_none and all(value is None for value in values):
                return map_leaves(lambda _: None, wiring.flow.outputs)
            return await run_plan(wiring.plan(self), values)

    def __init__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        *,
        name: str | None = None,
        description: str | None = None,
        trainable: bool | None = None,
        hooks: Sequence[scope.Hook] | None = None,
        **unknown: Any,
    ) -> None:
        is_mixed = self._record.constructed  # labels that are not given stay what they were
        trainable = self.trainable if trainable is None else trainable
        super().__init__(name=name, description=description, trainable=trainable, hooks=hooks, **unknown)
        if inputs is None and outputs is None and not is_mixed:
            return
        take_graph(self, inputs, outputs)
        if not is_mixed:
            arguments = self._record.arguments or {}  # the graph is kept once, as a flow
            self._record.arguments = {key: arguments[key] for key in arguments if key not in ("inputs", "outputs")}
            modules.seal(self)

    # -- the graph ----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> Any:
        """The nest of input symbols; None where the program is not functional."""
        return None if self._record.flow is None else copy_nest(get_wiring(self).live(self)[0])

    @property
    def outputs(self) -> Any:
        """The nest of output symbols; None where the program is not functional."""
        return None if self._record.flow is None else copy_nest(get_wiring(self).live(self)[1])

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order: depth first from the outputs, producers before consumers."""
        return () if self._record.flow is None else get_wiring(self).live(self)[2]

    @property
    def built(self) -> bool:
        """Whether this program and all modules of its graph are built."""
        pending: list[Module] = [self]
        visited = {id(self)}
        for module in pending:
            if not isinstance(module, Program):
                if not module.built:
                    return False
                continue
            if not module._is_built_itself():
                return False
            new = [part for part in module._run_modules() if id(part) not in visited]
            visited.update(map(id, new))
            pending += new
        return True

    def _is_built_itself(self) -> bool:
        """Whether its own build is done."""
        return super().built

    def _run_modules(self) -> list[Module]:
        """Return the modules of its steps."""
        return [step.module for step in self.steps if step.module is not None]

    def get_module(self, path: str | Sequence[str | int]) -> Module:
        """Return the module at a path.

        Args:
            path: A path text (`agent/write`) or its steps; any path of a shared module will do.

        Returns:
            The module.

        Raises:
            GraphError: The path has no module; with 'Did you mean'.

        Example:
            >>> program.get_module("generator")  # doctest: +SKIP

        Source: Keras `get_layer`; differs: paths, not names.
        """
        text = path if isinstance(path, str) else path_str(path)
        paths: list[str] = []
        for visit in tree.walk(self):
            if visit.kind == "node" and isinstance(visit.value, Module):
                paths.append(path_str(visit.path))
                if paths[-1] == text:
                    return visit.value
        some = ", ".join(paths[1:20]) or "none"
        raise GraphError(f"{where(self)} has no module at {text!r}.{did_you_mean(text, paths)} It has: {some}.")

    # -- running ------------------------------------------------------------------------------------------------------

    async def compute_output_spec(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the schemas of the graph's outputs; nothing is run."""
        if self._record.flow is None or type(self).call is not Program.call:
            return await super().compute_output_spec(*args, **kwargs)
        self._input_values(args, kwargs)
        return output_symbols(self)

    # -- training -----------------------------------------------------------------------------------------------------

    @property
    def trainer(self) -> train.Trainer | None:
        """The Trainer of the last `fit`; None before the first."""
        return getattr(self, "_trainer", None)

    @checks_keywords
    def compile(self, reward: Any = None, optimizer: Any = None, metrics: Iterable[Any] = ()) -> None:
        """Set what `fit` and `evaluate` use; names and functions become objects.

        Copies and saved files do not include it.

        Args:
            reward: The judge of a row: a Reward, a function, a module that returns `score`, or a name: `"exact_match"`.
            optimizer: The algorithm of `fit`: an Optimizer, or a name such as `"gepa"`; None: `"random_few_shot"`.
            metrics: The measures beside the reward: those of `sm.metrics`, their names, or functions.

        Raises:
            TrainerError: An unknown name.
            ArgumentError: An argument is of another kind.

        Example:
            >>> program.compile(reward="exact_match", optimizer="gepa", metrics=["accuracy"])  # doctest: +SKIP

        Source: Keras `Model.compile`.
        """
        judge = None if reward is None else train.rewards.reward_from(reward)
        algorithm = train.optimizer_from("random_few_shot" if optimizer is None else optimizer)
        compiled = Compiled(judge, algorithm, train.metrics.metrics_from(metrics))
        object.__setattr__(self, "_compiled", compiled)

    @checks_keywords
    async def fit(
        self,
        x: Any = None,
        y: Any = None,
        *,
        validation_data: Any = None,
        validation_split: float | Literal["auto"] = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        budget: train.Budget | int | None = None,
        callbacks: train.callbacks.Callback | Iterable[train.callbacks.Callback] = (),
        verbose: Literal["auto", 0, 1] = "auto",
        progress: Progress | Literal[False] | None = None,
        run: train.Run | str | os.PathLike[str] | None = None,
        durable_rows: bool = False,
        concurrency: int | None = None,
        executor: train.Executor | None = None,
    ) -> train.History:
        """Train the program: its Variables change, by the compiled optimizer, against the compiled reward.

        Each `fit` begins with a copy of the compiled optimizer, and with the program as it is.

        Args:
            x: The rows, as `sm.load_examples` reads them: a list, a file, a table.
            y: Names of the target fields, or the targets.
            validation_data: The rows on which candidates are compared: as `x`, or `(x, y)`.
            validation_split: The share of the rows to set aside without `validation_data`; `"auto"`: half, at most 200.
            epochs: Passes over the rows; None to go on until the optimizer is done or the budget is spent.
            batch_size: Rows per step; None for what the optimizer learns from, else all.
            shuffle: Whether the rows to train on are shuffled.
            seed: Determines every random choice.
            budget: Rollouts, or a `Budget`.
            callbacks: One of `sm.callbacks`, or a list.
            verbose: 0 for no progress bar, as `progress=False`.
            progress: As in `evaluate`: an object that is notified of the progress; None for a bar on a terminal, False
                for nothing.
            run: A folder, or `sm.Run`: the same call again resumes a killed run, or returns what a finished one found.
            durable_rows: As in `sm.evaluate`: each call of a row is kept in the run.
            concurrency: How many rows run at once; None as for `sm.evaluate`.
            executor: Where rows run, such as a `sm.DaskExecutor`; None for this process.

        Returns:
            The History; `history.best` is what the program holds now.

        Raises:
            LifecycleError: It was not compiled.
            TrainerError: Nothing to optimise, no rows, a budget that is too small.
            DataError: Rows that cannot be read; lists all.
            RunError: The folder belongs to another run, or is in use.
            EvaluationError: An outage, a broken program or reward; what finished is kept in `run`.

        Example:
            >>> history = await program.fit("tickets.csv", y="label", budget=640)  # doctest: +SKIP

        Source: Keras `Model.fit`.
        """
        compiled: Compiled | None = getattr(self, "_compiled", None)
        if compiled is None:
            raise LifecycleError("fit needs compile first: program.compile(reward='exact_match', optimizer='gepa').")
        trainer = train.Trainer(self, reward=compiled.reward, seed=seed, concurrency=concurrency)
        object.__setattr__(self, "_trainer", trainer)
        rows, held_out = await train.load_training_rows(
            x, y, self, validation_data, validation_split, shuffle=shuffle, seed=seed
        )
        optimizer = compiled.optimizer.clone()  # one object may train several programs, each from the beginning
        size = getattr(optimizer, "minibatch", 32) if optimizer.learns_from_batches else len(rows)
        bar = [] if verbose == 0 else [train.callbacks.ProgressBar(progress)]
        own = [callbacks] if isinstance(callbacks, train.callbacks.Callback) else callbacks
        return await trainer.fit(
            train.Batches(rows, batch_size=size if batch_size is None else batch_size),
            eval_data=held_out or None,
            eval_metric=compiled.metrics,
            num_epoch=epochs,
            optimizer=optimizer,
            callbacks=[*bar, *own],
            budget=budget,
            run=run,
            durable_rows=durable_rows,
            executor=executor,
        )

    async def evaluate(self, x: Any, y: Any = None, **options: Any) -> train.Evaluation:
        """Return the scores of the program on a data set, by the compiled reward and metrics.

        Args:
            x: The rows, as `sm.load_examples` reads them.
            y: Names of the target fields, or the targets.
            **options: Keywords of `sm.evaluate`; `reward` and `metrics` in place of those compiled.

        Raises:
            DataError: Rows that cannot be read; lists all. Else as `sm.evaluate`.
        """
        compiled: Compiled | None = getattr(self, "_compiled", None)
        if compiled is not None:
            options = {"reward": compiled.reward, "metrics": compiled.metrics, **options}
        return await train.evaluate(self, await train.load_examples(x, y, program=self), **options)

    @checks_keywords
    async def predict(
        self,
        x: Any,
        *,
        on_error: Literal["raise", "collect"] = "raise",
        concurrency: int | None = None,
        progress: Progress | Literal[False] | None = None,
    ) -> list[Any]:
        """Return what the program returns for each row, in input order.

        Args:
            x: The rows, as `sm.load_examples` reads them; targets are ignored.
            on_error: `"raise"` the first failure after the other rows are cancelled, or `"collect"` each as a `Failed`.
            concurrency: How many rows run at once; None as for `sm.evaluate`.
            progress: An object that is notified of the progress; None for a bar on a terminal, False for nothing.

        Raises:
            DataError: Rows that cannot be read; lists all.
            Exception: The first failure, with the number of its row as a note.
        """
        rows = await train.rows_without_targets(x, self)
        runner = train.Runner(self)
        return await train.predict_rows(runner, rows, on_error=on_error, concurrency=concurrency, progress=progress)

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the whole program as one JSON file; see `sm.save` for errors."""
        return saving.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Load a program from its file; takes the keywords of `sm.load`.

        Raises:
            LoadError: The file holds something that is not a `cls`; names the class found. Else as `sm.load`.
        """
        loaded = saving.load(path, **options)
        if isinstance(loaded, cls):
            return loaded
        file = os.fsdecode(path)
        raise LoadError(
            f"{file}: /graph/root: the file holds a {type(loaded).__name__}, which is not a {cls.__name__}: load it "
            "with sm.load.",
            where="/graph/root",
            file=file,
        )

    def save_variables(self, path: str | os.PathLike[str]) -> Path:
        """Save the values of the Variables alone; see `sm.save_variables` for errors."""
        return saving.save_variables(self, path)

    def load_variables(
        self, path: str | os.PathLike[str], strict: bool = True, allow_missing: bool = False, allow_extra: bool = False
    ) -> saving.LoadReport:
        """Load the values in a file into the Variables by path, all or none; see `sm.load_variables` for errors."""
        return saving.load_variables(self, path, strict=strict, allow_missing=allow_missing, allow_extra=allow_extra)

    def _input_values(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        """Return the values for the Inputs."""
        if self._record.flow is None:
            raise modules.no_call(self)
        frame = scope.current_call()
        entry = frame is not None and frame.parent is None and not frame.symbolic
        return get_wiring(self).inputs.values(self, args, keywords, entry=entry)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as live values, with the inputs and outputs of a functional program."""
        config = super().get_config()
        if self._record.flow is None or type(self).__init__ is not Program.__init__:
            return config
        return {"inputs": self.inputs, "outputs": self.outputs, **config}


@modules.passes_none.register(Program)
def program_passes_none(program: Program[Any]) -> bool:
    """Whether a None passes through: inside another call, unless every Input is optional."""
    if program._record.flow is None:
        return True
    return scope.nearest_live(scope.FRAME.get()) is not None and not get_wiring(program).inputs.takes_none


@modules.execution_of.register(Program)
def execution_of_program(program: Program[Any]) -> modules.Execution | None:
    """Return the graph of a functional program; None for a `call` of its own, whose order is not known."""
    flow = program._record.flow
    return None if flow is None or type(program).call is not Program.call else graph_execution(program)


@modules.own_inputs_of.register(Program)
def own_inputs_of_program(program: Program[Any]) -> tuple[Any, ...]:
    """Return what `sm.build` builds a functional program on."""
    return () if program._record.flow is None else (program.inputs,)

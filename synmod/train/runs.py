"""Run the rows of a program, each recorded row once; the identity of a run, and its budget."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from types import CodeType, EllipsisType, FunctionType
from typing import Any, Final, NamedTuple, TypeAlias, cast

from synmod import lm
from synmod.cache import key_of
from synmod.errors import ArgumentError, BudgetExceeded, DeadlineExceeded, add_note, show_own_line
from synmod.flow import together
from synmod.journal import Journal, Part, as_json
from synmod.leaves import Json, check_int, check_number, checks_keywords, current_clock
from synmod.lm import SharedModel
from synmod.module import Module
from synmod.scope import NO_USAGE, as_children_of, deadline, is_from_enclosing_limit
from synmod.tree import Memory, Param, State, graphdef, iter_graph, state as state_of, using

from .batches import ContextPool
from .rewards import Reward
from .rollouts import CallRecorder, ChatRecorder, ExampleError, Executor, RunOutcome, RunRow, fault_of, reward_arguments
from .rows import Example, PositionalInputs, inputs_for

_NO_BLOCK: Final[nullcontext[None]] = nullcontext()
Key: TypeAlias = tuple[str, str, int, str]
"""What identifies a rollout of a run: fingerprint of the State, digest of the row, sample, digest of a stand-in."""
NO_STATE: Final = State()
"""No values."""
ROW: Final[ContextVar[int | None]] = ContextVar("synmod_row", default=None)
"""The number of the row that is running here, in its batch or evaluation; None outside of a row."""


class Job(NamedTuple):
    """A row to run.

    Attributes:
        example: The row.
        number: Its number in its batch or evaluation; see `ROW`.
        state: Values of Variables, in place of those of the program; None for the program as it is.
        sample: Number of the draw.
        model: Stands in for every model of the program; None for those it has.
        context: The number of the context; None for the one with the most room.
    """

    example: Example
    number: int = 0
    state: State | None = None
    sample: int = 0
    model: Any = None
    context: int | None = None


@dataclass(eq=False)
class Runner:
    """Runs a program on examples under States; what was recorded is not run again.

    Args:
        program: Stays as it is: a State is an overlay.
        reward: Judges each run.
        context_pool: Where rows run; None for no limit but the caller's.
        initial_states: Values that every row begins with; None for the memories of the program.
        journal: Keeps the results.
        metrics: Measure each run: an object with `async measure(arguments)`.
        paths: The modules whose calls are recorded.
        training: The mode of the calls; None for the program's own.
        all_calls: Whether the outcomes hold the calls of all modules, for a reward that takes them later.
        keep_lm_calls: Whether the outcomes hold the model calls of the program.
        seed: The values of the trained Variables; part of the keys of rollouts, not of the run's identity.
        seconds: How long the run may take, earlier processes included.
    """

    program: Module
    reward: Reward | None = None
    context_pool: ContextPool | None = None
    initial_states: State | None = None
    journal: Journal = field(default_factory=Journal)
    metrics: Any = None
    paths: frozenset[str] = frozenset()
    training: bool | None = None
    all_calls: bool = False
    keep_lm_calls: bool = False
    seed: State = NO_STATE
    seconds: float | None = None

    def __post_init__(self) -> None:
        self.bound = None if self.reward is None else self.reward.bound()
        self._start = state_of(self.program, Memory) if self.initial_states is None else self.initial_states
        self._run_row: RunRow = self.run_here
        self._digests: dict[int, tuple[Example, str]] = {}

    @cached_property
    def _identity(self) -> str:
        """Digest of what every rollout depends on."""
        program = identity_of(self.program, self.seed)
        reward = None if self.reward is None else identity_of(self.reward)
        return key_of([program, _models(self.context_pool), reward, sorted(self.paths)])

    def identity(self, examples: Mapping[str, Sequence[Example]], metrics: Iterable[Any]) -> dict[str, Json]:
        """Return what a run is of, by name.

        Args:
            examples: The rows of each split, in order; empty where they come as a stream, and are not compared.
            metrics: What measures them.
        """
        rows = [
            [split, row.id, as_json([row.inputs, row.target, dict(row.extra), row.group])]
            for split, of in examples.items()
            for row in of
        ]
        counts: dict[str, Json] = {split: len(of) for split, of in examples.items()}
        identity: dict[str, Json] = {
            "program": graphdef(self.program).fingerprint_with(name_of),
            "fixed values": _others(self.program, self.seed).fingerprint,
            "reward": None if self.reward is None else describe(self.reward),
            "metrics": [*map(describe, metrics)],
            "models": _models(self.context_pool),
        }
        return {**identity, "data": {**counts, "digest": key_of(rows)}} if examples else identity

    def key(self, job: Job) -> Key:
        """Return the key of a rollout in the run; see `Key`."""
        stand_in = "" if job.model is None else key_of([job.model.model, job.model.defaults])
        return (job.state or NO_STATE).fingerprint, self._digest(job.example), job.sample, stand_in

    def _digest(self, example: Example) -> str:
        """Return the digest of a row, made once."""
        if id(example) not in self._digests:
            row = [example.id, example.inputs, example.target, dict(example.extra)]
            self._digests[id(example)] = example, key_of(as_json(row))
        return self._digests[id(example)][1]

    async def run(self, job: Job, key: Key | None = None) -> RunOutcome:
        """Return the outcome of a row: the recorded one, or that of a run now.

        A run is recorded, unless an outage or a broken reward ended it.

        Args:
            job: The row.
            key: The result of `key` for it, if that was called before.

        Raises:
            BudgetExceeded: The run's time is over, or that of an enclosing block; as DeadlineExceeded.
            JournalError: The record cannot be written.
        """
        piece = ""
        if self.journal.is_kept:
            piece = key_of(" ".join(map(str, (self._identity, *(key or self.key(job))))))
            record = await self.journal.find(piece)
            outcome = None if record is None else RunOutcome.of(record)
            if outcome is not None:
                return outcome
        if self._start:
            job = job._replace(state=(job.state or NO_STATE) | self._start)
        if self.context_pool is None:
            return await self._run_and_record(piece, job)
        context = await self.context_pool.acquire(job.context)
        try:
            model = job.model or self.context_pool.contexts[context].language_model
            outcome = await self._run_and_record(piece, job._replace(model=model))
        finally:
            self.context_pool.release(context)
        outcome.context = context
        return outcome

    async def run_batch(
        self, rows: Sequence[Example], states: Sequence[State], *, keeps_failures: bool
    ) -> list[RunOutcome]:
        """Return the outcomes of the rows of a batch, run at once in the contexts that `ContextPool.assign` chooses.

        Args:
            rows: The rows.
            states: Values of Variables for each row.
            keeps_failures: Whether a failure is an outcome, rather than raised.

        Raises:
            TrainerError: Too many slices.
            Exception: The first failure, with the number of its row as a note.
        """
        contexts = [None] * len(rows) if self.context_pool is None else self.context_pool.assign(len(rows))

        async def run(number: int) -> RunOutcome:
            outcome = await self.run(Job(rows[number], number, states[number], context=contexts[number]))
            if outcome.failure is not None and not keeps_failures:
                add_note(outcome.failure, f"row {number}")
                raise outcome.failure
            return outcome

        return await together(*(partial(run, number) for number in range(len(rows))))

    async def _run_and_record(self, piece: str, job: Job) -> RunOutcome:
        """Run a row and record it before its context is released: a kill loses only the rows that are running."""
        overlay = None if job.state is None else using(self.program, job.state)
        part = Part(self.journal, piece, records_calls=self.journal.durable_rows) if piece else None
        token = ROW.set(job.number)  # hot: a helper for blocks takes ten calls
        try:
            with (
                self.within_time(),
                part or _NO_BLOCK,
                _NO_BLOCK if job.model is None else lm.use_language_models(job.model),
                _NO_BLOCK if overlay is None else overlay,
            ):
                outcome = await self._run_row(job.example, sample=job.sample)
        finally:
            ROW.reset(token)
        outcome.overlay = overlay
        if part is not None and part.usage is not NO_USAGE:  # paid for before the row was killed
            outcome.usage = outcome.usage + part.usage
        if outcome.feedback is not None and outcome.feedback.target is not None:
            outcome.feedback = replace(outcome.feedback, target=as_json(outcome.feedback.target))  # as in the record
        if outcome.fault in (None, "program"):  # another cause may be over when the row is run again
            await self.journal.keep(piece, {"row": job.example.id, **outcome.record()} if self.journal.is_kept else {})
        return outcome

    async def run_here(self, example: Example, *, sample: int = 0) -> RunOutcome:
        """Run the program on one example and judge it, in this process; a failure is an outcome.

        Raises:
            ArgumentError: The inputs are plain JSON, and the program declares no schema for them.
            BudgetExceeded, DeadlineExceeded: That of an enclosing block.
        """
        reward, outcome, clock = self.bound, RunOutcome(), current_clock()
        keeps_all = self.all_calls or (reward is not None and "calls" in reward.asks_for)
        recorder = (ChatRecorder if self.keep_lm_calls else CallRecorder)(keeps_calls=keeps_all or bool(self.paths))
        started, is_read = clock.now(), False
        with recorder:
            try:
                with _NO_BLOCK if sample == lm.current_sample() else lm.sample_number(sample):
                    outcome.inputs = inputs_for(self.program, example)
                    is_read = True
                    args = outcome.inputs if isinstance(outcome.inputs, PositionalInputs) else (outcome.inputs,)
                    outcome.outputs = await self.program(*args, training=self.training)
                    recorder.is_open = False
                    outcome.usage, outcome.elapsed_s = recorder.usage.total(), clock.now() - started
                    if keeps_all:
                        outcome.all_calls = recorder.calls()
                    arguments = reward_arguments(outcome, example)
                    with as_children_of(recorder.frame):
                        if reward is not None:
                            feedback, module_rewards = await reward(**arguments), recorder.rewards
                            objectives = {**module_rewards, **feedback.objectives}
                            outcome.feedback = replace(feedback, objectives=objectives) if module_rewards else feedback
                        if self.metrics is not None:
                            outcome.values = await self.metrics.measure(arguments)
            except Exception as error:  # one example under collection: its failure is its result
                if is_from_enclosing_limit(error) or (isinstance(error, ArgumentError) and not is_read):
                    raise
                outcome.failure, outcome.fault = error, fault_of(error, recorder)
                line = "" if recorder.is_open else show_own_line(error)
                outcome.error = ExampleError.of(error, recorder.path_of(error), line)
        outcome.usage, outcome.elapsed_s, outcome.frame = recorder.usage.total(), clock.now() - started, recorder.frame
        outcome.call_id = None if recorder.frame is None else recorder.frame.id
        outcome.calls = recorder.calls(self.paths) if self.paths else ()
        if isinstance(recorder, ChatRecorder):
            outcome.lm_calls = recorder.lm_calls
        return outcome

    @asynccontextmanager
    async def on(self, executor: Executor | None) -> AsyncGenerator[None]:
        """Run rows in another place inside the block; None for here.

        Raises:
            Exception: (on entering) The program cannot run there.
        """
        if executor is None:
            yield
            return
        metrics: list[Any] = [] if self.metrics is None else self.metrics.functions
        place = executor.connect(self.program, reward=self.reward, metrics=metrics, paths=self.paths)
        async with place as self._run_row:
            try:
                yield
            finally:
                self._run_row = self.run_here

    def within_time(self) -> AbstractContextManager[None]:
        """Return a block that holds what is run, rather than found, to the time that the run may take.

        Raises:
            BudgetExceeded: (in the block) The time is over.
        """
        return _NO_BLOCK if self.seconds is None else self._within(self.seconds)

    @contextmanager
    def _within(self, seconds: float) -> Generator[None]:
        """Turn the end of the run's time into that of its budget."""
        try:
            with deadline(max(0.0, seconds - self.journal.elapsed_s)):
                yield
        except DeadlineExceeded as error:
            if is_from_enclosing_limit(error):
                raise
            raise BudgetExceeded(f"the {seconds:g} s of the run's budget are over.") from error


# -- what a run is of --------------------------------------------------------------------------------------------------


def _others(program: Module, seed: State) -> State:
    """Return the values of a program that are not trained."""
    return State.of_leaves({path: leaf for path, leaf in state_of(program).items() if path not in seed})


def models_of(*nodes: Module | None, context_pool: ContextPool | None = None) -> list[SharedModel]:
    """Return all models that may be called here; no file may have their keys.

    Args:
        *nodes: What calls models.
        context_pool: Where rows run, with models of its own.
    """
    own_models = [model for _, model in iter_graph([node for node in nodes if node is not None], SharedModel)]
    stand_ins = [model for block in lm.current_stand_ins() for model in block.values()]
    contexts = [context.language_model for context in (context_pool.contexts if context_pool else ())]
    models = (*own_models, *stand_ins, *contexts, lm.current_language_model())
    return [model for model in models if isinstance(model, SharedModel)]


def most_at_once(concurrency: int | None, models: Iterable[SharedModel]) -> int:
    """Return how many rows run at once: as given; else 10,000 if a model has batch jobs, so that one holds all; 64."""
    if concurrency is not None:
        return concurrency
    return 10_000 if any(model.settings.batch for model in models) else 64


def _models(context_pool: ContextPool | None) -> Json:
    """Return what names the models that answer."""
    return [
        lm.models_in_force(),
        [str(context.language_model) for context in (context_pool.contexts if context_pool else ())],
    ]


def describe(thing: Any) -> str:
    """Return of what kind something is, and a digest of how it is made; its counters and memories do not count.

    A name is returned as it is.
    """
    if not isinstance(thing, Module):
        return thing if isinstance(thing, str) else name_of(thing)
    values = state_of(thing, Param).to_json()
    return f"{type(thing).__name__} {key_of([graphdef(thing).fingerprint_with(name_of), values])}"


def identity_of(module: Module, seed: State = NO_STATE) -> Json:
    """Return what the results of a module depend on: its structure, and its values but for those that are trained."""
    return [graphdef(module).fingerprint_with(name_of), _others(module, seed).to_json()]


def name_of(thing: object) -> str:
    """Return a text for what cannot be written: where it is defined; of a function also a digest of its code."""
    if isinstance(thing, partial):
        return f"{name_of(thing.func)} {key_of([_text_of(thing.args), _text_of(thing.keywords)])}"
    place, function = _place_of(thing), getattr(thing, "__func__", thing)
    if not isinstance(function, FunctionType):
        return place
    closure = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [function.__code__, function.__defaults__, function.__kwdefaults__, closure]
    return f"{place} {key_of([_text_of(part) for part in parts])}"


def _place_of(thing: object) -> str:
    """Return where something, or else its class, is defined."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _text_of(value: Any) -> str:
    """Return a text, equal in every process, of code or a plain value; of anything else where it is defined."""
    match value:
        case CodeType():
            names = value.co_names, value.co_varnames, value.co_freevars
            return repr((value.co_code, names, _text_of(value.co_consts)))
        case set() | frozenset():
            return repr(sorted(map(_text_of, cast("set[Any]", value))))
        case tuple() | list():
            return repr([*map(_text_of, cast("list[Any]", value))])
        case dict():
            return _text_of([*cast("dict[Any, Any]", value).items()])
        case None | bool() | int() | float() | complex() | str() | bytes() | EllipsisType():
            return repr(value)
        case _:
            return _place_of(value)


# -- budgets -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may take at most, or what it took.

    Attributes:
        rollouts: Runs of program and reward.
        lm_calls: Model calls.
        tokens: Tokens, of prompts and completions.
        cost_usd: US dollars.
        seconds: Time.

    Raises:
        ArgumentError: A limit that is not a number, or negative; an unknown limit ('Did you mean').

    Example:
        >>> Budget(rollouts=640, cost_usd=2.0).tokens is None
        True

    Source: GEPA's `max_metric_calls`; differs: exact, and of everything that costs.
    """

    rollouts: int | None = None
    lm_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            check = check_number if name in ("cost_usd", "seconds") else check_int
            if value is not None:
                check(f"Budget: {name}", value, 0)


Budget.__init__ = checks_keywords(Budget.__init__)


def budget_from(budget: Any) -> Budget:
    """Return a budget: itself, a number of rollouts, or None for no limit.

    Raises:
        ArgumentError: Something else.
    """
    if budget is None or isinstance(budget, Budget):
        return budget or Budget()
    return Budget(rollouts=budget)

"""Runs: rows are run once. What was paid for stands in a journal, so that the same line goes on where it was killed."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from io import FileIO
from pathlib import Path
from types import CodeType, EllipsisType, FunctionType
from typing import Any, Final, TypeAlias, cast
from weakref import WeakSet

from synmod import lm
from synmod.cache import Cache, key_of
from synmod.data import JsonDataModel, Schema, dump_json, parse_json, schema_of
from synmod.errors import ArgumentError, BudgetExceeded, DeadlineExceeded, JournalError, RunError
from synmod.leaves import (
    Json,
    __version__,
    aio,
    check_int,
    check_number,
    checks_keywords,
    current_clock,
    frozen_dict,
    is_object,
    json_equal,
    make_folder,
    path_text,
    remember_secrets,
    scrub_json,
    wall_time,
    write_atomic,
)
from synmod.lm import LanguageModel, SharedModel
from synmod.module import Module
from synmod.scope import NO_USAGE, Usage, caused_by_enclosing_limit, deadline
from synmod.tree import Memory, Param, State, graphdef, iter_graph, state as state_of, using

from .batches import ContextPool
from .rewards import Reward
from .rollouts import Executor, RunOutcome, RunRow, run_once
from .rows import Example, as_json

_NO_BLOCK: Final[nullcontext[None]] = nullcontext()
Key: TypeAlias = tuple[str, str, int, str]
"""What identifies a rollout of a run: fingerprint of the State, digest of the row, sample, digest of a stand-in."""
NO_STATE: Final = State()
"""No values."""
ROW: Final[ContextVar[int | None]] = ContextVar("synmod_row", default=None)
"""The number of the row that is running here, in its batch or evaluation; None outside of a row."""


class Journal:
    """The records of a run: what each piece of work, a rollout or a proposal, returned and used; and further notes.

    Args:
        records: Where they stand; None where nothing is kept.
        paid: What stands in it: how many pieces, what they used, and how long the run had taken at the last of them.
        lock: The lock file of the folder.

    Attributes:
        pieces: How many rollouts and proposals earlier processes have recorded.
        usage: What these used.
        live: How many pieces were run in this process, rather than found.

    Source: Temporal, DBOS (durable execution by replay); differs: records are keyed by content, not by position.
    """

    def __init__(
        self,
        records: Cache | None = None,
        paid: tuple[int, Usage, float] = (0, NO_USAGE, 0.0),
        lock: FileIO | None = None,
    ) -> None:
        self._records = records
        self._lock = lock
        if records is not None:
            remember_secrets(lm.environment_secrets())  # a provider may repeat a key
        self._noted: dict[int, tuple[Schema, str]] = {}
        """The schemas that are kept, by identity, and the digest of each."""
        self.pieces, self.usage, seconds = paid
        self.live = 0
        self._clock = current_clock()
        self._began = self._clock.now() - seconds

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._records is not None

    @property
    def elapsed_s(self) -> float:
        """How long the run has taken, in earlier processes too."""
        return self._clock.now() - self._began

    async def find(self, key: str) -> dict[str, Any] | None:
        """Return a piece as it was given to `keep`; None where there is none that can be read."""
        entry = await self.read(key) if self.pieces else None  # what this process ran, its callers know
        usage = None if entry is None else _usage_of(entry.get("usage"))
        if entry is None or usage is None:
            return None
        piece: dict[str, Any] = {**entry, "usage": usage}
        try:
            piece["outputs"] = await self._rebuild_outputs(piece["outputs"], piece.pop("schema", None))
        except (LookupError, TypeError, ValueError):  # a schema that cannot be read, or is not one
            return None
        return piece

    async def _rebuild_outputs(self, json: Any, schemas: Any) -> Any:
        """Return outputs as `_note_schemas` was given them (KeyError where a schema is not there)."""
        match schemas:
            case str():
                return JsonDataModel[Any](json, schema=(await self.read(f"schema/{schemas}") or {})["schema"])
            case [kind, *parts]:
                found = [await self._rebuild_outputs(*each) for each in zip(json, parts, strict=True)]
                return tuple(found) if kind == "tuple" else found
            case {}:
                return {name: await self._rebuild_outputs(json[name], part) for name, part in schemas.items()}
            case _:
                return json

    async def keep(self, key: str, piece: Mapping[str, Any]) -> None:
        """Record a piece that was run, and when; what is not written would be paid for again.

        Args:
            key: What it depends on.
            piece: JSON, but for `outputs`, which may be a data model, and `usage`; anything where nothing is kept.

        Raises:
            JournalError: It cannot be written.
        """
        self.live += 1
        if self._records is None:
            return
        usage: Usage = piece["usage"]
        used = {name: number for name, number in vars(usage).items() if number != getattr(NO_USAGE, name)}
        entry = {**piece, "outputs": as_json(piece["outputs"]), "usage": used, "at": self.elapsed_s}
        if schemas := await self._note_schemas(piece["outputs"]):
            entry["schema"] = as_json(schemas)
        await self.write(key, frozen_dict(entry))  # hot: all in it has been checked

    async def _note_schemas(self, outputs: Any) -> Any:
        """Return the nest of outputs with digests of schemas, which stand in the journal once, not in each record."""
        if isinstance(outputs, tuple | list):
            parts = [await self._note_schemas(part) for part in cast("list[Any]", outputs)]
            return ["tuple" if isinstance(outputs, tuple) else "list", *parts]
        if is_object(outputs):
            return {name: await self._note_schemas(part) for name, part in outputs.items()}
        if not isinstance(outputs, JsonDataModel):
            return None
        schema = schema_of(cast("Any", outputs))
        if id(schema) not in self._noted:
            digest = key_of(schema)
            await self.write(f"schema/{digest}", {"schema": schema})
            self._noted[id(schema)] = schema, digest
        return self._noted[id(schema)][1]

    async def read(self, key: str) -> Mapping[str, Any] | None:
        """Return a note."""
        return None if self._records is None else await self._records.find(key)

    async def write(self, key: str, note: dict[str, Any]) -> None:
        """Write a note.

        Raises:
            JournalError: It cannot be written.
        """
        if self._records is None:
            return
        is_kept = await self._records.keep(key, scrub_json(note))
        is_held = self._lock is None or os.fstat(self._lock.fileno()).st_nlink > 0
        if not (is_kept and is_held):
            fault = None if is_kept else self._records.fault
            why = "its lock file was removed, and another process may write to it" if is_kept else fault or "not kept"
            raise JournalError(
                f"{self._records.path}: the journal cannot be written: {why}. Mend that or make room, and run the same "
                "line again: what is in the journal is not paid for again."
            ) from fault


def _paid(records: Cache) -> tuple[int, Usage, float]:
    """Return how many pieces stand in a journal, what they used, and how long the run had taken at the last of them."""
    count, total, longest = 0, NO_USAGE, 0.0
    for at, used in records.pairs("at", "usage"):
        usage = _usage_of(used)
        if _is_number(at) and usage is not None:
            count, total, longest = count + 1, total + usage, max(longest, at)
    return count, total, longest


def _is_number(json: Any) -> bool:
    """Whether a value is a JSON number."""
    return isinstance(json, int | float) and not isinstance(json, bool)


def _usage_of(json: Any) -> Usage | None:
    """Return the usage in a record, without the fields that a later release has added; None where it is not one."""
    if not is_object(json):
        return None
    known = {name: json[name] for name in vars(NO_USAGE) if name in json}
    numbers = [number for name, number in known.items() if (name, number) != ("cost_usd", None)]
    return Usage(**known) if all(isinstance(number, int | float) for number in numbers) else None


@dataclass(eq=False)
class Runner:
    """Runs a program on examples under States; what was recorded is not run again.

    Args:
        program: Stays as it is: a State is an overlay.
        reward: Judges each run.
        context_pool: Where rows run; None for no limit but the caller's.
        initial_states: Values that every row begins with; None for the memories of the program.
        journal: Keeps the results.
        metrics: Measures each run.
        paths: The modules whose calls are recorded.
        training: The mode of the calls; None for the program's own.
        all_calls: Whether the outcomes hold the calls of all modules, for a reward that takes them later.
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
    seed: State = NO_STATE
    seconds: float | None = None

    def __post_init__(self) -> None:
        self.bound = None if self.reward is None else self.reward.bound()
        self._start = state_of(self.program, Memory) if self.initial_states is None else self.initial_states
        options: Any = {"metrics": self.metrics, "training": self.training, "all_calls": self.all_calls}
        self._run_row: RunRow = partial(run_once, self.program, reward=self.bound, paths=self.paths, **options)
        self._digests: dict[int, tuple[Example, str]] = {}

    @cached_property
    def _identity(self) -> str:
        """Digest of what every rollout depends on."""
        program = identity_of(self.program, self.seed)
        reward = None if self.reward is None else identity_of(self.reward)
        return key_of([program, _models(self.context_pool), reward, sorted(self.paths)])

    def key(
        self, example: Example, state: State | None = None, sample: int = 0, model: LanguageModel | None = None
    ) -> Key:
        """Return the key of a rollout in the run; see `Key`."""
        stand_in = "" if model is None else key_of([model.model, model.defaults])
        return (state or NO_STATE).fingerprint, self._digest(example), sample, stand_in

    def _digest(self, example: Example) -> str:
        """Return the digest of a row, made once."""
        if id(example) not in self._digests:
            row = [example.id, example.inputs, example.target, dict(example.extra)]
            self._digests[id(example)] = example, key_of(as_json(row))
        return self._digests[id(example)][1]

    async def run(
        self,
        example: Example,
        number: int = 0,
        state: State | None = None,
        sample: int = 0,
        model: LanguageModel | None = None,
        key: Key | None = None,
        context: int | None = None,
    ) -> RunOutcome:
        """Return the outcome of a row: the recorded one, or that of a run now.

        A run is recorded, unless an outage or a broken reward ended it.

        Args:
            example: The row.
            number: Its number in its batch or evaluation; see `ROW`.
            state: Values of Variables, in place of those of the program; None for the program as it is.
            sample: Number of the draw.
            model: Stands in for every model of the program; None for those it has.
            key: The result of `key` for the same arguments, if it was called before.
            context: The number of the context; None for the one with the most room.

        Raises:
            BudgetExceeded: The run's time is over, or that of an enclosing block; as DeadlineExceeded.
            JournalError: The record cannot be written.
        """
        piece = ""
        if self.journal.is_kept:
            key = key or self.key(example, state, sample, model)
            piece = key_of(" ".join(map(str, (self._identity, *key))))
            record = await self.journal.find(piece)
            outcome = None if record is None else RunOutcome.of(record)
            if outcome is not None:
                return outcome
        if self._start:
            state = (state or NO_STATE) | self._start
        if self.context_pool is None:
            return await self._run_and_record(piece, example, number, state, sample, model)
        context = await self.context_pool.acquire(context)
        try:
            by = self.context_pool.contexts[context].language_model if model is None else model
            outcome = await self._run_and_record(piece, example, number, state, sample, by)
        finally:
            self.context_pool.release(context)
        outcome.context = context
        return outcome

    async def _run_and_record(
        self,
        piece: str,
        example: Example,
        number: int,
        state: State | None,
        sample: int,
        model: LanguageModel | str | None,
    ) -> RunOutcome:
        """Run a row and record it before its context is released: a kill loses only the rows that are running."""
        overlay = None if state is None else using(self.program, state)
        token = ROW.set(number)
        try:
            with (
                self.within_time(),
                _NO_BLOCK if model is None else lm.use_language_models(model),
                _NO_BLOCK if overlay is None else overlay,
            ):
                outcome = await self._run_row(example, sample=sample)
        finally:
            ROW.reset(token)
        outcome.overlay = overlay
        if outcome.feedback is not None and outcome.feedback.target is not None:
            outcome.feedback = replace(outcome.feedback, target=as_json(outcome.feedback.target))  # as in the record
        if outcome.fault in (None, "program"):  # another cause may be over when the row is run again
            await self.journal.keep(piece, {"row": example.id, **outcome.record()} if self.journal.is_kept else {})
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
        here = self._run_row
        metrics: list[Any] = [] if self.metrics is None else self.metrics.functions
        place = executor.connect(self.program, reward=self.reward, metrics=metrics, paths=self.paths)
        async with place as self._run_row:
            try:
                yield
            finally:
                self._run_row = here

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
            if caused_by_enclosing_limit(error):
                raise
            raise BudgetExceeded(f"the {seconds:g} s of the run's budget are over.") from error


# -- what a run is of --------------------------------------------------------------------------------------------------


def identity_of_run(
    program: Module,
    examples: Mapping[str, Iterable[Example]],
    reward: Reward | None,
    metrics: Iterable[Any],
    context_pool: ContextPool | None,
    seed: State = NO_STATE,
) -> dict[str, Json]:
    """Return what a run is of, by name.

    Args:
        program: The program.
        examples: The rows of each split, in order; empty where they come as a stream, and are not compared.
        reward: What judges them.
        metrics: What measures them.
        context_pool: Where they run.
        seed: The values that are trained, which are kept apart.
    """
    rows = [
        [split, row.id, as_json([row.inputs, row.target, dict(row.extra), row.group])]
        for split, of in examples.items()
        for row in of
    ]
    counts: dict[str, Json] = {split: sum(row[0] == split for row in rows) for split in examples}
    identity: dict[str, Json] = {
        "program": graphdef(program).fingerprint_with(name_of),
        "fixed values": _others(program, seed).fingerprint,
        "reward": None if reward is None else describe(reward),
        "metrics": [*map(describe, metrics)],
        "models": _models(context_pool),
    }
    return {**identity, "data": {**counts, "digest": key_of(rows)}} if examples else identity


def _others(program: Module, seed: State) -> State:
    """Return the values of a program that are not trained."""
    return State.of_leaves({path: leaf for path, leaf in state_of(program).items() if path not in seed})


def models_of(*nodes: Module | None, context_pool: ContextPool | None = None) -> list[SharedModel]:
    """Return all models that may answer here, whose keys must not stand in a file.

    Args:
        *nodes: What calls models.
        context_pool: Where rows run, with models of its own.
    """
    held = [model for _, model in iter_graph([node for node in nodes if node is not None], SharedModel)]
    stand_ins = [model for block in lm.current_stand_ins() for model in block.values()]
    contexts = [context.language_model for context in (context_pool.contexts if context_pool else ())]
    found = (*held, *stand_ins, *contexts, lm.current_language_model())
    return [model for model in found if isinstance(model, SharedModel)]


def _models(context_pool: ContextPool | None) -> Json:
    """Return what names the models that answer."""
    return [
        lm.models_in_force(),
        [str(context.language_model) for context in (context_pool.contexts if context_pool else ())],
    ]


def describe(thing: Any) -> str:
    """Return of what kind something is, and a digest of how it is made; its counters and memories do not count.

    A name stands for itself.
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
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [function.__code__, function.__defaults__, function.__kwdefaults__, held]
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


def budget_from(given: Any) -> Budget:
    """Return a budget: itself, a number of rollouts, or None for no limit.

    Raises:
        ArgumentError: Something else.
    """
    if given is None or isinstance(given, Budget):
        return given or Budget()
    return Budget(rollouts=given)


# -- folders -----------------------------------------------------------------------------------------------------------

_FORMAT: Final = "synmod-run/1"


class Run:
    """A folder that keeps every rollout and proposal of a run as soon as it is done.

    A path is accepted wherever a run is. `run.json` records what the run is of; `journal.db` holds the records, in the
    form of `sm.Cache`: the sqlite3 tool and a text editor read them. Neither holds keys of providers.

    Args:
        path: The folder; made when the run begins.

    Raises:
        ArgumentError: It is not a path.

    Example:
        >>> Run("runs/faq-01").path.name
        'faq-01'

    Source: Temporal, DBOS (durable execution by replay); differs: records are keyed by content, not by position.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ArgumentError(f"run is {path!r:.100}; give a folder, such as 'runs/faq-01', or a sm.Run.")
        self.path = Path(path_text(path))

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def usage(self) -> Usage:
        """What all recorded pieces used, across restarts; nothing before the run has begun."""
        if not self._file.exists():
            return Usage()
        with closing(Cache(self._file, max_bytes=None)) as journal:
            return _paid(journal)[1]

    @property
    def _file(self) -> Path:
        """The journal."""
        return self.path / "journal.db"

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the records as JSON lines, `{"key", "value"}` each, in the order of their keys.

        Args:
            path: Where to; replaced atomically.

        Raises:
            RunError: The run has not begun.
            OSError: The file cannot be written.
        """
        if not self._file.exists():
            raise RunError(f"{self.path}: there is no journal; the run has not begun.")
        with closing(Cache(self._file, max_bytes=None)) as journal:
            lines = [dump_json({"key": key, "value": value}) for key, value in sorted(journal.items())]
        return write_atomic(path, "".join(f"{line}\n" for line in lines))

    @asynccontextmanager
    async def open_journal(self, identity: Mapping[str, Json], state: str) -> AsyncGenerator[Journal]:
        """Hold the folder, and give its journal; no other process or task may hold it meanwhile.

        Args:
            identity: What the run is of, by name.
            state: Fingerprint of the values that the program holds; those that the run began with, or has written.

        Raises:
            RunError: Another holder, or a run of something else; lists each difference.
            OSError: The folder cannot be made or written; a JournalError where it cannot be locked.
        """
        try:
            make_folder(self.path)
        except FileExistsError:
            raise RunError(f"{self.path} is a file, and a run is kept in a folder: give another path.") from None
        locked = _lock_file(self.path / "lock", self.path)
        with locked as lock, closing(Cache(self._file, max_bytes=None, shared=False)) as records:
            self._check(identity, state, is_own=await records.find(f"state/{state}") is not None)
            yield Journal(records, await aio.to_thread(_paid, records), lock)

    def _check(self, identity: Mapping[str, Json], state: str, *, is_own: bool) -> None:
        """Write what the run is of, or compare it with what stands there.

        Raises:
            RunError: It differs, or the file is not one of ours.
        """
        file = self.path / "run.json"
        if not file.exists():
            created = datetime.fromtimestamp(wall_time(), UTC).isoformat(timespec="seconds")
            header = {"format": _FORMAT, "created": created, "synmod": __version__}
            write_atomic(file, dump_json({**header, "identity": {**identity, "state": state}}, indent=2) + "\n")
            return
        try:
            found: Any = parse_json(file.read_bytes())
            if found["format"] != _FORMAT:
                raise ValueError(found["format"])
            before: dict[str, Json] = {**found["identity"]}
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{file} is not the file of a run ({_FORMAT}). Begin in another folder.") from error
        here = {**identity, "state": before.get("state") if is_own else state}
        differences = tuple(
            (name, before[name], here[name])
            for name in sorted(before.keys() & here.keys())
            if not json_equal(before[name], here[name])
        )
        if differences:
            shown = "\n".join(f"  {name}: was {old!r:.200}, is {new!r:.200}" for name, old, new in differences)
            error = RunError(
                f"{self.path}: this is a run of something else:\n{shown}\nBegin in another folder, or undo the change."
            )
            error.differences = differences
            raise error


def run_from(given: Any) -> Run | None:
    """Return a run: itself, or that of a path."""
    return given if given is None or isinstance(given, Run) else Run(given)


_LOCKS: Final[WeakSet[FileIO]] = WeakSet()
"""The lock files that this process holds. A forked child closes its copies: a lock ends with the last of them."""

aio.in_forked_child(lambda: [file.close() for file in list(_LOCKS)])


@contextmanager
def _lock_file(path: Path, folder: Path) -> Generator[FileIO]:
    """Hold a file by a lock of the operating system, which ends with its holder, and yield it.

    Raises:
        RunError: Another one holds it; names its process.
        JournalError: The file cannot be locked.
    """
    import fcntl  # which Windows lacks

    with FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{folder}: {_holder(file.read(20))}") from None
        except OSError as error:
            raise JournalError(
                f"{path}: {error.strerror}: the file system cannot lock the run, so that two processes could write to "
                "it. Keep the run on a local disk, or mount this one with locks."
            ) from error
        _LOCKS.add(file)
        file.truncate(0)
        os.pwrite(file.fileno(), f"{os.getpid()}\n".encode(), 0)
        yield file


def _holder(text: bytes) -> str:
    """Return the message on a run that another process holds, with what stands in its lock file."""
    holder = text.decode("ascii", "replace").strip() or "unknown"
    if holder.isdecimal() and not _is_alive(int(holder)):
        return (
            f"the run is held in the name of process {holder}, which is gone: a process that it has started, or one "
            "on another machine, still holds the lock. End it, or use another folder."
        )
    return f"the run is under way in process {holder}. Wait for it, or use another folder."


def _is_alive(process: int) -> bool:
    """Whether there is a process of this number here."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True

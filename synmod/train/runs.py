"""Runs: rows are run once. What was paid for stands in a journal, so that the same line goes on where it was killed."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import CellType, CodeType, EllipsisType, FunctionType
from typing import Any, Final, cast

from synmod.cache import Cache, SingleFlight, key_of
from synmod.data import JsonDataModel, dump_json, parse_json, schema_of
from synmod.errors import ArgumentError, BudgetExceeded, DeadlineExceeded, EvaluationError, RunError
from synmod.leaves.aio import current_clock, wall_time
from synmod.leaves.files import write_atomic
from synmod.leaves.frozen import Json, json_equal
from synmod.lm import LanguageModel, models_in_force, use_language_models
from synmod.module import Module
from synmod.scope import BoundReward, Feedback, Usage, deadline, is_of_block_around
from synmod.tree import State, graphdef, state as state_of, using

from .batches import Places
from .evaluation import ExampleError
from .examples import Example, as_json
from .rollouts import CallRecord, Ran, Rollout, failure_text, run_once


class Runner:
    """Runs a program on examples under States, and remembers what came of it.

    Args:
        program: Stays as it is: a State is an overlay.
        reward: What judges, as it was given, and bound.
        places: Where rows run.
        journal: Keeps what was paid for; None for this process alone.
        paths: The modules whose calls are recorded.
        first: Values that every row begins with, such as memories.
        seed: The values of what is trained, which stand in the keys of rollouts and not in the run's identity.
        failure_score: What a failure of the program scores.
        seconds: How long the run may take, what stands in the journal included.

    Source: Temporal, DBOS (durable execution by replay); differs: records are keyed by content, not by position.
    """

    def __init__(
        self,
        program: Module,
        reward: Any = None,
        bound: BoundReward | None = None,
        *,
        places: Places,
        journal: Cache | None = None,
        paths: frozenset[str] = frozenset(),
        first: State | None = None,
        seed: State | None = None,
        failure_score: float | None = None,
        seconds: float | None = None,
    ) -> None:
        self.program, self.places = program, places
        self._journal, self._seconds = journal, seconds
        self._bound, self._paths, self._first = bound, paths, first or State()
        self._failure_score = bound.lowest if failure_score is None and bound is not None else failure_score
        self._flights = SingleFlight()
        self._done: dict[str, Rollout] = {}
        self._digests: dict[int, tuple[Example, str]] = {}
        self.live = 0
        """How many pieces were run in this process, rather than found."""
        self.before = Paid() if journal is None else Paid.of(journal)
        """What the records of earlier processes took."""
        self._clock = current_clock()
        self._began = self._clock.now() - self.before.seconds
        self.seed = State() if seed is None else seed
        others = state_of(program)
        others = State.of_leaves({path: leaf for path, leaf in others.items() if path not in self.seed})
        self._identity = key_of(
            {
                "program": [graphdef(program).fingerprint_with(name_of), others.to_json()],
                "models": [models_in_force(), [str(context.language_model) for context in places.contexts]],
                "reward": None if reward is None else identity_of(reward),
                "calls": sorted(paths),
            }
        )

    @property
    def elapsed_s(self) -> float:
        """How long the run has taken, in earlier processes too."""
        return self._clock.now() - self._began

    def key(self, example: Example, state: State, sample: int, model: LanguageModel | None = None) -> str:
        """Return what a rollout depends on, as the key of its record."""
        by = "" if model is None else key_of([model.model, model.defaults])
        return key_of(f"{self._identity} {state.fingerprint} {self._digest(example)} {sample} {by}")

    def _digest(self, example: Example) -> str:
        """Return the digest of a row, made once."""
        known = self._digests.get(id(example))
        if known is None:
            row = [example.id, example.inputs, example.target, dict(example.extra)]
            known = self._digests[id(example)] = example, key_of(as_json(row))
        return known[1]

    async def find(
        self,
        key: str,
        example: Example,
        state: State,
        sample: int = 0,
        model: LanguageModel | None = None,  # noqa: ARG002
    ) -> Rollout | None:
        """Return a rollout that is known or recorded; None where it must be run. Takes what `run` takes."""
        if key not in self._done:
            entry = await self.recorded(key)
            if entry is not None:
                self._done[key] = _rollout_of(entry, example, state, sample)
        return self._done.get(key)

    async def run(
        self, key: str, example: Example, state: State, sample: int = 0, model: LanguageModel | None = None
    ) -> Rollout:
        """Return the rollout of a row under a State that `find` has not found: under way, or run now.

        Args:
            key: What `key` returned for the rest.
            example: The row.
            state: Values of the Variables that are trained.
            sample: Number of the draw.
            model: Stands in for every model of the program; None for those it has.

        Raises:
            EvaluationError: A failure that is not about the row: no key, no model, a program that cannot be built.
            BudgetExceeded: The run's time is over, or that of an enclosing block; as DeadlineExceeded.
            OSError: The record cannot be written.
        """

        async def work() -> Rollout:
            if key in self._done:
                return self._done[key]
            async with self.places.taken():  # until it is recorded: a kill costs as many rollouts as run at once
                with self.within_time():
                    ran = await self._attempt(example, state, sample, model)
                rollout = self._judged(ran, example, state, sample)
                if not rollout.void:
                    await self.keep(key, partial(_entry, rollout))
                    self._done[key] = rollout
            return rollout

        return cast("Rollout", await self._flights.run(key, work, is_of_block_around))

    def within_time(self) -> AbstractContextManager[None]:
        """Return a block that holds what is run, rather than found, to the time that the run may take.

        Raises:
            BudgetExceeded: (in the block) The time is over.
        """
        return nullcontext() if self._seconds is None else self._within(self._seconds)

    @contextmanager
    def _within(self, seconds: float) -> Generator[None]:
        """Turn the end of the run's time into that of its budget."""
        try:
            with deadline(max(0.0, seconds - self.elapsed_s)):
                yield
        except DeadlineExceeded as error:
            if is_of_block_around(error):
                raise
            raise BudgetExceeded(f"the {seconds:g} s of the run's budget are over.") from error

    async def recorded(self, key: str) -> Mapping[str, Any] | None:
        """Return a record of the journal."""
        return None if self._journal is None else await self._journal.find(key)

    async def keep(self, key: str, entry: Callable[[], dict[str, Json]]) -> None:
        """Record a piece that was run, and when; what is not written would be paid for again.

        Raises:
            OSError: It cannot be written.
        """
        self.live += 1
        if self._journal is not None:
            await keep(self._journal, key, {**entry(), "at": self.elapsed_s})

    def known(self, key: str) -> Rollout | None:
        """Return a rollout that was run or found before."""
        return self._done.get(key)

    async def _attempt(self, example: Example, state: State, sample: int, model: LanguageModel | None) -> Ran:
        """Run one row on a copy of its own."""
        overlay = state | self._first if self._first else state
        with nullcontext() if model is None else use_language_models(model), using(self.program, overlay):
            return await run_once(self.program, example, reward=self._bound, sample=sample, paths=self._paths)

    def _judged(self, ran: Ran, example: Example, state: State, sample: int) -> Rollout:
        """Return the rollout of what became of a run."""
        failure, error, feedback = ran.failure, ran.error(), ran.feedback
        if failure is not None and ran.fault == "fatal":
            raise EvaluationError(
                f"row {example.id!r} failed for a reason that is not its own: {error}. What finished is kept: mend the "
                "cause and run the same line again."
            ) from failure
        if failure is not None:
            is_own = ran.fault == "program"
            feedback = Feedback(self._failure_score if is_own else None, critique=failure_text(failure))
        elif feedback is not None and feedback.target is not None:
            feedback = replace(feedback, target=as_json(feedback.target))  # as it would be found
        return Rollout(
            id=cast("str", example.id), inputs=example.inputs, target=example.target, outputs=ran.outputs,
            score=None if feedback is None else feedback.score, feedback=feedback, error=error, usage=ran.usage,
            elapsed_s=ran.elapsed_s, call_id=ran.watch.call_id, sample=sample, candidate=state.fingerprint,
            void=ran.fault == "void", calls=ran.watch.calls(),
        )  # fmt: skip


async def keep(journal: Cache, key: str, entry: dict[str, Json]) -> None:
    """Write a record.

    Raises:
        OSError: It cannot be written.
    """
    if not await journal.keep(key, entry):
        raise OSError(
            f"{journal.path}: the journal cannot be written. What finished before is kept: make room, and run the same "
            "line again."
        )


@dataclass(frozen=True, slots=True)
class Paid:
    """What the pieces of a journal took.

    Attributes:
        pieces: Rollouts and proposals.
        usage: What they used.
        seconds: How long the run had taken when the last of them was done.
    """

    pieces: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @classmethod
    def of(cls, journal: Cache) -> Paid:
        """Read a journal."""
        found: list[Any] = [value for _, value in journal.items() if "at" in value]
        usage = sum((Usage(**value["usage"]) for value in found), Usage())
        return cls(len(found), usage, max((value["at"] for value in found), default=0.0))


def identity_of(module: Module) -> Json:
    """Return what the results of a module depend on: its structure, and the values of its Variables."""
    return [graphdef(module).fingerprint_with(name_of), state_of(module).to_json()]


def name_of(thing: object) -> str:
    """Return a text for what cannot be written: where it is defined; of a function also a digest of its code."""
    if isinstance(thing, partial):
        return f"{name_of(thing.func)} {key_of([_text_of(thing.args), _text_of(thing.keywords)])}"
    place, function = _place_of(thing), getattr(thing, "__func__", thing)
    if not isinstance(function, FunctionType):
        return place
    cells = [_held(cell) for cell in function.__closure__ or ()]
    parts = [function.__code__, function.__defaults__, function.__kwdefaults__, cells]
    return f"{place} {key_of([_text_of(part) for part in parts])}"


def _place_of(thing: object) -> str:
    """Return where something, or else its class, is defined."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _held(cell: CellType) -> object:
    """Return the value of a closure; None before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


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


def _entry(rollout: Rollout) -> dict[str, Json]:
    """Return the record of a rollout as the journal keeps it; the row itself stands in its key."""
    feedback, error, outputs = rollout.feedback, rollout.error, rollout.outputs
    return {
        "row": rollout.id,
        "outputs": as_json(outputs),
        "schema": schema_of(outputs) if isinstance(outputs, JsonDataModel) else None,
        "feedback": None if feedback is None else feedback.record(),
        "error": None if error is None else {**asdict(error), "notes": list(error.notes)},
        "usage": dict(vars(rollout.usage)),
        "elapsed_s": rollout.elapsed_s,
        "call_id": rollout.call_id,
        "calls": [call.to_json() for call in rollout.calls],
    }


def _rollout_of(entry: Mapping[str, Any], example: Example, state: State, sample: int) -> Rollout:
    """Return the rollout of a record."""
    feedback = None if entry["feedback"] is None else Feedback(**entry["feedback"])
    error: Any = None if entry["error"] is None else {**entry["error"], "notes": tuple(entry["error"]["notes"])}
    outputs: Any = entry["outputs"]
    if entry["schema"] is not None:
        outputs = JsonDataModel[Any](outputs, schema=entry["schema"])
    return Rollout(
        id=cast("str", example.id), inputs=example.inputs, target=example.target, outputs=outputs,
        score=None if feedback is None else feedback.score, feedback=feedback,
        error=None if error is None else ExampleError(**error),
        usage=Usage(**entry["usage"]), elapsed_s=entry["elapsed_s"], call_id=entry["call_id"], sample=sample,
        candidate=state.fingerprint, calls=tuple(CallRecord(**call) for call in entry["calls"]),
    )  # fmt: skip


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
        ArgumentError: A limit that is not a number, or negative.

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
            whole = name in ("rollouts", "lm_calls", "tokens")
            is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
            if value is not None and not (is_number and value >= 0):
                raise ArgumentError(f"Budget: {name} is {value!r}; give {'a whole number' if whole else 'a number'}.")


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

    A path is accepted wherever a run is. `run.json` says what the run is of; `journal.db` holds the records, in the
    form of `sm.Cache`: the sqlite3 tool and a text editor read them. Neither holds keys of providers.

    Args:
        path: The folder; made when the run begins.

    Example:
        >>> Run("runs/faq-01").path.name
        'faq-01'

    Source: Temporal, DBOS (durable execution by replay); differs: records are keyed by content, not by position.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def usage(self) -> Usage:
        """What all recorded pieces used, across restarts; nothing before the run has begun."""
        if not self._file.exists():
            return Usage()
        with closing(Cache(self._file, max_bytes=None)) as journal:
            return Paid.of(journal).usage

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
    async def opened(self, identity: Mapping[str, Json], state: str) -> AsyncGenerator[Cache]:
        """Hold the folder, and give its journal; no other process or task may hold it meanwhile.

        Args:
            identity: What the run is of, by name.
            state: Fingerprint of the values that the program holds; those that the run began with, or has written.

        Raises:
            RunError: Another holder, or a run of something else; lists each difference.
            OSError: The folder cannot be written.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with _locked(self.path / "lock", self.path), closing(Cache(self._file, max_bytes=None)) as journal:
            self._check(identity, state, is_own=await journal.find(f"state/{state}") is not None)
            yield journal

    def _check(self, identity: Mapping[str, Json], state: str, *, is_own: bool) -> None:
        """Write what the run is of, or compare it with what stands there.

        Raises:
            RunError: It differs, or the file is not one of ours.
        """
        file = self.path / "run.json"
        if not file.exists():
            created = datetime.fromtimestamp(wall_time(), UTC).isoformat(timespec="seconds")
            header = {"format": _FORMAT, "created": created, "synmod": version("synmod")}
            write_atomic(file, dump_json({**header, "identity": {**identity, "state": state}}, indent=2) + "\n")
            return
        try:
            found: Any = parse_json(file.read_bytes())
            before: dict[str, Json] = dict(found["identity"])
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{file} is not the file of a run: {error}. Begin in another folder.") from error
        here = {**identity, "state": before.get("state") if is_own else state}
        differences = tuple(
            (name, before.get(name), here.get(name))
            for name in sorted({*before, *here})
            if not json_equal(before.get(name), here.get(name))
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


@contextmanager
def _locked(file: Path, folder: Path) -> Generator[None]:
    """Hold a file by a lock of the operating system, which ends with its holder.

    Raises:
        RunError: Another one holds it; names its process.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            _lock(descriptor)
        except OSError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            raise RunError(
                f"{folder}: the run is under way in process {holder}. Wait for it, or use another folder."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file without waiting.

    Raises:
        OSError: Another one holds it.
    """
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

"""Run: the folder of a journal, held by one process at a time; `durable`: a block whose calls are recorded in it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet

from synmod import leaves, tree
from synmod.cache import Cache
from synmod.data import declare, dump_json, parse_json, validate
from synmod.errors import ArgumentError, JournalError, Paused, RunError
from synmod.leaves import Json, aio
from synmod.scope import NO_USAGE, Question, Usage

from .calls import BEGUN, CALL, Part
from .journal import Journal, sum_paid, unusable, usage_of, used_of

T = TypeVar("T")

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
        leaves.check_type("run", path, str | os.PathLike, "a folder, such as 'runs/faq-01', or a sm.Run")
        self.path = Path(leaves.path_text(path))

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def usage(self) -> Usage:
        """What all recorded pieces and calls used, across restarts; nothing before the run has begun."""
        return self._read(_paid, NO_USAGE)

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions that have no answer, in the order in which they were asked first."""
        return self._read(lambda records: tuple(_questions(records).values()), ())

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The recorded calls, in the order of their commits."""
        return self._read(_calls, ())

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
        with self._records() as journal:
            lines = [dump_json({"key": key, "value": value}) for key, value in sorted(journal.items())]
        return leaves.write_atomic(path, "".join(f"{line}\n" for line in lines))

    def answer(self, id: str, value: Any, by: str | None = None) -> None:  # noqa: A002  # the name in Question
        """Answer an open question, from this process or another one; then run the same lines again.

        Args:
            id: That of the question.
            value: The answer: JSON, or a data model.
            by: Who has answered, for the record.

        Raises:
            SchemaError: The answer does not satisfy the schema of the question.
            DataError: It is not JSON.
            RunError: No question of this id is open, or the run has not begun.
            JournalError: The answer cannot be written.
        """
        with self._records() as records:
            questions = _questions(records)
            if id not in questions:
                names = ", ".join(questions) or "none"
                raise RunError(f"{self.path}: no question {id!r} is open. Open are: {names}.")
            reply = leaves.frozen(value)
            validate(declare(questions[id].schema, root="any"), reply, f"The answer to {questions[id].text!r:.200}")
            self._change(records, {f"answer/{id}": {"value": reply, "when": leaves.wall_time(), "by": by}})

    def settle(self, call: RecordedCall, result: Any) -> None:
        """Record what came of a run of a tool with `once=True` that began and did not end.

        Args:
            call: One of `calls` whose `ended` is False.
            result: The result of the function of the tool, as JSON or a data model.

        Raises:
            RunError: The call is not one of those.
            DataError: The result is not JSON.
            JournalError: It cannot be written.
        """
        with self._records() as records:
            if getattr(call, "key", None) not in {known.key for known in _calls(records) if not known.ended}:
                raise RunError(f"{self.path}: {call!r} is not a call that began and did not end; see Run.calls.")
            note = {name: getattr(call, name) for name in ("path", "kind", "name", "arguments")}
            note["when"] = leaves.wall_time()
            self._change(records, {f"{CALL}{call.key}": {**note, "value": {"settled": leaves.frozen(result)}}})

    def forget(
        self, paths: str | RecordedCall | Iterable[str | RecordedCall], *, after: bool = False
    ) -> tuple[RecordedCall, ...]:
        """Drop recorded calls, which are then made again.

        Args:
            paths: Globs of the paths of modules (`*` within one step, `**` any number of steps), or some of `calls`.
            after: Whether all that was committed after the first of them goes, too: calls, questions and answers.

        Returns:
            The calls that were dropped.

        Raises:
            RunError: The run has not begun.
            JournalError: The file cannot be written.

        Example:
            >>> Run("runs/order-17").forget("desk/**")  # doctest: +SKIP

        Source: LangGraph's time travel; differs: by path, and without a second copy of the state.
        """
        wanted = [paths] if isinstance(paths, str | RecordedCall) else [*paths]
        keys = {call.key for call in wanted if isinstance(call, RecordedCall)}
        globs = [tree.Path(glob) for glob in wanted if isinstance(glob, str)]
        with self._records() as records:
            calls = _calls(records)
            chosen = [
                call
                for call in calls
                if call.key in keys or any(glob(leaves.parse_path(call.path), None) for glob in globs)
            ]
            later: list[str] = []
            if after and chosen:
                chosen = calls[calls.index(chosen[0]) :]
                order = [key for key, _ in records.items()]
                first = min(order.index(key) for key in _keys_of(chosen[0]) if key in order)
                later = [key for key in order[first:] if key.startswith(("question/", "answer/"))]
            paid = sum((call.usage for call in chosen), _forgotten(records))
            gone = [key for call in chosen for key in _keys_of(call)]
            self._change(records, {_FORGOTTEN: {"usage": used_of(paid)}}, [*gone, *later])
        return tuple(chosen)

    def _read(self, read: Callable[[Cache], T], empty: T) -> T:
        """Return what a function reads in the journal; another value before the run has begun."""
        if not self._file.exists():
            return empty
        with self._records() as records:
            return read(records)

    @contextmanager
    def _records(self) -> Generator[Cache]:
        """Open the journal beside the process that holds it.

        Raises:
            RunError: There is none.
            JournalError: Another program keeps it busy, or it cannot be read, or written in the block.
        """
        if not self._file.exists():
            raise RunError(f"{self.path}: there is no journal; the run has not begun.")
        with closing(Cache(self._file, max_bytes=None)) as records:
            try:
                records.items(BEGUN)  # opens the file; a cache that cannot do so goes on in memory
                if records.fault is not None:
                    raise OSError(str(records.fault)) from records.fault
                yield records
            except OSError as error:
                raise unusable(self._file, error, "used") from error

    def _change(self, records: Cache, put: Mapping[str, Any], remove: Iterable[str] = ()) -> None:
        """Commit notes, without secrets."""
        records.change({key: leaves.scrub_json(note) for key, note in put.items()}, remove)

    @asynccontextmanager
    async def open_journal(
        self, identity: Mapping[str, Json], state: str, *, records_calls: bool = False, durable_rows: bool = False
    ) -> AsyncGenerator[Journal]:
        """Hold the folder, and give its journal; no other process or task may hold it meanwhile.

        Args:
            identity: The program and settings that the run belongs to, by name.
            state: Fingerprint of the values that the program holds; those that the run began with, or has written.
            records_calls: Whether the calls of the block are recorded.
            durable_rows: Whether the calls of its rows are.

        Raises:
            RunError: Another holder, or a run of something else; lists each difference.
            OSError: The folder cannot be made or written; a JournalError where it cannot be locked.
        """
        try:
            leaves.make_folder(self.path)
        except FileExistsError:
            raise RunError(f"{self.path} is a file, and a run is kept in a folder: give another path.") from None
        records = Cache(self._file, max_bytes=None, shared=False)
        with _lock_file(self.path / "lock", self.path) as lock:
            try:  # what waits for the disk does so in threads
                is_own = await records.find(f"state/{state}") is not None
                await aio.to_thread(self._check, identity, state, is_own)
                journal = Journal(records, await aio.to_thread(sum_paid, records), lock)
                journal.durable_rows = durable_rows
                if records_calls:
                    journal.refuse_damage()
                with Part(journal, records_calls=records_calls):
                    try:
                        yield journal
                    except Paused:
                        journal.drop_questions()
                        raise
                journal.drop_questions()
            finally:
                records.close()  # at once: what still runs must not begin anything that is not written down

    def _check(self, identity: Mapping[str, Json], state: str, is_own: bool) -> None:
        """Write the program and settings that the run belongs to, or compare them with those in the folder.

        Raises:
            RunError: It differs, or the file is not one of ours.
        """
        file = self.path / "run.json"
        if not file.exists():
            created = datetime.fromtimestamp(leaves.wall_time(), UTC).isoformat(timespec="seconds")
            header = {"format": _FORMAT, "created": created, "synmod": leaves.__version__}
            leaves.write_atomic(file, dump_json({**header, "identity": {**identity, "state": state}}, indent=2) + "\n")
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
            if not leaves.json_equal(before[name], here[name])
        )
        if differences:
            shown = "\n".join(f"  {name}: was {old!r:.200}, is {new!r:.200}" for name, old, new in differences)
            error = RunError(
                f"{self.path}: this is a run of something else:\n{shown}\nBegin in another folder, or undo the change."
            )
            error.differences = differences
            raise error


def run_from(given: Any, durable_rows: bool = False) -> Run | None:
    """Return a run: itself, or that of a path.

    Raises:
        ArgumentError: It is not a path; or there is none, and `durable_rows` needs one.
    """
    if given is None and durable_rows:
        raise ArgumentError("durable_rows=True keeps the calls of rows in a run: give its folder, run='runs/faq-01'.")
    return given if given is None or isinstance(given, Run) else Run(given)


@asynccontextmanager
async def durable(run: Run | str | os.PathLike[str]) -> AsyncGenerator[Run]:
    """Record the calls of a block in a folder: killed at any time, the same lines go on where they were.

    Each model call, embedding call and run of a `Tool` is a record, with the path of the module that made it, its
    content, and the number of equal ones before it at that path. Started again, the code runs from its beginning, and
    what is recorded is found instead of done. So what it reads of the world, such as the time, belongs into its inputs
    or into a Tool.

    Args:
        run: A folder, or a `sm.Run`.

    Yields:
        The `Run`.

    Raises:
        RunError: The folder is in use, or is that of an evaluation or a training.
        JournalError: The journal is damaged; (in the block) a record cannot be written.
        OSError: The folder cannot be made or written.
        Paused: (in the block) A question has no answer: give it by `Run.answer`, and run the same lines again.

    Example:
        >>> import synmod as sm
        >>> model = sm.testing.ScriptedLM(["Paris"])
        >>> async def main():
        ...     async with sm.durable("runs/capital"):
        ...         return (await model("Capital of France?")).text
        >>> sm.run(main), sm.run(main), len(model.requests)
        ('Paris', 'Paris', 1)

    Source: Temporal, DBOS (durable execution); differs: one folder, plain code, records are keyed by content.
    """
    folder = run if isinstance(run, Run) else Run(run)
    async with folder.open_journal({"program": "a durable block"}, "", records_calls=True):
        yield folder


# -- what stands in a journal ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One recorded call.

    Attributes:
        path: The module that made it.
        kind: "model", "embedding" or "tool".
        name: The model, or the tool.
        when: When it was recorded, in UTC.
        usage: The tokens and money that it used.
        arguments: Those of a tool; None for other calls.
        ended: False for a run of a tool with `once=True` that began and did not end.
        key: Names it in the journal.
    """

    path: str
    kind: str
    name: str
    when: datetime
    usage: Usage
    arguments: Json
    ended: bool
    key: str

    @property
    def cost(self) -> float | None:
        """What it cost in US dollars; None where no price is known."""
        return self.usage.cost_usd


_FORGOTTEN: Final = "forgotten"
"""The note of what dropped calls had used, which was paid all the same."""


def _keys_of(call: RecordedCall) -> tuple[str, str]:
    """Return the keys of the notes of a call."""
    return f"{CALL}{call.key}", f"{BEGUN}{call.key}"


def _usage(note: Mapping[str, Any]) -> Usage:
    """Return the usage in a note."""
    return usage_of(note.get("usage", {})) or NO_USAGE


def _forgotten(records: Cache) -> Usage:
    """Return what the calls used that were dropped."""
    return sum((_usage(note) for _, note in records.items(_FORGOTTEN)), NO_USAGE)


def _paid(records: Cache) -> Usage:
    """Return what all pieces and calls used, those that were dropped included."""
    used = [_usage(record) for _, record in records.items(CALL) if "row" not in record]
    return sum(used, sum_paid(records)[1] + _forgotten(records))


def _calls(records: Cache) -> tuple[RecordedCall, ...]:
    """Return the recorded calls in the order of their commits, with the runs that began and did not end."""
    notes = {key: note for key, note in records.items() if key.startswith((CALL, BEGUN))}
    calls: list[RecordedCall] = []
    for key, note in notes.items():
        name, ended = key.partition("/")[2], key.startswith(CALL)
        if ended or f"{CALL}{name}" not in notes:
            when = datetime.fromtimestamp(note["when"], UTC)
            place = note["path"], note["kind"], note["name"]
            calls.append(RecordedCall(*place, when, _usage(note), note.get("arguments"), ended, name))
    return tuple(calls)


def _questions(records: Cache) -> dict[str, Question]:
    """Return the questions without an answer, by id."""
    answered = {key.removeprefix("answer/") for key, _ in records.items("answer/")}
    names = ("id", "text", "value", "schema", "path")
    questions = [Question(**{name: note[name] for name in names}) for _, note in records.items("question/")]
    return {question.id: question for question in questions if question.id not in answered}


# -- one holder --------------------------------------------------------------------------------------------------------

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
            holder = file.read(20).decode("ascii", "replace").strip() or "unknown"
            raise RunError(
                f"{folder}: the run is under way in process {holder}; if that is gone, in one that it has started, or "
                "on another machine. Wait for it or end it, or use another folder."
            ) from None
        except OSError as error:
            raise JournalError(
                f"{path}: {error.strerror}: the file system cannot lock the run, so that two processes could write to "
                "it. Keep the run on a local disk, or mount this one with locks."
            ) from error
        _LOCKS.add(file)
        file.truncate(0)
        os.pwrite(file.fileno(), f"{os.getpid()}\n".encode(), 0)
        yield file

"""Durable runs over HTTP: a folder each, driven in the background, answered by people, gone on with after a restart."""

from __future__ import annotations

import asyncio
import contextvars
import json
import re
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from synmod import errors, lm, scope
from synmod.data import declare, validate
from synmod.journal import Run, durable
from synmod.leaves import aio, did_you_mean, is_object, make_folder, wall_time, write_atomic

from .endpoints import find_endpoint, outputs_json
from .exchange import PING_S, Exchange, event_of, to_bytes, write_event
from .load import Places
from .refusals import QueueFull, Refusal, refusal_of, refuse_inputs

if TYPE_CHECKING:
    from .app import Application

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STATES: Final = ("queued", "running", "waiting", "done", "failed", "cancelled")
_LOOK_S: Final = 1.0
"""How often waiting runs are looked at: another process may have answered."""
_HELD: Final = {""}
"""The questions of a run that another process drives: no look finds them, so that it is tried again."""
_MOST_EVENTS: Final = 10_000
_DIGITS: Final = 18


def record_of(folder: Path, state: str = "") -> dict[str, Any]:
    """Return what is known of a run; `state` is that of one that neither ended nor waits, if it is known."""
    run = Run(folder)
    request: Any = json.loads(_read(folder / "request.json") or b"{}")  # missing for one that no server has begun
    result: Any = json.loads(_read(folder / "result.json") or b"{}")
    questions, usage = list[Any](), None
    if not result and (folder / "journal.db").exists():
        with suppress(errors.RunError):  # a damaged journal was moved aside meanwhile
            questions, usage = [question.to_json() for question in run.waiting], vars(run.usage)
    state = state or ("queued" if request else "begun")
    state = "waiting" if questions and state != "running" else state
    about = {"id": folder.name, "program": request.get("program"), "created": request.get("created")}
    return {**about, "state": state, "outputs": None, "problem": None, "usage": usage, **result, "questions": questions}


def _read(file: Path) -> bytes:
    """Return the bytes of a file; none where it is missing."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


class _Live:
    """A run that this process drives.

    Attributes:
        state: `queued` or `running`.
        events: The last events, each with its number.
        arrival: Where readers of its events wait.
        task: The task that drives it.
    """

    def __init__(self) -> None:
        self.state = "queued"
        self.events: deque[tuple[int, bytes]] = deque(maxlen=_MOST_EVENTS)
        self.count = 0
        self.arrival = aio.Gate()
        self.task: asyncio.Task[None] | None = None

    def add(self, name: str, body: Any) -> None:
        """Add an event."""
        self.count += 1
        self.events.append((self.count, write_event(name, body)))
        self.arrival.wake_all()

    def stop(self) -> None:
        """Cancel the task; its records stay."""
        if self.task is not None:
            self.task.cancel()


class DurableRuns:
    """The runs of a server, each in a subfolder with its request, its journal and its result.

    Args:
        app: The application.
        folder: Where the runs are.
        concurrency: How many run at once, beside the calls.
        queue: How many more may wait for a place.
    """

    def __init__(self, app: Application, folder: Path, concurrency: int, queue: int) -> None:
        make_folder(folder)
        self._app, self.folder = app, folder
        self._places, self._most = Places(concurrency, queue), concurrency + queue
        self._one_writer = aio.ThreadLimit(1)  # a write waits for the disk
        self._context = contextvars.copy_context()  # that of the application: a run outlives its request
        self._live: dict[str, _Live] = {}
        self._waiting: dict[str, set[str]] = {}  # the open questions of each run that waits
        self._watcher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Go on with the runs that did not end, once per process."""
        if self._watcher is None:
            self._watcher = self._spawn(self._watch())

    def stop(self) -> None:
        """Cancel what runs here; another start goes on."""
        for live in [*self._live.values()]:
            live.stop()
        if self._watcher is not None:
            self._watcher.cancel()

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        """Start a task in a copy of the context of the application."""
        return asyncio.get_running_loop().create_task(work, context=self._context.copy())

    async def _watch(self) -> None:
        """Go on with the runs that did not end, and then with those whose questions another process has answered."""
        for record in await aio.to_thread(self.records):
            if record["state"] == "waiting":
                self._waiting[record["id"]] = {question["id"] for question in record["questions"]}
            elif record["state"] == "queued":
                self._drive(record["id"])
        stamps = dict[str, Any]()
        while True:
            await asyncio.sleep(_LOOK_S)
            for run_id in await aio.to_thread(self._find_answered, stamps):
                self._drive(run_id)

    def _find_answered(self, stamps: dict[str, Any]) -> list[str]:
        """Return the waiting runs of which a question was answered; a journal is read where its stamp has changed."""
        answered = list[str]()
        for run_id, questions in [*self._waiting.items()]:
            folder = self.folder / run_id
            with suppress(FileNotFoundError, errors.RunError):  # a file that has just gone: at the next look
                stamp = [file.stat().st_mtime_ns for file in folder.glob("journal.db*")]
                is_new = stamp != stamps.get(run_id) or questions == _HELD
                if is_new and {question.id for question in Run(folder).waiting} != questions:
                    answered.append(run_id)
                stamps[run_id] = stamp
        return answered

    def _drive(self, run_id: str) -> None:
        """Run a run, or go on with it, unless it has ended."""
        self._waiting.pop(run_id, None)
        if self._has_ended(run_id):
            return
        live = self._live.setdefault(run_id, _Live())
        if live.task is None:
            live.task = self._spawn(self._run(run_id, live))

    def _has_ended(self, run_id: str) -> bool:
        return (self.folder / run_id / "result.json").exists()

    async def _run(self, run_id: str, live: _Live) -> None:
        """Run a run until it ends, pauses or is cancelled."""
        folder = self.folder / run_id
        request: Any = json.loads((folder / "request.json").read_bytes())
        self._app.in_flight.add(live)
        budgets: tuple[Any, ...] = ()
        try:
            async with self._places.take():
                if self._app.is_stopping:
                    return
                with ExitStack() as blocks:
                    budgets = self._app.open_blocks(blocks, "run", {})
                    usage = blocks.enter_context(scope.track_usage())
                    blocks.callback(lambda: self._app.metrics.count_usage(usage.total()))
                    async with durable(folder):
                        live.state = "running"
                        outputs = outputs_json(await self._call(request, live))
            await self._end(run_id, {"state": "done", "outputs": outputs})
        except errors.Paused as pause:
            self._waiting[run_id] = {question.id for question in pause.questions}
            live.add("waiting", {"questions": [question.to_json() for question in pause.questions]})
        except Exception as error:  # noqa: BLE001  # each becomes the result of the run
            is_held = isinstance(error, errors.RunError) and not isinstance(error, errors.JournalError)
            if live.state == "queued" and is_held:  # by another process
                self._waiting[run_id] = _HELD
            else:
                problem = refusal_of(error, run_id, budgets).problem(run_id)
                await self._end(run_id, {"state": "failed", "problem": problem})
        finally:
            self._app.in_flight.discard(live)
            live.state, live.task = "queued", None
            if run_id not in self._waiting:
                self._live.pop(run_id, None)
            live.arrival.wake_all()

    async def _call(self, request: Mapping[str, Any], live: _Live) -> Any:
        """Return what the program of a run returns; note its events."""
        program = find_endpoint(self._app.programs, request["program"])
        answering = program.answering
        async with lm.stream(program.call, program.read_inputs(request["inputs"]), events=True) as source:
            async for item in source:
                if (event := event_of(item, answering, details=self._app.details)) is not None:
                    live.add(*event)
        return source.result

    async def _end(self, run_id: str, result: Mapping[str, Any]) -> None:
        """Write the result of a run, unless it has one."""
        await aio.to_thread(self._write_result, self.folder / run_id, result, limiter=self._one_writer)

    def _write_result(self, folder: Path, result: Mapping[str, Any]) -> None:
        if not (folder / "result.json").exists():
            write_atomic(folder / "result.json", to_bytes({**result, "usage": vars(Run(folder).usage)}))

    # -- requests -----------------------------------------------------------------------------------------------------

    async def begin(self, exchange: Exchange, name: str | None) -> None:
        """Answer with a new run, once it is on disk, or with that of the same key.

        Raises:
            Refusal: The key is that of a run with other inputs, or the queue is full.
        """
        program, _ = await self._app.read_call(exchange, name)
        key = exchange.headers.get("idempotency-key")
        run_id = token_hex(16) if not key else sha256(key.encode()).hexdigest()[:32]
        request = {"program": program.name, "inputs": exchange.json}
        if await aio.to_thread(self._write_request, self.folder / run_id, request, limiter=self._one_writer):
            self._drive(run_id)
        await self._show(exchange, run_id, 201, {"location": f"{exchange.root}/runs/{run_id}"})

    def _write_request(self, folder: Path, request: Mapping[str, Any]) -> bool:
        """Write the request of a new run; return False where it is on disk."""
        file = folder / "request.json"
        if text := _read(file):
            if {**json.loads(text), "created": None} != {**request, "created": None}:
                raise Refusal(422, "The Idempotency-Key is that of a run with other inputs.")
            return False
        if sum(live.task is not None for live in [*self._live.values()]) >= self._most:
            raise QueueFull
        make_folder(folder)
        write_atomic(file, to_bytes({**request, "created": datetime.fromtimestamp(wall_time(), UTC).isoformat()}))
        return True

    def _check(self, run_id: str | None) -> str:
        """Return the id of a run; raise Refusal for another."""
        if run_id is None or not _ID.fullmatch(run_id) or not (self.folder / run_id / "request.json").is_file():
            raise Refusal(404, "There is no run of this id.")
        return run_id

    def record(self, run_id: str) -> dict[str, Any]:
        """Return what is known of a run."""
        return record_of(self.folder / run_id, self._live.get(run_id, _Live()).state)

    async def _show(self, exchange: Exchange, run_id: str, status: int = 200, headers: Any = None) -> None:
        """Answer with a run."""
        await exchange.answer(status, await aio.to_thread(self.record, run_id), headers)

    async def show(self, exchange: Exchange, run_id: str | None) -> None:
        """Answer with one run, or with all runs of a state."""
        if run_id is not None:
            await self._show(exchange, self._check(run_id))
            return
        state = dict(parse_qsl(exchange.scope.get("query_string", b"").decode("latin-1"))).get("state")
        if state not in (None, *_STATES):
            raise Refusal(
                400, f"There is no state {state!r:.100}.{did_you_mean(state, _STATES)} ({', '.join(_STATES)})"
            )
        records = await aio.to_thread(self.records)  # there may be thousands
        await exchange.answer(200, [record for record in records if state in (None, record["state"])])

    def records(self) -> list[dict[str, Any]]:
        """Return what is known of all runs, newest first."""
        records = [self.record(path.parent.name) for path in self.folder.glob("*/request.json")]
        return sorted(records, key=lambda record: (record["created"], record["id"]), reverse=True)

    async def answer(self, exchange: Exchange, run_id: str | None) -> None:
        """Answer questions of a run, all or none, and go on with it.

        Raises:
            Refusal: A question is not open, or an answer does not fit.
        """
        run_id, values = self._check(run_id), await exchange.read_json(self._app.max_body)
        if not is_object(values):
            raise Refusal(422, "The answers must be an object: {question id: value}.")
        await aio.to_thread(_write_answers, self.folder / run_id, values, limiter=self._one_writer)
        if values:
            self._drive(run_id)
        await self._show(exchange, run_id)

    async def cancel(self, exchange: Exchange, run_id: str | None) -> None:
        """Cancel a run that has not ended."""
        run_id = self._check(run_id)
        await self._end(run_id, {"state": "cancelled"})
        self._waiting.pop(run_id, None)
        live = self._live.get(run_id)
        if live is not None and live.task is None:
            del self._live[run_id]
            live.arrival.wake_all()
        elif live is not None:
            live.stop()
        await self._show(exchange, run_id)

    async def send_events(self, exchange: Exchange, run_id: str | None) -> None:
        """Answer with the events of a run; readers do not hold up a server that goes down."""
        known = self._check(run_id)
        self._app.readers.add(exchange)
        try:
            await exchange.run_attended(lambda: self._send_events(exchange, known))
        finally:
            self._app.readers.discard(exchange)
        await exchange.end_events()

    async def _send_events(self, exchange: Exchange, run_id: str) -> None:
        """Send the events of a run from the one after the header `Last-Event-ID` on, until it ends."""
        last = exchange.headers.get("last-event-id", "")
        sent = int(last) if last.isdecimal() and len(last) < _DIGITS else 0
        live = _Live() if self._has_ended(run_id) else self._live.setdefault(run_id, _Live())
        sent = sent if sent <= live.count else 0  # numbered by another process
        while True:
            for number, event in [*live.events]:
                if number > sent:
                    sent = number
                    await exchange.send_raw_event(b"id: %d\n" % number + event)
            if live.count > sent:
                continue
            if self._has_ended(run_id):
                break
            with aio.deadline_scope(PING_S) as wait:
                await live.arrival.wait()
            if wait.expired:
                await exchange.send_raw_event(b": ping\n\n")
        record = await aio.to_thread(self.record, run_id)
        if record["state"] == "done":
            body = {"outputs": record["outputs"], "usage": record["usage"], "request_id": run_id}
            await exchange.send_event("result", body)
        else:
            cancelled = Refusal(409, "The run was cancelled.").problem(run_id)
            await exchange.send_event("error", record["problem"] or cancelled)


def _write_answers(folder: Path, values: Mapping[str, Any]) -> None:
    """Answer questions of a run, all or none.

    Raises:
        Refusal: A question is not open, or an answer does not fit.
    """
    run = Run(folder)
    questions = {} if (folder / "result.json").exists() else {question.id: question for question in run.waiting}
    if unknown := [name for name in values if name not in questions]:
        raise Refusal(409, f"The question {unknown[0][:100]!r} is not open.")
    try:
        for name, value in values.items():
            validate(declare(questions[name].schema, root="any"), value, "the answer")
    except errors.SchemaError as error:
        raise refuse_inputs(error) from None
    for name, value in values.items():
        run.answer(name, value)

"""Batch jobs: requests that wait at the same time become one job of the provider's batch API, at half the price.

One call of a job at a time drives it: the first one collects, creates and waits, and if it is cancelled, the next one
goes on where it was. So no task outlives the calls, and a job is given up when its last call has left.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from synmod import errors, scope
from synmod.cache import key_of
from synmod.leaves import Json, aio, current_clock, wall_time
from synmod.wires import an_object, objects_in

from .options import BatchJobs
from .records import LMReply, LMRequest
from .streaming import read_json
from .words import json_text

if TYPE_CHECKING:
    from synmod.journal import Part

    from .direct_adapter import DirectAdapter

_LOG: Final = logging.getLogger("synmod.lm")
_CLEAN_UP_S, _LONGEST_CREATE_S = 1.0, 60.0
_MISSING: Final = (503, {"error": "the batch job has no result for the request"})
_LARGE: Final = 2**20  # bytes of results that are read in a worker thread


class JobState(NamedTuple):
    """What a provider tells of a job: whether it has ended, how many requests are done and failed."""

    has_ended: bool
    done: int
    failed: int
    results: tuple[str, ...] = ()
    """The addresses of the results, after that of the API."""
    fault: str = ""


class BatchApi:
    """The batch API of a provider.

    Attributes:
        path: The path of its jobs.
        most_bytes: How many bytes of requests one job takes.
        recovers: Whether a job can be found by our name for it.
    """

    path: str
    most_bytes: int
    recovers = False

    def __init__(self, adapter: DirectAdapter, window: str) -> None:
        self._adapter, self._window = adapter, window

    async def cancel(self, job: str) -> None:
        """Cancel a job."""
        await self._adapter.fetch("POST", f"{self.path}/{job}/cancel", {})

    async def find(self, name: str) -> str | None:  # noqa: ARG002  # by default a job has no name of ours
        """Return the id of the job with our name; None if it is missing."""
        return None

    async def _ask(
        self, method: str, path: str, data: bytes | Mapping[str, Any] = b"", content_type: str = "application/json"
    ) -> dict[str, Any]:
        """Return the object that the API answers.

        Raises:
            UnavailableError: The answer is not JSON.
        """
        answer = await self._adapter.fetch(method, path, data, content_type)
        try:
            return an_object(read_json(answer))
        except ValueError as error:
            raise errors.UnavailableError(f"the answer of the batch API is not JSON: {error}") from None


class OpenAIJobs(BatchApi):
    """The batch API of OpenAI: a file of lines, a job of its own, files of results."""

    path = "/batches"
    most_bytes = 200 * 10**6
    recovers = True

    def line(self, name: str, body: str) -> bytes:
        """Return the line of a request."""
        return f'{{"custom_id":"{name}","method":"POST","url":"/v1{self._adapter.path}","body":{body}}}'.encode()

    async def create(self, lines: Mapping[str, bytes], name: str) -> str:
        """Create a job with our name, and return its id."""
        boundary = uuid.uuid4().hex
        part = f"--{boundary}\r\nContent-Disposition: form-data; name="
        head = f'{part}"purpose"\r\n\r\nbatch\r\n{part}"file"; filename="batch.jsonl"'
        head += "\r\nContent-Type: application/jsonl\r\n\r\n"
        data = b"".join([head.encode(), b"\n".join(lines.values()), f"\r\n--{boundary}--\r\n".encode()])
        file = await self._ask("POST", "/files", data, f"multipart/form-data; boundary={boundary}")
        job = {"endpoint": f"/v1{self._adapter.path}", "completion_window": self._window, "metadata": {"synmod": name}}
        return str((await self._ask("POST", self.path, {**job, "input_file_id": file.get("id")}))["id"])

    async def find(self, name: str) -> str | None:
        """Return the id of the job with our name; None if it is missing."""
        after = ""
        while True:
            page = await self._ask("GET", f"{self.path}?limit=100{after}")
            for job in objects_in(page.get("data")):
                if an_object(job.get("metadata")).get("synmod") == name:
                    return str(job["id"])
            if not page.get("has_more") or not page.get("data"):
                return None
            after = f"&after={page['data'][-1]['id']}"

    async def look(self, job: str) -> JobState:
        """Return how a job is doing."""
        state = await self._ask("GET", f"{self.path}/{job}")
        counts, status = an_object(state.get("request_counts")), state.get("status")
        files = [state[name] for name in ("output_file_id", "error_file_id") if state.get(name)]
        faults = objects_in(an_object(state.get("errors")).get("data"))
        fault = "; ".join(str(fault.get("message")) for fault in faults[:3]) or f"the batch job is {status}"
        has_ended = status in ("completed", "failed", "expired", "cancelled")
        done, failed = (int(counts.get(name) or 0) for name in ("completed", "failed"))
        return JobState(has_ended, done, failed, tuple(f"/files/{file}/content" for file in files), fault)

    def result(self, line: Mapping[str, Any]) -> tuple[int, Json]:
        """Return the status and the body in a line of results."""
        response = an_object(line.get("response"))
        if response:
            return int(response.get("status_code") or 0), response.get("body")
        return 503, {"error": line.get("error")}


class AnthropicJobs(BatchApi):
    """The batch API of Anthropic's messages."""

    path = "/messages/batches"
    most_bytes = 256 * 10**6

    def line(self, name: str, body: str) -> bytes:
        """Return the JSON of a request."""
        return f'{{"custom_id":"{name}","params":{body}}}'.encode()

    async def create(self, lines: Mapping[str, bytes], name: str) -> str:  # noqa: ARG002  # there is no place for it
        """Create a job, and return its id."""
        data = b'{"requests":[' + b",".join(lines.values()) + b"]}"
        return str((await self._ask("POST", self.path, data))["id"])

    async def look(self, job: str) -> JobState:
        """Return how a job is doing."""
        state = await self._ask("GET", f"{self.path}/{job}")
        counts = an_object(state.get("request_counts"))
        failed = sum(int(counts.get(name) or 0) for name in ("errored", "canceled", "expired"))
        has_ended, done = state.get("processing_status") == "ended", int(counts.get("succeeded") or 0)
        return JobState(has_ended, done, failed, (f"{self.path}/{job}/results",), "the batch job has no result")

    def result(self, line: Mapping[str, Any]) -> tuple[int, Json]:
        """Return the status and the body in a line of results."""
        result = an_object(line.get("result"))
        if result.get("type") == "succeeded":
            return 200, result.get("message")
        error = an_object(an_object(result.get("error")).get("error")) or {"type": result.get("type")}
        status = {"invalid_request_error": 400, "authentication_error": 401, "rate_limit_error": 429}
        return status.get(str(error.get("type")), 503), {"error": error}


@dataclass(eq=False)
class _Job:
    """A job: the lines that were collected for it, and what has become of it."""

    name: str
    owner: _Owner
    part: Part | None = None
    lines: dict[str, bytes] = field(default_factory=dict[str, bytes])
    size: int = 0
    id: str | None = None
    results: dict[str, tuple[int, Json]] | None = None
    fault: errors.ModelError | None = None
    touched: float = 0.0
    sent_at: float = 0.0
    members: int = 0
    is_open: bool = True
    is_recorded: bool = False
    """Whether a journal has it from an earlier run of the same line."""
    is_driven: bool = False
    gate: aio.Gate = field(default_factory=aio.Gate)
    """Where the calls wait that do not drive it."""

    @property
    def has_ended(self) -> bool:
        """Whether the results are here, or will never be."""
        return self.results is not None or self.fault is not None


class _Owner:
    """The jobs of an event loop, or of a journal."""

    def __init__(self) -> None:
        self.collecting: _Job | None = None
        self.numbers = Counter[str]()  # content of a request -> how many equal ones there were
        self.notes = 0  # jobs that the journal has
        self.recorded: list[_Job] | None = None  # those of an earlier process; None until they are read
        self.loading = asyncio.Lock()


class BatchAdapter:
    """Sends requests in jobs, in the form of another adapter.

    Args:
        adapter: Makes the bodies and reads the answers.
        jobs: How calls become jobs.
        api: The batch API of the provider.
    """

    def __init__(self, adapter: DirectAdapter, jobs: BatchJobs, api: OpenAIJobs | AnthropicJobs) -> None:
        self._adapter, self._jobs, self._api = adapter, jobs, api
        self.name, self.version = adapter.name, adapter.version
        self.check, self.prepare, self.aclose = adapter.check, adapter.prepare, adapter.aclose
        self.runs_native_tools = getattr(adapter, "runs_native_tools", False)
        self._owners: WeakKeyDictionary[Any, _Owner] = WeakKeyDictionary()

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request in a job, and return its reply.

        Raises:
            ModelError: That of its line; UnavailableError if the job failed or expired before it.
        """
        part = scope.ambient().journal
        job, name = await self._join(request, part)
        job.members += 1
        try:
            while not job.has_ended:
                await (job.gate.wait() if job.is_driven else self._drive(job))
        finally:
            job.members -= 1
            if not job.members and job.results is None:
                await self._leave(job)
        if job.fault is None:
            reply = self._adapter.read_line(*(job.results or {}).get(name, _MISSING), request)
        else:
            reply = copy(job.fault)
        if isinstance(reply, errors.ModelError):
            reply.recorded = job.is_recorded
            raise reply
        return reply

    # -- joining a job ------------------------------------------------------------------------------------------------

    async def _join(self, request: LMRequest, part: Part | None) -> tuple[_Job, str]:
        """Return the job of a request, and the name of its line: one that is recorded, else the one that collects."""
        body = json_text(self._adapter.line_of(request))
        journal: Any = None if part is None else getattr(part, "journal", part)
        owner = self._owners.setdefault(asyncio.get_running_loop() if journal is None else journal, _Owner())
        content = key_of([getattr(part, "row", ""), self._adapter.url, request.sample, body])[:48]
        name = f"{content}-{owner.numbers[content]}"
        owner.numbers[content] += 1
        if part is not None:
            for job in await self._recorded_jobs(owner, part):
                if name in job.lines:
                    return job, name
        line, job = self._api.line(name, body), owner.collecting
        if job is not None and job.size + len(line) >= self._api.most_bytes:
            self._close(job)
        if job is None or not job.is_open:
            job = owner.collecting = _Job(uuid.uuid4().hex, owner, part)
        job.lines[name], job.touched = line, current_clock().now()
        job.size += len(line) + 1
        if len(job.lines) >= self._jobs.max_requests:
            self._close(job)
        return job, name

    def _close(self, job: _Job) -> None:
        """Let no further call join a job."""
        job.is_open = False
        if job.owner.collecting is job:
            job.owner.collecting = None

    async def _recorded_jobs(self, owner: _Owner, part: Part) -> list[_Job]:
        """Return the jobs that a journal holds from an earlier process.

        One that was created and not recorded, because the process was killed between, is found by its name.
        """
        async with owner.loading:
            if owner.recorded is None:
                jobs, number = list[_Job](), 0
                while (note := await part.read(f"batch/{number}")) is not None:
                    lines = dict.fromkeys(note["lines"], b"")
                    job = _Job(note["name"], owner, part, lines, id=note.get("id"), sent_at=note["sent_at"])
                    job.is_open, job.is_recorded = False, True
                    job.id = job.id or await self._api.find(job.name)
                    jobs += [job] if job.id else []
                    number += 1
                owner.recorded, owner.notes = jobs, number
        return owner.recorded

    # -- the life of a job --------------------------------------------------------------------------------------------

    async def _drive(self, job: _Job) -> None:
        """Take a job to its end; if this call is cancelled, another one goes on."""
        job.is_driven = True
        try:
            while not job.has_ended:
                await self._advance(job)
        finally:
            job.is_driven = False
            job.gate.wake_all()

    async def _advance(self, job: _Job) -> None:
        """Take a job one step on: collect, create, wait, read the results."""
        try:
            if job.is_open:
                left = job.touched + self._jobs.quiet_s - current_clock().now()
                if left > 0:
                    await current_clock().sleep(left)
                else:
                    self._close(job)
            elif job.id is None:
                await self._create(job)
            else:
                await self._look(job)
        except errors.ModelError as error:
            if job.id is not None and error.status == 404:  # of a run that goes on after weeks
                job.fault = errors.UnavailableError(f"the provider has the batch job no more: {error}", status=404)
            elif not error.transient or job.id is None:
                job.fault = error
            else:
                await current_clock().sleep(self._jobs.poll_s)

    async def _create(self, job: _Job) -> None:
        """Create a job at the provider; what is begun here is not cancelled, or a job could be paid and lost."""
        job.sent_at = wall_time()
        note: dict[str, Any] = {"name": job.name, "lines": [*job.lines], "sent_at": job.sent_at}
        key = await self._write_note(job, note) if self._api.recovers else None

        async def create() -> None:
            job.id = await self._api.create(job.lines, job.name)
            await self._write_note(job, {**note, "id": job.id}, key)

        task = asyncio.ensure_future(create())
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            with aio.shield(_LONGEST_CREATE_S):
                await asyncio.wait([task])
            raise
        _LOG.info("batch job %s: %d requests sent", job.id, len(job.lines))

    async def _write_note(self, job: _Job, note: dict[str, Any], key: str | None = None) -> str | None:
        """Record a job in the journal of the calls; return the key of the note."""
        if job.part is None:
            return None
        if key is None:
            key = f"batch/{job.owner.notes}"
            job.owner.notes += 1
        await job.part.write(key, note)
        return key

    async def _look(self, job: _Job) -> None:
        """Look at a job; read its results if it has ended, else wait."""
        assert job.id is not None  # for the type checker
        progress = await self._api.look(job.id)
        since = datetime.fromtimestamp(job.sent_at, UTC).strftime("%H:%M")
        text = "batch job %s: %d of %d requests done, %d failed, since %s UTC"
        _LOG.info(text, job.id, progress.done, len(job.lines), progress.failed, since)
        if not progress.has_ended:
            await current_clock().sleep(self._jobs.poll_s)
            return
        results: dict[str, tuple[int, Json]] = {}
        for address in progress.results:
            content = await self._adapter.fetch("GET", address)
            work = partial(_lines_of, content)
            for line in await aio.to_thread(work) if len(content) > _LARGE else work():
                name = str(line.get("custom_id"))
                if results.get(name, _MISSING)[0] >= 300:  # of two results of a line, the one that is a reply
                    results[name] = self._api.result(line)
        if not results:
            job.fault = errors.UnavailableError(progress.fault)
        job.results = results

    async def _leave(self, job: _Job) -> None:
        """Give up a job whose last call has left, unless a journal knows it: then it goes on."""
        self._close(job)
        if job.id is not None and job.part is None and job.fault is None:
            with aio.shield(_CLEAN_UP_S):
                try:
                    await self._api.cancel(job.id)
                except errors.ModelError as error:
                    _LOG.warning("batch job %s could not be cancelled: %s", job.id, error)


def _lines_of(content: bytes) -> list[dict[str, Any]]:
    """Return the objects in lines of JSON; what is not one is left out, as if it were missing."""
    values: list[Json] = []
    for line in content.splitlines():
        with suppress(ValueError):
            values.append(read_json(line))
    return objects_in(values)

"""Traces: `sm.trace`, and the hook that it installs, which records the calls of a block as a tree in bounded memory.

Cost: some microseconds per call while a trace is open, nothing afterwards.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable
from numbers import Real
from typing import Any, Final

from synmod.errors import ArgumentError, GraphError

from .ambient import Block
from .events import CallBegin, CallEnd, Hook, LMBegin, LMEnd
from .frame import FRAME
from .trace_views import LMCallNode, Run, TraceNode, add_by_start, error_text, total_usage, tree_json, tree_text
from .usage import Usage

PAGES: Final[dict[str, Callable[[dict[str, Any], Any], str]]] = {}
"""`"html"`: the function that draws the JSON of a trace as a page, and writes it to a path; a room above sets it."""

_LM_CALLS_PER_CALL: Final = 10
"""So many model calls per module call are kept, on average: what makes more would fill the memory."""


class Tracer(Hook):
    """Records every call that it is notified of; `sm.trace` makes one and installs it.

    Args:
        values: Whether inputs, outputs, requests and replies are kept (by reference: nothing is copied).
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls, or ten times as many model calls, whole entry calls go, the oldest first.

    Raises:
        ArgumentError: `sample` is not a share, or `max_calls` not a whole number above zero.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> tracer = sm.hooks_lib.Tracer()
        >>> out = sm.run(sm.Identity(hooks=[tracer]), Query(question="Why?"))
        >>> [root.name for root in tracer.roots]
        ['identity']

    Source: OpenTelemetry span processors.
    """

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        _check(sample, max_calls)
        self._values = values
        self._sample = float(sample)
        self._max_calls = max_calls
        self._epoch = time.time() - time.perf_counter()  # one clock for all starts, which never goes back
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine, whose call ends, in here
        self._running: dict[str, TraceNode] = {}  # also below entry calls that were dropped
        self._lm_running: dict[int, tuple[Any, LMCallNode]] = {}  # by the id of the request, which is held
        self._roots: deque[TraceNode] = deque()
        self._lm_calls: deque[LMCallNode] = deque()
        self._size = Run()
        self._dropped = 0

    @property
    def roots(self) -> list[TraceNode]:
        """The entry calls, by their start."""
        with self._lock:
            return list(self._roots)

    @property
    def lm_calls(self) -> list[LMCallNode]:
        """Model calls outside of the module calls that are recorded, by their start."""
        with self._lock:
            return list(self._lm_calls)

    @property
    def dropped(self) -> int:
        """How many entry calls, and model calls outside of calls, were left out because the trace was full."""
        return self._dropped

    @property
    def usage(self) -> Usage:
        """What all model calls of the trace used."""
        return total_usage(self.roots, self.lm_calls)

    def on_call_begin(self, event: CallBegin) -> None:
        """Open a node under that of the calling module."""
        call_id, start = event.call_id or "", self._epoch + time.perf_counter()
        if not self._is_in_sample(call_id):
            return
        with self._lock:
            above = event.parent_call_id
            parent = None if above is None else self._nearest(above)
            run = Run() if parent is None else parent.run
            node = TraceNode(call_id, above, path=event.path, name=event.name, phase=event.phase, start=start, run=run)
            node.parent = parent
            if self._values:
                node.inputs, node.kwargs = event.inputs, event.kwargs
            self._running[call_id] = node
            if run.is_dropped:
                return
            add_by_start(self._roots if parent is None else parent.children, node)
            run.calls += 1
            self._size.calls += 1
            self._drop_oldest()

    def on_call_end(self, event: CallEnd) -> None:
        """Close the node of the call; the module of an entry call keeps it, to be shown with it."""
        node = self._running.pop(event.call_id or "", None)
        if node is None:
            return
        if self._values:
            node.outputs = event.outputs
        if event.exception is not None:
            node.error = error_text(event.exception)
        node.rewards = event.rewards
        node.end = self._epoch + time.perf_counter()
        node.elapsed_s = event.elapsed_s
        if event.parent_call_id is None and not node.run.is_dropped:
            frame = FRAME.get()
            if frame is not None and frame.id == event.call_id:
                frame.owner.recorded = node

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open a model call under the node of the module that makes it."""
        call_id = event.call_id
        call = LMCallNode(event.model, event.phase, self._epoch + time.perf_counter())
        if self._values:
            call.request = event.request
        with self._lock:
            node = None if call_id is None else self._nearest(call_id)
            if node.run.is_dropped if node is not None else call_id is not None and not self._is_in_sample(call_id):
                return
            self._lm_running[id(event.request)] = (event.request, call)
            if node is None:
                add_by_start(self._lm_calls, call)
                if len(self._lm_calls) > self._max_calls:
                    self._lm_calls.popleft()
                    self._dropped += 1
                return
            add_by_start(node.lm_calls, call)
            node.run.lm_calls += 1
            self._size.lm_calls += 1
            self._drop_oldest()

    def on_lm_end(self, event: LMEnd) -> None:
        """Close a model call."""
        _, call = self._lm_running.pop(id(event.request), (None, None))
        if call is None:
            return
        call.usage, call.attempts, call.cached = event.usage, event.attempts, event.cached
        call.error = error_text(event.exception)
        if self._values:
            call.reply = event.reply
        call.elapsed_s = event.elapsed_s

    def _is_in_sample(self, call_id: str) -> bool:
        """Whether a run is kept: decided by its id, so that all calls of a run are treated alike."""
        return self._sample >= 1 or zlib.crc32(call_id.partition("-")[0].encode()) < self._sample * 2**32

    def _nearest(self, call_id: str) -> TraceNode | None:
        """Return the node of a call, or the nearest above: the tracer of one module is not notified of all calls."""
        node, frame = self._running.get(call_id), FRAME.get()
        while frame is not None and node is None:
            node, frame = self._running.get(frame.id), frame.parent
        return node

    def _drop_oldest(self) -> None:
        """Leave out the oldest entry calls, whole, until the rest is within the bounds.

        Calls of them that still run are known, and no longer shown; they hold nothing that has ended.
        """
        size = self._size
        while size.calls > self._max_calls or size.lm_calls > self._max_calls * _LM_CALLS_PER_CALL:
            oldest = self._roots.popleft()
            oldest.run.is_dropped = True
            size.calls -= oldest.run.calls
            size.lm_calls -= oldest.run.lm_calls
            self._dropped += 1
            nodes = [] if oldest.elapsed_s is not None else [oldest]
            for node in nodes:  # grows while it is walked
                nodes += node.children
            for node in nodes:
                if node.elapsed_s is None:
                    node.children, node.lm_calls = [], []

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON: `version`, `dropped`, `usage`, `calls` (nested under `children`), `lm_calls`.

        `docs/pages/ideas/tracing.md` describes every field.
        """
        return tree_json(self.roots, self.lm_calls, self.dropped)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the trace as one page that needs nothing else: a bar per call, and everything about each call.

        Args:
            path: The file to write, atomically; None for the text alone.

        Raises:
            ArgumentError: `path` is not a path.
            SaveError: The file cannot be written.
            GraphError: `synmod` was not imported as a whole, so there is nothing to draw with.

        Source: Chrome's trace viewer, Jaeger; differs: one file, opened without network.
        """
        if "html" not in PAGES:
            raise GraphError("A trace is drawn by synmod.view: import synmod first.")
        return PAGES["html"](self.to_json(), path)

    def _repr_html_(self) -> str:
        """Return the page, for notebooks."""
        return self.to_html()

    def __str__(self) -> str:
        return tree_text(self.roots, self.lm_calls, self.dropped)

    def __repr__(self) -> str:
        return f"<Tracer of {self._size.calls} calls in {len(self.roots)} entry calls>"


class trace(Block):  # noqa: N801  # read as a word: `with sm.trace() as t:`
    """Record the calls of a block as a tree.

    The block gives a `Tracer`: `t.roots` with `children` and `lm_calls`, `t.to_json()`, `t.to_html(path)`, `str(t)`.

    Args:
        values: Whether inputs and outputs are kept.
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls, or ten times as many model calls, whole entry calls go, the oldest first;
            `t.dropped` counts them.

    Raises:
        ArgumentError: `sample` is not a share, or `max_calls` not a whole number above zero.

    Example:
        >>> with trace() as t:
        ...     pass
        >>> t.roots, t.to_json()["version"]
        ([], 1)

    Source: OpenTelemetry traces; differs: in memory, no exporter.
    """

    field = "hooks"

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        super().__init__()
        _check(sample, max_calls)  # wrong arguments are found here, not at the block
        self._arguments: dict[str, Any] = {"values": values, "sample": sample, "max_calls": max_calls}

    def __enter__(self) -> Tracer:
        tracer = Tracer(**self._arguments)
        self.enter((tracer,))
        return tracer


def _check(sample: object, max_calls: object) -> None:
    """Raise for a share or a bound that is not one."""
    if isinstance(sample, bool) or not isinstance(sample, Real) or not 0 <= float(sample) <= 1:
        raise ArgumentError(f"trace got sample={sample!r}: write the share of entry calls to keep, from 0 to 1.")
    if not isinstance(max_calls, int) or isinstance(max_calls, bool) or max_calls < 1:
        raise ArgumentError(f"trace got max_calls={max_calls!r}: write a whole number above zero.")

"""Tracer: a hook that records the calls it is told of as a tree, in bounded memory."""

from __future__ import annotations

import threading
import time
import zlib
from collections import deque
from numbers import Real
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError
from synmod.scope.frame import FRAME, TOLD
from synmod.scope.hook import Hook
from synmod.scope.plain_json import error_text
from synmod.scope.trace_nodes import LMCallNode, TraceNode, start_of
from synmod.scope.trace_page import page
from synmod.scope.trace_secrets import Secrets
from synmod.scope.trace_views import total_usage, tree_json, tree_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from synmod.scope.events import CallBegin, CallEnd, LMBegin, LMEnd
    from synmod.scope.usage_record import Usage


class Tracer(Hook):
    """Records every call it is told of; `sm.trace` makes one and installs it.

    Args:
        values: Whether inputs, outputs, requests and replies are kept (by reference: nothing is copied).
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls whole entry calls go, the oldest first.

    Attributes:
        dropped: How many entry calls, and model calls outside of calls, were left out because the trace was full.

    Raises:
        ArgumentError: `sample` is no share, or `max_calls` no number above zero.

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

    _in_place = True  # makes no calls, so that it need not be set apart from the call that it is told of

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        check(sample, max_calls)
        self._values = values
        self._sample = sample
        self._max_calls = max_calls
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._running: dict[str, TraceNode] = {}  # also below entry calls that were dropped
        self._asked: dict[int, tuple[Any, LMCallNode]] = {}  # by request, which is kept so that its id stays its own
        self._epoch = time.time() - time.perf_counter()  # one clock for all starts, which never goes back
        self._calls = 0
        self._roots: deque[TraceNode] = deque()
        self._lm_calls: deque[LMCallNode] = deque()
        self._secrets: set[Callable[[], Iterable[str]]] = set()  # one of each model that was called
        self.dropped = 0

    @property
    def roots(self) -> list[TraceNode]:
        """The entry calls, by their start."""
        with self._lock:
            return list(self._roots)

    @property
    def lm_calls(self) -> list[LMCallNode]:
        """Model calls outside of module calls, by their start."""
        with self._lock:
            return list(self._lm_calls)

    @property
    def usage(self) -> Usage:
        """What all model calls of the trace used."""
        with self._lock:
            return total_usage(self._roots, self._lm_calls)

    def on_call_begin(self, event: CallBegin) -> None:
        """Open a node under that of the calling module."""
        call_id = event.call_id or ""
        if self._sample < 1 and not self._keeps(call_id.partition("-")[0]):
            return
        with self._lock:
            parent = None if event.parent_call_id is None else self._nearest(event.parent_call_id)
            node = TraceNode(parent, event, self._now(), values=self._values)
            self._running[call_id] = node
            if node.root.is_dropped:
                return
            (self._roots if parent is None else parent.children).append(node)
            node.root.size += 1
            self._calls += 1
            while self._calls > self._max_calls:
                self._drop_oldest()

    def on_call_end(self, event: CallEnd) -> None:
        """Close the node of the call."""
        with self._lock:
            node = self._running.pop(event.call_id or "", None)
        if node is None:
            return
        node.end = self._now()
        node.elapsed_s = event.elapsed_s
        if event.exception is not None:
            node.error = error_text(event.exception)
        if self._values:
            node.outputs = event.outputs
        node.run_usage = event.usage
        node.rewards = event.rewards

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open a model call under the node of the module that makes it."""
        with self._lock:
            node = None if event.call_id is None else self._nearest(event.call_id)
            if event.call_id is not None and (node is None or node.root.is_dropped):
                return  # of a run that is not kept
            call = start_of(event, self._now(), values=self._values)
            if event.secrets is not None:
                self._secrets.add(event.secrets)
            self._asked[id(event.request)] = (event.request, call)
            if node is not None:
                node.lm_calls.append(call)
                return
            self._lm_calls.append(call)
            if len(self._lm_calls) > self._max_calls:
                self._lm_calls.popleft()
                self.dropped += 1

    def on_lm_end(self, event: LMEnd) -> None:
        """Close a model call."""
        with self._lock:
            _, call = self._asked.pop(id(event.request), (None, None))
        if call is not None:
            call.close(event, error_text(event.exception), values=self._values)

    def _call_under_way(self, call_id: str | None) -> TraceNode | None:
        """The node of a call that runs, for its module to keep; a subclass may have left out our constructor."""
        running: dict[str, TraceNode] = vars(self).get("_running", {})
        node = running.get(call_id or "")
        return None if node is None or node.root.is_dropped else node

    def _keeps(self, run: str) -> bool:
        """Tell whether a run is in the sample: decided by its id, so that all calls of a run are treated alike."""
        return zlib.crc32(run.encode()) < self._sample * 2**32

    def _now(self) -> float:
        """Seconds since the epoch."""
        return self._epoch + time.perf_counter()

    def _nearest(self, call_id: str) -> TraceNode | None:
        """The node of a call, else of the nearest above it: the tracer of one module is not told of all calls."""
        node = self._running.get(call_id)
        if node is not None:
            return node
        frame = FRAME.get() or TOLD.get()
        while frame is not None and node is None:
            node, frame = self._running.get(frame.id), frame.parent
        return node

    def _drop_oldest(self) -> None:
        """Leave out the oldest entry call, whole; what of it still runs is known, and no more shown."""
        oldest = self._roots.popleft()
        oldest.is_dropped = True
        self._calls -= oldest.size
        self.dropped += 1
        if oldest.elapsed_s is None:  # calls that run hold on to it, and nobody to those that have ended
            oldest.children, oldest.lm_calls = [], []

    def to_json(self) -> dict[str, Any]:
        """Give the trace as JSON: `version`, `dropped`, `usage`, `calls` (nested under `children`), `lm_calls`.

        `docs/pages/ideas/tracing.md` tells every field.
        """
        with self._lock:
            return tree_json(self._roots, self._lm_calls, self.dropped, Secrets(self._secrets))

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Draw the trace as one page that needs nothing else: timeline, tree, search, and all of each call.

        Args:
            path: The file to write, atomically; None for the text alone.

        Returns:
            The page.

        Raises:
            ArgumentError: `path` is no path.
            SaveError: The file cannot be written.
            GraphError: Nobody draws, since `synmod` was not imported as a whole.

        Source: Chrome's trace viewer, Jaeger; differs: one file, opened without network.
        """
        return page(self.to_json(), path)

    def __str__(self) -> str:
        with self._lock:
            return Secrets(self._secrets).removed(tree_text(self._roots))

    def __repr__(self) -> str:
        return f"<Tracer of {self._calls} calls in {len(self._roots)} entry calls>"


def check(sample: object, max_calls: object) -> None:
    """Refuse a share that is none, and a bound that bounds nothing."""
    if isinstance(sample, bool) or not isinstance(sample, Real) or not 0 <= float(sample) <= 1:
        raise ArgumentError(f"trace got sample={sample!r}: write the share of entry calls to keep, from 0 to 1.")
    if not isinstance(max_calls, int) or isinstance(max_calls, bool) or max_calls < 1:
        raise ArgumentError(f"trace got max_calls={max_calls!r}: write a whole number above zero.")

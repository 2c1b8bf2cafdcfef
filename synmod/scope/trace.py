"""Traces: the tree of the calls of a block, recorded by a hook."""

from __future__ import annotations

import threading
import time
import zlib
from numbers import Real
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError
from synmod.scope.ambient import Entered, enter, leave, take_entry
from synmod.scope.hook import Hook
from synmod.scope.plain_json import error_text
from synmod.scope.trace_nodes import LMCallNode, TraceNode
from synmod.scope.trace_views import tree_json, tree_text

if TYPE_CHECKING:
    from synmod.scope.events import CallBegin, CallEnd, LMBegin, LMEnd


class Tracer(Hook):
    """Records every call it is told of; `sm.trace` makes one and installs it.

    Attributes:
        roots: The entry calls, by their start.
        lm_calls: Model calls outside of module calls.
        dropped: How many entry calls were left out because the trace was full.
    """

    def __init__(self, *, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        _check(sample, max_calls)
        self._values = values
        self._sample = sample
        self._max_calls = max_calls
        self._lock = threading.Lock()
        self._running: dict[str, TraceNode] = {}
        self._asked: dict[int, tuple[Any, LMCallNode]] = {}  # by request, which is kept so that its id stays its own
        self._gone: set[str] = set()  # runs that were dropped while they ran
        self._calls = 0
        self.roots: list[TraceNode] = []
        self.lm_calls: list[LMCallNode] = []
        self.dropped = 0

    def on_call_begin(self, event: CallBegin) -> None:
        """Open a node under that of the calling module."""
        call_id = event.call_id or ""
        run = call_id.partition("-")[0]
        if not self._keeps(run):
            return
        with self._lock:
            if run in self._gone:
                return
            parent = self._running.get(event.parent_call_id or "")
            node = TraceNode(
                parent, call_id, event.parent_call_id, event.path, event.name, event.phase, time.time(),
                event.inputs if self._values else None, dict(event.kwargs) if self._values else None, event.method,
            )  # fmt: skip
            self._running[call_id] = node
            (self.roots if parent is None else parent.children).append(node)
            node.root.size += 1
            self._calls += 1
            while self._calls > self._max_calls:
                self._drop_oldest()

    def on_call_end(self, event: CallEnd) -> None:
        """Close the node of the call."""
        call_id = event.call_id or ""
        with self._lock:
            node = self._running.pop(call_id, None)
            if event.parent_call_id is None:
                self._gone.discard(call_id.partition("-")[0])
        if node is None:
            return
        node.elapsed_s = event.elapsed_s
        node.error = error_text(event.exception)
        if self._values:
            node.outputs = event.outputs
        if event.usage is not None:
            node.usage = event.usage
        node.rewards = event.rewards

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open a model call under the node of the module that makes it."""
        with self._lock:
            node = self._running.get(event.call_id or "")
            if node is None and event.call_id is not None:
                return  # of a run that is not kept
            call = LMCallNode(event.model)
            (self.lm_calls if node is None else node.lm_calls).append(call)
            self._asked[id(event.request)] = (event.request, call)

    def on_lm_end(self, event: LMEnd) -> None:
        """Close a model call, and add what it used to the calls above."""
        with self._lock:
            _, call = self._asked.pop(id(event.request), (None, None))
            if call is None:
                return
            call.close(event, error_text(event.exception))
            node = self._running.get(event.call_id or "")
            while node is not None:
                node.usage += event.usage
                node = node.parent

    def _call_under_way(self, call_id: str | None) -> TraceNode | None:
        """The node of a call that runs, for its module to keep; a subclass may have left out our constructor."""
        running: dict[str, TraceNode] = vars(self).get("_running", {})
        return running.get(call_id or "")

    def _keeps(self, run: str) -> bool:
        """Tell whether a run is in the sample: decided by its id, so that all calls of a run are treated alike."""
        return self._sample >= 1 or zlib.crc32(run.encode()) < self._sample * 2**32

    def _drop_oldest(self) -> None:
        """Leave out the oldest entry call, whole."""
        oldest = self.roots.pop(0)
        self._calls -= oldest.size
        self.dropped += 1
        still = [call_id for call_id, node in self._running.items() if node.root is oldest]
        if still:
            self._gone.add(still[0].partition("-")[0])
        for call_id in still:
            del self._running[call_id]

    def to_json(self) -> dict[str, Any]:
        """Give the trace as JSON: `version`, `dropped`, `calls` (nested under `children`), `lm_calls`."""
        with self._lock:
            return tree_json(self.roots, self.lm_calls, self.dropped)

    def __str__(self) -> str:
        with self._lock:
            return tree_text(self.roots)

    def __repr__(self) -> str:
        return f"<Tracer of {self._calls} calls in {len(self.roots)} entry calls>"


def _check(sample: object, max_calls: object) -> None:
    """Refuse a share that is none, and a bound that bounds nothing."""
    if isinstance(sample, bool) or not isinstance(sample, Real) or not 0 <= float(sample) <= 1:
        raise ArgumentError(f"trace got sample={sample!r}: write the share of entry calls to keep, from 0 to 1.")
    if not isinstance(max_calls, int) or isinstance(max_calls, bool) or max_calls < 1:
        raise ArgumentError(f"trace got max_calls={max_calls!r}: write a whole number above zero.")


class trace:  # noqa: N801  # read as a word: `with sm.trace() as t:`
    """Record the calls of a block as a tree.

    The block gives a `Tracer`: `t.roots` with `children` and `lm_calls`, `t.to_json()`, `str(t)`.

    Args:
        values: Whether inputs and outputs are kept.
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls whole entry calls go, the oldest first; `t.dropped` counts them.

    Raises:
        ArgumentError: `sample` is no share, or `max_calls` no number above zero.

    Example:
        >>> with trace() as t:
        ...     pass
        >>> t.roots, t.to_json()["version"]
        ([], 1)

    Source: OpenTelemetry traces; differs: in memory, no exporter.
    """

    __slots__ = ("_arguments", "_entries")

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        self._arguments: dict[str, Any] = {"values": values, "sample": sample, "max_calls": max_calls}
        _check(sample, max_calls)  # wrong arguments are told here, not at the block
        self._entries: list[Entered] = []

    def __enter__(self) -> Tracer:
        tracer = Tracer(**self._arguments)
        self._entries.append(enter("hooks", (tracer,)))
        return tracer

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))

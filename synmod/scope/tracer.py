"""Tracer: a hook that records the calls it is told of as a tree, in bounded memory."""

from __future__ import annotations

import threading
import time
import zlib
from collections import deque
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from synmod.errors import ArgumentError
from synmod.scope.frame import FRAME, TOLD
from synmod.scope.in_place import InPlace, LMOutcome
from synmod.scope.plain_json import error_text
from synmod.scope.trace_nodes import LMCallNode, TraceNode, add_by_start, forget_below
from synmod.scope.trace_page import page
from synmod.scope.trace_views import total_usage, tree_json, tree_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from synmod.scope.events import CallBegin, CallEnd, LMBegin, LMEnd
    from synmod.scope.frame import CallFrame, Owner
    from synmod.scope.ledger import Reward
    from synmod.scope.usage_record import Usage

_NO_KWARGS: Final[Mapping[str, Any]] = MappingProxyType({})
_MODEL_CALLS_A_CALL: Final = 10
"""So many model calls a call are kept, on the average: what makes more would fill the memory."""


class Tracer(InPlace):
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

    _in_place = True

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
        self._model_calls = 0
        self._roots: deque[TraceNode] = deque()
        self._lm_calls: deque[LMCallNode] = deque()
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
        return total_usage(self.roots, self.lm_calls)

    def on_call_begin(self, event: CallBegin) -> None:
        """Open a node under that of the calling module."""
        self._open(
            event.call_id or "", event.parent_call_id, event.path, event.name, event.phase, event.method, self._now(),
            event.inputs, event.kwargs,
        )  # fmt: skip

    def on_call_end(self, event: CallEnd) -> None:
        """Close the node of the call."""
        frame = TOLD.get()
        owner = frame._owner if frame is not None and event.parent_call_id is None else None
        self._close(event.call_id or "", event.outputs, event.exception, event.elapsed_s, event.rewards, owner)

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open a model call under the node of the module that makes it."""
        request = event.request if self._values else None
        self._ask(
            event.call_id, LMCallNode(event.model, event.phase, self._now(), request, event.secrets), event.request
        )

    def on_lm_end(self, event: LMEnd) -> None:
        """Close a model call."""
        self.close_lm(
            event.request,
            LMOutcome(event.reply, event.exception, event.attempts, event.usage, event.elapsed_s, event.cached),
        )

    def open_call(
        self, frame: CallFrame, inputs: tuple[Any, ...], kwargs: Mapping[str, Any], started: float, method: str | None
    ) -> None:
        """The same, of the call itself; this and the next are hot."""
        above = frame._parent
        self._open(
            frame.id, None if above is None else above.id, frame.path, method or frame._owner.name, frame._phase,
            method, self._epoch + started, inputs, kwargs,
        )  # fmt: skip

    def close_call(self, frame: CallFrame, outputs: Any, failure: BaseException | None, elapsed_s: float) -> None:
        """The same, of the call itself."""
        if frame._parent is not None:
            self._close(frame.id, outputs, failure, elapsed_s, (), None)
        else:
            rewards = frame.rewards if failure is None else ()
            self._close(frame.id, outputs, failure, elapsed_s, rewards, frame._owner)

    def open_lm(
        self,
        frame: CallFrame | None,
        phase: str,
        request: Any,
        secrets: Callable[[], frozenset[str]] | None,
        started: float,
    ) -> None:
        """The same, of the model call itself."""
        kept = request if self._values else None
        call = LMCallNode(request.model, phase, self._epoch + started, kept, secrets)
        self._ask(None if frame is None else frame.id, call, request)

    def close_lm(self, request: Any, outcome: LMOutcome) -> None:
        """The same, of the model call itself."""
        _, call = self._asked.pop(id(request), (None, None))
        if call is None:
            return
        call.usage = outcome.usage
        call.attempts = outcome.attempts
        call.cached = outcome.cached
        if self._values:
            call.reply = outcome.reply
        call.elapsed_s = outcome.elapsed_s
        call.error = error_text(outcome.exception)

    def _open(
        self,
        call_id: str,
        parent_id: str | None,
        path: str,
        name: str,
        phase: str,
        method: str | None,
        start: float,
        inputs: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Put a node into the tree."""
        if self._sample < 1 and not self._keeps(call_id):
            return
        with self._lock:
            parent = None if parent_id is None else self._running.get(parent_id) or self._around()
            node = TraceNode(parent, call_id, parent_id, path, name, phase, method, start)
            if self._values:
                node.inputs, node._kwargs = inputs, kwargs or _NO_KWARGS
            self._running[call_id] = node
            run = node.run
            if run.is_dropped:
                return
            if parent is None:
                add_by_start(self._roots, node)
            else:
                parent.add(node)
            run.calls += 1
            self._calls += 1
            if self._calls > self._max_calls:
                self._drop_oldest()

    def _close(
        self,
        call_id: str,
        outputs: Any,
        failure: BaseException | None,
        elapsed_s: float,
        rewards: tuple[Reward, ...],
        owner: Owner | None,
    ) -> None:
        """Note how a call ended; the module of an entry call keeps it, to be shown with it."""
        node = self._running.pop(call_id, None)
        if node is None:
            return
        if self._values:
            node.outputs = outputs
        if rewards:
            node.rewards = rewards
        node.end = self._epoch + time.perf_counter()
        node.elapsed_s = elapsed_s
        if owner is not None and not node.run.is_dropped:
            owner.recorded = node
        if failure is not None:
            node.error = error_text(failure)

    def _ask(self, call_id: str | None, call: LMCallNode, request: Any) -> None:
        """Put a model call into the tree."""
        with self._lock:
            node = None if call_id is None else self._running.get(call_id) or self._around()
            if node is not None and node.run.is_dropped:
                return
            if node is None and call_id is not None and not self._keeps(call_id):
                return
            self._asked[id(request)] = (request, call)
            if node is None:
                add_by_start(self._lm_calls, call)
                if len(self._lm_calls) > self._max_calls:
                    self._lm_calls.popleft()
                    self.dropped += 1
                return
            node.add_lm(call)
            node.run.model_calls += 1
            self._model_calls += 1
            if self._model_calls > self._max_calls * _MODEL_CALLS_A_CALL:
                self._drop_oldest()

    def _keeps(self, call_id: str) -> bool:
        """Tell whether a run is in the sample: decided by its id, so that all calls of a run are treated alike."""
        return zlib.crc32(call_id.partition("-")[0].encode()) < self._sample * 2**32

    def _now(self) -> float:
        """Seconds since the epoch."""
        return self._epoch + time.perf_counter()

    def _around(self) -> TraceNode | None:
        """The node of the nearest call around that is recorded: the tracer of one module is not told of all calls."""
        node, frame = None, FRAME.get() or TOLD.get()
        while frame is not None and node is None:
            node, frame = self._running.get(frame.id), frame.parent
        return node

    def _drop_oldest(self) -> None:
        """Leave out oldest entry calls, whole, until the rest is within the bound.

        What of them still runs is known, and no more shown; it holds on to nothing that has ended.
        """
        while self._calls > self._max_calls or self._model_calls > self._max_calls * _MODEL_CALLS_A_CALL:
            oldest = self._roots.popleft()
            run = oldest.run
            run.is_dropped = True
            self._calls -= run.calls
            self._model_calls -= run.model_calls
            self.dropped += 1
            if oldest.elapsed_s is None:
                forget_below(oldest)

    def to_json(self) -> dict[str, Any]:
        """Give the trace as JSON: `version`, `dropped`, `usage`, `calls` (nested under `children`), `lm_calls`.

        `docs/pages/ideas/tracing.md` tells every field.
        """
        return tree_json(self.roots, self.lm_calls, self.dropped)

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
        return tree_text(self.roots, self.lm_calls, self.dropped)

    def __repr__(self) -> str:
        return f"<Tracer of {self._calls} calls in {len(self._roots)} entry calls>"


def check(sample: object, max_calls: object) -> None:
    """Refuse a share that is none, and a bound that bounds nothing."""
    if isinstance(sample, bool) or not isinstance(sample, Real) or not 0 <= float(sample) <= 1:
        raise ArgumentError(f"trace got sample={sample!r}: write the share of entry calls to keep, from 0 to 1.")
    if not isinstance(max_calls, int) or isinstance(max_calls, bool) or max_calls < 1:
        raise ArgumentError(f"trace got max_calls={max_calls!r}: write a whole number above zero.")

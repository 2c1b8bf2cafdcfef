"""The calls of a trace as they come and go: who is below whom, which runs are kept, and when the oldest must go."""

from __future__ import annotations

import threading
import zlib
from collections import deque
from typing import Any, Final

from synmod.scope.frame import FRAME, TOLD
from synmod.scope.tracing.nodes import LMCallNode, Run, TraceNode, add_by_start, forget_below

_MODEL_CALLS_A_CALL: Final = 10
"""So many model calls a call are kept, on the average: what makes more would fill the memory."""


class TraceTree:
    """Module calls and model calls in bounded memory, told of from any thread.

    Args:
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls, or ten times as many model calls, whole entry calls go, the oldest first.
    """

    __slots__ = (
        "_asked", "_lm_calls", "_lock", "_max_calls", "_model_calls", "_roots", "_running", "_sample", "calls",
        "dropped",
    )  # fmt: skip

    def __init__(self, sample: float, max_calls: int) -> None:
        self._sample = sample
        self._max_calls = max_calls
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._running: dict[str, TraceNode] = {}  # also below entry calls that were dropped
        self._asked: dict[int, tuple[Any, LMCallNode]] = {}  # by request, which is kept so that its id stays its own
        self._roots: deque[TraceNode] = deque()
        self._lm_calls: deque[LMCallNode] = deque()
        self._model_calls = 0
        self.calls = 0
        self.dropped = 0

    @property
    def roots(self) -> list[TraceNode]:
        """The entry calls, by their start."""
        with self._lock:
            return list(self._roots)

    @property
    def lm_calls(self) -> list[LMCallNode]:
        """Model calls below none of the calls, by their start."""
        with self._lock:
            return list(self._lm_calls)

    def keeps(self, call_id: str) -> bool:
        """Tell whether a run is in the sample: decided by its id, so that all calls of a run are treated alike."""
        return self._sample >= 1 or zlib.crc32(call_id.partition("-")[0].encode()) < self._sample * 2**32

    def open(self, node: TraceNode) -> None:
        """Put in a call that begins."""
        with self._lock:
            parent_id = node.parent_id
            parent = None if parent_id is None else self._running.get(parent_id) or self._around()
            self._running[node.call_id] = node
            node.parent = parent
            node.run = run = Run() if parent is None else parent.run
            if run.is_dropped:
                return
            if parent is None:
                add_by_start(self._roots, node)
            else:
                parent.add(node)
            run.calls += 1
            self.calls += 1
            if self.calls > self._max_calls:
                self._drop_oldest()

    def close(self, call_id: str) -> TraceNode | None:
        """Give a call that has ended, None if it is not kept."""
        return self._running.pop(call_id, None)

    def ask(self, call_id: str | None, request: Any, call: LMCallNode) -> None:
        """Put in a model call that begins."""
        with self._lock:
            node = None if call_id is None else self._running.get(call_id) or self._around()
            if node is not None and node.run.is_dropped:
                return
            if node is None and call_id is not None and not self.keeps(call_id):
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

    def answered(self, request: Any) -> LMCallNode | None:
        """Give a model call that has ended, None if it is not kept."""
        return self._asked.pop(id(request), (None, None))[1]

    def _around(self) -> TraceNode | None:
        """The nearest call around that is kept: the tracer of one module is not told of all calls."""
        node, frame = None, FRAME.get() or TOLD.get()
        while frame is not None and node is None:
            node, frame = self._running.get(frame.id), frame.parent
        return node

    def _drop_oldest(self) -> None:
        """Leave out oldest entry calls, whole, until the rest is within the bound.

        What of them still runs is known, and no more shown; it holds on to nothing that has ended.
        """
        while self.calls > self._max_calls or self._model_calls > self._max_calls * _MODEL_CALLS_A_CALL:
            oldest = self._roots.popleft()
            run = oldest.run
            run.is_dropped = True
            self.calls -= run.calls
            self._model_calls -= run.model_calls
            self.dropped += 1
            if oldest.elapsed_s is None:
                forget_below(oldest)

"""Tracer: a hook that records the calls it is told of as a tree, in bounded memory."""

from __future__ import annotations

import time
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from synmod.errors import ArgumentError
from synmod.scope.frame import TOLD
from synmod.scope.in_place import InPlace, LMOutcome
from synmod.scope.plain_json import error_text
from synmod.scope.tracing.nodes import LMCallNode, TraceNode
from synmod.scope.tracing.page import page
from synmod.scope.tracing.tree import TraceTree
from synmod.scope.tracing.views import total_usage, tree_json, tree_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from synmod.scope.events import CallBegin, CallEnd, LMBegin, LMEnd
    from synmod.scope.frame import CallFrame
    from synmod.scope.ledger import Reward
    from synmod.scope.usage_record import Usage

_NO_KWARGS: Final[Mapping[str, Any]] = MappingProxyType({})


class Tracer(InPlace):
    """Records every call it is told of; `sm.trace` makes one and installs it.

    Args:
        values: Whether inputs, outputs, requests and replies are kept (by reference: nothing is copied).
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls, or ten times as many model calls, whole entry calls go, the oldest first.

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
        self._epoch = time.time() - time.perf_counter()  # one clock for all starts, which never goes back
        self._tree = TraceTree(sample, max_calls)

    @property
    def roots(self) -> list[TraceNode]:
        """The entry calls, by their start."""
        return self._tree.roots

    @property
    def lm_calls(self) -> list[LMCallNode]:
        """Model calls outside of the module calls that are recorded, by their start."""
        return self._tree.lm_calls

    @property
    def dropped(self) -> int:
        """Entry calls, and model calls outside of calls, that were left out because the trace was full."""
        return self._tree.dropped

    @property
    def usage(self) -> Usage:
        """What all model calls of the trace used."""
        return total_usage(self.roots, self.lm_calls)

    def on_call_begin(self, event: CallBegin) -> None:
        """Open a node under that of the calling module."""
        call_id, above, path, name, phase = (
            event.call_id or "",
            event.parent_call_id,
            event.path,
            event.name,
            event.phase,
        )
        if self._tree.keeps(call_id):
            node = TraceNode(call_id, above, path, name, phase, event.method, self._epoch + time.perf_counter())
            self._open(node, event.inputs, event.kwargs)

    def on_call_end(self, event: CallEnd) -> None:
        """Close the node of the call."""
        node = self._tree.close(event.call_id or "")
        if node is not None:
            self._close(node, event.outputs, event.exception, event.elapsed_s, event.rewards)
            frame = TOLD.get()
            if event.parent_call_id is None and frame is not None and frame.id == event.call_id:
                self._leave(node, frame)

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open a model call under the node of the module that makes it."""
        call = LMCallNode(event.model, event.phase, self._epoch + time.perf_counter(), event.secrets)
        self._ask(event.call_id, event.request, call)

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
        call_id, above, name = frame.id, frame.parent, method or frame.owner.name
        if self._tree.keeps(call_id):
            parent_id = None if above is None else above.id
            node = TraceNode(call_id, parent_id, frame.path, name, frame.phase, method, self._epoch + started)
            self._open(node, inputs, kwargs)

    def close_call(self, frame: CallFrame, outputs: Any, failure: BaseException | None, elapsed_s: float) -> None:
        """The same, of the call itself."""
        node = self._tree.close(frame.id)
        if node is not None:
            is_entry = frame.parent is None
            self._close(node, outputs, failure, elapsed_s, frame.rewards if is_entry and failure is None else ())
            if is_entry:
                self._leave(node, frame)

    def open_lm(
        self,
        frame: CallFrame | None,
        phase: str,
        request: Any,
        secrets: Callable[[], frozenset[str]] | None,
        started: float,
    ) -> None:
        """The same, of the model call itself."""
        call = LMCallNode(request.model, phase, self._epoch + started, secrets)
        self._ask(None if frame is None else frame.id, request, call)

    def close_lm(self, request: Any, outcome: LMOutcome) -> None:
        """The same, of the model call itself."""
        call = self._tree.answered(request)
        if call is not None:
            call.usage = outcome.usage
            call.attempts = outcome.attempts
            call.cached = outcome.cached
            call.error = error_text(outcome.exception)
            if self._values:
                call.reply = outcome.reply
            call.elapsed_s = outcome.elapsed_s

    def _open(self, node: TraceNode, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Put in a call, with its values if they are kept."""
        if self._values:
            node.inputs, node._kwargs = inputs, kwargs or _NO_KWARGS
        self._tree.open(node)

    def _close(
        self,
        node: TraceNode,
        outputs: Any,
        failure: BaseException | None,
        elapsed_s: float,
        rewards: tuple[Reward, ...],
    ) -> None:
        """Note how a call ended, last that it has."""
        if self._values:
            node.outputs = outputs
        if failure is not None:
            node.error = error_text(failure)
        if rewards:
            node.rewards = rewards
        node.end = self._epoch + time.perf_counter()
        node.elapsed_s = elapsed_s

    def _ask(self, call_id: str | None, request: Any, call: LMCallNode) -> None:
        """Put in a model call, with its request if values are kept."""
        if self._values:
            call.request = request
        self._tree.ask(call_id, request, call)

    def _leave(self, node: TraceNode, frame: CallFrame) -> None:
        """Let the module of an entry call keep what is recorded of it, to be shown with it."""
        if not node.run.is_dropped:
            frame.owner.recorded = node

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
        return f"<Tracer of {self._tree.calls} calls in {len(self.roots)} entry calls>"


def check(sample: object, max_calls: object) -> None:
    """Refuse a share that is none, and a bound that bounds nothing."""
    if isinstance(sample, bool) or not isinstance(sample, Real) or not 0 <= float(sample) <= 1:
        raise ArgumentError(f"trace got sample={sample!r}: write the share of entry calls to keep, from 0 to 1.")
    if not isinstance(max_calls, int) or isinstance(max_calls, bool) or max_calls < 1:
        raise ArgumentError(f"trace got max_calls={max_calls!r}: write a whole number above zero.")

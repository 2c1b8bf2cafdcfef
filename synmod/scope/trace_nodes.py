"""What a trace holds: one node a module call, one a model call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from synmod.scope.ledger import Reward
from synmod.scope.usage_record import Usage

if TYPE_CHECKING:
    from synmod.scope.events import CallBegin, LMBegin, LMEnd


class LMCallNode:
    """One model call; what it used is zero and `elapsed_s` None while it runs.

    Attributes:
        model: The model that was asked, `provider/name`.
        phase: `inference`, `reward` or `optimizer`.
        start: When it began, in seconds since the epoch.
        elapsed_s: Wall seconds, None while it runs.
        request, reply: The records that hooks are given, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        usage: Tokens and cost.
        attempts: Requests that were sent.
        cached: Whether none was needed.
    """

    __slots__ = (
        "attempts", "cached", "elapsed_s", "error", "model", "phase", "reply", "request", "start", "usage",
    )  # fmt: skip

    def __init__(self, model: str, phase: str, start: float, request: Any) -> None:
        self.model = model
        self.phase = phase
        self.start = start
        self.request = request
        self.reply: Any = None
        self.usage = Usage()
        self.attempts = 0
        self.cached = False
        self.elapsed_s: float | None = None
        self.error: str | None = None

    def close(self, event: LMEnd, error: str | None, *, values: bool) -> None:
        """Write down how it ended."""
        self.usage = event.usage
        self.attempts = event.attempts
        self.cached = event.cached
        self.elapsed_s = event.elapsed_s
        self.error = error
        if values:
            self.reply = event.reply

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    @property
    def cost_usd(self) -> float | None:
        """Cost, None where no price is known."""
        return self.usage.cost_usd

    def __repr__(self) -> str:
        return f"<LMCallNode {self.model}, {self.tokens} tokens>"


class TraceNode:
    """One module call.

    Attributes:
        call_id, parent_id, path, name, phase, method: As in the events.
        start, end: When it began and ended, in seconds since the epoch, by one clock; no end while it runs.
        elapsed_s: Wall seconds, None while it runs.
        inputs, kwargs, outputs: The values, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        rewards: (path, name, value) of the run, on an entry call.
        parent: The node of the calling module, None for an entry call.
        children: The calls below, by their start.
        lm_calls: Its own model calls, by their start.
    """

    __slots__ = (
        "call_id", "children", "elapsed_s", "end", "error", "inputs", "is_dropped", "kwargs", "lm_calls", "method",
        "name", "outputs", "parent", "parent_id", "path", "phase", "rewards", "root", "run_usage", "size", "start",
    )  # fmt: skip

    def __init__(self, parent: TraceNode | None, event: CallBegin, start: float, *, values: bool) -> None:
        self.parent = parent
        self.root: TraceNode = self if parent is None else parent.root
        self.size = 0  # calls of this tree; counted on its root
        self.is_dropped = False  # likewise: the trace was full
        self.call_id = event.call_id or ""
        self.parent_id = event.parent_call_id
        self.path = event.path
        self.name = event.name
        self.phase = event.phase
        self.method = event.method
        self.start = start
        self.inputs: tuple[Any, ...] | None = event.inputs if values else None
        self.kwargs: dict[str, Any] | None = dict(event.kwargs) if values else None
        self.end: float | None = None
        self.elapsed_s: float | None = None
        self.outputs: Any = None
        self.error: str | None = None
        self.run_usage: Usage | None = None  # of an entry call that has ended: what its run says
        self.rewards: tuple[Reward, ...] = ()
        self.children: list[TraceNode] = []
        self.lm_calls: list[LMCallNode] = []

    @property
    def usage(self) -> Usage:
        """What the model calls in it and below it have used so far."""
        return usages((self,))[id(self)]

    def __repr__(self) -> str:
        return f"<TraceNode {self.call_id} {self.path or self.name!r}, {len(self.children)} children>"


def usages(roots: Iterable[TraceNode]) -> dict[int, Usage]:
    """Sum what the model calls used, for every call of some trees, by the id of its node. Each is visited once."""
    nodes = list(roots)
    for node in nodes:  # grows while it is walked
        nodes += node.children
    sums: dict[int, Usage] = {}
    for node in reversed(nodes):  # those below come first
        used = (call.usage for call in node.lm_calls)
        below = (sums[id(child)] for child in node.children)
        sums[id(node)] = sum((*used, *below), Usage()) if node.run_usage is None else node.run_usage
    return sums


def start_of(begin: LMBegin, start: float, *, values: bool) -> LMCallNode:
    """The node of a model call that begins."""
    return LMCallNode(begin.model, begin.phase, start, begin.request if values else None)

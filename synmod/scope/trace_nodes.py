"""What a trace holds: one node a module call, one a model call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.scope.ledger import Reward
from synmod.scope.usage_record import Usage

if TYPE_CHECKING:
    from synmod.scope.events import LMEnd


class LMCallNode:
    """One model call; what it used is zero and `elapsed_s` None while it runs."""

    __slots__ = ("attempts", "cached", "elapsed_s", "error", "model", "usage")

    def __init__(self, model: str) -> None:
        self.model = model
        self.usage = Usage()
        self.attempts = 0
        self.cached = False
        self.elapsed_s: float | None = None
        self.error: str | None = None

    def close(self, event: LMEnd, error: str | None) -> None:
        """Write down how it ended."""
        self.usage = event.usage
        self.attempts = event.attempts
        self.cached = event.cached
        self.elapsed_s = event.elapsed_s
        self.error = error

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    @property
    def cost_usd(self) -> float | None:
        """Cost, None where no price is known."""
        return self.usage.cost_usd


class TraceNode:
    """One module call.

    Attributes:
        call_id, parent_id, path, name, phase, method: As in the events.
        start: When it began, in seconds since the epoch.
        elapsed_s: Wall seconds, None while it runs.
        inputs, kwargs, outputs: The values, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        usage: What the model calls in it and below it used.
        rewards: (path, name, value) of the run, on an entry call.
        children: The calls below, by their start.
        lm_calls: Its own model calls, by their start.
    """

    __slots__ = (
        "call_id", "children", "elapsed_s", "error", "inputs", "kwargs", "lm_calls", "method", "name", "outputs",
        "parent", "parent_id", "path", "phase", "rewards", "root", "size", "start", "usage",
    )  # fmt: skip

    def __init__(
        self,
        parent: TraceNode | None,
        call_id: str,
        parent_id: str | None,
        path: str,
        name: str,
        phase: str,
        start: float,
        inputs: tuple[Any, ...] | None,
        kwargs: dict[str, Any] | None,
        method: str | None = None,
    ) -> None:
        self.parent = parent
        self.method = method
        self.root: TraceNode = self if parent is None else parent.root
        self.size = 0  # calls of this tree; counted on its root
        self.call_id = call_id
        self.parent_id = parent_id
        self.path = path
        self.name = name
        self.phase = phase
        self.start = start
        self.inputs = inputs
        self.kwargs = kwargs
        self.elapsed_s: float | None = None
        self.outputs: Any = None
        self.error: str | None = None
        self.usage = Usage()
        self.rewards: tuple[Reward, ...] = ()
        self.children: list[TraceNode] = []
        self.lm_calls: list[LMCallNode] = []

    def __repr__(self) -> str:
        return f"<TraceNode {self.call_id} {self.path or self.name!r}, {len(self.children)} children>"

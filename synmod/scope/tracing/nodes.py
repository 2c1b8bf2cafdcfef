"""What a trace holds: one node a module call, one a model call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableSequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from synmod.scope.usage_record import Usage

if TYPE_CHECKING:
    from synmod.scope.ledger import Reward

_NOTHING: Final = Usage()


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
        secrets: Gives the texts that the model hides.
    """

    __slots__ = (
        "attempts", "cached", "elapsed_s", "error", "model", "phase", "reply", "request", "secrets", "start", "usage",
    )  # fmt: skip

    def __init__(
        self,
        model: str,
        phase: str,
        start: float,
        secrets: Callable[[], frozenset[str]] | None = None,
    ) -> None:
        self.model = model
        self.phase = phase
        self.start = start
        self.request: Any = None
        self.secrets = secrets
        self.reply: Any = None
        self.usage = _NOTHING
        self.attempts = 0
        self.cached = False
        self.elapsed_s: float | None = None
        self.error: str | None = None

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


class Run:
    """What the calls of one tree share: how many they are, and whether they went because the trace was full."""

    __slots__ = ("calls", "is_dropped", "model_calls")

    def __init__(self) -> None:
        self.calls = 0
        self.model_calls = 0
        self.is_dropped = False


class TraceNode:
    """One module call. Its lists are made when something comes below it: most calls have nothing there.

    Attributes:
        call_id, parent_id, path, name, phase, method: As in the events.
        start, end: When it began and ended, in seconds since the epoch, by one clock; no end while it runs.
        elapsed_s: Wall seconds, None while it runs.
        inputs, outputs: The values, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        rewards: (path, name, value) of the run, on an entry call.
        parent: The node of the calling module, None for an entry call.
        run: What it shares with the other calls of its tree.
    """

    __slots__ = (
        "_children", "_kwargs", "_lm_calls", "call_id", "elapsed_s", "end", "error", "inputs", "method", "name",
        "outputs", "parent", "parent_id", "path", "phase", "rewards", "run", "start",
    )  # fmt: skip
    parent: TraceNode | None
    run: Run  # both told when it is put into a tree

    def __init__(
        self,
        call_id: str,
        parent_id: str | None,
        path: str,
        name: str,
        phase: str,
        method: str | None,
        start: float,
    ) -> None:
        self.call_id = call_id
        self.parent_id = parent_id
        self.path = path
        self.name = name
        self.phase = phase
        self.method = method
        self.start = start
        self.inputs: tuple[Any, ...] | None = None
        self._kwargs: Mapping[str, Any] | None = None
        self.end: float | None = None
        self.elapsed_s: float | None = None
        self.outputs: Any = None
        self.error: str | None = None
        self.rewards: tuple[Reward, ...] = ()
        self._children: list[TraceNode] | None = None
        self._lm_calls: list[LMCallNode] | None = None

    @property
    def kwargs(self) -> dict[str, Any] | None:
        """The keywords, None in a trace without values."""
        return None if self._kwargs is None else dict(self._kwargs)

    @property
    def children(self) -> list[TraceNode]:
        """The calls below, by their start."""
        return [] if self._children is None else self._children

    @property
    def lm_calls(self) -> list[LMCallNode]:
        """Its own model calls, by their start."""
        return [] if self._lm_calls is None else self._lm_calls

    @property
    def usage(self) -> Usage:
        """What the model calls in it and below it have used so far."""
        return usages((self,))[id(self)]

    def add(self, child: TraceNode) -> None:
        """Put a call below this one."""
        if self._children is None:
            self._children = [child]
        else:
            add_by_start(self._children, child)

    def add_lm(self, call: LMCallNode) -> None:
        """Put a model call below this one."""
        if self._lm_calls is None:
            self._lm_calls = [call]
        else:
            add_by_start(self._lm_calls, call)

    def __repr__(self) -> str:
        return f"<TraceNode {self.call_id} {self.path or self.name!r}, {len(self.children)} children>"


Timed = TypeVar("Timed", TraceNode, LMCallNode)


def add_by_start(calls: MutableSequence[Timed], call: Timed) -> None:
    """Put a call at its place among others, which is nearly always the last."""
    place = len(calls)
    while place and calls[place - 1].start > call.start:
        place -= 1
    calls.insert(place, call)


def forget_below(root: TraceNode) -> None:
    """Let the calls of a tree that still run let go of those below them."""
    nodes = [root]
    for node in nodes:  # grows while it is walked
        nodes += node.children
    for node in nodes:
        if node.elapsed_s is None:
            node._children = node._lm_calls = None


def usages(roots: Iterable[TraceNode]) -> dict[int, Usage]:
    """Sum what the model calls used, for every call of some trees, by the id of its node. Each is visited once.

    Nothing is locked, so that no call waits for who reads: what begins meanwhile may be left out.
    """
    nodes = list(roots)
    for node in nodes:  # grows while it is walked
        nodes += node.children
    sums: dict[int, Usage] = {}
    for node in reversed(nodes):  # those below come first
        used = [call.usage for call in node.lm_calls]
        used += [below for child in node.children if (below := sums.get(id(child), _NOTHING)) is not _NOTHING]
        sums[id(node)] = sum(used, _NOTHING) if used else _NOTHING
    return sums

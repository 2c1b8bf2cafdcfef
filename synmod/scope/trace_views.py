"""What a trace holds, a node per module call and one per model call, and how it is written as JSON and as text.

Iterative throughout: calls may be nested as deep as Python allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Final, TypeVar, cast

from synmod.data import SymbolicDataModel

from .usage import Usage

# -- arguments and results as plain JSON -------------------------------------------------------------------------------

_DEEPEST: Final = 60  # deeper than any data; a value that goes on may hold itself
_LONGEST_BITS: Final = 14_000  # of an integer that Python converts to decimal digits


def plain(x: Any, depth: int = 0) -> Any:
    """Return values as JSON: data models by their JSON, symbols by their schema, nests and records member by member.

    Anything else that a keyword may hold becomes text, also numbers that JSON does not have.
    """
    if x is None or type(x) is bool or type(x) is str:
        return x
    try:
        if isinstance(x, int):
            return int(x) if x.bit_length() < _LONGEST_BITS else hex(x)
        if isinstance(x, str):
            return str.__str__(x)
        if isinstance(x, float):
            return float(x) if math.isfinite(x) else repr(float(x))
        return "..." if depth > _DEEPEST else _written(x, depth + 1)
    except Exception:  # noqa: BLE001  # a hook never breaks a call, and a foreign value may fail at anything
        return f"<{type(x).__name__}>"


def _written(x: Any, depth: int) -> Any:
    """Return what is neither a number nor a text as JSON."""
    if isinstance(x, SymbolicDataModel):
        return x.get_schema()
    get_json = getattr(x, "get_json", None)
    if callable(get_json) and not isinstance(x, type):
        return get_json()
    if isinstance(x, Mapping):
        return {str(key): plain(value, depth) for key, value in cast("Mapping[object, Any]", x).items()}
    if isinstance(x, (list, tuple)):
        return [plain(member, depth) for member in cast("Sequence[Any]", x)]
    if isinstance(x, type) or not is_dataclass(x):
        return repr(cast("object", x))
    return {field.name: plain(getattr(x, field.name), depth) for field in fields(x)}


def error_text(error: BaseException | None) -> str | None:
    """Return an exception as text: kept as an object it would keep the frames of its traceback alive."""
    return None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def message_of(error: BaseException) -> str:
    """Return the text of an exception; "" where it cannot be read."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # a record of a failure must not fail
        return ""


# -- views -------------------------------------------------------------------------------------------------------------

_VERSION: Final = 1
_NOTHING: Final = Usage()
_REQUEST_FIELDS: Final = ("messages", "schema", "tools", "params")
_REPLY_FIELDS: Final = ("text", "reasoning", "tool_calls", "finish_reason", "model", "request_id")


@dataclass(slots=True, eq=False)
class LMCallNode:
    """One model call; what it used is zero and `elapsed_s` None while it runs.

    Attributes:
        model: The model that was called, `provider/name`.
        phase: `inference`, `reward` or `optimizer`.
        start: When it began, in seconds since the epoch.
        elapsed_s: Wall seconds, None while it runs.
        request, reply: The records of the events, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        usage: Tokens and cost.
        attempts: Requests that were sent.
        cached: Whether none was needed.
    """

    model: str
    phase: str
    start: float
    request: Any = None
    reply: Any = None
    usage: Usage = _NOTHING
    attempts: int = 0
    cached: bool = False
    elapsed_s: float | None = None
    error: str | None = None

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    @property
    def cost_usd(self) -> float | None:
        """Cost in US dollars, None where no price is known."""
        return self.usage.cost_usd

    def __repr__(self) -> str:
        return f"<LMCallNode {self.model}, {self.tokens} tokens>"


@dataclass(slots=True, eq=False)
class Run:
    """What the calls of one tree share: how many they are, and whether they were dropped because the trace was full."""

    calls: int = 0
    lm_calls: int = 0
    is_dropped: bool = False


@dataclass(slots=True, eq=False)
class TraceNode:
    """One module call.

    Attributes:
        call_id, parent_id, path, name, phase: As in the events.
        start, end: When it began and ended, in seconds since the epoch, by one clock; no end while it runs.
        elapsed_s: Wall seconds, None while it runs.
        inputs, kwargs, outputs: The values, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        rewards: (path, name, value) of the run, on an entry call.
        children: The calls below, by their start.
        lm_calls: Its own model calls, by their start.
        parent: The node of the calling module, None for an entry call.
        run: What it shares with the other calls of its tree.
    """

    call_id: str
    parent_id: str | None
    path: str
    name: str
    phase: str
    start: float
    run: Run
    inputs: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None
    outputs: Any = None
    end: float | None = None
    elapsed_s: float | None = None
    error: str | None = None
    rewards: tuple[tuple[str, str | None, float], ...] = ()
    children: list[TraceNode] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  # hot: `list[...]()` is slow
    lm_calls: list[LMCallNode] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  # likewise
    parent: TraceNode | None = None

    @property
    def usage(self) -> Usage:
        """What the model calls in it and below it have used so far."""
        return usages((self,))[id(self)]

    def __repr__(self) -> str:
        return f"<TraceNode {self.call_id} {self.path or self.name!r}, {len(self.children)} children>"


Timed = TypeVar("Timed", TraceNode, LMCallNode)


def add_by_start(calls: MutableSequence[Timed], call: Timed) -> None:
    """Put a call at its place among others, which is nearly always the last."""
    place = len(calls)
    while place and calls[place - 1].start > call.start:
        place -= 1
    calls.insert(place, call)


def usages(roots: Iterable[TraceNode]) -> dict[int, Usage]:
    """Return what the model calls of each call used, those below included, by the id of its node.

    Nothing is locked, so that no call waits for a reader: what begins meanwhile may be left out.
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


def total_usage(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> Usage:
    """Return what all model calls of a trace used."""
    return sum((*(root.usage for root in roots), *(call.usage for call in lm_calls)), _NOTHING)


def tree_json(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode], dropped: int) -> dict[str, Any]:
    """Return a trace as JSON, `version` first."""
    nodes, lm_calls = list(roots), list(lm_calls)
    used, total = usages(nodes), total_usage(nodes, lm_calls)
    calls: list[dict[str, Any]] = []
    lists = [calls] * len(nodes)  # for each node the list that it goes to
    for node, siblings in zip(nodes, lists, strict=False):  # both grow while they are walked
        written = _node_json(node, used.get(id(node), _NOTHING))
        siblings.append(written)
        children = list(node.children)
        lists += [written["children"]] * len(children)
        nodes += children
    return {
        "version": _VERSION,
        "dropped": dropped,
        "usage": asdict(total),
        "calls": calls,
        "lm_calls": [_lm_json(call) for call in lm_calls],
    }


def _node_json(node: TraceNode, usage: Usage) -> dict[str, Any]:
    """Return one call as JSON, its children left out."""
    return {
        "call_id": node.call_id,
        "parent_id": node.parent_id,
        "path": node.path,
        "name": node.name,
        "phase": node.phase,
        "start": node.start,
        "elapsed_s": node.elapsed_s,
        "inputs": plain(node.inputs),
        "kwargs": plain(node.kwargs),
        "outputs": plain(node.outputs),
        "error": node.error,
        "usage": asdict(usage),
        "rewards": [list(reward) for reward in node.rewards],
        "lm_calls": [_lm_json(call) for call in node.lm_calls],
        "children": [],
    }


def _lm_json(call: LMCallNode) -> dict[str, Any]:
    """Return one model call as JSON."""
    return {
        "model": call.model,
        "phase": call.phase,
        "start": call.start,
        "elapsed_s": call.elapsed_s,
        "request": _fields(call.request, _REQUEST_FIELDS),
        "reply": _fields(call.reply, _REPLY_FIELDS),
        "error": call.error,
        "attempts": call.attempts,
        "cached": call.cached,
        "tokens": call.tokens,
        "cost_usd": call.cost_usd,
        "usage": asdict(call.usage),
    }


def _fields(record: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return some fields of a request or a reply as JSON; None where there is none, or none is kept."""
    return None if record is None else {name: plain(getattr(record, name, None)) for name in names}


def tree_text(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode], dropped: int) -> str:
    """Return a trace as text: a line per call or model call, by their start, indented under its caller."""
    lines = list(_lines(list(roots), list(lm_calls)))
    if dropped:
        lines.insert(0, f"({dropped} older dropped)")
    return "\n".join(lines)


def _lines(roots: list[TraceNode], lm_calls: list[LMCallNode]) -> Iterator[str]:
    """Yield the lines, depth first."""
    used = usages(roots)
    waiting = [(call, "", "") for call in _by_start(roots, lm_calls)][::-1]
    while waiting:
        call, lead, below = waiting.pop()
        if isinstance(call, LMCallNode):
            yield f"{lead}{call.model}  {_figures_of_lm(call)}"
            continue
        yield f"{lead}{call.path or call.name}  {_figures(call, used.get(id(call), _NOTHING))}"
        inside = _by_start(call.children, call.lm_calls)
        last = len(inside) - 1
        waiting += [
            (each, below + ("└─ " if index == last else "├─ "), below + ("   " if index == last else "│  "))
            for index, each in enumerate(inside)
        ][::-1]


def _by_start(calls: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> list[TraceNode | LMCallNode]:
    """Return calls and model calls in one order."""
    return sorted([*calls, *lm_calls], key=lambda call: call.start)


def _figures(node: TraceNode, usage: Usage) -> str:
    """Return how long a call took, what it used and how it failed."""
    parts = [_seconds(node.elapsed_s)]
    if usage.calls:
        tokens = usage.prompt_tokens + usage.completion_tokens
        calls = "1 model call" if usage.calls == 1 else f"{usage.calls} model calls"
        parts.append(f"{calls}, {tokens} tokens{_dollars(usage.cost_usd)}")
    if node.error is not None:
        parts.append(_on_one_line(node.error))
    return "  ".join(parts)


def _figures_of_lm(call: LMCallNode) -> str:
    """Return the same for a model call."""
    cached = ", cached" if call.cached else ""
    failed = "" if call.error is None else f"  {_on_one_line(call.error)}"
    return f"{_seconds(call.elapsed_s)}  {call.tokens} tokens{_dollars(call.cost_usd)}{cached}{failed}"


def _on_one_line(error: str) -> str:
    """Return an error without its line breaks."""
    return " ".join(error.split())


def _seconds(elapsed_s: float | None) -> str:
    """Return a duration as text."""
    if elapsed_s is None:
        return "running"
    return f"{elapsed_s * 1000:.1f} ms" if elapsed_s >= 0.0001 else f"{elapsed_s * 1000:.3f} ms"


def _dollars(cost_usd: float | None) -> str:
    """Return a cost as text, if there is one."""
    return f", ${cost_usd:.6f}" if cost_usd else ""

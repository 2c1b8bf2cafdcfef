"""A trace as JSON and as text. Iterative: calls may be nested as deep as Python allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from synmod.scope.plain_json import plain
from synmod.scope.scrubbing import Secrets
from synmod.scope.tracing.nodes import LMCallNode, TraceNode, usages
from synmod.scope.usage_record import Usage

_VERSION: Final = 1
_NOTHING: Final = Usage()
_OF_A_REQUEST: Final = ("messages", "schema", "tools", "params")
_OF_A_REPLY: Final = ("text", "reasoning", "tool_calls", "finish_reason", "model", "request_id")


def total_usage(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> Usage:
    """Sum what all model calls of a trace used."""
    return sum((*(root.usage for root in roots), *(call.usage for call in lm_calls)), Usage())


def tree_json(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode], dropped: int) -> dict[str, Any]:
    """Write a trace as JSON, `version` first."""
    nodes, lm_calls = list(roots), list(lm_calls)
    used, total = usages(nodes), total_usage(nodes, lm_calls)
    above = [-1] * len(nodes)
    for number, node in enumerate(nodes):  # grows while it is walked
        children = list(node.children)
        nodes += children
        above += [number] * len(children)
    told = [_node_json(node, used.get(id(node), _NOTHING)) for node in nodes]
    asked = [_lm_json(call) for call in lm_calls]
    secrets = _secrets_of(nodes, lm_calls)  # when all is written, so that none has come since
    written: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for parent, call in zip(above, told, strict=True):
        written.append(secrets.removed(call))
        (calls if parent < 0 else written[parent]["children"]).append(written[-1])
    return {
        "version": _VERSION,
        "dropped": dropped,
        "usage": asdict(total),
        "calls": calls,
        "lm_calls": [secrets.removed(call) for call in asked],
    }


def _secrets_of(nodes: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> Secrets:
    """What the models hide that were called: any call may hold a secret of any of them."""
    asked = [*lm_calls, *(call for node in nodes for call in node.lm_calls)]
    return Secrets({call.secrets for call in asked if call.secrets is not None})


def _node_json(node: TraceNode, usage: Usage) -> dict[str, Any]:
    """Write one call, its children left out."""
    return {
        "call_id": node.call_id,
        "parent_id": node.parent_id,
        "path": node.path,
        "name": node.name,
        "method": node.method,
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
    """Write one model call."""
    return {
        "model": call.model,
        "phase": call.phase,
        "start": call.start,
        "elapsed_s": call.elapsed_s,
        "request": _some(call.request, _OF_A_REQUEST),
        "reply": _some(call.reply, _OF_A_REPLY),
        "error": call.error,
        "attempts": call.attempts,
        "cached": call.cached,
        "tokens": call.tokens,
        "cost_usd": call.cost_usd,
        "usage": asdict(call.usage),
    }


def _some(record: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Write what a trace tells of a request or a reply; None where there is none, or none is kept."""
    return None if record is None else {name: plain(getattr(record, name, None)) for name in names}


def tree_text(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode], dropped: int) -> str:
    """Draw a trace: a line a call or model call, by their start, indented under its caller."""
    nodes, lm_calls = list(roots), list(lm_calls)
    lines = list(_lines(nodes, lm_calls))
    if dropped:
        lines.insert(0, f"({dropped} older dropped)")
    for node in nodes:  # grows while it is walked
        nodes += node.children
    return _secrets_of(nodes, lm_calls).removed("\n".join(lines))


def _lines(roots: list[TraceNode], lm_calls: list[LMCallNode]) -> Iterator[str]:
    """Give the lines, depth first."""
    used = usages(roots)
    waiting = [(call, "", "") for call in _by_start(roots, lm_calls)][::-1]
    while waiting:
        call, lead, below = waiting.pop()
        if isinstance(call, LMCallNode):
            yield f"{lead}{call.model}  {_about_lm(call)}"
            continue
        label = f"{call.path}.{call.method}" if call.path and call.method else call.path or call.name
        yield f"{lead}{label}  {_about(call, used.get(id(call), _NOTHING))}"
        inside = _by_start(call.children, call.lm_calls)
        last = len(inside) - 1
        waiting += [
            (each, below + ("└─ " if index == last else "├─ "), below + ("   " if index == last else "│  "))
            for index, each in enumerate(inside)
        ][::-1]


def _by_start(calls: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> list[TraceNode | LMCallNode]:
    """Bring calls and model calls into one order."""
    return sorted([*calls, *lm_calls], key=lambda call: call.start)


def _about(node: TraceNode, usage: Usage) -> str:
    """Say how long a call took, what it used and how it failed."""
    parts = [_seconds(node.elapsed_s)]
    if usage.calls:
        tokens = usage.prompt_tokens + usage.completion_tokens
        calls = "1 model call" if usage.calls == 1 else f"{usage.calls} model calls"
        parts.append(f"{calls}, {tokens} tokens{_dollars(usage.cost_usd)}")
    if node.error is not None:
        parts.append(_in_a_line(node.error))
    return "  ".join(parts)


def _about_lm(call: LMCallNode) -> str:
    """Say the same of a model call."""
    cached = ", cached" if call.cached else ""
    failed = "" if call.error is None else f"  {_in_a_line(call.error)}"
    return f"{_seconds(call.elapsed_s)}  {call.tokens} tokens{_dollars(call.cost_usd)}{cached}{failed}"


def _in_a_line(error: str) -> str:
    """Write an error without its line breaks."""
    return " ".join(error.split())


def _seconds(elapsed_s: float | None) -> str:
    """Write a time."""
    if elapsed_s is None:
        return "running"
    return f"{elapsed_s * 1000:.1f} ms" if elapsed_s >= 0.0001 else f"{elapsed_s * 1000:.3f} ms"


def _dollars(cost_usd: float | None) -> str:
    """Write a cost, if there is one."""
    return f", ${cost_usd:.6f}" if cost_usd else ""

"""A trace as JSON and as text. Iterative: calls may be nested as deep as Python allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from synmod.scope.plain_json import plain
from synmod.scope.trace_nodes import LMCallNode, TraceNode

_VERSION = 1


def tree_json(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode], dropped: int) -> dict[str, Any]:
    """Write a trace as JSON, `version` first."""
    calls: list[Any] = []
    waiting = [(node, calls) for node in roots]
    for node, siblings in waiting:  # grows while it is walked
        written = _node_json(node)
        siblings.append(written)
        waiting.extend((child, written["children"]) for child in node.children)
    return {"version": _VERSION, "dropped": dropped, "calls": calls, "lm_calls": [_lm_json(call) for call in lm_calls]}


def _node_json(node: TraceNode) -> dict[str, Any]:
    """Write one call, its children left out."""
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
        "usage": asdict(node.usage),
        "rewards": [list(reward) for reward in node.rewards],
        "lm_calls": [_lm_json(call) for call in node.lm_calls],
        "children": [],
    }


def _lm_json(call: LMCallNode) -> dict[str, Any]:
    """Write one model call."""
    return {
        "model": call.model,
        "tokens": call.tokens,
        "cost_usd": call.cost_usd,
        "attempts": call.attempts,
        "cached": call.cached,
        "elapsed_s": call.elapsed_s,
        "error": call.error,
        "usage": asdict(call.usage),
    }


def tree_text(roots: Iterable[TraceNode]) -> str:
    """Draw a trace: a line a call or model call, indented under its caller."""
    return "\n".join(_lines(roots))


def _lines(roots: Iterable[TraceNode]) -> Iterator[str]:
    """Give the lines, depth first."""
    waiting = [(node, "", "") for node in roots][::-1]
    while waiting:
        node, lead, below = waiting.pop()
        label = f"{node.path}.{node.method}" if node.path and node.method else node.path or node.name
        yield f"{lead}{label}  {_about(node)}"
        last = len(node.lm_calls) + len(node.children) - 1
        for index, call in enumerate(node.lm_calls):
            yield f"{below}{'└─ ' if index == last else '├─ '}{call.model}  {_about_lm(call)}"
        offset = len(node.lm_calls)
        waiting += [
            (child, below + ("└─ " if index == last else "├─ "), below + ("   " if index == last else "│  "))
            for index, child in enumerate(node.children, offset)
        ][::-1]


def _about(node: TraceNode) -> str:
    """Say how long a call took, what it used and how it failed."""
    parts = [_seconds(node.elapsed_s)]
    tokens = node.usage.prompt_tokens + node.usage.completion_tokens
    if node.usage.calls:
        parts.append(f"{node.usage.calls} model calls, {tokens} tokens{_dollars(node.usage.cost_usd)}")
    if node.error is not None:
        parts.append(node.error)
    return "  ".join(parts)


def _about_lm(call: LMCallNode) -> str:
    """Say the same of a model call."""
    cached = ", cached" if call.cached else ""
    failed = "" if call.error is None else f"  {call.error}"
    return f"{_seconds(call.elapsed_s)}  {call.tokens} tokens{_dollars(call.cost_usd)}{cached}{failed}"


def _seconds(elapsed_s: float | None) -> str:
    """Write a time."""
    return "running" if elapsed_s is None else f"{elapsed_s * 1000:.1f} ms"


def _dollars(cost_usd: float | None) -> str:
    """Write a cost, if there is one."""
    return f", ${cost_usd:.6f}" if cost_usd else ""

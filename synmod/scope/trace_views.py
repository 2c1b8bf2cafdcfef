"""A trace as JSON and as text. Iterative: calls may be nested as deep as Python allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from synmod.scope.plain_json import plain
from synmod.scope.trace_nodes import LMCallNode, TraceNode, usages
from synmod.scope.trace_secrets import Secrets
from synmod.scope.usage_record import Usage

_VERSION: Final = 1
_OF_A_REQUEST: Final = ("messages", "schema", "tools", "params")
_OF_A_REPLY: Final = ("text", "reasoning", "tool_calls", "finish_reason", "model", "request_id")


def total_usage(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> Usage:
    """Sum what all model calls of a trace used."""
    return sum((*(root.usage for root in roots), *(call.usage for call in lm_calls)), Usage())


def tree_json(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode], dropped: int) -> dict[str, Any]:
    """Write a trace as JSON, `version` first."""
    roots, lm_calls = list(roots), list(lm_calls)
    secrets = _secrets_of(roots, lm_calls)
    used = usages(roots)
    total = sum((*(used[id(root)] for root in roots), *(call.usage for call in lm_calls)), Usage())
    calls: list[Any] = []
    waiting = [(node, calls) for node in roots]
    for node, siblings in waiting:  # grows while it is walked
        written = secrets.removed(_node_json(node, used[id(node)]))
        siblings.append(written)
        waiting.extend((child, written["children"]) for child in node.children)
    return {
        "version": _VERSION,
        "dropped": dropped,
        "usage": asdict(total),
        "calls": calls,
        "lm_calls": [secrets.removed(_lm_json(call)) for call in lm_calls],
    }


def _secrets_of(roots: Iterable[TraceNode], lm_calls: Iterable[LMCallNode]) -> Secrets:
    """What the models hide that were called: any call may hold a secret of any of them."""
    asked = list(lm_calls)
    nodes = list(roots)
    for node in nodes:  # grows while it is walked
        asked += node.lm_calls
        nodes += node.children
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


def tree_text(roots: Iterable[TraceNode]) -> str:
    """Draw a trace: a line a call or model call, indented under its caller."""
    roots = list(roots)
    return _secrets_of(roots, ()).removed("\n".join(_lines(roots)))


def _lines(roots: Iterable[TraceNode]) -> Iterator[str]:
    """Give the lines, depth first."""
    used = usages(roots)
    waiting = [(node, "", "") for node in roots][::-1]
    while waiting:
        node, lead, below = waiting.pop()
        label = f"{node.path}.{node.method}" if node.path and node.method else node.path or node.name
        yield f"{lead}{label}  {_about(node, used[id(node)])}"
        last = len(node.lm_calls) + len(node.children) - 1
        for index, call in enumerate(node.lm_calls):
            yield f"{below}{'└─ ' if index == last else '├─ '}{call.model}  {_about_lm(call)}"
        offset = len(node.lm_calls)
        waiting += [
            (child, below + ("└─ " if index == last else "├─ "), below + ("   " if index == last else "│  "))
            for index, child in enumerate(node.children, offset)
        ][::-1]


def _about(node: TraceNode, usage: Usage) -> str:
    """Say how long a call took, what it used and how it failed."""
    parts = [_seconds(node.elapsed_s)]
    if usage.calls:
        tokens = usage.prompt_tokens + usage.completion_tokens
        calls = "1 model call" if usage.calls == 1 else f"{usage.calls} model calls"
        parts.append(f"{calls}, {tokens} tokens{_dollars(usage.cost_usd)}")
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

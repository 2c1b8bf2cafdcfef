"""The calls of a trace as rows: flat, in the order in which a tree is read, however deep it is."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def rows_of(trace: Json) -> list[Json]:
    """Write each call of a trace's JSON as a row, module calls and model calls alike.

    Args:
        trace: What `Tracer.to_json` gives.

    Returns:
        Rows, each before those below it, siblings by their start. `depth` and `parent`, the number of the row above
        (-1 for none), are the tree; `kind` is "module" or "model"; the rest is that of the call.
    """
    rows: list[Json] = []
    waiting = [(call, -1, 0) for call in _by_start(trace["calls"], trace["lm_calls"])][::-1]
    while waiting:
        call, parent, depth = waiting.pop()
        number = len(rows)
        rows.append({**_own(call), "parent": parent, "depth": depth})
        below = _by_start(call.get("children", ()), call.get("lm_calls", ()))
        waiting += [(each, number, depth + 1) for each in reversed(below)]
    return rows


def _by_start(calls: Any, lm_calls: Any) -> list[Json]:
    """Bring module calls and model calls into one order."""
    return sorted([*calls, *lm_calls], key=lambda call: call["start"])


def _own(call: Json) -> Json:
    """What is said of one call; what is below it has rows of its own."""
    kind = "module" if "call_id" in call else "model"
    return {"kind": kind, **{key: value for key, value in call.items() if key not in ("children", "lm_calls")}}

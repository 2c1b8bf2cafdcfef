"""`summary`: a program as a table of its modules, with totals."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from synmod.errors import ArgumentError
from synmod.leaves.files import write_atomic
from synmod.leaves.names import did_you_mean
from synmod.lm import estimate_text
from synmod.view.columns import COLUMNS, Column
from synmod.view.plain import table
from synmod.view.rows import Rows
from synmod.view.units import count_text, dollars_text, plural, seconds_text, size_text

if TYPE_CHECKING:
    from synmod.module import Module

_ORDERS: Final = ("pre", "post")


def summary(module: Module, depth: Any, columns: Any, order: Any, file: Any) -> str:
    """Write a summary; see `Module.summary`."""
    _check(depth, order)
    wanted = None if columns is None else _columns(columns)
    if file is not None and not (isinstance(file, str | os.PathLike) or callable(getattr(file, "write", None))):
        raise ArgumentError(f"summary: file={file!r:.100} is no path and has no method `write`: give one of both.")
    rows = Rows(module, depth, order)
    shown = list(COLUMNS.values()) if wanted is None else wanted
    cells = [[column.cell(row) for row in rows.shown] for column in shown]
    if wanted is None:
        kept = [i for i, column in enumerate(shown) if column.always or any(cells[i])]
        shown, cells = [shown[i] for i in kept], [cells[i] for i in kept]
    lines = table([column.heading for column in shown], list(zip(*cells, strict=True)), [c.right for c in shown])
    text = "\n".join([*lines, *_totals(rows)])
    if isinstance(file, str | os.PathLike):
        write_atomic(cast("str | os.PathLike[str]", file), text + "\n")
    elif file is not None:
        file.write(text + "\n")
    return text


def _totals(rows: Rows) -> list[str]:
    """The last lines: what there is, and what the last recorded call was."""
    held = rows.held
    modules = plural(rows.modules, "module") + (f", {count_text(rows.unbuilt)} unbuilt" if rows.unbuilt else "")
    count = held.trainable + held.frozen
    if count:
        kinds = f"{count_text(held.trainable)} trainable, {count_text(held.frozen)} frozen"
        tokens = count_text(estimate_text(held.characters))
        lines = [f"{modules}; {plural(count, 'Variable')} ({kinds}), {size_text(held.size)}, about {tokens} tokens"]
    else:
        lines = [f"{modules}; no Variables"]
    if rows.spent is not None:
        usage = rows.spent.usage
        parts = [plural(rows.spent.invocations, "invocation"), plural(usage.calls, "model call")]
        parts.append(f"{count_text(usage.prompt_tokens + usage.completion_tokens)} tokens")
        parts.append("cost unknown" if usage.cost_usd is None else dollars_text(usage.cost_usd))
        parts.append("running" if rows.elapsed_s is None else seconds_text(rows.elapsed_s))
        lines.append(f"last recorded call: {', '.join(parts)}")
    return lines


def _check(depth: Any, order: Any) -> None:
    """Refuse a depth that is none, and an order that is neither."""
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 0):
        raise ArgumentError(
            f"summary: depth={depth!r:.100} is no number of levels: write 0 for this module alone, 1 for its direct "
            "children too, None for all."
        )
    if order not in _ORDERS:
        raise ArgumentError(f"summary: order={order!r:.100} is unknown; it is 'pre' or 'post'.{_near(order, _ORDERS)}")


def _columns(columns: Any) -> list[Column]:
    """The columns of these names."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ArgumentError(
            f"summary: columns={columns!r:.100} is no list of names; write columns=[...] with some of "
            f"{', '.join(COLUMNS)}."
        )
    names = list(cast("Iterable[Any]", columns))
    unknown = [name for name in names if not isinstance(name, str) or name not in COLUMNS]
    if unknown or not names:
        what = f"the column {unknown[0]!r:.100} is unknown" if unknown else "no column is named"
        near = _near(unknown[0], COLUMNS) if unknown else ""
        raise ArgumentError(f"summary: {what}; there are {', '.join(COLUMNS)}.{near}")
    return [COLUMNS[name] for name in names]


def _near(word: Any, known: Iterable[str]) -> str:
    """Guess what was meant."""
    return did_you_mean(word, known) if isinstance(word, str) else ""

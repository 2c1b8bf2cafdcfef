"""`sm.trace`: a block whose calls are recorded as a tree."""

from __future__ import annotations

from typing import Any

from synmod.scope.ambient import Entered, enter, leave, take_entry
from synmod.scope.tracing.tracer import Tracer, check


class trace:  # noqa: N801  # read as a word: `with sm.trace() as t:`
    """Record the calls of a block as a tree.

    The block gives a `Tracer`: `t.roots` with `children` and `lm_calls`, `t.to_json()`, `str(t)`.

    Args:
        values: Whether inputs and outputs are kept.
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond so many calls, or ten times as many model calls, whole entry calls go, the oldest first;
            `t.dropped` counts them.

    Raises:
        ArgumentError: `sample` is no share, or `max_calls` no number above zero.

    Example:
        >>> with trace() as t:
        ...     pass
        >>> t.roots, t.to_json()["version"]
        ([], 1)

    Source: OpenTelemetry traces; differs: in memory, no exporter.
    """

    __slots__ = ("_arguments", "_entries")

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        self._arguments: dict[str, Any] = {"values": values, "sample": sample, "max_calls": max_calls}
        check(sample, max_calls)  # wrong arguments are told here, not at the block
        self._entries: list[Entered] = []

    def __enter__(self) -> Tracer:
        tracer = Tracer(**self._arguments)
        self._entries.append(enter("hooks", (tracer,)))
        return tracer

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))

"""InPlace: a hook of our own that takes calls as they are, so that no record of an event need be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.scope.hook import Hook

if TYPE_CHECKING:
    from synmod.scope.frame import CallFrame
    from synmod.scope.usage_record import Usage


class LMOutcome(NamedTuple):
    """How a model call ended: what `LMEnd` tells beside its place and request."""

    reply: Any
    exception: BaseException | None
    attempts: int
    usage: Usage
    elapsed_s: float
    cached: bool = False
    secrets: Callable[[], frozenset[str]] | None = None


class InPlace(Hook):
    """Told by these methods where all who listen are of its kind, else by events as any other.

    It waits for nothing and calls nothing, so it need not be set apart from the call that it is told of. A class
    derived from one of ours may do both: it is told by events.
    """

    def open_call(
        self, frame: CallFrame, inputs: tuple[Any, ...], kwargs: Mapping[str, Any], started: float, method: str | None
    ) -> None:
        """A module call begins, or that of another method; `started` is its `perf_counter`."""

    def close_call(self, frame: CallFrame, outputs: Any, failure: BaseException | None, elapsed_s: float) -> None:
        """It ended."""

    def open_lm(
        self,
        frame: CallFrame | None,
        phase: str,
        request: Any,
        secrets: Callable[[], frozenset[str]] | None,
        started: float,
    ) -> None:
        """A model call begins."""

    def close_lm(self, request: Any, outcome: LMOutcome) -> None:
        """It ended."""

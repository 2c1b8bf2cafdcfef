"""The end of a call: what is told, counted and handed up."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from synmod.leaves.aio import is_cancellation
from synmod.scope.hooks import Listeners
from synmod.scope.rewards import hand_up

if TYPE_CHECKING:
    from synmod.module.record import ModuleRecord
    from synmod.scope.events import CallEnd
    from synmod.scope.frame import CallFrame
    from synmod.scope.place import Place


def call_end(frame: CallFrame, place: Place, outputs: Any, failure: BaseException | None, started: float) -> CallEnd:
    """The record of an ended call; that of an entry call carries usage and rewards of the whole run."""
    ended: type[CallEnd] = Listeners.records.CallEnd
    elapsed = perf_counter() - started
    if frame._parent is None:
        rewards = frame.rewards if failure is None else ()  # those of a failed call are gone
        return ended(*place, outputs, failure, elapsed, frame.usage, rewards)
    return ended(*place, outputs, failure, elapsed)


def was_cancelled(failure: BaseException) -> bool:
    """Tell whether a call ended because it was cancelled, or its coroutine closed."""
    return is_cancellation(failure) or isinstance(failure, GeneratorExit)


def end_entry(record: ModuleRecord, frame: CallFrame, phase: str, failure: BaseException | None) -> None:
    """Count an ended entry call, and hand its rewards to the blocks around it if it returned."""
    if failure is not None and was_cancelled(failure):
        record.counters.count_cancelled(phase)
        return
    record.counters.count_entry(phase, perf_counter() - frame.root.started, failed=failure is not None)
    if failure is None and frame._layer is not None:
        frame._layer.close()
    if failure is None and frame.root.ledger is not None:
        hand_up(frame)


def end_failed(record: ModuleRecord, frame: CallFrame, failure: BaseException) -> None:
    """Count a nested call that failed, and drop the rewards that it and the calls below it gave."""
    if not was_cancelled(failure):
        record.counters.count_nested()
    if frame.root.ledger is not None:
        frame.root.ledger.discard(frame)

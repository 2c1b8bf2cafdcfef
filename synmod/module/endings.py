"""The end of a call: what is told, counted and handed up."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from synmod.leaves.aio import is_cancellation
from synmod.scope import hand_up

if TYPE_CHECKING:
    from synmod.module.record import ModuleRecord
    from synmod.scope import CallFrame


def was_cancelled(failure: BaseException) -> bool:
    """Tell whether a call ended because it was cancelled, or its coroutine closed."""
    return is_cancellation(failure) or isinstance(failure, GeneratorExit)


def end_entry(record: ModuleRecord, frame: CallFrame, phase: str, failure: BaseException | None) -> None:
    """Count an ended entry call, and hand its rewards to the blocks around it if it returned."""
    if failure is not None and was_cancelled(failure):
        record.counters.count_cancelled(phase)
        return
    record.counters.count_entry(phase, perf_counter() - frame.root.started, failed=failure is not None)
    if failure is None and frame.layer is not None:
        frame.layer.close()
    if failure is None:
        hand_up(frame)


def end_failed(record: ModuleRecord, frame: CallFrame, failure: BaseException) -> None:
    """Count a nested call that failed, and drop the rewards that it and the calls below it gave."""
    if not was_cancelled(failure):
        record.counters.count_nested()
    frame.root.failed_calls.add(frame.number)

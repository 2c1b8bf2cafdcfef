"""A part of a program without the module room: just enough of a call to test what a scope promises."""

from time import perf_counter

from synmod.leaves.aio import is_cancellation
from synmod.scope import (
    FRAME,
    CallCounters,
    CallFrame,
    RootFrame,
    ambient,
    begin_call,
    check_deadline,
    current_call,
    end_call,
    hand_up,
    hooks_for,
    note_waiting,
    phase_in,
    plain_limit,
    reset,
)


class Part:
    """Calls `body(x)` as a module calls `call`: frame, hooks, counters, limits."""

    training_default = False

    def __init__(self, name, body=None, hooks=()):
        self.name = name
        self.body = body
        self.hooks = tuple(hooks)
        self.counters = CallCounters()

    async def __call__(self, x=None, paths=None):
        record, parent = ambient(), current_call()
        phase = phase_in(record, parent)
        frame = (
            RootFrame(self, None, phase, False, paths or {})
            if parent is None
            else CallFrame(parent, self, None, phase, False)
        )
        limit = plain_limit(record) if parent is None else None
        if limit is None:
            return await self._limited(frame, phase, record, x)
        with limit:
            return await self._limited(frame, phase, record, x)

    async def _limited(self, frame, phase, record, x):
        token = FRAME.set(frame)
        heard = hooks_for(record, self.hooks)
        started = perf_counter()
        failure = None
        try:
            if heard:
                begin_call(heard, frame, (x,), {})
            check_deadline(frame, record)
            output = None if self.body is None else await self.body(x)
            if heard:
                heard, listening = (), heard
                end_call(listening, frame, output, None, started)
            return output
        except BaseException as error:
            failure = error
            if is_cancellation(error):
                note_waiting(frame)
            if heard:
                end_call(heard, frame, None, error, started)
            raise
        finally:
            frame.live = False
            reset(FRAME, token)
            self._count(frame, phase, failure, perf_counter() - started)

    def _count(self, frame, phase, failure, elapsed_s):
        cancelled = is_cancellation(failure) or isinstance(failure, GeneratorExit)
        if failure is not None:
            frame.root.failed_calls.add(frame.number)
        if frame.parent is not None:
            if not cancelled:
                self.counters.count_nested()
        elif cancelled:
            self.counters.count_cancelled(phase)
        else:
            self.counters.count_entry(phase, elapsed_s, failed=failure is not None)
            if failure is None:
                hand_up(frame)

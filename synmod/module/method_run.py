"""One run of a method that is an entry point of its own: its frame, who is told of it, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from synmod.module.endings import call_end
from synmod.module.paths import paths_below
from synmod.scope.ambient import ambient, reset
from synmod.scope.frame import FRAME, CallFrame, RootFrame, nearest_live
from synmod.scope.hooks import hooks_for
from synmod.scope.limits import plain_limit
from synmod.scope.notify import begin_call, begin_call_plain, end_call, end_call_plain
from synmod.scope.phase import phase_in
from synmod.scope.place import place_of
from synmod.scope.rewards import hand_up

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope.events import CallBegin, CallEnd


class MethodRun:
    """One run of a method: a block in which its frame is the current one, and who is told of it."""

    __slots__ = ("_arguments", "_frame", "_heard", "_method", "_module", "_started", "_token", "outputs")

    def __init__(self, module: Module, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        record, parent, around = module._record, nearest_live(FRAME.get()), ambient()
        phase = phase_in(around, parent)
        training = kwargs.get("training")
        if not isinstance(training, bool):
            training = None if parent is None else parent._training
        if training is None:
            training = vars(module).get("training", record.declaration.call.training_on_class)
        self._module = module
        self._method = method
        self._arguments = args, kwargs
        self._heard = hooks_for(around, record.hooks)
        self._frame = (
            RootFrame(record, training, phase, False, paths_below(module))
            if parent is None
            else CallFrame(parent, record, training, phase, parent._symbolic)
        )
        self._token: Token[CallFrame | None] | None = None
        self._started = perf_counter()
        self.outputs: Any = None
        record.counters.count_method(method)

    def enter(self) -> None:
        """Make its frame the current one."""
        self._token = FRAME.set(self._frame)

    def leave(self) -> None:
        """Restore what was the current frame."""
        token, self._token = self._token, None
        if token is not None:
            reset(FRAME, token)

    def close(self, failure: BaseException | None) -> None:
        """Note that it is over: rewards are handed up, or dropped."""
        frame = self._frame
        frame._live = False
        ledger = frame.root.ledger
        if ledger is None:
            return
        if failure is not None:
            ledger.discard(frame)
        elif frame.parent is None:
            hand_up(frame)

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(self, _: type[BaseException] | None, failure: BaseException | None, __: TracebackType | None) -> None:
        try:
            if self._heard is not None:
                end_call_plain(self._heard, self._ended(failure))
        finally:
            self.leave()
            self.close(failure)

    def begin_plain(self) -> None:
        """Tell of the begin, from plain code."""
        if self._heard is not None:
            begin_call_plain(self._heard, self._begun())

    async def begin(self) -> None:
        """Tell of the begin."""
        if self._heard is not None:
            await begin_call(self._heard, self._begun())

    async def end(self, failure: BaseException | None) -> None:
        """Tell of the end."""
        if self._heard is not None:
            await end_call(self._heard, self._ended(failure))

    def _begun(self) -> CallBegin:
        from synmod.scope.events import CallBegin

        args, kwargs = self._arguments
        where = place_of(self._frame, self._frame.phase)
        told = CallBegin(*where, args, MappingProxyType(dict(kwargs)), self._method)
        return replace(told, name=self._method)

    def _ended(self, failure: BaseException | None) -> CallEnd:
        told = call_end(self._frame, place_of(self._frame, self._frame.phase), self.outputs, failure, self._started)
        return replace(told, name=self._method)


async def run_waiting(run: MethodRun, start: Callable[[], Any]) -> Any:
    """Run an async method to its end."""
    around = ambient()
    limit = plain_limit(around) if run._frame.parent is None and around is not None else None
    if limit is None:
        return await _told(run, start)
    with limit:
        return await _told(run, start)


async def _told(run: MethodRun, start: Callable[[], Any]) -> Any:
    failure: BaseException | None = None
    run.enter()
    try:
        await run.begin()
        run.outputs = await start()
    except BaseException as error:
        failure = error
        await run.end(error)
        raise
    else:
        await run.end(None)
    finally:
        run.leave()
        run.close(failure)
        failure = None  # no circle of an exception and the frame that holds it
    return run.outputs

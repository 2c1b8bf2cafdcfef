"""One run of a method that is an entry point of its own: its frame, who is told of it, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synmod.errors import SkipError
from synmod.module.paths import paths_below
from synmod.scope import (
    FRAME,
    CallFrame,
    RootFrame,
    ambient,
    begin_call,
    begin_call_plain,
    end_call,
    end_call_plain,
    hand_up,
    hooks_for,
    nearest_live,
    phase_in,
    plain_limit,
    reset,
)

if TYPE_CHECKING:
    from synmod.module.module import Module


class MethodRun:
    """One run of a method: a block, plain or async, in which its frame is the current one, and who is told of it."""

    __slots__ = ("_arguments", "_frame", "_heard", "_method", "_module", "_started", "_token", "outputs")

    def __init__(self, module: Module, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        record, parent, around = module._record, nearest_live(FRAME.get()), ambient()
        phase = phase_in(around, parent)
        training = kwargs.get("training")
        if not isinstance(training, bool):
            training = None if parent is None else parent.decided_training
        if training is None:
            training = vars(module).get("training", record.declaration.call.training_on_class)
        self._module = module
        self._method = method
        self._arguments = args, kwargs
        self._heard = hooks_for(around, record.hooks)
        self._frame = (
            RootFrame(record, training, phase, False, paths_below(module))
            if parent is None
            else CallFrame(parent, record, training, phase, parent.symbolic)
        )
        self._token: Token[CallFrame | None] | None = None
        self._started = perf_counter()
        self.outputs: Any = None
        record.counters.count_method(method)

    def __enter__(self) -> Self:
        """For plain code: hooks that wait are not told."""
        self._begin()
        if self._heard is not None:
            try:
                begin_call_plain(self._heard, self._frame, *self._arguments, self._started, self._method)
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
        return self

    def __exit__(self, _: type[BaseException] | None, failure: BaseException | None, __: TracebackType | None) -> None:
        refused = self._handed_on() if failure is None else None
        failure = failure or refused
        try:
            if self._heard is not None:
                end_call_plain(self._heard, self._frame, self.outputs, failure, self._started, self._method)
            if refused is not None:
                raise refused
        except BaseException as error:
            failure = error
            raise
        finally:
            self._close(failure)
            failure = refused = None  # no circle of an exception and the frame that holds it

    async def __aenter__(self) -> Self:
        self._begin()
        if self._heard is not None:
            try:
                await begin_call(self._heard, self._frame, *self._arguments, self._started, self._method)
            except BaseException as error:
                await self.__aexit__(type(error), error, None)
                raise
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, failure: BaseException | None, __: TracebackType | None
    ) -> None:
        refused = self._handed_on() if failure is None else None
        failure = failure or refused
        try:
            if self._heard is not None:
                await end_call(self._heard, self._frame, self.outputs, failure, self._started, self._method)
            if refused is not None:
                raise refused
        except BaseException as error:
            failure = error
            raise
        finally:
            self._close(failure)
            failure = refused = None  # no circle of an exception and the frame that holds it

    def _begin(self) -> None:
        """Make its frame the current one."""
        self._token = FRAME.set(self._frame)
        runner = self._module._record.runner
        if runner is not None:
            runner.note(self._frame)

    def _handed_on(self) -> BaseException | None:
        """Hand to the calling module what calls inside left beside their values; give what is against that."""
        layer = self._frame.layer
        try:
            if layer is not None:
                layer.commit()
        except SkipError as error:
            return error
        return None

    def _close(self, failure: BaseException | None) -> None:
        """Note that it is over: what was handed up is told of, or dropped."""
        frame, layer, ledger = self._frame, self._frame.layer, self._frame.root.ledger
        if failure is not None and layer is not None:
            layer.drop()
        frame.live = False
        if self._token is not None:
            reset(FRAME, self._token)
        if failure is None and layer is not None and frame.parent is None:
            layer.close()
        frame.layer = None  # no circle of a frame and its layer
        if ledger is not None and failure is not None:
            ledger.discard(frame)
        elif ledger is not None and frame.parent is None:
            hand_up(frame)


async def run_waiting(run: MethodRun, start: Callable[[], Any]) -> Any:
    """Run an async method to its end."""
    around = ambient()
    limit = plain_limit(around) if run._frame.parent is None and around is not None else None
    if limit is None:
        return await _told(run, start)
    with limit:
        return await _told(run, start)


async def _told(run: MethodRun, start: Callable[[], Any]) -> Any:
    async with run:
        run.outputs = await start()
    return run.outputs

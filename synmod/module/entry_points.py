"""Methods that are entry points beside `call`: a scope, a span and a count of their own for each run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextvars import Token
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from synmod.errors import ConfigError
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

F = TypeVar("F", bound=Callable[..., Any])


def with_name_scope(method: F) -> F:
    """Make a method an entry point: it runs in the module's scope, is a span in traces, and is counted.

    Args:
        method: A method of a module: plain, async, or an async generator, which is driven step by step, so that its
            consumer never sees its scope.

    Returns:
        A method of the same signature, with `__wrapped__`.

    Raises:
        ConfigError: It is no function, or a plain generator.

    Example:
        >>> import synmod as sm
        >>> class Encoder(sm.Module):
        ...     @sm.Module.with_name_scope
        ...     def encode(self, text):
        ...         return sm.current_scope()
        >>> encoder = Encoder()
        >>> encoder.encode("x"), dict(encoder.counters.methods)
        ('encoder', {'encode': 1})

    Source: tf.Module `with_name_scope`; differs: async, spans, counts.
    """
    if not inspect.isfunction(method) or inspect.isgeneratorfunction(method):
        raise ConfigError(f"with_name_scope takes a method: plain, async, or an async generator; not {method!r:.200}.")
    if inspect.isasyncgenfunction(method):
        entry = _streaming(method)
    elif inspect.iscoroutinefunction(method):
        entry = _waiting(method)
    else:
        entry = _plain(method)
    return cast("F", functools.wraps(method)(entry))


def _streaming(method: Callable[..., Any]) -> Callable[..., Any]:
    def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        return _Stream(_Run(self, method.__name__, args, kwargs), method(self, *args, **kwargs))

    return entry


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    async def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        return await _waited(_Run(self, method.__name__, args, kwargs), lambda: method(self, *args, **kwargs))

    return entry


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        run = _Run(self, method.__name__, args, kwargs)
        with run:
            run.begin_plain()
            run.outputs = method(self, *args, **kwargs)
        return run.outputs

    return entry


class _Run:
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


async def _waited(run: _Run, start: Callable[[], Any]) -> Any:
    """Run an async method to its end."""
    around = ambient()
    limit = plain_limit(around) if run._frame.parent is None and around is not None else None
    if limit is None:
        return await _told(run, start)
    with limit:
        return await _told(run, start)


async def _told(run: _Run, start: Callable[[], Any]) -> Any:
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


class _Stream(AsyncIterator[Any]):
    """Drives an async generator step by step: its frame is set before each step and reset after it."""

    __slots__ = ("_items", "_over", "_run", "_started")

    def __init__(self, run: _Run, items: AsyncGenerator[Any, Any]) -> None:
        self._run = run
        self._items = items
        self._started = False
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._step(lambda: anext(self._items))

    async def asend(self, value: Any) -> Any:
        """Go on with a value for the `yield`."""
        return await self._step(lambda: self._items.asend(value))

    async def athrow(self, error: BaseException) -> Any:
        """Raise an error at the `yield`."""
        return await self._step(lambda: self._items.athrow(error))

    async def aclose(self) -> None:
        """End it early."""
        if self._over:
            return
        self._run.enter()
        try:
            await self._items.aclose()
        finally:
            await self._finish(GeneratorExit() if self._started else None)

    async def _step(self, step: Callable[[], Any]) -> Any:
        if self._over:
            return await step()
        self._run.enter()
        try:
            if not self._started:
                self._started = True
                await self._run.begin()
            return await step()
        except StopAsyncIteration:
            await self._finish(None)
            raise
        except BaseException as error:
            await self._finish(error)
            raise
        finally:
            self._run.leave()

    async def _finish(self, failure: BaseException | None) -> None:
        """Tell of the end, once."""
        if self._over:
            return
        self._over = True
        try:
            if self._started:
                await self._run.end(failure)
        finally:
            self._run.leave()
            self._run.close(failure)

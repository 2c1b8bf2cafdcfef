"""Methods that are entry points beside `call`: a scope, a span and a count of their own for each run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from synmod.errors import ConfigError
from synmod.module.method_run import MethodRun, run_waiting

if TYPE_CHECKING:
    from synmod.module.module import Module

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
        return _Stream(MethodRun(self, method.__name__, args, kwargs), method(self, *args, **kwargs))

    return entry


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    async def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        return await run_waiting(MethodRun(self, method.__name__, args, kwargs), lambda: method(self, *args, **kwargs))

    return entry


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        run = MethodRun(self, method.__name__, args, kwargs)
        with run:
            run.begin_plain()
            run.outputs = method(self, *args, **kwargs)
        return run.outputs

    return entry


class _Stream(AsyncIterator[Any]):
    """Drives an async generator step by step: its frame is set before each step and reset after it."""

    __slots__ = ("_items", "_over", "_run", "_started")

    def __init__(self, run: MethodRun, items: AsyncGenerator[Any, Any]) -> None:
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

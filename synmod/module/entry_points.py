"""Methods that are entry points beside `call`: a scope, a span and a count of their own for each run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod.errors import ConfigError
from synmod.leaves.stepping import stepwise_async
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
    def run(self: Module, /, *args: Any, **kwargs: Any) -> MethodRun:
        return MethodRun(self, method.__name__, args, kwargs)

    return stepwise_async(method, run)


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    async def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        return await run_waiting(MethodRun(self, method.__name__, args, kwargs), lambda: method(self, *args, **kwargs))

    return entry


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    def entry(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        run = MethodRun(self, method.__name__, args, kwargs)
        with run:
            run.outputs = method(self, *args, **kwargs)
        return run.outputs

    return entry

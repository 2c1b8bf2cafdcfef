"""`Module.with_name_scope`: methods beside `call` that show their module's name in `sm.current_scope()`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod.scope import NameScope

if TYPE_CHECKING:
    from synmod.module.module import Module

F = TypeVar("F", bound=Callable[..., Any])


def with_name_scope(method: F) -> F:
    """Return a method that runs in the name scope of its module: `sm.current_scope()` shows the name while it runs.

    Args:
        method: A plain or `async def` method of a module.

    Example:
        >>> import synmod as sm
        >>> class Encoder(sm.Module):
        ...     @sm.Module.with_name_scope
        ...     def encode(self, text):
        ...         return sm.current_scope()
        >>> Encoder().encode("x")
        'encoder'

    Source: tf.Module `with_name_scope`; differs: async.
    """
    if inspect.iscoroutinefunction(method):

        async def waiting(self: Module, /, *args: Any, **kwargs: Any) -> Any:
            with NameScope(self._record):
                return await method(self, *args, **kwargs)

        return cast("F", functools.wraps(method)(waiting))

    def plain(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        with NameScope(self._record):
            return method(self, *args, **kwargs)

    return cast("F", functools.wraps(method)(plain))

"""Generator functions driven step by step: a block around each step, and nothing held across a yield."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Around: TypeAlias = Callable[[], AbstractContextManager[Any]]
"""Makes the block for one step."""

Begin: TypeAlias = Callable[..., AbstractContextManager[Around]]
"""Is given the arguments of the function; makes a block for the whole run, which sets nothing that others see."""


def stepwise_async(function: Callable[..., AsyncGenerator[Any, Any]], begin: Begin) -> Any:
    """Wrap an async generator function: each step of what it gives, and its end, runs in a block of its own.

    Args:
        function: The generator function.
        begin: Is entered for each run, and gives what makes the blocks.

    Returns:
        An async generator function; what is sent or thrown to its generators goes to the inner ones.

    Source: PEP 525.
    """

    @functools.wraps(function)
    async def within(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with begin(*args, **kwargs) as around:
            generator = function(*args, **kwargs)
            step: Callable[[Any], Awaitable[Any]] = generator.asend
            given: Any = None
            try:
                while True:
                    with around():
                        try:
                            item = await step(given)
                        except StopAsyncIteration:
                            return
                    try:
                        given = yield item
                        step = generator.asend
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is thrown in
                        given, step = error, generator.athrow
            finally:
                with around():
                    await generator.aclose()

    return within


def stepwise(function: Callable[..., Generator[Any, Any, Any]], begin: Begin) -> Any:
    """Wrap a plain generator function likewise.

    Args:
        function: The generator function.
        begin: Is entered for each run, and gives what makes the blocks.

    Returns:
        A generator function.

    Source: PEP 342.
    """

    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with begin(*args, **kwargs) as around:
            generator = function(*args, **kwargs)
            step: Callable[[Any], Any] = generator.send
            given: Any = None
            try:
                while True:
                    with around():
                        try:
                            item = step(given)
                        except StopIteration as stop:
                            return stop.value
                    try:
                        given = yield item
                        step = generator.send
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is thrown in
                        given, step = error, generator.throw
            finally:
                with around():
                    generator.close()

    return within

"""Generator functions driven step by step: a block around the whole run, and nothing of it held across a yield.

Python's generators share the context of whoever drives them, so a block that is open at a `yield` is seen by the
consumer, and one that two tasks drive is in neither. Here, what a generator has set in ContextVars is set before each
of its steps and taken back after it, wherever the step is taken.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

_UNSET: Final = object()


class _Held:
    """The block around each step of one generator: in it holds what the generator has set, outside it does not."""

    __slots__ = ("_around", "_own")

    def __init__(self) -> None:
        self._own: dict[ContextVar[Any], Any] = {}
        self._around: Context | None = None

    def __enter__(self) -> None:
        self._around = copy_context()
        for variable, value in self._own.items():
            variable.set(value)

    def __exit__(self, *_: object) -> None:
        around, now, before = self._around, copy_context(), self._own
        assert around is not None
        self._around = None
        self._own = {variable: value for variable, value in now.items() if around.get(variable, _UNSET) is not value}
        for variable in (*self._own, *(each for each in before if each not in self._own)):
            if now.get(variable, _UNSET) is not around.get(variable, _UNSET):
                try:
                    variable.set(around.run(variable.get))
                except LookupError:  # it had no value and has no default: Python knows no way back
                    pass


def stepwise_async(
    function: Callable[..., AsyncGenerator[Any, Any]], block: Callable[..., AbstractAsyncContextManager[Any]]
) -> Any:
    """Wrap an async generator function: what it gives runs in a block that its consumer does not see.

    Args:
        function: The generator function.
        block: Is given the arguments; makes the block around one run, which is entered with the first step, and left
            when the generator has ended, failed or been closed.

    Returns:
        An async generator function; what is sent or thrown to its generators goes to the inner ones, which are closed
        in any case.

    Source: PEP 525; of the context, PEP 568.
    """

    @functools.wraps(function)
    async def within(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        held, run = _Held(), block(*args, **kwargs)
        with held:
            await run.__aenter__()
        generator = function(*args, **kwargs)
        step: Callable[[Any], Awaitable[Any]] = generator.asend
        given: Any = None
        failure: BaseException | None = None
        try:
            while True:
                with held:
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
        except BaseException as error:
            failure = error
            raise
        finally:
            with held:
                try:
                    await generator.aclose()
                finally:
                    await run.__aexit__(None if failure is None else type(failure), failure, None)
            given = failure = None  # no circle of an exception and the frame that holds it

    return within


def stepwise(
    function: Callable[..., Generator[Any, Any, Any]], block: Callable[..., AbstractContextManager[Any]]
) -> Any:
    """Wrap a plain generator function likewise.

    Args:
        function: The generator function.
        block: Makes the block around one run.

    Returns:
        A generator function.

    Source: PEP 342; of the context, PEP 568.
    """

    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        held, run = _Held(), block(*args, **kwargs)
        with held:
            run.__enter__()
        generator = function(*args, **kwargs)
        step: Callable[[Any], Any] = generator.send
        given: Any = None
        failure: BaseException | None = None
        try:
            while True:
                with held:
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
        except BaseException as error:
            failure = error
            raise
        finally:
            with held:
                try:
                    generator.close()
                finally:
                    run.__exit__(None if failure is None else type(failure), failure, None)
            given = failure = None

    return within

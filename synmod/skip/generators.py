"""Idiom B: `call` is an async generator that yields commands, and its output last."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from synmod.errors import ArgumentError, SynmodError
from synmod.skip.commands import Command

if TYPE_CHECKING:
    from synmod.skip.layers import Layer

_NONE_YET: Final[Any] = object()


async def played(call: AsyncGenerator[Any, Any], layer: Layer) -> Any:
    """Perform the commands that a call yields, and give its output: the one yielded value that is no command.

    Errors of a command are thrown in at the `yield`; the generator is closed in any case.

    Raises:
        ArgumentError: A second value, a command after the output, or no output.
        BaseException: Whatever the generator raises.
    """
    output = _NONE_YET
    step = anext(call)
    try:
        while True:
            item = await step
            if isinstance(item, Command):
                if output is not _NONE_YET:
                    raise _comes_late(layer, item)
                try:
                    result = item.perform()
                except SynmodError as error:  # it is the generator's to handle
                    step = call.athrow(error)
                else:
                    step = call.asend(result)
            elif output is _NONE_YET:
                output = item
                step = anext(call)
            else:
                raise ArgumentError(
                    f"{layer.label}: call yielded {item!r:.100}, which is not a command, after its output. Yield "
                    "commands, and the output once, at the end."
                )
    except StopAsyncIteration:  # it has ended by itself
        if output is _NONE_YET:
            raise ArgumentError(
                f"{layer.label}: call ended without yielding an output: `yield out` at its end."
            ) from None
        return output
    except BaseException:
        await call.aclose()
        raise


def _comes_late(layer: Layer, command: Command) -> ArgumentError:
    """The error of a command after the output."""
    command._used = True
    return ArgumentError(
        f"{layer.label}: call yielded the command {command!r} after its output: the output comes last."
    )

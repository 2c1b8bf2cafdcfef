"""A plain callable as a member of a `Sequential`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from synmod.module import UNDECLARED, check_output, declared_outputs, is_nothing, resolved_annotations, without_none

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class FunctionMember:
    """Calls a function as a module would be called: on data, with None passed over where it takes none.

    Its outputs are data; a return annotation declares them.
    """

    __slots__ = ("_function", "_module", "_takes_none")

    def __init__(self, function: Callable[..., Any]) -> None:
        from synmod.blocks import Lambda

        self._function = function
        self._module = Lambda(function)
        self._takes_none = _takes_none(function)

    async def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function."""
        if named:
            from synmod.blocks import Lambda

            declared = declared_outputs(self._module)
            bound = partial(self._function, **named)
            return await Lambda(bound, output=None if declared.nothing else declared.nest)(*args)
        nothing = [index for index, argument in enumerate(args) if is_nothing(argument)]
        if not nothing:
            return await self._module(*args)
        if any(not self._takes(index) for index in nothing):
            return declared_outputs(self._module).nones()
        if len(nothing) < len(args):
            return await self._module(*args)
        output = self._function(*args)  # the module itself would pass over a call with nothing but None
        return check_output(self._module, await output if inspect.isawaitable(output) else output)

    def _takes(self, index: int) -> bool:
        """Tell whether the parameter at a position takes None."""
        return index < len(self._takes_none) and self._takes_none[index]


def _takes_none(function: Callable[..., Any]) -> list[bool]:
    """Tell for each positional parameter whether it takes None: by its default, or its annotation."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a callable written in C may not tell
        return []
    hints = resolved_annotations(function if inspect.isroutine(function) else type(function).__call__)
    return [
        parameter.default is None or without_none(hints.get(parameter.name, UNDECLARED))[1]
        for parameter in parameters
        if parameter.kind in _POSITIONAL
    ]

"""`module.build`: the body of the class inside the module's own build, the whole of `sm.build` anywhere else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any


class BuildMethod:
    """A descriptor over a class's own `build`, so that a call from outside is once, checked and all or nothing."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__wrapped__ = function  # what `inspect` reads
        self.__doc__ = function.__doc__

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            return self.function
        from synmod.module.building import is_in_own_build
        from synmod.module.sm_build import build

        if is_in_own_build(module._record):
            return self.function.__get__(module, owner)
        return functools.partial(build, module)


def empty_build(_module: Any, *_inputs: Any, **_named: Any) -> Nothing:
    """Make nothing: the `build` of `Module`."""
    return Nothing()


class Nothing:
    """What the empty build returns: it may be awaited, and may be left alone."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield

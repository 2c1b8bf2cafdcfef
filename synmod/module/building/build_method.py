"""`module.build`: the body of the class inside the module's own build, the whole of `sm.build` anywhere else."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any

from synmod.tree import class_of


class BuildMethod:
    """A class's own `build` as a method: called from outside it is once, checked, and all or nothing."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # signature, text, and whether it is abstract

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self if module is None else functools.partial(self, module)

    def __call__(self, module: Any, *inputs: Any, **named: Any) -> Any:
        """Run the body where the module's own build runs (`super().build(...)`), else build the module."""
        from synmod.module.building.builds import running_own_build
        from synmod.module.building.sm_build import build

        running = running_own_build(module._record)
        if running is None:
            return build(module, *inputs, **named)
        if self is build_method_of(module):
            raise running.waits_for_itself(module)
        return self.run(module, *inputs, **named)

    def run(self, module: Any, *inputs: Any, **named: Any) -> Any:
        """Run the body, whatever it is: plain or async."""
        body: Any = self.function.__get__(module)
        return body(*inputs, **named)


def build_method_of(module: Any) -> BuildMethod:
    """The `build` of a module's own class."""
    return inspect.getattr_static(class_of(module), "build")


def empty_build(_module: Any, *_inputs: Any, **_named: Any) -> Nothing:
    """Make nothing: the `build` of `Module`."""
    return Nothing()


class Nothing:
    """What the empty build returns: it may be awaited, and may be left alone."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield

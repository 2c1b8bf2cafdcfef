"""Deferred: a module that makes another one at its first call."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from synmod.errors import ConfigError
from synmod.module.module import Module
from synmod.registry import register_own

_LOCK: Final = threading.Lock()
_OWN: Final = frozenset({"target", "training", "deterministic"})


@register_own()
class Deferred(Module):
    """Stands for a module that is made at the first call, once; for one whose config depends on what another built.

    From then on attribute reads, writes and deletes pass to the target; before, they are AttributeErrors.

    Args:
        constructor: A class of modules, or a plain function that makes one; registered, if it is to be saved.
        call_methods: The methods whose first call makes the target; calling the module itself always does.
        **labels: `name`, `description`, `trainable`, `hooks`.

    Raises:
        ConfigError: `constructor` cannot be called, or made something that is no module.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> deferred = sm.Deferred(sm.Identity)
        >>> deferred
        Deferred(Identity)
        >>> sm.run(deferred, Query(question="Who?"))["question"], deferred
        ('Who?', Deferred(Identity()))

    Source: Sonnet `Deferred`.
    """

    def __init__(
        self, constructor: Callable[[], Module], call_methods: Iterable[str] = ("__call__",), **labels: Any
    ) -> None:
        if not callable(constructor):
            raise ConfigError(f"Deferred takes a class or function that makes a module, not {constructor!r:.200}.")
        super().__init__(**labels)
        self.constructor = constructor
        self.call_methods = tuple(call_methods)

    async def build(self, *inputs: Any, **named: Any) -> None:  # noqa: ARG002  # the target is built when it is called
        """Make the target."""
        self._make()

    async def call(self, *inputs: Any, **named: Any) -> Any:
        """Call the target."""
        output = self._make()(*inputs, **named)
        return await output if inspect.isawaitable(output) else output

    def _make(self) -> Module:
        """Give the target, made by the first who asks."""
        target: Module | None = vars(self).get("target")
        if target is not None:
            return target
        with _LOCK:
            if "target" not in vars(self):
                made: object = self.constructor()
                if not isinstance(made, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all are typed)
                    raise ConfigError(f"{self.name}: the constructor made {made!r:.200}, which is no module.")
                self.target = made
            return self.target

    def _call_first(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        """Make the target because one of its methods is called."""
        return getattr(self._make(), method)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        target = vars(self).get("target")
        if target is not None and not (name.startswith("__") and name.endswith("__")):
            return getattr(target, name)
        if target is None and name in vars(self).get("call_methods", ()):
            return functools.partial(self._call_first, name)
        raise AttributeError(_absent(self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        owner = self._owner_of(name)
        Module.__setattr__(self, name, value) if owner is self else setattr(owner, name, value)

    def __delattr__(self, name: str) -> None:
        owner = self._owner_of(name)
        Module.__delattr__(self, name) if owner is self else delattr(owner, name)

    def _owner_of(self, name: str) -> Module:
        """Tell whose attribute it is: that of the target, except for what every module answers itself."""
        if not self._record.constructed or name in _OWN or name in vars(self) or hasattr(type(self), name):
            return self
        target: Module | None = vars(self).get("target")
        if target is None:
            raise AttributeError(_absent(self, name))
        return target

    def __repr__(self) -> str:
        constructor = vars(self).get("constructor")
        target = vars(self).get("target")
        return f"Deferred({getattr(constructor, '__name__', constructor) if target is None else repr(target)})"


def _absent(deferred: Module, name: str) -> str:
    return f"{deferred.name} has no attribute {name!r}: what it stands for is made at its first call."

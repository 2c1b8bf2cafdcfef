"""Hook: an object that is told what happens."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from synmod.errors import ArgumentError

if TYPE_CHECKING:
    from synmod.scope.events import (
        BuildBegin,
        BuildEnd,
        CallBegin,
        CallEnd,
        LMBegin,
        LMEnd,
        SkipDropped,
        VariableAssign,
    )

EVENTS = (
    "on_call_begin", "on_call_end", "on_build_begin", "on_build_end", "on_lm_begin", "on_lm_end", "on_lm_chunk",
    "on_variable_assign", "on_skip_dropped",
)  # fmt: skip
_PLAIN = ("on_variable_assign", "on_skip_dropped")  # these come from plain code, which cannot wait


class Hook:
    """Told what happens: override any of the methods, plain or async (the last two only plain).

    Each receives one frozen record. What a method raises is logged and changes nothing; module calls that it makes
    are entry calls of their own, and are not shown to the same hook. Methods are looked up once per class.

    Example:
        >>> class Count(Hook):
        ...     seen = 0
        ...     def on_call_begin(self, event):
        ...         self.seen += 1

    Source: Keras callbacks, OpenTelemetry span processors; differs: records with a path, never the module.
    """

    __slots__ = ("__dict__", "__weakref__", "_complaints")

    told: ClassVar[frozenset[str]] = frozenset()
    """The methods that the class overrides: only these are called."""

    told_async: ClassVar[frozenset[str]] = frozenset()
    """Those of them that must be awaited."""

    _in_place: ClassVar[bool] = False
    """Whether it is told in the call itself; see `InPlace`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.told = frozenset(name for name in EVENTS if getattr(cls, name) is not getattr(Hook, name))
        cls.told_async = frozenset(name for name in cls.told if _is_async(getattr(cls, name)))
        cls._in_place = vars(cls).get("_in_place", False)  # what is derived from it may call

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make room for what was complained of; here, since subclasses may leave out `super().__init__()`."""
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise ArgumentError(f"{cls.__name__}() takes no arguments: its class defines no __init__.")
        self = super().__new__(cls)
        object.__setattr__(self, "_complaints", {})  # also in a frozen dataclass
        return self

    def on_call_begin(self, event: CallBegin) -> Awaitable[None] | None:
        """A module call begins."""

    def on_call_end(self, event: CallEnd) -> Awaitable[None] | None:
        """A module call ended."""

    def on_build_begin(self, event: BuildBegin) -> Awaitable[None] | None:
        """A module is about to be built."""

    def on_build_end(self, event: BuildEnd) -> Awaitable[None] | None:
        """A build ended."""

    def on_lm_begin(self, event: LMBegin) -> Awaitable[None] | None:
        """A model call begins."""

    def on_lm_end(self, event: LMEnd) -> Awaitable[None] | None:
        """A model call ended."""

    def on_lm_chunk(self, event: Any) -> Awaitable[None] | None:
        """A piece of a streamed reply arrived."""

    def on_variable_assign(self, event: VariableAssign) -> None:
        """A Variable got a new value."""

    def on_skip_dropped(self, event: SkipDropped) -> None:
        """Values that were stashed for skip connections were never popped."""


def check_hook(hook: object) -> Hook:
    """Return `hook` if it may be added.

    Raises:
        ArgumentError: It is no instance of Hook, or a method that comes from plain code is async.
    """
    if not isinstance(hook, Hook):
        made = f"make an instance: {hook.__name__}()" if isinstance(hook, type) else "derive its class from sm.Hook"
        raise ArgumentError(f"{hook!r} is no hook: {made}.")
    for name in _PLAIN:
        if name in hook.told_async:
            raise ArgumentError(
                f"{type(hook).__name__}.{name} is async, but {name} comes from plain code, which cannot wait: "
                "write it as a plain `def`."
            )
    return hook


def _is_async(method: object) -> bool:
    """Tell whether a method must be awaited; also one that is a callable object with an async `__call__`."""
    return inspect.iscoroutinefunction(method) or inspect.iscoroutinefunction(getattr(method, "__call__", None))  # noqa: B004

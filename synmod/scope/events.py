"""Events: the frozen records that hooks receive, and the class whose methods receive them.

A record refers to the frozen values of the run; nothing is copied or formatted.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from synmod.errors import ArgumentError

from .usage import Usage

_LOG: Final = logging.getLogger("synmod.hooks")


@dataclass(frozen=True, slots=True)
class Event:
    """Where something happened.

    Attributes:
        call_id: Id of the running module call, None outside of one.
        parent_call_id: Id of the call above, None for an entry call.
        path: Path of the module below the entry module, "" outside a call.
        name: Label of the module, "" outside a call.
        phase: `inference`, `reward` or `optimizer`.
        training: Whether the call runs in training mode.
    """

    call_id: str | None
    parent_call_id: str | None
    path: str
    name: str
    phase: str
    training: bool


@dataclass(frozen=True, slots=True)
class CallBegin(Event):
    """A module call begins: positional arguments and keywords as `call` gets them."""

    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnd(Event):
    """A module call ended: with outputs, or with its exception (a cancellation or a closing included).

    `usage` and `rewards` (path, name, value) are those of the whole run, on the end of an entry call; else None and ().
    """

    outputs: Any
    exception: BaseException | None
    elapsed_s: float
    usage: Usage | None = None
    rewards: tuple[tuple[str, str | None, float], ...] = ()


@dataclass(frozen=True, slots=True)
class BuildBegin(Event):
    """A build begins: the symbols that `build` gets."""

    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BuildEnd(Event):
    """A build ended: with the exception that ended it, or None."""

    inputs: tuple[Any, ...]
    exception: BaseException | None
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class LMBegin(Event):
    """A model call begins, inside the module call that the first fields name."""

    request: Any
    model: str


@dataclass(frozen=True, slots=True)
class LMEnd(Event):
    """A model call ended: with its reply or its exception, after `attempts` requests."""

    request: Any
    model: str
    reply: Any
    exception: BaseException | None
    attempts: int
    usage: Usage
    elapsed_s: float
    cached: bool


@dataclass(frozen=True, slots=True)
class VariableAssign(Event):
    """A Variable got a new value: its path below the entry module (else its name), both values, the new version."""

    variable: str
    old: Any
    new: Any
    version: int


@dataclass(frozen=True, slots=True)
class SkipDropped(Event):
    """Values that nobody popped were dropped at the end of an entry call: name, namespace and producer of each."""

    names: tuple[str, ...]
    namespaces: tuple[Any, ...]
    producer_paths: tuple[str, ...]


METHODS: Final = (
    "on_call_begin", "on_call_end", "on_build_begin", "on_build_end", "on_lm_begin", "on_lm_end", "on_lm_chunk",
    "on_variable_assign", "on_skip_dropped",
)  # fmt: skip
"""The methods of a hook."""


class Hook:
    """Receives events: override any of the methods with plain functions.

    Each receives one frozen record, in place, while the call waits. What a method raises is logged and changes nothing;
    what it does itself (calls, assignments) is not shown to hooks. A method that has to wait puts the record on a queue
    and lets a task of yours read it.

    Example:
        >>> class Count(Hook):
        ...     seen = 0
        ...     def on_call_begin(self, event):
        ...         self.seen += 1

    Source: Keras callbacks, OpenTelemetry span processors; differs: records with a path, never the module.
    """

    __slots__ = ("__dict__", "__weakref__", "_failed")
    _failed: set[str]

    overrides: ClassVar[frozenset[str]] = frozenset()
    """The methods that the class overrides: only these are called."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.overrides = frozenset(name for name in METHODS if getattr(cls, name) is not getattr(Hook, name))

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the bookkeeping here, since a subclass may leave out `super().__init__()`."""
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise ArgumentError(f"{cls.__name__}() takes no arguments: its class defines no __init__.")
        self = super().__new__(cls)
        object.__setattr__(self, "_failed", set())  # also in a frozen dataclass
        return self

    def on_call_begin(self, event: CallBegin) -> None:
        """A module call begins."""

    def on_call_end(self, event: CallEnd) -> None:
        """A module call ended."""

    def on_build_begin(self, event: BuildBegin) -> None:
        """A module is about to be built."""

    def on_build_end(self, event: BuildEnd) -> None:
        """A build ended."""

    def on_lm_begin(self, event: LMBegin) -> None:
        """A model call begins."""

    def on_lm_end(self, event: LMEnd) -> None:
        """A model call ended."""

    def on_lm_chunk(self, event: Any) -> None:
        """A piece of a streamed reply arrived."""

    def on_variable_assign(self, event: VariableAssign) -> None:
        """A Variable got a new value."""

    def on_skip_dropped(self, event: SkipDropped) -> None:
        """Values that were stashed for skip connections were never popped."""


def check_hook(hook: object) -> Hook:
    """Return `hook` if it may be added.

    Raises:
        ArgumentError: It is not an instance of Hook, or one of its methods is async.
    """
    if not isinstance(hook, Hook):
        remedy = f"make an instance: {hook.__name__}()" if isinstance(hook, type) else "derive its class from sm.Hook"
        raise ArgumentError(f"{hook!r} is not a hook: {remedy}.")
    for name in METHODS:
        method: Any = getattr(hook, name)
        if inspect.iscoroutinefunction(method) or inspect.iscoroutinefunction(type(method).__call__):
            raise ArgumentError(
                f"{type(hook).__name__}.{name} is async, but hooks are plain functions: write "
                f"`def {name}(self, event)`. "
                "To wait for something, put the record on a queue that a task of yours reads."
            )
    return hook


def log_failure(hook: Hook, method: str, error: Exception) -> None:
    """Log what a hook raised: the first failure of each method as an error, later ones for debugging."""
    level = logging.DEBUG if method in hook._failed else logging.ERROR
    hook._failed.add(method)
    _LOG.log(level, "hook %s.%s failed", type(hook).__qualname__, method, exc_info=error)

"""Hooks: the frozen records that they receive, the class whose methods receive them, and `sm.hooks`.

A record refers to the frozen values of the run; nothing is copied or formatted. Without a listener no record is made.
"""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, Final, TypeAlias

from synmod import errors, leaves

from .frame import IN_A_HOOK, Ambient, CallFrame, Reward, SameBlock, ambient, current_call, hooks_inside, phase_in
from .usage import Usage

_LOG: Final = logging.getLogger("synmod.hooks")

# -- records -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
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

    method: ClassVar[str]
    """The method of a hook that receives it."""

    @property
    def place(self) -> str:
        """Path and label, for people: `routes/technical/0 (answer)`; for an entry call the label alone."""
        return leaves.with_label(self.path, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class CallBegin(Event):
    """A module call begins.

    Attributes:
        inputs: The positional arguments, as `call` gets them.
        kwargs: The keyword arguments, likewise.
    """

    method: ClassVar[str] = "on_call_begin"
    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class CallEnd(Event):
    """A module call ended.

    Attributes:
        outputs: The result; None if it failed.
        exception: The exception if it failed, was cancelled or closed; else None.
        elapsed_s: Wall seconds.
        usage: That of the whole run, at the end of an entry call; else None.
        rewards: (path, name, value) of the whole run, at the end of an entry call; else ().
        inputs: The positional arguments, as `call` got them.
    """

    method: ClassVar[str] = "on_call_end"
    outputs: Any
    exception: BaseException | None
    elapsed_s: float
    usage: Usage | None = None
    rewards: tuple[Reward, ...] = ()
    inputs: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BuildBegin(Event):
    """A build begins.

    Attributes:
        inputs: The symbols that `build` gets by position.
        kwargs: The symbols that it gets by keyword.
    """

    method: ClassVar[str] = "on_build_begin"
    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class BuildEnd(Event):
    """A build ended.

    Attributes:
        inputs: The symbols that `build` got.
        exception: The exception if it failed, else None.
        elapsed_s: Wall seconds.
    """

    method: ClassVar[str] = "on_build_end"
    inputs: tuple[Any, ...]
    exception: BaseException | None
    elapsed_s: float


@dataclass(frozen=True, slots=True, eq=False)
class LMBegin(Event):
    """A model call begins, inside the module call that the fields of `Event` name.

    Attributes:
        request: Its `LMRequest`, or `EmbeddingRequest`.
        model: `provider/name`.
    """

    method: ClassVar[str] = "on_lm_begin"
    request: Any
    model: str


@dataclass(frozen=True, slots=True, eq=False)
class LMEnd(Event):
    """A model call ended.

    Attributes:
        request: Its `LMRequest`, or `EmbeddingRequest`.
        model: `provider/name`.
        reply: Its `LMReply`, or `EmbeddingReply`; None if it failed.
        exception: The exception if it failed, else None.
        attempts: The requests that were sent.
        usage: Tokens and cost, as a `Usage`.
        elapsed_s: Wall seconds.
        cached: Whether the reply came from a cache.
    """

    method: ClassVar[str] = "on_lm_end"
    request: Any
    model: str
    reply: Any
    exception: BaseException | None
    attempts: int
    usage: Usage
    elapsed_s: float
    cached: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LMChunkEvent(Event):
    """A piece of a streamed reply arrived; the readers of the stream get it after the hooks.

    Attributes:
        request: Its `LMRequest`.
        model: `provider/name`.
        chunk: The piece, an `LMChunk`.
    """

    method: ClassVar[str] = "on_lm_chunk"
    request: Any
    model: str
    chunk: Any


@dataclass(frozen=True, slots=True, eq=False)
class Emitted(Event):
    """A module, a tool or other code of the run called `sm.emit`.

    Attributes:
        topic: The subject of the event, as given.
        value: Any JSON, frozen.
    """

    method: ClassVar[str] = "on_emit"
    topic: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class VariableAssign(Event):
    """A Variable got a new value.

    Attributes:
        variable: Its path below the entry module; its name where it has none.
        old: The value before.
        new: The value now.
        version: The version number of the new value.
    """

    method: ClassVar[str] = "on_variable_assign"
    variable: str
    old: Any
    new: Any
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class SkipDropped(Event):
    """Values that no module popped were dropped at the end of an entry call.

    Attributes:
        names: The name of each value.
        namespaces: Its Namespace, None for the default one.
        producer_paths: The path of the module that stashed it.
    """

    method: ClassVar[str] = "on_skip_dropped"
    names: tuple[str, ...]
    namespaces: tuple[Any, ...]
    producer_paths: tuple[str, ...]


# -- hooks -------------------------------------------------------------------------------------------------------------


class Hook:
    """Receives events: override any of the methods with plain functions.

    Each method gets one frozen record, and the call waits until it returns. An exception in it is logged and ignored;
    calls and assignments that it makes are not reported to hooks. To wait for something, put the record on a queue that
    a task of yours reads.

    Raises:
        ConfigError: A subclass has a method `on_...` that is not one of these ('Did you mean').

    Example:
        >>> class Count(Hook):
        ...     seen = 0
        ...     def on_call_begin(self, event):
        ...         self.seen += 1

    Source: Keras callbacks, OpenTelemetry span processors; differs: records with a path, never the module.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
        for name in vars(cls):
            if name.startswith("on_") and name not in inherited:
                raise errors.ConfigError(
                    f"class {cls.__name__}: no event calls {name!r}.{leaves.did_you_mean(name, _METHODS)} "
                    f"The methods of a hook are {', '.join(_METHODS)}."
                )

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

    def on_lm_chunk(self, event: LMChunkEvent) -> None:
        """A piece of a streamed reply arrived."""

    def on_emit(self, event: Emitted) -> None:
        """Code of the run called `sm.emit`, maybe in another thread."""

    def on_variable_assign(self, event: VariableAssign) -> None:
        """A Variable got a new value."""

    def on_skip_dropped(self, event: SkipDropped) -> None:
        """Values that were stashed for skip connections were never popped."""


_METHODS: Final = tuple(name for name in vars(Hook) if name.startswith("on_"))


def check_hook(hook: object) -> Hook:
    """Return `hook` if it may be added.

    Raises:
        ArgumentError: It is not an instance of Hook, or one of its methods is async.
    """
    if not isinstance(hook, Hook):
        remedy = f"make an instance: {hook.__name__}()" if isinstance(hook, type) else "derive its class from sm.Hook"
        raise errors.ArgumentError(f"{hook!r} is not a hook: {remedy}.")
    for name in _METHODS:
        if not _overrides(hook, name):
            continue
        method: Any = getattr(hook, name)
        is_object = not inspect.ismethod(method)
        if inspect.iscoroutinefunction(method) or (is_object and inspect.iscoroutinefunction(type(method).__call__)):
            raise errors.ArgumentError(
                f"{type(hook).__name__}.{name} is async, but hooks are plain functions: write "
                f"`def {name}(self, event)`. "
                "To wait for something, put the record on a queue that a task of yours reads."
            )
    return hook


def _overrides(hook: Hook, name: str) -> bool:
    """Whether a hook has a method of its own for an event."""
    return getattr(getattr(hook, name), "__func__", None) is not vars(Hook)[name]


class hooks(SameBlock):  # noqa: N801  # read as a word: `with sm.hooks(h):`
    """Notify hooks of everything that happens in a block.

    Args:
        *hooks: Called in this order at each begin, in reverse at each end; after those of enclosing blocks.

    Raises:
        ArgumentError: No hook is given, one is not a hook, or one has an async method.

    Example:
        >>> class Names(Hook):
        ...     def on_call_begin(self, event):
        ...         names.append(event.name)
        >>> names = []
        >>> with hooks(Names()):
        ...     pass

    Source: structlog's context; differs: no process-wide list, so code without hooks pays nothing.
    """

    def __init__(self, *hooks: Hook) -> None:
        if not hooks:
            raise errors.ArgumentError("hooks() got no hook: write `with sm.hooks(hook):`.")
        super().__init__(hooks=tuple(map(check_hook, hooks)))


# -- notifying ---------------------------------------------------------------------------------------------------------

Place: TypeAlias = tuple[str | None, str | None, str, str, str, bool]
"""The six fields that every record begins with."""


def place_of(frame: CallFrame | None, phase: str) -> Place:
    """Return the first fields of a record: the call in which it happens, and the phase, which a block may have set."""
    if frame is None:
        return (None, None, "", "", phase, False)
    return (frame.id, frame.parent_id, frame.path, frame.name, phase, frame.training)


def begin_call(
    listeners: tuple[Hook, ...], frame: CallFrame, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Notify listeners that a module call begins; `inputs` and `kwargs` are as `call` gets them."""
    listeners = tuple([hook for hook in listeners if _overrides(hook, "on_call_begin")])
    if listeners:
        notify(listeners, CallBegin(*place_of(frame, frame.phase), inputs, dict(kwargs)))


def end_call(
    listeners: tuple[Hook, ...],
    frame: CallFrame,
    inputs: tuple[Any, ...],
    outputs: Any,
    exception: BaseException | None,
    started: float,
) -> None:
    """Notify listeners that a module call ended; `started` is the `perf_counter` of its begin."""
    elapsed_s, usage, rewards = perf_counter() - started, None, ()
    if frame.parent is None:
        usage = frame.usage
        rewards = frame.rewards if exception is None else ()  # those of a failed call are dropped
    notify(listeners, CallEnd(*place_of(frame, frame.phase), outputs, exception, elapsed_s, usage, rewards, inputs))


def notify_skip_dropped(
    frame: CallFrame, names: tuple[str, ...], namespaces: tuple[Any, ...], producer_paths: tuple[str, ...]
) -> None:
    """Notify listeners that an entry call, which has ended, left values that were not popped."""
    if listeners := hooks_inside(ambient(), frame):
        notify(listeners, SkipDropped(*place_of(frame, frame.phase), names, namespaces, producer_paths))


def notify_assign(variable: object, name: str, old: Any, new: Any, version: int) -> None:
    """Notify listeners that a Variable got a new value, except in a symbolic call, where nothing changed.

    Args:
        variable: The Variable, to look up its path.
        name: Its name, used if it has no path below the entry module.
        old: The value before.
        new: The value now.
        version: Its version now.
    """
    frame, record = current_call(), ambient()
    listeners = () if frame is not None and frame.symbolic else hooks_inside(record, frame)
    if listeners:
        path = name if frame is None else frame.run.paths.get(id(variable), name)
        notify(listeners, VariableAssign(*place_of(frame, phase_in(record, frame)), path, old, new, version))


def emit(topic: str, value: leaves.Json = None) -> None:
    """Report progress or anything else to the hooks and to the streams of events around; without any, do nothing.

    It never waits, and may be called anywhere in a run: in modules, in tools, and in the threads of plain tools.

    Args:
        topic: The subject of the event.
        value: Any JSON, or a data model.

    Raises:
        ArgumentError: The topic is not a text.
        DataError: The value is not JSON.

    Example:
        >>> import synmod as sm
        >>> class Print(sm.Hook):
        ...     def on_emit(self, event):
        ...         print(event.topic, event.value)
        >>> with sm.hooks(Print()):
        ...     sm.emit("pages", {"read": 3})
        pages {'read': 3}

    Source: LangGraph's custom stream events.
    """
    frame, record = current_call(), ambient()
    listeners = tuple([hook for hook in hooks_inside(record, frame) if _overrides(hook, "on_emit")])
    if not listeners or (frame is not None and frame.symbolic):
        return
    leaves.check_type("emit: topic", topic, str, "a text")
    notify(listeners, Emitted(*place_of(frame, phase_in(record, frame)), topic, leaves.frozen(value)))


async def wait_for_readers(record: Ambient) -> None:
    """Wait until the readers of the streams of events around have taken all events so far."""
    for reader in record.readers:
        await reader.wait_for_room()


def notify(listeners: tuple[Hook, ...], event: Event) -> None:
    """Call the method of each listener, in reverse order for an end.

    A failure is logged: the first of each method as an error, later ones at debug level. An interruption is raised when
    all have been called.
    """
    method, interruption = event.method, None
    token = IN_A_HOOK.set(True)
    try:
        for hook in reversed(listeners) if method.endswith("_end") else listeners:
            try:
                call: Callable[[Event], object] = getattr(hook, method)
                call(event)
            except Exception as error:  # noqa: BLE001  # a hook never breaks a call
                failed: set[str] = vars(hook).setdefault("_failed", set())  # works in a frozen dataclass too
                level = logging.DEBUG if method in failed else logging.ERROR
                failed.add(method)
                _LOG.log(level, "hook %s.%s failed", type(hook).__qualname__, method, exc_info=error)
            except BaseException as error:  # noqa: BLE001  # raised below
                interruption = interruption or error
    finally:
        IN_A_HOOK.reset(token)
    if interruption is not None:
        raise interruption

"""`stash`, `pop` and `peek`: inert commands, performed when they are awaited or yielded."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from synmod.errors import SkipError
from synmod.scope import FRAME, nearest_live
from synmod.skip.namespace import shown
from synmod.skip.slots import LOCK, Slot
from synmod.skip.symbols import as_popped, as_stashed
from synmod.skip.typed import admitted, hold_to_declared

if TYPE_CHECKING:
    from synmod.module import DeclaredSkips
    from synmod.scope import CallFrame
    from synmod.skip.layers import Layer

_ABSENT: Final[Any] = object()


class Command:
    """One command; does nothing until it is awaited or yielded."""

    __slots__ = ("__weakref__", "_name", "_used")
    word = ""
    _name: str
    _used: bool

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.perform()
        yield  # never reached: it makes this a generator, which never suspends

    def perform(self) -> Any:
        """Do it in the running call.

        Raises:
            SkipError: The running module has not declared it, or the lane does not allow it.
        """
        self._used = True
        frame = FRAME.get()
        if frame is not None and not frame.live:
            frame = nearest_live(frame)
        layer: Any = None if frame is None else frame.layer
        if layer is None or layer.skips is None:
            layer = _call_around(frame)
            if layer is None:
                raise _outside(self, frame)
        return self._do(layer, layer.skips)

    def _do(self, layer: Layer, skips: DeclaredSkips) -> Any:
        raise NotImplementedError

    def fault(self, layer: Layer, what: str, remedy: str) -> SkipError:
        """The error of this command, with the place of the call and the slot it is about."""
        slot = shown((layer.isolated.get(self._name), self._name))
        return SkipError(f"{layer.label}: {self!r}: {slot} {what}. {remedy}")

    def undeclared(self, layer: Layer, skips: DeclaredSkips) -> SkipError:
        """The error of a name that the class has not declared for this command."""
        adjective = {"stash": "stashable", "pop": "poppable", "peek": "peekable"}[self.word]
        declared = ", ".join(f"{word}={sorted(getattr(skips, word))}" for word in ("stash", "pop", "peek"))
        what = f"has not been declared as {adjective}"
        return self.fault(layer, what, f"Declared are {declared}: write @skippable({self.word}=[{self._name!r}]).")

    def __repr__(self) -> str:
        return f"{self.word}({self._name!r})"

    def __del__(self) -> None:
        if not getattr(self, "_used", True):
            warnings.warn(f"{self!r} was never awaited", RuntimeWarning, stacklevel=2, source=self)


class stash(Command):  # noqa: N801  # read as a verb: `await stash("doc", doc)`
    """Put a value into the lane, past the modules that come next: `await stash("doc", doc)`, or `yield` it.

    Args:
        name: A name that the class has declared by `@skippable(stash=...)`.
        value: A data model, JSON, or None, which is a value like any other.
        replace: Whether it may take the place of a value that nobody has popped (in loops).

    Raises:
        SkipError: When awaited: the name is not declared, or the slot is taken; outside a skippable call.
        SchemaError: When awaited: the skip is typed, and the value does not satisfy its schema.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     async def call(self, inputs):
        ...         await stash("doc", inputs)
        ...         return inputs

    Source: torchgpipe's `stash`; differs: awaited, and a second value is an error.
    """

    __slots__ = ("_replace", "_value")
    word = "stash"

    def __init__(self, name: str, value: Any, replace: bool = False) -> None:
        self._used = False
        self._name = name
        self._value = value
        self._replace = replace

    def _do(self, layer: Layer, skips: DeclaredSkips) -> None:
        if self._name not in skips.stash:
            raise self.undeclared(layer, skips)
        key = layer.isolated.get(self._name), self._name
        if not self._replace:
            known = layer.find(key)
            if known is not None or self._name in layer.stashes_done:
                raise self._doubled(layer, known)
        value = admitted(self, layer, skips, self._value) if skips.schemas else self._value
        if layer.frame.symbolic:
            value = as_stashed(value, skips.schemas.get(self._name), skips.models.get(self._name))
        layer.stash(key, Slot(value, layer.frame.path or layer.frame.name, replaces=self._replace))

    def _doubled(self, layer: Layer, known: Slot | None) -> SkipError:
        """The error of a slot that still holds a value, or of a second stash in one call."""
        by = f" by {known.producer!r}" if known is not None else " in this call"
        return self.fault(
            layer,
            f"has already been stashed{by}",
            "Pop it first, isolate the pair in a Namespace, or stash(..., replace=True) in a loop.",
        )


class pop(Command):  # noqa: N801  # read as a verb: `doc = await pop("doc")`
    """Take a value out of the lane: `doc = await pop("doc")`, or `yield` it.

    Args:
        name: A name that the class has declared by `@skippable(pop=...)`.
        default: What comes where an optional name is absent.

    Raises:
        SkipError: When awaited: the name is not declared, or was popped in this call; outside a skippable call.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     async def call(self, inputs):
        ...         return inputs + await pop("doc")

    Source: torchgpipe's `pop`; differs: awaited, and checked before the module runs.
    """

    __slots__ = ("_default",)
    word = "pop"

    def __init__(self, name: str, default: Any = _ABSENT) -> None:
        self._used = False
        self._name = name
        self._default = default

    def _do(self, layer: Layer, skips: DeclaredSkips) -> Any:
        if self._name not in skips.pop:
            raise self.undeclared(layer, skips)
        if self._name in layer.pops_done:
            raise self.fault(layer, "has already been popped", "Keep the value of the first pop in a variable.")
        key = layer.isolated.get(self._name), self._name
        slot = layer.held.get(key)
        if slot is None:
            with LOCK:
                slot = layer.held[key] if layer.reserve(key) else None
        layer.pop(key, slot)
        return _default(self, layer, self._default) if slot is None else _given(self, layer, skips, slot)


class peek(Command):  # noqa: N801  # read as a verb: `doc = await peek("doc")`
    """Read a value in the lane without taking it: `doc = await peek("doc")`, or `yield` it.

    Args:
        name: A name that the class has declared by `@skippable(peek=...)`.
        default: What comes where an optional name is absent.

    Raises:
        SkipError: When awaited: the name is not declared; outside a skippable call.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(peek=["doc"])
        ... class Judge(sm.Module):
        ...     async def call(self, inputs):
        ...         return inputs + await peek("doc")

    Source: a reader beside torchgpipe's `pop`.
    """

    __slots__ = ("_default",)
    word = "peek"

    def __init__(self, name: str, default: Any = _ABSENT) -> None:
        self._used = False
        self._name = name
        self._default = default

    def _do(self, layer: Layer, skips: DeclaredSkips) -> Any:
        if self._name not in skips.peek:
            raise self.undeclared(layer, skips)
        key = layer.isolated.get(self._name), self._name
        slot = layer.peeked.get(key) or layer.find(key)
        return _default(self, layer, self._default) if slot is None else _given(self, layer, skips, slot)


def _call_around(frame: CallFrame | None) -> Layer | None:
    """The layer of the skippable call that runs a method of its own module, which has a frame too; None without."""
    owner = None if frame is None else frame.owner
    while frame is not None and frame.owner is owner:
        layer: Any = frame.layer
        if layer is not None and layer.skips is not None:
            return layer
        frame = nearest_live(frame.parent)
    return None


def _outside(command: Command, frame: CallFrame | None) -> SkipError:
    """The error of a command outside a call of a module that declares skips."""
    where = "no module call is running" if frame is None else f"the running call is {frame.path or frame.name!r}"
    return SkipError(
        f"{command!r} outside a skippable call: {where}. Commands belong into `call` of a class decorated with "
        f"@skippable({command.word}=[{command._name!r}])."
    )


def _given(command: Command, layer: Layer, skips: DeclaredSkips, slot: Slot) -> Any:
    """The value of a slot, as the consumer gets it."""
    schema = skips.schemas.get(command._name)
    if layer.frame.symbolic:
        return as_popped(command, layer, slot, schema, skips.models.get(command._name))
    if schema is not None:
        hold_to_declared(command, layer, slot, schema)
    return slot.value


def _default(command: Command, layer: Layer, default: Any) -> Any:
    """The default of an optional name that is absent."""
    if default is _ABSENT:
        raise command.fault(layer, "has not been stashed", f"Give a default: {command.word}({command._name!r}, None).")
    return default

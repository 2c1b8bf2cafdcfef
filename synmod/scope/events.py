"""Event records: what hooks receive. Frozen; they refer to the frozen values of the run and copy nothing.

Loaded by the first event that somebody listens to: eight dataclasses are a tenth of the time of `import synmod`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from synmod.scope.usage_record import Usage


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
    """A module call begins: positional arguments and keywords as `call` gets them.

    `method` names another entry point than `call` (`Module.with_name_scope`), whose name the event has too.
    """

    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    method: str | None = None


@dataclass(frozen=True, slots=True)
class CallEnd(Event):
    """A module call ended: with outputs, or with its exception (a cancellation, a closing included).

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
    """A model call begins, inside the module call that the place names.

    `secrets` gives the texts that the model hides, for those who write its requests and replies down.
    """

    request: Any
    model: str
    secrets: Callable[[], frozenset[str]] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class LMEnd(Event):
    """A model call ended: with its reply or its exception, after `attempts` requests; `secrets` as at its begin."""

    request: Any
    model: str
    reply: Any
    exception: BaseException | None
    attempts: int
    usage: Usage
    elapsed_s: float
    cached: bool
    secrets: Callable[[], frozenset[str]] | None = field(default=None, repr=False, compare=False)


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

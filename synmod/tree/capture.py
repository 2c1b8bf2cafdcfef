"""`capture`: what modules sow in a block, as States: all together, and by entry call."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self, cast

from synmod.data import trusted_schema
from synmod.errors import ArgumentError
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.names import KeyPath
from synmod.scope import Block, ambient

from .states import State
from .variable import Variable, VariableState, checked_metadata, snapshot

_LISTS = trusted_schema({"type": "array"})


class Sown(NamedTuple):
    """One value that a module has sown.

    Attributes:
        started: When its entry call began.
        run: The id of that call.
        call: The number of the module call in that run.
        path: The path of the module and the name.
        type: The Variable type.
        value: Frozen JSON.
    """

    started: float
    run: str
    call: int
    path: KeyPath
    type: type[Variable]
    value: Json


class capture(Block):  # noqa: N801  # read as a word: `with sm.capture(Intermediate) as cap:`
    """Collect what modules sow in a block, in this task and the tasks started inside.

    Args:
        *types: Variable types to collect, subclasses included; without one, all.

    Attributes:
        state: A State of lists by module path and name, in the order in which the module calls began. A leaf has the
            type of its first value.
        by_call: The same for each entry call alone, by its id, in the order in which they began.

    Raises:
        ArgumentError: Something is not a Variable type.

    Example:
        >>> with capture(Variable) as cap:
        ...     pass
        >>> cap.state.to_json(), dict(cap.by_call)
        ({}, {})

    Source: Flax NNX `sow` and `pop`; differs: by call, never in a module, in the order of the calls.
    """

    field = "captures"

    def __init__(self, *types: type[Variable]) -> None:
        for each in types:
            if not isinstance(each, type) or not issubclass(each, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(f"capture takes Variable types, such as sm.Intermediate, not {each!r:.200}.")
        self._types = types or (Variable,)
        super().__init__()
        self._lock = threading.Lock()
        self._sown: list[Sown] = []

    def __enter__(self) -> Self:
        self.enter(self)
        return self

    def takes(self, kind: Any) -> bool:
        """Whether values sown as this type are collected."""
        return isinstance(kind, type) and issubclass(kind, self._types)

    def add(self, sown: Sown) -> None:
        """Collect a value."""
        with self._lock:
            self._sown.append(sown)

    @property
    def state(self) -> State:
        """All values, in one State."""
        return _folded(self._in_order())

    @property
    def by_call(self) -> Mapping[str, State]:
        """A State for each entry call in which something was sown, by its id."""
        runs: dict[str, list[Sown]] = {}
        for sown in self._in_order():
            runs.setdefault(sown.run, []).append(sown)
        return MappingProxyType({run: _folded(sown) for run, sown in runs.items()})

    def _in_order(self) -> list[Sown]:
        with self._lock:
            return sorted(self._sown, key=lambda sown: sown[:3])

    def __repr__(self) -> str:
        return f"capture({', '.join(each.__name__ for each in self._types)})"


def open_captures(kind: Any) -> list[capture]:
    """Return the open captures of the running code that take a type."""
    around = ambient()
    opened = () if around is None else cast("tuple[capture, ...]", around.captures)
    return [each for each in opened if each.takes(kind)]


def _folded(values: Iterable[Sown]) -> State:
    """A State of the values by path, in order."""
    by_path: dict[KeyPath, list[Sown]] = {}
    for sown in values:
        by_path.setdefault(sown.path, []).append(sown)
    return State.of_leaves({path: _leaf(sown) for path, sown in by_path.items()})


def _leaf(sown: list[Sown]) -> VariableState:
    kind = sown[0].type
    value = frozen([each.value for each in sown])
    return snapshot(kind, value, _LISTS, checked_metadata({"trainable": kind.trainable_default}))

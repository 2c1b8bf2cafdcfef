"""capture: what the modules of the calls in a block have sown, as States, by call and all together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, cast

from synmod.data import trusted_schema
from synmod.errors import ArgumentError, DataError
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.names import KeyPath, path_str
from synmod.scope import Entered, ambient, enter, leave, take_entry
from synmod.tree.states.state import State
from synmod.tree.variable import about
from synmod.tree.variable.variable import Variable
from synmod.tree.variable.variable_state import VariableState, snapshot

ANYTHING: Final = trusted_schema({})
LISTS: Final = trusted_schema({"type": "array"})


class Sown(NamedTuple):
    """One value that a module has noted.

    Attributes:
        run: When its entry call began, and its id.
        call: The number of the module call in that run.
        path: That of the module, and the name.
        kind: The Variable type.
        value: Frozen JSON.
        reduce: Gives a value from that so far and this; None appends.
        init: Gives the value before the first; None is an empty list.
    """

    run: tuple[float, str]
    call: int
    path: KeyPath
    kind: type[Variable]
    value: Json
    reduce: Callable[[Any, Any], Any] | None
    init: Callable[[], Any] | None

    @property
    def place(self) -> tuple[tuple[float, str], int]:
        """What values are ordered by: the start of the call; of one call they come as they were sown."""
        return self.run, self.call


class capture:  # noqa: N801  # read as a word: `with sm.capture(Intermediate) as cap:`
    """Collect what modules sow in a block, in this task and the tasks started inside.

    Args:
        *types: Variable types to collect, subclasses included; all without one.

    Attributes:
        state: All values by module path and name: lists, in the order in which the module calls began. A leaf is of the
            type of its first value.
        by_call: The same for each entry call alone, by its id, in the order in which they began.

    Raises:
        ArgumentError: Something is no Variable type.

    Example:
        >>> with capture(Variable) as cap:
        ...     pass
        >>> cap.state.to_json(), dict(cap.by_call)
        ({}, {})

    Source: Flax NNX `sow` and `pop`; differs: by call, in no module, in the order of the calls.
    """

    __slots__ = ("_entries", "_lock", "_sown", "_types")

    def __init__(self, *types: type[Variable]) -> None:
        for each in types:
            if not isinstance(each, type) or not issubclass(each, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(f"capture takes Variable types, such as sm.Intermediate, not {each!r:.200}.")
        self._types = types or (Variable,)
        self._entries: list[Entered] = []
        self._lock = threading.Lock()
        self._sown: list[Sown] = []

    def __enter__(self) -> Self:
        self._entries.append(enter("captures", self))
        return self

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))

    def takes(self, kind: type[Variable]) -> bool:
        """Tell whether it collects what is sown as this type."""
        return isinstance(kind, type) and issubclass(kind, self._types)  # pyright: ignore[reportUnnecessaryIsInstance]

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
        """A State for each entry call that has sown, by its id."""
        runs: dict[str, list[Sown]] = {}
        for sown in self._in_order():
            runs.setdefault(sown.run[1], []).append(sown)
        return MappingProxyType({run: _folded(sown) for run, sown in runs.items()})

    def _in_order(self) -> list[Sown]:
        with self._lock:
            return sorted(self._sown, key=lambda sown: sown.place)

    def __repr__(self) -> str:
        return f"capture({', '.join(each.__name__ for each in self._types)})"


def open_captures(kind: type[Variable]) -> list[capture]:
    """Give the captures around this place that take a type."""
    around = ambient()
    opened = () if around is None else cast("tuple[capture, ...]", around.captures)
    return [each for each in opened if each.takes(kind)]


def _folded(values: Iterable[Sown]) -> State:
    """Put the values of each path together, in order."""
    by_path: dict[KeyPath, list[Sown]] = {}
    for sown in values:
        by_path.setdefault(sown.path, []).append(sown)
    return State._of({path: _leaf(path, sown) for path, sown in by_path.items()})


def _leaf(path: KeyPath, sown: list[Sown]) -> VariableState:
    """Put the values of one path together."""
    kind, schema = sown[0].kind, LISTS
    value: Any = [each.value for each in sown]
    if any(each.reduce is not None or each.init is not None for each in sown):
        schema = ANYTHING
        value = [] if sown[0].init is None else sown[0].init()
        for each in sown:
            value = appended(value, each.value) if each.reduce is None else each.reduce(value, each.value)
    try:
        return snapshot(kind, frozen(value), schema, about.about(kind.trainable_default, None, None, {}))
    except DataError as error:
        raise DataError(f"capture: {path_str(path)!r}: {error}") from None


def appended(old: Any, value: Json) -> Json:
    """Add a value to the list so far: what is done where nobody says how to reduce."""
    return [*old, value]

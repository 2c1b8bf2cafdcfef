"""Sown values: what modules record in passing, and the block that collects it (`capture`)."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self, cast

from synmod import data, errors, scope
from synmod.leaves import Json, KeyPath, frozen

from .states import State
from .variable import Variable, VariableState, snapshot, validate_metadata

_LISTS: Final = data.intern_schema({"type": "array"})


class Sown(NamedTuple):
    """One value that a module has sown.

    Attributes:
        started: When the entry call began.
        run: The id of the entry call.
        call: The number of the module call in that run.
        path: The path of the module, then the name.
        type: The Variable type.
        value: Frozen JSON.
    """

    started: float
    run: str
    call: int
    path: KeyPath
    type: type[Variable]
    value: Json


class capture(scope.Block):  # noqa: N801  # read as a word: `with sm.capture(Intermediate) as cap:`
    """Collect the values that modules sow in a block, in this task and the tasks started inside.

    Args:
        *types: Variable types to collect, subclasses included; all if none is given.

    Attributes:
        state: A State of lists by module path and name, in the order in which the module calls began. A leaf has the
            type of its first value.
        by_call: A State like this for each entry call, by its id, in the order in which the entry calls began.

    Raises:
        ArgumentError: An argument is not a Variable type.

    Example:
        >>> with capture(Variable) as cap:
        ...     pass
        >>> cap.state.to_json(), dict(cap.by_call)
        ({}, {})

    Source: Flax NNX `sow` and `pop`; differs: grouped by call, never stored in a module, in the order of the calls.
    """

    def __init__(self, *types: type[Variable]) -> None:
        for cls in types:
            if not isinstance(cls, type) or not issubclass(cls, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise errors.ArgumentError(f"capture takes Variable types, such as sm.Intermediate, not {cls!r:.200}.")
        self._types = types or (Variable,)
        super().__init__()
        self._lock = threading.Lock()
        self._sown: list[Sown] = []

    def __enter__(self) -> Self:
        self.enter(captures=self)
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
        return _group_by_path(self._in_order())

    @property
    def by_call(self) -> Mapping[str, State]:
        """A State for each entry call in which a value was sown, by its id."""
        runs: dict[str, list[Sown]] = {}
        for sown in self._in_order():
            runs.setdefault(sown.run, []).append(sown)
        return {run: _group_by_path(sown) for run, sown in runs.items()}

    def _in_order(self) -> list[Sown]:
        with self._lock:
            return sorted(self._sown, key=lambda sown: sown[:3])

    def __repr__(self) -> str:
        return f"capture({', '.join(cls.__name__ for cls in self._types)})"


def open_captures(kind: Any) -> list[capture]:
    """Return the open captures around the running code that collect a type."""
    record = scope.ambient()
    opened = () if record is None else cast("tuple[capture, ...]", record.captures)
    return [block for block in opened if block.takes(kind)]


def _group_by_path(values: Iterable[Sown]) -> State:
    """Return a State of the values by path, in order."""
    by_path: dict[KeyPath, list[Sown]] = {}
    for sown in values:
        by_path.setdefault(sown.path, []).append(sown)
    return State.of_leaves({path: _leaf(sown) for path, sown in by_path.items()})


def _leaf(sown: list[Sown]) -> VariableState:
    kind = sown[0].type
    value = frozen([entry.value for entry in sown])
    return snapshot(kind, value, _LISTS, validate_metadata({"trainable": kind.trainable_default}))

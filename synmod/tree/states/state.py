"""State: the values of a program by path. Frozen, ordered, plain data to diff, patch, mix and fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

from synmod.leaves.names import KeyPath, path_str
from synmod.tree.filtering.filters import FilterLike, to_filter
from synmod.tree.graphs.encoding import canonical_json, class_text
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.partition import partition, single_or_all
from synmod.tree.states.path_map import PathMap, check_apart
from synmod.tree.states.state_diff import Change, difference
from synmod.tree.states.state_json import checked_leaves, read_state, replaced, with_value
from synmod.tree.variable.variable_state import VariableState

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.tree.graphs.graphdef import GraphDef
    from synmod.tree.states.layout import StateLike


class State(PathMap[VariableState]):
    """A frozen, ordered mapping from path to `VariableState`.

    Iterates over leaf paths in definition order. `state[path]` takes a tuple of steps, a path text or one key, and
    gives a leaf or the State below; `state.encoder` works for identifiers.

    Example:
        >>> from synmod.tree import Param, state
        >>> state({"a": Param("x")}).to_json()
        {'a': 'x'}

    Source: Flax NNX `State`; differs: frozen, values always valid.
    """

    __slots__ = ("_fingerprint",)

    def __init__(self, leaves: Mapping[KeyPath | str, VariableState] | None = None) -> None:
        object.__setattr__(self, "_leaves", checked_leaves(leaves or {}))
        object.__setattr__(self, "_by_text", None)

    @classmethod
    def from_flat(cls, leaves: Mapping[KeyPath | str, VariableState]) -> State:
        """Make a State of leaves by path; the reverse of `flat`.

        Raises:
            StateError: A path is none, or is below another leaf; a leaf is no VariableState.
        """
        return cls(leaves)

    @classmethod
    def from_json(cls, graphdef: GraphDef[Any], json: StateLike) -> State:
        """Read what `to_json` gave, in either form; types and key types come from the graph.

        Raises:
            StateError: A path is not in the graph.
            StateSchemaError: A value misses its schema.
        """
        return cls._of(read_state(graphdef, json))

    def to_json(self) -> dict[str, Json]:
        """Return `{path text: value}`; the values are frozen."""
        return {path_str(path): leaf.value for path, leaf in self._leaves.items()}

    @overload
    def filter(self, only: FilterLike = ..., /) -> State: ...
    @overload
    def filter(self, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[State, ...]: ...
    @overload
    def filter(self, *filters: FilterLike) -> State | tuple[State, ...]: ...
    def filter(self, *filters: FilterLike) -> State | tuple[State, ...]:
        """Give the leaves that each filter takes first; the rest is dropped.

        Returns:
            A State for one filter, a tuple of them for more.
        """
        return single_or_all(self._parted(filters, exhaustive=False))

    @overload
    def split(self, only: FilterLike = ..., /) -> State: ...
    @overload
    def split(self, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[State, ...]: ...
    @overload
    def split(self, *filters: FilterLike) -> State | tuple[State, ...]: ...
    def split(self, *filters: FilterLike) -> State | tuple[State, ...]:
        """Give every leaf to the first filter that takes it.

        Returns:
            A State for one filter, a tuple of them for more.

        Raises:
            StateError: A leaf is left over (contains 'Non-exhaustive'), or `...` is not the last.
        """
        return single_or_all(self._parted(filters, exhaustive=True))

    def map(self, fn: Callable[[KeyPath, VariableState], Json]) -> State:
        """Replace every value by `fn(path, leaf)`.

        Raises:
            StateSchemaError: A result misses its schema; lists every path.
        """
        faults: list[Fault] = []
        leaves = {path: with_value(path, leaf, fn(path, leaf), faults) for path, leaf in self._leaves.items()}
        raise_faults("map", faults)
        return State._of(leaves)

    def replace(self, json: StateLike) -> State:
        """Set given leaves, nested by key or by path text.

        Raises:
            StateError: A path is not in this State.
            StateSchemaError: A value misses its schema.
        """
        return State._of(replaced(self._leaves, json))

    def diff(self, other: State) -> dict[str, Change]:
        """Return `{path text: (old, new)}` of what differs; None where the path is absent."""
        return difference(self._leaves, other._leaves)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of paths, types, values, schemas and metadata: equal for equal States, in every process."""
        known: str | None = getattr(self, "_fingerprint", None)
        if known is None:
            rows = [
                [list(path), class_text(leaf.type), leaf.value, leaf.schema, leaf.metadata]
                for path, leaf in self._leaves.items()
            ]
            texts = sorted(map(canonical_json, rows))
            known = hashlib.sha256("\n".join(texts).encode()).hexdigest()
            object.__setattr__(self, "_fingerprint", known)
        return known

    def _parted(self, filters: tuple[FilterLike, ...], *, exhaustive: bool) -> list[State]:
        leaves = [(path, leaf, False) for path, leaf in self._leaves.items()]
        parts = partition(leaves, [to_filter(each) for each in filters], exhaustive=exhaustive)
        return [State._of(dict(part)) for part in parts]

    def __or__(self, other: State) -> State:
        if not isinstance(other, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            return NotImplemented
        leaves = {**self._leaves, **other._leaves}
        if len(leaves) > max(len(self), len(other)):  # each has paths of its own
            check_apart(leaves)
        return State._of(leaves)

    def __sub__(self, other: State) -> State:
        if not isinstance(other, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            return NotImplemented
        return State._of({path: leaf for path, leaf in self._leaves.items() if path not in other._leaves})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self is other or dict(self._leaves) == dict(other._leaves)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> State:
        return self

    def __deepcopy__(self, memo: object) -> State:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return State.from_flat, (dict(self._leaves),)

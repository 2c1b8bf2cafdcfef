"""`using`: candidates as overlays. Reads inside the block come from a State, writes stay in it, nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from synmod.errors import GraphError
from synmod.leaves.frozen import Json
from synmod.leaves.names import KeyPath

from .fitting import Fault, Finder, StateLike, checked_leaf, fit, leaves_of, raise_faults
from .graphdef import record
from .looking import PathTable, path_table
from .states import State
from .variable import MISSING, Layer, Variable, VariableState, layered, snapshot


class using:  # noqa: N801  # read as a word: `with sm.using(program, state):`
    """Let every read of a program's Variables come from a State, in this task and the tasks started inside.

    Nothing is copied or rebuilt, and live values do not change: writes in the block go to the overlay, where sibling
    tasks of the same block see them. Blocks nest: reads fall through to the outer overlay, then to the live value.
    Variables outside the program, and those made inside the block, are live.

    Args:
        node: A program.
        state: A State or values by path text, of all or some Variables; alias paths are accepted. None overlays no
            values: writes stay in the block all the same.

    Returns:
        (on entry) The overlay: `overlay.state` holds the given values with the writes applied, `overlay.changes` what
        was written; both also after the block.

    Raises:
        StateError: (on entry) A path is unknown, or leads to no Variable.
        StateSchemaError: (on entry) Values do not satisfy their schemas.
        ArgumentError: (on entry) `node` holds no graph, or `state` is not a State.
        GraphError: (on entry) It is entered already: each block needs one of its own.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x")}
        >>> with using(program, {"a": "candidate"}) as overlay:
        ...     program["a"].value
        'candidate'
        >>> program["a"].value
        'x'

    Source: Keras' stateless scope; differs: concurrent, validated.
    """

    __slots__ = ("_block", "_layer", "_node", "_state", "_variables")

    def __init__(self, node: Any, state: StateLike = None) -> None:
        self._node = node
        self._state = state
        self._layer: Layer | None = None
        self._variables: Mapping[KeyPath, Variable] = {}
        self._block: layered | None = None

    def __enter__(self) -> Self:
        if self._block is not None:
            raise GraphError("This overlay is entered already: make a using(...) for each block.")
        table = path_table(self._node, sealed=True)
        self._variables = variables = dict(table.variables)
        values = {} if self._state is None else _values(self._node, table, self._state)
        self._layer = Layer(frozenset(map(id, variables.values())), values)
        self._block = layered(self._layer)
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(kind, error, trace)

    @property
    def state(self) -> State:
        """The values given, with the writes applied, in definition order."""
        return self._snapshot(dict(self._entered().values))

    @property
    def changes(self) -> State:
        """Only what was written in the block, in definition order."""
        layer = self._entered()
        return self._snapshot({key: layer.values[key] for key in list(layer.written)})

    def _entered(self) -> Layer:
        if self._layer is None:
            raise GraphError("This overlay was never entered: with sm.using(program, state) as overlay: ...")
        return self._layer

    def _snapshot(self, values: dict[int, Json]) -> State:
        """The values by the paths of their Variables."""
        leaves: dict[KeyPath, VariableState] = {}
        for path, variable in self._variables.items():
            value = values.get(id(variable), MISSING)
            if value is not MISSING:
                leaves[path] = snapshot(type(variable), value, variable.schema, variable.full_metadata)
        return State.of_leaves(leaves)

    def __repr__(self) -> str:
        return f"using({type(self._node).__name__}, {self._state!r:.80})"


def _values(node: Any, table: PathTable, state: StateLike) -> dict[int, Json]:
    """The value of each Variable that a State names, by identity; the graph is only looked at for other paths."""
    values: dict[int, Json] = {}
    faults: list[Fault] = []
    for path, given in leaves_of(state, "using"):
        variable = table.variables.get(table.steps_of(path) if isinstance(path, str) else path)
        if variable is None:
            return _fitted(node, state)
        leaf = checked_leaf((), given, variable.schema, 0, faults)
        if leaf is None:
            return _fitted(node, state)
        values[id(variable)] = leaf.value
    return values


def _fitted(node: Any, state: StateLike) -> dict[int, Json]:
    """The same by way of the graph, with aliases and every fault named."""
    live = record(node)
    fitted = fit(Finder(live.graphdef), [state], lambda index: live.objects[index].schema, "using")
    raise_faults("using", fitted.all_faults("Trying to overlay a non-Variable:"))
    return {id(live.objects[index]): leaf.value for index, leaf in fitted.leaves.items()}

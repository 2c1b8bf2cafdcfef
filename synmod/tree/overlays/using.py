"""using: candidates as overlays. Reads inside the block come from a State, writes stay in it, nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synmod.data import is_valid
from synmod.errors import DataError, GraphError
from synmod.leaves.frozen import frozen
from synmod.leaves.names import KeyPath
from synmod.tree.graphs.record import record
from synmod.tree.overlays.leaf_table import LeafTable, leaf_table
from synmod.tree.states.faults import raise_faults
from synmod.tree.states.gather import gather
from synmod.tree.states.layout import Layout
from synmod.tree.states.state import State
from synmod.tree.variable.overlay import MISSING, Layer, layered
from synmod.tree.variable.variable_state import VariableState, snapshot

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.tree.states.layout import StateLike


class using:  # noqa: N801  # read as a word: `with sm.using(program, state):`
    """Let every read of a program's Variables come from a State, in this task and the tasks started inside.

    Nothing is copied or rebuilt, and live values do not change: writes in the block go to the overlay, where sibling
    tasks of the same block see them. Blocks nest: reads fall through to the outer overlay, then to the live value.
    Variables outside the program, and those made inside the block, are live.

    Args:
        node: A program.
        state: A State or its JSON, of all or some Variables; alias paths are accepted. None gives no values: writes
            stay in the block all the same.

    Returns:
        (on entry) The overlay: `overlay.state` holds the given values with the writes applied, `overlay.changes` what
        was written; both also after the block.

    Raises:
        StateError: (on entry) A path is unknown, or leads to no Variable.
        StateSchemaError: (on entry) Values miss their schemas.
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

    __slots__ = ("_block", "_layer", "_node", "_state", "_table")

    def __init__(self, node: Any, state: StateLike = None) -> None:
        self._node = node
        self._state = state
        self._layer: Layer | None = None
        self._table: LeafTable
        self._block: layered | None = None

    def __enter__(self) -> Self:
        if self._block is not None:
            raise GraphError("This overlay is entered already: make a using(...) for each block.")
        table = leaf_table(self._node)
        values = {} if self._state is None else _values(self._node, table, self._state)
        layer = Layer(table.members, values)
        self._table = table
        self._block = block = layered(layer)
        self._layer = layer
        block.__enter__()
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
        """Name the values by the paths of their Variables."""
        leaves: dict[KeyPath, VariableState] = {}
        for path, variable in self._table.variables.items():
            value = values.get(id(variable), MISSING)
            if value is not MISSING:
                leaves[path] = snapshot(type(variable), value, variable._schema, variable._about)
        return State._of(leaves)

    def __repr__(self) -> str:
        return f"using({type(self._node).__name__}, {self._state!r:.80})"


def _values(node: Any, table: LeafTable, state: StateLike) -> dict[int, Json]:
    """Find the value of each Variable that a State names; where something does not fit at once, look closely."""
    if isinstance(state, State):
        values = _values_of_state(table, state)
    else:
        values = _values_of_json(table, state) if isinstance(state, Mapping) else None  # pyright: ignore[reportUnknownArgumentType]
    return _checked_values(node, table, state) if values is None else values


def _values_of_state(table: LeafTable, state: State) -> dict[int, Json] | None:
    """Take over the leaves of a State of canonical paths. Hot: a whole one, in order, costs no lookups."""
    leaves, rows = state._leaves, table.rows
    if len(leaves) == len(rows) and list(leaves) == list(rows):
        found = list(rows.values())
    else:
        found = [rows[path] for path in leaves if path in rows]
        if len(found) < len(leaves):
            return None
    values: dict[int, Json] = {}
    for leaf, (key, variable) in zip(leaves.values(), found, strict=True):
        if variable._schema is not leaf.schema:
            return None
        values[key] = leaf.value
    return values


def _values_of_json(table: LeafTable, json: Mapping[Any, Any]) -> dict[int, Json] | None:
    """Check values by canonical path text."""
    values: dict[int, Json] = {}
    indices, variables = table.texts, table.by_index
    if "" in indices:  # a bare Variable: what is given may be its value
        return None
    for text, given in json.items():
        index = indices.get(text)
        if index is None:
            return None
        variable = variables[index]
        try:
            value = frozen(given)
        except DataError:
            return None
        if not is_valid(variable._schema, value):
            return None
        values[id(variable)] = value
    return values


def _checked_values(node: Any, table: LeafTable, state: StateLike) -> dict[int, Json]:
    """Read raw JSON, find aliases, validate."""

    def graph() -> Any:
        graphdef = record(node).graphdef  # the same walk as that of the table, so the same numbers
        return graphdef.root, graphdef.definitions

    texts = None if isinstance(state, State) else table.texts
    layout = Layout(graph, table.indices, texts)
    variables = table.by_index
    found = gather(layout, [state], lambda index: variables[index]._schema, "using")
    raise_faults("using", [*found.faults, *found.misfit_faults("Trying to overlay a non-Variable:")])
    return {id(variables[index]): leaf.value for index, leaf in found.leaves.items()}

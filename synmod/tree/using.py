"""using: candidates as overlays. Reads inside the block come from a State, writes stay in it, nothing is copied."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synmod.leaves.paths import KeyPath
from synmod.tree.faults import raise_faults
from synmod.tree.gather import gather, misfit_fault, unknown_fault
from synmod.tree.layout import ABSENT, Layout
from synmod.tree.leaf_table import LeafTable, leaf_table
from synmod.tree.overlay import MISSING, Layer, layered
from synmod.tree.record import record
from synmod.tree.state import State
from synmod.tree.variable_state import VariableState, snapshot

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.tree.layout import StateLike


class using:  # noqa: N801  # read as a word: `with sm.using(program, state):`
    """Let every read of a program's Variables come from a State, in this task and the tasks started inside.

    Nothing is copied or rebuilt, and live values do not change: writes in the block go to the overlay, where sibling
    tasks of the same block see them. Blocks nest: reads fall through to the outer overlay, then to the live value.
    Variables outside the program are live.

    Args:
        node: A program.
        state: A State or its JSON, of all or some Variables; alias paths are accepted.

    Returns:
        (on entry) The overlay: `overlay.state` holds the given values with the writes applied, `overlay.changes` what
        was written; both also after the block.

    Raises:
        StateError: (on entry) A path is unknown, or leads to no Variable.
        StateSchemaError: (on entry) Values miss their schemas.
        ArgumentError: (on entry) `node` holds no graph, or `state` is none.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x")}
        >>> with using(program, {"a": "candidate"}) as overlay:
        ...     program["a"].value
        'candidate'
        >>> program["a"].value
        'x'

    Source: Sonnet's custom getters, Keras' stateless scope; differs: one for all, concurrent, validated.
    """

    __slots__ = ("_block", "_layer", "_node", "_state", "_table")

    _layer: Layer
    _table: LeafTable
    _block: AbstractContextManager[None]

    def __init__(self, node: Any, state: StateLike) -> None:
        self._node = node
        self._state = state

    def __enter__(self) -> Self:
        self._table = table = leaf_table(self._node)
        values = _values(self._node, table, self._state)
        self._layer = Layer(table.members, values)
        self._block = layered(self._layer)
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._block.__exit__(kind, error, trace)

    @property
    def state(self) -> State:
        """The values given, with the writes applied, in definition order."""
        return self._snapshot(dict(self._layer.values))

    @property
    def changes(self) -> State:
        """Only what was written in the block, in definition order."""
        values = self._layer.values
        return self._snapshot({key: values[key] for key in list(self._layer.written)})

    def _snapshot(self, values: dict[int, Json]) -> State:
        leaves: dict[KeyPath, VariableState] = {}
        for path, variable in self._table.variables.items():
            value = values.get(id(variable), MISSING)
            if value is not MISSING:
                leaves[path] = snapshot(type(variable), value, variable._schema, variable._about)
        return State._of(leaves)

    def __repr__(self) -> str:
        return f"using({type(self._node).__name__}, {self._state!r:.80})"


def _values(node: Any, table: LeafTable, state: StateLike) -> dict[int, Json]:
    """Find the value of each Variable that a State names. Hot: a State of canonical paths costs a lookup a leaf."""
    values: dict[int, Json] = {}
    if isinstance(state, State):
        variables = table.variables
        for path, leaf in state.items():
            variable = variables.get(path)
            if variable is None or variable._schema is not leaf.schema:
                return _checked_values(node, table, state)
            values[id(variable)] = leaf.value
        return values
    return _checked_values(node, table, state)


def _checked_values(node: Any, table: LeafTable, state: StateLike) -> dict[int, Json]:
    """Read raw JSON, find aliases, validate."""

    def graph() -> Any:
        graphdef = record(node).graphdef  # the same walk as that of the table, so the same numbers
        return graphdef.root, graphdef.definitions

    texts = None if isinstance(state, State) else table.texts
    layout = Layout(graph, table.indices, texts)
    variables = table.by_index
    found = gather(layout, [state], lambda index: variables[index]._schema, "using")
    unknown = [misfit for misfit, _ in found.misfits if misfit.kind in ABSENT]
    others = [misfit for misfit, _ in found.misfits if misfit.kind not in ABSENT]
    faults = [misfit_fault(misfit, "Trying to overlay a non-Variable:") for misfit in others]
    raise_faults("using", [*found.faults, *faults, *unknown_fault(unknown)])
    return {id(variables[index]): leaf.value for index, leaf in found.leaves.items()}

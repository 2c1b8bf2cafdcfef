"""Overlays: read and write the Variables of a program in a block, while the live values stay as they are (`using`)."""

from collections.abc import Mapping
from typing import Any, Self

from synmod import errors
from synmod.leaves import Json, KeyPath, checks_keywords

from .editing import fit_graph, values_by_path
from .paths import path_table
from .states import State, StateLike
from .variable import Layer, Variable, snapshot


class using:  # noqa: N801  # read as a word: `with sm.using(program, state):`
    """Read a program's Variables from a State, in this task and the tasks started inside.

    Nothing is copied or rebuilt, and live values do not change: writes in the block go to the overlay, where sibling
    tasks of the same block see them. Blocks nest: reads fall through to the outer overlay, then to the live value.
    Variables outside the program, and those made inside the block, are live.

    `as overlay` is the overlay: `overlay.state` holds the given values with the writes applied, `overlay.changes` only
    the writes; both can be read after the block too.

    Args:
        node: A program.
        state: A State or values by path text, of all or some Variables; alias paths are accepted. With None no value
            is overlaid, but writes still stay in the block.

    Raises:
        StateError: (on entry) A path is unknown, or does not lead to a Variable.
        StateSchemaError: (on entry) Values do not satisfy their schemas.
        ArgumentError: (on entry) `node` cannot be the root of a graph, or `state` is not a State.
        GraphError: (on entry) The overlay is already entered: each block needs its own.

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

    __slots__ = ("_is_open", "_layer", "_node", "_state", "_variables")

    @checks_keywords
    def __init__(self, node: Any, state: StateLike = None) -> None:
        self._node = node
        self._state = state
        self._layer: Layer | None = None
        self._is_open = False
        self._variables: Mapping[KeyPath, Variable] = {}

    def __enter__(self) -> Self:
        if self._is_open:
            raise errors.GraphError("This overlay is already entered: make a using(...) for each block.")
        table = path_table(self._node, sealed=True)
        self._variables, members = table.freeze_variables()
        states = () if self._state is None else (self._state,)
        values = values_by_path(table, states, "using")
        if values is None:
            leaves = fit_graph(self._node, states, "using", "Trying to overlay a non-Variable:")
            values = {key: leaf.value for key, leaf in leaves.items()}
        self._layer = Layer(members, values)
        self._layer.__enter__()
        self._is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._is_open = False
            self._require_layer().__exit__()

    @property
    def state(self) -> State:
        """The values given, with the writes applied, in definition order."""
        return self._snapshot(dict(self._require_layer().values))

    @property
    def changes(self) -> State:
        """The values written in the block, in definition order."""
        layer = self._require_layer()
        return self._snapshot({key: layer.values[key] for key in list(layer.written)})

    def _require_layer(self) -> Layer:
        if self._layer is None:
            raise errors.GraphError("This overlay was never entered: with sm.using(program, state) as overlay: ...")
        return self._layer

    def _snapshot(self, values: dict[int, Json]) -> State:
        """Return a State of the values, by the paths of their Variables."""
        return State.of_leaves(
            {
                path: snapshot(type(variable), values[id(variable)], variable.schema, variable.full_metadata)
                for path, variable in self._variables.items()
                if id(variable) in values
            }
        )

    def __repr__(self) -> str:
        return f"using({type(self._node).__name__}, {self._state!r:.80})"

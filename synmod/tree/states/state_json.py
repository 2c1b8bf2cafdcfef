"""States as JSON, and JSON as States: by path text, nested by key, read against a graph or another State."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import StateError
from synmod.leaves.frozen import Json
from synmod.leaves.names import KeyPath, parse_path, path_str
from synmod.tree.graphs.defs import ContainerDef, VariableRef
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.gather import checked_leaf, gather, leaves_by_path
from synmod.tree.states.layout import Layout
from synmod.tree.states.path_map import check_apart
from synmod.tree.variable.variable_state import VariableState, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.tree.graphs.defs import Term
    from synmod.tree.graphs.graphdef import GraphDef
    from synmod.tree.states.layout import StateLike

_STATIC = "Got state for static field"


def read_state(graphdef: GraphDef[Any], json: StateLike) -> dict[KeyPath, VariableState]:
    """Read JSON against a graph, in definition order.

    Raises:
        StateError: A path is not in the graph.
        StateSchemaError: A value misses its schema.
    """
    definitions: Any = graphdef.definitions
    layout = Layout(lambda: (graphdef.root, definitions), graphdef.leaf_paths)
    found = gather(layout, [json], lambda index: definitions[index].schema, "State.from_json")
    raise_faults("State.from_json", [*found.faults, *found.misfit_faults(_STATIC)])
    leaves: dict[KeyPath, VariableState] = {}
    for path, leaf in leaves_by_path(graphdef.leaf_paths, found).items():
        definition = definitions[graphdef.leaf_paths[path]]
        leaves[path] = snapshot(definition.type, leaf.value, definition.schema, definition.metadata)
    return leaves


def replaced(leaves: Mapping[KeyPath, VariableState], json: StateLike) -> dict[KeyPath, VariableState]:
    """Set given leaves of a State.

    Raises:
        StateError: A path is not in it.
        StateSchemaError: A value misses its schema.
    """
    paths = list(leaves)
    layout = Layout(lambda: (_term_of(paths), {}), {path: index for index, path in enumerate(paths)})
    found = gather(layout, [json], lambda index: leaves[paths[index]].schema, "replace")
    raise_faults("replace", [*found.faults, *found.misfit_faults(_STATIC)])
    new = dict(leaves)
    for index, leaf in found.leaves.items():
        old = leaves[paths[index]]
        new[paths[index]] = snapshot(old.type, leaf.value, old.schema, old.metadata)
    return new


def with_value(path: KeyPath, leaf: VariableState, value: Json, faults: list[Fault]) -> VariableState:
    """Give a leaf with another value; a value that misses the schema is noted."""
    checked = checked_leaf(path, value, leaf.schema, len(faults), faults)
    return leaf if checked is None else snapshot(leaf.type, checked.value, leaf.schema, leaf.metadata)


def checked_leaves(leaves: Mapping[KeyPath | str, VariableState]) -> dict[KeyPath, VariableState]:
    """Check paths and leaves that somebody put together by hand.

    Raises:
        StateError: A path is none, is written like another, or lies below a leaf; a leaf is no VariableState.
    """
    checked: dict[KeyPath, VariableState] = {}
    for path, leaf in leaves.items():
        steps = parse_path(path) if isinstance(path, str) else path
        if not isinstance(steps, tuple) or not all(_is_step(step) for step in steps):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise StateError(f"{path!r:.200} is no path: write a tuple of steps, each a str (not empty) or an int.")
        if not isinstance(leaf, VariableState):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise StateError(f"At {path_str(steps)!r}: a leaf must be a VariableState, not {type(leaf).__name__}.")
        if steps in checked:
            raise StateError(f"{path_str(steps)!r} is given twice.")
        checked[steps] = leaf
    check_apart(checked)
    return checked


def _is_step(step: object) -> bool:
    return type(step) is int or (type(step) is str and step != "")


def _term_of(paths: Iterable[KeyPath]) -> Term:
    """Make containers that hold leaves at exactly these paths."""
    trie: dict[Any, Any] = {}
    nodes: list[tuple[dict[Any, Any], dict[Any, Any] | None, Any]] = [(trie, None, None)]
    for index, path in enumerate(paths):
        if not path:
            return VariableRef(object, index)
        here = trie
        for step in path[:-1]:
            if step not in here:
                here[step] = {}
                nodes.append((here[step], here, step))
            here = here[step]
        here[path[-1]] = VariableRef(object, index)
    term: Term = VariableRef(object, 0)
    for content, holder, step in reversed(nodes):  # a holder was made before what it holds
        term = ContainerDef(dict, tuple(content), tuple(content.values()))
        if holder is not None:
            holder[step] = term
    return term

"""How synmod sees a program: one walk over nodes, Variables and containers, and the pair of structure and state.

Floor: 5. Purpose: Variables, node types, the walk, split and merge, update, clone, overlays, filters. State: the
registries of node and tree types, one ContextVar for overlays, one counter of structural edits, tables of sealed
programs for as long as they live. Speed: at most 5 µs a visit; reading a Variable costs one ContextVar read. Must never
know: modules, calls, flows, language models, files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.leaves.paths import KeyPath, path_str
from synmod.tree.editing.mapping import map  # noqa: A004  (`sm.tree.map` is its name)
from synmod.tree.editing.pop import pop
from synmod.tree.editing.recursive_map import recursive_map
from synmod.tree.editing.set_attributes import set_attributes
from synmod.tree.editing.set_metadata import set_metadata
from synmod.tree.editing.update import update
from synmod.tree.filtering import filters
from synmod.tree.filtering.filters import (
    Everything,
    Not,
    Nothing,
    OfType,
    PathContains,
    PathIn,
    Trainable,
    WithTag,
)
from synmod.tree.functional.call import call
from synmod.tree.functional.candidate import Candidate
from synmod.tree.functional.clone import clone, deepcopy_node
from synmod.tree.functional.merge import merge, unflatten
from synmod.tree.functional.split import Variables, flatten, graphdef, split, state, variables
from synmod.tree.graphs.codec import CODEC
from synmod.tree.graphs.defs import ContainerDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.graphs.iterate import iter_children, iter_graph, iter_modules
from synmod.tree.graphs.sharing import find_duplicates, paths_of
from synmod.tree.overlays.capture import capture
from synmod.tree.overlays.using import using
from synmod.tree.states.crossover import crossover
from synmod.tree.states.state import State
from synmod.tree.states.state_diff import StateDiff
from synmod.tree.variable import initializers
from synmod.tree.variable.overlay import discarding_writes
from synmod.tree.variable.variable import Intermediate, Memory, OptState, Param, Stat, Variable
from synmod.tree.variable.variable_state import VariableState
from synmod.tree.walking import views
from synmod.tree.walking.edits import EDITS
from synmod.tree.walking.node_types import (
    NodeImpl,
    get_node_impl,
    is_token,
    own_impl,
    register_graph_node_type,
    register_impl,
)
from synmod.tree.walking.refmap import RefMap
from synmod.tree.walking.static import Static, static
from synmod.tree.walking.tree_types import register_tree_type
from synmod.tree.walking.walk import Visit, walk

All = filters.All
Any = filters.Any
Path = filters.Path
Schema = filters.Schema

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.tree.boundaries.index_spaces import merge_context, split_context
    from synmod.tree.boundaries.update_context import current_update_context, update_context

__all__ = [
    "CODEC",
    "EDITS",
    "All",
    "Any",
    "Candidate",
    "ContainerDef",
    "Everything",
    "GraphDef",
    "Intermediate",
    "KeyPath",
    "Memory",
    "NodeDef",
    "NodeImpl",
    "NodeRef",
    "Not",
    "Nothing",
    "OfType",
    "OptState",
    "Param",
    "Path",
    "PathContains",
    "PathIn",
    "RefMap",
    "Schema",
    "Stat",
    "State",
    "StateDiff",
    "Static",
    "StaticDef",
    "Trainable",
    "Variable",
    "VariableDef",
    "VariableRef",
    "VariableState",
    "Variables",
    "Visit",
    "WithTag",
    "call",
    "capture",
    "clone",
    "crossover",
    "current_update_context",
    "deepcopy_node",
    "discarding_writes",
    "filters",
    "find_duplicates",
    "flatten",
    "get_node_impl",
    "graphdef",
    "initializers",
    "is_token",
    "iter_children",
    "iter_graph",
    "iter_modules",
    "map",
    "merge",
    "merge_context",
    "own_impl",
    "path_str",
    "paths_of",
    "pop",
    "recursive_map",
    "register_graph_node_type",
    "register_impl",
    "register_tree_type",
    "set_attributes",
    "set_metadata",
    "split",
    "split_context",
    "state",
    "static",
    "unflatten",
    "update",
    "update_context",
    "using",
    "variables",
    "views",
    "walk",
]


def _contexts() -> tuple[ModuleType, ...]:
    """Load what takes programs across a boundary."""
    from synmod.tree.boundaries import index_spaces, update_context

    return index_spaces, update_context


__getattr__, __dir__ = opened_late(globals(), _contexts)

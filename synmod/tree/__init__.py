"""How synmod sees a program: one walk over nodes, Variables and containers, and the pair of structure and state.

Floor: 5. Purpose: Variables, node types, the walk, split and merge, update, clone, overlays, filters. State: the
registries of node and tree types, one ContextVar for overlays, one counter of structural edits. Speed: at most 5 µs a
visit; reading a Variable costs one ContextVar read. Must never know: modules, calls, flows, language models, files.
"""

from synmod.tree import initializers, views
from synmod.tree.edits import EDITS
from synmod.tree.node_types import NodeImpl, get_node_impl, own_impl, register_graph_node_type, register_impl
from synmod.tree.overlay import discarding_writes
from synmod.tree.refmap import RefMap
from synmod.tree.static import Static, static
from synmod.tree.tree_types import register_tree_type
from synmod.tree.variable import Intermediate, Memory, OptState, Param, Stat, Variable
from synmod.tree.variable_state import VariableState
from synmod.tree.walk import Visit, walk

__all__ = [
    "EDITS",
    "Intermediate",
    "Memory",
    "NodeImpl",
    "OptState",
    "Param",
    "RefMap",
    "Stat",
    "Static",
    "Variable",
    "VariableState",
    "Visit",
    "discarding_writes",
    "get_node_impl",
    "initializers",
    "own_impl",
    "register_graph_node_type",
    "register_impl",
    "register_tree_type",
    "static",
    "views",
    "walk",
]

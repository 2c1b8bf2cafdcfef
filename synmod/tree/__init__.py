"""How synmod sees a program: one walk over nodes, Variables and containers, and the pair of structure and state.

Floor: 5. Purpose: Variables, node types, the walk, split and merge, update, clone, overlays, filters. State: the
registries of node and tree types, one ContextVar for overlays, one counter of structural edits, tables of sealed
programs for as long as they live. Speed: at most 5 µs a visit; reading a Variable costs one ContextVar read. Must never
know: modules, calls, flows, language models, files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.leaves.names import KeyPath, path_str
from synmod.tree.capture import Sown, capture, open_captures
from synmod.tree.editing.pop import pop
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
from synmod.tree.functional.clone import clone, deepcopy_node
from synmod.tree.functional.merge import merge, unflatten
from synmod.tree.functional.split import Variables, flatten, graphdef, split, state, variables
from synmod.tree.graphs.codec import CODEC
from synmod.tree.graphs.defs import ContainerDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.graphs.iterate import iter_children, iter_graph, iter_modules
from synmod.tree.graphs.sharing import find_duplicates, paths_of
from synmod.tree.overlays.using import using
from synmod.tree.states.state import State
from synmod.tree.variable import initializers
from synmod.tree.variable.overlay import discarding_writes, keeping_writes
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
    "Sown",
    "Stat",
    "State",
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
    "keeping_writes",
    "merge",
    "merge_context",
    "open_captures",
    "own_impl",
    "path_str",
    "paths_of",
    "pop",
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


if TYPE_CHECKING:  # for the rooms above
    from synmod.tree.filtering.filters import to_filter as to_filter
    from synmod.tree.filtering.glob import glob_matches as glob_matches
    from synmod.tree.graphs.def_reader import DefReader as DefReader
    from synmod.tree.graphs.defs import Reference as Reference
    from synmod.tree.graphs.defs import Term as Term
    from synmod.tree.graphs.encoding import class_text as class_text
    from synmod.tree.graphs.encoding import static_text as static_text
    from synmod.tree.graphs.iterate import flattened as flattened
    from synmod.tree.graphs.kept import without_stateful as without_stateful
    from synmod.tree.graphs.mark import Mark as Mark
    from synmod.tree.graphs.record import Recording as Recording
    from synmod.tree.graphs.record import record as record
    from synmod.tree.overlays.leaf_table import leaf_table as leaf_table
    from synmod.tree.states.layout import Layout as Layout
    from synmod.tree.states.path_map import PathMap as PathMap
    from synmod.tree.variable.containers import TREE_TYPES as TREE_TYPES
    from synmod.tree.variable.containers import class_of as class_of
    from synmod.tree.variable.containers import is_namedtuple as is_namedtuple
    from synmod.tree.variable.containers import numbered as numbered
    from synmod.tree.variable.containers import put_together as put_together
    from synmod.tree.variable.containers import take_apart as take_apart
    from synmod.tree.variable.initializers import empty_value as empty_value
    from synmod.tree.variable.variable_state import snapshot as snapshot
    from synmod.tree.walking.kinds import DICT as DICT
    from synmod.tree.walking.kinds import KNOWN as KNOWN
    from synmod.tree.walking.kinds import NODE as NODE
    from synmod.tree.walking.kinds import SEQUENCE as SEQUENCE
    from synmod.tree.walking.kinds import STATIC as STATIC
    from synmod.tree.walking.kinds import TREE as TREE
    from synmod.tree.walking.kinds import VARIABLE as VARIABLE
    from synmod.tree.walking.kinds import Kinds as Kinds
    from synmod.tree.walking.kinds import holds_node as holds_node
    from synmod.tree.walking.kinds import kind_of as kind_of
    from synmod.tree.walking.kinds import kind_of_type as kind_of_type
    from synmod.tree.walking.node_types import Impls as Impls
    from synmod.tree.walking.views import is_trainable as is_trainable
    from synmod.tree.walking.walk import OpenVisit as OpenVisit

_FOR_ROOMS = {
    "DICT": "synmod.tree.walking.kinds",
    "DefReader": "synmod.tree.graphs.def_reader",
    "Impls": "synmod.tree.walking.node_types",
    "KNOWN": "synmod.tree.walking.kinds",
    "Kinds": "synmod.tree.walking.kinds",
    "Layout": "synmod.tree.states.layout",
    "Mark": "synmod.tree.graphs.mark",
    "NODE": "synmod.tree.walking.kinds",
    "OpenVisit": "synmod.tree.walking.walk",
    "PathMap": "synmod.tree.states.path_map",
    "Recording": "synmod.tree.graphs.record",
    "Reference": "synmod.tree.graphs.defs",
    "SEQUENCE": "synmod.tree.walking.kinds",
    "STATIC": "synmod.tree.walking.kinds",
    "TREE": "synmod.tree.walking.kinds",
    "TREE_TYPES": "synmod.tree.variable.containers",
    "Term": "synmod.tree.graphs.defs",
    "VARIABLE": "synmod.tree.walking.kinds",
    "class_of": "synmod.tree.variable.containers",
    "class_text": "synmod.tree.graphs.encoding",
    "empty_value": "synmod.tree.variable.initializers",
    "flattened": "synmod.tree.graphs.iterate",
    "glob_matches": "synmod.tree.filtering.glob",
    "holds_node": "synmod.tree.walking.kinds",
    "is_namedtuple": "synmod.tree.variable.containers",
    "is_trainable": "synmod.tree.walking.views",
    "kind_of": "synmod.tree.walking.kinds",
    "kind_of_type": "synmod.tree.walking.kinds",
    "leaf_table": "synmod.tree.overlays.leaf_table",
    "numbered": "synmod.tree.variable.containers",
    "put_together": "synmod.tree.variable.containers",
    "record": "synmod.tree.graphs.record",
    "snapshot": "synmod.tree.variable.variable_state",
    "static_text": "synmod.tree.graphs.encoding",
    "take_apart": "synmod.tree.variable.containers",
    "to_filter": "synmod.tree.filtering.filters",
    "without_stateful": "synmod.tree.graphs.kept",
}
__getattr__, __dir__ = opened_late(globals(), _contexts, inner=_FOR_ROOMS)

"""How synmod sees a program: one walk over nodes, Variables and containers, and the pair of structure and state.

Floor: 5. Purpose: Variables, node types, the walk, split and merge, update, clone, overlays, filters. State: the
registries of node types, two ContextVars (layers over values, update contexts), tables of sealed programs for as long
as they live. Speed: at most 5 µs a visit; reading a Variable costs one ContextVar read. Must never know: modules,
calls, flows, language models, files.
"""

from synmod.leaves.names import KeyPath, path_str

from . import filters, initializers, looking as views
from .capture import Sown, capture, open_captures
from .content import class_text, static_text
from .contexts import current_update_context, flatten, merge_context, split_context, unflatten, update_context
from .editing import pop, set_attributes, set_metadata, update
from .filters import Everything, Not, Nothing, OfType, PathContains, PathIn, Trainable, WithTag, to_filter
from .graphdef import CODEC, GraphDef, NodeDef, NodeRef, VariableDef, VariableRef, record
from .looking import PathTable, find_duplicates, flattened, is_trainable, iter_graph, outdate, path_table, paths_of
from .merging import build_graph, call, clone, deepcopy_node, graphdef, merge, split, state, variables
from .nodes import (
    DICT,
    KNOWN,
    NODE,
    SEQUENCE,
    STATIC,
    TREE,
    VARIABLE,
    Kinds,
    NodeImpl,
    Static,
    class_of,
    get_node_impl,
    holds_node,
    is_namedtuple,
    is_registered_container,
    is_token,
    kind_of,
    numbered,
    own_impl,
    put_together,
    register_graph_node_type,
    register_impl,
    static,
    take_apart,
)
from .overlay import using
from .states import State
from .variable import (
    Intermediate,
    Memory,
    OptState,
    Param,
    Stat,
    Variable,
    VariableState,
    discarding_writes,
    keeping_writes,
    snapshot,
)
from .walk import RefMap, Visit, walk

All = filters.All
Any = filters.Any
Path = filters.Path
Schema = filters.Schema

__all__ = [  # sorted by ruff
    "CODEC",
    "DICT",
    "KNOWN",
    "NODE",
    "SEQUENCE",
    "STATIC",
    "TREE",
    "VARIABLE",
    "All",
    "Any",
    "Everything",
    "GraphDef",
    "Intermediate",
    "KeyPath",
    "Kinds",
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
    "PathTable",
    "RefMap",
    "Schema",
    "Sown",
    "Stat",
    "State",
    "Static",
    "Trainable",
    "Variable",
    "VariableDef",
    "VariableRef",
    "VariableState",
    "Visit",
    "WithTag",
    "build_graph",
    "call",
    "capture",
    "class_of",
    "class_text",
    "clone",
    "current_update_context",
    "deepcopy_node",
    "discarding_writes",
    "filters",
    "find_duplicates",
    "flatten",
    "flattened",
    "get_node_impl",
    "graphdef",
    "holds_node",
    "initializers",
    "is_namedtuple",
    "is_registered_container",
    "is_token",
    "is_trainable",
    "iter_graph",
    "keeping_writes",
    "kind_of",
    "merge",
    "merge_context",
    "numbered",
    "open_captures",
    "outdate",
    "own_impl",
    "path_str",
    "path_table",
    "paths_of",
    "pop",
    "put_together",
    "record",
    "register_graph_node_type",
    "register_impl",
    "set_attributes",
    "set_metadata",
    "snapshot",
    "split",
    "split_context",
    "state",
    "static",
    "static_text",
    "take_apart",
    "to_filter",
    "unflatten",
    "update",
    "update_context",
    "using",
    "variables",
    "views",
    "walk",
]

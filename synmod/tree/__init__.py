"""A program as a graph: one walk over nodes, Variables and containers, and the split into structure and state.

Floor: 5. Purpose: Variables, node types, the walk, split and merge, update, clone, overlays, filters. State: the
registries of node types, two ContextVars (layers over values, update contexts), path tables of sealed programs for as
long as they live. Speed: at most 5 µs per visit; reading a Variable costs one ContextVar read. Must never know:
modules, calls, flows, language models, files.
"""

from synmod.leaves import KeyPath, path_str

from . import filters, initializers
from .editing import (
    Sown, capture, open_captures, pop, set_attributes, set_metadata, share_variables, update, using,
)
from .filters import All, Any, Everything, Not, Nothing, OfType, Path, PathContains, PathIn, Schema, Trainable, WithTag
from .graphdef import (
    GraphCodec, GraphDef, NodeDef, NodeRef, VariableDef, VariableRef, class_text, record, static_text,
)
from .paths import PathTable, find_variables, invalidate_paths, path_table
from .inspecting import find_duplicates, iter_below, is_trainable, iter_graph, paths_of, submodules_of, variables_of
from .merging import build_graph, call, clone, deepcopy_node, graphdef, merge, split, state, variables
from .contexts import current_update_context, flatten, merge_context, split_context, unflatten, update_context
from .walk import (
    KNOWN, NODE, SEQUENCE, SET, STATIC, VARIABLE, NodeImpl, RefMap, Static, Visit, get_node_impl, graph_parts,
    holds_node, is_token, kind_of, own_impl, register_graph_node_type, register_impl, static, walk,
)
from .states import State
from .choice import Choice, chosen
from .variable import (
    Intermediate, Memory, OptState, Param, Stat, Variable, VariableState, class_of, discard_writes, keep_writes,
    snapshot,
)

__all__ = [
    "KNOWN", "NODE", "SEQUENCE", "SET", "STATIC", "VARIABLE", "All", "Any", "Choice", "Everything", "GraphCodec",
    "GraphDef", "Intermediate", "KeyPath", "Memory", "NodeDef", "NodeImpl", "NodeRef", "Not", "Nothing", "OfType",
    "OptState", "Param", "Path", "PathContains", "PathIn", "PathTable", "RefMap", "Schema", "Sown", "Stat", "State",
    "Static", "Trainable", "Variable", "VariableDef", "VariableRef", "VariableState", "Visit", "WithTag",
    "build_graph", "call", "capture", "chosen", "class_of", "class_text", "clone", "current_update_context",
    "deepcopy_node", "discard_writes", "filters", "find_duplicates", "find_variables", "flatten", "get_node_impl",
    "graph_parts", "graphdef", "holds_node", "initializers", "invalidate_paths", "is_token", "is_trainable",
    "iter_below", "iter_graph", "keep_writes", "kind_of", "merge", "merge_context", "open_captures", "own_impl",
    "path_str", "path_table", "paths_of", "pop", "record", "register_graph_node_type", "register_impl",
    "set_attributes", "set_metadata", "share_variables", "snapshot", "split", "split_context", "state", "static",
    "static_text", "submodules_of", "unflatten", "update", "update_context", "using", "variables", "variables_of",
    "walk",
]

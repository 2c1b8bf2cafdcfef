"""How synmod sees a program: one walk over nodes, Variables and containers, and the pair of structure and state.

Floor: 5. Purpose: Variables, node types, the walk, split and merge, update, clone, overlays, filters. State: the
registries of node types, two ContextVars (layers over values, update contexts), tables of sealed programs for as long
as they live. Speed: at most 5 µs a visit; reading a Variable costs one ContextVar read. Must never know: modules,
calls, flows, language models, files.
"""

from synmod.leaves import KeyPath as KeyPath, path_str as path_str

from . import filters as filters, initializers as initializers
from .editing import (
    Sown as Sown, capture as capture, open_captures as open_captures, pop as pop, set_attributes as set_attributes,
    set_metadata as set_metadata, share_variables as share_variables, update as update, using as using,
)
from .filters import (
    All as All, Any as Any, Everything as Everything, Not as Not, Nothing as Nothing, OfType as OfType, Path as Path,
    PathContains as PathContains, PathIn as PathIn, Schema as Schema, Trainable as Trainable, WithTag as WithTag,
)
from .graphdef import (
    CODEC as CODEC, GraphDef as GraphDef, NodeDef as NodeDef, NodeRef as NodeRef, VariableDef as VariableDef,
    VariableRef as VariableRef, class_text as class_text, record as record, static_text as static_text,
)
from .looking import (
    PathTable as PathTable, find_duplicates as find_duplicates, flattened as flattened,
    is_trainable as is_trainable, iter_graph as iter_graph, outdate as outdate, path_table as path_table,
    paths_of as paths_of, submodules_of as submodules_of, variables_of as variables_of,
)
from .merging import (
    build_graph as build_graph, call as call, clone as clone, current_update_context as current_update_context,
    deepcopy_node as deepcopy_node, flatten as flatten, graphdef as graphdef, merge as merge,
    merge_context as merge_context, split as split, split_context as split_context, state as state,
    unflatten as unflatten, update_context as update_context, variables as variables,
)
from .walk import (
    KNOWN as KNOWN, NODE as NODE, SEQUENCE as SEQUENCE, SET as SET, STATIC as STATIC,
    VARIABLE as VARIABLE, NodeImpl as NodeImpl, RefMap as RefMap, Static as Static, Visit as Visit,
     get_node_impl as get_node_impl, holds_node as holds_node, is_token as is_token,
    kind_of as kind_of, own_impl as own_impl, register_graph_node_type as register_graph_node_type,
    register_impl as register_impl, static as static, walk as walk,
)
from .states import State as State
from .variable import (
    Intermediate as Intermediate, Memory as Memory, OptState as OptState, Param as Param, Stat as Stat,
    Variable as Variable, VariableState as VariableState, discarding_writes as discarding_writes,
    keeping_writes as keeping_writes, class_of as class_of, snapshot as snapshot,
)

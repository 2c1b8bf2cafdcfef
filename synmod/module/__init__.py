"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: the class `Module`, and the steps of one call. State: one record per module, two ContextVars (the
frame of `scope`, the running build). Speed: a nested call of a built module on a value costs a frame and a few identity
checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from . import blueprint as blueprint  # registers modules and language models as nodes of `tree`
from .building import build, build_and_check, read_build_config, write_build_config
from .constructing import declaration_of, from_config, is_passed_on, note_loaded
from .contract import (
    Unquoted, input_declaration, input_spec_of, no_call, output_declaration, shape, tool_inputs,
)
from .declaring import (
    AsyncCallee, CallAttempt, ChildAt, DeclaredSkips, Execution, ModuleOf, ModuleOptions, RoomsAbove, attempt,
    execution_of, first_paragraph, has_open_skips, own_inputs_of, passes_none, verify_first_call,
)
from .module import Data, Module
from .signatures import UNDECLARED, model_of_annotation, read_outputs, resolve_annotations, without_none
from .structure import InVariable, kind_text, refuse_if_sealed, seal, where
from .transactions import Build, current_own_build

__all__ = [
    "UNDECLARED", "AsyncCallee", "Build", "CallAttempt", "ChildAt", "Data", "DeclaredSkips", "Execution", "InVariable",
    "Module", "ModuleOf", "ModuleOptions", "RoomsAbove", "Unquoted", "attempt", "build", "build_and_check",
    "current_own_build", "declaration_of", "execution_of", "first_paragraph", "from_config", "has_open_skips",
    "input_declaration", "input_spec_of", "is_passed_on", "kind_text", "model_of_annotation", "no_call", "note_loaded",
    "output_declaration", "own_inputs_of", "passes_none", "read_build_config", "read_outputs", "refuse_if_sealed",
    "resolve_annotations", "seal", "shape", "tool_inputs", "verify_first_call", "where", "without_none",
    "write_build_config",
]

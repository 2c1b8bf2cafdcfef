"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: the class `Module`, and the steps of one call. State: one record per module, two ContextVars (the
frame of `scope`, the running build). Speed: a nested call of a built module on a value costs a frame and a few identity
checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from .calling import build, build_and
from .constructing import declaration_of, from_config, is_passed_on, note_loaded, read_build_config
from .contract import Shown, declared_inputs, declared_outputs, input_spec_of, no_call, shape
from .declaring import (
    UNDECLARED, AsyncCallee, Attempt, Child, DeclaredSkips, Execution, ModuleOf, ModuleOptions, RoomsAbove, attempt,
    execution_of, first_paragraph, has_open_skips, model_of_annotation, own_inputs_of, passes_none, read_outputs,
    resolved_annotations, verify_first_call, without_none,
)
from .module import Data, Module
from .record import InVariable, kind_text, where
from .structure import Build, refuse_if_sealed, running_own_build, seal

__all__ = [
    "UNDECLARED", "AsyncCallee", "Attempt", "Build", "Child", "Data", "DeclaredSkips", "Execution", "InVariable",
    "Module", "ModuleOf", "ModuleOptions", "RoomsAbove", "Shown", "attempt", "build", "build_and", "declaration_of",
    "declared_inputs", "declared_outputs", "execution_of", "first_paragraph", "from_config", "has_open_skips",
    "input_spec_of", "is_passed_on", "kind_text", "model_of_annotation", "no_call", "note_loaded", "own_inputs_of",
    "passes_none", "read_build_config", "read_outputs", "refuse_if_sealed", "resolved_annotations", "running_own_build",
    "seal", "shape", "verify_first_call", "where", "without_none",
]

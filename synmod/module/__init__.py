"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: what a `Module` is, and what happens in one call of it. State: one record per module, two
ContextVars (the frame of `scope`, the running build). Speed: a nested call of a built module on a value makes a frame
and a few identity checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from . import node
from .build import build, read_build_config
from .builds import Build, is_built_here, running_own_build
from .constructing import declaration_of, from_config, is_passed_on, unknown_keyword
from .contract import declared_inputs, input_spec_of, is_nothing, no_call
from .declaring import (
    UNDECLARED,
    AsyncCallee,
    ClassDeclaration,
    ModuleOptions,
    first_paragraph,
    model_of_annotation,
    read_outputs,
    resolved_annotations,
    without_none,
)
from .frames import paths_below
from .module import SHOW, Module
from .outputs import check_output, declared_outputs
from .record import attribute_of, attributes_of_build, where
from .structure import refuse_if_sealed, seal
from .wiring import (
    ATTEMPTS,
    SCHEDULERS,
    VERIFIERS,
    Attempt,
    Child,
    DeclaredSkips,
    Execution,
    attempt,
    execution_of,
    has_open_skips,
    own_inputs_of,
    passes_none,
    steps_before,
    verify_first_call,
    verify_wiring,
)

__all__ = [
    "ATTEMPTS",
    "SCHEDULERS",
    "SHOW",
    "UNDECLARED",
    "VERIFIERS",
    "AsyncCallee",
    "Attempt",
    "Build",
    "Child",
    "ClassDeclaration",
    "DeclaredSkips",
    "Execution",
    "Module",
    "ModuleOptions",
    "attempt",
    "attribute_of",
    "attributes_of_build",
    "build",
    "check_output",
    "declaration_of",
    "declared_inputs",
    "declared_outputs",
    "execution_of",
    "first_paragraph",
    "from_config",
    "has_open_skips",
    "input_spec_of",
    "is_built_here",
    "is_nothing",
    "is_passed_on",
    "model_of_annotation",
    "no_call",
    "node",
    "own_inputs_of",
    "passes_none",
    "paths_below",
    "read_build_config",
    "read_outputs",
    "refuse_if_sealed",
    "resolved_annotations",
    "running_own_build",
    "seal",
    "steps_before",
    "unknown_keyword",
    "verify_first_call",
    "verify_wiring",
    "where",
    "without_none",
]

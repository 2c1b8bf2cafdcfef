"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: what a `Module` is, and what happens in one call of it. State: one record per module, two
ContextVars (the frame of `scope`, the running build). Speed: a nested call of a built module on a value makes a frame
and a few identity checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from .calling import build as build
from .constructing import (
    declaration_of as declaration_of, from_config as from_config, is_passed_on as is_passed_on,
    read_build_config as read_build_config, unknown_keyword as unknown_keyword,
)
from .contract import (
    Shown as Shown, declared_inputs as declared_inputs, declared_outputs as declared_outputs,
    input_spec_of as input_spec_of, no_call as no_call, shape as shape,
)
from .declaring import (
    ABOVE as ABOVE, UNDECLARED as UNDECLARED, AsyncCallee as AsyncCallee, Attempt as Attempt, Child as Child,
    DeclaredSkips as DeclaredSkips, Execution as Execution, ModuleOptions as ModuleOptions, attempt as attempt,
    execution_of as execution_of, first_paragraph as first_paragraph, has_open_skips as has_open_skips,
    model_of_annotation as model_of_annotation, own_inputs_of as own_inputs_of, passes_none as passes_none,
    read_outputs as read_outputs, resolved_annotations as resolved_annotations, steps_before as steps_before,
    verify_first_call as verify_first_call, verify_wiring as verify_wiring, without_none as without_none,
)
from .module import Module as Module
from .record import attributes_of_build as attributes_of_build, kind_text as kind_text, where as where
from .structure import (
    Build as Build, refuse_if_sealed as refuse_if_sealed,
    running_own_build as running_own_build, seal as seal,
)

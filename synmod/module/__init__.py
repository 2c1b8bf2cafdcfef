"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: what a `Module` is, and what happens in one call of it. State: one record per module, two
ContextVars (the frame of `scope`, the running build). Speed: a nested call of a built module on a value makes a frame
and a few identity checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from . import node as node
from .build import build as build, read_build_config as read_build_config
from .builds import Build as Build, is_built_here as is_built_here, running_own_build as running_own_build
from .constructing import (
    declaration_of as declaration_of, from_config as from_config, is_passed_on as is_passed_on,
    unknown_keyword as unknown_keyword,
)
from .contract import declared_inputs as declared_inputs, input_spec_of as input_spec_of, no_call as no_call
from .declaring import (
    UNDECLARED as UNDECLARED, AsyncCallee as AsyncCallee, ModuleOptions as ModuleOptions,
    first_paragraph as first_paragraph, model_of_annotation as model_of_annotation, read_outputs as read_outputs,
    resolved_annotations as resolved_annotations, without_none as without_none,
)
from .module import SHOW as SHOW, Module as Module
from .outputs import declared_outputs as declared_outputs
from .record import attributes_of_build as attributes_of_build, where as where
from .structure import refuse_if_sealed as refuse_if_sealed, seal as seal
from .wiring import (
    ATTEMPTS as ATTEMPTS, SCHEDULERS as SCHEDULERS, VERIFIERS as VERIFIERS, Attempt as Attempt, Child as Child,
    DeclaredSkips as DeclaredSkips, Execution as Execution, attempt as attempt, execution_of as execution_of,
    has_open_skips as has_open_skips, own_inputs_of as own_inputs_of, passes_none as passes_none,
    steps_before as steps_before, verify_first_call as verify_first_call, verify_wiring as verify_wiring,
)

"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: what a `Module` is, and what happens in one call of it. State: one record per module, two
ContextVars (the frame of `scope`, the running build). Speed: a nested call of a built module on a value makes a frame
and a few identity checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.module import node
from synmod.module.build import build
from synmod.module.module import Module
from synmod.module.typing import ModuleOptions

__all__ = ["Module", "ModuleOptions", "build", "node"]

if TYPE_CHECKING:  # for the rooms above
    from synmod.module.arguments import unknown_keyword as unknown_keyword
    from synmod.module.attempts import ATTEMPTS as ATTEMPTS
    from synmod.module.attempts import Attempt as Attempt
    from synmod.module.attempts import attempt as attempt
    from synmod.module.attributes import attribute_of as attribute_of
    from synmod.module.build import read_build_config as read_build_config
    from synmod.module.building import Build as Build
    from synmod.module.building import is_built_here as is_built_here
    from synmod.module.building import running_own_build as running_own_build
    from synmod.module.config import from_config as from_config
    from synmod.module.config import is_passed_on as is_passed_on
    from synmod.module.contract import declared_inputs as declared_inputs
    from synmod.module.contract import input_spec_of as input_spec_of
    from synmod.module.declaration import ClassDeclaration as ClassDeclaration
    from synmod.module.declaration import first_paragraph as first_paragraph
    from synmod.module.execution import SCHEDULERS as SCHEDULERS
    from synmod.module.execution import VERIFIERS as VERIFIERS
    from synmod.module.execution import Child as Child
    from synmod.module.execution import Execution as Execution
    from synmod.module.execution import steps_before as steps_before
    from synmod.module.execution import verify_wiring as verify_wiring
    from synmod.module.interface.annotations import UNDECLARED as UNDECLARED
    from synmod.module.interface.annotations import model_of_annotation as model_of_annotation
    from synmod.module.interface.annotations import read_outputs as read_outputs
    from synmod.module.interface.annotations import resolved_annotations as resolved_annotations
    from synmod.module.interface.annotations import without_none as without_none
    from synmod.module.interface.inputs import no_call as no_call
    from synmod.module.interface.nests import is_nothing as is_nothing
    from synmod.module.interface.outputs import check_output as check_output
    from synmod.module.interface.outputs import declared_outputs as declared_outputs
    from synmod.module.interface.where import where as where
    from synmod.module.paths import PathTable as PathTable
    from synmod.module.paths import paths_below as paths_below
    from synmod.module.sealing import refuse_if_sealed as refuse_if_sealed
    from synmod.module.sealing import seal as seal
    from synmod.module.showing import SHOW as SHOW
    from synmod.module.skips import DeclaredSkips as DeclaredSkips
    from synmod.module.skips import has_open_skips as has_open_skips
    from synmod.module.typing import AsyncCallee as AsyncCallee

_FOR_ROOMS = {
    "ATTEMPTS": "synmod.module.attempts",
    "AsyncCallee": "synmod.module.typing",
    "Attempt": "synmod.module.attempts",
    "Build": "synmod.module.building",
    "Child": "synmod.module.execution",
    "ClassDeclaration": "synmod.module.declaration",
    "DeclaredSkips": "synmod.module.skips",
    "Execution": "synmod.module.execution",
    "PathTable": "synmod.module.paths",
    "SCHEDULERS": "synmod.module.execution",
    "SHOW": "synmod.module.showing",
    "UNDECLARED": "synmod.module.interface.annotations",
    "VERIFIERS": "synmod.module.execution",
    "attempt": "synmod.module.attempts",
    "attribute_of": "synmod.module.attributes",
    "check_output": "synmod.module.interface.outputs",
    "declared_inputs": "synmod.module.contract",
    "declared_outputs": "synmod.module.interface.outputs",
    "first_paragraph": "synmod.module.declaration",
    "from_config": "synmod.module.config",
    "has_open_skips": "synmod.module.skips",
    "input_spec_of": "synmod.module.contract",
    "is_built_here": "synmod.module.building",
    "is_nothing": "synmod.module.interface.nests",
    "is_passed_on": "synmod.module.config",
    "model_of_annotation": "synmod.module.interface.annotations",
    "no_call": "synmod.module.interface.inputs",
    "paths_below": "synmod.module.paths",
    "read_build_config": "synmod.module.build",
    "read_outputs": "synmod.module.interface.annotations",
    "refuse_if_sealed": "synmod.module.sealing",
    "resolved_annotations": "synmod.module.interface.annotations",
    "running_own_build": "synmod.module.building",
    "seal": "synmod.module.sealing",
    "steps_before": "synmod.module.execution",
    "unknown_keyword": "synmod.module.arguments",
    "verify_wiring": "synmod.module.execution",
    "where": "synmod.module.interface.where",
    "without_none": "synmod.module.interface.annotations",
}
__getattr__, __dir__ = opened_late(globals(), inner=_FOR_ROOMS)

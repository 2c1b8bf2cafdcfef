"""Modules: lifecycle, build, call, config.

Floor: 6. Purpose: what a `Module` is, and what happens in one call of it. State: one record per module, two
ContextVars (the frame of `scope`, the running build). Speed: a nested call of a built module on a value makes a frame
and a few identity checks: no walk, no `inspect`, no schema work, no lock. Must never know: Program, files, training.
"""

from synmod.module import node
from synmod.module.building.sm_build import build
from synmod.module.deferred import Deferred
from synmod.module.module import Module
from synmod.module.once import once
from synmod.module.typing import ModuleOptions
from synmod.module.variable_creator import variable_creator

__all__ = ["Deferred", "Module", "ModuleOptions", "build", "node", "once", "variable_creator"]

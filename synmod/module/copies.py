"""Copies of modules, all through graph and state."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from synmod.errors import ArgumentError
from synmod.leaves.names import check_name, path_str
from synmod.module.building import remember
from synmod.tree import GraphDef, State, deepcopy_node, get_node_impl, merge, split, walk
from synmod.tree import clone as clone_node

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope import Hook

M = TypeVar("M", bound="Module")

_ABSENT = object()


def clone(module: M, name: str | None) -> M:
    """Copy a module and rename the copy.

    Raises:
        BadNameError: The name is no identifier; nothing is copied.
    """
    if name is not None:
        check_name(name)
    copy = clone_node(module)
    if name is not None:
        copy._record.name = name
    return copy


def deepcopy(module: M, memo: dict[int, Any]) -> M:
    """What `copy.deepcopy` does: a clone that refers to what was copied beside it."""
    return deepcopy_node(module, memo)


def reduce(module: Module) -> tuple[Any, ...]:
    """What pickle stores: graph and state, without hooks.

    Raises:
        TypeError: A live model is held; names its path.
    """
    for visit in walk(module):
        if visit.kind == "node" and get_node_impl(visit.value).by_reference:
            path = path_str(visit.path)
            raise TypeError(
                f"cannot pickle {type(visit.value).__name__} at {path!r}: a live model holds connections and keys. "
                "Save the program with sm.save, or leave language_model out and use the default model."
            )
    return _merged, split(module)


def _merged(graphdef: GraphDef[Any], state: State) -> Any:
    return merge(graphdef, state)


def set_mode(module: M, *, training: bool) -> M:
    """Set `training` and `deterministic` wherever a node below has such an attribute, and `training` on the module."""
    for visit in walk(module):
        if visit.kind == "node" and visit.first:
            if visit.value is module or _can_set(visit.value, "training"):
                visit.value.training = training
            if _can_set(visit.value, "deterministic"):
                visit.value.deterministic = not training
    return module


def _can_set(node: object, name: str) -> bool:
    """Tell whether a node has an attribute that can be set, of its own or by its class, without running a property."""
    found = inspect.getattr_static(node, name, _ABSENT)
    return found is not _ABSENT and not (isinstance(found, property) and found.fset is None)


def set_hooks(module: Module, hooks: tuple[Hook, ...]) -> None:
    """Give a module its hooks; a build that fails takes back what it set."""
    remember(module)
    module._record.hooks = hooks


def without_hook(module: Module, hook: Hook) -> tuple[Hook, ...]:
    """The hooks of a module but one.

    Raises:
        ArgumentError: It is not among them.
    """
    hooks = module._record.hooks
    if not any(one is hook for one in hooks):
        raise ArgumentError(f"{module.name!r} has no such hook {hook!r}; it has {len(hooks)}.")
    return tuple(one for one in hooks if one is not hook)

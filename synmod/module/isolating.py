"""Namespaces of skip names: which module uses which, so that pairs of one name do not meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, SealedError, SkipNameError
from synmod.module.building import remember
from synmod.module.interface.where import where
from synmod.tree import EDITS, is_token

if TYPE_CHECKING:
    from synmod.module.module import Module


def stashable(module: Module) -> Iterator[tuple[Any, str]]:
    """The `(namespace, name)` pairs that a module stashes, by name."""
    return (namespaced(module, name) for name in sorted(module.stashable_names))


def poppable(module: Module) -> Iterator[tuple[Any, str]]:
    """The pairs that it pops, by name."""
    return (namespaced(module, name) for name in sorted(module.poppable_names))


def namespaced(module: Module, name: str) -> tuple[Any, str]:
    """One pair."""
    return module._record.isolated.get(name), name


def isolate(module: Module, namespace: Any, only: Iterable[str] | None) -> None:
    """Put names of a module into a Namespace.

    Raises:
        ArgumentError: It is no Namespace.
        SkipNameError: The module declares no skips, or not these.
        SealedError: The module is built.
    """
    record = module._record
    if not is_token(namespace):
        raise ArgumentError(f"{where(module)}: isolate takes a synmod.skip.Namespace, got {namespace!r:.100}.")
    skips = record.declaration.skips
    declared = [] if skips is None else skips.names
    wanted = declared if only is None else [only] if isinstance(only, str) else list(only)
    unknown = sorted({repr(name) for name in wanted if name not in declared})
    if unknown or not declared:
        shown = ", ".join(map(repr, declared)) or "nothing"
        what = f"{', '.join(unknown)} cannot be isolated" if unknown else "there is nothing to isolate"
        raise SkipNameError(
            f"{where(module)}: {what}: it declares {shown}. Declare names with "
            "@skippable(stash=[...], pop=[...]) on the class."
        )
    if record.sealed:
        raise SealedError(
            f"{where(module)}: isolate, but the structure is sealed since the module was built. Isolate it in "
            "__init__, or before the first call."
        )
    remember(module)
    record.isolated = {**record.isolated, **dict.fromkeys(wanted, namespace)}
    EDITS.bump()

"""Whether a program and all that it runs are built: asked part by part, without recursion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from synmod.module import Module


@runtime_checkable
class Composite(Protocol):
    """A module whose being built includes that of the modules that it runs."""

    def _is_built_itself(self) -> bool: ...

    def _run_modules(self) -> Iterable[Module]: ...


def all_built(root: Module) -> bool:
    """Tell whether `root` is built, and with it every module that it, or a composite below it, runs."""
    pending, seen = [root], {id(root)}
    while pending:
        module = pending.pop()
        if not isinstance(module, Composite):
            if not module.built:
                return False
            continue
        if not module._is_built_itself():
            return False
        new = [each for each in module._run_modules() if id(each) not in seen]
        seen.update(map(id, new))
        pending.extend(new)
    return True

"""What a failed build leaves: exactly what was there before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from synmod.tree.variable import Variable
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from synmod.module.module import Module

_FIELDS = (
    "build_config",
    "built",
    "contract",
    "declared",
    "description",
    "flow",
    "home",
    "layout",
    "made_in_build",
    "name",
    "ready",
    "sealed",
    "trainable",
    "version",
)
"""The fields of a record that a build may set; containers among them are listed below."""

_CONTAINERS = ("provisional", "reassigned", "removed", "statics")


class Undo:
    """A snapshot of modules, plain containers and Variables, taken before a build touches them."""

    __slots__ = ("_restore", "_seen")

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._restore: list[Callable[[], None]] = []

    def remember_below(self, root: Module) -> None:
        """Remember everything that can be reached from `root`."""
        for visit in walk(root, statics=True):
            value = visit.value
            if visit.kind == "node":
                if visit.first and hasattr(value, "_record"):
                    self.remember(value)
            elif isinstance(value, Variable):
                if visit.first:
                    self._remember_variable(value)
            elif isinstance(value, list | dict | set | deque):
                self._remember_container(value)

    def remember(self, module: Module) -> None:
        """Remember one module: its attributes and its record."""
        if id(module) in self._seen:
            return
        self._seen.add(id(module))
        record = module._record
        attributes = dict(vars(module))
        fields = [(name, getattr(record, name)) for name in _FIELDS]
        copies = [(name, type(getattr(record, name))(getattr(record, name))) for name in _CONTAINERS]

        def restore() -> None:
            vars(module).clear()
            vars(module).update(attributes)
            for name, value in (*fields, *copies):
                setattr(record, name, value)

        self._restore.append(restore)

    def _remember_variable(self, variable: Variable) -> None:
        held = variable._value, variable._version, variable._about

        def restore() -> None:
            variable._value, variable._version, variable._about = held

        self._restore.append(restore)

    def _remember_container(self, container: Any) -> None:
        if type(container) not in (list, dict, set, deque) or id(container) in self._seen:
            return
        self._seen.add(id(container))
        content = container.copy()

        def restore() -> None:
            container.clear()
            fill = container.extend if type(container) in (list, deque) else container.update
            fill(content)

        self._restore.append(restore)

    def restore(self) -> None:
        """Put everything back, the last remembered first; a second call does nothing."""
        while self._restore:
            self._restore.pop()()

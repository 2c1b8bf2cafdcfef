"""What a failed build leaves: exactly what was there before.

A build remembers each attribute and Variable when it is about to change it, so that what others change meanwhile stays.
Plain containers tell nobody when they change: those below the module are remembered when its build begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.module.attributes import ABSENT, attribute_of, attributes_of, put_attribute
from synmod.module.plain_containers import contents_below

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.tree import Variable

LABELS = frozenset({"name", "description", "trainable", "hooks"})
"""Properties of a module whose values its record holds under the same names."""

_LIFECYCLE = ("build_config", "built", "flow", "layout", "made_in_build", "ready", "sealed")
"""What building and sealing set in a record."""


class Undo:
    """What one build has to put back if it fails."""

    __slots__ = ("_containers", "_modules", "_variables")

    def __init__(self) -> None:
        self._modules: dict[int, _ModuleBefore] = {}
        self._variables: dict[int, _VariableBefore] = {}
        self._containers: list[Callable[[], None]] = []

    def remember_attribute(self, module: Module, name: str | int) -> None:
        """Remember one attribute, or label, that is about to be changed."""
        self._before(module).note(name)

    def remember_all(self, module: Module) -> None:
        """Remember every attribute of a module, and that it has no others."""
        self._before(module).note_all()

    def remember_lifecycle(self, module: Module) -> None:
        """Remember what the record of a module says of building and sealing."""
        self._before(module).note_lifecycle()

    def remember_containers(self, root: Module) -> None:
        """Remember the content of every plain container below a module."""
        self._containers += contents_below(root)

    def remember_variable(self, variable: Variable) -> None:
        """Remember a Variable whose live value or label is about to be changed."""
        known = self._variables.get(id(variable))
        if known is None:
            known = self._variables[id(variable)] = _VariableBefore(variable)
        known.written_at = variable._version + 1

    def restore(self) -> None:
        """Put everything back; a second call does nothing."""
        variables, modules, containers = self._variables, self._modules, self._containers
        self._variables, self._modules, self._containers = {}, {}, []
        for variable in variables.values():
            variable.restore()
        for module in modules.values():
            module.restore()
        for restore in containers:
            restore()

    def _before(self, module: Module) -> _ModuleBefore:
        known = self._modules.get(id(module))
        if known is None:
            known = self._modules[id(module)] = _ModuleBefore(module)
        return known


class _Attribute(NamedTuple):
    """One attribute before it was changed, and in which lists of the record its name stood."""

    value: Any
    was_reassigned: bool
    was_static: bool


class _ModuleBefore:
    """One module before a build changed it; noted attribute by attribute."""

    __slots__ = ("attributes", "has_no_others", "lifecycle", "module", "order", "provisional", "removed")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.order = list(vars(module))
        self.provisional = dict(module._record.provisional)
        self.removed = list(module._record.removed)
        self.attributes: dict[str | int, _Attribute] = {}
        self.has_no_others = False
        self.lifecycle: list[tuple[str, Any]] = []

    def note(self, name: str | int) -> None:
        """Note one attribute, once."""
        if name not in self.attributes:
            record = self.module._record
            value = getattr(record, str(name)) if name in LABELS else attribute_of(self.module, name)
            self.attributes[name] = _Attribute(value, name in record.reassigned, name in record.statics)

    def note_all(self) -> None:
        """Note all there are."""
        for name in dict(attributes_of(self.module)):
            self.note(name)
        self.has_no_others = True

    def note_lifecycle(self) -> None:
        """Note what was built and sealed, once."""
        if not self.lifecycle:
            self.lifecycle = [(name, getattr(self.module._record, name)) for name in _LIFECYCLE]

    def restore(self) -> None:
        """Put the module back."""
        module, record = self.module, self.module._record
        if self.has_no_others:
            for name in dict(attributes_of(module)).keys() - self.attributes.keys():
                put_attribute(module, name, ABSENT)
        for name, before in self.attributes.items():
            if name in LABELS:
                setattr(record, str(name), before.value)
            else:
                put_attribute(module, name, before.value)
                _put_name(record.reassigned, name, is_in=before.was_reassigned)
                _put_name(record.statics, name, is_in=before.was_static)
        self._restore_order()
        record.provisional, record.removed = self.provisional, self.removed
        for name, value in self.lifecycle:
            setattr(record, name, value)
        record.contract = record.declared = None

    def _restore_order(self) -> None:
        """Bring the attributes into the order they had; what others added meanwhile comes after them."""
        now = vars(self.module)
        ordered = {name: now[name] for name in self.order if name in now} | now
        if list(ordered) != list(now):
            now.clear()
            now.update(ordered)


class _VariableBefore:
    """One Variable before a build wrote to it."""

    __slots__ = ("held", "variable", "written_at")

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.held = variable._value, variable._version, variable._about, variable._schema
        self.written_at = 0
        """The version after the last write of the build."""

    def restore(self) -> None:
        """Put the Variable back, unless somebody else has written to it since."""
        variable = self.variable
        with variable._lock:
            if variable._version <= self.written_at:
                variable._value, variable._version, variable._about, variable._schema = self.held


def _put_name(names: set[Any], name: str | int, *, is_in: bool) -> None:
    """Put a name into a set, or take it out."""
    if is_in:
        names.add(name)
    else:
        names.discard(name)

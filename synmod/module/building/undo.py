"""What a failed build leaves: exactly what was there before.

A build remembers each attribute and Variable when it is about to change it, so that what others change meanwhile stays.
Plain containers tell nobody when they change: those below the module are remembered when its build begins. Everything
is put back from the last to the first, whichever of the builds that are undone together remembered it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from synmod.module.attributes import ABSENT, attribute_of, attributes_of, put_attribute
from synmod.module.building.plain_containers import contents_below

if TYPE_CHECKING:
    from synmod.module.building.builds import Build
    from synmod.module.module import Module
    from synmod.tree import Variable

T = TypeVar("T", bound="Before")

LABELS = frozenset({"name", "description", "trainable", "hooks", "isolated"})
"""What the record of a module holds under the same names, so that it is put back there."""

_LIFECYCLE = ("build_config", "built", "flow", "layout", "made_in_build", "ready", "sealed")
"""What building and sealing set in a record."""

_ORDER = itertools.count()


class Before(Protocol):
    """One thing as it was."""

    def restore(self, mine: Container[Build], /) -> None:
        """Put it back.

        Args:
            mine: The builds that are undone.
        """
        ...


class Undo:
    """What one build has to put back if it fails."""

    __slots__ = ("_known", "things")

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Before] = {}
        self.things: list[tuple[int, Before]] = []
        """What was remembered, each with its place in the order of all that is remembered anywhere."""

    def remember_attribute(self, module: Module, name: str | int) -> None:
        """Remember one attribute, or label, that is about to be changed."""
        self._once("order", module, lambda: _OrderBefore(module))
        kind = _LabelBefore if name in LABELS else _AttributeBefore
        self._once(f"attribute {name}", module, lambda: kind(module, name))

    def remember_all(self, module: Module) -> None:
        """Remember every attribute of a module, and that it has no others."""
        self._once("others", module, lambda: _NoOthersBefore(module))
        for name, _ in attributes_of(module):
            self.remember_attribute(module, name)

    def remember_lifecycle(self, module: Module) -> None:
        """Remember what the record of a module says of building and sealing."""
        self._once("lifecycle", module, lambda: _LifecycleBefore(module))

    def remember_containers(self, root: Module, mine: Container[Build]) -> None:
        """Remember the content of every plain container below a module."""
        for contents in contents_below(root, mine):
            self._once("contents", contents, lambda contents=contents: contents)

    def remember_variable(self, variable: Variable) -> None:
        """Remember a Variable whose live value or label is about to be changed."""
        self._once("variable", variable, lambda: _VariableBefore(variable)).note_write()

    def _once(self, what: str, thing: object, make: Callable[[], T]) -> T:
        """Remember a thing the first time; it is kept alive, and so its id is its own."""
        key = what, id(thing)
        known: Any = self._known.get(key)
        if known is None:
            known = self._known[key] = make()
            self.things.append((next(_ORDER), known))
        return known


def undo_all(undos: Iterable[Undo], mine: Container[Build]) -> None:
    """Put everything back, the last that was remembered first."""
    things = [thing for undo in undos for thing in undo.things]
    for _, thing in sorted(things, key=itemgetter(0), reverse=True):
        thing.restore(mine)


class _AttributeBefore:
    """One attribute of a module, and in which lists of the record its name stood."""

    __slots__ = ("module", "name", "value", "was_reassigned", "was_static")

    def __init__(self, module: Module, name: str | int) -> None:
        record = module._record
        self.module, self.name = module, name
        self.value = attribute_of(module, name)
        self.was_reassigned = name in record.reassigned
        self.was_static = name in record.statics

    def restore(self, _mine: Container[Build]) -> None:
        """Put it back."""
        record = self.module._record
        put_attribute(self.module, self.name, self.value)
        _put_name(record.reassigned, self.name, is_in=self.was_reassigned)
        _put_name(record.statics, self.name, is_in=self.was_static)
        record.contract = record.declared = None


class _LabelBefore:
    """One label of a module."""

    __slots__ = ("name", "record", "value")

    def __init__(self, module: Module, name: str | int) -> None:
        self.record, self.name = module._record, str(name)
        self.value = getattr(self.record, self.name)

    def restore(self, _mine: Container[Build]) -> None:
        """Put it back."""
        setattr(self.record, self.name, self.value)


class _OrderBefore:
    """The order of a module's attributes, and what its record says of those that came or went."""

    __slots__ = ("module", "order", "provisional", "removed")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.order = list(vars(module))
        self.provisional = dict(module._record.provisional)
        self.removed = dict(module._record.removed)

    def restore(self, _mine: Container[Build]) -> None:
        """Bring the attributes into the order they had; what others added meanwhile comes after them."""
        now = vars(self.module)
        ordered = {name: now[name] for name in self.order if name in now} | now
        if list(ordered) != list(now):
            now.clear()
            now.update(ordered)
        self.module._record.provisional = self.provisional
        self.module._record.removed = self.removed


class _NoOthersBefore:
    """The names of all attributes of a module that is being built."""

    __slots__ = ("module", "names")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = {name for name, _ in attributes_of(module)}

    def restore(self, _mine: Container[Build]) -> None:
        """Take out what is new, by whatever way it came."""
        for name, _ in attributes_of(self.module):
            if name not in self.names:
                put_attribute(self.module, name, ABSENT)


class _LifecycleBefore:
    """What the record of a module says of building and sealing."""

    __slots__ = ("fields", "record")

    def __init__(self, module: Module) -> None:
        self.record = module._record
        self.fields = [(name, getattr(self.record, name)) for name in _LIFECYCLE]

    def restore(self, _mine: Container[Build]) -> None:
        """Put it back, and forget what was concluded from it."""
        for name, value in self.fields:
            setattr(self.record, name, value)
        self.record.contract = self.record.declared = None


class _VariableBefore:
    """One Variable before a build wrote to it."""

    __slots__ = ("held", "variable", "written_at")

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.held = variable._value, variable._version, variable._about, variable._schema
        self.written_at = 0
        """The version after the last write of the build."""

    def note_write(self) -> None:
        """Note that the build is about to write."""
        self.written_at = self.variable._version + 1

    def restore(self, _mine: Container[Build]) -> None:
        """Put it back, unless somebody else has written to it since."""
        variable = self.variable
        with variable._lock:
            if variable._version <= self.written_at:
                variable._value, variable._version, variable._about, variable._schema = self.held


def _put_name(names: dict[Any, None], name: str | int, *, is_in: bool) -> None:
    """Put a name among others, or take it out."""
    if is_in:
        names[name] = None
    else:
        names.pop(name, None)

"""Variables that an update adds: found holders first, then all of them or none."""

from __future__ import annotations

from contextlib import ExitStack
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import DataError, SchemaError, StateError
from synmod.leaves.frozen import frozen
from synmod.leaves.names import KeyPath, path_str
from synmod.tree.states.faults import Fault
from synmod.tree.variable.containers import DICTS
from synmod.tree.variable.variable import Variable
from synmod.tree.variable.variable_state import VariableState
from synmod.tree.walking.edits import EDITS
from synmod.tree.walking.node_types import get_node_impl
from synmod.tree.walking.steps import bad_key
from synmod.tree.walking.walk import Visit, walk

if TYPE_CHECKING:
    from synmod.tree.states.layout import Misfit

_REFUSALS = (TypeError, ValueError, LookupError, AttributeError)
"""What a holder may raise that does not take a key."""


class Addition(NamedTuple):
    """One new Variable and the visit of its holder."""

    path: KeyPath
    holder: Visit
    variable: Variable

    @property
    def key(self) -> Any:
        """The last step."""
        return self.path[-1]


class Additions:
    """New Variables for unknown paths.

    Args:
        root: The program.
        lost: Paths nobody knows, with what was given for them.
        skip: Whether what no holder can take is left out instead of refused.
    """

    def __init__(self, root: Any, lost: list[tuple[Misfit, Any]], *, skip: bool) -> None:
        self.faults: list[Fault] = []
        self._additions: list[Addition] = []
        self._places: dict[tuple[int, str], Addition] = {}
        if not lost:
            return
        holders = _Holders(root)
        for misfit, given in lost:
            holder = holders.at(misfit.holder) if misfit.kind == "unknown" else None
            if holder is None or not _can_hold(holder, misfit.path[-1]):
                if not skip:
                    self.faults.append(Fault(len(self.faults), f"Cannot set key {path_str(misfit.path)!r}"))
                continue
            try:
                self._add(Addition((*holder.path, misfit.path[-1]), holder, _variable(given)))
            except (DataError, SchemaError) as error:
                self.faults.append(Fault(len(self.faults), f"{path_str(misfit.path)!r}: {error}"))

    def _add(self, addition: Addition) -> None:
        """Note one; two paths may lead to one place."""
        place = id(addition.holder.value), str(addition.key)
        before = self._places.setdefault(place, addition)
        if before is addition:
            self._additions.append(addition)
        elif before.key != addition.key or before.variable.to_state() != addition.variable.to_state():
            where = f"{path_str(before.path)!r} and {path_str(addition.path)!r}"
            self.faults.append(Fault(len(self.faults), f"{where}: two different values for one Variable"))

    def make(self) -> list[KeyPath]:
        """Add them all; where a holder refuses, take back what was added.

        Raises:
            StateError: A holder does not take its key (contains 'Cannot set key').
        """
        with ExitStack() as taking_back:  # goes on where a holder refuses even that
            for each in self._additions:
                taking_back.callback(_take_back, each)
                try:
                    _put(each)
                except _REFUSALS as error:
                    raise StateError(f"update: Cannot set key {path_str(each.path)!r}: {error}") from error
            taking_back.pop_all()
        if self._additions:
            EDITS.bump()
        return [each.path for each in self._additions]


class _Holders:
    """What may hold something in a program, by path; alias paths lead to where a node was first."""

    def __init__(self, root: Any) -> None:
        self._visits = [visit for visit in walk(root) if visit.kind in ("node", "container")]
        self._below = {(id(visit.above), visit.step): visit for visit in self._visits}
        self._first = {id(visit.value): visit for visit in self._visits if visit.first}

    def at(self, path: KeyPath) -> Visit | None:
        """Go down step by step."""
        visit = self._visits[0] if self._visits else None
        for step in path:
            visit = self._below.get((id(visit), step))
            if visit is None:
                return None
            if visit.kind == "node":
                visit = self._first[id(visit.value)]
        return visit


def _can_hold(holder: Visit, key: Any) -> bool:
    """Tell whether a Variable may come to stand at a key, beside the keys that are there."""
    value, added = holder.value, (key, None)
    if holder.kind == "container":
        return type(value) in DICTS and bad_key([*value.items(), added], may_repeat=False) is None
    impl = get_node_impl(value)
    if not impl.is_module:
        return bad_key([*impl.pairs(value), added], may_repeat=True) is None
    return isinstance(key, str) and key.isidentifier() and not iskeyword(key) and _is_free(value, key)


def _is_free(node: object, name: str) -> bool:
    """Tell whether an attribute would hide nothing of the node's class."""
    return not hasattr(type(node), name)


def _variable(given: Any) -> Variable:
    if isinstance(given, VariableState):
        return given.to_variable()
    if isinstance(given, Variable):
        raise DataError("a Variable is no value: give its `.value` or `.to_state()`")
    return Variable(frozen(given))


def _put(addition: Addition) -> None:
    """Add one; the node around a dict is told by setting its attribute anew, so that it seals itself again."""
    holder = addition.holder
    if holder.kind == "node":
        get_node_impl(holder.value).set_key(holder.value, addition.key, addition.variable)
        return
    holder.value[addition.key] = addition.variable
    tell_owner(holder)


def _take_back(addition: Addition) -> None:
    """Take one out again, as far as it came to be added."""
    holder, key = addition.holder, addition.key
    if holder.kind == "node":
        impl = get_node_impl(holder.value)
        if any(child is addition.variable for _, child in impl.pairs(holder.value)):
            impl.pop_key(holder.value, key)
    elif holder.value.pop(key, None) is not None:
        tell_owner(holder)


def tell_owner(container: Visit) -> None:
    """Set the attribute that holds a container anew, on the node that has it."""
    attribute = container
    while attribute.above is not None and attribute.above.kind != "node":
        attribute = attribute.above
    if attribute.above is not None:
        owner = attribute.above.value
        get_node_impl(owner).set_key(owner, attribute.step, attribute.value)

"""The structure of a module: edits of attributes, builds that are kept or undone as a whole, and sealing.

A build begun inside another is kept or undone together with the outermost one. A ContextVar holds the build that the
running code is part of.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, Self

from synmod import leaves, scope
from synmod.errors import ArgumentError, BuildError, ConfigError, GraphError, SealedError, SkipNameError
from synmod.tree import KNOWN, STATIC, PathTable, Static, Variable, class_of, is_token, outdate, own_impl, variables

from .record import ABSENT, LABELS, ModuleRecord, attribute_of, extend_paths, held, structural_attributes, where

if TYPE_CHECKING:
    from .module import Module

_BUILDING: ContextVar[Build | None] = ContextVar("synmod_building", default=None)

_LOCK = leaves.aio.lock()
"""Guards `record.building`, the builds' `befores` and `waits_for`; held for a few instructions, never across an await.
Reentrant: a coroutine that the garbage collector closes while the lock is held may end a build."""

# -- snapshots that a failed build restores ---------------------------------------------------------------------------

_FIELDS: Final = (
    *LABELS, "arguments", "build_config", "built", "flow", "layout", "made_in_build", "ready", "reassigned", "removed",
    "sealed", "statics",
)  # fmt: skip
_EXTENDED: Final = (list, deque)
_UPDATED: Final = (set, dict, OrderedDict, defaultdict)
"""Mutable plain containers, by the method that fills an empty one."""


class Before:
    """A snapshot of a module: its attributes, the plain containers in them, the fields of its record."""

    __slots__ = ("_containers", "_fields", "module")

    def __init__(self, module: Module) -> None:
        self.module = module
        self._fields = {name: copy.copy(getattr(module._record, name)) for name in _FIELDS}
        self._containers: list[tuple[Any, Any]] = []
        seen: set[int] = set()
        pending: list[Any] = [module.__dict__]
        while pending:
            x = pending.pop()
            cls = class_of(x)
            if id(x) in seen:
                continue
            seen.add(id(x))
            if cls in _EXTENDED or cls in _UPDATED:
                content = copy.copy(x)
                self._containers.append((x, content))
                pending += content.values() if issubclass(cls, dict) else content
            elif issubclass(cls, tuple | frozenset):
                pending += x
            elif dataclasses.is_dataclass(cls) and own_impl(cls) is None:
                fields = [
                    (each.name, getattr(x, each.name)) for each in dataclasses.fields(cls) if hasattr(x, each.name)
                ]
                self._containers.append((x, fields))
                pending += [getattr(x, "__dict__", None), *(value for _, value in fields)]

    def restore(self) -> None:
        """Restore the module."""
        record = self.module._record
        for name, value in self._fields.items():
            setattr(record, name, value)
        record.contract = record.declared = None
        for container, content in self._containers:
            if dataclasses.is_dataclass(container):
                for name, value in content:
                    object.__setattr__(container, name, value)  # also of a frozen one
                continue
            container.clear()
            container.extend(content) if class_of(container) in _EXTENDED else container.update(content)


# -- running builds ---------------------------------------------------------------------------------------------------


class Build:
    """A running build, of one module or (None) of a whole tree: a block that code can be part of.

    On success inside another build, its snapshots pass to that one; the outermost build makes all modules ready. On an
    error, everything is undone.
    """

    __slots__ = ("_token", "befores", "module", "outer", "over", "values", "waits_for")

    def __init__(self, module: Module | None = None) -> None:
        self.module = module
        self.outer = current_build()
        self.over = leaves.Signal()
        self.befores: dict[int, Before] = {}
        """Snapshots of the changed modules, by id, in order of their first change."""
        self.values: dict[int, tuple[Variable, Any]] = {}
        """The changed Variables, by id, each with its snapshot."""
        self.waits_for: list[Build] = []
        """The builds that code of this build waits for."""
        self._token: Token[Build | None] | None = None

    def remember(self, module: Module) -> None:
        """Take a snapshot of a module that is about to change, unless there is one."""
        if id(module) not in self.befores:
            self.befores[id(module)] = Before(module)

    def __enter__(self) -> Self:
        self._token = _BUILDING.set(self)
        if self.module is not None:
            self.remember(self.module)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with _LOCK:
                around = self.around
                if kind is not None or around is None:
                    self._end(kept=kind is None)
                else:
                    for key, before in self.befores.items():
                        around.befores.setdefault(key, before)
                    for key, value in self.values.items():
                        around.values.setdefault(key, value)
        finally:
            self.over.set()
            if self._token is not None:
                scope.reset(_BUILDING, self._token)

    def _end(self, *, kept: bool) -> None:
        """Make all modules of this build ready, or restore them."""
        befores = list(self.befores.values())
        if kept:
            for before in befores:
                extend_paths(before.module)
        else:
            for before in reversed(befores):
                before.restore()
            for variable, snapshot in self.values.values():
                variable.restore(snapshot)
        for before in befores:
            record = before.module._record
            if record.building is not None and self in record.building.chain():
                record.building = None
            if kept:
                record.ready = record.built and record.sealed and record.building is None
        self.befores, self.values = {}, {}
        frame = scope.current_call()
        own = frame.root.paths if kept and frame is not None else None
        for before in befores:  # path tables of other programs that list these modules are outdated
            outdate(before.module._record, own if isinstance(own, PathTable) else None)

    def undo_lost(self) -> None:
        """Undo the builds of the chain whose loop was closed before they ended."""
        for build in self.chain():
            if build.over.is_lost:
                build._end(kept=False)
                build.over.set()

    @property
    def around(self) -> Build | None:
        """The nearest enclosing build that still runs; a task may outlive the build that it was started in."""
        outer = self.outer
        while outer is not None and outer.over.is_set:
            outer = outer.outer
        return outer

    def chain(self) -> list[Build]:
        """Return this build and the enclosing builds that still run, from the inside out."""
        chain: list[Build] = [self]
        while (around := chain[-1].around) is not None:
            chain.append(around)
        return chain

    @property
    def outermost(self) -> Build:
        """The build that this one is kept or undone with."""
        return self.chain()[-1]


class _GivesWay(BaseException):
    """Ends an outermost build that would deadlock with another one; it starts again after the other has ended.

    Not an Exception, so that `except Exception` in user code does not catch it.
    """

    def __init__(self, other: Build) -> None:
        super().__init__()
        self.other = other


def gave_way_to(error: BaseException) -> Build | None:
    """Return the build that the outermost build must await before it starts again; None for any other error."""
    if current_build() is not None:
        return None
    while isinstance(error, BaseExceptionGroup):  # of a task group in a `build`
        group: BaseExceptionGroup[_GivesWay] | None = error.subgroup(_GivesWay)  # pyright: ignore[reportUnknownMemberType]
        if group is None:
            return None
        error = group.exceptions[0]
    return error.other if isinstance(error, _GivesWay) else None


def current_build() -> Build | None:
    """Return the innermost build that the running code is part of, if it has not ended; None outside."""
    build = _BUILDING.get()
    return build if build is None or not build.over.is_set else build.around


def remember(module: Module) -> bool:
    """Take a snapshot of a module, before it changes, for the current build; return whether there is one."""
    build = current_build()
    if build is not None:
        build.remember(module)
    return build is not None


def remember_variable(variable: Variable) -> None:
    """Take a snapshot of a Variable, before it changes, for the current build."""
    build = current_build()
    if build is not None:
        build.values.setdefault(id(variable), (variable, variable.snapshot()))


def running_own_build(record: ModuleRecord) -> Build | None:
    """Return the build of this module if its body is running, in which `super().build()` runs the base's body."""
    build = current_build()
    return build if build is not None and build.module is not None and build.module._record is record else None


def is_building_tree() -> bool:
    """Whether the running code is part of `sm.build`."""
    build = current_build()
    return build is not None and any(each.module is None for each in build.chain())


def is_ready_here(record: ModuleRecord) -> bool:
    """Whether the module is built for the running code: for all callers, or by the outermost build around both."""
    if record.ready:
        return True
    build, current = record.building, current_build()
    return build is not None and build.over.is_set and current is not None and build.outermost is current.outermost


def is_built_here(record: ModuleRecord) -> bool:
    """Whether the module's own build is done; for code outside, only after the outermost build has ended."""
    return record.built and (record.building is None or is_ready_here(record))


def take_turn(module: Module) -> tuple[Build | None, Build | None]:
    """Begin the build of a module, or return the build to wait for.

    Returns:
        `(own, None)` to run a new build, `(None, other)` to wait, `(None, None)` if the module is built.

    Raises:
        BuildError: The running code is part of the other build, or of one that the other waits for.
        _GivesWay: Two outermost builds would wait for one another.
    """
    record, current = module._record, current_build()
    with _LOCK:
        if record.building is not None:
            record.building.undo_lost()
        other = record.building
        if other is None:
            if not record.built:
                record.building = Build(module)
            return record.building, None
        if current is None:
            return None, other.outermost
        chain, same = current.chain(), other.outermost is current.outermost
        target = other if same else other.outermost
        if _leads_to(target, chain):
            if same:
                raise waits_for_itself(module)
            raise _GivesWay(target)
        for build in chain:
            build.waits_for.append(target)
        return None, target


def _leads_to(start: Build, goals: list[Build]) -> bool:
    """Whether a build is one of the goals, or waits for one, directly or through others."""
    return start in goals or any(_leads_to(each, goals) for each in start.waits_for)


async def wait_for(other: Build) -> None:
    """Wait until a build has ended; then remove it from `waits_for`, where `take_turn` has put it."""
    current = current_build()
    try:
        await other.over.wait()
    finally:
        with _LOCK:
            for build in () if current is None else current.chain():
                if other in build.waits_for:
                    build.waits_for.remove(other)


def waits_for_itself(module: Module) -> BuildError:
    """Return the error for a build that would wait for its own end."""
    current = current_build()
    builders = [] if current is None else [where(each.module) for each in reversed(current.chain()) if each.module]
    return BuildError(
        f"{where(module)} waits for itself: it is being built, and that needs {' > '.join(builders) or 'the module'}, "
        "which needs it. Build one of them first: `await sm.build(module, Schema)`."
    )


# -- attributes -------------------------------------------------------------------------------------------------------


def set_attribute(module: Module, name: str, value: Any) -> None:
    """Set one attribute.

    Raises:
        SealedError: The module is built, and the assignment would change its structure.
        GraphError: The attribute holds a Variable, and the value is not one.
        ConfigError: The name is one of `Module`, which the attribute would hide.
        AttributeError: The name is a dunder name.
    """
    if name.startswith("__") and name.endswith("__") and name != "__class__":
        raise AttributeError(f"{name!r} cannot be set on a module")  # such as `__orig_class__`, set by typing
    record = module._record
    if name in record.declaration.reserved:
        raise ConfigError(
            f"class {type(module).__name__}: the attribute {name!r} would hide `Module.{name}`; choose another "
            f"name, such as {record.declaration.default_name}_{name}."
        )
    in_build = (record.constructed or record.sealed) and remember(module)
    if isinstance(getattr(class_of(module), name, None), property):
        object.__setattr__(module, name, value)  # its setter does the rest
        if record.constructed and not in_build and name not in LABELS:
            record.reassigned[name] = None
        return
    if not isinstance(value, Variable) and isinstance(attribute_of(module, name), Variable):
        raise GraphError(
            f"{where(module)}: attribute {name!r} holds a Variable: set its value by `module.{name}.assign(json)`."
        )
    swaps = record.sealed and _check_assignment(module, name, value)
    if record.constructed and not in_build:
        record.reassigned[name] = None
    if isinstance(value, Static):
        record.statics[name] = None
        value = value.value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        record.statics.pop(name, None)
    object.__setattr__(module, name, value)
    record.removed.pop(name, None)
    if swaps:
        note_edit(module)


def delete_attribute(module: Module, name: str) -> None:
    """Delete one attribute.

    Raises:
        SealedError: The module is built, and the attribute is or holds a node or a Variable.
        AttributeError: There is no such attribute.
    """
    record = module._record
    if record.sealed and name not in record.declaration.hidden and _holds_any(_in_graph(module, name)):
        raise SealedError(_text(module, name, f"cannot delete attribute {name!r}"))
    in_build = remember(module)
    object.__delattr__(module, name)
    record.statics.pop(name, None)
    if record.constructed and not in_build:
        record.removed[name] = None


# -- Variables --------------------------------------------------------------------------------------------------------


def add_variable(module: Module, kind: type[Variable], **given: Any) -> Variable:
    """Make a Variable and store it as the attribute of its name, or `name_1`, ... if that is taken."""
    refuse_if_sealed(module, given["name"] or "variable", "cannot add a Variable")
    if not isinstance(kind, type) or not issubclass(kind, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{where(module)}: type={kind!r} is not a Variable type; use sm.Param, sm.Memory, ...")
    variable = kind(**given)
    if variable.name is None:
        variable.name = _name_of(variable.schema.get("title"))
    restored = module._record.restored or set[str]()
    attribute = leaves.unused(variable.name, {*module.__dict__, *dir(class_of(module))} - restored)
    if attribute in restored:  # made by an earlier build and restored by a load
        restored.discard(attribute)
        return attribute_of(module, attribute)
    object.__setattr__(module, attribute, variable)
    return variable


def _name_of(title: Any) -> str:
    """Return a schema's title in snake case, or `variable` if that is not an identifier."""
    words = re.sub(r"\W+", "_", leaves.snake_case(title)).strip("_") if isinstance(title, str) else ""
    name = leaves.snake_case(words) if words else ""  # again: adds an underscore to a keyword
    return name if name.isidentifier() else "variable"


def get_variable(module: Module, name: str | None, index: int | None) -> Variable:
    """Return one Variable by its name, or by its index in `variables`."""
    if (name is None) == (index is None):
        raise ArgumentError(f"{where(module)}: get_variable takes exactly one of name and index.")
    live = module.variables
    if index is not None:
        leaves.check_int(f"{where(module)}: get_variable: index", index, None)
        if not -len(live) <= index < len(live):
            raise GraphError(f"{where(module)}: no Variable at index {index!r}; there are {len(live)}.")
        return live[index]
    named = {path: each for path, each in variables(module).items() if each.name == name and each in live}
    if len(named) == 1:
        return next(iter(named.values()))
    if named:
        raise GraphError(
            f"{where(module)}: {len(named)} Variables are named {name!r}: {', '.join(named)}. Get one by its path."
        )
    names = [str(each.name) for each in live]
    raise GraphError(
        f"{where(module)}: no Variable is named {name!r}.{leaves.did_you_mean(str(name), names)} "
        f"Its Variables: {', '.join(names) or 'none'}."
    )


# -- sealing ----------------------------------------------------------------------------------------------------------


def seal(module: Module) -> None:
    """Close the structure of a module. A built module becomes ready, unless it is part of a running build."""
    record = module._record
    if not record.sealed:
        remember(module)
        record.layout = layout_of(structural_attributes(module))
        record.sealed = True
    record.ready = record.built and record.building is None


def layout_of(attributes: Iterable[tuple[str | int, Any]]) -> dict[str | int, Any]:
    """Return the nodes and Variables that attributes are or hold, each with its place and identity.

    The layout keeps each alive, so that its identity is not reused. By-reference nodes are compared by kind only, since
    one may replace another. Hot: made for every module of a merge, and compared in every split.
    """
    layout: dict[str | int, Any] = {}
    for name, value in [each for each in attributes if KNOWN.get(type(each[1])) != STATIC]:  # pyright: ignore[reportUnknownArgumentType]
        parts = [(at, 0, own_impl(class_of(x))) if _is_by_reference(x) else (at, id(x), x) for at, x in held(value)]
        if parts:
            layout[name] = parts
    return layout


def check_layout(module: Module) -> None:
    """Raise SealedError if a sealed module was changed directly, in a container or in `__dict__`."""
    record = module._record
    if not record.sealed or record.layout is None:
        return
    before, now = record.layout, layout_of(structural_attributes(module))
    if now != before:
        name = next(name for name in (*before, *now) if before.get(name) != now.get(name))
        raise SealedError(_text(module, str(name), f"the content of attribute {name!r} was changed"))


def refuse_if_sealed(module: Module, attribute: str, fault: str) -> None:
    """Raise SealedError if `module` is sealed, else let a build remember the module.

    Args:
        module: The module to be changed.
        attribute: The attribute to be changed.
        fault: What is refused, such as 'cannot add a member'.
    """
    if module._record.sealed:
        raise SealedError(_text(module, attribute, fault))
    remember(module)


def note_edit(module: Module) -> None:
    """Accept the present content of a sealed module as its structure; its path tables are rebuilt when next needed."""
    record = module._record
    record.layout = layout_of(structural_attributes(module))
    record.version += 1
    outdate(record)


def _check_assignment(module: Module, name: str, value: Any) -> bool:
    """Check an assignment to a sealed module: it may not change the structure, but may swap by-reference nodes.

    Returns:
        Whether it swaps by-reference nodes of one kind.

    Raises:
        SealedError: The assignment would add, replace or remove another node or a Variable.
    """
    old = _in_graph(module, name)
    if value is old or name in module._record.declaration.hidden or not (_holds_any(value) or _holds_any(old)):
        return False
    # a by-reference node has no state, so it may replace one of its kind, or None
    swapped = [x for x in (old, value) if x is not None]
    if not all(map(_is_by_reference, swapped)) or len({id(own_impl(class_of(x))) for x in swapped}) > 1:
        raise SealedError(_text(module, name, f"cannot assign attribute {name!r}"))
    return True


def _in_graph(module: Module, name: str) -> Any:
    """Return an attribute as it is in the graph: ABSENT if static, the default of the class if unset."""
    if name in module._record.statics:
        return ABSENT
    value = attribute_of(module, name)
    return getattr_static(class_of(module), name, ABSENT) if value is ABSENT else value


def _holds_any(value: Any) -> bool:
    """Whether `value` is or holds a node or a Variable."""
    return next(held(value), None) is not None


def _is_by_reference(x: object) -> bool:
    impl = own_impl(class_of(x))
    return impl is not None and impl.by_reference


def _text(module: Module, attribute: str, fault: str) -> str:
    path = leaves.path_str((*filter(None, (module.path,)), attribute))
    remedy = "Make children and Variables in __init__, or in build if they depend on the schema."
    if isinstance(attribute_of(module, attribute), Variable):
        remedy = f"The value of the Variable can be changed: `module.{attribute}.assign(json)`."
    return f"{path} ({type(module).__name__}): {fault} after the build, which seals the structure. {remedy}"


# -- Namespaces of skips ----------------------------------------------------------------------------------------------


def namespaced(module: Module, names: Iterable[str]) -> Iterator[tuple[Any, str]]:
    """Return an iterator over the `(namespace, name)` pairs of names, sorted by name."""
    return ((module._record.isolated.get(name), name) for name in sorted(names))


def isolate(module: Module, namespace: Any) -> None:
    """Put the declared skip names of a module into a Namespace.

    Raises:
        ArgumentError: `namespace` is not a Namespace.
        SkipNameError: The module declares no skips.
        SealedError: The module is built.
    """
    record = module._record
    if not is_token(namespace):
        raise ArgumentError(f"{where(module)}: isolate takes a synmod.skip.Namespace, got {namespace!r:.100}.")
    skips = record.declaration.skips
    if skips is None or not skips.names:
        raise SkipNameError(
            f"{where(module)}: isolate needs declared skip names, and the class has none. Declare them with "
            "@skippable(stash=[...], pop=[...]) on the class."
        )
    if record.sealed:
        raise SealedError(
            f"{where(module)}: cannot isolate skips, since the structure is sealed by the build. Call isolate in "
            "__init__, or before the first call."
        )
    remember(module)
    record.isolated = {**record.isolated, **dict.fromkeys(skips.names, namespace)}
    outdate(record)

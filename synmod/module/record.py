"""What one module keeps beside the user's attributes, and its attributes as they are.

The record is also what a frame knows of its module (`name`, `training_default`), so that `scope` never sees a Module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from synmod.leaves.names import KeyPath
from synmod.scope import CallCounters, Hook, TraceNode
from synmod.tree import DICT, KNOWN, NODE, STATIC, TREE, VARIABLE, Kinds, PathTable, numbered, take_apart

Module: TypeAlias = Any
"""What the files below `module` call a module in their annotations: the class itself stands above them."""

LABELS = frozenset({"name", "description", "trainable", "hooks", "isolated"})
"""Fields of the record that `Module` shows under the same names."""

NO_NAMES: frozenset[str] = frozenset()
_NONE_ISOLATED: Mapping[str, Any] = {}


class ModuleRecord:
    """Bookkeeping of one module: labels, constructor arguments, build, contract, counters. Never shown as a child.

    Its sets of names are dicts without values: they keep their order, and an empty one is small.
    """

    __slots__ = (
        "arguments",
        "build_config",
        "building",
        "built",
        "constructed",
        "contract",
        "counters",
        "declaration",
        "declared",
        "description",
        "flow",
        "given",
        "home",
        "hooks",
        "isolated",
        "layout",
        "listed_in",
        "made_in_build",
        "name",
        "paths",
        "ready",
        "reassigned",
        "recorded",
        "removed",
        "restored",
        "runner",
        "sealed",
        "statics",
        "trainable",
        "version",
    )

    def __init__(
        self,
        declaration: Any,
        name: str,
        description: str,
        trainable: bool = True,
        arguments: Mapping[str, Any] | None = None,
        given: tuple[str, str, bool] | None = None,
        build_config: Mapping[str, Any] | None = None,
        built: bool = False,
        sealed: bool = False,
        made_in_build: frozenset[str] = NO_NAMES,
        flow: Any = None,
        isolated: Mapping[str, Any] = _NONE_ISOLATED,
        constructed: bool = False,
    ) -> None:
        self.declaration = declaration
        """The ClassDeclaration of its class."""
        self.arguments = arguments
        """Constructor arguments by parameter; None for a module that was not made by calling its class."""
        self.name = name
        self.description = description
        self.trainable = trainable
        self.hooks: tuple[Hook, ...] = ()
        self.runner: Any = declaration.runner
        """Runs `call` where skips are declared here or below; see `skips`."""
        self.isolated = isolated
        """The Namespace of each skip name that was put into one."""
        self.given = given
        """Name, description and trainable as the constructor left them."""
        self.constructed = constructed
        self.reassigned: dict[str, None] = {}
        self.removed: dict[str, None] = {}
        self.made_in_build = made_in_build
        self.building: Any = None
        """The Build under way, or that ended well inside one under way; None outside."""
        self.built = built
        self.ready = False
        """Built and sealed for everybody: the one test of a call."""
        self.restored: set[str] | None = None
        """A load has put back what `build` made, so that building again only marks the module as built."""
        self.statics: dict[str, None] = {}
        """Attributes that were set to `static(x)`; they read as x."""
        self.sealed = sealed
        self.layout: dict[str | int, Any] | None = None
        """What the containers held when the structure was sealed."""
        self.version = 0
        self.counters = CallCounters()
        self.build_config = build_config
        self.contract: Any = None
        """The Contract of its inputs; None until it is needed."""
        self.declared: Any = None
        """The DeclaredOutputs; None until they are needed."""
        self.flow = flow
        """The graph of a functional program: a record of the flow room."""
        self.listed_in: WeakValueDictionary[int, PathTable] | None = None
        """The tables of paths that list the module."""
        self.paths: PathTable | None = None
        """As an entry module: where everything below stands."""
        self.recorded: TraceNode | None = None
        """As an entry module: its last call that a trace has recorded."""
        self.home: str | None = None
        """The path below the root that built this module last; None until there was one."""

    @property
    def training_default(self) -> bool:
        """The default of `training` in the signature of `call`."""
        return self.declaration.call.training_default


def attributes_of_build(module: Module) -> frozenset[str]:
    """Return the names of the attributes that the module's own `build` assigned.

    A file does not hold their plain values: a load makes them again by `build`.
    """
    return module._record.made_in_build


ABSENT: Final[Any] = object()
"""Stands for: there is no such attribute."""


def attributes_of(module: Module) -> list[tuple[str, Any]]:
    """All attributes with their values, ignored ones included; from any thread, as of one moment."""
    slots = module._record.declaration.slots
    held = list(module.__dict__.items())
    return [*_filled(module, slots), *held] if slots else held


def _filled(module: Module, slots: tuple[tuple[str, Any], ...]) -> Iterator[tuple[str, Any]]:
    for name, slot in slots:
        try:
            yield name, slot.__get__(module)
        except AttributeError:
            continue


def structural_attributes(module: Module) -> list[tuple[str, Any]]:
    """The attributes that can be part of the graph: neither ignored, nor static, nor made by `cached_property`."""
    record = module._record
    hidden, statics = record.declaration.hidden, record.statics
    pairs = attributes_of(module)
    if not hidden and not statics:
        return pairs
    return [(name, value) for name, value in pairs if name not in hidden and name not in statics]


def attribute_of(module: Module, name: str | int) -> Any:
    """One attribute, read without running a property; ABSENT where there is none."""
    for slot_name, slot in module._record.declaration.slots:
        if slot_name == name:
            try:
                return slot.__get__(module)
            except AttributeError:
                return ABSENT
    held: dict[Any, Any] = module.__dict__  # a Sequential has int names
    return held.get(name, ABSENT)


def put_attribute(module: Module, name: str | int, value: Any) -> None:
    """Set one attribute as it is, or take it out (ABSENT); nothing is checked, no property runs."""
    held: dict[Any, Any] = module.__dict__
    slots = module._record.declaration.slots
    if slots and any(slot_name == name for slot_name, _ in slots):
        _put_in_slot(module, str(name), value)
    elif value is ABSENT:
        held.pop(name, None)
    else:
        held[name] = value


def _put_in_slot(module: Module, name: str, value: Any) -> None:
    if value is not ABSENT:
        object.__setattr__(module, name, value)
        return
    try:
        object.__delattr__(module, name)
    except AttributeError:
        pass


_LEAVES = frozenset({NODE, VARIABLE})


def held(value: Any) -> Iterator[tuple[KeyPath, Any, int]]:
    """Yield the nodes and Variables that `value` is or holds, with their paths below it and kinds; nodes stay shut."""
    kinds = Kinds(KNOWN)
    kind = kinds[type(value)]
    if kind in _LEAVES:
        yield (), value, kind
        return
    todo: list[tuple[KeyPath, Any, int]] = [((), value, kind)]
    seen: set[int] = set()
    while todo:
        at, container, kind = todo.pop()
        if kind == STATIC or id(container) in seen:
            continue
        seen.add(id(container))
        for key, part in _items(container, kind):
            kind = kinds[type(part)]
            if kind in _LEAVES:
                yield (*at, key), part, kind
            elif kind != STATIC:
                todo.append(((*at, key), part, kind))


def _items(container: Any, kind: int) -> list[tuple[Any, Any]]:
    if kind == DICT:
        return list(container.items())
    return take_apart(container)[0] if kind == TREE else numbered(container)


def where(module: Module) -> str:
    """Return the path of a module (of a root, its name) and its class, as messages name it."""
    return f"{module.path or module.name!r} ({type(module).__name__})"


def kind_text(x: Any) -> str:
    """Return the class of something, with its article."""
    if isinstance(x, type):
        return f"the class {x.__name__}"
    name = type(x).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"

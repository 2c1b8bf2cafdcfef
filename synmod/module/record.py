"""The bookkeeping of one module beside the user's attributes; reading attributes, and paths below a root.

A frame refers to its module by the record (`name`, `training_default`), so that `scope` need not know Module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from synmod import errors, leaves, scope, tree

if TYPE_CHECKING:
    from synmod.flow import FlowGraph

    from .contract import Contract, DeclaredOutputs
    from .declaring import ClassDeclaration, SkipRunner
    from .module import Module
    from .transactions import Build


@dataclass(frozen=True, slots=True)
class InVariable:
    """A recorded argument whose value a Variable of the same name holds; files hold it in the state alone."""

    argument: Any


LABELS = frozenset({"name", "description", "trainable", "hooks", "isolated"})
"""Fields of the record with properties or methods of the same name on `Module`."""


@dataclass(slots=True, eq=False, repr=False)
class ModuleRecord:
    """The bookkeeping of one module: labels, constructor arguments, build, contract, counters. Never a child.

    Sets of names are dicts without values: they keep their order, and an empty one is small.
    """

    declaration: ClassDeclaration
    name: str
    description: str
    trainable: bool = True
    arguments: Mapping[str, Any] | None = None
    """Constructor arguments by parameter; None for a module that was not made by calling its class."""
    constructed_labels: tuple[str, str, bool] | None = None
    """Name, description and trainable at the end of the constructor."""
    build_config: Mapping[str, Any] | None = None
    built: bool = False
    sealed: bool = False
    made_in_build: frozenset[str] = frozenset()
    """The attributes that the module's own `build` assigned; files do not hold their plain values."""
    flow: FlowGraph | None = None
    """The graph of a functional program."""
    isolated: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The Namespace of each isolated skip name."""
    constructed: bool = False
    hooks: tuple[scope.Hook, ...] = ()
    runner: SkipRunner | None = None
    """Runs `call` if the class declares skips; else None."""
    reassigned: dict[str, None] = field(default_factory=dict[str, None])
    """The attributes that were assigned after construction, outside `build`."""
    removed: dict[str, None] = field(default_factory=dict[str, None])
    building: Build | None = None
    """The running build, or one that ended well inside a running one; None outside."""
    ready: bool = False
    """Built and sealed for all callers: the only check of a call."""
    restored: set[str] | None = None
    """The Variables of an earlier `build` that a load has restored, which the next `build` takes over; else None."""
    statics: dict[str, None] = field(default_factory=dict[str, None])
    """Attributes that were set to `static(x)`; they read as x."""
    layout: dict[str | int, Any] | None = None
    """The nodes and Variables in the attributes when the structure was sealed."""
    version: int = 0
    counters: scope.CallCounters = field(default_factory=scope.CallCounters)
    contract: Contract | None = None
    """The requirements on the inputs; None until they are needed."""
    declared: DeclaredOutputs | None = None
    """The declared outputs; None until they are needed."""
    listed_in: WeakValueDictionary[int, tree.PathTable] | None = None
    """The path tables that list the module."""
    paths: tree.PathTable | None = None
    """The paths of everything below an entry module."""
    recorded: scope.TraceNode | None = None
    """The last call of an entry module that a trace has recorded."""
    home: str | None = None
    """The path below the root that built this module last; None until then."""

    def __post_init__(self) -> None:
        self.runner = self.declaration.runner

    @property
    def label(self) -> str:
        """The name if one was given, "" if it is the default of the class."""
        return "" if self.name == self.declaration.default_name else self.name

    @property
    def training_default(self) -> bool:
        """The default of `training` in the signature of `call`."""
        return self.declaration.call.training_default


# -- attributes --------------------------------------------------------------------------------------------------------

ABSENT: Final[Any] = object()
"""The value of a missing attribute."""


def attributes_of(module: Module) -> list[tuple[Any, Any]]:
    """Return all attributes with their values, including ignored ones; an atomic snapshot, from any thread."""
    return list(module.__dict__.items())


def structural_attributes(module: Module) -> list[tuple[Any, Any]]:
    """Return the attributes that can be part of the graph: not ignored, static, or cached by `cached_property`."""
    hidden, statics = module._record.declaration.hidden, module._record.statics
    pairs = attributes_of(module)
    return [pair for pair in pairs if pair[0] not in hidden and pair[0] not in statics] if hidden or statics else pairs


def children(module: Module) -> list[tuple[Any, Any]]:
    """Return the attributes in definition order, without the hidden ones; static values are wrapped in `Static`."""
    hidden, statics = module._record.declaration.hidden, module._record.statics
    pairs = attributes_of(module)
    if not hidden and not statics:
        return pairs
    return [(name, tree.Static(value) if name in statics else value) for name, value in pairs if name not in hidden]


def attribute_of(module: Module, name: str | int) -> Any:
    """Return one attribute, without running a property; ABSENT if it is missing."""
    attributes: dict[Any, Any] = vars(module)  # a Sequential has int names
    return attributes.get(name, ABSENT)


def graph_parts(value: Any) -> Iterator[tuple[leaves.KeyPath, Any]]:
    """Yield the nodes and Variables that `value` is or holds, with their paths below it; does not enter nodes."""
    visited: set[int] = set()
    pending: list[tuple[leaves.KeyPath, Any]] = [((), value)]
    while pending:
        at, x = pending.pop()
        kind = tree.kind_of(x)
        if kind in (tree.NODE, tree.VARIABLE):
            yield at, x
        elif kind != tree.STATIC and id(x) not in visited:
            visited.add(id(x))
            pending += [
                ((*at, key), part) for key, part in (enumerate(x) if kind == tree.SET else leaves.parts_of(x)[0])
            ]


# -- names in messages -------------------------------------------------------------------------------------------------


def where(module: Module, at: str | None = None) -> str:
    """Return a text with the path of a module (for a root its name), its label if one was given, and its class."""
    path: str = module.path if at is None else at
    return f"{leaves.with_label(path, module._record.label) or module.name!r} ({type(module).__name__})"


def kind_text(x: Any) -> str:
    """Return the class of an object, with an article."""
    if isinstance(x, type):
        return f"the class {x.__name__}"
    name = type(x).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


# -- paths -------------------------------------------------------------------------------------------------------------


def paths_below(root: Module) -> tree.PathTable:
    """Return the paths below an entry module; `call_module` takes those of its record while they are current."""
    table = tree.path_table(root)
    _note_homes(table, (root._record, *table.located))
    return table


def extend_paths(module: Module) -> None:
    """Add new content of a module that was just built or sealed to the path table of the running entry call."""
    frame = scope.current_call()
    table = None if frame is None else frame.run.paths
    if frame is None or not isinstance(table, tree.PathTable):
        return
    record = module._record
    own = table.get(id(record))
    record.home = prefix = frame.path if own is None else own
    if own is None:  # made inside a call: it has no path below the entry module
        table = tree.PathTable()
    for name, value in structural_attributes(module):
        for below, part in graph_parts(value):
            if id(getattr(part, "_record", part)) not in table:
                _note_homes(table, table.add(tree.walk(part), prefix, (name, *below)))


def _note_homes(table: tree.PathTable, located: Iterable[Any]) -> None:
    """Set the home path of each module that has none yet."""
    for node in located:
        if isinstance(node, ModuleRecord) and node.home is None:
            node.home = table[id(node)]


def current_path(module: Module) -> str:
    """Return the path below the entry module of the running call; outside a call, below the root that built it last."""
    record = module._record
    frame = scope.current_call()
    return (record.home or "") if frame is None else frame.path_of(record)


def sow(module: Module, kind: type[tree.Variable], name: str, value: Any) -> bool:
    """Add a value to the open captures of its type; return whether there was one."""
    frame = scope.current_call()
    captures = () if frame is None or frame.symbolic else tree.open_captures(kind)
    if frame is None or not captures:
        return False
    leaves.check_name(name, "variable")
    try:
        json = leaves.frozen(value)
    except errors.DataError as error:
        raise errors.DataError(f"{where(module)}: sow of {name!r}: {error}") from None
    run, path = frame.run, current_path(module)
    steps = run.paths.steps_of(path) if isinstance(run.paths, tree.PathTable) else leaves.parse_path(path)
    giver = frame.innermost_of(module._record) or frame
    sown = tree.Sown(run.started, frame.root.id, giver.number, (*steps, name), kind, json)
    for capture in captures:
        capture.add(sown)
    return True

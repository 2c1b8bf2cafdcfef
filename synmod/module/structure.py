"""The structure of a module: its record beside the user's attributes, paths below a root, edits, and sealing.

A frame refers to its module by the record (`name`, `training_default`), so that `scope` need not know Module. A
build remembers each edit of the code that is part of it; a ContextVar holds the running build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from synmod import leaves, scope, tree
from synmod.errors import ArgumentError, ConfigError, DataError, GraphError, SealedError, SkipNameError
from synmod.tree import KNOWN, STATIC, Static, Variable, class_of, invalidate_paths, is_token, own_impl, variables

if TYPE_CHECKING:
    from synmod.flow import FlowGraph
    from synmod.skip.commands import Skippable

    from .contract import Contract, DeclaredOutputs
    from .declaring import ClassDeclaration
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
    runner: Skippable | None = None
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
    return [(name, Static(value) if name in statics else value) for name, value in pairs if name not in hidden]


def attribute_of(module: Module, name: str | int) -> Any:
    """Return one attribute, without running a property; ABSENT if it is missing."""
    attributes: dict[Any, Any] = vars(module)  # a Sequential has int names
    return attributes.get(name, ABSENT)


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
        for below, part in tree.graph_parts(value):
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


def sow(module: Module, kind: type[Variable], name: str, value: Any) -> bool:
    """Add a value to the open captures of its type; return whether there was one."""
    frame = scope.current_call()
    captures = () if frame is None or frame.symbolic else tree.open_captures(kind)
    if frame is None or not captures:
        return False
    leaves.check_name(name, "variable")
    try:
        json = leaves.frozen(value)
    except DataError as error:
        raise DataError(f"{where(module)}: sow of {name!r}: {error}") from None
    run, path = frame.run, current_path(module)
    steps = run.paths.steps_of(path) if isinstance(run.paths, tree.PathTable) else leaves.parse_path(path)
    giver = frame.innermost_of(module._record) or frame
    sown = tree.Sown(run.started, frame.root.id, giver.number, (*steps, name), kind, json)
    for capture in captures:
        capture.add(sown)
    return True


# -- the running build -------------------------------------------------------------------------------------------------


BUILDING: ContextVar[Build | None] = ContextVar("synmod_building", default=None)
"""The innermost build that the running code is part of; `Build` sets it."""


def current_build() -> Build | None:
    """Return the innermost build that the running code is part of, if it has not ended; None outside."""
    build = BUILDING.get()
    return build if build is None or not build.over.is_set else build.around


def remember(module: Module) -> bool:
    """Take a snapshot of a module, before it changes, for the current build; return whether there is one."""
    build = current_build()
    if build is not None:
        build.remember(module)
    return build is not None


# -- edits -------------------------------------------------------------------------------------------------------------


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
        AttributeError: The attribute is missing.
    """
    record = module._record
    if record.sealed and name not in record.declaration.hidden and tree.holds_node(_in_graph(module, name)):
        raise SealedError(_text(module, name, f"cannot delete attribute {name!r}"))
    in_build = remember(module)
    object.__delattr__(module, name)
    record.statics.pop(name, None)
    if record.constructed and not in_build:
        record.removed[name] = None


# -- Variables ---------------------------------------------------------------------------------------------------------


def add_variable(module: Module, kind: type[Variable], **options: Any) -> Variable:
    """Make a Variable and store it as the attribute of its name, or `name_1`, ... if that is taken."""
    refuse_if_sealed(module, options["name"] or "variable", "cannot add a Variable")
    if not isinstance(kind, type) or not issubclass(kind, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{where(module)}: type={kind!r} is not a Variable type; use sm.Param, sm.Memory, ...")
    variable = kind(**options)
    if variable.name is None:
        variable.name = _name_of(variable.schema.get("title"))
    restored = module._record.restored or set[str]()
    attribute = leaves.unique_name(variable.name, {*module.__dict__, *dir(class_of(module))} - restored)
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
    matches = {
        path: variable for path, variable in variables(module).items() if variable.name == name and variable in live
    }
    if len(matches) == 1:
        return next(iter(matches.values()))
    if matches:
        raise GraphError(
            f"{where(module)}: {len(matches)} Variables are named {name!r}: {', '.join(matches)}. Get one by its path."
        )
    names = [str(variable.name) for variable in live]
    raise GraphError(
        f"{where(module)}: no Variable is named {name!r}.{leaves.did_you_mean(str(name), names)} "
        f"Its Variables: {', '.join(names) or 'none'}."
    )


# -- sealing -----------------------------------------------------------------------------------------------------------


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
    for name, value in [pair for pair in attributes if KNOWN.get(type(pair[1])) != STATIC]:  # pyright: ignore[reportUnknownArgumentType]
        parts = [
            (at, 0, own_impl(class_of(x))) if _is_by_reference(x) else (at, id(x), x)
            for at, x in tree.graph_parts(value)
        ]
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
        fault: The refused change, such as 'cannot add a member'.
    """
    if module._record.sealed:
        raise SealedError(_text(module, attribute, fault))
    remember(module)


def note_edit(module: Module) -> None:
    """Accept the present content of a sealed module as its structure; its path tables are rebuilt when next needed."""
    record = module._record
    record.layout = layout_of(structural_attributes(module))
    record.version += 1
    invalidate_paths(record)


def _check_assignment(module: Module, name: str, value: Any) -> bool:
    """Check an assignment to a sealed module: it may not change the structure, but may swap by-reference nodes.

    Returns:
        Whether it swaps by-reference nodes of one kind.

    Raises:
        SealedError: The assignment would add, replace or remove another node or a Variable.
    """
    old = _in_graph(module, name)
    if value is old or name in module._record.declaration.hidden or not any(map(tree.holds_node, (value, old))):
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


def _is_by_reference(x: object) -> bool:
    impl = own_impl(class_of(x))
    return impl is not None and impl.by_reference


def _text(module: Module, attribute: str, fault: str) -> str:
    path = leaves.path_str((*filter(None, (module.path,)), attribute))
    remedy = "Make children and Variables in __init__, or in build if they depend on the schema."
    if isinstance(attribute_of(module, attribute), Variable):
        remedy = f"The value of the Variable can be changed: `module.{attribute}.assign(json)`."
    return f"{path} ({type(module).__name__}): {fault} after the build, which seals the structure. {remedy}"


# -- Namespaces of skips -----------------------------------------------------------------------------------------------


def pair_with_namespaces(module: Module, names: Iterable[str]) -> Iterator[tuple[Any, str]]:
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
    refuse_if_sealed(module, "isolated", "cannot isolate skips")
    record.isolated = {**record.isolated, **dict.fromkeys(skips.names, namespace)}
    invalidate_paths(record)

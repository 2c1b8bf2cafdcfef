"""Modules as nodes of `tree`: attributes are children, and a blueprint is what rebuilds a module without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from synmod import leaves, tree
from synmod.flow import FlowGraph, SymbolRef
from synmod.lm import SAMPLING, SharedModel

from . import structure
from .constructing import declaration_of
from .module import Module
from .structure import ModuleRecord, attributes_of, children, remember, structural_attributes


class Blueprint(NamedTuple):
    """A module without its children; a tuple, because a split makes one per module, and tuples are cheap.

    The fields from `name` to `isolated` are fields of the record, in the same order.
    """

    cls: type[Module]
    name: str
    description: str
    trainable: bool
    arguments: Mapping[str, Any] | None
    constructed_labels: tuple[str, str, bool] | None
    build_config: Mapping[str, Any] | None
    built: bool
    sealed: bool
    made_in_build: frozenset[str]
    flow: Any
    isolated: Mapping[str, Any]
    reassigned: frozenset[str]
    removed: tuple[str, ...]
    ignored: Mapping[str, Any]


_COPIED = Blueprint._fields[1:12]
_copied: Callable[[ModuleRecord], tuple[Any, ...]] = attrgetter(*_COPIED)
_REFERENCES = (tree.NodeRef, tree.VariableRef)


def with_references(fn: Callable[[Any], Any], value: Any) -> Any:
    """Return an argument with `fn(x)` in place of every leaf x; an unchanged container stays the same object."""
    if isinstance(value, _REFERENCES) or leaves.is_leaf(value) or tree.kind_of(value) in (tree.NODE, tree.VARIABLE):
        return fn(value)
    parts = leaves.flatten_one_level(value)
    new = [with_references(fn, part) for part in parts.children]
    return value if all(a is b for a, b in zip(new, parts.children, strict=True)) else parts.rebuild(new)


def _metadata(module: Module) -> Blueprint:
    """Return the blueprint of a module; for a sealed one, check first that its structure was not changed directly.

    Hot: called once per module of a split.
    """
    record = module._record
    if record.sealed:
        structure.check_layout(module)
    ignored = record.declaration.ignored
    return Blueprint(
        type(module),
        *_copied(record),
        reassigned=frozenset(record.reassigned),
        removed=tuple(record.removed),
        ignored={name: value for name, value in attributes_of(module) if name in ignored} if ignored else _NOTHING,
    )


_NOTHING: Mapping[str, Any] = {}


def _create_empty(blueprint: Blueprint) -> Module:
    """Make a module from a blueprint. Hot: called once per module of a merge."""
    module = _new(blueprint.cls)
    _put_record(module, ModuleRecord(declaration_of(blueprint.cls), *blueprint[1:12], constructed=True))
    if blueprint.reassigned or blueprint.removed or blueprint.ignored:
        _follow_names(module, blueprint)
    return module


_new: Any = object.__new__
_put_record: Any = vars(Module)["_record"].__set__


def _follow_names(module: Module, blueprint: Blueprint) -> None:
    """Copy the names and values of single attributes from a blueprint."""
    record = module._record
    record.reassigned = dict.fromkeys(blueprint.reassigned)
    record.removed = dict.fromkeys(blueprint.removed)
    vars(module).update(blueprint.ignored)


def _init(module: Module, pairs: list[tuple[Any, Any]]) -> None:
    record = module._record
    attributes: Any = module.__dict__
    for name, value in pairs:
        if type(value) is tree.Static:
            _put(module, name, value)
        else:
            attributes[name] = value
    if record.sealed:  # a new module holds nothing but `pairs`
        record.layout = structure.layout_of(pairs if record.layout is None else structural_attributes(module))
        record.ready = record.built


def _rewrite(module: Module, blueprint: Blueprint, pairs: list[tuple[Any, Any]]) -> None:
    """Change a module in place to match a blueprint and children; a running call keeps the objects it has read."""
    record = module._record
    before, was_sealed = (structure.layout_of(structural_attributes(module)), record.flow), record.sealed
    vars(module).clear()  # also cached values of `cached_property`, which are computed again
    for name, value in zip(_COPIED, blueprint[1:12], strict=True):
        setattr(record, name, value)
    record.statics, record.constructed = {}, True
    _follow_names(module, blueprint)
    record.contract = record.declared = None
    record.layout, record.ready = None, False
    record.sealed = blueprint.sealed or (was_sealed and blueprint.built)
    _init(module, pairs)
    if before != (structure.layout_of(structural_attributes(module)), record.flow):
        structure.note_edit(module)


def _unseal(module: Module) -> None:
    """Open a copy for editing."""
    record = module._record
    record.sealed = record.ready = False
    record.layout = None


def _adopt(module: Module, blueprint: Blueprint) -> None:
    """Set arguments, flow and Namespaces, after the objects that they refer to are made."""
    record = module._record
    record.arguments, record.flow, record.isolated = blueprint.arguments, blueprint.flow, blueprint.isolated


def _put(module: Module, name: Any, value: Any) -> None:
    if isinstance(value, tree.Static):
        module._record.statics[str(name)] = None
        value = value.value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    vars(module)[name] = value


def _set_key(module: Module, name: Any, value: Any) -> None:
    remember(module)
    _put(module, name, value)
    record = module._record
    record.removed.pop(name, None)
    if name in record.made_in_build:
        record.reassigned[name] = None
    if record.sealed:
        structure.note_edit(module)


def _pop_key(module: Module, name: Any) -> Any:
    remember(module)
    value = vars(module).pop(name)
    record = module._record
    record.removed[name] = None
    if record.sealed:
        structure.note_edit(module)
    return value


def _map_refs(blueprint: Blueprint, fn: Callable[[Any], Any]) -> Blueprint:
    if blueprint.flow is None and not blueprint.arguments and not blueprint.isolated:
        return blueprint
    originals = blueprint.arguments or _NOTHING
    mapped = {name: with_references(fn, value) for name, value in originals.items()}
    changed = {name: value for name, value in mapped.items() if value is not originals[name]}
    flow = None if blueprint.flow is None else blueprint.flow.map_constants(fn)
    isolated = {name: fn(namespace) for name, namespace in blueprint.isolated.items()}
    if not changed and not isolated and flow is blueprint.flow:
        return blueprint
    arguments = {**originals, **changed} if changed else blueprint.arguments
    return blueprint._replace(arguments=arguments, flow=flow, isolated=isolated or blueprint.isolated)


def _form_of_module(definition: tree.NodeDef) -> Any:
    blueprint: Blueprint = definition.metadata
    return {
        "labels": [blueprint.name, blueprint.description, blueprint.trainable],
        "built": blueprint.built,
        "build": {name: _tuples_to_lists(nest) for name, nest in (blueprint.build_config or {}).items()},
        "flow": None if blueprint.flow is None else _form_of_flow(blueprint.flow),
        **({"isolated": dict(blueprint.isolated)} if blueprint.isolated else {}),
    }


def _tuples_to_lists(nest: Any) -> Any:
    """Return a nest with lists in place of tuples, as in a file."""
    if leaves.is_sequence(nest):
        return [_tuples_to_lists(part) for part in nest]
    if leaves.is_object(nest):
        return {key: _tuples_to_lists(part) for key, part in nest.items()}
    return nest


def _form_of_flow(flow: FlowGraph) -> Any:
    """Return the parts of a program's graph to compare: schemas, labels and wiring, symbols by number."""

    def plain(nest: Any) -> Any:
        return leaves.map_leaves(lambda x: ("symbol", x.index) if isinstance(x, SymbolRef) else x, nest)

    return {
        "symbols": [(symbol.schema, symbol.name, symbol.optional) for symbol in flow.symbols],
        "inputs": plain(flow.inputs),
        "outputs": plain(flow.outputs),
        "steps": [
            (step.node, step.op, plain(step.args), plain(dict(step.kwargs)), plain(step.outputs)) for step in flow.steps
        ],
    }


def _form_of_model(definition: tree.NodeDef) -> Any:
    """Return the parts of a language model and its fallbacks to compare: those in files, without key and endpoint."""
    return [_form_of_settings(lm) for lm in definition.metadata.with_fallbacks()]


def _form_of_settings(lm: SharedModel) -> Any:
    settings = lm.settings
    sampling = {name: value for name, value in settings.defaults.items() if name in SAMPLING}
    numbers = settings.attempts, settings.timeout_s, settings.repairs, settings.limit and settings.limit.numbers()
    lengths = settings.batch_size, settings.dimensions
    # a file gives the second of two models with the same name the suffix `#2`
    name, *fallback = [model.name.partition("#")[0] for model in (lm, *lm.fallback)]
    return name, settings.model, settings.structured, numbers, lengths, sampling, fallback


tree.register_impl(
    tree.NodeImpl(
        Module,
        flatten=lambda module: (children(module), _metadata(module)),
        set_key=_set_key,
        pop_key=_pop_key,
        create_empty=_create_empty,
        init=_init,
        children=children,
        metadata=_metadata,
        own_trainable=attrgetter("_record.trainable"),
        map_refs=_map_refs,
        adopt=_adopt,
        compared=_form_of_module,
        rewrite=_rewrite,
        record=attrgetter("_record"),
        unseal=_unseal,
        unbuilt=lambda module: not module.built,
        is_module=True,
        subclasses=True,
    )
)
tree.register_impl(
    tree.NodeImpl(SharedModel, flatten=lambda lm: ((), lm), by_reference=True, compared=_form_of_model, subclasses=True)
)

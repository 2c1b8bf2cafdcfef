"""How the walk sees a module: its attributes without bookkeeping, and the blueprint that makes it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, cast

from synmod.errors import GraphError
from synmod.flow import FlowGraph, SymbolRef
from synmod.leaves.nests import is_leaf, map_leaves, take_apart
from synmod.lm import SAMPLING, LanguageModel
from synmod.tree import NODE, VARIABLE, NodeDef, NodeImpl, NodeRef, Static, VariableRef, kind_of, register_impl

from .constructing import declaration_of
from .module import Module
from .record import ModuleRecord, attributes_of, structural_attributes
from .structure import check_layout, layout_of, note_edit, remember


class Blueprint(NamedTuple):
    """A module without its children; a tuple, because a split makes one for each module, and tuples are cheap.

    The fields from `name` to `isolated` are those of the record, in its order.
    """

    cls: type[Module]
    name: str
    description: str
    trainable: bool
    arguments: Mapping[str, Any] | None
    given: tuple[str, str, bool] | None
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
_REFERENCES = (NodeRef, VariableRef)


def with_references(fn: Callable[[Any], Any], value: Any) -> Any:
    """Return an argument with `fn(x)` in place of every leaf x; an unchanged container stays the same object."""
    if isinstance(value, _REFERENCES) or is_leaf(value) or kind_of(value) in (NODE, VARIABLE):
        return fn(value)
    parts = take_apart(value)
    new = [with_references(fn, part) for part in parts.children]
    return value if all(a is b for a, b in zip(new, parts.children, strict=True)) else parts.rebuild(new)


def children(module: Module) -> list[tuple[Any, Any]]:
    """The attributes of a module in definition order, without those that are ignored."""
    hidden, statics = module._record.declaration.hidden, module._record.statics
    pairs = attributes_of(module)
    if not hidden and not statics:
        return pairs
    return [(name, Static(value) if name in statics else value) for name, value in pairs if name not in hidden]


def _metadata(module: Module) -> Blueprint:
    """Everything but the children, which are looked at for changes behind the back of a sealed module.

    Hot: one for each module of a split.
    """
    record = module._record
    if record.sealed:
        check_layout(module)
    ignored = record.declaration.ignored
    return Blueprint(
        type(module),
        *_copied(record),
        reassigned=frozenset(record.reassigned),
        removed=tuple(record.removed),
        ignored={name: value for name, value in attributes_of(module) if name in ignored} if ignored else _NOTHING,
    )


_NOTHING: Mapping[str, Any] = {}


def _create_empty(made: Blueprint) -> Module:
    """Make a module of a blueprint. Hot: one for each module of a merge."""
    module = _new(made.cls)
    _put_record(module, ModuleRecord(declaration_of(made.cls), *made[1:12], constructed=True))
    if made.reassigned or made.removed or made.ignored:
        _follow_names(module, made)
    return module


_new: Any = object.__new__
_put_record: Any = vars(Module)["_record"].__set__


def _follow_names(module: Module, made: Blueprint) -> None:
    """Copy what a blueprint notes of single attributes."""
    record = module._record
    record.reassigned = dict.fromkeys(made.reassigned)
    record.removed = dict.fromkeys(made.removed)
    vars(module).update(made.ignored)


def _init(module: Module, pairs: list[tuple[Any, Any]]) -> None:
    record = module._record
    attributes: Any = module.__dict__
    for name, value in pairs:
        if type(value) is Static:
            _put(module, name, value)
        else:
            attributes[name] = value
    if record.sealed:  # what is new holds nothing else
        record.layout = layout_of(pairs if record.layout is None else structural_attributes(module))
        record.ready = record.built


def _rewrite(module: Module, made: Blueprint, pairs: list[tuple[Any, Any]]) -> None:
    """Become in place what a blueprint and children say; whoever calls the module meanwhile keeps what it holds."""
    record = module._record
    before, was_sealed = (layout_of(structural_attributes(module)), record.flow), record.sealed
    vars(module).clear()  # with what `cached_property` left, which follows from the rest
    for name, value in zip(_COPIED, made[1:12], strict=True):
        setattr(record, name, value)
    record.statics, record.constructed = {}, True
    _follow_names(module, made)
    record.contract = record.declared = None
    record.layout, record.ready = None, False
    record.sealed = made.sealed or (was_sealed and made.built)
    _init(module, pairs)
    if before != (layout_of(structural_attributes(module)), record.flow):
        note_edit(module)


def _unseal(module: Module) -> None:
    """Open a copy for editing."""
    record = module._record
    record.sealed = record.ready = False
    record.layout = None


def _adopt(module: Module, made: Blueprint) -> None:
    """Take over arguments, flow and Namespaces, when the objects that they lead to are made."""
    record = module._record
    record.arguments, record.flow, record.isolated = made.arguments, made.flow, made.isolated


def _put(module: Module, name: Any, value: Any) -> None:
    if isinstance(value, Static):
        module._record.statics[str(name)] = None
        value = value.value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    vars(module)[name] = value


def _set_key(module: Module, name: Any, value: Any) -> None:
    remember(module)
    _put(module, name, value)
    record = module._record
    record.removed.pop(name, None)
    if record.sealed:
        note_edit(module)


def _pop_key(module: Module, name: Any) -> Any:
    remember(module)
    value = vars(module).pop(name)
    record = module._record
    record.removed[name] = None
    if record.sealed:
        note_edit(module)
    return value


def _map_refs(made: Blueprint, fn: Callable[[Any], Any]) -> Blueprint:
    if made.flow is None and not made.arguments and not made.isolated:
        return made
    given = made.arguments or _NOTHING
    mapped = {name: with_references(fn, value) for name, value in given.items()}
    changed = {name: value for name, value in mapped.items() if value is not given[name]}
    flow = None if made.flow is None else made.flow.map_constants(fn)
    isolated = {name: fn(namespace) for name, namespace in made.isolated.items()}
    if not changed and not isolated and flow is made.flow:
        return made
    arguments = {**given, **changed} if changed else made.arguments
    return made._replace(arguments=arguments, flow=flow, isolated=isolated or made.isolated)


def _compared(definition: NodeDef) -> Any:
    made: Blueprint = definition.metadata
    return {
        "labels": [made.name, made.description, made.trainable],
        "built": made.built,
        "build": {name: _listed(nest) for name, nest in (made.build_config or {}).items()},
        "flow": None if made.flow is None else _flow_compared(made.flow),
        **({"isolated": dict(made.isolated)} if made.isolated else {}),
    }


def _listed(nest: Any) -> Any:
    """A nest with lists for tuples, as a file has them."""
    if isinstance(nest, list | tuple):
        return [_listed(part) for part in cast("list[Any]", nest)]
    if isinstance(nest, dict):
        return {key: _listed(part) for key, part in cast("dict[str, Any]", nest).items()}
    return nest


def _flow_compared(flow: FlowGraph) -> Any:
    """What of a program's graph counts: schemas, labels and wiring, symbols by number."""

    def plain(nest: Any) -> Any:
        return map_leaves(lambda x: ("symbol", x.index) if isinstance(x, SymbolRef) else x, nest)

    return {
        "symbols": [(symbol.schema, symbol.name, symbol.optional) for symbol in flow.symbols],
        "inputs": plain(flow.inputs),
        "outputs": plain(flow.outputs),
        "steps": [
            (step.node, step.op, plain(step.args), plain(dict(step.kwargs)), plain(step.gives)) for step in flow.steps
        ],
    }


def _model_compared(definition: NodeDef) -> Any:
    """What of a language model counts: what a file holds of one, no key and no endpoint."""
    lm: LanguageModel = definition.metadata
    settings = lm.settings
    sampling = {name: value for name, value in settings.defaults.items() if name in SAMPLING}
    numbers = settings.attempts, settings.timeout_s, settings.repairs
    name = settings.name.partition("#")[0]  # of two models of one name a file marks the second by `#2`
    return name, settings.model, settings.structured, numbers, sampling


def _has_no_children(lm: Any, *_: Any) -> None:
    raise GraphError(f"{lm!r} is a language model: it has no children, and only a load makes one.")


register_impl(
    NodeImpl(
        Module,
        flatten=lambda module: (children(module), _metadata(module)),
        set_key=_set_key,
        pop_key=_pop_key,
        create_empty=_create_empty,
        init=_init,
        children=children,
        metadata=_metadata,
        own_trainable=lambda module: module._record.trainable,
        map_refs=_map_refs,
        adopt=_adopt,
        compared=_compared,
        rewrite=_rewrite,
        record=lambda module: module._record,
        unseal=_unseal,
        unbuilt=lambda module: not module.built,
        is_module=True,
        subclasses=True,
    )
)
register_impl(
    NodeImpl(
        LanguageModel,
        flatten=lambda lm: ((), lm),
        set_key=_has_no_children,
        pop_key=_has_no_children,
        create_empty=_has_no_children,
        by_reference=True,
        compared=_model_compared,
        subclasses=True,
    )
)

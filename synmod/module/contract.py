"""What a module demands of its inputs: annotations of `call`, `input_spec`, the schemas it was built on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from synmod.data import JsonDataModel, contains, is_subschema, schema_of, symbol, validate
from synmod.errors import SchemaError
from synmod.flow import LEAF, MAPPING, SEQUENCE, NestPath, kind_of, leaves, pack
from synmod.module.building import inputs_by_parameter, is_ready_here
from synmod.module.interface.known import ANY_CLASS, KnownSchemas
from synmod.module.interface.misfit import Demand, misfit, other_structure, shape
from synmod.module.interface.nests import is_datum, paired, step_text, symbols_of, title_of_schema
from synmod.module.interface.where import where

if TYPE_CHECKING:
    from synmod.module.interface.signatures import Parameter
    from synmod.module.module import Module

_UNSET: Final = object()
_BUILT_ON: Final = "the schema it was built on"


class Contract:
    """The demands of one module, with the schemas already known to meet them.

    `known` answers the common call, one argument whose schema was seen before, by one lookup.
    """

    __slots__ = ("annotated", "built_on", "is_empty", "known", "spec")

    def __init__(self, module: Module) -> None:
        record = module._record
        call = record.declaration.call
        self.annotated = any(p.model for p in (*call.positional, *call.named.values(), call.rest, call.others) if p)
        held = _spec_of(module)
        self.spec = None if held is _UNSET else symbols_of(held, f"{where(module)}: input_spec")
        self.built_on: Mapping[str, Any] | None = None
        if held is _UNSET and record.declaration.defines_build and record.flow is None and is_ready_here(record):
            self.built_on = record.build_config
        self.known = KnownSchemas()
        self.is_empty = not (self.annotated or self.spec is not None or self.built_on)

    def check(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise SchemaError unless the arguments meet every demand."""
        by_schema = True
        for demand in self._demands(module, args, kwargs):
            if not is_datum(demand.leaf):
                raise other_structure(module, demand.place, demand.leaf, title_of_schema(demand.schema), demand.origin)
            by_schema &= _meet(module, demand)
        if by_schema and len(args) == 1 and not kwargs and type(args[0]) is JsonDataModel:
            self.known = self.known.plus(args[0], args[0]._model if self.annotated else ANY_CLASS)

    def _demands(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Demand]:
        call = module._record.declaration.call
        if self.annotated:
            for index, argument in enumerate(args):
                yield from _annotated(module, call.parameter(index), argument, f"argument {index}")
            for name, argument in kwargs.items():
                yield from _annotated(module, call.keyword(name), argument, f"argument {name!r}")
        if self.spec is not None:
            yield from _specified(module, self.spec, args, kwargs)
        if self.built_on:
            yield from _built_on(module, self.built_on, args, kwargs)


def input_spec_of(module: Module) -> Any:
    """The nest of symbols that `module.input_spec` shows; None where nothing is demanded."""
    contract = Contract(module)
    if contract.spec is not None or not contract.built_on:
        return contract.spec
    nests = tuple(contract.built_on.values())
    return nests[0] if len(nests) == 1 else nests


def declared_inputs(module: Module) -> Any:
    """What `module` declares to take, as a nest of symbols: Inputs, `input_spec`, an annotation; None for nothing."""
    flow = module._record.flow
    if flow is not None:
        declared = (flow.symbols[ref.index] for ref in leaves(flow.inputs))
        return pack(flow.inputs, (symbol(each.schema, each.data_model, each.name) for each in declared))
    spec = input_spec_of(module)
    if spec is not None:
        return spec
    first = module._record.declaration.call.parameter(0)
    return None if first is None or first.model is None else symbol(schema_of(first.model), first.model)


def _spec_of(module: Module) -> Any:
    """What was set as `input_spec`: on the instance, on the class, or by a property of the class."""
    held = vars(module).get("input_spec", _UNSET)
    if held is not _UNSET:
        return held
    return getattr(module, "_class_input_spec", _UNSET)


def _annotated(module: Module, parameter: Parameter | None, argument: Any, place: str) -> Iterator[Demand]:
    """What an annotation with a data model demands: that the argument contains it."""
    if parameter is None or parameter.model is None or argument is None:
        return
    model = parameter.model
    origin = f"`{parameter.name}: {model.__name__}` of call"
    if kind_of(argument) != LEAF:
        raise other_structure(module, place, argument, model.__name__, origin)
    yield Demand(schema_of(model), model, origin, place, argument)


def _specified(module: Module, spec: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Demand]:
    """What `input_spec` demands: of the first argument, or of all of them in order or by name."""
    call = module._record.declaration.call
    names = [p.name for p in call.positional]
    given = dict.fromkeys(call.named) | dict.fromkeys(names) | dict(zip(names, args, strict=False)) | dict(kwargs)
    inputs = [*(given[name] for name in names), *args[len(names) :]] or list(given.values())
    ways = [(spec, inputs[0] if inputs else None, "argument 0")]
    if kind_of(spec) == SEQUENCE and not any(argument is not None for argument in inputs[len(spec) :]):
        ways.append((list(spec), inputs[: len(spec)], "argument"))
    if kind_of(spec) == MAPPING and all(name in given for name in spec):
        ways.append((spec, {name: given[name] for name in spec}, "argument"))
    if len(inputs) > 1:
        ways.reverse()
    for wanted, nest, first in ways:
        pairs = paired(wanted, nest)
        if pairs is not None:
            for path, symbol, leaf in pairs:
                yield Demand(symbol._schema, None, "input_spec", _place(first, path), leaf)
            return
    raise other_structure(module, "the arguments", args if len(args) != 1 else args[0], shape(spec), "input_spec")


def _built_on(
    module: Module, built_on: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[Demand]:
    """What a module was built on, which its state depends on."""
    given = inputs_by_parameter(module._record.declaration.build, args, kwargs)
    for name, spec in built_on.items():
        if name not in given:
            continue
        place, argument = given[name]
        pairs = paired(spec, argument)
        if pairs is None:
            raise other_structure(module, place, argument, shape(spec), _BUILT_ON)
        for path, wanted, leaf in pairs:
            yield Demand(wanted._schema, None, _BUILT_ON, _place(place, path), leaf)


def _place(first: str, path: NestPath) -> str:
    """Name a place: what the first step is of, then a step after the other."""
    if first == "argument" and path:
        return f"argument {path[0]!r}{''.join(map(step_text, path[1:]))}"
    return f"{first}{''.join(map(step_text, path))}"


def _meet(module: Module, demand: Demand) -> bool:
    """Check one leaf: True if its schema alone meets the demand, so that no other value of it need be checked."""
    model, leaf = demand.model, demand.leaf
    given = leaf._schema
    is_value = isinstance(leaf, JsonDataModel)
    if model is None:
        fits = given is demand.schema or is_subschema(given, demand.schema)
    else:
        fits = contains(given, demand.schema)
        if fits and is_value and not (leaf._model is not None and issubclass(leaf._model, model)):
            fits = False  # not made from an instance: the class's own validators have not run
    if fits:
        return True
    if not is_value:
        raise misfit(module, demand)
    try:
        if model is None:
            validate(demand.schema, leaf._json, f"{where(module)}: {demand.place}")
        else:
            leaf.to(model)  # what the class declares, checked against its schema and by its validators
    except SchemaError as error:
        raise misfit(module, demand, error) from None
    return False


def check_inputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise SchemaError unless the inputs meet the contract of the module."""
    record = module._record
    contract = record.contract
    if contract is None:
        contract = Contract(module)
        if record.ready:  # before that, what it was built on may still be undone
            record.contract = contract
    if not contract.is_empty:
        contract.check(module, args, kwargs)

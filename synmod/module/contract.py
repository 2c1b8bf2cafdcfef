"""What a module demands of its inputs: annotations of `call`, `input_spec`, the schemas it was built on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.data.contain import contains
from synmod.data.declare import schema_of
from synmod.data.model import DataModel
from synmod.data.schema import Schema
from synmod.data.subtype import is_subschema
from synmod.data.validate import validate
from synmod.data.value import JsonDataModel
from synmod.errors import SchemaError
from synmod.flow.nest import MAPPING, SEQUENCE, aligned, is_leaf, kind_of
from synmod.module.building import is_ready_here
from synmod.module.inputs import where
from synmod.module.nests import symbols_of

if TYPE_CHECKING:
    from synmod.module.module import Module

_MOST_KNOWN = 256
ANY_CLASS = object()
"""Stands for: whatever class the value was made from."""
MISS = object()
"""What no value was made from: the answer of `known` for a schema not seen before."""


class Demand(NamedTuple):
    """One leaf to be checked: what is demanded, by what, and the argument it is demanded of.

    A `model` is demanded to be contained: further fields are welcome. Without one the leaf must be of the schema.
    """

    schema: Schema
    model: type[DataModel] | None
    origin: str
    place: str
    leaf: Any


class Contract:
    """The demands of one module, with the schemas already known to meet them.

    `known` answers the common call, one argument whose schema was seen before, by one lookup: schema id to the class
    that the value must be made from, or ANY_CLASS.
    """

    __slots__ = ("_alive", "built_on", "is_empty", "known", "models", "rest_model", "spec")

    def __init__(self, module: Module) -> None:
        record = module._record
        call = record.declaration.call
        self.models = {p.name: p.model for p in call.positional if p.model is not None}
        self.rest_model = call.rest.model if call.rest is not None else None
        held = vars(module).get("input_spec", getattr(type(module), "_class_input_spec", _UNSET))
        self.spec = None if held is _UNSET else symbols_of(held, f"{where(module)}: input_spec")
        lifted = held is not _UNSET
        self.built_on: Mapping[str, Any] | None = None
        if not lifted and record.declaration.defines_build and record.flow is None and is_ready_here(record):
            self.built_on = record.build_config
        self.known: dict[int, Any] = {}
        self._alive: list[Schema] = []  # an id is a schema's own only as long as the schema lives
        self.is_empty = not (self.models or self.rest_model or self.spec is not None or self.built_on)

    def check(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise SchemaError unless the arguments meet every demand."""
        by_schema = True
        for demand in self._demands(module, args, kwargs):
            if demand.leaf is not None:
                by_schema &= _meet(module, demand)
        if by_schema and len(args) == 1 and not kwargs and type(args[0]) is JsonDataModel:
            self._remember(args[0])

    def _remember(self, value: JsonDataModel[Any]) -> None:
        """Let the next value of this schema (and class, where a class is demanded) pass by one lookup."""
        known, alive = self.known, self._alive
        if len(known) >= _MOST_KNOWN:
            known, alive = {}, []
        self.known = {**known, id(value._schema): value._model if self.models or self.rest_model else ANY_CLASS}
        self._alive = [*alive, value._schema]

    def _demands(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Demand]:
        call = module._record.declaration.call
        if self.models or self.rest_model:
            for index, argument in enumerate(args):
                parameter = call.parameter(index)
                model = parameter.model if parameter is not None else None
                if parameter is not None and model is not None:
                    yield _annotated(module, parameter.name, model, argument, f"argument {index}")
            for name, argument in kwargs.items():
                if name in self.models:
                    yield _annotated(module, name, self.models[name], argument, f"argument {name!r}")
        if self.spec is not None:
            yield from _specified(module, self.spec, "input_spec", args, kwargs)
        if self.built_on:
            yield from _built_on(module, self.built_on, args, kwargs)


_UNSET = object()


def input_spec_of(module: Module) -> Any:
    """The nest of symbols that `module.input_spec` shows; None where nothing is demanded."""
    contract = Contract(module)
    if contract.spec is not None:
        return contract.spec
    if not contract.built_on:
        return None
    nests = tuple(contract.built_on.values())
    return nests[0] if len(nests) == 1 else nests


def _annotated(module: Module, name: str, model: type[DataModel], argument: Any, place: str) -> Demand:
    if not is_leaf(argument):
        raise SchemaError(
            f"{where(module)}: {place}: got a {type(argument).__name__}, wanted one {model.__name__}, "
            f"which `{name}: {model.__name__}` of call demands."
        )
    return Demand(schema_of(model), model, f"`{name}: {model.__name__}` of call", place, argument)


def _specified(
    module: Module, spec: Any, origin: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[Demand]:
    pairs = aligned(spec, args[0]) if len(args) == 1 and not (kwargs and kind_of(spec)) else None
    if pairs is None and kind_of(spec) == SEQUENCE:
        pairs = aligned(tuple(spec), args)
    if pairs is None and kind_of(spec) == MAPPING:
        call = module._record.declaration.call
        named = {p.name: argument for p, argument in zip(call.positional, args, strict=False)}
        pairs = aligned(spec, named | {k: v for k, v in kwargs.items() if k in spec})
    if pairs is None:
        if all(argument is None for argument in args):
            return
        raise SchemaError(
            f"{where(module)}: the arguments {_shape(args)} have another structure than {origin} {_shape(spec)}."
        )
    for path, wanted, leaf in pairs:
        if wanted is not None:
            place = "argument 0" if not path else "argument " + "/".join(map(str, path))
            yield Demand(wanted._schema, None, origin, place, leaf)


def _built_on(
    module: Module, built_on: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[Demand]:
    origin = "the schema it was built on"
    for index, (name, spec) in enumerate(built_on.items()):
        if name in kwargs:
            argument, place = kwargs[name], f"argument {name!r}"
        elif index < len(args):
            argument, place = args[index], f"argument {index}"
        else:
            continue
        if spec is None or argument is None:
            continue
        pairs = aligned(spec, argument)
        if pairs is None:
            raise SchemaError(
                f"{where(module)}: {place} {_shape(argument)} has another structure than what it was built on, "
                f"{_shape(spec)}."
            )
        for path, wanted, leaf in pairs:
            if wanted is not None:
                yield Demand(wanted._schema, None, origin, place + "".join(f", {step!r}" for step in path), leaf)


def _shape(nest: Any) -> str:
    """Show a nest by the titles of its leaves."""
    if nest is None:
        return "None"
    if is_leaf(nest):
        return str(getattr(nest, "name", None) or type(nest).__name__)
    if kind_of(nest) == MAPPING:
        return "{" + ", ".join(f"{key!r}: {_shape(item)}" for key, item in nest.items()) + "}"
    return "(" + ", ".join(map(_shape, nest)) + ")"


def _meet(module: Module, demand: Demand) -> bool:
    """Check one leaf: True if its schema alone meets the demand, so that no other value of it need be checked."""
    model = demand.model
    leaf: Any = demand.leaf
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
        raise _misfit(module, demand)
    try:
        if model is None:
            validate(demand.schema, leaf._json, f"{where(module)}: {demand.place}")
        else:
            leaf.to(model)  # what the class declares, checked against its schema and by its validators
    except SchemaError as error:
        raise _misfit(module, demand, error) from None
    return False


def _misfit(module: Module, demand: Demand, cause: SchemaError | None = None) -> SchemaError:
    """The error of an argument against its demand: path, argument, fields that differ, what demanded it."""
    wanted, got = demand.schema, demand.leaf._schema
    lines = [
        f"{where(module)}: {demand.place}: got {_title(demand.leaf._schema)}, "
        f"wanted {_title(wanted)}, demanded by {demand.origin}.",
        *_differences(wanted, got, closed=demand.model is None),
    ]
    if cause is not None and cause.errors:
        lines += [f"  {p.pointer or '(root)'}: wanted {p.wanted}, got {p.got}" for p in cause.errors]
    return SchemaError("\n".join(lines), cause.errors if cause is not None else ())


def _title(schema: Mapping[str, Any]) -> str:
    fields = ", ".join(schema.get("properties", {}))
    return f"{schema.get('title', 'a value')}({fields})"


def _differences(wanted: Schema, got: Schema, *, closed: bool) -> Iterator[str]:
    declared: Mapping[str, Any] = wanted.get("properties", {})
    present: Mapping[str, Any] = got.get("properties", {})
    missing = [name for name in declared if name not in present and name in wanted.get("required", ())]
    unexpected = [name for name in present if name not in declared]
    other = [
        f"{name!r} is {present[name].get('type', 'other')}, wanted {declared[name].get('type', 'other')}"
        for name in declared
        if name in present and present[name].get("type") != declared[name].get("type")
    ]
    if missing:
        yield f"  missing: {', '.join(map(repr, missing))}"
    if unexpected and closed and wanted.get("additionalProperties") is False:
        yield f"  unexpected: {', '.join(map(repr, unexpected))}"
    if other:
        yield f"  other type: {'; '.join(other)}"

"""The inputs and outputs of a call: nests of data, checked against signatures and declarations.

A nest is data, None, or lists, tuples, dicts and other containers of data. Speed: the common check, of one value whose
schema was seen before, is one lookup, which `call_module` makes inline.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeGuard

from pydantic import BaseModel

from synmod import data, tree
from synmod.data import DataModel, JsonDataModel, Schema, SymbolicDataModel, is_subschema, schema_of, symbol
from synmod.errors import ArgumentError, CallError, DataError, NoCallError, SchemaError
from synmod.flow import fields_text
from synmod.leaves import KeyPath, did_you_mean, nests

from .signatures import POSITIONAL, SPECS, UNDECLARED, CallSignature
from .structure import kind_text, where
from .transactions import is_ready_here

if TYPE_CHECKING:
    from .module import Module

DATA: Final = (JsonDataModel, SymbolicDataModel)
_UNSET: Final = object()


# -- names in messages -------------------------------------------------------------------------------------------------


def title_of(schema: Mapping[str, Any]) -> str:
    """Return the title of a schema, else its fields."""
    return str(schema.get("title") or f"an object with {', '.join(schema.get('properties', {})) or 'no field'}")


class Unquoted(str):
    """A str whose repr has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def shape(nest: Any) -> str:
    """Show a nest by the titles of its leaves."""
    return str(
        nests.map_leaves(lambda leaf: Unquoted(title_of(leaf._schema) if is_datum(leaf) else type(leaf).__name__), nest)
    )


def place_of(argument: int | str, path: KeyPath = ()) -> str:
    """Name a place in the arguments: `argument 0, key 'docs', index 2`."""
    steps = (f", key {step!r}" if isinstance(step, str) else f", index {step}" for step in path)
    return f"argument {argument!r}{''.join(steps)}"


# -- nests -------------------------------------------------------------------------------------------------------------


def is_datum(leaf: Any) -> TypeGuard[JsonDataModel[Any] | SymbolicDataModel]:
    """Whether a leaf is a value or a symbol."""
    return isinstance(leaf, DATA)


def leaves_of_any(x: Any) -> list[Any]:
    """Return the leaves of any object; a container that holds itself is one leaf."""
    try:
        return nests.leaves(x)
    except CallError:
        return [x]


def is_data(nest: Any) -> bool:
    """Whether a nest holds only values, symbols and None."""
    return all(leaf is None or isinstance(leaf, DATA) for leaf in leaves_of_any(nest))


def is_nothing(nest: Any) -> bool:
    """Whether a nest is None, or is not empty and holds only None."""
    parts = leaves_of_any(nest)
    return bool(parts) and all(leaf is None for leaf in parts)


def fresh(nest: Any) -> Any:
    """Return a nest with a fresh symbol in place of every value and symbol."""
    return nests.map_leaves(lambda x: symbol(x._schema, x._model, x._label) if is_datum(x) else x, nest)


def is_declaration(x: Any) -> bool:
    """Whether an object is a declaration of data other than a schema."""
    if isinstance(x, type):
        return hasattr(x, "model_fields")
    return isinstance(x, JsonDataModel | SymbolicDataModel | DataModel)


def symbols_of(spec: Any, at: str) -> Any:
    """Return a nest of declarations as the same nest of fresh symbols.

    Args:
        spec: Data model classes, instances or values, symbols, schemas, None; lists, tuples and dicts of them. A dict
            that holds a data model or a symbol at any depth is a nest, any other dict is a schema.
        at: The name of the declaration, for messages.

    Raises:
        ArgumentError: A leaf does not declare data.
        SchemaError: A schema is unusable.
    """
    if nests.kind_of(spec) == nests.MAPPING and not any(map(is_declaration, nests.leaves(spec))):
        return symbol(data.declare(spec), None)
    if nests.kind_of(spec) != nests.LEAF:
        parts = nests.flatten_one_level(spec)
        return parts.rebuild([symbols_of(part, at) for part in parts.children])
    if spec is None:
        return None
    if is_datum(spec):
        return symbol(schema_of(spec), spec._model, spec._label)
    if isinstance(spec, bool) or is_declaration(spec):
        return symbol(data.declare(spec), data.model_of(spec))
    raise ArgumentError(
        f"{at}: {spec!r:.200} does not declare data; use a data model, a schema, a symbol, or a nest of them."
    )


def is_record(x: Any) -> bool:
    """Whether an object is an instance of a dataclass or of a pydantic class."""
    return not isinstance(x, type) and (isinstance(x, BaseModel) or is_dataclass(x))


def is_plain(nest: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a nest is a dict or a dataclass without any leaf of these kinds: plain JSON, or one record."""
    is_one = nests.kind_of(nest) == nests.MAPPING or is_record(nest)
    return is_one and not any(isinstance(leaf, kinds) for leaf in nests.leaves(nest))


# -- arguments ---------------------------------------------------------------------------------------------------------


def data_among(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that are data, or None."""
    return {name: value for name, value in kwargs.items() if is_data(value)}


def wrong_leaf(module: Module, argument: int | str, nest: Any) -> CallError:
    """Return the error for an argument with a leaf that is not data: the place, the type, and what to write.

    Args:
        module: The module that was called.
        argument: The index of the argument, or its keyword.
        nest: The whole argument.
    """
    path, leaf = next(
        (path, leaf) for path, leaf in nests.leaves_with_path(nest) if leaf is not None and not is_datum(leaf)
    )
    if is_plain(nest, DATA):
        path, leaf = (), nest
    model = _model_of_argument(module, argument)
    name = tree.class_of(leaf).__name__
    if inspect.isawaitable(leaf):
        remedy = "await it first, `await module(await other(x))`"
        if inspect.iscoroutine(leaf):
            leaf.close()  # avoids the warning 'coroutine was never awaited'
    elif isinstance(leaf, type) and issubclass(leaf, DataModel):
        remedy = f"write {leaf.__name__}(...), or for composition sm.Input(data_model={leaf.__name__})"
    elif model is not None:
        remedy = f"write {model.__name__}(...)"
        if isinstance(leaf, dict):
            remedy = f"write sm.JsonDataModel(x, data_model={model.__name__})"
    elif is_record(leaf):
        remedy = f"derive {name} from sm.DataModel"
    else:
        remedy = (
            "write an instance of a data model, such as Query(text=...) of `class Query(sm.DataModel): text: str`; "
            "anything that is not data goes by keyword"
        )
    return CallError(f"{where(module)}: {place_of(argument, path)} is {kind_text(leaf)}, not data: {remedy}.")


def _model_of_argument(module: Module, argument: int | str) -> Any:
    """Return the data model class that an argument is declared with; None unless there is exactly one."""
    call = module._record.declaration.call
    parameter = call.parameter(argument) if isinstance(argument, int) else call.keyword(argument)
    if parameter is not None and parameter.model is not None:
        return parameter.model
    flow = module._record.flow
    declared = nests.leaves(module.input_spec if flow is None else flow.fresh_symbols(flow.inputs))
    return getattr(declared[0], "_model", None) if len(declared) == 1 else None


def no_call(module: Module) -> NoCallError:
    """Return the error for calling a class without `call`."""
    return NoCallError(f"class {type(module).__name__} defines no call: write `async def call(self, inputs): ...`.")


def check_signature(module: Module, call: CallSignature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentError unless `call` takes these arguments."""
    if not kwargs and len(args) in call.counts:
        return
    try:
        call.signature.bind(*args, **kwargs, **({"training": False} if call.has_training else {}))
    except TypeError as error:
        unknown = [name for name in kwargs if call.keyword(name) is None]
        fault = f"unknown argument {unknown[0]!r}" if unknown else str(error)
        hint = did_you_mean(unknown[0], [*call.by_name, "training"]) if unknown else ""
        if len(args) > len(call.positional) and call.rest is None:
            fault = "too many positional arguments"
            if len(call.positional) == 1:
                hint = " It takes one data model: several are combined by `x + y`."
            elif not call.positional:
                hint = " Is `self` missing? Write `call(self, inputs)`."
        elif not args and not kwargs and call.positional:
            model = call.positional[0].model
            hint = f" Pass a data model: {'Query' if model is None else model.__name__}(...)."
        count = f"{len(args)} positional argument{'' if len(args) == 1 else 's'}"
        if unknown and not args and call.positional:
            model = call.positional[0].model
            hint += f" Fields go in one data model: {'Query' if model is None else model.__name__}({unknown[0]}=...)."
        by_keyword = f" and by keyword {', '.join(map(repr, kwargs))}" if kwargs else ""
        raise ArgumentError(
            f"{where(module)}: {fault}; got {count}{by_keyword}. The signature is call{call.signature}.{hint}"
        ) from None


# -- the contract -----------------------------------------------------------------------------------------------------


ANY_CLASS: Final[Any] = object()
"""A placeholder for a class: the value may be made from any class."""
Known: TypeAlias = dict[int, tuple[Schema, Any]]
"""By the id of a schema: the schema, kept alive, and the class that a value must be made from, or ANY_CLASS."""


def note_known(table: Known, value: JsonDataModel[Any], made_from: Any) -> None:
    """Record that values with the schema of this one are valid; the table is cleared when it is full."""
    if len(table) >= 256:
        table.clear()
    table[id(value._schema)] = value._schema, made_from


class Demand(NamedTuple):
    """A requirement on one argument, and its origin.

    With a `model`, the argument must have its fields and may have more. Without, each leaf must satisfy its schema.
    """

    spec: Any
    model: type[DataModel] | None
    origin: str
    argument: int | str
    nest: Any


def spec_of(module: Module, name: str) -> Any:
    """Return `input_spec` or `output_spec` of a module, else of its class, else _UNSET; runs no `__getattr__`."""
    on_class = SPECS[name]
    default = getattr(module, on_class) if hasattr(tree.class_of(module), on_class) else _UNSET
    return module.__dict__.get(name, default)


class Contract:
    """The requirements on the inputs of one module, with the schemas known to satisfy them.

    For the common call, with one argument whose schema was seen before, one lookup in `known` is enough.
    """

    __slots__ = ("annotated", "built_on", "is_empty", "known", "spec")

    def __init__(self, module: Module) -> None:
        record = module._record
        call = record.declaration.call
        self.annotated = any(
            p.model for p in (*call.positional, *call.by_name.values(), call.rest, call.var_keyword) if p
        )
        spec = spec_of(module, "input_spec")
        self.spec: Any = None if spec is _UNSET else symbols_of(spec, f"{where(module)}: input_spec")
        self.built_on: Mapping[str, Any] | None = None
        if spec is _UNSET and record.declaration.defines_build and record.flow is None and is_ready_here(record):
            self.built_on = record.build_config
        self.known: Known = {}
        self.is_empty = not (self.annotated or self.spec is not None or self.built_on)

    def check(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise SchemaError unless the arguments satisfy every requirement."""
        by_schema = True
        for demand in self._demands(module, args, kwargs):
            pairs = nests.align_nests(demand.spec, demand.nest, holes=True)
            if pairs is None or not all(is_datum(leaf) for _, _, leaf in pairs):
                kind = "" if nests.kind_of(demand.nest) == nests.LEAF else f"{kind_text(demand.nest)} "
                raise SchemaError(
                    f"{where(module)}: {place_of(demand.argument)}: got {kind}{shape(demand.nest)}, wanted "
                    f"{shape(demand.spec)}, by {demand.origin}: another structure."
                )
            for path, expected, leaf in pairs:
                by_schema &= _meet(module, demand, path, expected._schema, leaf)
        if by_schema and len(args) == 1 and not kwargs and type(args[0]) is JsonDataModel:
            note_known(self.known, args[0], args[0]._model if self.annotated else ANY_CLASS)

    def _demands(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Demand]:
        call = module._record.declaration.call
        if self.annotated:
            arguments = [(call.parameter(index), index, argument) for index, argument in enumerate(args)]
            arguments += [(call.keyword(name), name, argument) for name, argument in kwargs.items()]
            for parameter, name, argument in arguments:
                model = None if parameter is None else parameter.model
                if parameter is not None and model is not None:
                    origin = f"`{parameter.name}: {model.__name__}` of call"
                    yield Demand(symbol(schema_of(model), model), model, origin, name, argument)
        if self.spec is not None:
            by_name = ((p.name, kwargs[p.name]) for p in call.positional[len(args) :] if p.name in kwargs)
            specs: tuple[Any, ...] = self.spec if tree.class_of(self.spec) is tuple else (self.spec,)
            for spec, (name, argument) in zip(specs, (*enumerate(args), *by_name), strict=False):
                yield Demand(spec, None, "input_spec", name, argument)
        if self.built_on:
            given_to = inputs_by_parameter(module._record.declaration.build, args, kwargs)
            for name, spec in self.built_on.items():
                if name in given_to:
                    yield Demand(spec, None, "the schema it was built on", *given_to[name])


def inputs_by_parameter(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, tuple[int | str, Any]]:
    """Match the inputs of a call to the parameters of `build`; inputs without a parameter are left out.

    Returns:
        By parameter name, the index or keyword of the argument and the argument; for `*args`, a tuple of arguments.
    """
    matched: dict[str, tuple[int | str, Any]] = {}
    position = 0
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            matched[name] = name, args[position:]
        elif parameter.kind in POSITIONAL and position < len(args):
            matched[name] = position, args[position]
            position += 1
        elif name in kwargs and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            matched[name] = name, kwargs[name]
    return matched


def check_inputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise SchemaError unless the inputs satisfy the contract of the module."""
    record = module._record
    contract = record.contract
    if contract is None:
        contract = Contract(module)
        if record.ready or not contract.built_on:  # else the build may still be undone
            record.contract = contract
    if not contract.is_empty:
        contract.check(module, args, kwargs)


def input_spec_of(module: Module) -> Any:
    """Return `module.input_spec`, a nest of symbols; None if nothing is required."""
    contract = Contract(module)
    if contract.spec is not None or not contract.built_on:
        return contract.spec
    nests = tuple(contract.built_on.values())
    return nests[0] if len(nests) == 1 else nests


def input_declaration(module: Module) -> Any:
    """Return the declared inputs of `module` as a nest of symbols: Inputs, `input_spec`, an annotation; else None."""
    flow = module._record.flow
    if flow is not None:
        return flow.fresh_symbols(flow.inputs)
    spec = input_spec_of(module)
    if spec is not None:
        return spec
    first = module._record.declaration.call.parameter(0)
    return None if first is None or first.model is None else symbol(schema_of(first.model), first.model)


@singledispatch
def tool_inputs(module: Any) -> Any:
    """Return what a module takes as a tool of an Agent: its declared inputs, for the classes registered others."""
    return input_declaration(module)


def _meet(module: Module, demand: Demand, path: KeyPath, schema: Schema, leaf: Any) -> bool:
    """Check one leaf; return True if its schema alone is sufficient, so that all values of it are valid."""
    model, is_value = demand.model, isinstance(leaf, JsonDataModel)
    if model is None:
        fits = leaf._schema is schema or is_subschema(leaf._schema, schema)
    else:  # for a value not made from an instance of the class, its validators have not run
        fits = data.contains(leaf._schema, schema) and (not is_value or issubclass(leaf._model or object, model))
    if fits:
        return True
    errors: Sequence[Any] = ()
    if is_value:
        try:
            data.validate(schema, leaf._json, "") if model is None else leaf.to(model)
        except SchemaError as error:
            errors = error.errors
        else:
            return False
    place = place_of(demand.argument, path)
    lines = [
        f"{where(module)}: {place}: got {fields_text(leaf._schema)}, wanted {fields_text(schema)}, by {demand.origin}."
    ]
    lines += [f"  {p.pointer or '(root)'}: wanted {p.wanted}, got {p.got}" for p in errors]
    raise SchemaError("\n".join(lines), errors)


# -- outputs -----------------------------------------------------------------------------------------------------------


_OUTPUTS: Final = (JsonDataModel, DataModel, type(None))


class DeclaredOutputs:
    """The outputs that a module declares: a nest of symbols, or nothing.

    For the common output, one value, one lookup in `known` is enough.
    """

    __slots__ = ("known", "nest", "nothing")

    def __init__(self, module: Module) -> None:
        declaration = module._record.declaration
        spec = spec_of(module, "output_spec")
        if spec is _UNSET or spec is None:
            flow = module._record.flow
            spec = declaration.call.outputs if flow is None else flow.fresh_symbols(flow.outputs)
        self.nothing = spec is UNDECLARED
        self.nest: Any = None if self.nothing else symbols_of(spec, f"{where(module)}: output_spec")
        self.known: Known = {}

    def fresh(self) -> Any:
        """Return new symbols, one nest for each symbolic call."""
        return fresh(self.nest)


def output_declaration(module: Module) -> DeclaredOutputs:
    """Return the outputs that `module` declares, cached."""
    record = module._record
    if record.declared is None:
        record.declared = DeclaredOutputs(module)
    return record.declared


def no_outputs(module: Module) -> Any:
    """Return the declared structure with None at every leaf: the result of a skipped call."""
    return nests.map_leaves(lambda _: None, output_declaration(module).nest)


def check_output(module: Module, output: Any) -> Any:
    """Turn the result of `call` into data, and check it against its declaration.

    Args:
        module: The module that was called.
        output: The result of `call`.

    Returns:
        The output, with instances and (if one schema is declared) a plain JSON object turned into values.

    Raises:
        CallError: The output is not data, its structure is not the declared one, or it is None against the annotation.
        SchemaError: A leaf does not satisfy its declared schema.
    """
    if module._record.flow is not None:  # a graph checks each of its steps itself
        return output
    if output is None:
        call = module._record.declaration.call
        if call.outputs is UNDECLARED or call.may_return_none:
            return None
        raise CallError(
            f"{where(module)}: call returned None, which its annotation does not allow: is a `return` missing? If None "
            "is a valid result, add `| None` to the return annotation."
        )
    declared = output_declaration(module)
    if declared.nothing:
        if is_plain(output, _OUTPUTS):
            raise _not_data(module, output, "")
        return nests.map_leaves(lambda leaf: leaf if leaf is None else _as_value(module, leaf, ""), output)
    if isinstance(declared.nest, SymbolicDataModel):
        value, by_schema = _fits(module, declared.nest, output, "")
        if by_schema:
            note_known(declared.known, value, ANY_CLASS if declared.nest._model is None else value._model)
        return value
    pairs = nests.align_nests(declared.nest, output)
    if pairs is None:
        raise CallError(
            f"{where(module)}: call returned {kind_text(output)} whose structure differs from the declared output, "
            f"{kind_text(declared.nest)} with {len(nests.leaves(declared.nest))} leaves."
        )
    values = (
        leaf if leaf is None else _fits(module, expected, leaf, f", leaf {'/'.join(map(str, path))}")[0]
        for path, expected, leaf in pairs
    )
    return nests.pack(declared.nest, values)


def _fits(module: Module, expected: SymbolicDataModel | None, x: Any, at: str) -> tuple[JsonDataModel[Any], bool]:
    """Check one leaf against its declaration; return it as a value, and whether its schema alone is sufficient."""
    if expected is None:
        return _as_value(module, x, at), False
    schema, model = expected._schema, expected._model
    place = f"{where(module)}: the output of call{at}"
    if isinstance(x, dict):
        try:
            return data.value_from(x, schema, model, f"{place}, declared {title_of(schema)}", expected._label), False
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
    value = _as_value(module, x, at)
    fits = value._schema is schema or is_subschema(value._schema, schema)
    if not fits:
        try:
            data.validate(schema, value._json, f"{place}, declared {title_of(schema)}")
        except SchemaError as error:
            raise SchemaError(f"{error}\n  got {title_of(value._schema)}", error.errors) from None
    if model is not None and not (value._model is not None and issubclass(value._model, model)):
        data.run_validators(model, value._json, place)  # not made from an instance: the validators have not run
        return value, False
    return value, fits


def _as_value(module: Module, x: Any, at: str) -> JsonDataModel[Any]:
    """Return a value unchanged, and a model instance as a value."""
    if isinstance(x, DataModel):
        return data.to_value(x)
    if not isinstance(x, JsonDataModel):
        raise _not_data(module, x, at)
    return x  # pyright: ignore[reportUnknownVariableType]


def _not_data(module: Module, x: Any, at: str) -> CallError:
    start = f"{where(module)}: call returned {kind_text(x)}{at}, which is not data."
    if isinstance(x, SymbolicDataModel):
        return CallError(
            f"{where(module)}: call got values but returned a symbol{at}: return a result made from the inputs."
        )
    if inspect.isawaitable(x):
        return CallError(f"{start} Write `return await ...`.")
    if is_record(x):
        return CallError(f"{start} Derive {type(x).__name__} from sm.DataModel.")
    return CallError(
        f"{start} Wrap it, `return Answer(...)` or `sm.JsonDataModel(x, data_model=Answer)`, "
        "or declare `-> Answer` on call and return a plain JSON object."
    )


def symbolic_outputs(module: Module, outputs: Any) -> Any:
    """Return the outputs of a declaration or a trace as fresh symbols.

    Raises:
        CallError: A leaf is not data.
    """

    def as_datum(leaf: Any) -> Any:
        return leaf if leaf is None or isinstance(leaf, SymbolicDataModel) else _as_value(module, leaf, "")

    return fresh(nests.map_leaves(as_datum, outputs))

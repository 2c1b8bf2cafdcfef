"""Nests of data and of declarations, and the arguments of a call: converted to data, matched to the signature.

A nest is data, None, or lists, tuples, dicts and other containers of data.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from pydantic import BaseModel

from synmod import data, tree
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, schema_of, symbol
from synmod.errors import ArgumentError, CallError, NoCallError
from synmod.leaves import KeyPath, did_you_mean
from synmod.leaves.nests import LEAF, MAPPING, flatten_one_level, kind_of, leaves, leaves_with_path, map_leaves

from .record import kind_text, where
from .signatures import CallSignature

if TYPE_CHECKING:
    from .module import Module

DATA: Final = (JsonDataModel, SymbolicDataModel)


# -- names in messages -------------------------------------------------------------------------------------------------


def title_of(schema: Mapping[str, Any]) -> str:
    """Return the title of a schema, else its fields."""
    return str(schema.get("title") or f"an object with {', '.join(schema.get('properties', {})) or 'no field'}")


def fields_text(schema: Mapping[str, Any]) -> str:
    """Return the title and the fields of a schema."""
    return f"{schema.get('title', 'a value')}({', '.join(schema.get('properties', {}))})"


class Unquoted(str):
    """A str whose repr has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def shape(nest: Any) -> str:
    """Show a nest by the titles of its leaves."""
    return str(
        map_leaves(lambda leaf: Unquoted(title_of(leaf._schema) if is_datum(leaf) else type(leaf).__name__), nest)
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
        return leaves(x)
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
    return map_leaves(lambda x: symbol(x._schema, x._model, x._label) if is_datum(x) else x, nest)


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
    if kind_of(spec) == MAPPING and not any(map(is_declaration, leaves(spec))):
        return symbol(data.declare(spec), None)
    if kind_of(spec) != LEAF:
        parts = flatten_one_level(spec)
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
    is_one = kind_of(nest) == MAPPING or is_record(nest)
    return is_one and not any(isinstance(leaf, kinds) for leaf in leaves(nest))


# -- arguments ------------------------------------------------------------------------------------------------------


def should_skip(call: CallSignature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an argument of data is None (or a nest of None only) and its parameter does not accept None.

    All arguments for `*args` count as one nest. By keyword, data are what is annotated with a data model.
    """
    for parameter, argument in zip(call.positional, args, strict=False):
        if not parameter.takes_none and is_nothing(argument):
            return True
    for name, argument in kwargs.items():
        parameter = call.by_name.get(name)
        if parameter is not None and parameter.model and not parameter.takes_none and is_nothing(argument):
            return True
    rest = args[len(call.positional) :]
    return bool(rest) and call.rest is not None and not call.rest.takes_none and all(map(is_nothing, rest))


def holds_symbol(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether any leaf of the arguments is a symbol."""
    nests = (*args, *kwargs.values())
    return any(isinstance(leaf, SymbolicDataModel) for nest in nests for leaf in leaves_of_any(nest))


def data_among(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that are data, or None."""
    return {name: value for name, value in kwargs.items() if is_data(value)}


def convert_arguments(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Check the signature and the leaves, and turn model instances into values.

    Args:
        module: The module that is called.
        args: Positional arguments: data.
        kwargs: Keyword arguments: data for parameters declared as data, anything for others.

    Returns:
        The arguments for `call`; containers are rebuilt only if a leaf was converted.

    Raises:
        ArgumentError: The arguments do not fit the signature of `call`.
        CallError: A leaf of a positional argument is not data.
        NoCallError: The class defines no `call`.
    """
    if not hasattr(module, "call"):
        raise no_call(module)
    call = module._record.declaration.call
    converted = tuple(
        argument if type(argument) is JsonDataModel else _convert_argument(module, index, argument)
        for index, argument in enumerate(args)
    )
    if kwargs:
        kwargs = {name: _convert_keyword(module, call, name, value) for name, value in kwargs.items()}
    check_signature(module, call, converted, kwargs)
    return converted, kwargs


def _convert_keyword(module: Module, call: CallSignature, name: str, value: Any) -> Any:
    """Convert a keyword argument; any value is allowed unless its parameter is declared as data."""
    parameter = call.keyword(name)
    if parameter is not None and parameter.takes_data:
        return _convert_argument(module, name, value)
    if any(isinstance(leaf, DataModel) for leaf in leaves_of_any(value)):
        return map_leaves(_model_to_value, value)
    return value


def _convert_argument(module: Module, argument: int | str, nest: Any) -> Any:
    """Convert an argument whose leaves must all be data."""
    try:
        converted = map_leaves(_model_to_value, nest)
    except CallError as error:
        raise CallError(f"{where(module)}: {place_of(argument)}: {error}") from None
    if not is_data(converted):
        raise wrong_leaf(module, argument, converted)
    return converted


def _model_to_value(leaf: Any) -> Any:
    return data.to_value(leaf) if isinstance(leaf, DataModel) else leaf


def wrong_leaf(module: Module, argument: int | str, nest: Any) -> CallError:
    """Return the error for an argument with a leaf that is not data: the place, the type, and what to write.

    Args:
        module: The module that was called.
        argument: The index of the argument, or its keyword.
        nest: The whole argument.
    """
    path, leaf = next((path, leaf) for path, leaf in leaves_with_path(nest) if leaf is not None and not is_datum(leaf))
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
    declared = leaves(module.input_spec if flow is None else flow.fresh_symbols(flow.inputs))
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

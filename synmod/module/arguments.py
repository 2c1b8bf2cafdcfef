"""The arguments of a call: converted to data, and matched to the parameters of `call` and `build`.

A nest is data, None, or lists, tuples, dicts and other containers of data.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod import data, tree
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
from synmod.errors import ArgumentError, CallError, NoCallError
from synmod.leaves import did_you_mean
from synmod.leaves.nests import leaves, leaves_with_path, map_leaves

from .contract import input_declaration
from .nests import DATA, is_data, is_datum, is_nothing, is_plain, is_record, leaves_of_any, place_of
from .record import kind_text, where
from .signatures import CallSignature

if TYPE_CHECKING:
    from .module import Module


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
    declared = leaves(input_declaration(module))
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

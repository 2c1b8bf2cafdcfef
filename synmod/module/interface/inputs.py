"""The arguments of a call: what is data, what is not taken, and what becomes of model instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, to_value
from synmod.errors import ArgumentError, CallError, NoCallError
from synmod.flow import map_leaves
from synmod.leaves.names import did_you_mean
from synmod.module.interface.nests import each_leaf, is_data, is_nothing
from synmod.module.interface.where import where
from synmod.module.interface.wrong_leaf import wrong_leaf

if TYPE_CHECKING:
    from synmod.module.interface.signatures import CallSignature
    from synmod.module.module import Module


def is_not_taken(call: CallSignature, args: tuple[Any, ...]) -> bool:
    """Tell whether a positional argument is None (or a nest of nothing but None) where none is taken.

    What goes to `*args` counts as one nest.
    """
    for parameter, argument in zip(call.positional, args, strict=False):
        if not parameter.takes_none and is_nothing(argument):
            return True
    rest = args[len(call.positional) :]
    return bool(rest) and call.rest is not None and not call.rest.takes_none and all(map(is_nothing, rest))


def holds_symbol(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Tell whether any leaf of the arguments is a symbol."""
    return any(
        isinstance(leaf, SymbolicDataModel) for argument in (*args, *kwargs.values()) for leaf in each_leaf(argument)
    )


def data_among(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that are data, or None."""
    return {name: value for name, value in kwargs.items() if is_data(value)}


def convert_arguments(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Check the signature and the leaves, and turn model instances into values.

    Args:
        module: The module that is called.
        args: Positional arguments: data.
        kwargs: Keyword arguments: anything, but data where a parameter is declared so.

    Returns:
        The arguments as `call` gets them; containers are rebuilt only where something was converted.

    Raises:
        ArgumentError: The arguments do not fit the signature of `call`.
        CallError: A leaf of a positional argument is no data.
        NoCallError: The class defines no `call`.
    """
    if not hasattr(module, "call"):
        raise no_call(module)
    call = module._record.declaration.call
    converted = tuple(_positional(module, index, argument) for index, argument in enumerate(args))
    if kwargs:
        kwargs = {name: _by_keyword(module, call, name, value) for name, value in kwargs.items()}
    check_signature(module, call, converted, kwargs)
    return converted, kwargs


def no_call(module: Module) -> NoCallError:
    """The error for calling a class without `call`."""
    return NoCallError(f"class {type(module).__name__} defines no call: write `async def call(self, inputs): ...`.")


def check_signature(module: Module, call: CallSignature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentError unless `call` takes these arguments."""
    if not kwargs and len(args) in call.counts:
        return
    room = len(call.positional)
    if call.has_training and len(args) > room and call.rest is None:
        raise ArgumentError(
            f"{where(module)}: got {len(args)} positional arguments, call takes {room} of them (what stands behind "
            f"`training` goes by keyword). The signature is call{call.signature}."
        )
    try:
        call.signature.bind(*args, **kwargs, **({"training": False} if call.has_training else {}))
    except TypeError as error:
        unknown = [name for name in kwargs if call.keyword(name) is None]
        fault = f"unknown argument {unknown[0]!r}" if unknown else str(error)
        hint = did_you_mean(unknown[0], list(call.named)) if unknown else ""
        raise ArgumentError(
            f"{where(module)}: {fault}; got {_counted(args, kwargs)}. The signature is call{call.signature}.{hint}"
        ) from None


def _counted(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Say how many positional arguments a call got, and which by keyword."""
    by_keyword = f" and by keyword {', '.join(map(repr, kwargs))}" if kwargs else ""
    return f"{len(args)} positional argument{'' if len(args) == 1 else 's'}{by_keyword}"


def _model_to_value(leaf: Any) -> Any:
    return to_value(leaf) if isinstance(leaf, DataModel) else leaf


def _positional(module: Module, index: int, argument: Any) -> Any:
    """Convert a positional argument; all of it must be data."""
    if type(argument) is JsonDataModel:
        return argument
    place = f"argument {index}"
    try:
        converted = map_leaves(_model_to_value, argument)
    except CallError as error:
        raise CallError(f"{where(module)}: {place}: {error}") from None
    if not is_data(converted):
        raise wrong_leaf(module, place, index, argument)
    return converted


def _by_keyword(module: Module, call: CallSignature, name: str, value: Any) -> Any:
    """Convert a keyword argument; it may be anything, even a container that holds itself, unless data is declared."""
    parameter = call.keyword(name)
    if parameter is not None and parameter.takes_data:
        value = map_leaves(_model_to_value, value)
        if not is_data(value):
            raise wrong_leaf(module, f"argument {name!r}", name, value)
        return value
    if any(isinstance(leaf, DataModel) for leaf in each_leaf(value)):
        return map_leaves(_model_to_value, value)
    return value

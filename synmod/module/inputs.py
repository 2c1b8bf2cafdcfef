"""The arguments of a call: what is data, what becomes of a model instance, and what a wrong leaf is told."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from synmod.data.model import DataModel
from synmod.data.symbol import SymbolicDataModel
from synmod.data.value import JsonDataModel, to_value
from synmod.errors import ArgumentError, CallError, DataError, NoCallError
from synmod.flow.nest import MAPPING, is_leaf, kind_of, leaves, leaves_with_path, map_leaves
from synmod.leaves.frozen import frozen
from synmod.leaves.suggest import did_you_mean

if TYPE_CHECKING:
    from synmod.module.declaration import CallSignature, Parameter
    from synmod.module.module import Module

_DATA = (JsonDataModel, SymbolicDataModel)


def is_not_taken(call: CallSignature, args: tuple[Any, ...]) -> bool:
    """Tell whether a positional argument is None (or a nest of nothing but None) where none is taken."""
    if not args:
        return False
    if call.rest is not None and not call.positional:  # `*inputs` count as one nest
        return not call.rest.takes_none and all(map(is_nothing, args))
    for index, argument in enumerate(args):
        if is_nothing(argument):
            parameter = call.parameter(index)
            if parameter is not None and not parameter.takes_none:
                return True
    return False


def is_nothing(nest: Any) -> bool:
    """Tell whether a nest is None, or not empty and holds nothing but None."""
    if nest is None:
        return True
    if is_leaf(nest):
        return False
    found = leaves(nest)
    return bool(found) and all(leaf is None for leaf in found)


def holds_symbol(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Tell whether any leaf of the arguments is a symbol."""
    for argument in (*args, *kwargs.values()) if kwargs else args:
        if is_leaf(argument):
            if isinstance(argument, SymbolicDataModel):
                return True
        elif any(isinstance(leaf, SymbolicDataModel) for leaf in leaves(argument)):
            return True
    return False


def convert_arguments(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Check the signature and the leaves, and turn model instances into values.

    Args:
        module: The module that is called.
        args: Positional arguments: data.
        kwargs: Keyword arguments: anything.

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
    converted = tuple(_convert_positional(module, call, index, argument) for index, argument in enumerate(args))
    if kwargs:
        kwargs = {name: map_leaves(_model_to_value, value) for name, value in kwargs.items()}
    check_signature(module, call, converted, kwargs)
    return converted, kwargs


def no_call(module: Module) -> NoCallError:
    """The error for calling a class without `call`."""
    return NoCallError(f"class {type(module).__name__} defines no call: write `async def call(self, inputs): ...`.")


def check_signature(module: Module, call: CallSignature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentError unless `call` takes these arguments."""
    if not kwargs and len(args) in call.counts:
        return
    given = dict(kwargs)
    if call.has_training:
        given["training"] = False
        if len(args) > len(call.positional) and call.rest is None:
            raise ArgumentError(_signature_text(module, call, f"{len(args)} positional arguments"))
    try:
        call.signature.bind(*args, **given)
    except TypeError as error:
        names = [p.name for p in call.signature.parameters.values()]
        unknown = [name for name in kwargs if name not in names]
        hint = did_you_mean(unknown[0], names) if unknown else ""
        raise ArgumentError(_signature_text(module, call, str(error)) + hint) from None


def _signature_text(module: Module, call: CallSignature, fault: str) -> str:
    return f"{where(module)}: {fault}. The signature is call{call.signature}."


def where(module: Module) -> str:
    """How messages name a module: its path, its class."""
    path = module.path
    return f"{path!r} ({type(module).__name__})" if path else f"{module.name!r} ({type(module).__name__})"


def _model_to_value(leaf: Any) -> Any:
    return to_value(leaf) if isinstance(leaf, DataModel) else leaf


def _convert_positional(module: Module, call: CallSignature, index: int, argument: Any) -> Any:
    if type(argument) is JsonDataModel:
        return argument
    wrong = False

    def convert(leaf: Any) -> Any:
        nonlocal wrong
        if isinstance(leaf, DataModel):
            return to_value(leaf)
        wrong = wrong or not is_data(leaf)
        return leaf

    converted = map_leaves(convert, argument)
    if wrong:
        raise wrong_leaf(module, argument, index, call)
    return converted


def wrong_leaf(module: Module, argument: Any, index: int, call: CallSignature) -> CallError:
    """The error for an argument that is no data: place, type, remedy."""
    parameter = _parameter_of(module, call, index)
    if _is_plain_object(argument):
        model = parameter.model.__name__ if parameter and parameter.model else "..."
        return CallError(
            f"{where(module)}: argument {index} is a dict of plain JSON; inputs are data models. "
            f"Write sm.JsonDataModel(x, data_model={model})."
        )
    path, leaf = next(
        (p, x) for p, x in leaves_with_path(argument) if x is not None and not isinstance(x, (*_DATA, DataModel))
    )
    steps = "".join(f", key {step!r}" if isinstance(step, str) else f", index {step}" for step in path)
    return CallError(
        f"{where(module)}: argument {index}{steps} is {_kind_text(leaf)}; {remedy_for(leaf, parameter, call)}"
    )


def _parameter_of(module: Module, call: CallSignature, index: int) -> Parameter | None:
    """The parameter that an argument goes to; of a functional program with the model that its Input declares."""
    parameter, flow = call.parameter(index), module._record.flow
    if parameter is None or flow is None:
        return parameter
    return parameter._replace(model=flow.input_model(index))


def _kind_text(leaf: Any) -> str:
    if isinstance(leaf, type):
        return f"the class {leaf.__name__}"
    name = type(leaf).__name__
    return f"an {name}" if name[:1] in "aeiou" else f"a {name}"


def _is_plain_object(x: Any) -> bool:
    """Tell whether `x` is a dict of JSON without any data model in it."""
    if kind_of(x) != MAPPING or any(isinstance(leaf, (*_DATA, DataModel)) for leaf in leaves(x)):
        return False
    try:
        frozen(x)
    except DataError:
        return False
    return True


def remedy_for(leaf: Any, parameter: Parameter | None, call: CallSignature) -> str:
    """What to write instead of a leaf that is no data."""
    if inspect.isawaitable(leaf):
        return "await it first: `await module(await other(x))`."
    if isinstance(leaf, type) and issubclass(leaf, DataModel):
        name = leaf.__name__
        return f"pass an instance, {name}(...), or for composition sm.Input(data_model={name})."
    if isinstance(leaf, BaseModel) or (isinstance(leaf, type) and issubclass(leaf, BaseModel)):
        return "derive it from sm.DataModel."
    by_keyword = " Anything that is no data goes by keyword." if _has_further(call) else ""
    if isinstance(leaf, str | int | float | bool):
        return f"inputs are data models. Write {_example(leaf, parameter)}.{by_keyword}"
    return f"inputs are data models, symbols, None, or lists, tuples and dicts of them.{by_keyword}"


def _has_further(call: CallSignature) -> bool:
    named = [p for p in call.signature.parameters.values() if p.name != "training"]
    return sum(p.kind is not inspect.Parameter.VAR_KEYWORD for p in named) > 1


def _example(leaf: Any, parameter: Parameter | None) -> str:
    model = parameter.model if parameter is not None else None
    if model is None:
        return f"sm.ChatMessage(role='user', content={'...' if not isinstance(leaf, str) else repr(leaf[:40])})"
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    strings = [name for name in required if model.model_fields[name].annotation is str]
    if isinstance(leaf, str) and len(strings) == 1 and len(required) == 1:
        return f"{model.__name__}({strings[0]}='...')"
    return f"{model.__name__}(...)"


def is_data(leaf: Any) -> bool:
    """Tell whether a leaf may be the output of a call."""
    return leaf is None or isinstance(leaf, _DATA)

"""Which inputs `build` gets: as many positional ones as it takes, and the keyword data that it names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import BuildError
from synmod.module.interface.inputs import data_among
from synmod.module.interface.nests import fresh
from synmod.module.interface.signatures import POSITIONAL
from synmod.module.interface.where import where
from synmod.module.interface.wrong_leaf import wrong_leaf

if TYPE_CHECKING:
    from synmod.module.module import Module


class Given(NamedTuple):
    """What is given to one parameter of `build`, and how messages name it."""

    place: str
    value: Any


def inputs_by_parameter(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Given]:
    """Match the inputs of a call to the parameters of `build`; what it does not take is left out.

    Args:
        signature: That of `build`.
        args: Positional inputs.
        kwargs: Keyword inputs.
    """
    matched: dict[str, Given] = {}
    taken = 0
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            matched[name] = Given(f"arguments from {taken} on" if taken else "arguments", args[taken:])
        elif parameter.kind in POSITIONAL and taken < len(args):
            matched[name] = Given(f"argument {taken}", args[taken])
            taken += 1
        elif name in kwargs and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            matched[name] = Given(f"argument {name!r}", kwargs[name])
    return matched


def symbols_for(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments of a module's own `build`: a symbol in the place of each value.

    Raises:
        CallError: What was given by keyword for a required parameter is no data.
        BuildError: A required parameter is left open; names it.
    """
    signature = module._record.declaration.build
    data = data_among(kwargs)
    matched = inputs_by_parameter(signature, args, data)
    open_ones = [
        name for name, p in signature.parameters.items()
        if name not in matched and p.default is p.empty and p.kind is not inspect.Parameter.VAR_KEYWORD
    ]  # fmt: skip
    for name in open_ones:
        if name in kwargs and name not in data:
            raise wrong_leaf(module, f"argument {name!r}", name, kwargs[name])
    if open_ones:
        raise BuildError(
            f"{where(module)}: build{signature} is left without {', '.join(map(repr, open_ones))}. It receives a "
            "symbol for each positional input of call, and the keyword data that it names."
        )
    return inspect.BoundArguments(signature, {name: fresh(given.value) for name, given in matched.items()})  # pyright: ignore[reportArgumentType]

"""Config and repr, both from the one record of constructor arguments."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from synmod.errors import ConfigError
from synmod.lm import LanguageModel
from synmod.module.arguments import unknown_keyword
from synmod.tree import Static, Variable

if TYPE_CHECKING:
    from synmod.module.module import Module

M = TypeVar("M", bound="Module")

_WIDEST = 80


def get_config(module: Module) -> dict[str, Any]:
    """The constructor arguments of `module` as live values, those assigned anew later with their present value.

    Raises:
        ConfigError: The module was not made by calling its class, or its arguments have no names.
    """
    record = module._record
    if record.arguments is None:
        raise ConfigError(
            f"{type(module).__name__}: the constructor arguments are not known (no readable signature, or not made by "
            "calling the class): override get_config."
        )
    signature = record.declaration.init
    ignored = record.declaration.ignored
    config: dict[str, Any] = {}
    for name in dict.fromkeys((*record.arguments, *(n for n in record.reassigned if _is_parameter(signature, n)))):
        present = vars(module).get(name)
        if name in record.reassigned and name in vars(module) and not isinstance(present, Variable):
            value = present
        elif name in record.arguments:
            value = record.arguments[name]
            if isinstance(value, str) and isinstance(present, LanguageModel):
                value = present  # the model that the string named
        else:
            continue
        if name not in ignored and name not in record.statics and not isinstance(value, Static):
            config[name] = value
    return config


def _is_parameter(signature: inspect.Signature | None, name: str) -> bool:
    return signature is not None and name in signature.parameters


def from_config(cls: type[M], config: Mapping[str, Any]) -> M:
    """Call the constructor of `cls` with a config.

    Raises:
        ConfigError: A key that the constructor does not take.
    """
    signature = cls._declaration.init
    if signature is None:
        return cls(**config)
    args: list[Any] = []
    named = dict(config)
    parameters = list(signature.parameters.values())
    star = next((p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    spread = bool(star is not None and named.get(star.name))
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    unknown = [key for key in named if key not in signature.parameters]
    if unknown and not takes_any:
        raise unknown_keyword(cls.__name__, unknown[0], [p.name for p in parameters])
    star_name = star.name if star is not None else None
    for parameter in parameters:
        positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        if positional or (spread and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD):
            if parameter.name in named:
                args.append(named.pop(parameter.name))
            elif spread and parameter.default is not parameter.empty:
                args.append(parameter.default)
        elif parameter.name == star_name and star_name in named:
            args.extend(named.pop(star_name))
    return cls(*args, **named)


def constructor_call(module: Module) -> str:
    """The constructor call that made `module`: given arguments only, in signature order, defaults left out."""
    record = module._record
    name = type(module).__name__
    if record.arguments is None:
        return f"{name}(...)"
    signature = record.declaration.init
    shown: list[str] = []
    for key, value in _in_signature_order(signature, record.arguments):
        parameter = signature.parameters.get(key) if signature is not None else None
        if parameter is not None and parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            shown += [_shown(item) for item in value]
        elif parameter is None or not _is_default(value, parameter.default):
            shown.append(f"{key}={_shown(value)}")
    line = f"{name}({', '.join(shown)})"
    if len(line) <= _WIDEST and "\n" not in line:
        return line
    body = ",\n".join("    " + each.replace("\n", "\n    ") for each in shown)
    return f"{name}(\n{body},\n)"


def _in_signature_order(signature: inspect.Signature | None, arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    order = list(signature.parameters) if signature is not None else []
    rank = {name: index for index, name in enumerate(order)}
    return sorted(arguments.items(), key=lambda item: rank.get(item[0], len(order)))


@reprlib.recursive_repr("...")
def _shown(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if inspect.isfunction(value):
        return value.__qualname__
    return repr(value)


def _is_default(value: Any, default: Any) -> bool:
    """Compare with a default; whatever a hostile `__eq__` returns or raises counts as different."""
    if value is default:
        return True
    if type(value) not in (str, int, float, bool, tuple, list, dict) or type(value) is not type(default):
        return False
    return repr(value) == repr(default)

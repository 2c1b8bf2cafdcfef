"""Config and repr, both from the one record of constructor arguments."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping
from contextvars import ContextVar
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, TypeVar

from synmod.errors import ConfigError
from synmod.lm import LanguageModel
from synmod.module.arguments import unknown_keyword
from synmod.module.attributes import ABSENT, attribute_of
from synmod.module.record import LABELS
from synmod.module.skips import shown_skips
from synmod.tree import Static, Variable

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.module.record import ModuleRecord

M = TypeVar("M", bound="Module")

_WIDEST = 80
_DEEPEST = 40
_DEPTH: ContextVar[int] = ContextVar("synmod_repr_depth", default=0)
"""How many modules this one is an argument in, while their constructor calls are written."""


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
    ignored = record.declaration.ignored
    config: dict[str, Any] = {}
    for name in in_signature_order(record):
        if name in ignored or name in record.statics:
            continue
        value = _present_value(module, name, record.arguments.get(name, ABSENT))
        if value is not ABSENT and not isinstance(value, Static):
            config[name] = value
    return config


def in_signature_order(record: ModuleRecord) -> list[str]:
    """The names of the arguments given, and of the parameters whose attribute was assigned anew, in their order."""
    signature = record.declaration.init or inspect.Signature()
    named = [name for name, p in signature.parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    given = record.arguments or {}
    known = [name for name in named if name in given or name in record.reassigned]
    return list(dict.fromkeys((*known, *given)))


def _present_value(module: Module, name: str, given: Any) -> Any:
    """The value of an argument as of now: given, or that of its attribute where that was assigned anew."""
    record = module._record
    if name in LABELS:
        return getattr(record, name) if is_passed_on(record, name) else given
    present = attribute_of(module, name)
    if name in record.reassigned:
        if present is ABSENT and isinstance(getattr_static(module, name, None), property):
            present = getattr(module, name)
        if present is not ABSENT and not isinstance(present, Variable):
            return present
    if isinstance(given, str) and isinstance(present, LanguageModel):
        return present  # the model that the string named
    return given


def is_passed_on(record: ModuleRecord, label: str) -> bool:
    """Tell whether the constructor took a label as it was given, so that it would take the present one likewise."""
    if record.given is None or record.arguments is None or label not in record.arguments:
        return False
    as_given = dict(zip(("name", "description", "trainable"), record.given, strict=True))
    return label in as_given and record.arguments[label] == as_given[label]


def from_config(cls: type[M], config: Mapping[str, Any]) -> M:
    """Call the constructor of `cls` with a config.

    Raises:
        ConfigError: A key that the constructor does not take.
    """
    signature = cls._declaration.init
    if signature is None:
        return cls(**config)
    parameters = signature.parameters.values()
    unknown = [key for key in config if key not in signature.parameters]
    if unknown and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        raise unknown_keyword(cls.__name__, unknown[0], [p.name for p in parameters])
    named = dict(config)
    args: list[Any] = []
    not_given: list[str] = []
    for parameter in _by_position(signature, config):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(named.pop(parameter.name))
        elif parameter.name in named:
            args.append(named.pop(parameter.name))
        elif parameter.default is not parameter.empty:
            args.append(parameter.default)
            not_given.append(parameter.name)
    module = cls(*args, **named)
    given = module._record.arguments
    if not_given and given is not None:
        module._record.arguments = {name: value for name, value in given.items() if name not in not_given}
    return module


def _by_position(signature: inspect.Signature, config: Mapping[str, Any]) -> list[inspect.Parameter]:
    """The parameters that a config gives by position: positional-only ones, and all in front of filled `*args`."""
    parameters = list(signature.parameters.values())
    star = next((p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    if star is not None and config.get(star.name):
        return parameters[: parameters.index(star) + 1]
    only = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    while only and only[-1].name not in config:
        only.pop()
    return only if star is None or star.name not in config else [*only, star]


def constructor_call(module: Module) -> str:
    """The constructor call that made `module`: given arguments only, in signature order, defaults left out.

    What stands too deep in others is cut short: Python writes containers by recursion.
    """
    record = module._record
    name = type(module).__name__
    depth = _DEPTH.get()
    if record.arguments is None or depth >= _DEEPEST:
        return f"{name}(...){shown_skips(module)}"
    token = _DEPTH.set(depth + 1)
    try:
        shown = _shown_arguments(record, record.arguments)
    finally:
        _DEPTH.reset(token)
    line = f"{name}({', '.join(shown)})"
    if len(line) <= _WIDEST and "\n" not in line:
        return line + shown_skips(module)
    body = ",\n".join("    " + each.replace("\n", "\n    ") for each in shown)
    return f"{name}(\n{body},\n){shown_skips(module)}"


def _shown_arguments(record: ModuleRecord, arguments: Mapping[str, Any]) -> list[str]:
    """The arguments as code writes them."""
    signature = record.declaration.init or inspect.Signature()
    given = {
        name: value for name, value in arguments.items()
        if name not in signature.parameters or not _is_default(value, signature.parameters[name].default)
    }  # fmt: skip
    shown: list[str] = []
    by_position = _by_position(signature, given)
    for parameter in by_position:
        value = arguments.get(parameter.name, parameter.default)
        shown += map(_shown, value) if parameter.kind is inspect.Parameter.VAR_POSITIONAL else [_shown(value)]
    taken = {parameter.name for parameter in by_position}
    order = dict.fromkeys((*signature.parameters, *arguments))
    return shown + [f"{name}={_shown(given[name])}" for name in order if name in given and name not in taken]


@reprlib.recursive_repr("...")
def _shown(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if inspect.isfunction(value):
        return value.__qualname__
    if type(value) in (tuple, list) and any(isinstance(each, type) or inspect.isfunction(each) for each in value):
        shown = ", ".join(map(_shown, value))
        return f"[{shown}]" if isinstance(value, list) else f"({shown}{',' * (len(value) == 1)})"
    return repr(value)


def _is_default(value: Any, default: Any) -> bool:
    """Compare with a default; whatever a hostile `__eq__` returns or raises counts as different."""
    if value is default:
        return True
    if type(value) not in (str, int, float, bool, tuple, list, dict) or type(value) is not type(default):
        return False
    return repr(value) == repr(default)

"""The constructor arguments of a module, read again: its config, the Variables that hold them, its repr."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from synmod import data, errors, leaves, lm, tree

from .declaring import DeclaredSkips, declaration_of, unknown_keyword
from .record import ABSENT, LABELS, InVariable, ModuleRecord, attribute_of
from .signatures import POSITIONAL

if TYPE_CHECKING:
    from .module import Module


def get_config(module: Module) -> dict[str, Any]:
    """Return the constructor arguments of `module` as live values; for attributes assigned since, the present value.

    Raises:
        ConfigError: The module was not made by calling its class, or its arguments have no names.
    """
    record = module._record
    if record.arguments is None:
        raise errors.ConfigError(
            f"{type(module).__name__}: the constructor arguments are not known (no readable signature, or not made by "
            "calling the class): override get_config."
        )
    ignored = record.declaration.ignored
    config: dict[str, Any] = {}
    for name in in_signature_order(record):
        if name in ignored or name in record.statics:
            continue
        value = _present_value(module, name, record.arguments.get(name, ABSENT))
        if value is not ABSENT and not isinstance(value, tree.Static):
            config[name] = value
    return config


def in_signature_order(record: ModuleRecord) -> list[str]:
    """Return the names of the given arguments, and of the parameters whose attribute was reassigned, in order."""
    signature = record.declaration.init or inspect.Signature()
    names = [name for name, p in signature.parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    arguments = record.arguments or {}
    ordered = [name for name in names if name in arguments or name in record.reassigned]
    return list(dict.fromkeys((*ordered, *arguments)))


def _present_value(module: Module, name: str, argument: Any) -> Any:
    """Return the present value of an argument: as given, or that of its attribute if it was reassigned."""
    record = module._record
    if name in LABELS:
        return getattr(record, name) if is_passed_on(record, name) else argument
    present = attribute_of(module, name)
    argument = argument.argument if isinstance(argument, InVariable) else argument
    if name in record.reassigned:
        if present is ABSENT and isinstance(inspect.getattr_static(module, name, None), property):
            present = getattr(module, name)
        if present is not ABSENT and not isinstance(present, tree.Variable):
            return present
    if isinstance(argument, str) and isinstance(present, lm.SharedModel):
        return present  # the model that the string named
    return argument


def note_arguments_in_variables(module: Module) -> None:
    """Mark each recorded argument that a Variable of the same name holds as it was given.

    Where the module keeps something out of files, that may have been made of the argument, which stays recorded.
    """
    record, attributes = module._record, module.__dict__
    if record.statics or record.declaration.ignored:
        return
    arguments: Mapping[str, Any] = record.arguments or {}
    for name, value in arguments.items():
        variable = attributes.get(name)
        if isinstance(variable, tree.Variable) and _holds(variable, value):
            record.arguments = arguments = {**arguments, name: InVariable(value)}


def note_loaded(module: Module, values: Mapping[str, Any]) -> None:
    """Record the arguments that a file holds in its state: those of another value than the constructor gave."""
    record, attributes = module._record, module.__dict__
    arguments: Mapping[str, Any] | None = record.arguments
    for name, value in values.items() if arguments is not None else ():
        variable = attributes.get(name)
        if isinstance(variable, tree.Variable) and not _holds(variable, value):
            record.arguments = arguments = {**(arguments or {}), name: InVariable(value)}


def _holds(variable: tree.Variable, value: Any) -> bool:
    """Whether a value is the JSON value of a Variable."""
    try:
        return type(value) in (str, int, float, bool, list, dict, type(None)) and data.json_equal(
            leaves.frozen(value), variable.snapshot()[0]
        )
    except errors.DataError:
        return False


def is_passed_on(record: ModuleRecord, label: str) -> bool:
    """Whether the constructor kept a label as given, so that it would also keep the present one."""
    if record.constructed_labels is None or record.arguments is None or label not in record.arguments:
        return False
    as_given = dict(zip(("name", "description", "trainable"), record.constructed_labels, strict=True))
    return label in as_given and record.arguments[label] == as_given[label]


def from_config(cls: type[M], config: Mapping[str, Any]) -> M:
    """Call the constructor of `cls` with a config.

    Raises:
        ConfigError: The constructor does not accept a key.
    """
    signature = declaration_of(cls).init
    if signature is None:
        return cls(**config)
    parameters = signature.parameters
    unknown = {key: value for key, value in config.items() if key not in parameters}
    rest = next((p.name for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD), None)
    if unknown and rest is None:
        raise unknown_keyword(cls.__name__, next(iter(unknown)), list(parameters))
    accepted = {name: config[name] for name in parameters if name in config}
    bound = inspect.BoundArguments(signature, {**accepted, **({rest: unknown} if rest else {})})  # pyright: ignore[reportArgumentType]
    bound.apply_defaults()
    module = cls(*bound.args, **bound.kwargs)
    arguments = module._record.arguments
    if arguments is not None:
        module._record.arguments = {name: value for name, value in arguments.items() if name in config}
    return module


M = TypeVar("M", bound="Module")


# -- repr --------------------------------------------------------------------------------------------------------------


def constructor_call(module: Module) -> str:
    """Return the constructor call that made `module`: given arguments only, in signature order, defaults left out.

    Arguments nested too deeply are shown as `...`: the `repr` of containers is recursive.
    """
    record, texts = module._record, ["..."]
    if record.arguments is not None:
        try:
            plain = {name: x.argument if isinstance(x, InVariable) else x for name, x in record.arguments.items()}
            texts = _format_arguments(record.declaration.init or inspect.Signature(), plain)
        except RecursionError:
            pass
    return f"{type(module).__name__}({', '.join(texts)}){_format_skips(record.declaration.skips)}"


def _format_arguments(signature: inspect.Signature, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments as code: by position if required, else by keyword."""
    texts: list[str] = []
    star = any(arguments.get(p.name) for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL)
    for name, p in signature.parameters.items():
        value = arguments.get(name, p.default)
        if p.kind is p.VAR_POSITIONAL:
            texts += map(_format_value, arguments.get(name, ()))
        elif (p.kind is p.POSITIONAL_ONLY and name in arguments) or (star and p.kind in POSITIONAL):
            texts.append(_format_value(value))
        elif name in arguments and p.kind is not p.VAR_KEYWORD and not _is_default(value, p.default):
            texts.append(f"{name}={_format_value(value)}")
    extra = (name for name in arguments if name not in signature.parameters)
    return texts + [f"{name}={_format_value(arguments[name])}" for name in extra]


def _format_skips(skips: DeclaredSkips | None) -> str:
    """Return the declared skip names as text; else ""."""
    if skips is None:
        return ""
    peeked = f" peek={sorted(skips.peek)!r}" if skips.peek else ""
    return f" stash={sorted(skips.stash)!r} pop={sorted(skips.pop)!r}{peeked}"


@reprlib.recursive_repr("...")
def _format_value(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if inspect.isfunction(value):
        return value.__qualname__
    if type(value) in (tuple, list) and any(isinstance(part, type) or inspect.isfunction(part) for part in value):
        text = ", ".join(map(_format_value, value))
        return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
    return repr(value)


def _is_default(value: Any, default: Any) -> bool:
    """Whether a value is the default; compares plain values by `repr`, so that no `__eq__` of a user runs."""
    same = type(value) is type(default) and type(value) in (str, int, float, bool, tuple, list, dict)
    return value is default or (same and repr(value) == repr(default))

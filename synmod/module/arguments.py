"""Constructor arguments: recorded by name before `__init__` runs, and read back as a config."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from synmod.errors import CallError, ConfigError
from synmod.flow import copied
from synmod.leaves.names import did_you_mean
from synmod.module.declaration import ClassDeclaration

_NEVER_RECORDED = "hooks"


def capture(declaration: ClassDeclaration, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Bind the arguments of a construction to the constructor's parameters.

    Args:
        declaration: The class.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        The arguments given, by parameter name: `*args` as one list, `**kwargs` by name, plain containers copied. None
        where they cannot be told apart by name.

    Raises:
        ConfigError: They do not fit the signature.

    Source: PyGlove, Keras' auto config.
    """
    signature = declaration.init
    if signature is None:
        return None
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise _misfit(declaration, signature, kwargs, error) from None
    recorded: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            if not recorded.keys().isdisjoint(value):
                return None
            recorded.update((key, kept(item)) for key, item in value.items() if key != _NEVER_RECORDED)
        elif name != _NEVER_RECORDED:
            recorded[name] = [kept(item) for item in value] if kind is inspect.Parameter.VAR_POSITIONAL else kept(value)
    return recorded


def kept(value: Any) -> Any:
    """Copy plain containers, so that later changes by the caller do not reach the record; keep all else."""
    try:
        return copied(value, _kept_leaf)
    except CallError:  # a container that holds itself
        return value


def _kept_leaf(leaf: Any) -> Any:
    return set(cast("set[Any]", leaf)) if type(leaf) is set else leaf


def _misfit(
    declaration: ClassDeclaration, signature: inspect.Signature, kwargs: Mapping[str, Any], error: TypeError
) -> ConfigError:
    known = [p.name for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    unknown = [name for name in kwargs if name not in known]
    name = declaration.cls.__name__
    if unknown and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values()):
        return unknown_keyword(name, unknown[0], known)
    return ConfigError(f"{name}: {error}. It takes {name}{signature}.")


def unknown_keyword(name: str, keyword: str, known: list[str]) -> ConfigError:
    """The error for a keyword that no constructor on the way takes."""
    return ConfigError(
        f"{name}: unknown argument {keyword!r}.{did_you_mean(keyword, known)} "
        f"It accepts: {', '.join(known) if known else 'nothing'}."
    )

"""Constructor arguments of blocks: each kind is checked in one place, when the block is made."""

from __future__ import annotations

from typing import Any, TypeVar

from synmod.errors import ConfigError
from synmod.leaves.names import did_you_mean
from synmod.module import Module

C = TypeVar("C")


def member(kind: str, name: str, module: Any) -> Module:
    """Give a member back.

    Raises:
        ConfigError: It is no module.
    """
    if not isinstance(module, Module):
        raise ConfigError(
            f"{kind}: {name} is a {type(module).__name__}; it must be a module. Wrap a function: sm.Lambda(fn)."
        )
    return module


def members(kind: str, modules: tuple[Any, ...]) -> list[Module]:
    """Give the members as a list.

    Raises:
        ConfigError: There is none, or one is no module.
    """
    if not modules:
        raise ConfigError(f"{kind}: no members; give the modules to run, {kind}(a, b).")
    return [member(kind, f"member {place}", module) for place, module in enumerate(modules)]


def whole(kind: str, name: str, value: Any, least: int = 1) -> int:
    """Give a count back.

    Raises:
        ConfigError: It is no int of at least `least`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{kind}: {name} is {value!r:.100}; give a whole number of at least {least}.")
    return value


def number(kind: str, name: str, value: Any) -> float | None:
    """Give a number, or None, back.

    Raises:
        ConfigError: It is neither.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value != value):
        raise ConfigError(f"{kind}: {name} is {value!r:.100}; give a number, or None.")
    return value


def field_name(kind: str, name: str, value: Any) -> str:
    """Give the name of a field back.

    Raises:
        ConfigError: It is no str.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{kind}: {name} is {value!r:.100}; give the name of a field.")
    return value


def one_of(kind: str, name: str, value: C, words: tuple[C, ...]) -> C:
    """Give a word back.

    Raises:
        ConfigError: It is none of the words ('Did you mean').
    """
    if value not in words:
        raise ConfigError(
            f"{kind}: {name}={value!r:.100} is unknown; it is {' or '.join(map(repr, words))}."
            f"{did_you_mean(value, map(str, words))}"
        )
    return value


def function(kind: str, name: str, value: C) -> C:
    """Give a function back.

    Raises:
        ConfigError: It cannot be called, or is a module.
    """
    if not callable(value) or isinstance(value, Module):
        raise ConfigError(f"{kind}: {name} is a {type(value).__name__}; give a function, plain or async.")
    return value


def exceptions(kind: str, on: Any) -> tuple[type[Exception], ...]:
    """Give the exception classes on which another try is made as a tuple.

    Raises:
        ConfigError: Something in it is no class of exceptions; cancellation and exits are never tried again.
    """
    classes: tuple[Any, ...] = tuple(on) if isinstance(on, (tuple, list)) else (on,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, Exception)):
            raise ConfigError(f"{kind}: on has {cls!r:.100}; give classes of exceptions, such as on=(sm.ModelError,).")
    if not classes:
        raise ConfigError(f"{kind}: on is empty; give the classes of exceptions to try again on.")
    return classes

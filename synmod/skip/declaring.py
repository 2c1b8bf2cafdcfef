"""`@skippable`: the declaration of the values that a class of modules stashes and pops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from synmod.data import Schema, declare, model_of
from synmod.errors import ArgumentError, ConfigError, SchemaError
from synmod.module import DeclaredSkips, Module, declaration_of

from .running import SKIPPABLE

C = TypeVar("C", bound=type)
Names = Iterable[str] | Mapping[str, Any]


def skippable(
    *, stash: Names = (), pop: Names = (), peek: Names = (), optional: Iterable[str] = ()
) -> Callable[[C], C]:
    """Declare the skip connections of a class of modules.

    The class stays what it is; a subclass inherits the declarations and may add to them.

    Args:
        stash: Names that each call puts into the lane; or a mapping from name to data model or schema (a typed skip).
        pop: Names that each call takes out, as names or a mapping.
        peek: Names that a call may read without taking them, as names or a mapping.
        optional: Those of `pop` and `peek` that may be absent, since their producer may not have run.

    Returns:
        A decorator that returns the class.

    Raises:
        ConfigError: It decorates something else, a name is empty or not a string, or `optional` has a name that
            is neither in `pop` nor in `peek`.

    Example:
        >>> from synmod.skip import pop, stash
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     async def call(self, inputs):
        ...         stash("doc", inputs)
        ...         return inputs
        >>> sorted(Retrieve.stashable_names)
        ['doc']

    Source: torchgpipe's `skippable`; differs: records the names on the class instead of wrapping it.
    """
    given: dict[str, Any] = {"stash": stash, "pop": pop, "peek": peek, "optional": optional}
    names = {word: _names(word, each) for word, each in given.items()}
    may_be_absent = names["pop"] | names["peek"]
    if not names["optional"] <= may_be_absent:
        extra = ", ".join(map(repr, sorted(names["optional"] - may_be_absent)))
        raise ConfigError(f"skippable: optional names {extra}, which is neither in pop nor in peek.")
    schemas: dict[str, Schema] = {}
    models: dict[str, Any] = {}
    for word, each in given.items():
        if isinstance(each, Mapping):
            for name, declared in cast("Mapping[str, Any]", each).items():
                if declared is not None:
                    schemas[name], models[name] = _typed(word, name, declared)
    skips = DeclaredSkips(names["stash"], names["pop"], names["peek"], names["optional"], schemas, models, SKIPPABLE)

    def decorate(cls: C) -> C:
        target: Any = cls
        if not (isinstance(target, type) and issubclass(target, Module)):
            what = f"the class {target.__name__}" if isinstance(target, type) else repr(target)
            raise ConfigError(f"skippable decorates a Module class; {what:.100} is not one.")
        declaration_of(target).declare_skips(skips)
        return cls

    return decorate


def _names(word: str, given: Any) -> frozenset[str]:
    """Return the names of one argument."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"skippable: {word}={given!r:.100}; write a list of names, {word}=[{given!r:.50}].")
    names = list(cast("Iterable[Any]", given))
    for name in names:
        if not isinstance(name, str) or not name:
            raise ConfigError(f"skippable: {word} holds {name!r:.100}; a name is a string that is not empty.")
    return frozenset(names)


def _typed(word: str, name: str, declared: Any) -> tuple[Schema, Any]:
    """Return the schema of a typed skip, and the class behind it."""
    try:
        return declare(declared, root="any"), model_of(declared)
    except (ArgumentError, SchemaError) as error:
        raise ConfigError(f"skippable: {word}[{name!r}] is {declared!r:.100}: {error}") from None

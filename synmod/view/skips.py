"""The skips of a program, as summaries and pictures show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from synmod.module import Module
    from synmod.view.outline import Outline


class Way(NamedTuple):
    """A value carried past the modules in between: its name, and the paths of who makes and who takes it."""

    name: str
    producer: str
    consumer: str


def declared_skips(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a module stashes, and those that it pops or peeks at, with their Namespaces."""
    skips = module._record.declaration.skips
    if skips is None:
        return (), ()
    peeked = [module.namespaced(name) for name in sorted(skips.peek)]
    return _names(module.stashable()), (*_names(module.poppable()), *(f"{name} (peek)" for name in _names(peeked)))


def skip_routes(outline: Outline) -> list[Way]:
    """The static routes of all skips of a program; the room that knows them is loaded where there are some."""
    if all(member.module._record.declaration.skips is None for member in outline.members):
        return []
    from synmod.skip import skip_layout

    routes = skip_layout(outline.members[0].module).routes
    return [Way(_name(route.key), route.producer, route.consumer) for route in routes]


def _names(keys: Iterable[tuple[Any, str]]) -> tuple[str, ...]:
    return tuple(map(_name, keys))


def _name(key: tuple[Any, str]) -> str:
    """A name, after that of its Namespace where it has one."""
    namespace, name = key
    return name if namespace is None or namespace.name is None else f"{namespace.name}/{name}"

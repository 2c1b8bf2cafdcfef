"""The skips of a program, as summaries and pictures show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from synmod.module import Module


class Route(NamedTuple):
    """A value carried past the modules in between: its name, and the paths of who makes and who takes it."""

    name: str
    producer: str
    consumer: str


def declared_skips(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a module stashes, and those that it pops."""
    stashed: frozenset[str] = getattr(type(module), "stashable_names", frozenset())
    popped: frozenset[str] = getattr(type(module), "poppable_names", frozenset())
    return tuple(sorted(stashed)), tuple(sorted(popped))


def skip_routes(module: Module) -> list[Route]:  # noqa: ARG001
    """The static routes of all skips below a module."""
    return []

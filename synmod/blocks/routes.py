"""Routes: several modules under labels, of which some are taken; what `Branch` and `Route` share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from synmod.blocks.arguments import member
from synmod.data import ops
from synmod.errors import ConfigError
from synmod.flow import together
from synmod.module import Child, Execution, Module


def checked_routes(kind: str, name: str, routes: Any) -> dict[str, Module]:
    """Give the modules by label.

    Raises:
        ConfigError: No mapping, an empty one, a label that is no str, a member that is no module.
    """
    if not isinstance(routes, Mapping) or not routes:
        raise ConfigError(f"{kind}: {name} is {routes!r:.100}; give a mapping from label to module, with one at least.")
    checked: dict[str, Module] = {}
    for label, module in routes.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(label, str) or not label:
            raise ConfigError(f"{kind}: the label {label!r:.100} is no text; labels are strings that are not empty.")
        checked[label] = member(kind, f"{name}[{label!r}]", module)
    return checked


def alternatives(attribute: str, routes: Mapping[str, Module]) -> Execution:
    """How routes run: some of them, which is not known before."""
    return Execution("one of", tuple(Child((attribute, label), module) for label, module in routes.items()))


async def take(routes: Mapping[str, Module], taken: Collection[str], inputs: Any) -> tuple[Any, ...]:
    """Call the routes that are taken, at once; None for the others."""
    outputs = await together(*(partial(module, inputs) for label, module in routes.items() if label in taken))
    given = iter(outputs)
    return tuple(next(given) if label in taken else None for label in routes)


async def symbols_of(routes: Mapping[str, Module], inputs: Any) -> tuple[Any, ...]:
    """Call every route on symbols."""
    return tuple([await module(inputs) for module in routes.values()])


def merged(outputs: tuple[Any, ...], *, several: bool = False) -> Any:
    """The one output that is there; the merge of those that are there where there may be several."""
    if len(outputs) == 1:
        return outputs[0]
    return ops.logical_or(*outputs) if several else ops.logical_xor(*outputs)

"""What `Module.__init__` does with the four arguments that every module takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from synmod.module.arguments import unknown_keyword

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope import Hook


def construct(
    module: Module,
    *,
    name: str | None = None,
    description: str | None = None,
    trainable: bool = True,
    hooks: Sequence[Hook] | None = None,
    **unknown: Any,
) -> None:
    """Set the labels, the mask and the hooks of a module.

    Raises:
        ConfigError: An unknown keyword; it came here through a `**kwargs` and must not vanish.
        BadNameError: The name is no identifier.
        ArgumentError: A hook that cannot be one.
    """
    if unknown:
        raise unknown_keyword(type(module).__name__, next(iter(unknown)), module._record.declaration.keywords)
    if name is not None:
        module.name = name
    if description is not None:
        module.description = description
    module.trainable = trainable
    for hook in hooks or ():
        module.add_hook(hook)

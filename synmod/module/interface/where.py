"""How messages name a module, and a thing by its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synmod.module.module import Module


def where(module: Module) -> str:
    """The path of a module (of a root, its name) and its class."""
    label = module.path or module.name
    return f"{label!r} ({type(module).__name__})"


def kind_text(x: Any) -> str:
    """The class of something, with its article."""
    if isinstance(x, type):
        return f"the class {x.__name__}"
    name = type(x).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"

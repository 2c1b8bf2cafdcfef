"""The table through which a module is shown, as a summary or a picture: the room above that draws fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from synmod.errors import GraphError

SHOW: Final[dict[str, Callable[..., str]]] = {}
"""`"summary"` and `"plot"`: a module and the arguments of the method give the text."""


def shown(way: str) -> Callable[..., str]:
    """Give one way to show a module.

    Raises:
        GraphError: Nobody has filled the table, since `synmod` was not imported as a whole.
    """
    try:
        return SHOW[way]
    except KeyError:
        raise GraphError(f"A {way} is made by synmod.view: import synmod first.") from None

"""The table through which a trace is drawn as a page: the room above that draws fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from synmod.errors import GraphError

PAGES: Final[dict[str, Callable[[dict[str, Any], Any], str]]] = {}
"""`"html"`: the JSON of a trace and a path give the text."""


def page(trace: dict[str, Any], path: Any) -> str:
    """Draw a trace.

    Raises:
        GraphError: Nobody has filled the table, since `synmod` was not imported as a whole.
    """
    try:
        draw = PAGES["html"]
    except KeyError:
        raise GraphError("A trace is drawn by synmod.view: import synmod first.") from None
    return draw(trace, path)

"""The table through which graph definitions become JSON: the room above that knows files fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from synmod.errors import GraphError

CODEC: Final[dict[str, Callable[..., Any]]] = {}
"""`"encode"`: a GraphDef gives its JSON object of three keys; `"decode"`: the way back. (`"unreached"` is our own: the
text of a node or Variable that only a constructor argument reaches.)"""


def codec(name: str) -> Callable[..., Any]:
    """Give one direction.

    Raises:
        GraphError: Nobody has filled the table, since `synmod` was not imported as a whole.
    """
    try:
        return CODEC[name]
    except KeyError:
        raise GraphError("Graph definitions are written and read by synmod.saving: import synmod first.") from None

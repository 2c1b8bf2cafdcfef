"""Schemas that need no second look: the answer to the common check is one lookup."""

from __future__ import annotations

from typing import Any, Final

from synmod.data import JsonDataModel, Schema

ANY_CLASS: Final[Any] = object()
"""Stands for: whatever class the value was made from."""
MISS: Final[Any] = object()
"""What no value was made from: the answer for a schema not seen before."""
_MOST = 256


class KnownSchemas(dict[int, Any]):
    """Id of a schema to the class that a value of it must be made from, or ANY_CLASS. Replaced, never changed.

    Keeps its schemas alive, since an id is a schema's own only as long as the schema lives.
    """

    __slots__ = ("_alive",)

    def __init__(self) -> None:
        super().__init__()
        self._alive: tuple[Schema, ...] = ()

    def plus(self, value: JsonDataModel[Any], made_from: Any) -> KnownSchemas:
        """The same with the schema of one more value; beyond some hundreds it begins anew."""
        more = KnownSchemas()
        if len(self) < _MOST:
            more.update(self)
            more._alive = self._alive
        more[id(value._schema)] = made_from
        more._alive = (*more._alive, value._schema)
        return more

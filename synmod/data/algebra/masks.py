"""Masks: keep only, or remove, the fields that patterns name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synmod.data.parts import portable, root_of
from synmod.data.schema import Schema, trusted_schema
from synmod.data.value import JsonDataModel, wrap
from synmod.leaves.frozen import FrozenDict

from .mask_schema import MaskedSchema
from .mask_tree import Fate, MaskTree
from .places import Places
from .plans import Operands, Values


class Mask:
    """The plan of `in_mask` and `out_mask`."""

    def __init__(self, operands: Operands, texts: Sequence[str], named: Fate) -> None:
        (schema,) = operands
        self.schema: Schema | None = None
        if schema is None:
            return
        moved = portable(schema)
        places = Places(moved)
        tree = MaskTree(places, list(texts), named)
        self._root = tree.root
        root = root_of(moved)
        assert isinstance(root, FrozenDict)
        self.schema = trusted_schema(MaskedSchema(moved, root, places, tree.root).plain)

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (only concat tells where)
        """Mask the value."""
        (value,) = args
        if value is None or self.schema is None:
            return None
        return wrap(self._root.masked(value._json), self.schema)

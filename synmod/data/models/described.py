"""What values and symbols have in common: a schema, a label, and the operations as methods."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod.data.schemas.schema import Schema
from synmod.data.text import dump_json
from synmod.leaves.frozen import thaw

from .labels import label_of
from .operand import OPERATORS, Operand

ModelT = TypeVar("ModelT", bound=BaseModel, default=Any)


class Described(Operand, Generic[ModelT]):
    """Something with a schema of its own, maybe a class behind it, and a label."""

    __slots__ = ("_label", "_model", "_schema")

    _schema: Schema
    _model: type[BaseModel] | None
    _label: str | None

    def get_schema(self) -> dict[str, Any]:
        """Give a fresh plain copy of the JSON Schema."""
        return thaw(self._schema)

    def prettify_schema(self) -> str:
        """Write the JSON Schema with an indent of two."""
        return dump_json(self._schema, indent=2)

    def in_mask(self, mask: Any, *, recursive: bool = False) -> Any:
        """Keep only the fields named; see `sm.ops.in_mask`."""
        return OPERATORS["in_mask"](self, mask, recursive=recursive)

    def out_mask(self, mask: Any, *, recursive: bool = False) -> Any:
        """Remove the fields named; see `sm.ops.out_mask`."""
        return OPERATORS["out_mask"](self, mask, recursive=recursive)

    def prefix(self, prefix: str) -> Any:
        """Rename every top-level field `k` to `prefix_k`; see `sm.ops.prefix`."""
        return OPERATORS["prefix"](self, prefix)

    def suffix(self, suffix: str) -> Any:
        """Rename every top-level field `k` to `k_suffix`; see `sm.ops.suffix`."""
        return OPERATORS["suffix"](self, suffix)

    def factorize(self, names: Mapping[str, str] | None = None) -> Any:
        """Gather numbered repeats into arrays; see `sm.ops.factorize`."""
        return OPERATORS["factorize"](self, names)

    def __contains__(self, part: Any) -> bool:
        return OPERATORS["holds"](self, part)

    def __bool__(self) -> bool:
        """Always true: only None means 'not there'."""
        return True


def label(x: Described[Any]) -> str:
    """Give the label of a value or a symbol, also where a declared field `name` hides it."""
    return x._label or label_of(x._schema)


def field_list(names: Iterable[str]) -> str:
    """Show the fields there are, for an error."""
    return ", ".join(map(repr, names)) or "none"


def importable(model: type[BaseModel] | None) -> type[BaseModel] | None:
    """Give a class back if a pickle can name it; a class made in a function is left out, its schema is enough."""
    if model is None:
        return None
    found: Any = sys.modules.get(model.__module__)
    for step in model.__qualname__.split("."):
        found = getattr(found, step, None)
    return model if found is model else None

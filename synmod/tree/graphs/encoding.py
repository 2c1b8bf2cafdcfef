"""The text of a static, equal in every process; what has none compares by identity."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import enum
import json
import types
import uuid
from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel

from synmod.data import Described, SymbolicDataModel, schema_of
from synmod.errors import SynmodError
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen
from synmod.registry import id_of
from synmod.tree.variable.containers import class_of
from synmod.tree.walking.static import Static

_SCALARS: Final[dict[type[Any], Callable[[Any], str]]] = {
    dt.date: lambda x: x.isoformat(),
    dt.time: lambda x: x.isoformat(),
    dt.datetime: lambda x: x.isoformat(),
    dt.timedelta: repr,
    decimal.Decimal: str,
    uuid.UUID: str,
    bytes: lambda x: base64.b64encode(x).decode(),
}


_JSON: Final = frozenset({type(None), bool, int, float, str, dict, list, FrozenDict, FrozenList})

canonical_json: Final[Callable[[Json], str]] = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
"""Writes JSON with sorted keys: equal texts for values that `json_equal` takes for equal."""


def class_text(cls: type[Any]) -> str:
    """Name a class: by its public id, else by module and qualified name."""
    return id_of(cls) or f"{cls.__module__}:{cls.__qualname__}"


def static_text(value: Any) -> str | None:
    """Encode a static.

    Returns:
        A text, the same for equal statics in every process; None where the object has none: other functions than
        registered ones, handles, blobs.
    """
    kind = class_of(value)
    if kind is str and value.isascii():
        return canonical_json(value)
    if kind in _JSON:
        return _json_text(value)
    if kind is Static:
        return "static"
    if isinstance(value, type):
        return _class_value_text(value)
    if isinstance(value, SymbolicDataModel):
        return f"data_model {canonical_json(schema_of(value))}"
    if isinstance(value, Described | BaseModel):
        return data_text(value, value)
    if isinstance(value, types.FunctionType):
        public_id = id_of(value)
        return None if public_id is None else f"function {public_id}"
    if isinstance(value, enum.Enum):
        return f"enum {class_text(kind)} {value.name}"
    if kind in _SCALARS:
        return f"{kind.__name__} {_SCALARS[kind](value)}"
    if kind is set or kind is frozenset:
        texts = [static_text(item) for item in value]
        return None if None in texts else f"{kind.__name__} {sorted(map(str, texts))}"
    return _json_text(value) if isinstance(value, FrozenDict) else None


def _json_text(value: Json) -> str | None:
    try:
        return canonical_json(frozen(value))
    except ValueError:  # NaN, an int of too many digits, what is no JSON
        return None


def _class_value_text(cls: type[Any]) -> str:
    if issubclass(cls, BaseModel):
        try:
            return f"data_model {canonical_json(schema_of(cls))}"
        except SynmodError:  # a model whose schema cannot be used is known by its name only
            return f"class {class_text(cls)}"
    return f"class {class_text(cls)}"


def data_text(model: Any, json: Json) -> str | None:
    """Describe a data model of this content; None where its schema cannot be used."""
    try:
        return f"data {canonical_json(schema_of(model))} {canonical_json(frozen(json))}"
    except SynmodError:
        return None

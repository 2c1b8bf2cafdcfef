"""What counts when structures are compared: a text for each static, the same in every process."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from pydantic import BaseModel

from synmod.data import Described, SymbolicDataModel, schema_of
from synmod.errors import SynmodError
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen
from synmod.registry import id_of

from .nodes import DICTS, Static, class_of, is_namedtuple, is_registered_container, take_apart

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

REMEDY: Final = (
    "Wrap it in static(x), list its attribute in _graph_ignored, or make it from JSON by a get_config of your own."
)

canonical_json: Final[Callable[[Json], str]] = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
"""JSON with sorted keys: equal texts for values that `json_equal` takes for equal."""


class Opaque:
    """A static that cannot be encoded: equal only to one of the very same object.

    Attributes:
        value: The object.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.value is self.value

    def __hash__(self) -> int:
        return hash(self.value)


Token = str | int | Opaque


def class_text(cls: type[Any]) -> str:
    """The name of a class: its public id, else module and qualified name."""
    return id_of(cls) or f"{cls.__module__}:{cls.__qualname__}"


def token_of(value: Any, json: Json = None) -> Token:
    """What a static counts as; `json` is what a data model was when it was recorded."""
    text = static_text(value) if json is None else data_text(value, json)
    return Opaque(value) if text is None else text


def static_text(value: Any) -> str | None:
    """Encode a static.

    Returns:
        A text, the same for equal statics in every process; None where the object has none: functions that are not
        registered, handles, blobs.
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
    except ValueError:  # NaN, an int of too many digits, what is not JSON
        return None


def _class_value_text(cls: type[Any]) -> str:
    if issubclass(cls, BaseModel):
        try:
            return f"data_model {canonical_json(schema_of(cls))}"
        except SynmodError:  # a model whose schema cannot be used is known by its name only
            return f"class {class_text(cls)}"
    return f"class {class_text(cls)}"


def data_text(model: Any, json: Json) -> str | None:
    """Encode a data model of this content; None where its schema cannot be used."""
    try:
        return f"data {canonical_json(schema_of(model))} {canonical_json(frozen(json))}"
    except SynmodError:
        return None


def nest_tokens(nest: Any, reference: Callable[[Any], Token | None]) -> Iterable[Token]:
    """Encode a nest of plain containers, dataclasses, references and statics.

    Args:
        nest: What a node type compares of its metadata.
        reference: Encodes a reference to a node or Variable; None for anything else.
    """
    token = reference(nest)
    cls = class_of(nest)
    if token is not None:
        yield token
        return
    if cls in DICTS or isinstance(nest, FrozenDict):
        pairs, name = by_key(nest.items()), "dict"
    elif cls in (list, tuple) or isinstance(nest, FrozenList):
        pairs, name = list(enumerate(nest)), "tuple" if cls is tuple else "list"
    elif is_namedtuple(cls) or cls is deque or is_registered_container(cls):
        (pairs, rest), name = take_apart(nest), class_text(cls)
        pairs = [*pairs, (None, rest)]
    elif dataclasses.is_dataclass(nest) and not isinstance(nest, type):
        name = class_text(cls)
        pairs = [(field.name, getattr(nest, field.name)) for field in dataclasses.fields(nest) if field.compare]
    else:
        yield token_of(nest)
        return
    yield name
    yield len(pairs)
    for key, part in pairs:
        yield repr(key)
        yield from nest_tokens(part, reference)


def by_key(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Sort pairs by key; int and str keys may be mixed."""
    return sorted(pairs, key=lambda pair: (type(pair[0]).__name__, str(pair[0])))

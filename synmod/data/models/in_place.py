"""Finding what was edited in place: pydantic writes True as 1 where an int was declared, and says nothing."""

from __future__ import annotations

from typing import Any, Final, cast

from pydantic import BaseModel

from synmod.data.schemas.schema import Schema
from synmod.data.schemas.subschemas import without_annotations
from synmod.data.validation.validate import is_valid
from synmod.leaves.frozen import FrozenDict, FrozenList, is_object
from synmod.leaves.names import pointer

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class EditedField:
    """How a field is checked whose value could be edited in place after it was assigned.

    Attributes:
        schema: Schema of the field, with the definitions it refers to.
        container: list or dict, where the schema asks nothing of one but the kinds of its parts; else None.
        kinds: Those kinds.
    """

    __slots__ = ("container", "kinds", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.container: type | None = None
        self.kinds: frozenset[type] = frozenset()
        demands = without_annotations(schema)
        for kind, keyword, container in (("array", "items", list), ("object", "additionalProperties", dict)):
            if demands.keys() - {"$defs"} == {"type", keyword} and demands["type"] == kind:
                kinds = _kinds_of(demands[keyword])
                if kinds:
                    self.container, self.kinds = container, frozenset(kinds)

    def fault(self, raw: Any, json: Any, key: str) -> str | None:
        """Give the pointer of a fault in a value and its dump; "" where the schema knows better, None if there is none.

        Hot: a list of texts or a dict of numbers is judged by the types of its parts.
        """
        if raw.__class__ is self.container and self.kinds.issuperset(
            map(type, raw.values() if self.container is dict else raw)
        ):
            return None
        return lost_bool(raw, json, key) if is_valid(self.schema, json) else ""


def _kinds_of(schema: Any) -> tuple[type, ...]:
    """Give the Python types that a schema of plain scalars admits, none where it asks for more."""
    if is_object(schema) and schema.keys() == {"type"} and isinstance(schema["type"], str):
        return _KINDS.get(schema["type"], ())
    if is_object(schema) and schema.keys() == {"anyOf"}:
        arms = [_kinds_of(arm) for arm in schema["anyOf"]]
        return sum(arms, ()) if all(arms) else ()
    return ()


def lost_bool(raw: Any, json: Any, key: str) -> str | None:
    """Give the pointer of the first bool in a field's value that is no bool in its dump, None if there is none."""
    pending: list[tuple[Any, Any, tuple[str | int, ...]]] = [(raw, json, (key,))]
    while pending:
        raw, json, path = pending.pop()
        if raw is True or raw is False:
            if type(json) is not bool:
                return pointer(path)
        elif isinstance(json, FrozenList):
            items = list(cast("list[Any]", raw)) if isinstance(raw, list | tuple) else []
            if len(items) == len(json):
                pending.extend((part, json[at], (*path, at)) for at, part in enumerate(items))
        elif isinstance(json, FrozenDict):
            if isinstance(raw, BaseModel):
                pending.extend(
                    (raw.__dict__.get(name), json[written], (*path, written))
                    for written, name in written_names(type(raw)).items()
                    if written in json
                )
            elif is_object(raw) and len(raw) == len(json):
                pending.extend(
                    (part, json[written], (*path, written)) for part, written in zip(raw.values(), json, strict=True)
                )
    return None


def written_names(cls: type[BaseModel]) -> dict[str, str]:
    """Give the names of fields by the keys under which they are written."""
    return {field.serialization_alias or name: name for name, field in cls.model_fields.items()}

"""Finding what was edited in place: pydantic writes True as 1 where an int was declared, and says nothing."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from synmod.leaves.frozen import FrozenDict, FrozenList, is_object
from synmod.leaves.paths import pointer


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

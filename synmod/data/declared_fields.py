"""What a data model may not declare: fields whose JSON would not be valid for their own schema."""

from __future__ import annotations

from pydantic import BaseModel

from synmod.data.schema import Schema


def refuse_unsound_fields(cls: type[BaseModel], schema: Schema) -> None:
    """Refuse declarations that break the round trip."""


def has_own_serializer(cls: type[BaseModel]) -> bool:
    """Tell whether user code writes some of the JSON, so that each dump must be checked."""
    return False

"""How pydantic writes a class as a schema for us: validation mode, by alias, without its own patterns for a type."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema


class UnwritableField(Exception):
    """A field that has no JSON Schema; `class_schema` finds its name."""

    def __init__(self, field: Any, why: str) -> None:
        super().__init__(why)
        self.field = field


class _Writer(GenerateJsonSchema):
    """Pydantic's generator; the patterns it writes for a type of its own (Decimal) stay with pydantic."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        """Drop the pattern: it needs look-around, and `.to(Model)` checks the number."""
        return _without_pattern(super().decimal_schema(schema))

    def model_field_schema(self, schema: core_schema.ModelField) -> dict[str, Any]:
        """Say which field it is that cannot be written."""
        try:
            return super().model_field_schema(schema)
        except PydanticInvalidForJsonSchema as error:
            raise UnwritableField(schema, error.message) from error

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Refuse a default that is no JSON; pydantic would leave it out with a warning."""
        if kind == "non-serializable-default":
            raise PydanticInvalidForJsonSchema(detail)

    def complex_schema(self, schema: core_schema.ComplexSchema) -> dict[str, Any]:
        """Likewise."""
        return _without_pattern(super().complex_schema(schema))


def _without_pattern(written: dict[str, Any]) -> dict[str, Any]:
    """Take `pattern` out of a schema and of its alternatives."""
    kept = {key: value for key, value in written.items() if key != "pattern"}
    if "anyOf" in kept:
        kept["anyOf"] = [_without_pattern(arm) for arm in kept["anyOf"]]
    return kept


def written_schema(cls: type[BaseModel]) -> dict[str, Any]:
    """Ask pydantic for the schema of a class."""
    return cls.model_json_schema(by_alias=True, schema_generator=_Writer, mode="validation")

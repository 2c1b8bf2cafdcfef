"""Validation of JSON against a schema, with the meaning of the jsonschema library."""

from __future__ import annotations

from synmod.data.schema import Schema
from synmod.errors import Problem, SchemaError
from synmod.leaves.frozen import Json
from synmod.leaves.paths import pointer


def problems(schema: Schema, json: Json, *, limit: int = 10) -> tuple[Problem, ...]:
    """List what is wrong with `json`, at most `limit` faults, in document order."""
    from jsonschema import Draft202012Validator

    found = []
    for error in Draft202012Validator(schema).iter_errors(json):
        found.append(Problem(pointer(error.absolute_path), error.message, repr(error.instance)[:200]))
        if len(found) == limit:
            break
    return tuple(found)


def validate(schema: Schema, json: Json, where: str) -> None:
    """Raise SchemaError, beginning with `where`, unless `json` is valid."""
    found = problems(schema, json)
    if found:
        lines = "\n".join(f"  {p.pointer or '(root)'}: wanted {p.wanted}, got {p.got}" for p in found)
        raise SchemaError(f"{where}: does not satisfy its schema:\n{lines}", found)

"""Schemas of older drafts: taken as 2020-12 where they mean the same there, refused where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, frozen_dict, is_object

from .keywords import ASSERTIONS
from .wellformed import at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .outline import Outline, Position

CURRENT: Final = "2020-12"

_DRAFTS: Final[Mapping[str, str]] = {
    "json-schema.org/draft-04/schema": "4",
    "json-schema.org/draft-06/schema": "6",
    "json-schema.org/draft-07/schema": "7",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft/2020-12/schema": CURRENT,
}

_GONE: Final[Mapping[str, str]] = {
    "$recursiveRef": "write a '$ref' to '#' or '#/...'",
    "additionalItems": "write the list of 'items' as 'prefixItems', and 'additionalItems' as 'items'",
    "dependencies": "write 'dependentRequired' for lists of names, 'dependentSchemas' for schemas",
}

_NAMES: Final = ("$schema", "$id", "id")


def draft_of(schema: Mapping[str, Any]) -> str:
    """Tell of which draft a schema says to be.

    Raises:
        SchemaError: Its `$schema` names none from draft 4 to 2020-12.
    """
    named = schema.get("$schema")
    if named is None:
        return CURRENT
    address = named.removesuffix("#").removeprefix("https://").removeprefix("http://") if type(named) is str else ""
    if address not in _DRAFTS:
        raise SchemaError(
            f"{at(('$schema',))}: {named!r:.200} is no known draft: leave it out, and write the schema as of 2020-12."
        )
    return _DRAFTS[address]


def without_names(schema: FrozenDict) -> FrozenDict:
    """Take off what names the draft and the document: references inside it do not need them."""
    kept = {key: value for key, value in schema.items() if not (key in _NAMES and type(value) is str)}
    return schema if len(kept) == len(schema) else frozen_dict(kept)


def check_draft(outline: Outline, draft: str) -> None:
    """Refuse what means something else in 2020-12 than in the draft that the schema was written for.

    Raises:
        SchemaError: Names the pointer, and how it is written today.
    """
    if draft == CURRENT:
        return
    for position in outline.positions:
        if is_object(position.schema):
            _check_schema(position, draft)


def _check_schema(position: Position, draft: str) -> None:
    schema, steps = position.schema, position.steps
    for keyword, remedy in _GONE.items():
        if keyword in schema:
            raise SchemaError(f"{at((*steps, keyword))}: {keyword!r} of draft {draft} is gone: {remedy}.")
    if draft == "4" and steps and type(schema.get("id")) is str:
        raise SchemaError(f"{at((*steps, 'id'))}: only the root may have an id; references are '#' or '#/...'.")
    if draft != "2019-09" and "$ref" in schema:
        for keyword in schema:
            if keyword in ASSERTIONS and keyword != "$ref":
                raise SchemaError(
                    f"{at((*steps, keyword))}: draft {draft} ignores {keyword!r} beside '$ref', 2020-12 does not: "
                    "leave it out, or drop '$schema' if it is meant."
                )

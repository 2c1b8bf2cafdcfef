"""Schemas as interned frozen objects: equal schemas, key order included, are one object.

So "the same schema" is `is`, and what is known of a schema is kept with it: that it was checked, how values are
checked against it, what it is a subschema of.
"""

from __future__ import annotations

import threading
from itertools import count
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves.frozen import FrozenDict, Json, fill, frozen, frozen_dict, is_object, thaw

from .check_budget import count_values
from .closed import target_of
from .complexity import check_complexity
from .drafts import check_draft, draft_of, without_names
from .outline import MAX_NESTED, Outline
from .schema_budget import SchemaBudget

if TYPE_CHECKING:
    from synmod.data.validation.checker import Checker

Root: TypeAlias = Literal["object", "any"]
"""What must stand at the root: an object, as in a data model, or anything, as in a Variable."""

_MAX_NESTING: Final = 200
"""How deep the JSON of a schema may nest: two levels for each of 50 subschemas, and an example at the bottom."""

_MAX_VALUES: Final = 1_000_000
"""How many JSON values a schema may hold."""


class Schema(FrozenDict):
    """A JSON Schema, frozen and interned; made by `schema_from` and `trusted_schema`."""

    __slots__ = ("_checked", "_checker", "_parts", "_serial", "_subtypes")

    _checked: bool  # whether it is known to be closed, well formed and within the budget
    _checker: Checker | None
    _serial: int  # never used again, unlike an id
    _subtypes: dict[int, bool]

    def __reduce__(self) -> tuple[Any, ...]:
        return trusted_schema, (thaw(self),)


_ENCODER: Final = JSONEncoder(ensure_ascii=False)  # may write NaN, which frozen JSON never is

_interned: WeakValueDictionary[str, Schema] = WeakValueDictionary()
_interning = threading.RLock()  # reentrant: a finaliser may run while it is held
_serials = count()


def schema_from(json: Json, *, root: Root = "object", together: SchemaBudget | None = None) -> Schema:
    """Check a schema from outside, whatever it came from, and intern it.

    Args:
        json: A JSON Schema of draft 4 to 2020-12, or True for anything.
        root: "object" asks for an object at the root, as a data model needs it.
        together: What the schemas of one file may cost together; a schema that is known already costs nothing.

    Returns:
        The one `Schema` of that content, without `$schema` and `$id`.

    Raises:
        SchemaError: It is no schema, is not closed, means something else in 2020-12 than in the draft it names, or has
            no object at its root. Names the pointer.
        SchemaTooComplex: It is over the complexity budget. Names the pointer and the limit.
        DataError: It is no JSON.

    Example:
        >>> schema_from({"type": "object", "properties": {"a": {"type": "integer"}}})
        {'type': 'object', 'properties': {'a': {'type': 'integer'}}}

    Source: jsonschema's `check_schema`; differs: closed, bounded, once for each schema.
    """
    if isinstance(json, Schema) and json._checked:
        schema = json
    else:
        written = _frozen_schema(json)
        if together is None and count_values(written) > _MAX_VALUES:  # a file is no larger than its limits
            raise SchemaTooComplex(f"The schema is over the limit of {_MAX_VALUES:,} JSON values.")
        text = _text_of(written)
        known = _interned.get(text)
        schema = known if known is not None and known._checked else _checked_schema(written, text, together)
    if root == "object":
        _check_object_root(schema)
    return schema


def trusted_schema(json: Json) -> Schema:
    """Intern a schema that needs no check: a result of the algebra, or of another `Schema`.

    Raises:
        SchemaError: It is neither an object nor True.
    """
    if isinstance(json, Schema):
        return json
    written = _frozen_schema(json)
    return _intern(written, _text_of(written))


def _frozen_schema(json: Json) -> FrozenDict:
    """Freeze the JSON of a schema; True becomes the object that asks nothing."""
    if json is True:
        return frozen_dict({})
    if json is False:
        raise SchemaError("The schema False admits no value: write what is allowed.")
    if not is_object(json):
        raise SchemaError(f"A schema is an object or True, not a value of type {type(json).__name__}.")
    try:
        return frozen(json, _MAX_NESTING, SchemaTooComplex)
    except SchemaTooComplex as error:
        raise SchemaTooComplex(f"{error} A schema has at most {MAX_NESTED} subschemas inside one another.") from None


def _text_of(written: FrozenDict) -> str:
    """Give the text that is equal for equal schemas only: kinds of numbers and the order of keys count."""
    return _ENCODER.encode(written)


def _checked_schema(written: FrozenDict, text: str, together: SchemaBudget | None) -> Schema:
    """Check a schema in every way that does not depend on where it is used."""
    draft = draft_of(written)
    named = without_names(written)
    outline = Outline(named)
    check_draft(outline, draft)
    check_complexity(outline, SchemaBudget() if together is None else together)
    schema = _intern(named, text if named is written else _text_of(named))
    schema._checked = True
    return schema


def _intern(written: FrozenDict, text: str) -> Schema:
    """Give the one object of this content."""
    with _interning:
        schema = _interned.get(text)
        if schema is None:
            schema = Schema.__new__(Schema)
            fill(schema, written)
            schema._checked = False
            schema._checker = None
            schema._serial = next(_serials)
            schema._subtypes = {}
            _interned[text] = schema
        return schema


def _check_object_root(schema: Schema) -> None:
    """Ask for an object at the root, one step behind a root reference."""
    here: Any = schema
    if "$ref" in schema and not schema.keys() & {"type", "properties"}:
        here = target_of(schema, schema["$ref"])
    kind = here.get("type", "object" if "properties" in here else None) if is_object(here) else None
    if kind != "object":
        raise SchemaError(
            f"The schema of a data model has an object at its root ('type': 'object', or 'properties'), "
            f"not {kind or 'a schema of another kind'}: put it under a key of an object."
        )

"""The complexity budget of a schema: what checking a value may cost at most, known before any value comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves.frozen import is_array, is_object

from .outline import applies_in_place
from .patterns import BadPattern, compiled
from .wellformed import at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .keywords import Step
    from .outline import Outline, Position
    from .schema_budget import SchemaBudget

MAX_AT_ONE_PLACE: Final = 10_000
"""Against how many subschemas one value may be checked, references and combinations expanded."""

MAX_UNIQUE_ITEMS: Final = 1_000
"""How long a list may be whose unique items are not known to be scalars."""

_SCALARS: Final = frozenset({"boolean", "integer", "null", "number", "string"})


def check_complexity(outline: Outline, budget: SchemaBudget) -> None:
    """Check everything but the number and the nesting of subschemas, which the outline has checked.

    Args:
        outline: The schema.
        budget: What this schema, or all schemas of one file, may cost.

    Raises:
        SchemaError: A reference leads back to itself without a property or an item between.
        SchemaTooComplex: A limit is passed. Names the pointer and the limit.
    """
    charge(outline, budget)
    if any(applies_in_place(position.schema) for position in outline.positions):
        inner_first = _inner_first(outline)
        _check_expansion(outline, inner_first)
    else:
        inner_first = [position.schema for position in outline.positions]
    _check_patterns(outline)
    _check_unique_items(outline, inner_first)


def _inner_first(outline: Outline) -> list[Any]:
    """Order the schemas so that what is applied in the place of another comes before it; no recursion."""
    done: dict[int, bool] = {}  # id -> whether everything in its place is ordered; False while that is under way
    ordered: list[Any] = []
    for position in outline.positions:
        pending = [position.schema]
        while pending:
            schema = pending[-1]
            if id(schema) not in done:
                done[id(schema)] = False
                for part in outline.in_place(schema):
                    if done.get(id(part)) is False and is_object(part):
                        raise SchemaError(
                            f"{_place(outline, part)}: a reference leads back here with no property or item between: "
                            "let the cycle pass through 'properties', 'items' or 'additionalProperties'."
                        )
                    if id(part) not in done:
                        pending.append(part)
            else:
                pending.pop()
                if not done[id(schema)]:
                    done[id(schema)] = True
                    ordered.append(schema)
    return ordered


def _check_expansion(outline: Outline, inner_first: Iterable[Any]) -> None:
    """Count against how many subschemas a value is checked where each schema stands."""
    applied: dict[int, int] = {}
    for schema in inner_first:
        applied[id(schema)] = 1 + sum(applied[id(part)] for part in outline.in_place(schema))
        if applied[id(schema)] > MAX_AT_ONE_PLACE:
            raise SchemaTooComplex(
                f"{_place(outline, schema)}: a value here is checked against more than the limit of "
                f"{MAX_AT_ONE_PLACE:,} subschemas, references and combinations expanded."
            )


def charge(outline: Outline, budget: SchemaBudget) -> None:
    """Take what a schema costs from a budget.

    Raises:
        SchemaTooComplex: It has too many subschemas, or its patterns are too large.
    """
    budget.take_schema(len(outline.positions))
    for position in outline.positions:
        for steps, source in _patterns_of(position):
            if not budget.take_pattern(source):
                raise SchemaTooComplex(f"{at(steps)}: the patterns pass the limit of size, all taken together.")


def _check_patterns(outline: Outline) -> None:
    """Compile all patterns."""
    patterns: dict[str, tuple[Step, ...]] = {}
    for position in outline.positions:
        for steps, source in _patterns_of(position):
            patterns.setdefault(source, steps)
    for source, steps in patterns.items():
        try:
            compiled(source)
        except BadPattern as error:
            raise SchemaTooComplex(
                f"{at(steps)}: the pattern {source!r:.200} does not compile in the linear-time engine: {error}. "
                "The limit is a regular expression without look-around and backreferences."
            ) from None


def _patterns_of(position: Position) -> Iterable[tuple[tuple[Step, ...], str]]:
    steps, schema, _ = position
    if not is_object(schema) or ("pattern" not in schema and "patternProperties" not in schema):
        return ()
    found = [((*steps, "patternProperties", source), source) for source in schema.get("patternProperties", ())]
    return [((*steps, "pattern"), schema["pattern"]), *found] if "pattern" in schema else found


def _check_unique_items(outline: Outline, inner_first: Iterable[Any]) -> None:
    """Ask for a short list where unique items may be more than scalars."""
    unique = [position for position in outline.positions if is_object(position.schema) and _is_long(position.schema)]
    scalar: dict[int, bool] = {}
    for schema in inner_first if unique else ():
        scalar[id(schema)] = _shows_scalars(outline, schema, scalar)
    for position in unique:
        schema = position.schema
        if not all(_known(part, scalar) for part in [schema.get("items", True), *schema.get("prefixItems", ())]):
            raise SchemaTooComplex(
                f"{at((*position.steps, 'uniqueItems'))}: over items that are not shown to be scalars this needs "
                f"'maxItems' with the limit of {MAX_UNIQUE_ITEMS:,}."
            )


def _is_long(schema: Mapping[str, Any]) -> bool:
    """Tell whether the items of a list must be unique that may be long."""
    return schema.get("uniqueItems") is True and schema.get("maxItems", MAX_UNIQUE_ITEMS + 1) > MAX_UNIQUE_ITEMS


def _shows_scalars(outline: Outline, schema: Any, known: Mapping[int, bool]) -> bool:
    """Tell whether a schema shows that it takes scalars only."""
    if not is_object(schema):
        return _known(schema, known)
    kinds = schema.get("type")
    if kinds is not None and _SCALARS.issuperset(kinds if is_array(kinds) else (kinds,)):
        return True
    members: list[Any] = [schema["const"]] if "const" in schema else schema.get("enum", [[]])
    if not any(is_object(member) or is_array(member) for member in members):
        return True
    if "$ref" in schema and _known(outline.target(schema), known):
        return True
    if any(_known(part, known) for part in schema.get("allOf", ())):
        return True
    return any(
        keyword in schema and all(_known(arm, known) for arm in schema[keyword]) for keyword in ("anyOf", "oneOf")
    )


def _known(schema: Any, known: Mapping[int, bool]) -> bool:
    return known[id(schema)] if is_object(schema) else schema is False


def _place(outline: Outline, schema: Any) -> str:
    """Name the first place where a schema stands."""
    return next(at(position.steps) for position in outline.positions if position.schema is schema)

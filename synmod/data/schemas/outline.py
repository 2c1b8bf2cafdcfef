"""The outline of a schema: every place where a subschema stands, and where each reference leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves.frozen import is_object

from .closed import check_closed, steps_of, target_of
from .keywords import IN_PLACE, Step, subschemas
from .wellformed import at, check_wellformed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_SUBSCHEMAS: Final = 10_000
"""How many subschemas a schema may have."""

MAX_NESTED: Final = 50
"""How many subschemas may stand inside one another."""


_APPLIED: Final = frozenset({"$ref", *IN_PLACE})


def applies_in_place(schema: Any) -> bool:
    """Whether a schema applies others to the very value that it is applied to."""
    return is_object(schema) and not _APPLIED.isdisjoint(schema)


class Position(NamedTuple):
    """One place where a schema stands: the steps to it from the root, and how many schemas it stands in."""

    steps: tuple[Step, ...]
    schema: Any
    depth: int


class Outline:
    """Every position of a well-formed, closed schema, in document order; the root is the first."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        """Walk the schema, and what references name outside its subschemas; no recursion.

        Raises:
            SchemaError: It is not well formed or not closed.
            SchemaTooComplex: It has too many subschemas, or too many inside one another.
        """
        self.root = root
        self.positions: list[Position] = []
        self._at: dict[tuple[str, ...], Any] = {}
        self._targets: dict[str, Any] = {}
        self._walk((), root)
        for position in self.positions:  # grows while it is read
            if is_object(position.schema) and "$ref" in position.schema:
                self._visit_target(position)

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Give the schema that the `$ref` of a schema names."""
        return self._targets[schema["$ref"]]

    def in_place(self, schema: Any) -> Iterator[Any]:
        """Give what is applied to the very value that a schema is applied to, references followed."""
        if not applies_in_place(schema):
            return
        for steps, part in subschemas(schema):
            if steps[0] in IN_PLACE:
                yield part
        if "$ref" in schema:
            yield self.target(schema)

    def _visit_target(self, position: Position) -> None:
        """Make sure that a reference leads to a schema, and walk that if it stands in no known place."""
        reference = position.schema["$ref"]
        if reference in self._targets:
            return
        steps = steps_of(reference)
        if steps not in self._at:
            try:
                found = target_of(self.root, reference)
            except SchemaError as error:
                raise SchemaError(f"{at((*position.steps, '$ref'))}: {error}") from None
            self._walk(steps, found)
        self._targets[reference] = self._at[steps]

    def _walk(self, steps: tuple[Step, ...], schema: Any) -> None:
        pending = [Position(steps, schema, 0)]
        while pending:
            position = pending.pop()
            steps, schema, depth = position
            check_wellformed(schema, steps)
            key = tuple(map(str, steps))
            if key in self._at:
                continue
            self._at[key] = schema
            self.positions.append(position)
            if len(self.positions) > MAX_SUBSCHEMAS + 1:
                raise SchemaTooComplex(f"{at(steps)}: the limit of {MAX_SUBSCHEMAS:,} subschemas is passed here.")
            if depth > MAX_NESTED:
                raise SchemaTooComplex(
                    f"{at(steps)}: the limit of {MAX_NESTED} subschemas inside one another is passed."
                )
            if is_object(schema):
                check_closed(schema, steps)
                inside = [Position((*steps, *more), part, depth + 1) for more, part in subschemas(schema)]
                pending.extend(reversed(inside))

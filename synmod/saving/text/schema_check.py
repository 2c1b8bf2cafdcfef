"""The check of the schemas of one file: equal texts once, and all of them within one budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.data import MAX_TOGETHER, Outline, SchemaBudget, charge, schema_from
from synmod.errors import SaveProblem, SchemaTooComplex, SynmodError
from synmod.leaves.frozen import is_object
from synmod.saving.text.faults import load_fault, malformed
from synmod.saving.text.layout import compact_plain
from synmod.saving.text.limits import USUAL_VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data import Schema
    from synmod.leaves.frozen import Json
    from synmod.saving.text.limits import FileLimits

__all__ = ["SchemaChecker", "schema_problem"]

_SHALLOW = 200
"""How deep Python's own `repr`, which is faster, may recurse."""


class SchemaChecker:
    """Checks the schemas of one file.

    Args:
        depth: How deep the document nests.
        limits: What the caller allows.
    """

    def __init__(self, depth: int, limits: FileLimits) -> None:
        self._depth = depth
        self._budget = _budget(limits)
        self._known: dict[tuple[str, str], Schema] = {}

    def check(self, json: Json, where: tuple[str | int, ...], root: Any) -> Schema:
        """Check a schema.

        Raises:
            FormatError: It is no object.
            LoadError: It is none that is closed, or too complex, by itself or with all others of the file.
        """
        if not is_object(json):
            raise malformed(where, "wanted an object: a JSON Schema.")
        key = root, repr(json) if self._depth <= _SHALLOW else compact_plain(json, self._depth)
        known = self._known.get(key)
        if known is None:
            try:
                known = schema_from(json, root=root, together=self._budget)
            except SynmodError as error:
                raise load_fault(where, str(error)) from error
            self._known[key] = known
        return known


def _budget(limits: FileLimits) -> SchemaBudget:
    """What the schemas of a file may cost: more only for a caller who raises `max_values`."""
    most = MAX_TOGETHER * max(limits.max_values, USUAL_VALUES) // USUAL_VALUES
    return SchemaBudget(most, ", or raise it with limits=FileLimits(max_values=...)")


def schema_problem(sections: Mapping[str, Json], text: str, limits: FileLimits) -> SaveProblem | None:
    """Tell whether all schemas of a file that is being written would be too complex to be loaded."""
    most = 2 * text.count("{") + text.count("true") + text.count("false")
    if "graph" not in sections or (most <= MAX_TOGETHER and '"pattern' not in text):
        return None
    records: list[Json] = [*sections["data_models"], *sections["graph"]["variables"]]
    budget = _budget(limits)
    try:
        for schema in {id(record["schema"]): record["schema"] for record in records}.values():
            charge(Outline(schema), budget)
    except SchemaTooComplex as error:
        return SaveProblem("", str(error), "let modules share data models, or save parts of the program by themselves")
    return None

"""Graph definitions as JSON, both ways, under the rules of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError
from synmod.leaves.frozen import is_object
from synmod.saving.checking.check import checked
from synmod.saving.checking.resolver import Resolver
from synmod.saving.making.make import make
from synmod.saving.making.model_makers import supplied_models
from synmod.saving.making.module_restore import finish
from synmod.saving.text.document import check_fields
from synmod.saving.text.layout import compact_plain
from synmod.saving.text.limits import DEFAULT_LIMITS
from synmod.saving.text.parse import parse_document
from synmod.saving.vocabulary.problems import raise_if_any
from synmod.saving.writing.encode import encoded_definition
from synmod.tree import record, without_stateful

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import Json
    from synmod.tree import GraphDef

__all__ = ["definition_from", "definition_json"]

_SECTIONS = ("graph", "data_models", "language_models")


def definition_json(graphdef: GraphDef[Any]) -> dict[str, Json]:
    """Write a graph definition as one object of three keys.

    Raises:
        GraphError: Something cannot be written; lists every offender.
    """
    graph = encoded_definition(graphdef)
    raise_if_any(graph.problems, GraphError)
    return graph.json


def definition_from(
    json: Json, *, language_models: Any = None, custom_objects: Mapping[str, Any] | None = None
) -> GraphDef[Any]:
    """Read a graph definition under the rules of a load: its modules are made by their constructors.

    Raises:
        FormatError, LoadError: It cannot be read.
    """
    try:
        text = compact_plain(json, 0)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"GraphDef.from_json takes the JSON that to_json gave: {error}.") from None
    sections, depth, values = parse_document(text.encode(), DEFAULT_LIMITS)
    if not is_object(sections):
        raise ArgumentError(f"GraphDef.from_json takes an object with the keys {', '.join(_SECTIONS)}.")
    check_fields(sections, (), _SECTIONS)
    names = sections["language_models"]
    supplied = supplied_models(language_models, names if is_object(names) else {})
    made = make(checked(sections, depth, values, Resolver(custom_objects), supplied))
    finish(made.builds)
    return without_stateful(record(made.root).graphdef)

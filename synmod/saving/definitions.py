"""Graph definitions as JSON, both ways, under the rules of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError
from synmod.leaves.frozen_types import is_object
from synmod.saving.check import checked
from synmod.saving.document import check_fields
from synmod.saving.encode import encoded_definition
from synmod.saving.faults import malformed, shown
from synmod.saving.layout import compact_plain
from synmod.saving.limits import DEFAULT_LIMITS
from synmod.saving.make import make
from synmod.saving.model_makers import supplied_models
from synmod.saving.module_restore import finish
from synmod.saving.parse import parse_document
from synmod.saving.problems import raise_if_any
from synmod.saving.resolver import Resolver
from synmod.tree.record import record

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
    if graphdef.context is None:
        return graph.json
    return {**graph.json, "graph": {**graph.json["graph"], "context": _context_json(graphdef)}}


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
    graph = sections["graph"]
    context = graph.pop("context", None) if is_object(graph) else None
    supplied = supplied_models(language_models, names if is_object(names) else {})
    made = make(checked(sections, depth, values, Resolver(custom_objects), supplied))
    finish(made.builds)
    graphdef = record(made.root).graphdef
    return graphdef if context is None else _in_context(graphdef, context)


def _context_json(graphdef: GraphDef[Any]) -> Json:
    """Write the mark of an update context: indices are told by their place in definition order, as records are."""
    mapping = graphdef.index_mapping
    indices = None if mapping is None else [mapping.get(index) for index in graphdef.definitions]
    return {"tag": graphdef.context, "index_mapping": indices}


def _in_context(graphdef: GraphDef[Any], context: Json) -> GraphDef[Any]:
    """Put the mark of an update context back.

    Raises:
        FormatError: It is none.
    """
    where = ("graph", "context")
    if not is_object(context):
        raise malformed(where, "wanted an object.")
    check_fields(context, where, ("tag", "index_mapping"))
    tag, indices = context["tag"], context["index_mapping"]
    if not isinstance(tag, str):
        raise malformed((*where, "tag"), "wanted a text.")
    if indices is None:
        return graphdef.in_context(tag)
    numbers = list(graphdef.definitions)
    if not isinstance(indices, list) or len(indices) != len(numbers):  # pyright: ignore[reportUnknownArgumentType]
        raise malformed((*where, "index_mapping"), f"wanted {len(numbers)} indices, one for each node and Variable.")
    mapping = {
        number: _index(index, where)
        for number, index in zip(numbers, indices, strict=True)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if index is not None
    }
    if len(set(mapping.values())) < len(mapping):
        raise malformed((*where, "index_mapping"), "an index stands there twice.")
    return graphdef.in_context(tag, mapping)


def _index(index: Json, where: tuple[str | int, ...]) -> int:
    if type(index) is not int or index < 0:
        raise malformed((*where, "index_mapping"), f"{shown(index)} is no index: wanted an int from 0, or null.")
    return index

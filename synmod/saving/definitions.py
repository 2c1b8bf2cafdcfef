"""Graph definitions as JSON, both ways, under the rules of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError
from synmod.leaves.frozen import is_object
from synmod.leaves.names import path_str
from synmod.saving.checking.check import checked
from synmod.saving.checking.resolver import Resolver
from synmod.saving.making.make import make
from synmod.saving.making.model_makers import supplied_models
from synmod.saving.making.module_restore import finish
from synmod.saving.text.document import check_fields
from synmod.saving.text.faults import malformed, shown
from synmod.saving.text.layout import compact_plain
from synmod.saving.text.limits import DEFAULT_LIMITS
from synmod.saving.text.parse import parse_document
from synmod.saving.vocabulary.problems import raise_if_any
from synmod.saving.writing.encode import encoded_definition
from synmod.tree import Mark, defined_at, record, without_stateful

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
    if graphdef.mark is None:
        return graph.json
    return {**graph.json, "graph": {**graph.json["graph"], "context": _mark_json(graphdef, graphdef.mark)}}


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
    graphdef = without_stateful(record(made.root).graphdef)
    return graphdef if context is None else graphdef.marked(_mark_from(graphdef, context))


def _mark_json(graphdef: GraphDef[Any], mark: Mark) -> Json:
    """Write the mark of an update context: numbers change with a load, so they are told by paths."""
    indices: dict[str, int] = {}
    told: set[int] = set()
    for path, defined in defined_at(graphdef.root, graphdef.definitions):
        if defined.index in mark.indices and defined.index not in told:
            told.add(defined.index)
            indices[path_str(path)] = mark.indices[defined.index]
    return {"tag": mark.tag, "key": mark.key, "inside": mark.inside, "indices": indices}


def _mark_from(graphdef: GraphDef[Any], context: Json) -> Mark:
    """Read the mark of an update context.

    Raises:
        FormatError: It is none.
    """
    where = ("graph", "context")
    if not is_object(context):
        raise malformed(where, "wanted an object.")
    check_fields(context, where, ("tag", "key", "inside", "indices"))
    for name, kind, what in (("tag", str, "a text"), ("key", str, "a text"), ("inside", bool, "true or false")):
        if not isinstance(context[name], kind):
            raise malformed((*where, name), f"wanted {what}.")
    if not is_object(context["indices"]):
        raise malformed((*where, "indices"), "wanted an object.")
    numbers = {path_str(path): each.index for path, each in defined_at(graphdef.root, graphdef.definitions)}
    indices: dict[int, int] = {}
    for path, index in context["indices"].items():
        if path not in numbers:
            raise malformed((*where, "indices"), f"nothing is at {shown(path)} in the graph.")
        if type(index) is not int or index < 0:
            raise malformed((*where, "indices"), f"{shown(index)} is no index: wanted an int from 0.")
        indices[numbers[path]] = index
    if len(set(indices.values())) < len(context["indices"]):
        raise malformed((*where, "indices"), "two parts of the graph are said to be one.")
    return Mark(context["tag"], context["key"], context["inside"], indices, is_foreign=True)

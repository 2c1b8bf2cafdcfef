"""The record of a module: constructor arguments, attributes, what it was built on, and its flow."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, cast

from synmod.data import SymbolicDataModel
from synmod.leaves.frozen import Json, is_object
from synmod.leaves.names import path_str
from synmod.module import Module, is_passed_on
from synmod.saving.text.layout import compact
from synmod.saving.vocabulary.overrides import is_overridden
from synmod.saving.writing.circles import Need
from synmod.saving.writing.flow_record import flow_record
from synmod.saving.writing.terms import Place, TermWriter
from synmod.tree import NODE, STATIC, VARIABLE, Kinds, Static, holds_node

if TYPE_CHECKING:
    from synmod.module import ClassDeclaration
    from synmod.saving.vocabulary.attribute_names import AttributeNames
    from synmod.saving.vocabulary.problems import Problems
    from synmod.saving.writing.circles import Needs
    from synmod.saving.writing.views import NodeView
    from synmod.tree import Visit

__all__ = ["Writer", "module_record"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANSWER = "override get_config, and from_config if the constructor needs it"


class Writer(Protocol):
    """What a record needs of the document that is being written."""

    problems: Problems
    terms: TermWriter
    attribute_names: AttributeNames
    kinds: Kinds
    needs: Needs
    taken_back: set[tuple[int, str]]

    def node(self, node: Any) -> int:
        """The index of a node."""
        ...

    def data_model(self, declared: Any) -> int:
        """The index of a data model."""
        ...


def module_record(view: NodeView, visit: Visit, writer: Writer) -> dict[str, Json]:
    """Write everything of the record but its type."""
    made = view.metadata
    config = _config(view, visit, writer)
    record: dict[str, Json] = {
        "config": config,
        "attributes": _attributes(view, visit, writer, config),
        "build": _build(view, visit, writer),
    }
    now = {"name": made.name, "description": made.description, "trainable": made.trainable}
    given = made.given or tuple(now.values())
    record |= {
        label: now[label]
        for label, before in zip(now, given, strict=True)
        if now[label] != before and not (label in config and is_passed_on(view.live._record, label))
    }
    if made.removed:
        record["removed"] = list(made.removed)
    if made.isolated:
        record["isolated"] = [[name, {"node": writer.node(made.isolated[name])}] for name in sorted(made.isolated)]
    if made.flow is not None:
        record["flow"] = flow_record(made.flow, dict(view.pairs), visit, writer)
    return record


def _config(view: NodeView, visit: Visit, writer: Writer) -> dict[str, Json]:
    """Write the constructor arguments, in the order of the signature."""
    made, declaration = view.metadata, _declaration(view)
    overridden = is_overridden(view.cls, "get_config")
    if made.arguments is None and not overridden:
        what = "not made by calling its class" if declaration.init is not None else "no readable signature"
        if declaration.init is not None and _has_double_names(declaration.init):
            what = "two parameters of one name"
        writer.problems.note(path_str(visit.path), f"{view.cls.__qualname__}: {what}", _ANSWER)
        return {}
    config: dict[str, Any] = view.live.get_config() if overridden else Module.get_config(view.live)
    names = list(config)
    if not overridden:
        signature = declaration.init
        order = {name: number for number, name in enumerate(signature.parameters if signature else ())}
        names.sort(key=lambda name: order.get(name, len(order)))
        _check_left_out(view, visit, writer, config)
    given: dict[str, Any] = made.arguments or {}
    record: dict[str, Json] = {}
    for name in names:
        key, place = (id(visit.value), name), Place(visit, f"argument {name!r}")
        value = config[name]
        if key in writer.taken_back:
            assert declaration.init is not None  # only parameters are taken back
            if name not in given or declaration.init.parameters[name].default is not inspect.Parameter.empty:
                continue
            value = given[name]
        record[name] = writer.terms.term(value, place)
        if writer.terms.nodes_met:
            is_later = not overridden and name in made.reassigned and given.get(name) is not value
            writer.needs.note(writer.node(visit.value), Need(key, writer.terms.nodes_met, is_later, place))
    return record


def _declaration(view: NodeView) -> ClassDeclaration:
    """What the class of a module declares."""
    cls: Any = view.cls
    return cls._declaration


def _check_left_out(view: NodeView, visit: Visit, writer: Writer, config: dict[str, Any]) -> None:
    """An argument that is static or ignored needs a default: nobody will give it after a load."""
    signature = _declaration(view).init
    for name in view.metadata.arguments:
        parameter = signature.parameters.get(name) if signature else None
        if name in config or parameter is None or parameter.default is not parameter.empty:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        writer.problems.note(
            Place(visit, f"argument {name!r}").text([]),
            "static or ignored, and without a default",
            f"give {name!r} a default, or override from_config",
        )


def _attributes(view: NodeView, visit: Visit, writer: Writer, config: dict[str, Json]) -> dict[str, Json]:
    """Write the attributes that a load must restore.

    Left out: statics, what equals its same-named argument, and plain values of a class that answers for them itself.
    """
    made = view.metadata
    answers = is_overridden(view.cls, "get_config")
    terms = writer.terms
    attributes: dict[str, Json] = {}
    for key, value in view.pairs:
        name = str(key)
        if type(value) is Static:
            _check_made_in_build(view, visit, writer, name)
            continue
        if answers and not _holds_structure(value, writer.kinds):
            continue
        fault = writer.attribute_names[view.cls, name]
        if fault is not None:
            writer.problems.note(Place(visit, f"attribute {name!r}").text([]), fault, "give it another name")
            continue
        term = terms.term(value, Place(visit, f"attribute {name!r}"))
        same = config.get(name)
        if same is not None and term == same and not _is_reference(terms, term) and _is_exactly(term, same):
            continue
        attributes[name] = term
    for name in made.ignored:
        _check_made_in_build(view, visit, writer, name)
    return attributes


def _is_exactly(term: dict[str, Json], same: dict[str, Json]) -> bool:
    """Whether two terms that `==` takes for equal are: JSON tells `1`, `1.0` and `True` apart, and orders of keys."""
    return "data_model" in term or "language_model" in term or compact(term) == compact(same)


def _is_reference(terms: TermWriter, term: dict[str, Json]) -> bool:
    """Whether a node or Variable is in a term: such an attribute has a place in the order and is always written."""
    return terms.structure and "language_model" not in term


def _holds_structure(value: Any, kinds: Kinds) -> bool:
    """Whether a value is or holds a node or Variable, or a reference to one."""
    kind = kinds[type(value)]
    return kind in (NODE, VARIABLE) or (kind != STATIC and holds_node(value, kinds))


def _check_made_in_build(view: NodeView, visit: Visit, writer: Writer, name: str) -> None:
    """What `build` made outside the graph is gone after a load, unless the class makes it anew."""
    if name in view.metadata.made_in_build and not is_overridden(view.cls, "build_from_config"):
        writer.problems.note(
            Place(visit, f"attribute {name!r}").text([]),
            "static or ignored, and made in `build`, which a load does not run",
            "override build_from_config and make it there, or make it in the constructor",
        )


def _build(view: NodeView, visit: Visit, writer: Writer) -> Json:
    """Write what the module was built on; null for one that is unbuilt or has no `build`."""
    made = view.metadata
    cls: Any = view.cls
    answers = cls.get_build_config is not Module.get_build_config  # a Sequential does, and has no `build`
    if not made.built or not (answers or cls._declaration.defines_build):
        return None
    config = view.live.get_build_config() if answers else _built_on(made.build_config, cls._declaration.build)
    return None if config is None else writer.terms.term(config, Place(visit, "get_build_config()"))


def _built_on(nests: dict[str, Any] | None, build: inspect.Signature) -> Any:
    """The build config with symbols in the place of schemas: one that goes to the first parameter stands alone."""
    if nests is None:
        return None
    first = next((each.name for each in build.parameters.values() if each.kind in _POSITIONAL), None)
    if first is not None and list(nests) == [first] and isinstance(nests[first], SymbolicDataModel):
        return {"input_schema": nests[first]}
    return {"schemas_dict": {name: _shape(nest) for name, nest in nests.items()}}


def _shape(nest: Any) -> Any:
    """Write a nest as the build config does: a dict is told from a schema by a key around it."""
    if is_object(nest):
        return {"dict": {key: _shape(part) for key, part in nest.items()}}
    return [_shape(part) for part in cast("list[Any]", nest)] if isinstance(nest, list | tuple) else nest


def _has_double_names(signature: inspect.Signature) -> bool:
    """Whether keyword arguments of a constructor may hide its parameters."""
    return any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())

"""Records of nodes, both ways: constructor arguments, attributes, what a module was built on, its functional graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from pydantic import BaseModel
from pydantic_core import to_json

from synmod.data import OPERATIONS, SymbolicDataModel, schema_of, schema_of_class, thaw
from synmod.errors import DataError
from synmod.flow import Declared, FlowGraph, FlowStep, compile_flow
from synmod.leaves.frozen import Json, frozen, is_object
from synmod.leaves.names import did_you_mean, path_str
from synmod.lm import LanguageModel
from synmod.module import Module, attributes_of_build, declaration_of, is_passed_on
from synmod.registry import id_of
from synmod.tree import STATIC, NodeImpl, Static, Visit, get_node_impl, kind_of, own_impl, walk

from .names import AttributeNames, Resolver, check_argument, checked_name, is_overridden
from .problems import (
    Problems,
    Where,
    check_array,
    check_bool,
    check_fields,
    check_index,
    check_object,
    check_pair,
    check_text,
    load_fault,
    malformed,
    shown,
    unregistered,
    user_code,
)
from .tables import DataModelTable, ModelEntry, keep_id
from .terms import Place, Term, TermReader, TermWriter, references

_LABELS = ("name", "description", "trainable")
_ANSWER = "override get_config, and from_config if the constructor needs it"


# -- writing ----------------------------------------------------------------------------------------------------------


class Writer(Protocol):
    """What a record needs of the document that is being written."""

    problems: Problems
    terms: TermWriter
    attribute_names: AttributeNames
    data_models: DataModelTable

    def node(self, node: Any) -> Term:
        """Return the term of a node."""
        ...


class _Site:
    """A node that is being written: its visit, its class, and the places in it."""

    def __init__(self, visit: Visit, writer: Writer) -> None:
        self.visit = visit
        self.node: Any = visit.value
        self.cls: Any = type(visit.value)
        self.writer = writer

    def path(self) -> str:
        """Return the path of the node."""
        return path_str(self.visit.path)

    def place(self, what: str) -> Place:
        """Return a place in the node."""
        return Place(self.path, what)

    def term(self, value: Any, what: str) -> Term:
        """Return the term of something in the node."""
        return self.writer.terms.term(value, self.place(what))

    def problem(self, what: str, fault: str, remedy: str) -> None:
        """Note a problem at a place in the node."""
        self.writer.problems.note(self.place(what).text() if what else self.path(), fault, remedy)


def write_node(visit: Visit, writer: Writer) -> dict[str, Json]:
    """Return the record of a module or of another registered node."""
    site = _Site(visit, writer)
    public_id = id_of(site.cls)
    if public_id is None:
        site.problem("", *unregistered(site.cls, "a node"))
    body = _module(site) if isinstance(site.node, Module) else _plain_node(site)
    return {"type": public_id, **body}


def _plain_node(site: _Site) -> dict[str, Json]:
    """Return what a user's own node type flattens to."""
    pairs, metadata = get_node_impl(site.node).flatten(site.node)
    try:
        json = frozen(metadata)
    except DataError as error:
        json = None
        site.problem("", f"metadata of {site.cls.__qualname__}: {error}", "flatten to JSON")
    return {"metadata": json, "children": [[key, site.term(child, f"child {key!r}")] for key, child in pairs]}


def _module(site: _Site) -> dict[str, Json]:
    """Return everything in the record of a module but its type."""
    pairs, made = get_node_impl(site.node).flatten(site.node)
    children = list(pairs)
    config = _config(site, made)
    record: dict[str, Json] = {
        "config": config,
        "attributes": _attributes(site, children, config),
        "build": _build(site),
    }
    now = {"name": made.name, "description": made.description, "trainable": made.trainable}
    given = made.given or tuple(now.values())
    record |= {
        label: now[label]
        for label, before in zip(now, given, strict=True)
        if now[label] != before and not (label in config and is_passed_on(site.node._record, label))
    }
    if made.removed:
        record["removed"] = list(made.removed)
    if made.isolated:
        record["isolated"] = [[name, site.writer.node(made.isolated[name])] for name in sorted(made.isolated)]
    if made.flow is not None:
        record["flow"] = _flow(site, made.flow, dict(children))
    return record


def _config(site: _Site, made: Any) -> dict[str, Json]:
    """Return the constructor arguments, in the order of the signature."""
    cls, signature = site.cls, declaration_of(site.cls).init
    overridden = is_overridden(cls, "get_config")
    if made.arguments is None and not overridden:
        fault = "no readable signature"
        if signature is not None:
            may_hide = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
            fault = "two parameters of one name" if may_hide else "not made by calling its class"
        site.problem("", f"{cls.__qualname__}: {fault}", _ANSWER)
        return {}
    config: dict[str, Any] = site.node.get_config() if overridden else Module.get_config(site.node)
    names = list(config)
    if not overridden:
        parameters: Mapping[str, Any] = signature.parameters if signature else {}
        order = {name: number for number, name in enumerate(parameters)}
        names.sort(key=lambda name: order.get(name, len(order)))
        for name in made.arguments or ():
            if name not in config and name in parameters and _is_required(parameters[name]):
                remedy = f"give {name!r} a default, or override from_config"
                site.problem(f"argument {name!r}", "static or ignored, and without a default", remedy)
    return {name: site.term(config[name], f"argument {name!r}") for name in names}


def _is_required(parameter: inspect.Parameter) -> bool:
    """Whether a load must give an argument."""
    rest = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in rest


def _attributes(site: _Site, children: list[tuple[Any, Any]], config: dict[str, Json]) -> dict[str, Json]:
    """Return the attributes that a load must restore.

    Left out: statics, plain values that `build` made or that a class with a `get_config` of its own answers for, and
    what equals its same-named argument.
    """
    answers, made_again = (
        is_overridden(site.cls, "get_config"),
        frozenset[str]() if site.node._record.flow else attributes_of_build(site.node),
    )
    attributes: dict[str, Json] = {}
    for key, value in children:
        name = str(key)
        if type(value) is Static:
            continue
        fault = site.writer.attribute_names[site.cls, name]
        if fault is not None:
            site.problem(f"attribute {name!r}", fault, "choose another name")
            continue
        if (answers or name in made_again) and not _holds_structure(value):
            continue
        term = site.term(value, f"attribute {name!r}")
        if name in config and _is_same(term, config[name]):
            continue
        attributes[name] = term
    return attributes


def _holds_structure(value: Any) -> bool:
    """Whether a value is or holds a node or a Variable."""
    return kind_of(value) != STATIC and any(visit.kind != "container" for visit in walk(value, recursive=False))


def _is_same(term: Term, argument: Json) -> bool:
    """Whether an attribute repeats an argument; one that holds a node or Variable has a place in the order."""
    return term == argument and not any(True for _ in references(term)) and to_json(term) == to_json(argument)


def _build(site: _Site) -> Json:
    """Return what the module was built on; null for one that is unbuilt or has no `build`."""
    cls = site.cls
    answers = cls.get_build_config is not Module.get_build_config  # a Sequential has one, and no `build`
    if not site.node.built or not (answers or declaration_of(cls).defines_build):
        return None
    config = site.node.get_build_config() if answers else _build_schemas(site.node)
    return None if config is None else site.term(config, "get_build_config()")


def _flow(site: _Site, flow: FlowGraph, children: Mapping[str | int, Any]) -> dict[str, Json]:
    """Return the record of a functional graph: symbols by number, steps in topological order."""
    return {
        "symbols": [
            {"data_model": site.writer.data_models.index(each), "name": each.name, "optional": each.optional}
            for each in flow.symbols
        ],
        "inputs": site.term(flow.inputs, "inputs"),
        "outputs": site.term(flow.outputs, "outputs"),
        "steps": [_step(site, number, step, children) for number, step in enumerate(flow.steps)],
    }


def _step(site: _Site, number: int, step: FlowStep, children: Mapping[str | int, Any]) -> dict[str, Json]:
    """Return the record of one step."""
    what = f"step {number} ({step.op or step.node})"
    head: dict[str, Json] = {"op": step.op} if step.node is None else site.writer.node(children[step.node])
    return {
        **head,
        "args": [site.term(arg, what) for arg in step.args],
        "kwargs": {name: site.term(value, what) for name, value in step.kwargs.items()},
        "gives": site.term(step.gives, what),
    }


def _build_schemas(module: Module) -> Any:
    """Return the build config of a module with symbols in the place of schemas."""
    nests = module._record.build_config
    if nests is None:
        return None
    return {"schemas": {name: _shape(nest) for name, nest in nests.items()}}


def _shape(nest: Any) -> Any:
    """Return a nest as a build config has it: a dict is told from a schema by a key around it."""
    if is_object(nest):
        return {"dict": {key: _shape(part) for key, part in nest.items()}}
    return [_shape(part) for part in cast("list[Any]", nest)] if isinstance(nest, list | tuple) else nest


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class NodeEntry:
    """A node of a document that is read.

    Attributes:
        index: Its place in `nodes`.
        cls: Its class.
        impl: The rules of its class.
        record: Its record.
    """

    index: int
    cls: type[Any]
    impl: NodeImpl
    record: dict[str, Json]

    @property
    def where(self) -> Where:
        """The place of the record."""
        return ("graph", "nodes", self.index)

    def pairs(self) -> list[tuple[str | int, Json]]:
        """Return the children, keys and terms, in definition order; a Sequential holds its members at int steps."""
        if self.impl.is_module:
            return [(int(key) if key.isdecimal() else key, term) for key, term in self.record["attributes"].items()]
        return [(key, term) for key, term in self.record["children"]]

    def beside(self) -> list[Json]:
        """Return the terms beside the children: arguments, Namespaces, the constants of a graph."""
        if not self.impl.is_module:
            return []
        flow = self.record.get("flow")
        steps: list[Any] = [] if flow is None else flow["steps"]
        arguments: list[Json] = [term for step in steps for term in (*step["args"], *step["kwargs"].values())]
        return [
            *self.record["config"].values(),
            *(term for _, term in self.record.get("isolated", ())),
            *arguments,
            *([] if flow is None else [flow["outputs"]]),
        ]

    def needs(self) -> list[int]:
        """Return the nodes that the constructor is given."""
        if not self.impl.is_module:
            return []
        found = (each for term in self.record["config"].values() for each in references(term))
        return [index for kind, index in found if kind == "node"]


class NodeChecker:
    """Checks the records of nodes: class, arguments and attributes by name, labels, graph. Nothing is made."""

    def __init__(self, resolver: Resolver, terms: TermReader, names: AttributeNames, sizes: tuple[int, int]) -> None:
        self._resolver = resolver
        self._terms = terms
        self._names = names
        self._nodes, self._models = sizes

    def check(self, index: int, entry: Json) -> NodeEntry:
        """Return the entry of a record.

        Raises:
            FormatError: A field is unknown or missing, or a term in it is not one.
            LoadError: Its class is not known here, or it names what the class does not have.
        """
        where = ("graph", "nodes", index)
        record = check_object(entry, where)
        if "type" not in record:
            raise malformed(where, "the field 'type' is missing.")
        cls = self._resolver.find_class(record["type"], (*where, "type"), _is_node, "a class of modules or nodes")
        impl = own_impl(cls)
        assert impl is not None
        node = NodeEntry(index, cls, impl, record)
        if impl.is_module:
            self._module(node)
        else:
            self._plain(node)
        return node

    def _module(self, node: NodeEntry) -> None:
        """Check the record of a module."""
        record, where = node.record, node.where
        needed = ("type", "config", "attributes", "build")
        check_fields(record, where, needed, (*_LABELS, "removed", "isolated", "flow"))
        for name, term in check_object(record["config"], (*where, "config")).items():
            check_argument(node.cls, name, (*where, "config", name))
            self._terms.read(term, (*where, "config", name))
        for name, term in check_object(record["attributes"], (*where, "attributes")).items():
            fault = self._names[node.cls, name]
            if fault is not None:
                raise load_fault((*where, "attributes", name), f"{fault} cannot come from a file.")
            self._terms.read(term, (*where, "attributes", name))
        if record["build"] is not None:
            self._terms.read(record["build"], (*where, "build"))
            if any(True for _ in references(record["build"])):
                raise load_fault((*where, "build"), "a build config holds schemas, not nodes or Variables.")
        if len(record) > len(needed):
            self._rare(node)

    def _rare(self, node: NodeEntry) -> None:
        """Check the fields that a record has only where it differs from what the constructor makes."""
        record, where = node.record, node.where
        if "name" in record:
            checked_name(record["name"], (*where, "name"), "module")
        if "description" in record:
            check_text(record["description"], (*where, "description"))
        if "trainable" in record:
            check_bool(record["trainable"], (*where, "trainable"))
        for number, name in enumerate(check_array(record.get("removed", []), (*where, "removed"))):
            here = (*where, "removed", number)
            if self._names[node.cls, check_text(name, here)] is not None or name in record["attributes"]:
                raise load_fault(here, f"{shown(name)} cannot be the name of a removed attribute.")
        if "isolated" in record:
            self._isolated(node, (*where, "isolated"))
        if "flow" in record:
            self._flow(node, (*where, "flow"))

    def _isolated(self, node: NodeEntry, where: Where) -> None:
        """Check which skip names are put into which Namespaces."""
        skips: Any = declaration_of(node.cls).skips
        declared: list[str] = [] if skips is None else skips.names
        known: set[str] = set()
        for number, pair in enumerate(check_array(node.record["isolated"], where)):
            here = (*where, number)
            name, term = check_pair(pair, here)
            if check_text(name, (*here, 0)) in known:
                raise malformed((*here, 0), f"{shown(name)} stands here twice.")
            known.add(name)
            if name not in declared:
                raise load_fault(
                    (*here, 0),
                    f"{node.cls.__qualname__} declares no skip {shown(name)}.{did_you_mean(name, declared)} Declare it "
                    "with @skippable, or load with the class it was saved with.",
                )
            self._terms.read(term, (*here, 1))
            if "node" not in term:
                raise malformed((*here, 1), "wanted a node: a Namespace.")

    def _plain(self, node: NodeEntry) -> None:
        """Check the record of a user's own node type."""
        where = node.where
        check_fields(node.record, where, ("type", "metadata", "children"))
        keys: set[str] = set()
        for number, pair in enumerate(check_array(node.record["children"], (*where, "children"))):
            here = (*where, "children", number)
            key, term = check_pair(pair, here)
            if type(key) not in (str, int) or str(key) in keys:
                raise malformed((*here, 0), f"{shown(key)} is not a text or an int, or stands here twice.")
            keys.add(str(key))
            self._terms.read(term, (*here, 1))

    # -- functional graphs

    def _flow(self, node: NodeEntry, where: Where) -> None:
        """Check a graph: symbols are made once, before they are used; modules are attributes of the program."""
        if not hasattr(node.cls, "steps"):
            raise load_fault(where, f"{node.cls.__qualname__} is not a Program: it runs no graph.")
        flow = check_object(node.record["flow"], where)
        check_fields(flow, where, ("symbols", "inputs", "outputs", "steps"))
        symbols = check_array(flow["symbols"], (*where, "symbols"))
        for number, symbol in enumerate(symbols):
            here = (*where, "symbols", number)
            record = check_object(symbol, here)
            check_fields(record, here, ("data_model", "name", "optional"))
            check_index(record["data_model"], self._models, (*here, "data_model"), "data_models")
            check_text(record["name"], (*here, "name"))
            check_bool(record["optional"], (*here, "optional"))
        held = {term["node"] for term in node.record["attributes"].values() if "node" in term}
        made: set[int] = set()
        self._makes(flow["inputs"], (*where, "inputs"), len(symbols), made)
        for number, step in enumerate(check_array(flow["steps"], (*where, "steps"))):
            self._step(step, (*where, "steps", number), len(symbols), made, held)
        self._uses(flow["outputs"], (*where, "outputs"), len(symbols), made)

    def _step(self, entry: Json, where: Where, symbols: int, made: set[int], held: set[int]) -> None:
        """Check one step."""
        step = check_object(entry, where)
        head = "op" if "op" in step else "node"
        check_fields(step, where, (head, "args", "kwargs", "gives"))
        if head == "op":
            name = check_text(step["op"], (*where, "op"))
            if name not in OPERATIONS:
                raise malformed((*where, "op"), f"{shown(name)} is not an operator.{did_you_mean(name, OPERATIONS)}")
        elif check_index(step["node"], self._nodes, (*where, "node"), "nodes") not in held:
            raise load_fault((*where, "node"), f"node {step['node']} is not an attribute of the program.")
        for number, term in enumerate(check_array(step["args"], (*where, "args"))):
            self._uses(term, (*where, "args", number), symbols, made)
        for name, term in check_object(step["kwargs"], (*where, "kwargs")).items():
            self._uses(term, (*where, "kwargs", name), symbols, made)
        self._makes(step["gives"], (*where, "gives"), symbols, made)

    def _uses(self, term: Json, where: Where, symbols: int, made: set[int]) -> None:
        """Check an argument: the symbols in it are there."""
        self._terms.read(term, where, symbols)
        for kind, index in references(term):
            if kind == "symbol" and index not in made:
                raise load_fault(where, f"symbol {index} is used before a step makes it.")

    def _makes(self, term: Json, where: Where, symbols: int, made: set[int]) -> None:
        """Check an output: each symbol is made once."""
        self._terms.read(term, where, symbols)
        for kind, index in references(term):
            if kind != "symbol":
                raise load_fault(where, "only symbols can stand here.")
            if index in made:
                raise load_fault(where, f"symbol {index} is made twice.")
            made.add(index)


def _is_node(cls: type) -> bool:
    """Whether a node record may name the class; language models have a table of their own."""
    return own_impl(cls) is not None and not issubclass(cls, LanguageModel)


def restored_flow(node: NodeEntry, module: Module, terms: TermReader, models: list[ModelEntry]) -> FlowGraph:
    """Return the graph of a record, whose modules the program holds already. No call is traced again.

    Raises:
        LoadError: Its operators cannot run on the symbols they are given.
    """
    where = (*node.where, "flow")
    record = node.record["flow"]
    count = len(record["symbols"])
    keys: dict[int, str] = {}
    for key, term in node.record["attributes"].items():
        if "node" in term:
            keys.setdefault(term["node"], key)
    flow = FlowGraph(
        tuple(_declared(symbol, models) for symbol in record["symbols"]),
        terms.read(record["inputs"], where, count),
        terms.read(record["outputs"], where, count),
        tuple(
            FlowStep(
                keys[step["node"]] if "node" in step else None,
                step.get("op"),
                tuple(terms.read(term, where, count) for term in step["args"]),
                {name: terms.read(term, where, count) for name, term in step["kwargs"].items()},
                terms.read(step["gives"], where, count),
            )
            for step in record["steps"]
        ),
    )
    with user_code(where, node.cls):
        compile_flow(flow, vars(module))
    return flow


def _declared(symbol: Mapping[str, Any], models: list[ModelEntry]) -> Declared:
    """Return what a symbol of the table declares."""
    number: int = symbol["data_model"]
    model = models[number]
    schema = model.schema if model.cls is None else schema_of_class(model.cls)
    declared = Declared(schema, model.cls, symbol["name"], symbol["optional"])
    return keep_id(declared, model.public_id) if model.cls is None else declared


def build_config(node: NodeEntry, terms: TermReader) -> Any:
    """Return what the module was built on, with schemas as plain JSON."""
    return _schemas(terms.read(node.record["build"], (*node.where, "build")))


def _schemas(value: Any) -> Any:
    """Return a build config with the schema of each data model in its place."""
    if isinstance(value, dict):
        return {key: _schemas(part) for key, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_schemas(part) for part in cast("list[Any]", value)]
    if isinstance(value, SymbolicDataModel) or (isinstance(value, type) and issubclass(value, BaseModel)):
        return thaw(schema_of(value))
    return cast("Any", value)

"""Records of nodes and Variables, both ways: arguments, attributes, what a module was built on, its graph of steps."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic_core import to_json

from synmod import data, errors, leaves, lm, registry
from synmod.flow import Declared, FlowGraph, FlowStep, compile_flow
from synmod.leaves import FrozenDict, Json, check_name, did_you_mean, frozen, frozen_dict, is_object, is_sequence
from synmod.module import InVariable, Module, constructing, declaration_of, is_passed_on, write_build_config
from synmod.tree import NodeImpl, Static, Variable, Visit, get_node_impl, holds_node, own_impl, path_str

from . import document
from .document import Where, check, check_pairs, check_record, format_error, load_error, short_text, user_code
from .terms import Term, TermReader, TermWriter, ValuePlace, describe_unregistered, references

_LABELS: Final = ("trainable", "name", "description")
_SHOWN = 20

NO_VALUE: Final[Any] = object()
"""A placeholder for the value of a Variable whose value is in the state."""


def _is_overridden(cls: type, method: str) -> bool:
    """Whether a user's class defines the method; the base classes of synmod do not count."""
    base = next(base for base in cls.__mro__ if method in vars(base))
    return not vars(base).get("_is_module_base", False)


# -- writing -----------------------------------------------------------------------------------------------------------


class _Site:
    """A node or Variable that is being written: its visit, its class, and the places in it."""

    def __init__(self, visit: Visit, terms: TermWriter) -> None:
        self.visit, self.terms = visit, terms
        self.node: Any = visit.value
        self.cls: Any = type(visit.value)

    def path(self) -> str:
        """Return the path of the node."""
        return path_str(self.visit.path)

    def term(self, value: Any, what: str) -> Term:
        """Return the term of something in the node."""
        return self.terms.term(value, ValuePlace(self.path, what))

    def problem(self, what: str, fault: str, remedy: str) -> None:
        """Note a problem at a place in the node."""
        self.terms.problems.note(ValuePlace(self.path, what).text(), fault, remedy)

    def public_id(self, holder: str) -> str | None:
        """Return the id of the class; a class without one is a problem."""
        public_id = registry.id_of(self.cls)
        if public_id is None:
            self.problem("", *describe_unregistered(self.cls, holder))
        return public_id


def write_variable(visit: Visit, terms: TermWriter) -> dict[str, Json]:
    """Return the record of a Variable, without its value."""
    metadata: Mapping[str, Json] = visit.value.full_metadata
    record: dict[str, Json] = {
        "type": _Site(visit, terms).public_id("a Variable"),
        "schema": visit.value.schema,
        **{key: metadata[key] for key in _LABELS if key in metadata},
    }
    free = {key: value for key, value in metadata.items() if key not in _LABELS}
    return {**record, "metadata": free} if free else record


def write_node(visit: Visit, terms: TermWriter) -> dict[str, Json]:
    """Return the record of a module or of another registered node."""
    site = _Site(visit, terms)
    head = {"type": site.public_id("a node")}
    children, metadata = get_node_impl(site.node).flatten(site.node)
    pairs = list(children)
    if isinstance(site.node, Module):
        return head | _module(site, pairs, metadata)
    try:
        json = frozen(metadata)
    except errors.DataError as error:
        json = None
        site.problem("", f"metadata of {site.cls.__qualname__}: {error}", "flatten to JSON")
    texts: set[str] = set()
    for key, _ in pairs:
        if type(key) not in (str, int) or str(key) in texts:
            remedy = "flatten with keys that are str or int, and differ as text"
            site.problem(f"child {key!r:.100}", "a key that no file can hold, or that occurs twice", remedy)
        texts.add(str(key))
    return {**head, "metadata": json, "children": [[key, site.term(child, f"child {key!r}")] for key, child in pairs]}


def _module(site: _Site, children: list[tuple[Any, Any]], blueprint: Any) -> dict[str, Json]:
    """Return everything in the record of a module but its type."""
    config = _config(site, blueprint)
    attributes = _attributes(site, children, config)
    record: dict[str, Json] = {"config": config, "attributes": attributes, "build": _build(site)}
    for label, before in zip(("name", "description", "trainable"), blueprint.constructed_labels or (), strict=False):
        value = getattr(blueprint, label)
        if value != before and not (label in config and is_passed_on(site.node._record, label)):
            record[label] = value
    if blueprint.removed:
        record["removed"] = list(blueprint.removed)
    if blueprint.isolated:
        record["isolated"] = [
            [name, site.terms.reference(blueprint.isolated[name])] for name in sorted(blueprint.isolated)
        ]
    if blueprint.flow is not None:
        record["flow"] = _flow(site, blueprint.flow, dict(children))
    return record


def _config(site: _Site, blueprint: Any) -> dict[str, Json]:
    """Return the constructor arguments, in the order of the signature."""
    cls = site.cls
    if _is_overridden(cls, "get_config"):
        config: dict[str, Any] = site.node.get_config()
    elif blueprint.arguments is None:
        fault = "was not made by calling the class, has no readable signature, or two parameters of one name"
        site.problem("", f"{cls.__qualname__} {fault}", "override get_config, and from_config if it needs that")
        return {}
    else:
        config = constructing.get_config(site.node)
        for name in blueprint.arguments:
            if name not in config and is_required(cls, name):
                remedy = f"give {name!r} a default, or override from_config"
                site.problem(f"argument {name!r}", "static or ignored, and without a default", remedy)
    elsewhere = () if _is_overridden(cls, "get_config") else arguments_in_state(site.node)
    return {name: site.term(value, f"argument {name!r}") for name, value in config.items() if name not in elsewhere}


def arguments_in_state(module: Module) -> list[str]:
    """Return the arguments whose values Variables of the same name hold, so that a file has them in its state alone."""
    arguments, attributes = module._record.arguments or {}, vars(module)
    return [
        name
        for name, argument in arguments.items()
        if isinstance(argument, InVariable) and isinstance(attributes.get(name), Variable)
    ]


def is_required(cls: Any, name: str) -> bool:
    """Whether a constructor has a parameter of this name without a default."""
    signature = declaration_of(cls).init
    parameter = signature and signature.parameters.get(name)
    return bool(parameter) and parameter.default is parameter.empty and not parameter.kind.name.startswith("VAR")


def _attributes(site: _Site, children: list[tuple[Any, Any]], config: dict[str, Json]) -> dict[str, Json]:
    """Return the attributes that a load must restore.

    Left out are statics, plain values of a class with its own `get_config`, plain values that `build` made (unless they
    were reassigned), and what equals the argument of the same name (unless `build` makes it again). What holds a node
    or Variable is always recorded, since it has a place in the order.
    """
    has_own_config, bookkeeping = _is_overridden(site.cls, "get_config"), site.node._record
    made_again = frozenset[str]() if bookkeeping.flow else bookkeeping.made_in_build
    problems = site.terms.problems
    attributes: dict[str, Json] = {}
    for key, value in children:
        name = str(key)
        if type(value) is Static:
            continue
        fault = site.terms.attribute_fault(site.cls, name)
        if fault is not None:
            site.problem(f"attribute {name!r}", fault, "choose another name")
            continue
        is_derived = has_own_config or (name in made_again and name not in bookkeeping.reassigned)
        if is_derived and not holds_node(value):
            continue
        problems_before = len(problems)
        term = site.term(value, f"attribute {name!r}")
        is_argument = name in config and name not in made_again and not any(references(term))
        if is_argument and to_json(term) == to_json(config[name]):
            del problems[problems_before:]  # the argument has the same ones
        else:
            attributes[name] = term
    return attributes


def _build(site: _Site) -> Json:
    """Return what the module was built on; None if it is unbuilt or has no `build`."""
    cls, record = site.cls, site.node._record
    is_overridden = cls.get_build_config is not Module.get_build_config  # a Sequential has one, and no `build`
    if not record.built or not (is_overridden or declaration_of(cls).defines_build):
        return None
    config = site.node.get_build_config() if is_overridden else write_build_config(site.node, lambda symbol: symbol)
    return None if config is None else site.term(config, "get_build_config()")


def _flow(site: _Site, flow: FlowGraph, children: Mapping[str, Any]) -> dict[str, Json]:
    """Return the record of a functional graph: symbols by number, steps in topological order."""
    steps: list[Json] = []
    for number, step in enumerate(flow.steps):
        what = f"step {number} ({step.op or step.node})"
        steps.append(
            {
                **({"op": step.op} if step.node is None else site.terms.reference(children[step.node])),
                "args": [site.term(arg, what) for arg in step.args],
                "kwargs": {name: site.term(value, what) for name, value in step.kwargs.items()},
                "gives": site.term(step.outputs, what),
            }
        )
    symbols = [
        {"data_model": site.terms.data_model(symbol), "name": symbol.name, "optional": symbol.optional}
        for symbol in flow.symbols
    ]
    inputs, outputs = site.term(flow.inputs, "inputs"), site.term(flow.outputs, "outputs")
    return {"symbols": symbols, "inputs": inputs, "outputs": outputs, "steps": steps}


# -- reading Variables -------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class VariableEntry:
    """A Variable in a file: its class, its schema, its metadata, and its value if no path leads to it."""

    cls: type[Any]
    schema: data.Schema
    metadata: FrozenDict
    value: Json


def check_variable(index: int, entry: Json, terms: TermReader) -> VariableEntry:
    """Return the entry of a record.

    Raises:
        FormatError: A field is unknown or missing.
        LoadError: Its type is not known here, or its schema, name or value is invalid.
    """
    where = ("graph", "variables", index)
    record = check_record(entry, where, ("type", "schema", "trainable"), ("name", "description", "metadata", "value"))
    expected = "a Variable type"
    cls = terms.resolver.find_class(record["type"], (*where, "type"), lambda cls: issubclass(cls, Variable), expected)
    schema = terms.read_schema(record["schema"], (*where, "schema"), "any")
    _check_labels(record, where, "variable")
    free = check(record.get("metadata", {}), (*where, "metadata"), dict)
    for name in _LABELS:
        if name in free:
            raise format_error((*where, "metadata", name), "this has a field of its own.")
    try:
        metadata = frozen_dict({name: record[name] for name in _LABELS if name in record} | frozen(free))
    except errors.SynmodError as error:
        raise load_error((*where, "metadata"), str(error)) from error
    value = document.validate_value(schema, record["value"], (*where, "value")) if "value" in record else NO_VALUE
    return VariableEntry(cls, schema, metadata, value)


def _check_labels(record: dict[str, Json], where: Where, kind: str) -> None:
    """Check the name, description and `trainable` of a module or Variable, where they are given."""
    if "name" in record:
        try:
            check_name(check(record["name"], (*where, "name"), str), kind)
        except errors.BadNameError as error:
            raise load_error((*where, "name"), str(error)) from error
    check(record.get("description", ""), (*where, "description"), str)
    check(record.get("trainable", True), (*where, "trainable"), bool)


# -- reading nodes -----------------------------------------------------------------------------------------------------

_REFUSED: Final = "unknown"
"""The parameter for unknown keywords, which constructors of synmod take only to refuse them with 'Did you mean'."""


@dataclass(slots=True, eq=False)
class NodeEntry:
    """A node in a file.

    Attributes:
        index: Its place in `nodes`.
        cls: Its class.
        impl: How its class is taken apart and made again.
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

    @property
    def has_own_config(self) -> bool:
        """Whether its class overrides `get_config` or `from_config`."""
        return _is_overridden(self.cls, "get_config") or _is_overridden(self.cls, "from_config")

    def note_reassigned(self, module: Module) -> None:
        """Note which attributes were assigned after `build` made them: plain ones are recorded only then."""
        attributes, record = vars(module), module._record
        for name in record.made_in_build & self.record["attributes"].keys():
            if not holds_node(attributes[name]):
                record.reassigned[name] = None

    def arguments_in_state(self) -> dict[str, int]:
        """Return the arguments that are not recorded, with the indices of the Variables that hold their values."""
        arguments, keywords = self.record["config"], declaration_of(self.cls).keywords
        return {
            name: term["variable"]
            for name, term in self.record["attributes"].items()
            if "variable" in term and name in keywords and name not in arguments
        }

    def other_terms(self) -> list[Json]:
        """Return the terms beside those of the children: arguments, Namespaces, the constants of a graph."""
        flow: dict[str, Any] = self.record.get("flow") or {"steps": (), "outputs": {"json": None}}
        return [
            *self.record.get("config", {}).values(),
            *(term for _, term in self.record.get("isolated", ())),
            *(term for step in flow["steps"] for term in (*step["args"], *step["kwargs"].values())),
            flow["outputs"],
        ]


def argument_nodes(record: dict[str, Json]) -> list[int]:
    """Return the nodes in the constructor arguments of a record."""
    terms = record.get("config", {}).values()
    return [index for term in terms for kind, index in references(term) if kind == "node"]


def find_cycle(records: list[dict[str, Json]]) -> list[int]:
    """Return the nodes whose constructor arguments need one another in a cycle; empty without a cycle."""
    return leaves.find_cycle({index: argument_nodes(record) for index, record in enumerate(records)})


def check_nodes(records: list[Json], terms: TermReader) -> list[NodeEntry]:
    """Return the entries of all records; nothing is made.

    Raises:
        FormatError, LoadError: A record is invalid, or constructor arguments need one another in a cycle.
    """
    entries = [_check_node(index, record, terms) for index, record in enumerate(records)]
    for entry in entries:
        if "isolated" in entry.record:
            _check_isolated(entry, entries, terms)
    cycle = find_cycle(records)
    if cycle:
        text = f"the arguments of nodes need one another in a cycle: {' -> '.join(map(str, cycle[:_SHOWN]))}."
        raise load_error(("graph", "nodes", cycle[0], "config"), text)
    return entries


def _check_node(index: int, entry: Json, terms: TermReader) -> NodeEntry:
    """Return the entry of a record.

    Raises:
        FormatError: A field is unknown or missing, or a term in it is not one.
        LoadError: Its class is not known here, or it names what the class does not have.
    """
    where = ("graph", "nodes", index)
    record = check(entry, where, dict)
    if "type" not in record:
        raise format_error(where, "the field 'type' is missing.")
    cls: type[Any] = terms.resolver.find_class(record["type"], (*where, "type"), lambda _: True, "a class")
    impl = own_impl(cls)
    if impl is None or issubclass(cls, lm.SharedModel):  # language models have a table of their own
        raise load_error((*where, "type"), f"{cls.__qualname__} is not a class of modules or nodes.")
    node = NodeEntry(index, cls, impl, record)
    if impl.is_module:
        _check_module(node, terms)
        return node
    check_record(record, where, ("type", "metadata", "children"))
    keys: set[str] = set()
    for here, key, term in check_pairs(record["children"], (*where, "children")):
        if type(key) not in (str, int) or str(key) in keys:
            raise format_error((*here, 0), f"{short_text(key)} is not a string or an int, or occurs twice.")
        keys.add(str(key))
        terms.read(term, (*here, 1))
    return node


def _check_module(node: NodeEntry, terms: TermReader) -> None:
    """Check the record of a module: class, arguments and attributes by name, labels, graph."""
    record, where = node.record, node.where
    optional = (*_LABELS, "removed", "isolated", "flow")
    check_record(record, where, ("type", "config", "attributes", "build"), optional)
    for name, term in check(record["config"], (*where, "config"), dict).items():
        _check_argument(node.cls, name, (*where, "config", name))
        terms.read(term, (*where, "config", name))
    for name, term in check(record["attributes"], (*where, "attributes"), dict).items():
        fault = terms.attribute_fault(node.cls, name)
        if fault is not None:
            raise load_error((*where, "attributes", name), f"{fault} cannot come from a file.")
        terms.read(term, (*where, "attributes", name))
    if record["build"] is not None:
        terms.read(record["build"], (*where, "build"))
        if any(references(record["build"])):
            raise load_error((*where, "build"), "a build config holds schemas, not nodes or Variables.")
    _check_labels(record, where, "module")
    for number, name in enumerate(check(record.get("removed", []), (*where, "removed"), list)):
        here = (*where, "removed", number)
        if terms.attribute_fault(node.cls, check(name, here, str)) or name in record["attributes"]:
            raise load_error(here, f"{short_text(name)} cannot be the name of a removed attribute.")
    if "flow" in record:
        _check_flow(node, (*where, "flow"), terms)


def _check_argument(cls: type[Module], name: str, where: Where) -> None:
    """Raise unless the constructor of a class takes an argument of this name, or its own `from_config` decides.

    Raises:
        LoadError: It does not.
    """
    signature = declaration_of(cls).init
    parameters: Mapping[str, inspect.Parameter] = {} if signature is None else signature.parameters
    if (name in parameters and name not in ("hooks", _REFUSED)) or _is_overridden(cls, "from_config"):
        return
    takes_any = any(
        parameter.kind is parameter.VAR_KEYWORD and parameter.name != _REFUSED for parameter in parameters.values()
    )
    if name == "hooks" or not takes_any:
        names = [parameter for parameter in parameters if parameter not in ("hooks", _REFUSED, name)]
        text = f"{cls.__qualname__} takes no argument {short_text(name)} from a file.{did_you_mean(name, names)}"
        remedy = "If the class has changed, override from_config, which receives the old arguments."
        raise load_error(where, f"{text} {remedy}")


def _check_isolated(node: NodeEntry, entries: list[NodeEntry], terms: TermReader) -> None:
    """Check that each isolated name is a skip name of the class, once, and is put into a Namespace."""
    skips: Any = declaration_of(node.cls).skips
    declared: list[str] = [] if skips is None else skips.names
    names: set[str] = set()
    for here, name, term in check_pairs(node.record["isolated"], (*node.where, "isolated")):
        if check(name, (*here, 0), str) in names:
            raise format_error((*here, 0), f"{short_text(name)} occurs twice.")
        names.add(name)
        if name not in declared:
            text = f"{node.cls.__qualname__} declares no skip {short_text(name)}.{did_you_mean(name, declared)}"
            raise load_error((*here, 0), f"{text} Declare it with @skippable.")
        terms.read(term, (*here, 1))
        nodes = [entries[index] for kind, index in references(term) if kind == "node"]
        if "node" not in term or not nodes[0].impl.is_token:
            raise load_error((*here, 1), "wanted a node that is a Namespace.")


def _check_flow(node: NodeEntry, where: Where, terms: TermReader) -> None:
    """Check a graph: symbols are made once, before they are used; modules are attributes of the program."""
    if not hasattr(node.cls, "steps"):
        raise load_error(where, f"{node.cls.__qualname__} is not a Program: it runs no graph.")
    flow = check_record(node.record["flow"], where, ("symbols", "inputs", "outputs", "steps"))
    symbols = check(flow["symbols"], (*where, "symbols"), list)
    for number, symbol in enumerate(symbols):
        here = (*where, "symbols", number)
        record = check_record(symbol, here, ("data_model", "name", "optional"))
        terms.read({"data_model": record["data_model"]}, here)
        check(record["name"], (*here, "name"), str)
        check(record["optional"], (*here, "optional"), bool)
    children = {term["node"] for term in node.record["attributes"].values() if "node" in term}
    defined: set[int] = set()

    def check_term(term: Json, here: Where, *, makes: bool = False) -> None:
        terms.read(term, here, symbols)
        for kind, index in references(term):
            if makes and (kind != "symbol" or index in defined):
                raise load_error(here, "wanted symbols that are not made before.")
            if not makes and kind == "symbol" and index not in defined:
                raise load_error(here, f"symbol {index} is used before a step makes it.")
            if makes:
                defined.add(index)

    check_term(flow["inputs"], (*where, "inputs"), makes=True)
    for number, entry in enumerate(check(flow["steps"], (*where, "steps"), list)):
        here = (*where, "steps", number)
        step = _check_step(entry, here, terms, children)
        for place, term in enumerate(check(step["args"], (*here, "args"), list)):
            check_term(term, (*here, "args", place))
        for name, term in check(step["kwargs"], (*here, "kwargs"), dict).items():
            check_term(term, (*here, "kwargs", name))
        check_term(step["gives"], (*here, "gives"), makes=True)
    check_term(flow["outputs"], (*where, "outputs"))


def _check_step(entry: Json, where: Where, terms: TermReader, children: set[int]) -> dict[str, Json]:
    """Return a step that runs an operator, or a module that is an attribute of the program."""
    head = "op" if "op" in check(entry, where, dict) else "node"
    step = check_record(entry, where, (head, "args", "kwargs", "gives"))
    here, what = (*where, head), step[head]
    if head == "op":
        if check(what, here, str) not in data.OPERATIONS:
            raise format_error(here, f"{short_text(what)} is not an operator.{did_you_mean(what, data.OPERATIONS)}")
    elif document.check_index(what, len(terms.tables["node"]), here, "nodes") not in children:
        raise load_error(here, f"node {what} is not an attribute of the program.")
    return step


def read_flow(node: NodeEntry, module: Module, terms: TermReader) -> FlowGraph:
    """Return the graph of a record, without tracing a call; the program holds its modules already.

    Raises:
        LoadError: Its operators cannot run on the symbols they are given.
    """
    where = (*node.where, "flow")
    record = node.record["flow"]
    symbols = record["symbols"]
    attributes = node.record["attributes"].items()
    keys = {term["node"]: key for key, term in reversed(attributes) if "node" in term}  # of a shared module the first
    flow = FlowGraph(
        tuple(_read_declared(symbol, terms) for symbol in symbols),
        terms.read(record["inputs"], where, symbols),
        terms.read(record["outputs"], where, symbols),
        tuple(
            FlowStep(
                keys[step["node"]] if "node" in step else None,
                step.get("op"),
                tuple(terms.read(term, where, symbols) for term in step["args"]),
                {name: terms.read(term, where, symbols) for name, term in step["kwargs"].items()},
                terms.read(step["gives"], where, symbols),
            )
            for step in record["steps"]
        ),
    )
    with user_code(where, node.cls):
        compile_flow(flow, vars(module))
    return flow


def _read_declared(symbol: dict[str, Any], terms: TermReader) -> Declared:
    """Return what a symbol of a graph declares."""
    model: document.ModelEntry = terms.tables["data_model"][symbol["data_model"]]
    schema = model.schema if model.cls is None else data.schema_of_class(model.cls)
    declared = Declared(schema, model.cls, symbol["name"], symbol["optional"])
    return document.remember_id(declared, model.public_id) if model.cls is None else declared


def with_schemas(config: Any) -> Any:
    """Return a build config with the schema of each data model in its place."""
    if is_object(config):
        return {key: with_schemas(part) for key, part in config.items()}
    if is_sequence(config):
        return [with_schemas(part) for part in config]
    if isinstance(config, data.SymbolicDataModel) or (isinstance(config, type) and issubclass(config, BaseModel)):
        return data.thaw(data.schema_of(config))
    return cast("Any", config)

"""From the sections of a file to a live program: first everything is checked, then each thing is made once.

The same term reader goes over the records twice. In the first pass nothing is made, and no code of a class runs; in the
second the constructors run, arguments first, and what they have made is adopted where it is what the record describes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from inspect import iscoroutine
from typing import Any, Final

from pydantic_core import to_json

from synmod.data import Schema, json_equal
from synmod.errors import BuildError, GraphError, SynmodError
from synmod.leaves.aio import Suspended, drive
from synmod.leaves.frozen import FrozenDict, Json, frozen, frozen_dict
from synmod.leaves.names import did_you_mean, escape_step, path_str
from synmod.lm import LanguageModel
from synmod.module import Module, read_build_config, seal
from synmod.tree import NODE, Variable, Visit, class_of, kind_of, walk

from .modules import NodeChecker, NodeEntry, build_config, restored_flow
from .names import AttributeNames, Resolver, checked_name
from .problems import (
    Problems,
    Where,
    check_array,
    check_bool,
    check_fields,
    check_object,
    check_text,
    load_fault,
    malformed,
    shown,
    user_code,
)
from .tables import (
    DataModelTable,
    SchemaReader,
    check_language_model,
    checked_value,
    language_model_record,
    made_model,
    read_data_models,
    supplied_models,
)
from .terms import Place, Term, TermReader, TermWriter, references

_NO_VALUE: Final[Any] = object()
_OWN = ("trainable", "name", "description")
_SHOWN = 5
_SOUGHT = 500
_LONGEST = 1_000


@dataclass(slots=True, eq=False)
class _VariableEntry:
    """A Variable of the document: its class, its schema, its metadata, and its value where it has no path."""

    cls: type[Any]
    schema: Schema
    metadata: FrozenDict
    value: Json


def read_program(
    sections: dict[str, Json], *, language_models: Any = None, custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Return the program of the sections of a file.

    Args:
        sections: `graph`, `data_models`, `language_models`, and `state` where values are to be loaded too.
        language_models: The caller's language models by saved name, or one for all.
        custom_objects: The caller's objects by id or bare name.

    Raises:
        FormatError: A field is unknown or missing, a term or index cannot be.
        LoadError: It names or holds what cannot be loaded here, or code of a class refuses what it is given.
    """
    loader = _Loader(sections, Resolver(custom_objects), language_models)
    loader.check()
    try:
        return loader.make()
    except GraphError as error:  # such as an empty key on the way to a node
        raise load_fault(("graph",), str(error)) from error


class _Loader:
    """One load: the tables of the document, and what was made of them so far."""

    def __init__(self, sections: dict[str, Json], resolver: Resolver, language_models: Any) -> None:
        self.sections = sections
        self.resolver = resolver
        self.names = AttributeNames()
        self.dry = True
        graph = check_object(sections["graph"], ("graph",))
        check_fields(graph, ("graph",), ("root", "nodes", "variables"))
        self._root = graph["root"]
        self._node_records = check_array(graph["nodes"], ("graph", "nodes"))
        self._variable_records = check_array(graph["variables"], ("graph", "variables"))
        self._schemas = SchemaReader()
        self.data_models = read_data_models(sections["data_models"], resolver, self._schemas)
        self.language_models = check_object(sections["language_models"], ("language_models",))
        self._supplied = supplied_models(language_models, self.language_models)
        self.terms = TermReader(self)
        self._entries: list[NodeEntry] = []
        self._variable_entries: list[_VariableEntry] = []
        self._nodes: dict[int, Any] = {}
        self._variables: dict[int, Any] = {}
        self._models: dict[str, LanguageModel] = {}
        self._late: dict[int, set[str]] = {}
        """The names of the attributes of each module that its constructor has not made."""
        self._used: dict[int, Term] = {}
        """The terms of the nodes and Variables that were made or adopted, by identity."""

    # -- the tables, for the term reader

    def size(self, table: str) -> int:
        """Return how many entries a table has."""
        return len(self._node_records if table == "nodes" else self._variable_records)

    def node(self, index: int) -> Any:
        """Return the node of an index, which was made before whatever refers to it."""
        return None if self.dry else self._nodes[index]

    def variable(self, index: int) -> Any:
        """Return the Variable of an index, made here where no constructor has made one."""
        if self.dry:
            return None
        variable = self._variables.get(index)
        if variable is None:
            entry = self._variable_entries[index]
            value = None if entry.value is _NO_VALUE else entry.value
            variable = self._variables[index] = entry.cls.of_parts(value, entry.schema, entry.metadata)
            self._used[id(variable)] = {"variable": index}
        return variable

    def language_model(self, name: str) -> LanguageModel:
        """Return the language model of a name: the caller's, or made of its record, once."""
        model = self._models.get(name) or self._supplied.get(name)
        if model is None:
            record = self.language_models[name]
            cls = record["type"] and self.resolver.find_or_none(record["type"], ())
            model = made_model(name, record, cls, lambda term: self.terms.read(term, ("language_models", name)))
        self._models[name] = model
        return model

    # -- checking

    def check(self) -> None:
        """Check every claim of the document; nothing is made.

        Raises:
            FormatError, LoadError: One does not hold.
        """
        for name, record in self.language_models.items():
            check_language_model(name, record, self.resolver, self.terms)
        self._variable_entries = [
            self._checked_variable(record, ("graph", "variables", number))
            for number, record in enumerate(self._variable_records)
        ]
        sizes = len(self._node_records), len(self.data_models)
        checker = NodeChecker(self.resolver, self.terms, self.names, sizes)
        self._entries = [checker.check(number, record) for number, record in enumerate(self._node_records)]
        self.terms.read(self._root, ("graph", "root"))
        self._check_namespaces()
        check_object(self.sections.get("state", {}), ("state",))
        try:
            TopologicalSorter({entry.index: entry.needs() for entry in self._entries}).prepare()
        except CycleError as error:
            circle = " -> ".join(map(str, error.args[1][:20]))
            where = ("graph", "nodes", error.args[1][0], "config")
            raise load_fault(where, f"the arguments of nodes need one another in a circle: {circle}.") from None
        self._check_reached()

    def _checked_variable(self, entry: Json, where: Where) -> _VariableEntry:
        """Check the record of a Variable."""
        record = check_object(entry, where)
        check_fields(record, where, ("type", "schema", "trainable"), ("name", "description", "metadata", "value"))
        cls = self.resolver.find_class(
            record["type"], (*where, "type"), lambda found: issubclass(found, Variable), "a Variable type"
        )
        schema = self._schemas.read(record["schema"], (*where, "schema"), "any")
        metadata: dict[str, Json] = {"trainable": check_bool(record["trainable"], (*where, "trainable"))}
        if "name" in record:
            metadata["name"] = checked_name(record["name"], (*where, "name"), "variable")
        if "description" in record:
            metadata["description"] = check_text(record["description"], (*where, "description"))
        if "metadata" in record:
            free = check_object(record["metadata"], (*where, "metadata"))
            for name in _OWN:
                if name in free:
                    raise malformed((*where, "metadata", name), "this has a field of its own.")
            try:
                metadata |= frozen(free)
            except SynmodError as error:
                raise load_fault((*where, "metadata"), str(error)) from error
        value = checked_value(schema, record["value"], (*where, "value")) if "value" in record else _NO_VALUE
        return _VariableEntry(cls, schema, frozen_dict(metadata), value)

    def _check_namespaces(self) -> None:
        """Check that skip names are put into Namespaces, and into nothing else."""
        for entry in self._entries:
            for number, (_, term) in enumerate(entry.record.get("isolated", ())):
                index: int = term["node"]
                held = self._entries[index]
                if not held.impl.is_token:
                    where = (*entry.where, "isolated", number, 1)
                    raise load_fault(where, f"a {held.cls.__qualname__} is not a Namespace.")

    def _check_reached(self) -> None:
        """Check that everything in the tables belongs to the program, and that values stand where they belong."""
        nodes: set[int] = set()
        variables: set[int] = set()
        self._reach([self._root], nodes, variables, beside=False)
        walked = set(variables)
        for index in list(nodes):
            self._reach(self._entries[index].beside(), nodes, variables, beside=True)
        for table, found, size in (("nodes", nodes, self.size("nodes")), ("variables", variables, self.size(""))):
            if len(found) < size:
                lost = next(number for number in range(size) if number not in found)
                raise malformed(("graph", table, lost), "nothing in the graph leads here.")
        for number, entry in enumerate(self._variable_entries):
            if (entry.value is _NO_VALUE) != (number in walked):
                where = ("graph", "variables", number)
                if number in walked:
                    raise malformed((*where, "value"), "this Variable has a path: its value stands in `state`.")
                raise malformed(where, "the field 'value' is missing, and no path leads to this Variable.")

    def _reach(self, terms: list[Json], nodes: set[int], variables: set[int], *, beside: bool) -> None:
        """Add what terms lead to: through children, or through arguments and graphs as well."""
        pending = list(terms)
        while pending:
            for kind, index in references(pending.pop()):
                if kind == "variable":
                    variables.add(index)
                elif kind == "node" and index not in nodes:
                    nodes.add(index)
                    entry = self._entries[index]
                    pending += [term for _, term in entry.pairs()]
                    if beside:
                        pending += entry.beside()

    # -- making

    def make(self) -> Any:
        """Return the program.

        Raises:
            LoadError: A constructor raised, does not take its arguments, or makes a Variable that the record does not
                have; or a value does not fit. What was made so far is dropped.
        """
        self.dry = False
        for entry in self._entries:
            self._make(entry)
        for entry in reversed(self._entries):  # what is below comes later: a node is filled with nodes that are full
            if entry.impl.is_module:
                self._restore(entry, self._nodes[entry.index])
            else:
                self._fill(entry)
        for entry in reversed(self._entries):
            if entry.impl.is_module and entry.record["build"] is not None:
                self._build(entry, self._nodes[entry.index])
        root = self.terms.read(self._root, ("graph", "root"))
        if "state" in self.sections:
            apply_state(root, self.sections["state"])
        return root

    def _make(self, wanted: NodeEntry) -> None:
        """Make a node after the nodes that its constructor is given; these may lie thousands deep."""
        waiting = [wanted]
        while waiting:
            entry = waiting[-1]
            missing = [self._entries[index] for index in entry.needs() if index not in self._nodes]
            if entry.index not in self._nodes and missing:
                waiting += missing
                continue
            waiting.pop()
            if entry.index not in self._nodes:
                self._construct(entry)

    def _construct(self, entry: NodeEntry) -> None:
        """Make one node, and adopt what its constructor has made."""
        cls, record = entry.cls, entry.record
        with user_code(entry.where, cls, lambda: self._path(entry)):
            if entry.impl.is_module:
                config = {
                    name: self.terms.read(term, (*entry.where, "config", name))
                    for name, term in record["config"].items()
                }
                node = cls.from_config(config)
            else:
                node = entry.impl.make(frozen(record["metadata"]))
        if type(node) is not cls:
            raise load_fault(entry.where, f"{cls.__qualname__} made a {type(node).__name__} instead of itself.")
        self._nodes[entry.index] = node
        self._used[id(node)] = {"node": entry.index}
        self._adopt(entry, node)

    def _path(self, entry: NodeEntry) -> str:
        """Return where a node stands in the program, for messages: the steps from the root, found anew."""
        above: dict[int, tuple[int, str]] = {}
        for each in self._entries:
            for key, term in each.pairs():
                for kind, index in references(term):
                    if kind == "node" and index > each.index:
                        above.setdefault(index, (each.index, str(key)))
        steps: list[str] = []
        index = entry.index
        while index in above:
            index, step = above[index]
            steps.append(escape_step(step))
        return "/".join(reversed(steps)) or "the root"

    def _adopt(self, entry: NodeEntry, node: Any) -> None:
        """Adopt what a constructor has made: children before the modules whose arguments they may be."""
        found = {entry.index: node}
        order = [entry]
        for holder in order:  # grows while modules hold further ones
            present = dict(holder.impl.pairs(found[holder.index]))
            for key, term in holder.pairs():
                if key in present:
                    self._pair(term, present[key], found, order)
        for child in reversed(order[1:]):
            live = found[child.index]
            if child.index not in self._nodes and id(live) not in self._used and self._is_as_recorded(child, live):
                self._nodes[child.index] = live
                self._used[id(live)] = {"node": child.index}

    def _pair(self, term: dict[str, Any], live: Any, found: dict[int, Any], order: list[NodeEntry]) -> None:
        """Pair the nodes and Variables of a term with those that stand in their places."""
        ((kind, payload),) = term.items()
        if kind == "variable":
            self._adopt_variable(payload, live)
        elif kind == "node":
            index: int = payload
            entry = self._entries[index]
            is_new = index not in found and index not in self._nodes and id(live) not in self._used
            if is_new and type(live) is entry.cls:
                found[index] = live
                order.append(entry)
        elif kind in ("list", "tuple") and class_of(live).__name__ == kind:
            for part, value in zip(payload, live, strict=False):
                self._pair(part, value, found, order)
        elif kind == "dict" and isinstance(live, dict):
            for key, part in payload:
                if key in live:
                    self._pair(part, live[key], found, order)

    def _adopt_variable(self, index: int, live: Any) -> None:
        """Let a Variable that a constructor made be the one of the record."""
        entry = self._variable_entries[index]
        if type(live) is entry.cls and index not in self._variables and id(live) not in self._used:
            self._used[id(live)] = {"variable": index}
            self._variables[index] = live
            value = live.snapshot()[0] if entry.value is _NO_VALUE else entry.value
            live.restore((value, 0, entry.metadata, entry.schema))

    def _is_as_recorded(self, entry: NodeEntry, live: Any) -> bool:
        """Whether a node that a constructor made has the recorded arguments, written as terms."""
        if "flow" in entry.record:
            return False
        if not entry.impl.is_module:
            recorded, config = {"": {"json": entry.record["metadata"]}}, {"": entry.impl.flatten(live)[1]}
        else:
            recorded = entry.record["config"]
            try:
                config = live.get_config()
            except SynmodError:
                return False
        if config.keys() != recorded.keys():
            return False
        comparing = _Comparing(self)
        terms = TermWriter(comparing)
        try:
            written = {name: terms.term(config[name], Place(str, "")) for name in recorded}
        except _UnknownError:
            return False
        return not comparing.problems and to_json(written) == to_json(recorded)

    def name_of(self, model: LanguageModel) -> str | None:
        """Return the saved name of a language model; one that code made as a record describes it gets that name."""
        for name, known in (*self._models.items(), *self._supplied.items()):
            if known is model:
                return name
        for name, record in self.language_models.items():
            is_free = name == model.name and name not in self._models and name not in self._supplied
            is_plain = type(model) is LanguageModel and record.get("supply") == []
            if is_free and is_plain and language_model_record(model, lambda _: None) == record:
                self._models[name] = model
                return name
        return None

    def term_of(self, x: Any) -> Term | None:
        """Return the term of a node or Variable that was made or adopted."""
        return self._used.get(id(x))

    def _fill(self, entry: NodeEntry) -> None:
        """Fill a user's own node with its children."""
        node, impl = self._nodes[entry.index], entry.impl
        where = (*entry.where, "children")
        pairs = [(key, self.terms.read(term, where)) for key, term in entry.pairs()]
        with user_code(where, entry.cls):
            for key, _ in list(impl.pairs(node)):
                impl.pop_key(node, key)
            impl.fill(node, pairs)

    def _restore(self, entry: NodeEntry, module: Module) -> None:
        """Give a module everything that its record holds beside the arguments."""
        record, bookkeeping = entry.record, module._record
        removed: list[str] = record.get("removed", [])
        values = {key: self.terms.read(term, (*entry.where, "attributes", key)) for key, term in entry.pairs()}
        present = dict(entry.impl.pairs(module))
        for key, value in present.items():
            if key not in values and key not in removed:
                self._check_no_variable(entry, key, value)
        for name in removed:
            if name in present:
                entry.impl.pop_key(module, name)
        assert entry.impl.init is not None
        changed = [(key, value) for key, value in values.items() if key not in present or present[key] is not value]
        entry.impl.init(module, changed)
        _put_in_order(module, list(values))
        self._late[entry.index] = {str(key) for key in values if key not in present}
        bookkeeping.removed = dict.fromkeys(removed)
        for label in ("name", "description", "trainable"):
            if label in record:
                setattr(bookkeeping, label, record[label])
        bookkeeping.isolated = {
            name: self.terms.read(term, (*entry.where, "isolated")) for name, term in record.get("isolated", ())
        }
        if "flow" in record:
            bookkeeping.flow = restored_flow(entry, module, self.terms, self.data_models)
            seal(module)

    def _check_no_variable(self, entry: NodeEntry, key: Any, value: Any) -> None:
        """Raise if a constructor makes a Variable that the record does not have: no value is there for it."""
        own = [value] if isinstance(value, Variable) else []
        if kind_of(value) == NODE and id(value) not in self._used and not isinstance(value, LanguageModel):
            own = [visit.value for visit in walk(value) if visit.kind == "variable"]
        elif not own and id(value) not in self._used:
            own = [visit.value for visit in walk(value, recursive=False) if visit.kind == "variable"]
        if any(id(each) not in self._used for each in own):
            raise load_fault(
                (*entry.where, "attributes"),
                f"{entry.cls.__qualname__} makes a Variable at {key!r} that the file does not have: the class has "
                "changed. Override from_config, which sees the old arguments.",
            )

    def _build(self, entry: NodeEntry, module: Module) -> None:
        """Bring a module to the state that it was built to; what the record holds stands in place of what it makes."""
        config = build_config(entry, self.terms)
        with user_code((*entry.where, "build"), entry.cls, lambda: self._path(entry)):
            _build_again(module, config, self._late[entry.index])
        recorded = {key: term for key, term in entry.pairs() if any(True for _ in references(term))}
        values = {key: self.terms.read(term, (*entry.where, "attributes", key)) for key, term in recorded.items()}
        present = dict(entry.impl.pairs(module))
        assert entry.impl.init is not None
        entry.impl.init(module, [pair for pair in values.items() if present.get(pair[0]) is not pair[1]])
        _put_in_order(module, [key for key, _ in entry.pairs()])


def _build_again(module: Module, config: Any, late: set[str]) -> None:
    """Call `build_from_config`, to its end, and mark the module as built.

    Args:
        module: A module whose recorded attributes are there.
        config: What it was built on.
        late: The names of those that its constructor has not made.
    """
    record = module._record
    record.restored = late
    try:
        result: Any = module.build_from_config(config)
        if iscoroutine(result):
            drive(result)
    except Suspended:
        raise BuildError(
            f"build_from_config of {type(module).__qualname__} waits for something, which a load cannot: override it "
            "as a plain function, and wait at the first call."
        ) from None
    finally:
        record.restored = None
    if not record.built:
        if type(module).get_build_config is Module.get_build_config:
            record.build_config = read_build_config(module, config)
            record.contract = None
        record.built = True
        seal(module)


def _put_in_order(module: Module, recorded: list[Any]) -> None:
    """Bring the recorded attributes into recorded order, after the others."""
    attributes = vars(module)
    wanted = [key for key in recorded if key in attributes]
    known = set(wanted)
    if [key for key in attributes if key in known] == wanted:
        return
    items = [item for item in attributes.items() if item[0] not in known]
    items += [(key, attributes[key]) for key in wanted]
    attributes.clear()
    attributes.update(items)


class _UnknownError(Exception):
    """A node or Variable that the document does not have, or that is not made yet."""


class _Comparing:
    """Names what stands in the tables of a document that is read, to compare live arguments with recorded ones."""

    def __init__(self, loader: _Loader) -> None:
        self.problems = Problems()
        self._loader = loader

    def node(self, node: Any) -> Term:
        """Return the term of a node or language model."""
        if isinstance(node, LanguageModel):
            name = self._loader.name_of(node)
            term = None if name is None else {"language_model": name}
        else:
            term = self._loader.term_of(node)
        if term is None:
            raise _UnknownError
        return term

    def variable(self, variable: Any) -> int:
        """Return the index of a Variable."""
        term = self._loader.term_of(variable)
        if term is None:
            raise _UnknownError
        return term["variable"]

    def data_model(self, declared: Any) -> int:
        """Return the index of a data model."""
        table = DataModelTable()
        table.index(declared)
        found = table.entries[0]
        for number, entry in enumerate(self._loader.data_models):
            if entry.public_id == found.get("name") and json_equal(entry.schema, found["schema"]):
                return number
        raise _UnknownError


def find_variables(root: Any, paths: Iterable[str]) -> tuple[dict[str, Any], list[Visit]]:
    """Return the Variables that path texts lead to, aliases followed, and the visits of all Variables below the root.

    Paths are followed step by step and never listed, since those of a deep graph may be longer than its file.
    """
    below: dict[tuple[int, str], Visit] = {}
    first: dict[int | None, Visit] = {}
    kept: list[Visit] = []
    for visit in walk(root):
        kept.append(visit)
        if visit.first and visit.index is not None:
            first[visit.index] = visit
        below[id(visit.above), escape_step(visit.step)] = visit
    found: dict[str, Any] = {}
    for path in paths:
        visit = kept[0] if kept else None
        for step in path.split("/") if path else ():
            visit = visit and below.get((id(first.get(visit.index, visit)), step))
        if visit is not None and visit.kind == "variable":
            found[path] = visit.value
    return found, [visit for visit in first.values() if visit.kind == "variable"]


def apply_state(root: Any, section: Json) -> None:
    """Set the values of a program that was just made: one for each Variable, and nothing else.

    Raises:
        LoadError: They do not fit.
    """
    state = check_object(section, ("state",))
    found, visits = find_variables(root, state)
    unknown = [path for path in state if path not in found]
    given = {id(variable) for variable in found.values()}
    if unknown or len(given) != len(found) or len(given) != len(visits):
        lost = [visit for visit in visits if id(visit.value) not in given][:_SOUGHT]
        missing = [path_str(visit.path)[:_LONGEST] for visit in lost]
        parts = [f"unknown: {', '.join(map(shown, unknown[:_SHOWN]))}"] if unknown else []
        parts += [f"missing: {', '.join(map(shown, missing[:_SHOWN]))}"] if missing else []
        hint = did_you_mean(unknown[0], missing) if unknown else ""
        raise load_fault(
            ("state", unknown[0]) if unknown else ("state",),
            "the paths of the state are not those of the graph's Variables; "
            f"{'; '.join(parts) or 'two of them lead to one Variable'}.{hint}",
        )
    for path, variable in found.items():
        value = checked_value(variable.schema, state[path], ("state", path))
        variable.restore((value, 0, variable.full_metadata, variable.schema))

"""Loading: from a file to a live program.

First the whole document is checked, then each thing is made once. The same term reader goes over the records twice: in
the first pass nothing is made, and no code of a class runs; in the second the constructors run, arguments first, and
the children that they make are adopted where they match their records.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutine
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from synmod import lm, retrieval
from synmod.data import json_equal, thaw
from synmod.errors import ArgumentError, BuildError, GraphError, SynmodError
from synmod.leaves import Json, Suspended, checks_keywords, did_you_mean, drive, escape_step, frozen, is_mapping
from synmod.module import Module, note_loaded, read_build_config, seal
from synmod.tree import NODE, STATIC, GraphDef, Static, find_variables, kind_of, path_str, record, walk

from . import document, records
from .document import FileLimits, Where, check, check_record, format_error, load_error, user_code
from .language_models import SuppliedModels, check_fallbacks, check_lm, lm_record, make_lm
from .records import NO_VALUE, NodeEntry
from .terms import Term, TermReader, TermWriter, ValuePlace, references

LanguageModels = Mapping[str, lm.SharedModel | str] | lm.LanguageModel | str | None
Indexes = Mapping[str, retrieval.Index] | retrieval.Index | None

_SHOWN = 20
_LONGEST = 1_000


@checks_keywords
def loads(
    text: str | bytes,
    *,
    language_models: LanguageModels = None,
    indexes: Indexes = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Return the program of a text. It is as safe as reading the text: only registered classes resolve.

    Args:
        text: The text that `dumps` returned, as str or UTF-8 bytes.
        language_models: Live models or model strings by saved name, or by a text that the file holds as an argument or
            attribute; or one for all. What is not mapped is made from its record or text, with keys found in the
            reader's own environment at call time, if it is the name of a model as its provider spells them.
        indexes: Live indexes of `Retrieve` by saved name, or one for all; an index that is not mapped is its name
            alone, and its search a ConfigError.
        custom_objects: Classes and functions by id or bare name, for this call; None for the id of a data
            model takes the schema of the file.
        limits: The limits of the text.

    Returns:
        The program; `dumps` of it is the same text.

    Raises:
        FormatError: It is not a file of a format that this release reads, or names a model that no file may choose.
        LoadError: Something in it cannot be loaded here; `.where` is the JSON Pointer, `.file` the file.
        RegistryError: An object in `custom_objects` is of a kind that files may not name.
        ArgumentError, ConfigError: An argument is of another kind.

    Example:
        >>> import synmod as sm
        >>> sm.loads(sm.dumps(sm.Sequential([])))
        Sequential(members=[])

    Source: Keras `load_model`, after its CVEs: one format, one loader, no option that widens what resolves.
    """
    if isinstance(text, str):
        data = text.encode(errors="surrogatepass")  # a lone surrogate is not UTF-8, and refused below
    elif isinstance(text, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
        data = bytes(cast("Any", text))
    else:
        raise ArgumentError(f"loads takes str or UTF-8 bytes, not {type(text).__name__}; for a path, use sm.load.")
    sections = document.read_document(data, limits, "program")
    return _program(sections, language_models, custom_objects, indexes)


@checks_keywords
def load(
    path: str | os.PathLike[str],
    *,
    language_models: LanguageModels = None,
    indexes: Indexes = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Load a program from its file.

    Args:
        path: The file.
        language_models: As in `loads`.
        indexes: As in `loads`.
        custom_objects: As in `loads`.
        limits: As in `loads`.

    Returns:
        The program.

    Raises:
        FileNotFoundError: The file does not exist.
        FormatError, LoadError, RegistryError, ArgumentError, ConfigError: As in `loads`; a pipe or device is a
            LoadError too.

    Example:
        >>> import synmod as sm, tempfile
        >>> sm.load(sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json"))
        Sequential(members=[])

    Source: as `loads`.
    """
    with document.in_file(path):
        sections = document.read_document(path, limits, "program")
        return _program(sections, language_models, custom_objects, indexes)


def decode_graphdef(
    json: Json, language_models: LanguageModels, custom_objects: Mapping[str, Any] | None
) -> GraphDef[Any]:
    """Return a graph definition under the rules of a load: its modules are made by their constructors.

    Raises:
        ArgumentError: It is not what `to_json` returned.
        FormatError, LoadError: It cannot be read.
    """
    try:
        text = to_json(json)
    except PydanticSerializationError as error:
        raise ArgumentError(f"GraphDef.from_json takes the JSON that to_json returned: {error}.") from None
    sections = check_record(document.read_json(text), (), ("graph", "data_models", "language_models"))
    return record(_program(sections, language_models, custom_objects)).graphdef


def _program(
    sections: dict[str, Json], language_models: Any, custom_objects: Mapping[str, Any] | None, indexes: Any = None
) -> Any:
    """Return the program of the sections of a file.

    Args:
        sections: `graph`, `data_models`, `language_models`, and `state` where values are to be loaded too.
        language_models: The caller's language models by saved name, or one for all.
        custom_objects: The caller's objects by id or bare name.
        indexes: The caller's indexes by saved name, or one for all.

    Raises:
        FormatError: A field is unknown or missing, or a term or index is invalid.
        LoadError: Something cannot be loaded here, or the code of a class refuses what it is given.
    """
    loader = Loader(sections, custom_objects, language_models, indexes)
    try:
        with lm.text_rules(loader.supplied):
            root = loader.make()
            if "state" in sections:
                _apply(root, sections["state"])
    except GraphError as error:  # such as an empty key on the way to a node
        raise load_error(("graph",), str(error)) from error
    return root


def _apply(root: Any, state: dict[str, Json]) -> None:
    """Set the values of a program that was just made: one for each Variable, and nothing else.

    Raises:
        LoadError: The paths or values do not fit.
    """
    targets, missing_visits = find_variables(root, state)
    unknown = [path for path in state if path not in targets]
    if unknown or missing_visits or len({id(variable) for variable in targets.values()}) != len(targets):
        missing = [path_str(visit.path)[:_LONGEST] for visit in missing_visits[:_SHOWN]]
        raise load_error(("state", *unknown[:1]), misfit(missing, [path[:_LONGEST] for path in unknown[:_SHOWN]]))
    for path, variable in targets.items():
        value = document.validate_value(variable.schema, state[path], ("state", path))
        variable.restore((value, 0, variable.full_metadata, variable.schema))


def misfit(missing: Iterable[str], unknown: Iterable[str]) -> str:
    """Return a message with the paths that do not fit."""
    lines = ["the paths in the file do not match the program's Variables."]
    lines += [f"  missing in the file: {path!r}" for path in missing]
    lines += [f"  unknown to the program: {path!r}.{did_you_mean(path, missing)}" for path in unknown]
    return "\n".join(lines)


# -- one load ----------------------------------------------------------------------------------------------------------


class Loader:
    """One load: a document that was checked, and what was made of it so far.

    Raises:
        FormatError, LoadError: The document is invalid; nothing was made.
    """

    def __init__(self, sections: dict[str, Json], custom_objects: Any, language_models: Any, indexes: Any) -> None:
        graph = check_record(sections["graph"], ("graph",), ("root", "nodes", "variables"))
        self._state: dict[str, Json] = check(sections.get("state", {}), ("state",), dict)
        self._paths = list(self._state)
        self._root = graph["root"]
        nodes: list[Json] = check(graph["nodes"], ("graph", "nodes"), list)
        variables: list[Json] = check(graph["variables"], ("graph", "variables"), list)
        self._models: dict[str, Any] = check(sections["language_models"], ("language_models",), dict)
        tables = {"node": nodes, "variable": variables, "language_model": self._models}
        self._terms = TermReader(custom_objects, {**tables, "data_model": sections["data_models"]}, self._find)
        self._made: dict[tuple[str, Any], Any] = {}
        """What was made or adopted, by the kind of term that refers to it and its index or name."""
        self._references: dict[int, Term] = {}
        """The terms of these objects, by identity."""
        self._assigned_after_init: dict[int, set[str]] = {}
        """The recorded attributes that the constructor of each module has not made."""
        self._variables = [
            records.check_variable(number, variable, self._terms) for number, variable in enumerate(variables)
        ]
        self._nodes = records.check_nodes(nodes, self._terms)
        supplied = self.supplied = SuppliedModels(language_models, self._models, nodes)
        for name, model in self._models.items():
            check_lm(name, model, self._terms.resolver, self._terms.read, is_supplied=name in supplied.by_name)
        check_fallbacks(self._models)
        for name, model in {**self._settle_texts(), **supplied.by_name}.items():
            self._enter("language_model", name, model)
        self._enter_indexes(indexes)
        self._terms.read(self._root, ("graph", "root"))
        self._check_reached()

    def _settle_texts(self) -> dict[str, Any]:
        """Check the texts that arguments and attributes name models by; return the caller's models for them."""
        settled: dict[str, Any] = {}
        for entry in self._nodes:
            for field in ("config", "attributes") if entry.impl.is_module else ():
                settled |= self.supplied.settle(entry.record[field], (*entry.where, field))
        for name in settled:
            self._models.setdefault(name, {"type": None})
        return settled

    def _enter_indexes(self, indexes: Any) -> None:
        """Note the indexes of the caller.

        Raises:
            LoadError: A name is not in the file ('Did you mean'), or two indexes share it.
            ArgumentError: One is not an index.
        """
        by_name = [(_index_name(entry), entry) for entry in self._nodes if issubclass(entry.cls, retrieval.Index)]
        entries = dict(by_name)
        supplied: Mapping[str, Any] = {} if indexes is None else dict.fromkeys(entries, indexes)
        if is_mapping(indexes):
            supplied = indexes
        for name, index in supplied.items():
            if not isinstance(index, retrieval.Index):
                raise ArgumentError(f"indexes: {index!r:.100} is not an Index; write indexes={{{name!r}: index}}.")
            if name not in entries:
                names = ", ".join(map(repr, entries)) or "none"
                hint = did_you_mean(name, entries)
                raise load_error(("graph",), f"no index {name!r} in this file; it has {names}.{hint}")
        for name, entry in by_name:
            if name in supplied:
                if entries[name] is not entry and not isinstance(indexes, retrieval.Index):
                    raise load_error(entry.where, f"two indexes are named {name!r}: save them under two names.")
                self._enter("node", entry.index, supplied[name])

    def _check_reached(self) -> None:
        """Check that the root leads to everything in the tables, and that each value is where it belongs."""
        walked = self._find_reachable(lambda entry: [term for _, term in entry.pairs()])
        reachable = self._find_reachable(lambda entry: [*(term for _, term in entry.pairs()), *entry.other_terms()])
        for table, size in (("node", len(self._nodes)), ("variable", len(self._variables))):
            for number in range(size):
                if (table, number) not in reachable:
                    raise format_error(("graph", f"{table}s", number), "nothing in the graph leads here.")
        for number, entry in enumerate(self._variables):
            if (entry.value is NO_VALUE) != (("variable", number) in walked):
                text = "a Variable has the field 'value' if no path leads to it; else its value is in `state`."
                raise format_error(("graph", "variables", number), text)

    def _find_reachable(self, terms_of: Callable[[NodeEntry], list[Json]]) -> set[tuple[str, int]]:
        """Return the nodes and Variables that the root leads to."""
        reachable: set[tuple[str, int]] = set()
        pending = [self._root]
        while pending:
            for reference in references(pending.pop()):
                if reference not in reachable:
                    reachable.add(reference)
                    if reference[0] == "node":
                        pending += terms_of(self._nodes[reference[1]])
        return reachable

    # -- making

    def make(self) -> Any:
        """Return the program, without its state.

        Raises:
            LoadError: A constructor raised, does not take its arguments, or makes a Variable that the record does not
                have. What was made so far is dropped.
        """
        self._terms.dry = False
        for entry in self._nodes:
            self._make(entry)
        for entry in reversed(self._nodes):  # children come after their parents: they are filled first
            if entry.impl.is_module:
                self._restore(entry)
            else:
                self._fill(entry)
        modules = [entry for entry in reversed(self._nodes) if entry.impl.is_module]
        built = [entry for entry in modules if entry.record["build"] is not None]
        for entry in built:
            self._build(entry)
        for entry in modules:
            if built:  # a build may have changed its module, and those below
                self._restore(entry)
            self._set_arguments(entry)
        return self._terms.read(self._root, ("graph", "root"))

    def _enter(self, kind: str, key: Any, live: Any) -> None:
        """Note that an object is the one that a record describes."""
        self._made[kind, key] = live
        self._references.setdefault(id(live), {kind: key})

    def _find(self, kind: str, key: Any) -> Any:
        """Return what a term refers to. A node was made before; all else is made here if no constructor has made it."""
        if (kind, key) not in self._made:
            if kind == "variable":
                index: int = key
                entry = self._variables[index]
                value = None if entry.value is NO_VALUE else entry.value
                self._enter(kind, key, entry.cls.of_parts(value, entry.schema, entry.metadata))
            else:
                self._make_models(key)
        return self._made[kind, key]

    def _make_models(self, name: str) -> None:
        """Make a language model and its fallbacks; these may be chained thousands deep."""
        new: list[str] = []
        waiting = [name]
        for name in waiting:  # grows
            if ("language_model", name) not in self._made:
                model, where = self._models[name], ("language_models", name)
                cls = model["type"] and self._terms.resolver.find_or_none(model["type"], ())
                live = make_lm(name, model, cls, lambda term, where=where: self._terms.read(term, where))
                self._enter("language_model", name, live)
                new.append(name)
                waiting += model.get("fallback", ())
        for name in new:
            if fallback := self._models[name].get("fallback"):
                self._made["language_model", name].fallback = [
                    self._made["language_model", target] for target in fallback
                ]

    def _make(self, root: NodeEntry) -> None:
        """Make a node after the nodes that its constructor is given; these may be nested thousands deep."""
        waiting = [root]
        while waiting:
            entry = waiting[-1]
            if ("node", entry.index) in self._made:
                waiting.pop()
            elif missing := [
                index for index in records.argument_nodes(entry.record) if ("node", index) not in self._made
            ]:
                waiting += [self._nodes[index] for index in missing]
            else:
                self._construct(entry)

    def _construct(self, entry: NodeEntry) -> None:
        """Make one node, and adopt what its constructor has made."""
        cls, record = entry.cls, entry.record
        with user_code(entry.where, cls, lambda: self._path(entry)):
            if entry.impl.is_module:
                where = (*entry.where, "config")
                config = {name: self._terms.read(term, (*where, name)) for name, term in record["config"].items()}
                in_state = self._arguments_in_state(entry)
                config |= {name: value for name, value in in_state.items() if records.is_required(cls, name)}
                node = cls.from_config(config)
                note_loaded(node, {name: value for name, value in in_state.items() if value is not None})
            elif issubclass(cls, retrieval.Index):
                node = cls.unbound(_index_name(entry))
            else:
                node = entry.impl.make(frozen(record["metadata"]))
        if type(node) is not cls:
            raise load_error(entry.where, f"{cls.__qualname__} made a {type(node).__name__} instead of itself.")
        self._enter("node", entry.index, node)
        self._adopt(entry, node)

    def _arguments_in_state(self, entry: NodeEntry) -> dict[str, Json]:
        """Return the arguments that a file holds in its state alone; None for one in a graph without values.

        A state lists the Variables in their order; where an edit has changed that, it is applied all the same.
        """
        arguments: dict[str, Json] = {}
        for name, index in entry.arguments_in_state().items():
            path = self._paths[index] if index < len(self._paths) else ""
            arguments[name] = thaw(self._state[path]) if path.rpartition("/")[2] == name else None
        return arguments

    def _path(self, entry: NodeEntry) -> str:
        """Return the path of a node in the program, for messages."""
        parents: dict[int, tuple[int, str]] = {}
        for parent in self._nodes:
            for key, term in parent.pairs():
                for kind, index in references(term):
                    if kind == "node" and index > parent.index:
                        parents.setdefault(index, (parent.index, str(key)))
        steps: list[str] = []
        index = entry.index
        while index in parents:
            index, step = parents[index]
            steps.append(escape_step(step))
        return "/".join(reversed(steps)) or "the root"

    # -- adopting what a constructor has made

    def _adopt(self, entry: NodeEntry, node: Any) -> None:
        """Adopt what a constructor has made: children before the modules whose arguments they may be."""
        live_nodes = {entry.index: node}
        order = [entry]
        for holder in order:  # grows while modules hold further ones
            present = dict(holder.impl.pairs(live_nodes[holder.index]))
            for key, term in holder.pairs():
                if key in present:
                    self._pair(term, present[key], live_nodes, order)
        for child in reversed(order[1:]):
            live = live_nodes[child.index]
            if self._is_new("node", child.index, live) and self._is_as_recorded(child, live):
                self._enter("node", child.index, live)

    def _is_new(self, kind: str, key: Any, live: Any) -> bool:
        """Whether the record has no object yet, and the object no record."""
        return (kind, key) not in self._made and id(live) not in self._references

    def _pair(self, term: Term, live: Any, live_nodes: dict[int, Any], order: list[NodeEntry]) -> None:
        """Pair the nodes and Variables of a term with the live ones in the same places."""
        ((kind, payload),) = term.items()
        if kind in ("node", "variable"):
            self._claim(kind, payload, live, live_nodes, order)
        elif kind in ("list", "tuple") and type(live).__name__ == kind:
            for part, value in zip(payload, live, strict=False):
                self._pair(part, value, live_nodes, order)
        elif kind == "dict" and isinstance(live, dict):
            for key, part in payload:
                if key in live:
                    self._pair(part, live[key], live_nodes, order)

    def _claim(self, kind: str, index: int, live: Any, live_nodes: dict[int, Any], order: list[NodeEntry]) -> None:
        """Adopt a Variable for its record; note a node, which may be adopted after its children."""
        if not self._is_new(kind, index, live):
            return
        if kind == "variable":
            entry = self._variables[index]
            if type(live) is entry.cls:
                self._enter(kind, index, live)
                value = live.snapshot()[0] if entry.value is NO_VALUE else entry.value
                live.restore((value, 0, entry.metadata, entry.schema))
        elif index not in live_nodes and type(live) is self._nodes[index].cls:
            live_nodes[index] = live
            order.append(self._nodes[index])

    def _is_as_recorded(self, entry: NodeEntry, live: Any) -> bool:
        """Whether a node that a constructor made has the recorded arguments, written as terms."""
        if "flow" in entry.record:
            return False
        try:
            if entry.impl.is_module:
                recorded, config = dict(entry.record["config"]), live.get_config()
                for name in records.arguments_in_state(live):  # adopted with its Variable
                    recorded.pop(name, None)
                    config.pop(name, None)
            else:
                recorded, config = {"": {"json": entry.record["metadata"]}}, {"": entry.impl.flatten(live)[1]}
        except SynmodError:
            return False
        same_names = config.keys() == recorded.keys()
        return same_names and self._encode({name: config[name] for name in recorded}) == to_json(recorded)

    def _encode(self, values: Mapping[str, Any]) -> bytes | None:
        """Return live values as a file has them; None if one cannot be written, or holds what no record describes."""
        terms = TermWriter(self._reference, self._index)
        try:
            written = {name: terms.term(value, ValuePlace(str, "")) for name, value in values.items()}
        except (SynmodError, LookupError):
            return None
        return None if terms.problems else to_json(written)

    def _reference(self, x: Any) -> Term:
        """Return the term of a live object; a language model that matches its record is adopted.

        Raises:
            LookupError: No record describes it.
        """
        if isinstance(x, lm.SharedModel) and self._is_new("language_model", x.name, x):
            model = self._models.get(x.name, {})
            is_plain = type(x) in (lm.EmbeddingModel, lm.LanguageModel) and model.get("supply") == []
            if is_plain and lm_record(x, lambda value: {"json": value}, self._reference) == model:
                self._enter("language_model", x.name, x)
        return self._references[id(x)]

    def _index(self, declared: Any) -> int:
        """Return the index of a data model.

        Raises:
            LookupError: The document does not have it.
        """
        public_id, schema = document.id_and_schema(declared)
        for number, entry in enumerate(self._terms.tables["data_model"]):
            if entry.public_id == public_id and (entry.schema is schema or json_equal(entry.schema, schema)):
                return number
        raise LookupError

    # -- restoring the rest

    def _fill(self, entry: NodeEntry) -> None:
        """Fill a user's own node with its children."""
        node, impl = self._made["node", entry.index], entry.impl
        where = (*entry.where, "children")
        pairs = [(key, self._terms.read(term, where)) for key, term in entry.pairs()]
        with user_code(where, entry.cls):
            for key, _ in list(impl.pairs(node)):
                impl.pop_key(node, key)
            impl.fill(node, pairs)

    def _value(self, term: Term, present: Any, where: Where) -> Any:
        """Return the value of a term; the present one if it is equal, since other attributes may share it."""
        is_plain = present is not NO_VALUE and not any(references(term))
        if is_plain and self._encode({"": present}) == to_json({"": term}):
            return present
        return self._terms.read(term, where)

    def _attributes(self, entry: NodeEntry) -> dict[Any, Any]:
        """Set the recorded attributes of a module, in recorded order after all others; return those it had before."""
        module: Module = self._made["node", entry.index]
        where = (*entry.where, "attributes")
        present = dict(entry.impl.pairs(module))
        values = {key: self._value(term, present.get(key, NO_VALUE), (*where, key)) for key, term in entry.pairs()}
        assert entry.impl.init is not None
        entry.impl.init(module, [pair for pair in values.items() if present.get(pair[0], NO_VALUE) is not pair[1]])
        attributes = vars(module)
        order = [key for key in values if key in attributes]
        recorded = set(order)
        if [key for key in attributes if key in recorded] != order:
            items = [item for item in attributes.items() if item[0] not in recorded]
            items += [(key, attributes[key]) for key in order]
            attributes.clear()
            attributes.update(items)
        return present

    def _restore(self, entry: NodeEntry) -> None:
        """Restore everything in the record of a module but the arguments."""
        module, record = self._made["node", entry.index], entry.record
        bookkeeping = module._record
        recorded = {key for key, _ in entry.pairs()}
        removed: list[str] = record.get("removed", [])
        for key, value in entry.impl.pairs(module):
            if key in removed:
                entry.impl.pop_key(module, key)
            elif key not in recorded:
                self._check_no_variable(entry, key, value)
        present = self._attributes(entry)
        self._assigned_after_init[entry.index] = {str(key) for key in recorded if key not in present}
        bookkeeping.removed = dict.fromkeys(removed)
        entry.note_reassigned(module)
        for label in ("name", "description", "trainable"):
            if label in record:
                setattr(bookkeeping, label, record[label])
        where = (*entry.where, "isolated")
        bookkeeping.isolated = {name: self._terms.read(term, where) for name, term in record.get("isolated", ())}
        if "flow" in record and bookkeeping.flow is None:
            bookkeeping.flow = records.read_flow(entry, module, self._terms)
            seal(module)

    def _check_no_variable(self, entry: NodeEntry, key: Any, value: Any) -> None:
        """Raise if a constructor makes a Variable that the record does not have: the file has no value for it."""
        kind = kind_of(value)
        if kind == STATIC or id(value) in self._references or isinstance(value, lm.SharedModel):
            return
        for visit in walk(value, recursive=kind == NODE):
            if visit.kind == "variable" and id(visit.value) not in self._references:
                text = f"{entry.cls.__qualname__} makes a Variable at {key!r} that the file does not have"
                remedy = "the class has changed. Override from_config, which receives the old arguments."
                raise load_error((*entry.where, "attributes"), f"{text}: {remedy}")

    def _set_arguments(self, entry: NodeEntry) -> None:
        """Set each attribute that is not recorded since it equalled its argument, if the constructor has changed it."""
        module: Module = self._made["node", entry.index]
        own_attributes = entry.record["attributes"].keys() | module._record.made_in_build
        config: dict[str, Any] = {} if entry.has_own_config else entry.record["config"]
        arguments: Mapping[str, Any] = module._record.arguments or {}
        for name, value in entry.impl.pairs(module) if config else ():
            term, as_given = config.get(name), arguments.get(name, NO_VALUE) is value
            if term is None or as_given or name in own_attributes or type(value) is Static or any(references(term)):
                continue
            if self._encode({"": value}) != to_json({"": term}):
                setattr(module, name, self._terms.read(term, (*entry.where, "config", name)))

    def _build(self, entry: NodeEntry) -> None:
        """Build a module from its recorded build config."""
        module: Module = self._made["node", entry.index]
        where = (*entry.where, "build")
        config = records.with_schemas(self._terms.read(entry.record["build"], where))
        with user_code(where, entry.cls, lambda: self._path(entry)):
            _build_again(module, config, self._assigned_after_init[entry.index])


def _index_name(entry: NodeEntry) -> str:
    """Return the saved name of an index.

    Raises:
        FormatError: The index has none.
    """
    where = (*entry.where, "metadata")
    return check(check_record(entry.record["metadata"], where, ("name",))["name"], (*where, "name"), str)


def _build_again(module: Module, config: Any, late: set[str]) -> None:
    """Call `build_from_config`, to its end, and mark the module as built.

    Args:
        module: A module whose recorded attributes are restored.
        config: The recorded build config.
        late: The names of the attributes that its constructor has not made.
    """
    record = module._record
    record.restored = late
    try:
        result: Any = module.build_from_config(config)
        if iscoroutine(result):
            drive(result)
    except Suspended:
        what = f"build_from_config of {type(module).__qualname__} waits for something, which a load cannot"
        raise BuildError(f"{what}: override it as a plain function, and wait at the first call.") from None
    finally:
        record.restored = None
    if not record.built:
        if type(module).get_build_config is Module.get_build_config:
            record.build_config = read_build_config(module, config)
            record.contract = None
        record.built = True
        seal(module)

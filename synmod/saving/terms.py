"""Terms: how a file represents a value that may be structure or data, as an object of one key, its kind.

`TermWriter` and `TermReader` are the two directions of one table of kinds. Both recurse: containers nest at most 100
deep, a document at most 200. What cannot be written is noted as a problem, and writing goes on.
"""

import base64
import dataclasses
import enum
import functools
import json
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sized
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_json

from synmod import data, errors, flow, leaves, registry, tree
from synmod.leaves.nests import is_namedtuple, is_registered_container, parts_of, unflatten_one_level

from . import document
from .document import Where, check, check_record, format_error, load_error, short_text

Term = dict[str, Any]
Steps = tuple[Any, ...]

LARGEST_KEY: Final = 2**53
"""Ints beyond it cannot be in a set or a key: other readers round them, and hashes of larger ones collide."""

_PLAIN_JSON: Final[Any] = object()
"""Stands for a value that is JSON and nothing else; the outermost such value becomes one `json` term."""

_DEEPEST: Final = 100
_LONGEST_TIME: Final = 64
_PLAIN: Final = (str, int, float, bool, type(None))
_OWN_TREES: Final[dict[type[Any], str]] = {deque: "collections>deque", OrderedDict: "collections>OrderedDict"}
_OWN_TREES_BY_ID: Final[dict[leaves.Json, type[Any]]] = {public_id: cls for cls, public_id in _OWN_TREES.items()}


class ValuePlace(NamedTuple):
    """The place of a value, for messages: the path of the node that holds it, and what it is there.

    Attributes:
        path: Returns the path; it is made only when something is wrong.
        what: Such as `argument 'fn'`.
    """

    path: Callable[[], str]
    what: str

    def text(self, steps: Steps = ()) -> str:
        """Return the place of a part."""
        return ", ".join(filter(None, (self.path(), self.what))) + "".join(f" [{step!r}]" for step in steps)


# -- writing -----------------------------------------------------------------------------------------------------------


class TermWriter:
    """Writes terms for one document; how a class is written is found out once.

    Args:
        reference: Returns the term of a node, a Variable or a language model; one that is met for the first time is
            entered into its table.
        data_model: Returns the index of a data model, likewise.

    Attributes:
        reference: As given.
        data_model: As given.
        problems: The values that cannot be written.
        attribute_fault: As in `document`, found out once per document.
    """

    def __init__(self, reference: Callable[[Any], Term], data_model: Callable[[Any], int]) -> None:
        self.reference, self.data_model, self.problems = reference, data_model, document.Problems()
        self.attribute_fault = functools.cache(document.attribute_fault)
        self._place = ValuePlace(str, "")
        self._open: set[int] = set()
        self._writers: dict[type[Any], Callable[[Any, Steps], Any]] = {
            **dict.fromkeys((*_PLAIN, leaves.FrozenDict, leaves.FrozenList), lambda _, __: _PLAIN_JSON),
            **dict.fromkeys((list, tuple), self._sequence),
            **dict.fromkeys(_OWN_TREES, self._tree),
            **dict.fromkeys(SCALARS, self._scalar),
            **dict.fromkeys((set, frozenset), self._set),
            **dict.fromkeys((data.JsonDataModel, data.SymbolicDataModel), self._data),
            dict: self._dict,
            flow.SymbolRef: lambda value, _: {"symbol": value.index},
            types.FunctionType: self._code_id,
        }

    def term(self, value: Any, place: ValuePlace) -> Term:
        """Return the term of a value: a constructor argument, an attribute, a part of a flow."""
        outer, self._place = self._place, place  # an argument of a language model is written inside another value
        term = self._close_term(self._write(value, ()), value, ())
        self._place = outer
        return term

    def _write(self, value: Any, steps: Steps) -> Any:
        """Return the term of a value, or _PLAIN_JSON."""
        cls = tree.class_of(value)
        writer = self._writers.get(cls)
        if writer is None:
            writer = self._writers[cls] = self._writer_of(cls)
        return writer(value, steps)

    def _close_term(self, written: Any, value: Any, steps: Steps) -> Term:
        """Return the term of a value that was written; JSON beside structure becomes a term of its own."""
        return {"json": self._json(value, steps)} if written is _PLAIN_JSON else written

    def _writer_of(self, cls: type[Any]) -> Callable[[Any, Steps], Any]:
        """Return how instances of a class are written."""
        if issubclass(cls, tree.Variable) or tree.own_impl(cls) is not None:
            return lambda value, _: self.reference(value)
        if issubclass(cls, BaseModel) and hasattr(cls, "__synmod_json__"):
            return self._data
        if issubclass(cls, type):
            return self._code_id
        if issubclass(cls, enum.Enum):
            return self._member
        return self._tree if _is_tree_type(cls) else self._note_refusal

    def _problem(self, steps: Steps, what: str, remedy: str) -> Term:
        """Note a problem, and return a placeholder that is never read."""
        self.problems.note(self._place.text(steps), what, remedy)
        return {"json": None}

    def _note_refusal(self, value: Any, steps: Steps) -> Term:
        """Note an object that no term can hold."""
        return self._problem(steps, *what_and_remedy(value))

    def _json(self, value: Any, steps: Steps) -> leaves.Json:
        """Return frozen JSON; a fault in it is a problem."""
        try:
            return leaves.frozen(value)
        except errors.DataError as error:
            what, _, remedy = str(error).partition(" is not JSON: ")
            self._problem(steps, f"{what} is not JSON", remedy.rstrip(".") or "write another value")
            return None

    # -- containers

    def _terms(self, value: Any, parts: list[tuple[Any, Any]], steps: Steps, *, may_be_json: bool = False) -> Any:
        """Return the terms of the parts of a container; _PLAIN_JSON where it may be JSON and all of them are."""
        if id(value) in self._open:
            self._problem(steps, f"a {type(value).__name__} that holds itself", "break the cycle")
            return []
        if len(steps) > _DEEPEST:
            self._problem(steps[:3], f"containers over {_DEEPEST} deep", "hold the inner ones in a module")
            return []
        self._open.add(id(value))
        terms = [self._write(part, (*steps, step)) for step, part in parts]
        self._open.discard(id(value))
        if may_be_json and all(term is _PLAIN_JSON for term in terms):
            return _PLAIN_JSON
        return [self._close_term(term, part, (*steps, step)) for term, (step, part) in zip(terms, parts, strict=True)]

    def _sequence(self, value: Any, steps: Steps) -> Any:
        """Write a list or tuple; a list of JSON is JSON."""
        kind = tree.class_of(value)
        terms = self._terms(value, [*enumerate(value)], steps, may_be_json=kind is list)
        return terms if terms is _PLAIN_JSON else {kind.__name__: terms}

    def _dict(self, value: dict[Any, Any], steps: Steps) -> Any:
        """Write a dict; one of JSON with str keys is JSON."""
        if (fault := self._note_bad_key(value, steps)) is not None:
            return fault
        terms = self._terms(value, [*value.items()], steps, may_be_json=all(type(key) is str for key in value))
        return terms if terms is _PLAIN_JSON else {"dict": [list(pair) for pair in zip(value, terms, strict=False)]}

    def _note_bad_key(self, value: dict[Any, Any], steps: Steps) -> Term | None:
        """Note the first key that no file can hold, if there is one."""
        for key in value:
            if not _is_key(key):
                what = f"a {type(value).__name__} with the key {key!r:.100} of type {type(key).__name__}"
                return self._problem(steps, what, "write str(key)")
        return None

    def _tree(self, value: Any, steps: Steps) -> Term:
        """Write a container of another class: its children, then its other data."""
        cls = tree.class_of(value)
        public_id = _OWN_TREES.get(cls) or registry.id_of(cls)
        if public_id is None:
            return self._problem(steps, *describe_unregistered(cls, "an object"))
        parts, rest = parts_of(value)
        if cls is OrderedDict:
            if (fault := self._note_bad_key(value, steps)) is not None:
                return fault
            rest = [*value]
        terms = self._terms(value, [*parts, ("config", rest)], steps)
        return {"tree": {"type": public_id, "children": terms[:-1], "config": terms and terms[-1]}}

    def _set(self, value: Any, steps: Steps) -> Term:
        """Write a set of scalars, sorted, so that equal sets are equal files."""
        kind = tree.class_of(value).__name__
        if not all(type(part) in _PLAIN for part in value):
            return self._problem(steps, f"a {kind} that holds more than text and numbers", "write a list")
        if not all(_is_small(part) for part in value):
            return self._problem(steps, f"a {kind} with an int beyond 2**53", "write a list, or texts")
        parts = sorted(value, key=lambda part: (type(part).__name__, part if part is not None else 0))
        return {kind: self._json(parts, steps)}

    # -- what is in a table of the document, or named by code

    def _data(self, value: Any, steps: Steps) -> Term:
        """Write a data model, a symbol, or an instance."""
        try:
            index = self.data_model(value)
            if isinstance(value, BaseModel | data.JsonDataModel):
                return {"data": {"data_model": index, "json": leaves.frozen(value)}}
        except (errors.SchemaError, errors.DataError) as error:
            return self._problem(steps, str(error), "fix the data model, so that it can be declared and dumped")
        return {"data_model": index}

    def _code_id(self, value: Any, steps: Steps) -> Term:
        """Write a class or function as its id."""
        is_class = issubclass(tree.class_of(value), type)
        if is_class and issubclass(value, BaseModel):
            return self._data(value, steps)
        public_id = registry.id_of(value)
        if public_id is None:
            return self._note_refusal(value, steps)
        return {"class" if is_class else "function": public_id}

    def _member(self, value: enum.Enum, steps: Steps) -> Term:
        """Write a member of an enum."""
        cls = tree.class_of(value)
        public_id = registry.id_of(cls)
        if public_id is None:
            return self._problem(steps, *describe_unregistered(cls, f"a member ({value.name})"))
        if value.name not in cls.__members__:
            return self._problem(steps, f"{value!r:.100}, a combination without a name", "make it a member")
        return {"enum": {"class": public_id, "member": value.name}}

    def _scalar(self, value: Any, steps: Steps) -> Term:
        """Write a scalar beyond JSON as text."""
        name, write, _ = SCALARS[tree.class_of(value)]
        text = write(value)
        if text is None:
            what = f"{value!r:.100}, whose time zone is not a fixed offset"
            return self._problem(steps, what, "write x.astimezone(timezone.utc)")
        return {"scalar": {"type": name, "text": text}}


def _is_small(part: Any) -> bool:
    """Whether a scalar may be in a set."""
    return type(part) is not int or abs(part) <= LARGEST_KEY


def _is_key(key: Any) -> bool:
    """Whether something can be a key of a dict in a file."""
    return type(key) is str or (type(key) is int and abs(key) <= LARGEST_KEY)


def _is_tree_type(cls: type[Any]) -> bool:
    """Whether a class is a namedtuple, a dataclass, or a registered container."""
    return is_registered_container(cls) or is_namedtuple(cls) or dataclasses.is_dataclass(cls)


# -- what no term can hold ---------------------------------------------------------------------------------------------

_REGISTER = "decorate it: @sm.register(package='my_app') above `class {}`"
_TO_DEF = "move it to a `def` of a module and decorate that with @sm.register(package='my_app')"
_KEEP_OUT = (
    "keep it out of the file with static(x) or an ignored attribute (`graph_ignored`), set by the constructor; "
    "or override get_config"
)
_CALLABLES: Final = {
    functools.partial: "a functools.partial",
    types.MethodType: "a bound method",
    types.BuiltinFunctionType: "a builtin function",
    types.FunctionType: "a function that is not registered",
}


def what_and_remedy(value: Any) -> tuple[str, str]:
    """Return a description of an object that no term can hold, and what to do."""
    kind = tree.class_of(value)
    if kind is tree.Static:
        return "a static(x) inside a container that must be written", "put `static` around the whole container"
    if kind in _CALLABLES:
        name = getattr(value, "__qualname__", "")
        return ("a lambda" if name.endswith("<lambda>") else f"{_CALLABLES[kind]} {name}".rstrip()), _TO_DEF
    if isinstance(value, type):
        return f"the class {value.__qualname__}, which is not registered", _REGISTER.format(value.__name__)
    if hasattr(kind, "get_secret_value"):
        return f"a {kind.__name__}", "secrets are never saved: pass it to the live model again after a load"
    if hasattr(kind, "item") and hasattr(kind, "dtype"):
        return f"a value of type {kind.__name__}", "write x.item() (or x.tolist())"
    if hasattr(kind, "__fspath__"):
        return f"a {kind.__name__}", "write str(path)"
    for plain in (str, bool, int, float, list, dict, tuple, set, frozenset, bytes):
        if isinstance(value, plain):
            return f"a value of type {kind.__name__}, a subclass of {plain.__name__}", f"write {plain.__name__}(x)"
    return f"an object of type {kind.__module__}.{kind.__qualname__}", _KEEP_OUT


def describe_unregistered(cls: type, holder: str) -> tuple[str, str]:
    """Return a description of an instance of a class without an id, and what to do."""
    return f"{holder} of class {cls.__qualname__}, which is not registered", _REGISTER.format(cls.__name__)


# -- scalars -----------------------------------------------------------------------------------------------------------


def _moment_text(value: datetime | time) -> str | None:
    """Return a time as text; None if its time zone is not a fixed offset, since a load would return another one."""
    zone = value.tzinfo
    return value.isoformat() if (zone is None or type(zone) is timezone) and not value.fold else None


def _duration_text(value: timedelta) -> str:
    """Return seconds with six decimals."""
    micros = value // timedelta(microseconds=1)
    return f"{'-' if micros < 0 else ''}{abs(micros) // 10**6}.{abs(micros) % 10**6:06d}"


SCALARS: Final[dict[type, tuple[str, Callable[[Any], str | None], Callable[[str], Any]]]] = {
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", _moment_text, time.fromisoformat),
    datetime: ("datetime", _moment_text, datetime.fromisoformat),
    timedelta: ("timedelta", _duration_text, lambda text: timedelta(microseconds=int(text.replace(".", "")))),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    bytes: ("bytes", lambda x: base64.b64encode(x).decode(), lambda x: base64.b64decode(x, validate=True)),
}
"""Scalars beyond JSON, by class (without subclasses): name, to text, from text."""

_SCALARS_BY_NAME = {name: (write, read) for name, write, read in SCALARS.values()}


# -- reading -----------------------------------------------------------------------------------------------------------


def references(term: leaves.Json) -> Iterator[tuple[str, int]]:
    """Yield the nodes, Variables and symbols in a term that was checked: kind and index."""
    ((kind, payload),) = term.items()
    if kind in ("node", "variable", "symbol"):
        yield kind, payload
    elif kind in ("list", "tuple"):
        for part in payload:
            yield from references(part)
    elif kind == "dict":
        for _, part in payload:
            yield from references(part)
    elif kind == "tree":
        for part in (*payload["children"], payload["config"]):
            yield from references(part)


class TermReader:
    """Reads the terms of one document; while the document is only checked, nothing is made of them.

    Args:
        custom_objects: The caller's objects by id or bare name.
        tables: The tables of the document, by the kind of term that refers to them.
        find: Returns the node or Variable of an index, or the language model of a name.

    Attributes:
        dry: Whether the document is only checked.
        attribute_fault: As in `document`, found out once per document.
        resolver: Finds the objects behind ids.
        tables: As given, with the data models read.

    Raises:
        FormatError, LoadError: A data model cannot be read.
    """

    def __init__(
        self, custom_objects: Mapping[str, Any] | None, tables: dict[str, Any], find: Callable[[str, Any], Any]
    ) -> None:
        self.dry = True
        self.attribute_fault = functools.cache(document.attribute_fault)
        self.resolver, self.tables, self._find = document.Resolver(custom_objects), tables, find
        self._schemas: dict[tuple[str, bytes], data.Schema] = {}
        self._symbols: Sized = ()
        self._readers: dict[str, Callable[[leaves.Json, Where], Any]] = {
            "json": self._json,
            **{kind: functools.partial(self._reference, kind) for kind in ("node", "variable", "language_model")},
            "data_model": self._data_model,
            "symbol": self._symbol,
            "data": self._data,
            "function": self._function,
            "class": lambda payload, where: self.resolver.find_class(payload, where, lambda _: True, "a class"),
            "enum": self._enum,
            "list": self._list,
            "tuple": lambda payload, where: tuple(self._list(payload, where)),
            "dict": self._dict,
            "set": lambda payload, where: set(self._set(payload, where)),
            "frozenset": lambda payload, where: frozenset(self._set(payload, where)),
            "tree": self._tree,
            "scalar": self._scalar,
        }
        tables["data_model"] = [
            document.read_data_model(entry, ("data_models", number), self.resolver, self.read_schema)
            for number, entry in enumerate(check(tables["data_model"], ("data_models",), list))
        ]

    def read(self, term: leaves.Json, where: Where, symbols: Sized = ()) -> Any:
        """Return the value of a term.

        Args:
            term: The term.
            where: Its place in the document.
            symbols: The symbols of the enclosing flow.

        Raises:
            FormatError: It is not a term, or an index is out of range.
            LoadError: It names an object that cannot be there, or code of a user's class refuses what it is given.
        """
        self._symbols = symbols
        return self._read(term, where)

    def read_schema(self, schema: leaves.Json, where: Where, root: Any) -> data.Schema:
        """Return a schema; equal ones are read once.

        Raises:
            FormatError: It is not an object.
            LoadError: It is not closed, or too complex.
        """
        key = root, to_json(check(schema, where, dict))
        if key not in self._schemas:
            try:
                self._schemas[key] = data.schema_from(schema, root=root)
            except errors.SynmodError as error:
                raise load_error(where, str(error)) from error
        return self._schemas[key]

    def _read(self, term: leaves.Json, where: Where) -> Any:
        if not leaves.is_object(term) or len(term) != 1:
            raise format_error(where, f"wanted a term, an object of one key, got {short_text(term)}.")
        ((kind, payload),) = term.items()
        reader = self._readers.get(kind)
        if reader is None:
            raise format_error((*where, kind), f"unknown kind of term; known are {', '.join(self._readers)}.")
        return reader(payload, (*where, kind))

    def _json(self, payload: leaves.Json, _: Where) -> leaves.Json:
        """Return a copy of a value: a `build` may change it, and it may be read again."""
        return payload if self.dry or type(payload) not in (dict, list) else json.loads(json.dumps(payload))

    # -- what is in a table of the document

    def _reference(self, kind: str, payload: leaves.Json, where: Where) -> Any:
        table = self.tables[kind]
        if kind != "language_model":
            document.check_index(payload, len(table), where, f"{kind}s")
        elif type(payload) is not str or payload not in table:
            raise format_error(where, f"{short_text(payload)} is not among the language_models of this file.")
        return None if self.dry else self._find(kind, payload)

    def _symbol(self, payload: leaves.Json, where: Where) -> flow.SymbolRef:
        return flow.SymbolRef(document.check_index(payload, len(self._symbols), where, "symbols"))

    def _entry(self, index: leaves.Json, where: Where) -> document.ModelEntry:
        models = self.tables["data_model"]
        return models[document.check_index(index, len(models), where, "data_models")]

    def _data_model(self, payload: leaves.Json, where: Where) -> Any:
        entry = self._entry(payload, where)
        return None if self.dry else entry.cls or document.remember_id(data.symbol(entry.schema), entry.public_id)

    def _data(self, payload: leaves.Json, where: Where) -> Any:
        record = check_record(payload, where, ("data_model", "json"))
        entry = self._entry(record["data_model"], (*where, "data_model"))
        value = document.validate_value(entry.schema, record["json"], (*where, "json"))
        if self.dry:
            return None
        if entry.cls is None:
            return document.remember_id(data.wrap(value, entry.schema), entry.public_id)
        try:
            return data.build_instance(value, entry.cls)
        except errors.SynmodError as error:
            raise load_error(where, str(error)) from error

    # -- what code names

    def _function(self, payload: leaves.Json, where: Where) -> Any:
        function = self.resolver.find(payload, where)
        if not isinstance(function, types.FunctionType):
            raise load_error(where, f"this is the class {function.__qualname__}, wanted a function.")
        return function

    def _enum(self, payload: leaves.Json, where: Where) -> Any:
        record = check_record(payload, where, ("class", "member"))
        cls: Any = self.resolver.find_class(
            record["class"], (*where, "class"), lambda cls: issubclass(cls, enum.Enum), "an enum"
        )
        if type(record["member"]) is not str or record["member"] not in cls.__members__:
            text = f"{short_text(record['member'])} is not a member of {cls.__qualname__}."
            raise load_error((*where, "member"), text)
        return cls[record["member"]]

    # -- containers

    def _list(self, payload: leaves.Json, where: Where) -> list[Any]:
        return [self._read(part, (*where, number)) for number, part in enumerate(check(payload, where, list))]

    def _dict(self, payload: leaves.Json, where: Where) -> dict[Any, Any]:
        parts: dict[Any, Any] = {}
        for here, key, term in document.check_pairs(payload, where):
            if not _is_key(key) or key in parts:
                raise format_error((*here, 0), f"{short_text(key)} cannot be a key here, or occurs twice.")
            parts[key] = self._read(term, (*here, 1))
        return parts

    def _set(self, payload: leaves.Json, where: Where) -> list[Any]:
        parts = check(payload, where, list)
        if not all(type(part) in _PLAIN and _is_small(part) for part in parts) or len(set(parts)) != len(parts):
            raise format_error(where, "a set holds strings and numbers, ints up to 2**53, without duplicates.")
        return parts

    def _tree(self, payload: leaves.Json, where: Where) -> Any:
        record = check_record(payload, where, ("type", "children", "config"))
        public_id = check(record["type"], (*where, "type"), str)
        expected = "a namedtuple, a dataclass or a registered container"
        cls: type[Any] = _OWN_TREES_BY_ID.get(public_id) or self.resolver.find_class(
            public_id, (*where, "type"), _is_tree_type, expected
        )
        children = self._list(record["children"], (*where, "children"))
        rest = self._read(record["config"], (*where, "config"))
        fields = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
        if not self._fits(cls, fields, children, rest):
            raise load_error(where, f"these parts do not make up a {cls.__qualname__} (has the class changed?).")
        if self.dry:
            return None
        with document.user_code(where, cls):
            return unflatten_one_level(cls, rest if cls is OrderedDict else fields, rest, children)

    def _fits(self, cls: type[Any], fields: list[str], children: list[Any], rest: Any) -> bool:
        """Whether a container can be put together of these parts."""
        if is_registered_container(cls):
            return True
        if cls is OrderedDict:
            return leaves.is_array(rest) and all(map(_is_key, rest)) and len(rest) == len(children) == len(set(rest))
        if cls is deque:
            return rest is None or (type(rest) is int and len(children) <= rest <= LARGEST_KEY)
        if is_namedtuple(cls):
            return rest is None and len(children) == len(cast("Any", cls)._fields)
        attributes: dict[Any, Any] = {} if rest is None else rest
        return (
            len(children) == len(fields)
            and leaves.is_object(attributes)
            and all(type(name) is str and self.attribute_fault(cls, name) is None for name in attributes)
        )

    def _scalar(self, payload: leaves.Json, where: Where) -> Any:
        record = check_record(payload, where, ("type", "text"))
        name, text = record["type"], record["text"]
        if type(name) is not str or name not in _SCALARS_BY_NAME or type(text) is not str:
            raise format_error(where, f"wanted a string of one of the types {', '.join(_SCALARS_BY_NAME)}.")
        write, read = _SCALARS_BY_NAME[name]
        try:
            value = read(text) if name in ("bytes", "decimal") or len(text) <= _LONGEST_TIME else None
        except (ValueError, ArithmeticError):
            value = None
        if value is None or write(value) != text:
            raise format_error((*where, "text"), f"{short_text(text)} is not a {name} as a save writes it.")
        return value

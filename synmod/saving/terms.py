"""Terms: how a file tells a value. An object of one key, its kind, holds each value that may be structure or data.

`TermWriter` and `TermReader` are the two directions of one table of kinds. Both recurse: containers nest at most 100
deep, a document at most 200. What cannot be written is noted as a problem, and writing goes on.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast
from uuid import UUID

from pydantic import BaseModel

from synmod.data import JsonDataModel, SymbolicDataModel, typed_instance, wrap
from synmod.errors import DataError, SchemaError, SynmodError
from synmod.flow import SymbolRef
from synmod.leaves.frozen import FrozenDict, FrozenList, Json, frozen, is_array, is_object
from synmod.leaves.nests import is_namedtuple, is_registered_container, parts_of, put_together
from synmod.lm import LanguageModel
from synmod.registry import id_of
from synmod.tree import Static, Variable, class_of, own_impl

from .names import AttributeNames, Resolver
from .problems import (
    Problems,
    Where,
    check_array,
    check_fields,
    check_index,
    check_object,
    check_pair,
    load_fault,
    malformed,
    shown,
    unregistered,
    user_code,
    what_and_remedy,
)

if TYPE_CHECKING:
    from .tables import ModelEntry

Term = dict[str, Any]
Steps = tuple[Any, ...]

LARGEST_KEY: Final = 2**53
"""Ints beyond it cannot stand in a set or as a key: other readers round them, and hashes of larger ones collide."""

_PURE: Final = object()  # a value that is JSON through and through; the outermost such value becomes one `json` term
_DEEPEST: Final = 100
_LONGEST_TIME: Final = 64
_PLAIN: Final = (str, int, float, bool, type(None))
_OWN_TREES: Final[dict[type[Any], str]] = {deque: "collections>deque", OrderedDict: "collections>OrderedDict"}
_OWN_TREES_BY_ID: Final = {public_id: cls for cls, public_id in _OWN_TREES.items()}


class Place(NamedTuple):
    """Where a value stands, for messages: the path of the node that holds it, and what it is there.

    Attributes:
        path: Returns the path; it is made only when something is wrong.
        what: Such as `argument 'fn'`.
    """

    path: Callable[[], str]
    what: str

    def text(self, steps: Steps = ()) -> str:
        """Return the place of a part."""
        path = self.path()
        return (f"{path}, {self.what}" if path else self.what) + "".join(f" [{step!r}]" for step in steps)


# -- writing ----------------------------------------------------------------------------------------------------------


class Names(Protocol):
    """What a document calls the things that stand in its tables."""

    problems: Problems

    def node(self, node: Any) -> Term:
        """Return the term of a node or language model; one that is met here for the first time is entered."""
        ...

    def variable(self, variable: Any) -> int:
        """Return the index of a Variable, likewise."""
        ...

    def data_model(self, declared: Any) -> int:
        """Return the index of a data model."""
        ...


class TermWriter:
    """Writes terms for one document; how a class is written is found out once."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._place = Place(lambda: "", "")
        self._open: set[int] = set()
        self._writers: dict[type[Any], Callable[[Any, Steps], Any]] = {
            **dict.fromkeys((*_PLAIN, FrozenDict, FrozenList), _pure),
            **dict.fromkeys((list, tuple), self._sequence),
            **dict.fromkeys(_OWN_TREES, self._tree),
            **dict.fromkeys(SCALARS, self._scalar),
            **dict.fromkeys((set, frozenset), self._set),
            dict: self._dict,
            SymbolRef: lambda value, _: {"symbol": value.index},
            Static: self._static,
            types.FunctionType: self._named,
            JsonDataModel: self._value,
            SymbolicDataModel: self._declared,
        }

    def term(self, value: Any, place: Place) -> Term:
        """Return the term of a value: a constructor argument, an attribute, a part of a flow."""
        if value is None or value is True or value is False:
            return {"json": value}
        self._place = place
        return self._closed(self._write(value, ()), value, ())

    def _write(self, value: Any, steps: Steps) -> Any:
        """Return the term of a value, or _PURE."""
        cls = class_of(value)
        writer = self._writers.get(cls)
        if writer is None:
            writer = self._writers[cls] = self._writer_of(cls)
        return writer(value, steps)

    def _closed(self, written: Any, value: Any, steps: Steps) -> Term:
        """Return the term of what was written; JSON that stands beside structure becomes a term of its own."""
        return {"json": self._json(value, steps)} if written is _PURE else written

    def _writer_of(self, cls: type[Any]) -> Callable[[Any, Steps], Any]:
        """Return how instances of a class are written."""
        if issubclass(cls, Variable):
            return lambda value, _: {"variable": self._names.variable(value)}
        if own_impl(cls) is not None:
            return lambda value, _: self._names.node(value)
        if issubclass(cls, BaseModel):
            return self._value if hasattr(cls, "__synmod_json__") else self._refused
        if issubclass(cls, type):
            return self._named
        if issubclass(cls, enum.Enum):
            return self._member
        if _is_tree_type(cls):
            return self._tree if id_of(cls) is not None else self._unregistered
        return self._refused

    def _problem(self, steps: Steps, what: str, remedy: str) -> Term:
        """Note a problem; what is written in its place is never read."""
        self._names.problems.note(self._place.text(steps), what, remedy)
        return {"json": None}

    def _json(self, value: Any, steps: Steps) -> Json:
        """Return frozen JSON; a fault in it is a problem."""
        try:
            return frozen(value)
        except DataError as error:
            what, _, remedy = str(error).partition(" is not JSON: ")
            self._problem(steps, f"{what} is not JSON", remedy.rstrip(".") or "write another value")
            return None

    # -- containers

    def _parts(self, value: Any, parts: list[tuple[Any, Any]], steps: Steps) -> list[Any] | None:
        """Return what the parts of a container are written as; None where it holds itself."""
        if id(value) in self._open:
            self._problem(steps, f"a {type(value).__name__} that holds itself", "break the circle")
            return None
        if len(steps) > _DEEPEST:
            self._problem(steps[:3], f"containers over {_DEEPEST} deep", "hold the inner ones by a module")
            return None
        self._open.add(id(value))
        try:
            return [self._write(part, (*steps, step)) for step, part in parts]
        finally:
            self._open.discard(id(value))

    def _terms(self, written: list[Any], parts: list[tuple[Any, Any]], steps: Steps) -> list[Term]:
        """Return the terms of the parts of a container."""
        return [self._closed(each, part, (*steps, step)) for each, (step, part) in zip(written, parts, strict=True)]

    def _sequence(self, value: Any, steps: Steps) -> Any:
        """Write a list or tuple; a list of JSON is JSON."""
        parts: list[tuple[Any, Any]] = [*enumerate(cast("list[Any]", value))]
        written = self._parts(value, parts, steps)
        if written is None:
            return {"json": None}
        kind = class_of(value)
        if kind is list and all(each is _PURE for each in written):
            return _PURE
        return {kind.__name__: self._terms(written, parts, steps)}

    def _dict(self, value: dict[Any, Any], steps: Steps) -> Any:
        """Write a dict; one of JSON with str keys is JSON."""
        if not all(map(_is_key, value)):
            return self._bad_key(value, steps)
        parts = list(value.items())
        written = self._parts(value, parts, steps)
        if written is None:
            return {"json": None}
        if all(each is _PURE for each in written) and all(type(key) is str for key in value):
            return _PURE
        terms = self._terms(written, parts, steps)
        return {"dict": [[key, term] for key, term in zip(value, terms, strict=True)]}

    def _bad_key(self, value: dict[Any, Any], steps: Steps) -> Any:
        """Note the first key that no file can hold."""
        key = next(key for key in value if not _is_key(key))
        what = f"a {type(value).__name__} with the key {key!r:.100} of type {type(key).__name__}"
        return self._problem(steps, what, "write str(key)")

    def _tree(self, value: Any, steps: Steps) -> Any:
        """Write a container of another class: its children, then what else makes it up."""
        cls = class_of(value)
        if cls is OrderedDict:
            if not all(map(_is_key, value)):
                return self._bad_key(value, steps)
            parts, rest = [*value.items()], [*value]
        else:
            parts, rest = parts_of(value)
        parts = [*parts, ("config", rest)]
        written = self._parts(value, parts, steps)
        if written is None:
            return {"json": None}
        *children, config = self._terms(written, parts, steps)
        return {"tree": {"type": _OWN_TREES.get(cls) or id_of(cls), "children": children, "config": config}}

    def _set(self, value: Any, steps: Steps) -> Any:
        """Write a set of scalars, sorted, so that equal sets are equal files."""
        kind = class_of(value).__name__
        if not all(type(part) in _PLAIN for part in value):
            return self._problem(steps, f"a {kind} that holds more than text and numbers", "write a list")
        large = next((part for part in value if type(part) is int and abs(part) > LARGEST_KEY), None)
        if large is not None:
            return self._problem(steps, f"a {kind} with an int beyond 2**53", "write a list, or texts")
        return {kind: self._json(sorted_scalars(value), steps)}

    # -- what stands in a table of the document

    def _declared(self, value: Any, steps: Steps) -> Any:
        try:
            return {"data_model": self._names.data_model(value)}
        except (SchemaError, DataError) as error:
            return self._problem(steps, str(error), "mend the data model, so that it can be declared")

    def _value(self, value: Any, steps: Steps) -> Any:
        try:
            return {"data": {"data_model": self._names.data_model(value), "json": frozen(value)}}
        except (SchemaError, DataError) as error:
            return self._problem(steps, str(error), "mend the data model, so that it can be declared and dumped")

    # -- what code names

    def _named(self, value: Any, steps: Steps) -> Any:
        is_class = issubclass(class_of(value), type)
        if is_class and issubclass(value, BaseModel):
            return self._declared(value, steps)
        public_id = id_of(value)
        if public_id is None:
            return self._refused(value, steps)
        return {"class" if is_class else "function": public_id}

    def _member(self, value: enum.Enum, steps: Steps) -> Any:
        cls = type(value)
        public_id = id_of(cls)
        if public_id is None:
            return self._problem(steps, *unregistered(cls, f"a member ({value.name})"))
        if value.name not in cls.__members__:
            return self._problem(steps, f"{value!r:.100}, a combination without a name", "make it a member")
        return {"enum": {"class": public_id, "member": value.name}}

    # -- the rest

    def _scalar(self, value: Any, steps: Steps) -> Any:
        name, write, _ = SCALARS[class_of(value)]
        text = write(value)
        if text is None:
            return self._problem(
                steps, f"{value!r:.100}, whose time zone has rules", "write x.astimezone(timezone.utc)"
            )
        return {"scalar": {"type": name, "text": text}}

    def _static(self, _: Any, steps: Steps) -> Any:
        what = "a static(x) inside a container that must be written"
        return self._problem(steps, what, "put `static` around the whole container")

    def _unregistered(self, value: Any, steps: Steps) -> Any:
        return self._problem(steps, *unregistered(class_of(value), "an object"))

    def _refused(self, value: Any, steps: Steps) -> Any:
        return self._problem(steps, *what_and_remedy(value))


def _pure(_: Any, __: Steps) -> Any:
    return _PURE


def sorted_scalars(values: Any) -> list[Any]:
    """Return the parts of a set in the order of a file."""
    return sorted(values, key=lambda part: (type(part).__name__, part if part is not None else 0))


def _is_key(key: Any) -> bool:
    """Whether something can be a key of a dict in a file."""
    return type(key) is str or (type(key) is int and abs(key) <= LARGEST_KEY)


def _is_tree_type(cls: type[Any]) -> bool:
    """Whether a class is a namedtuple, a dataclass, or a registered container."""
    return is_registered_container(cls) or is_namedtuple(cls) or dataclasses.is_dataclass(cls)


# -- scalars ----------------------------------------------------------------------------------------------------------


def _moment_text(value: datetime | time) -> str | None:
    """Return a time as text; None for one with a time zone of rules, which would come back as another."""
    zone = value.tzinfo
    return value.isoformat() if (zone is None or type(zone) is timezone) and not value.fold else None


def _duration_text(value: timedelta) -> str:
    """Return seconds with six decimals."""
    micros = value // timedelta(microseconds=1)
    return f"{'-' if micros < 0 else ''}{abs(micros) // 10**6}.{abs(micros) % 10**6:06d}"


def _duration(text: str) -> timedelta:
    """Return the timedelta of seconds with six decimals."""
    seconds, _, micros = text.lstrip("-").partition(".")
    length = timedelta(seconds=int(seconds), microseconds=int(micros))
    return -length if text.startswith("-") else length


SCALARS: Final[dict[type, tuple[str, Callable[[Any], str | None], Callable[[str], Any]]]] = {
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", _moment_text, time.fromisoformat),
    datetime: ("datetime", _moment_text, datetime.fromisoformat),
    timedelta: ("timedelta", _duration_text, _duration),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    bytes: (
        "bytes",
        lambda value: base64.b64encode(value).decode(),
        lambda text: base64.b64decode(text, validate=True),
    ),
}
"""Scalars beyond JSON, by class (subclasses are not meant): name, to text, from text."""

_SCALARS_BY_NAME = {name: (write, read) for name, write, read in SCALARS.values()}


# -- reading ----------------------------------------------------------------------------------------------------------


def references(term: Json) -> Iterator[tuple[str, int]]:
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


class Tables(Protocol):
    """The tables of the document that a term belongs to.

    Attributes:
        resolver: Finds the objects behind ids.
        names: The faults of attribute names.
        dry: Whether the document is only checked: nothing is made, and stand-ins are read.
        data_models: The data models.
        language_models: The records of language models by name.
    """

    resolver: Resolver
    names: AttributeNames
    dry: bool
    data_models: list[ModelEntry]
    language_models: dict[str, Any]

    def size(self, table: str) -> int:
        """Return how many entries the table `nodes` or `variables` has."""
        ...

    def node(self, index: int) -> Any:
        """Return the node of an index."""
        ...

    def variable(self, index: int) -> Any:
        """Return the Variable of an index."""
        ...

    def language_model(self, name: str) -> LanguageModel:
        """Return the language model of a name."""
        ...


class TermReader:
    """Reads the terms of one document. While the document is checked nothing is made of them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._symbols = 0
        self._readers: dict[str, Callable[[Json, Where], Any]] = {
            "json": lambda payload, _: payload,
            "node": self._node,
            "variable": self._variable,
            "data_model": self._data_model,
            "symbol": self._symbol,
            "language_model": self._language_model,
            "data": self._data,
            "function": self._function,
            "class": self._class,
            "enum": self._enum,
            "list": self._list,
            "tuple": lambda payload, where: tuple(self._list(payload, where)),
            "dict": self._dict,
            "set": lambda payload, where: set(self._set(payload, where)),
            "frozenset": lambda payload, where: frozenset(self._set(payload, where)),
            "tree": self._tree,
            "scalar": self._scalar,
        }

    def read(self, term: Json, where: Where, symbols: int = 0) -> Any:
        """Return the value of a term.

        Args:
            term: The term.
            where: Its place in the document.
            symbols: How many symbols the enclosing flow has.

        Raises:
            FormatError: It is not a term, or an index is out of range.
            LoadError: It names what cannot stand there, or code of a user's class refuses what it is given.
        """
        self._symbols = symbols
        return self._read(term, where)

    def _read(self, term: Json, where: Where) -> Any:
        if not is_object(term) or len(term) != 1:
            raise malformed(where, f"wanted a term, an object of one key, got {shown(term)}.")
        ((kind, payload),) = term.items()
        reader = self._readers.get(kind)
        if reader is None:
            raise malformed((*where, kind), f"unknown kind of term; known are {', '.join(self._readers)}.")
        return reader(payload, (*where, kind))

    # -- references

    def _node(self, payload: Json, where: Where) -> Any:
        return self._tables.node(check_index(payload, self._tables.size("nodes"), where, "nodes"))

    def _variable(self, payload: Json, where: Where) -> Any:
        return self._tables.variable(check_index(payload, self._tables.size("variables"), where, "variables"))

    def _symbol(self, payload: Json, where: Where) -> Any:
        return SymbolRef(check_index(payload, self._symbols, where, "symbols of the enclosing flow"))

    def _language_model(self, payload: Json, where: Where) -> Any:
        if type(payload) is not str or payload not in self._tables.language_models:
            raise malformed(where, f"{shown(payload)} is not among the language_models of this file.")
        return None if self._tables.dry else self._tables.language_model(payload)

    def _entry(self, index: Json, where: Where) -> ModelEntry:
        models = self._tables.data_models
        return models[check_index(index, len(models), where, "data_models")]

    def _data_model(self, payload: Json, where: Where) -> Any:
        return self._entry(payload, where).declared()

    def _data(self, payload: Json, where: Where) -> Any:
        record = check_object(payload, where)
        check_fields(record, where, ("data_model", "json"))
        entry = self._entry(record["data_model"], (*where, "data_model"))
        value = entry.checked(record["json"], (*where, "json"))
        if self._tables.dry:
            return None
        if entry.cls is None:
            return entry.standing_in(wrap(value, entry.schema))
        try:
            return typed_instance(value, entry.cls)
        except SynmodError as error:
            raise load_fault(where, str(error)) from error

    # -- what code names

    def _function(self, payload: Json, where: Where) -> Any:
        found = self._tables.resolver.find(payload, where)
        if not isinstance(found, types.FunctionType):
            raise load_fault(where, f"{shown(payload)} is the class {found.__qualname__}, wanted a function.")
        return found

    def _class(self, payload: Json, where: Where) -> Any:
        return self._tables.resolver.find_class(payload, where, lambda _: True, "a class")

    def _enum(self, payload: Json, where: Where) -> Any:
        record = check_object(payload, where)
        check_fields(record, where, ("class", "member"))
        cls: Any = self._tables.resolver.find_class(
            record["class"], (*where, "class"), lambda found: issubclass(found, enum.Enum), "an enum"
        )
        if type(record["member"]) is not str or record["member"] not in cls.__members__:
            raise load_fault((*where, "member"), f"{shown(record['member'])} is not a member of {cls.__qualname__}.")
        return cls[record["member"]]

    # -- containers

    def _list(self, payload: Json, where: Where) -> list[Any]:
        return [self._read(part, (*where, number)) for number, part in enumerate(check_array(payload, where))]

    def _dict(self, payload: Json, where: Where) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for number, pair in enumerate(check_array(payload, where)):
            key, term = check_pair(pair, (*where, number))
            if not _is_key(key) or key in made:
                raise malformed((*where, number, 0), f"{shown(key)} cannot be a key here, or stands twice.")
            made[key] = self._read(term, (*where, number, 1))
        return made

    def _set(self, payload: Json, where: Where) -> list[Any]:
        parts = check_array(payload, where)
        if not all(type(part) in _PLAIN and (type(part) is not int or abs(part) <= LARGEST_KEY) for part in parts):
            raise malformed(where, "a set holds texts and numbers, ints up to 2**53.")
        if len(set(parts)) != len(parts):
            raise malformed(where, "a set holds each of its parts once.")
        return parts

    def _tree(self, payload: Json, where: Where) -> Any:
        record = check_object(payload, where)
        check_fields(record, where, ("type", "children", "config"))
        public_id = record["type"]
        cls = _OWN_TREES_BY_ID.get(public_id) if type(public_id) is str else None
        if cls is None:
            wanted = "a namedtuple, a dataclass or a registered container"
            cls = self._tables.resolver.find_class(public_id, (*where, "type"), _is_tree_type, wanted)
        children = self._list(record["children"], (*where, "children"))
        rest = self._read(record["config"], (*where, "config"))
        if not self._fits(cls, children, rest):
            raise load_fault(where, f"these parts do not make up a {cls.__qualname__} (has the class changed?).")
        if self._tables.dry:
            return None
        steps = rest if cls is OrderedDict else [field.name for field in _fields(cls)]
        with user_code(where, cls):
            return put_together(cls, steps, rest, children)

    def _fits(self, cls: type[Any], children: list[Any], rest: Any) -> bool:
        """Whether a container can be put together of these parts."""
        if is_registered_container(cls):
            return True
        if cls is OrderedDict:
            return is_array(rest) and all(map(_is_key, rest)) and len(rest) == len(children) == len(set(rest))
        if cls is deque:
            return rest is None or (type(rest) is int and len(children) <= rest <= LARGEST_KEY)
        if is_namedtuple(cls):
            return rest is None and len(children) == len(cast("Any", cls)._fields)
        attributes: dict[Any, Any] = rest if is_object(rest) else {}
        return (
            len(children) == len(_fields(cls))
            and (rest is None or is_object(rest))
            and all(type(name) is str and self._tables.names[cls, name] is None for name in attributes)
        )

    def _scalar(self, payload: Json, where: Where) -> Any:
        record = check_object(payload, where)
        check_fields(record, where, ("type", "text"))
        name, text = record["type"], record["text"]
        if type(name) is not str or name not in _SCALARS_BY_NAME or type(text) is not str:
            raise malformed(where, f"wanted a text of one of the types {', '.join(_SCALARS_BY_NAME)}.")
        write, read = _SCALARS_BY_NAME[name]
        try:
            value = read(text) if name in ("bytes", "decimal") or len(text) <= _LONGEST_TIME else None
        except (ValueError, ArithmeticError):
            value = None
        if value is None or write(value) != text:
            raise malformed((*where, "text"), f"{shown(text)} is not a {name} as a file spells it.")
        return value


def _fields(cls: type[Any]) -> tuple[Any, ...]:
    """Return the fields of a dataclass; other containers have none."""
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()

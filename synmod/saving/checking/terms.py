"""The check of terms: every kind known, every index in range, every id of the right kind; nothing is made."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections import OrderedDict, deque
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from synmod.leaves.frozen import Json, is_array, is_object
from synmod.saving.text.document import check_fields
from synmod.saving.text.faults import load_fault, malformed, shown
from synmod.saving.vocabulary.scalars import NAMES, scalar_from
from synmod.saving.vocabulary.term_leaves import OWN_TREE_TYPES
from synmod.tree import TREE_TYPES, is_namedtuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from synmod.saving.checking.plan import ModelEntry
    from synmod.saving.checking.resolver import Resolver
    from synmod.saving.checking.values import ValueChecker
    from synmod.saving.vocabulary.attribute_names import AttributeNames

__all__ = ["TermChecker", "tree_class"]

Where = tuple[str | int, ...]
_Found: TypeAlias = "Iterator[tuple[Json, Where]]"
_SCALARS = (str, int, float, bool, type(None))
_OWN_TREES: Final = {public_id: cls for cls, public_id in OWN_TREE_TYPES.items()}


class TermChecker:
    """Checks the terms of one document, without recursion.

    Attributes:
        nodes: How many nodes there are.
        variables: How many Variables there are.
        models: The data models.
        language_models: The names of the language models.
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        models: list[ModelEntry],
        language_models: dict[str, Any],
        resolver: Resolver,
        values: ValueChecker,
        names: AttributeNames,
    ) -> None:
        self.nodes, self.variables = sizes
        self.models = models
        self.language_models = language_models
        self.resolver = resolver
        self.values = values
        self.names = names
        self.symbols = 0
        self.nodes_met: list[int] = []
        self.variables_met: list[int] = []
        self.symbols_met: list[int] = []
        self._checks: dict[str, Callable[[Json, Where], _Found | None]] = {
            "node": self._node,
            "variable": self._variable,
            "data_model": self._data_model,
            "symbol": self._symbol,
            "language_model": self._language_model,
            "data": self._data,
            "function": self._function,
            "class": self._class,
            "enum": self._enum,
            "list": self._sequence,
            "tuple": self._sequence,
            "dict": self._dict,
            "set": self._set,
            "frozenset": self._set,
            "tree": self._tree,
            "scalar": self._scalar,
        }

    def check(self, term: Json, where: Where, symbols: int = 0) -> None:
        """Check a term and all below it; afterwards `nodes_met` and the like hold the indices in it.

        Args:
            term: The term.
            where: Its place in the document.
            symbols: How many symbols the enclosing flow has.

        Raises:
            FormatError: It is no term, or an index is out of range.
            LoadError: It names what cannot stand there.
        """
        self.nodes_met = []
        self.variables_met = []
        self.symbols_met = []
        if is_object(term) and len(term) == 1 and "json" in term:
            return
        self.symbols = symbols
        open_terms: list[_Found] = [iter(((term, where),))]
        while open_terms:
            following = next(open_terms[-1], None)
            if following is None:
                open_terms.pop()
                continue
            term, where = following
            if not is_object(term) or len(term) != 1:
                raise malformed(where, f"wanted a term, an object of one key, got {_described(term)}.")
            ((kind, payload),) = term.items()
            if kind == "json":
                continue
            check = self._checks.get(kind)
            if check is None:
                raise malformed((*where, kind), f"unknown kind of term; known are json, {', '.join(self._checks)}.")
            below = check(payload, (*where, kind))
            if below is not None:
                open_terms.append(below)

    # -- references ---------------------------------------------------------------------------------------------------

    def _node(self, payload: Json, where: Where) -> None:
        self.nodes_met.append(check_index(payload, self.nodes, where, "nodes"))

    def _variable(self, payload: Json, where: Where) -> None:
        self.variables_met.append(check_index(payload, self.variables, where, "variables"))

    def _data_model(self, payload: Json, where: Where) -> None:
        check_index(payload, len(self.models), where, "data_models")

    def _symbol(self, payload: Json, where: Where) -> None:
        self.symbols_met.append(check_index(payload, self.symbols, where, "symbols of the enclosing flow"))

    def _language_model(self, payload: Json, where: Where) -> None:
        if type(payload) is not str or payload not in self.language_models:
            raise malformed(where, f"{shown(payload)} is not among the language_models of this file.")

    def _data(self, payload: Json, where: Where) -> None:
        record = check_object(payload, where)
        check_fields(record, where, ("data_model", "json"))
        index = check_index(record["data_model"], len(self.models), (*where, "data_model"), "data_models")
        self.values.check(self.models[index].schema, record["json"], (*where, "json"))

    # -- what code names ----------------------------------------------------------------------------------------------

    def _function(self, payload: Json, where: Where) -> None:
        found = self.resolver.find(payload, where)
        if not isinstance(found, types.FunctionType):
            raise load_fault(where, f"{shown(payload)} is the class {found.__qualname__}, wanted a function.")

    def _class(self, payload: Json, where: Where) -> None:
        self.resolver.find_class(payload, where, lambda _: True, "a class")

    def _enum(self, payload: Json, where: Where) -> None:
        record = check_object(payload, where)
        check_fields(record, where, ("class", "member"))
        cls: Any = self.resolver.find_class(
            record["class"], (*where, "class"), lambda found: issubclass(found, enum.Enum), "an enum"
        )
        if type(record["member"]) is not str or record["member"] not in cls.__members__:
            raise load_fault((*where, "member"), f"{shown(record['member'])} is no member of {cls.__qualname__}.")

    # -- containers ---------------------------------------------------------------------------------------------------

    def _sequence(self, payload: Json, where: Where) -> _Found:
        return ((part, (*where, number)) for number, part in enumerate(check_array(payload, where)))

    def _dict(self, payload: Json, where: Where) -> _Found:
        keys: set[Any] = set()
        pairs = check_array(payload, where)
        for number, pair in enumerate(pairs):
            if not is_array(pair) or len(pair) != 2:
                raise malformed((*where, number), "wanted a pair of key and term.")
            key = pair[0]
            if type(key) not in (str, int) or key in keys:
                raise malformed((*where, number, 0), f"{shown(key)} cannot be a key here, or is one twice.")
            keys.add(key)
        return ((pair[1], (*where, number, 1)) for number, pair in enumerate(pairs))

    def _set(self, payload: Json, where: Where) -> None:
        parts = check_array(payload, where)
        if not all(type(part) in _SCALARS for part in parts) or len(set(parts)) != len(parts):
            raise malformed(where, "a set holds different texts and numbers.")

    def _tree(self, payload: Json, where: Where) -> _Found:
        record = check_object(payload, where)
        check_fields(record, where, ("type", "children", "config"))
        cls = tree_class(self.resolver, record["type"], (*where, "type"))
        children = check_array(record["children"], (*where, "children"))
        self._check_parts(cls, children, record["config"], where)
        below = ((child, (*where, "children", number)) for number, child in enumerate(children))
        return chain(below, [(record["config"], (*where, "config"))])

    def _check_parts(self, cls: type, children: list[Json], config: Json, where: Where) -> None:
        """Check that a container can be put together of these parts."""
        if cls in TREE_TYPES:
            return
        plain: Any = config.get("json", 0) if is_object(config) else 0
        if cls is OrderedDict:
            fits = is_array(plain) and len(plain) == len(children) and _are_keys(plain)
        elif cls is deque:
            fits = plain is None or (type(plain) is int and plain >= len(children))
        elif is_namedtuple(cls):
            fits = plain is None and len(children) == len(cast("Any", cls)._fields)
        else:
            fits = len(children) == len(dataclasses.fields(cast("Any", cls))) and self._are_attributes(cls, config)
        if not fits:
            raise load_fault(where, f"these parts do not make up a {cls.__qualname__} (the class has changed?).")

    def _are_attributes(self, cls: type, config: Json) -> bool:
        """Whether what a dataclass holds beside its fields may be set from a file."""
        rest = config if is_object(config) else {}
        if rest.get("json", 0) is None:
            return True
        names: list[Any] = [0]
        if is_object(rest.get("json")):
            names = list(rest["json"])
        elif is_array(rest.get("dict")):
            names = [pair[0] for pair in rest["dict"] if is_array(pair) and pair]
        return all(type(name) is str and self.names[cls, name] is None for name in names)

    def _scalar(self, payload: Json, where: Where) -> None:
        record = check_object(payload, where)
        check_fields(record, where, ("type", "text"))
        name, text = record["type"], record["text"]
        if type(name) is not str or name not in NAMES.values() or type(text) is not str:
            raise malformed(where, f"wanted a text of one of the types {', '.join(NAMES.values())}.")
        try:
            scalar_from(name, text)
        except ValueError as error:
            raise malformed((*where, "text"), f"no {name}: {shown(str(error))}.") from None


def tree_class(resolver: Resolver, public_id: Json, where: Where) -> type:
    """Give the container type of an id.

    Raises:
        LoadError: It is none.
    """
    own = _OWN_TREES.get(public_id) if type(public_id) is str else None
    if own is not None:
        return own
    return resolver.find_class(public_id, where, _is_tree_type, "a namedtuple, a dataclass or a registered tree type")


def _is_tree_type(cls: type) -> bool:
    return cls in TREE_TYPES or is_namedtuple(cls) or dataclasses.is_dataclass(cls)


def check_index(index: Json, size: int, where: Where, table: str) -> int:
    """Check an index into a table; a bool is no index."""
    if type(index) is not int or not 0 <= index < size:
        raise malformed(where, f"{shown(index)} is no index into the {size:,} {table}.")
    return index


def check_object(value: Json, where: Where) -> dict[str, Json]:
    """Check that something is an object."""
    if not is_object(value):
        raise malformed(where, f"wanted an object, got {_described(value)}.")
    return value


def check_array(value: Json, where: Where) -> list[Json]:
    """Check that something is an array."""
    if not is_array(value):
        raise malformed(where, f"wanted an array, got {_described(value)}.")
    return value


def check_text(value: Json, where: Where) -> str:
    """Check that something is a text."""
    if type(value) is not str:
        raise malformed(where, f"wanted a text, got {_described(value)}.")
    return value


def check_bool(value: Json, where: Where) -> bool:
    """Check that something is true or false."""
    if type(value) is not bool:
        raise malformed(where, f"wanted true or false, got {_described(value)}.")
    return value


def _are_keys(keys: Json) -> bool:
    """Whether these can be the keys of a dict."""
    return all(type(key) in (str, int) for key in keys) and len(set(keys)) == len(keys)


def _described(value: Json) -> str:
    """Say what stands where something else belongs."""
    if is_object(value):
        keys = list(value)
        return f"an object with the keys {', '.join(map(shown, keys[:5]))}" if keys else "an empty object"
    return "an array" if type(value) is list else shown(value)

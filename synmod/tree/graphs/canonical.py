"""One order for comparing: a graph definition as a list of places, the same however its attributes were assigned."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import GraphError
from synmod.leaves.frozen import FrozenDict, FrozenList
from synmod.leaves.names import KeyPath, path_str
from synmod.tree.graphs.codec import codec
from synmod.tree.graphs.defs import ContainerDef, DataDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.graphs.encoding import canonical_json, class_text, data_text, static_text
from synmod.tree.variable.containers import DICTS, TREE_TYPES, class_of, is_namedtuple, take_apart
from synmod.tree.walking.kinds import NODE, VARIABLE, kind_of
from synmod.tree.walking.node_types import own_impl
from synmod.tree.walking.static import Static

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.data import Schema
    from synmod.tree.graphs.defs import Definition, Term

Link = tuple[Any, Any] | None
"""A path from its end: (link of what is above, step)."""


class Opaque:
    """Something without a text: equal to itself only."""

    __slots__ = ("link", "value")

    def __init__(self, value: Any, link: Link) -> None:
        self.value = value
        self.link = link

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.value is self.value

    def __hash__(self) -> int:
        try:
            return hash(self.value)
        except TypeError:
            raise GraphError(f"{describe(self)}; it is not hashable either. {REMEDY}") from None


REMEDY = "Wrap it in static(x), list its attribute in _graph_ignored, or make it from JSON by a get_config of your own."

Token = str | int | Opaque


class Place(NamedTuple):
    """What stands at one path of the graph."""

    link: Link
    tokens: tuple[Token, ...]
    keys: tuple[str, ...] = ()
    number: int | None = None


def path_of(link: Link) -> KeyPath:
    """Write a link as a path."""
    steps: list[Any] = []
    while link is not None:
        link, step = link
        steps.append(step)
    steps.reverse()
    return tuple(steps)


def describe(opaque: Opaque) -> str:
    """Say where something without a text stands."""
    return f"At {path_str(path_of(opaque.link))!r}: an object of type {type(opaque.value).__name__} cannot be encoded"


class Number(int):
    """The number of a node or Variable, by order of first mention; other ints count parts."""

    __slots__ = ()


Pairs = list[tuple[Any, "Term"]]
Order = Callable[[Link, Pairs], Pairs]
"""How the attributes of a node, or the items of a dict, at a place are ordered."""


class Canonical:
    """Lists the places of a graph as the walk comes to them, references by order of first mention.

    Args:
        definitions: Those of the graph.
        order: In which order attributes and dict items are taken.
    """

    def __init__(self, definitions: Mapping[int, Definition], order: Order) -> None:
        self._definitions = definitions
        self._order = order
        self._numbers: dict[int, Number] = {}
        self._opened: set[int] = set()
        self._schemas: dict[int, str] = {}

    def places(self, root: Term) -> list[Place]:
        """List all places, iteratively: at a node its own values, then its child nodes."""
        found: list[Place] = []
        later: list[tuple[Link, Term]] = [(None, root)]
        while later:
            node = later.pop()
            pending = [node]
            deferred: list[tuple[Link, Term]] = []
            while pending:
                link, term = pending.pop()
                if isinstance(term, NodeRef) and link is not node[0]:
                    deferred.append((link, term))
                    continue
                place, below = self._place(link, term)
                found.append(place)
                pending.extend(((link, step), child) for step, child in reversed(below))
            later.extend(reversed(deferred))
        return found

    def _place(self, link: Link, term: Term) -> tuple[Place, Pairs]:
        """Describe one place and list what is below it, in order."""
        if isinstance(term, DataDef):
            text = data_text(term.value, term.json)
            return Place(link, ("static", Opaque(term.value, link) if text is None else text)), []
        if isinstance(term, StaticDef):
            if not isinstance(term.value, FrozenDict | FrozenList):
                return Place(link, ("static", _leaf(term.value, link))), []
            term = _unfrozen(term.value)
        if isinstance(term, ContainerDef):
            below = list(zip(term.steps, term.children, strict=True))
            if term.type in DICTS:
                below = self._order(link, below)
            return Place(link, ("container", class_text(term.type), *self._nest(term.aux, link)), _keys(below)), below
        number = self._number(term.index)
        definition = self._definitions.get(term.index)
        if definition is None or term.index in self._opened:
            return Place(link, ("reference", number)), []
        self._opened.add(term.index)
        head = (number, class_text(definition.type))
        if isinstance(definition, VariableDef):
            texts = self._text(definition.schema), canonical_json(definition.metadata)
            return Place(link, ("variable", *head, *texts), (), number), []
        below = self._order(link, [pair for pair in definition.attributes if not _is_left_out(pair[1])])
        return Place(link, ("node", *head, *self._metadata(definition, link)), _keys(below), number), below

    def _metadata(self, definition: NodeDef, link: Link) -> list[Token]:
        """Describe what of a node's metadata counts."""
        impl = own_impl(definition.type)
        counts = definition.metadata
        if impl is not None and impl.compared is not None:
            counts = impl.compared(definition)
        return self._nest(counts, link)

    def _text(self, schema: Schema) -> str:
        """Write a schema; many Variables have the same."""
        text = self._schemas.get(id(schema))
        if text is None:
            text = self._schemas[id(schema)] = canonical_json(schema)
        return text

    def _number(self, index: int) -> Number:
        return self._numbers.setdefault(index, Number(len(self._numbers)))

    def _nest(self, nest: Any, link: Link) -> list[Token]:
        """Describe a nest of plain containers, dataclasses, references and statics."""
        tokens: list[Token] = []
        pending = [nest]
        while pending:
            x = pending.pop()
            opened = _opened(x)
            if opened is not None:
                name, keys, parts = opened
                tokens += (name, *keys, len(parts))
                pending.extend(reversed(parts))
            elif isinstance(x, NodeRef | VariableRef):
                tokens += ("reference", self._number(x.index))
            else:
                tokens.append(_leaf(x, link))
        return tokens


def _opened(x: Any) -> tuple[str, list[str], list[Any]] | None:
    """Take a container of a nest apart; None for a leaf."""
    cls = class_of(x)
    if cls in DICTS or isinstance(x, FrozenDict):
        pairs = _by_key(x.items())
        return "dict", [repr(key) for key, _ in pairs], [value for _, value in pairs]
    if cls is list or isinstance(x, FrozenList):
        return "list", [], list(x)
    if cls is tuple:
        return "tuple", [], list(x)
    if is_namedtuple(cls):
        return class_text(cls), [], list(x)
    if cls is deque or cls in TREE_TYPES:
        pairs, rest = take_apart(x)
        return class_text(cls), [repr(step) for step, _ in pairs], [*(part for _, part in pairs), rest]
    if dataclasses.is_dataclass(x) and not isinstance(x, NodeRef | VariableRef | type):
        fields = [field.name for field in dataclasses.fields(x) if field.compare]
        return class_text(cls), fields, [getattr(x, name) for name in fields]
    return None


def _unfrozen(json: FrozenDict | FrozenList) -> ContainerDef:
    """Describe a frozen value as the plain container of the same content: a file does not tell them apart."""
    if isinstance(json, FrozenDict):
        return ContainerDef(dict, tuple(json), tuple(map(StaticDef, json.values())))
    return ContainerDef(list, tuple(range(len(json))), tuple(map(StaticDef, json)))


def _is_left_out(term: Term) -> bool:
    """Tell whether an attribute is a `static(x)`, which is in no fingerprint and no JSON."""
    return type(term) is StaticDef and type(term.value) is Static


def _keys(below: list[tuple[Any, Term]]) -> tuple[str, ...]:
    return tuple([repr(step) for step, _ in below])


def sorted_by_key(link: Link, pairs: Pairs) -> Pairs:  # noqa: ARG001  (the same everywhere)
    """Order what is at a place by its keys."""
    return _by_key(pairs)


def _by_key(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Sort by key; int and str keys may be mixed."""
    return sorted(pairs, key=lambda pair: (type(pair[0]).__name__, str(pair[0])))


def _leaf(value: Any, link: Link) -> Token:
    """Describe a static, or what only metadata reaches."""
    text = static_text(value)
    if text is None and kind_of(value) in (NODE, VARIABLE):
        text = codec("unreached")(value)
    return Opaque(value, link) if text is None else text

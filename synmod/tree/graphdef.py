"""Structure without values: the records of a graph, `GraphDef`, recording live objects, and comparing structures.

Equality, fingerprint and diff share one fold: a walk over the definitions returns a list of places, each with the
index of its parent place, its step and the tokens to compare; an alias compares as the place it leads to.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import hashlib
import json
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from synmod import data, errors, registry
from synmod.leaves import DICTS, LEAF, FrozenDict, FrozenList, Json, KeyPath, Pairs, frozen, kind_of, parts_of, path_str

from .variable import Immutable, Variable, class_of
from .walk import NODE, SEQUENCE, STATIC, VARIABLE, Kinds, Reader, RefMap, Static, Visit, check_root, own_impl, walk

M = TypeVar("M")


@dataclass(frozen=True)
class GraphCodec:
    """How a higher room turns graph definitions into JSON and back; `synmod/__init__.py` sets the instance.

    Attributes:
        encode: Returns the JSON of a graph definition, as `to_json` does.
        decode: Returns the graph definition of its JSON, with language models and classes by name, as `from_json` does.
    """

    encode: Callable[[GraphDef[Any]], dict[str, Json]]
    decode: Callable[[Json, Any, Mapping[str, Any] | None], GraphDef[Any]]
    instance: ClassVar[GraphCodec]


# -- records -----------------------------------------------------------------------------------------------------------


class NodeRef(NamedTuple):
    """A reference to a node.

    Attributes:
        type: The class of the node.
        index: The identity number of the node.
    """

    type: type[Any]
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  (`tuple.index` is not used on records)


class VariableRef(NamedTuple):
    """A reference to a Variable.

    Attributes:
        type: The class of the Variable.
        index: The identity number of the Variable.
    """

    type: type[Variable]
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  (likewise)


class StaticDef(NamedTuple):
    """A value that is not a node, Variable or container; kept by reference.

    A data model may be changed in place, so `json` holds its JSON at the time of recording; None for everything else.
    """

    value: Any
    json: Json = None


class ContainerDef(NamedTuple):
    """A container: its class, steps and children, and other data to rebuild it (`aux`: the length of a deque, ...)."""

    type: type[Any]
    steps: tuple[Any, ...]
    children: tuple[Term, ...]
    aux: Any = None


class NodeDef(NamedTuple):
    """A node.

    Attributes:
        type: The class.
        index: The identity number.
        attributes: The children by key, in definition order.
        metadata: Other data to rebuild the node, with references in place of nodes and Variables.
    """

    type: type[Any]
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  (likewise)
    attributes: tuple[tuple[str | int, Term], ...]
    metadata: Any = None
    refers: bool = True
    """Whether there may be references in the metadata."""

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The constructor arguments of a module, with references in them; None for other nodes."""
        return getattr(self.metadata, "arguments", None)

    @property
    def build_config(self) -> Mapping[str, Any] | None:
        """The schemas that a module was built on, by parameter; None for an unbuilt module and for other nodes."""
        return getattr(self.metadata, "build_config", None)


class VariableDef(NamedTuple):
    """A Variable without its value.

    Attributes:
        type: The class.
        index: The identity number.
        schema: The schema of the value.
        metadata: `trainable`, `name`, `description` and free metadata.
    """

    type: type[Variable]
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  (likewise)
    schema: data.Schema
    metadata: FrozenDict


REFERENCES: Final = frozenset({NodeRef, VariableRef})
Term: TypeAlias = NodeRef | VariableRef | ContainerDef | StaticDef
Definition: TypeAlias = NodeDef | VariableDef


# -- GraphDef ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class GraphDef(Immutable, Generic[M]):
    """Nodes, statics, references by index, and types, schemas and metadata of Variables. No values.

    Attributes:
        root: The root.
        definitions: Nodes and Variables by index, in definition order.
        leaf_paths: The index of each Variable by its canonical path, in definition order.
        by_reference: The by-reference nodes, which copies share, by index.
        foreign: Indices that another split defines, each with the path of a reference to it.
        index_mapping: For a graph split inside an update context, the index outside for each index that has one.

    Example:
        >>> from synmod.tree import Param, graphdef
        >>> graphdef({"a": Param("x")}) == graphdef({"a": Param("y")})
        True

    Source: Flax NNX `GraphDef`; differs: flat, so of any depth, and comparable across processes.
    """

    root: Term
    definitions: Mapping[int, Definition]
    leaf_paths: Mapping[KeyPath, int]
    by_reference: Mapping[int, Any] = field(default_factory=dict[int, Any])
    foreign: Mapping[int, KeyPath] = field(default_factory=dict[int, KeyPath])
    index_mapping: Mapping[int, int] | None = None

    @property
    def nodes(self) -> tuple[NodeDef, ...]:
        """The nodes, in definition order."""
        return tuple(definition for definition in self.definitions.values() if isinstance(definition, NodeDef))

    @property
    def variables(self) -> tuple[VariableDef, ...]:
        """The Variables, in definition order."""
        return tuple(definition for definition in self.definitions.values() if isinstance(definition, VariableDef))

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the structure: equal for equal graphs, in every process.

        Raises:
            GraphError: A static cannot be encoded; names every path, its type and the remedies.
        """
        places = self._places
        opaque = [(at, x.value) for at, place in enumerate(places) for x in place.tokens if isinstance(x, Static)]
        if opaque:
            paths = _paths(places)
            kinds = [(path_str(paths[at]), type(x).__name__) for at, x in opaque]
            faults = [f"At {path!r}: an object of type {kind} cannot be encoded." for path, kind in kinds]
            raise errors.GraphError("\n".join([*faults, REMEDY]))
        return self.fingerprint_with(str)

    def fingerprint_with(self, describe: Callable[[Any], str]) -> str:
        """Return a fingerprint of any structure; it may change with the code, so it is not for files that outlive it.

        Args:
            describe: Returns a text for a static that cannot be encoded, such as a function that is not registered.
        """
        digest = hashlib.sha256()
        for parent, step, tokens in self._places:
            texts = [f"opaque {describe(token.value)}" if isinstance(token, Static) else token for token in tokens]
            digest.update(repr((parent, step, texts)).encode())
        return digest.hexdigest()

    def diff(self, other: GraphDef[Any]) -> tuple[KeyPath, ...]:
        """Return the paths at which two structures differ; only the top path of an added or removed part."""
        if self == other:
            return ()
        before, after = (_by_path(_places(graph, in_order=True)) for graph in (self, other))
        paths = dict.fromkeys((*before, *after))
        changed = [path for path in paths if before.get(path) != after.get(path)]
        replaced = {path for path in changed if before.get(path, _NOTHING)[0] != after.get(path, _NOTHING)[0]}
        return tuple(path for path in changed if not (path in replaced and path and path[:-1] in replaced))

    def to_json(self) -> dict[str, Json]:
        """Return an object with the keys `graph`, `data_models` and `language_models`.

        Raises:
            GraphError: Values cannot be written as JSON; lists each with its path and the remedy.
        """
        return GraphCodec.instance.encode(self)

    @classmethod
    def from_json(
        cls, json: Json, *, language_models: Any = None, custom_objects: Mapping[str, Any] | None = None
    ) -> GraphDef[Any]:
        """Read the JSON that `to_json` returned; the rules of loading apply.

        Args:
            json: The JSON.
            language_models: Live models or model strings by saved name, or one for all.
            custom_objects: Classes and functions by id, for this call.

        Raises:
            LoadError: `json` cannot be read.
        """
        return GraphCodec.instance.decode(json, language_models, custom_objects)

    def visits(self, *, in_order: bool = True) -> Iterator[Visit]:
        """Visit the definitions at the paths of the live objects; containers by key unless in definition order."""
        reader = _Definitions(self.definitions, in_order)
        return walk(_thaw_one_level(self.root), statics=True, reader=reader)

    @cached_property
    def _places(self) -> list[Place]:
        return _places(self, in_order=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphDef):
            return NotImplemented
        return self is other or self._places == other._places  # pyright: ignore[reportUnknownMemberType]

    def __hash__(self) -> int:
        return hash(tuple(self._places))

    def __repr__(self) -> str:
        root = "static" if isinstance(self.root, StaticDef) else self.root.type.__name__
        return f"GraphDef({root}, {len(self.nodes)} nodes, {len(self.variables)} variables)"


# -- comparing ---------------------------------------------------------------------------------------------------------

_SCALARS: Final = frozenset({dt.date, dt.time, dt.datetime, dt.timedelta, decimal.Decimal, uuid.UUID, bytes})
_JSON: Final = frozenset({type(None), bool, int, float, str, dict, list, FrozenDict, FrozenList})

REMEDY: Final = (
    "Wrap it in static(x), list its attribute in graph_ignored, or write a get_config that describes it as JSON."
)

canonical_json: Final[Callable[[Json], str]] = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
"""JSON with sorted keys: equal texts for values that are equal to `json_equal`."""


Token: TypeAlias = "str | int | Static[Any]"  # noqa: S105  (not a secret)
"""A value as it is compared; a static that cannot be encoded is a `Static`, equal only for the same object."""


def class_text(cls: type[Any]) -> str:
    """Return the name of a class: its public id, else its module and qualified name."""
    return registry.id_of(cls) or f"{cls.__module__}:{cls.__qualname__}"


def static_text(value: Any) -> str | None:
    """Encode a static as text.

    Returns:
        A text, the same for equal statics in every process; None for objects that cannot be encoded, such as
        functions that are not registered, handles and blobs.
    """
    kind = class_of(value)
    if kind in _JSON or isinstance(value, FrozenDict):
        try:
            return canonical_json(frozen(value))
        except ValueError:  # NaN, an int with too many digits, or not JSON
            return _container_text(value)
    if kind is Static:
        return "static"
    if isinstance(value, type) and not issubclass(cast("type[Any]", value), BaseModel):
        return f"class {class_text(cast('type[Any]', value))}"
    if isinstance(value, type | data.SymbolicDataModel):
        try:
            return f"data_model {canonical_json(data.schema_of(value))}"
        except errors.SynmodError:  # a model without a usable schema is compared by name
            return f"class {class_text(cast('type[Any]', value))}"
    if isinstance(value, data.HasSchema | BaseModel):
        return _data_text(value, value)
    if isinstance(value, types.FunctionType):
        public_id = registry.id_of(value)
        return None if public_id is None else f"function {public_id}"
    if isinstance(value, enum.Enum):
        return f"enum {class_text(kind)} {value.name}"
    if kind in _SCALARS:
        return f"{kind.__name__} {value!r}"
    if kind is set or kind is frozenset:
        texts = [static_text(item) for item in value]
        return None if None in texts else f"{kind.__name__} {sorted(map(str, texts))}"
    return None


def _container_text(value: Any) -> str | None:
    """Encode a list or dict that is not JSON, such as one with int keys that paths could not name apart."""
    if not isinstance(value, list | dict):
        return None
    try:
        tokens = list(_nest_tokens(value, lambda _: None))
    except RecursionError:  # it holds itself
        return None
    return None if any(isinstance(token, Static) for token in tokens) else repr(tokens)


def _data_text(model: Any, json: Json) -> str | None:
    """Encode a data model with this content; None if its schema cannot be used."""
    try:
        return f"data {canonical_json(data.schema_of(model))} {canonical_json(frozen(json))}"
    except errors.SynmodError:
        return None


def _token(value: Any, json: Json = None) -> Token:
    """Return the token of a static; `json` is the content of a data model when it was recorded."""
    text = static_text(value) if json is None else _data_text(value, json)
    return Static(value) if text is None else text


def _nest_tokens(nest: Any, reference: Callable[[Any], Token | None]) -> Iterable[Token]:
    """Encode a nest of containers and statics; `reference` encodes a reference, and returns None for anything else."""
    token = reference(nest)
    cls = class_of(nest)
    if token is not None:
        yield token
        return
    if cls in DICTS or isinstance(nest, FrozenDict):
        pairs, name = by_key(nest.items()), "dict"
    elif cls in (list, tuple) or isinstance(nest, FrozenList):
        pairs, name = list(enumerate(nest)), "tuple" if cls is tuple else "list"
    elif kind_of(nest) != LEAF:
        (pairs, rest), name = parts_of(nest), class_text(cls)
        pairs = [*pairs, (None, rest)]
    else:
        yield _token(nest)
        return
    yield name
    yield len(pairs)
    for key, part in pairs:
        yield repr(key)
        yield from _nest_tokens(part, reference)


def by_key(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Sort pairs by key; int and str keys may be mixed."""
    return sorted(pairs, key=lambda pair: (type(pair[0]).__name__, str(pair[0])))


_NOTHING: Final = (None,)


class Place(NamedTuple):
    """One path of a graph: the index of the parent place (-1 for the root), the last step, the tokens to compare."""

    parent: int
    step: Any
    tokens: tuple[Token, ...]


class _Definitions(Reader):
    """Reads the definitions of a graph, at the same paths as the live objects, for comparison.

    `static(x)` attributes are left out, and frozen JSON is read as plain JSON.
    """

    def __init__(self, definitions: Mapping[int, Definition], in_order: bool) -> None:
        self.kinds = Kinds({NodeRef: NODE, VariableRef: VARIABLE, ContainerDef: SEQUENCE, StaticDef: STATIC})
        self.entity = lambda reference: definitions.get(reference.index, reference)  # itself: defined elsewhere
        self._in_order = in_order

    def enter(self, node: NodeDef | NodeRef, visit: Visit) -> tuple[Pairs, bool]:  # noqa: ARG002
        """Return the attributes to compare, by key; a reference into another split has none."""
        pairs = [] if isinstance(node, NodeRef) else [(key, _thaw_one_level(term)) for key, term in node.attributes]
        pairs = [(key, term) for key, term in pairs if not isinstance(getattr(term, "value", None), Static)]
        return (pairs if self._in_order else by_key(pairs)), False

    def open(self, value: ContainerDef, kind: int, visit: Visit) -> tuple[Pairs, Any]:  # noqa: ARG002
        """Return the children of a container, those of a dict sorted by key unless definition order is wanted."""
        pairs = [(step, _thaw_one_level(child)) for step, child in zip(value.steps, value.children, strict=True)]
        return (by_key(pairs) if value.type in DICTS and not self._in_order else pairs), None


def _thaw_one_level(term: Any) -> Any:
    """Return frozen JSON as a plain container with the same content, one level: files do not distinguish them."""
    value = term.value if type(term) is StaticDef else None
    if isinstance(value, FrozenDict):
        return ContainerDef(dict, tuple(value), tuple(map(StaticDef, value.values())))
    if isinstance(value, FrozenList):
        return ContainerDef(list, tuple(range(len(value))), tuple(map(StaticDef, value)))
    return term


def _places(graphdef: GraphDef[Any], *, in_order: bool) -> list[Place]:
    """Return the places of a graph, in definition order or sorted by key, whatever the order of assignment."""
    visits = list(graphdef.visits(in_order=in_order))
    numbers = {id(visit): at for at, visit in enumerate(visits)}
    first = {visit.value.index: at for at, visit in enumerate(visits) if visit.index is not None and visit.first}
    nowhere: dict[int, int] = {}  # objects that occur only in metadata, numbered in order of occurrence

    def reference(x: Any) -> str | None:
        if type(x) not in REFERENCES:
            return None
        at = first.get(x.index)
        return f"nowhere {nowhere.setdefault(x.index, len(nowhere))}" if at is None else f"place {at}"

    schemas: dict[int, str] = {}

    def tokens(visit: Visit) -> tuple[Token, ...]:
        value = visit.value
        if visit.kind == "static":
            return "static", _token(value.value, value.json)
        if visit.kind == "container":
            return "container", class_text(value.type), *_nest_tokens(value.aux, reference)
        if not visit.first or isinstance(value, NodeRef | VariableRef):
            return "alias", first.get(value.index, value.index)
        if isinstance(value, VariableDef):
            schema = schemas.get(id(value.schema)) or schemas.setdefault(id(value.schema), canonical_json(value.schema))
            return "variable", class_text(value.type), schema, canonical_json(value.metadata)
        impl = own_impl(value.type)
        counts = value.metadata if impl is None else impl.compared(value)
        return "node", class_text(value.type), *_nest_tokens(counts, reference)

    return [
        Place(-1 if visit.parent is None else numbers[id(visit.parent)], visit.step, tokens(visit)) for visit in visits
    ]


def _paths(places: list[Place]) -> list[KeyPath]:
    """Return the path of each place."""
    paths: list[KeyPath] = []
    for place in places:
        paths.append((*paths[place.parent], place.step) if place.parent >= 0 else ())
    return paths


def _by_path(places: list[Place]) -> dict[KeyPath, tuple[Any, ...]]:
    """Return the tokens at each path; an alias becomes the path it leads to."""
    paths = _paths(places)
    return {
        path: ("alias", paths[place.tokens[1]])
        if place.tokens[0] == "alias" and type(place.tokens[1]) is int and place.tokens[1] < len(paths)
        else place.tokens
        for path, place in zip(paths, places, strict=True)
    }


# -- recording live objects --------------------------------------------------------------------------------------------


class Recording(NamedTuple, Generic[M]):
    """A graph definition with the live objects it was made from.

    Attributes:
        graphdef: The structure.
        leaves: The first visit of each Variable, in definition order; their paths are `graphdef.leaf_paths`.
        objects: Live nodes and Variables by index.
    """

    graphdef: GraphDef[M]
    leaves: list[Visit]
    objects: dict[int, Any]


def record(root: M, numbers: RefMap[int] | None = None) -> Recording[M]:
    """Walk a graph and record its structure and live objects.

    Args:
        root: A node, a Variable or a container of them.
        numbers: Numbers given before; objects in it become references, new objects are added.

    Raises:
        ArgumentError: `root` cannot be the root of a graph.
        GraphError: The graph cannot be walked.
    """
    check_root(root)
    numbers = RefMap() if numbers is None else numbers
    visits = list(walk(root, indices=numbers))
    objects = {v.index: v.value for v in visits if v.first and v.index is not None}
    term, definitions, by_reference = _make_definitions(visits, root, numbers, objects)
    leaves = [visit for visit in visits if visit.kind == "variable" and visit.first]
    paths: dict[KeyPath, Any] = {visit.path: visit.index for visit in leaves}
    foreign = {v.index: v.path for v in visits if not (v.first or v.index is None or v.index in definitions)}
    graphdef: GraphDef[M] = GraphDef(term, definitions, paths, by_reference, foreign)
    return Recording(graphdef, leaves, objects)


def _make_definitions(
    visits: list[Visit], root: Any, numbers: RefMap[int], objects: dict[int, Any]
) -> tuple[Term, dict[int, Definition], dict[int, Any]]:
    """Turn visits into records, from last to first, so that children are ready before their parent.

    Returns:
        The root, the definitions in definition order, and the by-reference nodes.
    """
    definitions: list[tuple[int, Definition]] = []
    by_reference: dict[int, Any] = {}
    reference = _reference_to(numbers, definitions, objects)
    term: Term = StaticDef(root)
    for visit in reversed(visits):
        value, index, kind = visit.value, visit.index or 0, visit.kind
        cls = class_of(value)
        if kind == "variable":
            term = VariableRef(cls, index)
            if visit.first:
                definitions.append((index, VariableDef(cls, index, value.schema, value.full_metadata)))
        elif kind == "container":
            term = ContainerDef(cls, tuple([step for step, _ in visit.children]), _children(visit), visit.aux)
        else:
            term = NodeRef(cls, index)
            impl = visit.impl
            if impl is not None:
                node_metadata = impl.metadata_of(value)
                metadata = impl.map_refs(node_metadata, reference)
                attributes = tuple(zip([step for step, _ in visit.children], _children(visit), strict=True))
                definitions.append((index, NodeDef(cls, index, attributes, metadata, metadata is not node_metadata)))
                if impl.by_reference:
                    by_reference[index] = value
        parent = visit.parent
        if parent is not None:
            if parent.parts is None:
                parent.parts = {}
            parent.parts[visit.step] = term
    definitions.sort(key=lambda pair: pair[0])
    return term, dict(definitions), by_reference


def _children(visit: Visit) -> tuple[Term, ...]:
    """Return the terms of the children of a visit; children that were not visited are statics."""
    parts: dict[Any, Term] = visit.parts or {}
    return tuple([parts.get(step) or _static(child) for step, child in visit.children])


def _static(child: Any) -> StaticDef:
    """Record a static; a data model with its present JSON, since it may be changed in place."""
    if isinstance(child, BaseModel):
        try:
            return StaticDef(child, frozen(child))
        except errors.DataError:  # a model that cannot be frozen is compared by identity
            return StaticDef(child)
    return StaticDef(child)


def _reference_to(
    numbers: RefMap[int], definitions: list[tuple[int, Definition]], objects: dict[int, Any]
) -> Callable[[Any], Any]:
    """Return a function that replaces the graph's nodes and Variables by references, and defines tokens it meets."""
    entries = numbers.entries

    def reference(x: Any) -> Any:
        entry = entries.get(id(x))
        if entry is None and (impl := own_impl(class_of(x))) is not None and impl.is_token:
            index = len(entries)
            entry = entries[id(x)] = (x, index)
            objects[index] = x
            definitions.append((index, NodeDef(class_of(x), index, (), impl.metadata_of(x))))
        if entry is None or entry[0] is not x:
            return x
        return (VariableRef if isinstance(x, Variable) else NodeRef)(class_of(x), entry[1])

    return reference

"""GraphDef: the structure of a program without its values. Frozen and comparable."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from synmod.errors import GraphError
from synmod.leaves.names import KeyPath
from synmod.tree.graphs.canonical import REMEDY, Canonical, Opaque, Place, describe, sorted_by_key
from synmod.tree.graphs.codec import codec
from synmod.tree.graphs.def_reader import DefReader
from synmod.tree.graphs.defs import NodeDef, VariableDef
from synmod.tree.graphs.drawing import drawn
from synmod.tree.graphs.graph_diff import differing
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json
    from synmod.tree.functional.call import PureCall
    from synmod.tree.graphs.defs import Definition, Term
    from synmod.tree.graphs.mark import Mark
    from synmod.tree.states.layout import StateLike

M = TypeVar("M")


class GraphDef(Generic[M]):
    """Nodes, statics, references by index, and types, schemas and metadata of Variables. No values.

    Made by `split` and `graphdef`. Equal if the structure is equal, whatever the values and the order of assignment.

    Attributes:
        root: What stands at the root.
        definitions: Nodes and Variables by index, in definition order.
        kept: By index, the nodes that copies keep as they are, and what is below those.
        foreign: Indices of another split that references lead to, each with a path where one stands.
        mark: What the update context that made it has written on it, None outside of those.

    Example:
        >>> from synmod.tree import Param, graphdef
        >>> graphdef({"a": Param("x")}) == graphdef({"a": Param("y")})
        True

    Source: Flax NNX `GraphDef`; differs: flat, so depth is no limit, and comparable across processes.
    """

    __slots__ = (
        "__weakref__",
        "_hash",
        "_leaf_paths",
        "_places",
        "definitions",
        "foreign",
        "kept",
        "mark",
        "root",
    )

    def __init__(
        self,
        root: Term,
        definitions: Mapping[int, Definition],
        kept: Mapping[int, Any] | None = None,
        foreign: Mapping[int, KeyPath] | None = None,
        mark: Mark | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "root", root)
        put(self, "definitions", definitions)
        put(self, "kept", kept or {})
        put(self, "foreign", foreign or {})
        put(self, "mark", mark)
        put(self, "_leaf_paths", None)
        put(self, "_places", None)
        put(self, "_hash", None)

    root: Term
    definitions: Mapping[int, Definition]
    kept: Mapping[int, Any]
    foreign: Mapping[int, KeyPath]
    mark: Mark | None
    _leaf_paths: Mapping[KeyPath, int] | None
    _places: list[Place] | None
    _hash: int | None

    @property
    def nodes(self) -> tuple[NodeDef, ...]:
        """The nodes, in definition order."""
        return tuple(each for each in self.definitions.values() if isinstance(each, NodeDef))

    @property
    def variables(self) -> tuple[VariableDef, ...]:
        """The Variables, in definition order."""
        return tuple(each for each in self.definitions.values() if isinstance(each, VariableDef))

    @property
    def leaf_paths(self) -> Mapping[KeyPath, int]:
        """The index of each Variable by its canonical path, in definition order."""
        if self._leaf_paths is None:
            visits = walk(self.root, reader=DefReader(self.definitions))
            paths = {v.path: v.value.index for v in visits if v.first and isinstance(v.value, VariableDef)}
            object.__setattr__(self, "_leaf_paths", paths)
        assert self._leaf_paths is not None
        return self._leaf_paths

    def apply(self, *states: StateLike) -> PureCall[M]:
        """Give the proxy of `sm.call`: `out, (graphdef, state) = await graphdef.apply(state).encode(x)`.

        Args:
            *states: One or more States, or their JSON.
        """
        from synmod.tree.functional.call import call  # it stands above this file, since it merges

        return call((self, *states))

    @property
    def index_mapping(self) -> Mapping[int, int] | None:
        """Of a graph made inside an update context: the index outside of each index that has one; else None."""
        return self.mark.indices if self.mark is not None and self.mark.inside else None

    def marked(self, mark: Mark) -> GraphDef[M]:
        """Give the same structure with the mark of an update context; equality does not look at it."""
        marked: GraphDef[M] = GraphDef(self.root, self.definitions, self.kept, self.foreign, mark)
        object.__setattr__(marked, "_leaf_paths", self._leaf_paths)
        object.__setattr__(marked, "_places", self._places)
        return marked

    def _know_leaf_paths(self, paths: list[KeyPath]) -> None:
        """Take the canonical paths from whoever has them, in definition order, instead of walking for them."""
        indices = [index for index, each in self.definitions.items() if isinstance(each, VariableDef)]
        object.__setattr__(self, "_leaf_paths", dict(zip(paths, indices, strict=True)))

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the structure: equal for equal graphs, in every process.

        Raises:
            GraphError: A static cannot be encoded; names every path, the type and the remedies.
        """
        opaque: list[Opaque] = []
        digest = self._digest(lambda each: opaque.append(each) or "")
        if opaque:
            raise GraphError("\n".join([f"{describe(each)}." for each in opaque] + [REMEDY]))
        return digest

    def fingerprint_with(self, tell: Callable[[Any], str]) -> str:
        """Give a fingerprint in any case, for what outlives neither the code nor the place where it is used.

        Args:
            tell: Gives a text for each static that has none of its own, such as a function that is not registered.
        """
        return self._digest(lambda each: f"opaque {tell(each.value)}")

    def _digest(self, text: Callable[[Opaque], str]) -> str:
        """SHA-256 (hex) of the places; `text` tells what has no text."""
        digest = hashlib.sha256()
        for place in self._canonical():
            for token in (*place.tokens, place.keys):
                digest.update((text(token) if isinstance(token, Opaque) else repr(token)).encode())
        return digest.hexdigest()

    def diff(self, other: GraphDef[Any]) -> tuple[KeyPath, ...]:
        """List the paths at which two structures differ, in definition order; of an added or removed part its top."""
        return differing(self, other)

    def to_json(self) -> dict[str, Json]:
        """Give one object of the keys `graph`, `data_models`, `language_models`.

        Raises:
            GraphError: Something cannot be written; lists every offender with its path and the remedy.
        """
        return codec("encode")(self)

    @classmethod
    def from_json(
        cls, json: Json, *, language_models: Any = None, custom_objects: Mapping[str, Any] | None = None
    ) -> GraphDef[Any]:
        """Read what `to_json` gave, under the rules of loading.

        Args:
            json: The object of three keys.
            language_models: Live models or model strings by saved name, or one for all.
            custom_objects: Classes and functions by id, for this call.

        Raises:
            LoadError: It cannot be read.
        """
        return codec("decode")(json, language_models=language_models, custom_objects=custom_objects)

    def _canonical(self) -> list[Place]:
        if self._places is None:
            object.__setattr__(self, "_places", Canonical(self.definitions, sorted_by_key).places(self.root))
        assert self._places is not None
        return self._places

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphDef):
            return NotImplemented
        if self is other:
            return True
        mine, theirs = self._canonical(), other._canonical()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return len(mine) == len(theirs) and all(a[1:] == b[1:] for a, b in zip(mine, theirs, strict=True))

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(tuple(place[1:] for place in self._canonical())))
        assert self._hash is not None
        return self._hash

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A GraphDef is frozen: {name!r} cannot be set. Change the program and ask anew.")

    def __copy__(self) -> GraphDef[M]:
        return self

    def __deepcopy__(self, memo: object) -> GraphDef[M]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphDef, (self.root, dict(self.definitions), dict(self.kept), dict(self.foreign), self.mark)

    def __repr__(self) -> str:
        return drawn(self.root, self.definitions)

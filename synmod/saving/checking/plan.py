"""What the check stage hands to the make stage: a document whose every claim has been looked at, and nothing made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data import Schema
    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.lm import LanguageModel
    from synmod.saving.checking.resolver import Resolver
    from synmod.tree import NodeImpl

__all__ = ["NO_VALUE", "ModelEntry", "NodeEntry", "Plan", "VariableEntry"]

NO_VALUE: Final[Any] = object()
"""The value of a Variable that the document does not tell."""


@dataclass(slots=True, eq=False)
class NodeEntry:
    """A node of the document.

    Attributes:
        index: Its place in `nodes`.
        cls: Its class.
        impl: The rules of its class.
        record: Its record.
        needs: Indices of the nodes that its constructor must be given.
        constants: Indices of the nodes that its flow has as constants.
        given: Indices of the Variables among arguments and constants.
        namespaces: Indices of the Namespaces that its skips are put into, each with its place in the document.
    """

    index: int
    cls: type[Any]
    impl: NodeImpl
    record: dict[str, Json]
    needs: tuple[int, ...] = ()
    constants: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    namespaces: tuple[tuple[int, tuple[str | int, ...]], ...] = ()

    def pairs(self) -> list[tuple[str | int, dict[str, Json]]]:
        """The children: keys and terms, in definition order."""
        if self.impl.is_module:
            return list(self.record["attributes"].items())
        return [(key, term) for key, term in self.record["children"]]

    def live_pairs(self) -> list[tuple[str | int, dict[str, Json]]]:
        """The children under the keys that the object will have: a Sequential holds its members at int steps."""
        if self.impl.is_module:
            return [(int(key) if key.isdecimal() else key, term) for key, term in self.record["attributes"].items()]
        return self.pairs()


@dataclass(slots=True, eq=False)
class VariableEntry:
    """A Variable of the document: its class, its schema, what it says of itself, and its frozen value."""

    cls: type[Any]
    schema: Schema
    about: FrozenDict
    value: Json = NO_VALUE


@dataclass(slots=True, eq=False)
class ModelEntry:
    """A data model of the document: the class if its id is known here, else the id alone and the schema."""

    public_id: str | None
    cls: type[Any] | None
    schema: Schema


@dataclass(slots=True, eq=False)
class Plan:
    """A checked document.

    Attributes:
        root: The root term.
        unsure: Whether paths lead through a container type that only tells its steps when it is made.
        supplied: The caller's language models by saved name.
        paths: Index of each Variable that has a value in the state, by path.
        places: Where each node that has a path stands, as a link.
    """

    root: Json
    nodes: list[NodeEntry]
    variables: list[VariableEntry]
    data_models: list[ModelEntry]
    language_models: dict[str, dict[str, Json]]
    supplied: dict[str, LanguageModel]
    resolver: Resolver
    paths: dict[str, int]
    places: Mapping[int, Any]
    unsure: bool = False

    def data_model(self, index: int) -> ModelEntry:
        """The data model of an index."""
        return self.data_models[index]

    def node(self, index: int) -> NodeEntry:
        """The node of an index."""
        return self.nodes[index]

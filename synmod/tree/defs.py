"""What a graph definition is made of: definitions, references by index, containers and statics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data.schema import Schema
    from synmod.leaves.frozen import FrozenDict
    from synmod.tree.variable import Variable


@dataclass(frozen=True, slots=True)
class NodeRef:
    """Stands for a node."""

    type: type
    index: int


@dataclass(frozen=True, slots=True)
class VariableRef:
    """Stands for a Variable."""

    type: type
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class StaticDef:
    """Something that is neither node, Variable nor container; kept by reference."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class ContainerDef:
    """A container: its class, steps and children, and what else makes it up (`aux`, such as the length of a deque)."""

    type: type
    steps: tuple[Any, ...]
    children: tuple[Term, ...]
    aux: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class NodeDef:
    """A node: its class, identity number, children by key in definition order, and metadata.

    In the metadata, references stand for the nodes and Variables of the graph.
    """

    type: type
    index: int
    attributes: tuple[tuple[str | int, Term], ...]
    metadata: Any = None


class VariableDef(NamedTuple):
    """A Variable without its value; a tuple, because a split makes one for each Variable, and tuples are cheap.

    `metadata` holds `trainable`, `name`, `description` and what is free; `extra` what a subclass keeps on its
    instances, which like every static is passed on by reference.
    """

    type: type[Variable]
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  (nobody looks for items in a definition)
    schema: Schema
    metadata: FrozenDict
    extra: Mapping[str, Any] | None = None


Term: TypeAlias = NodeRef | VariableRef | ContainerDef | StaticDef
Definition: TypeAlias = NodeDef | VariableDef

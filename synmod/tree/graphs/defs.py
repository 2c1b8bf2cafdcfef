"""What a graph definition is made of: definitions, references by index, containers and statics.

Frozen, and written out by hand: a split makes one or two of these for everything there is, and a frozen dataclass takes
twice the time to make.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data import Schema
    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree.variable.variable import Variable


class _Frozen:
    """A record whose fields stand in its slots, in the order of its constructor."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A {type(self).__name__} is frozen: {name!r} cannot be set.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A {type(self).__name__} is frozen: {name!r} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in _fields(self))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r:.80}" for name in _fields(self))
        return f"{type(self).__name__}({inside})"


def _fields(record: _Frozen) -> tuple[str, ...]:
    return tuple(name for cls in reversed(type(record).__mro__) for name in vars(cls).get("__slots__", ()))


class Reference(_Frozen):
    """Stands for something by its class and identity number."""

    __slots__ = ("type", "index")  # noqa: RUF023  (the order of the constructor)
    type: type
    index: int

    def __init__(self, type: builtins.type[Any], index: int) -> None:  # noqa: A002  (the name of the field)
        _put_ref_type(self, type)
        _put_ref_index(self, index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        same_kind = builtins.type(self) is builtins.type(other)
        return same_kind and self.index == other.index and self.type is other.type

    def __hash__(self) -> int:
        return hash((self.type, self.index))


class NodeRef(Reference):
    """Stands for a node."""

    __slots__ = ()


class VariableRef(Reference):
    """Stands for a Variable."""

    __slots__ = ()


class StaticDef(_Frozen):
    """Something that is neither node, Variable nor container; kept by reference."""

    __slots__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        _put_value(self, value)


class DataDef(StaticDef):
    """A data model, which may be changed in place: `json` is what it was when it was recorded."""

    __slots__ = ("json",)
    json: Json

    def __init__(self, value: Any, json: Json) -> None:
        super().__init__(value)
        _put_json(self, json)


class ContainerDef(_Frozen):
    """A container: its class, steps and children, and what else makes it up (`aux`, such as the length of a deque)."""

    __slots__ = ("type", "steps", "children", "aux")  # noqa: RUF023  (likewise)
    type: type
    steps: tuple[Any, ...]
    children: tuple[Term, ...]
    aux: Any

    def __init__(
        self,
        type: builtins.type[Any],  # noqa: A002  (likewise)
        steps: tuple[Any, ...],
        children: tuple[Term, ...],
        aux: Any = None,
    ) -> None:
        _put_container_type(self, type)
        _put_steps(self, steps)
        _put_children(self, children)
        _put_aux(self, aux)


class NodeDef(_Frozen):
    """A node: its class, identity number, children by key in definition order, and metadata.

    In the metadata, references stand for the nodes and Variables of the graph.
    """

    __slots__ = ("type", "index", "attributes", "metadata")  # noqa: RUF023  (likewise)
    type: type
    index: int
    attributes: tuple[tuple[str | int, Term], ...]
    metadata: Any

    def __init__(
        self,
        type: builtins.type[Any],  # noqa: A002  (likewise)
        index: int,
        attributes: tuple[tuple[str | int, Term], ...],
        metadata: Any = None,
    ) -> None:
        _put_node_type(self, type)
        _put_node_index(self, index)
        _put_attributes(self, attributes)
        _put_metadata(self, metadata)

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The constructor arguments of a module, with references in them; None of another node."""
        return getattr(self.metadata, "arguments", None)

    @property
    def build_config(self) -> Mapping[str, Any] | None:
        """What a module was built on, by parameter; None of one that is unbuilt, and of another node."""
        return getattr(self.metadata, "build_config", None)


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


def _setter(cls: type[_Frozen], field: str) -> Any:
    """Give what fills a slot of a record that nobody else can set."""
    return vars(cls)[field].__set__


_put_ref_type, _put_ref_index = _setter(Reference, "type"), _setter(Reference, "index")
_put_value, _put_json = _setter(StaticDef, "value"), _setter(DataDef, "json")
_put_container_type, _put_steps = _setter(ContainerDef, "type"), _setter(ContainerDef, "steps")
_put_children, _put_aux = _setter(ContainerDef, "children"), _setter(ContainerDef, "aux")
_put_node_type, _put_node_index = _setter(NodeDef, "type"), _setter(NodeDef, "index")
_put_attributes, _put_metadata = _setter(NodeDef, "attributes"), _setter(NodeDef, "metadata")

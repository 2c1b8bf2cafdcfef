"""The door of a functional program: which argument goes to which Input, and whether it may come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, admit, is_subschema, label_of
from synmod.errors import CallError, SchemaError
from synmod.flow import aligned, is_leaf, kind_of, leaves, map_leaves
from synmod.leaves.names import did_you_mean
from synmod.module import where
from synmod.program.keys import Keys

if TYPE_CHECKING:
    from synmod.flow import Declared, FlowGraph
    from synmod.module import Module


class Door:
    """The inputs of one graph: their structure, their names, what each declares. Made once for a graph."""

    __slots__ = ("declared", "names", "structure", "takes_none")

    def __init__(self, flow: FlowGraph) -> None:
        self.structure: Any = flow.inputs
        self.declared: list[Declared] = [flow.symbols[ref.index] for ref in leaves(flow.inputs)]
        keys = Keys()
        self.names: list[str] = [keys.give(str(declared.name)) for declared in self.declared]
        self.takes_none = all(declared.optional for declared in self.declared)

    def values(self, module: Module, args: Sequence[Any], named: Mapping[str, Any], *, entry: bool) -> list[Any]:
        """Give the value or symbol for each Input, in order, each held to what its Input declares.

        Args:
            module: The program, for messages.
            args: Positional arguments, converted.
            named: Keyword arguments.
            entry: Whether this is an entry call, which must give every Input that is not optional.

        Raises:
            CallError: Another structure; too many, too few, unknown names; None where an entry call must give data.
            SchemaError: A value or symbol does not fit its Input.
        """
        given = self._by_name(module, named, args) if named else self._by_place(module, args)
        return [
            self._admitted(module, index, name, value, entry=entry)
            for index, (name, value) in enumerate(zip(self.names, given, strict=True))
        ]

    def _by_place(self, module: Module, args: Sequence[Any]) -> list[Any]:
        """Match one argument of the structure of the inputs, or one argument for each input of a list."""
        if len(args) == 1:
            pairs = aligned(self.structure, args[0])
            if pairs is not None:
                return [value for _, _, value in pairs]
            if args[0] is None:
                return [None] * len(self.names)
        if kind_of(self.structure) == 1 and args and len(args) <= len(self.structure):
            filled = [*args, *([None] * (len(self.structure) - len(args)))]
            pairs = aligned(list(self.structure), filled)
            if pairs is not None and all(declared.optional for declared in self.declared[len(args) :]):
                return [value for _, _, value in pairs]
        raise CallError(
            f"{where(module)}: got {_given(args)}; it takes {self._shape()}, as one argument"
            f"{', one argument each' if len(self.names) > 1 else ''} or by keyword ({', '.join(self.names)})."
        )

    def _by_name(self, module: Module, named: Mapping[str, Any], args: Sequence[Any]) -> list[Any]:
        """Match keywords to the names of the Inputs."""
        if args:
            raise CallError(
                f"{where(module)}: got {_given(args)} and the keywords {', '.join(named)}; give all inputs by keyword "
                f"({', '.join(self.names)}), or none."
            )
        unknown = [name for name in named if name not in self.names]
        missing = [
            name
            for name, declared in zip(self.names, self.declared, strict=True)
            if name not in named and not declared.optional
        ]
        if unknown or missing:
            faults = [f"unknown keyword {name!r}.{did_you_mean(name, self.names)}" for name in unknown]
            faults += [f"missing keyword {name!r}." for name in missing]
            raise CallError(
                f"{where(module)}: {' '.join(faults)} Got {', '.join(named)}; its inputs are {', '.join(self.names)}."
            )
        return [named.get(name) for name in self.names]

    def _admitted(self, module: Module, index: int, name: str, value: Any, *, entry: bool) -> Any:
        """Hold one value or symbol to its Input."""
        declared = self.declared[index]
        if type(value) is JsonDataModel:
            model = declared.data_model
            known = model is None or (value._model is not None and issubclass(value._model, model))
            if value._schema is declared.schema and known:
                return value
            return admit(value, declared.schema, model, f"{where(module)}: input {name!r}")
        if value is None:
            if entry and not declared.optional:
                raise CallError(
                    f"{where(module)}: got None for the input {name!r}, which is not optional; give "
                    f"{_wanted(declared)}, or declare sm.Input(..., optional=True)."
                )
            return None
        if isinstance(value, SymbolicDataModel):
            if value._schema is declared.schema or is_subschema(value._schema, declared.schema):
                return value
            raise SchemaError(
                f"{where(module)}: input {name!r}: the symbol {value._label!r} with the fields "
                f"({', '.join(value.keys())}) does not fit {_wanted(declared)}: not every value of it would be valid."
            )
        if isinstance(value, DataModel):
            return admit(value, declared.schema, declared.data_model, f"{where(module)}: input {name!r}")
        raise CallError(
            f"{where(module)}: input {name!r} is {type(value).__name__}, which is no data; give {_wanted(declared)}."
        )

    def _shape(self) -> str:
        """Write the structure of the inputs with their names."""
        names = iter(self.names)
        return str(map_leaves(lambda _: _Word(next(names)), self.structure))


class _Word(str):
    """A name that shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _given(args: Sequence[Any]) -> str:
    """Write what positional arguments there were."""
    if not args:
        return "no argument"
    shown = ", ".join(_shown(arg) for arg in args)
    return f"{len(args)} argument{'s' if len(args) > 1 else ''}: {shown}"


def _shown(nest: Any) -> str:
    """Write a nest with the labels of its leaves."""

    def word(leaf: Any) -> Any:
        if not isinstance(leaf, JsonDataModel | SymbolicDataModel):
            return _Word(type(leaf).__name__ if leaf is not None else "None")
        return _Word(leaf._label or label_of(leaf._schema))

    return str(word(nest) if is_leaf(nest) else map_leaves(word, nest))[:200]


def _wanted(declared: Declared) -> str:
    """Write what an Input wants."""
    if declared.data_model is not None:
        return f"{declared.data_model.__name__}(...)"
    return f"data with the fields ({', '.join(declared.schema.get('properties', {}))})"

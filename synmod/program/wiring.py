"""Inputs, and what a program derives from its graph: the check of arguments, the plan, the live symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, declare, is_subschema, model_of, symbol, value_from
from synmod.errors import ArgumentError, CallError, SchemaError
from synmod.flow import Declared, FlowGraph, Origin, Plan, Step, compile_flow, live_graph
from synmod.leaves import SEQUENCE, align_nests, checks_keywords, did_you_mean, kind_of, leaves, pack, unique_name
from synmod.module import ChildAt, Execution, Module, Unquoted, shape, where
from synmod.skip.wiring import steps_before

if TYPE_CHECKING:
    from .program import Program

# -- inputs ------------------------------------------------------------------------------------------------------------


@checks_keywords
def Input(  # noqa: N802  # read as a noun, as in Keras
    data_model: Any = None, schema: Any = None, name: str | None = None, optional: bool = False
) -> SymbolicDataModel:
    """Make a symbol that starts a graph.

    Args:
        data_model: A data-model class, an instance, a value, a symbol, or a JSON Schema; exactly one of this and
            `schema`.
        schema: A JSON Schema.
        name: Label, and the keyword of this input in calls of the program; default is the title in snake case.
        optional: Whether an entry call may pass None for it.

    Returns:
        A new symbol, even where a symbol is given.

    Raises:
        ArgumentError: Neither `data_model` nor `schema`, or both; or something that does not declare data.
        SchemaError: The schema is bad, or its root is not an object.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.Input(Query).keys()
        ('question',)

    Source: Keras `Input`.
    """
    if (data_model is None) == (schema is None):
        fault = "neither" if data_model is None else "both"
        label = f" A name goes by keyword: name={schema!r:.50}." if isinstance(schema, str) else ""
        raise ArgumentError(
            f"Input got {fault} of data_model and schema; pass exactly one: sm.Input(data_model=Query).{label}"
        )
    source = schema if data_model is None else data_model
    label = name or (source._label if isinstance(source, SymbolicDataModel) else None)
    start = symbol(declare(source), model_of(source), label)
    start._origin = Origin(None, optional=optional)
    return start


class Inputs:
    """The Inputs of one graph: their structure, their names, what each declares."""

    __slots__ = ("declared", "names", "structure", "takes_none")

    def __init__(self, flow: FlowGraph) -> None:
        self.structure: Any = flow.inputs
        self.declared: list[Declared] = [flow.symbols[ref.index] for ref in leaves(flow.inputs)]
        self.names: list[str] = []
        for declared in self.declared:
            self.names.append(unique_name(str(declared.name), self.names))
        self.takes_none = all(declared.optional for declared in self.declared)

    def values(self, module: Module, args: Sequence[Any], keywords: Mapping[str, Any], *, entry: bool) -> list[Any]:
        """Return the value or symbol for each Input, in order, after checking it against what the Input declares.

        Args:
            module: The program, for messages.
            args: Positional arguments, converted.
            keywords: Keyword arguments.
            entry: Whether this is an entry call, which must give every Input that is not optional.

        Raises:
            CallError: The arguments do not match the Inputs in structure, number or names; or an entry call passes None
                for an Input that is not optional.
            SchemaError: A value or symbol does not fit its Input.
        """
        arguments = self._by_name(module, keywords, args) if keywords else self._by_place(module, args)
        return [
            self._check_value(module, name, declared, value, entry=entry)
            for name, declared, value in zip(self.names, self.declared, arguments, strict=True)
        ]

    def _by_place(self, module: Module, args: Sequence[Any]) -> list[Any]:
        """Return the positional values: one with the structure of the Inputs, or one per Input of a list."""
        if len(args) == 1:
            pairs = align_nests(self.structure, args[0])
            if pairs is not None:
                return [value for _, _, value in pairs]
            if args[0] is None:
                return [None] * len(self.names)
        if kind_of(self.structure) == SEQUENCE and args and len(args) <= len(self.structure):
            left = len(self.structure) - len(args)
            pairs = align_nests(list(self.structure), [*args, *[None] * left])
            if pairs is not None and all(declared.optional for declared in self.declared[len(args) :]):
                return [value for _, _, value in pairs]
        inputs = pack(self.structure, map(Unquoted, self.names))
        raise CallError(
            f"{where(module)}: got {_count_text(args)}; it takes {inputs}, as one "
            f"argument{', one argument each' if len(self.names) > 1 else ''} or by keyword ({', '.join(self.names)})."
        )

    def _by_name(self, module: Module, keywords: Mapping[str, Any], args: Sequence[Any]) -> list[Any]:
        """Return the values of keyword arguments, in the order of the Inputs."""
        needed = [name for name, declared in zip(self.names, self.declared, strict=True) if not declared.optional]
        faults = [f"unknown keyword {name!r}.{self._hint(name)}" for name in keywords if name not in self.names]
        faults += [f"missing keyword {name!r}." for name in needed if name not in keywords and not args]
        faults += [f"{_count_text(args)}; pass all inputs by keyword, or none."] if args else []
        if faults:
            names = f"Got {', '.join(keywords)}; its inputs are {', '.join(self.names)}"
            raise CallError(f"{where(module)}: {' '.join(faults)} {names}.")
        return [keywords.get(name) for name in self.names]

    def _hint(self, word: str) -> str:
        """Return a suggestion for an unknown keyword: a similar input, or the input with such a field."""
        for name, declared in zip(self.names, self.declared, strict=True):
            if word in declared.schema.get("properties", {}):
                return f" Fields go in one data model: {name}={declared.schema.get('title', 'Query')}({word}=...)."
        return did_you_mean(word, [*self.names, "training"])

    def _check_value(self, module: Module, name: str, declared: Declared, value: Any, *, entry: bool) -> Any:
        """Return a value or symbol after checking it against its Input."""
        schema, model = declared.schema, declared.data_model
        same = type(value) is JsonDataModel and value._schema is schema
        if same and (model is None or issubclass(value._model or object, model)):
            return value
        expected = f"{model.__name__}(...)" if model is not None else f"data with the fields ({_fields(schema)})"
        place = f"{where(module)}: input {name!r}"
        if value is None:
            if entry and not declared.optional:
                raise CallError(
                    f"{where(module)}: got None for the input {name!r}, which is not optional; give {expected}, or "
                    "declare sm.Input(..., optional=True)."
                )
            return None
        if isinstance(value, SymbolicDataModel):
            if value._schema is schema or is_subschema(value._schema, schema):
                return value
            raise SchemaError(
                f"{place}: the symbol {value._label!r} with the fields ({', '.join(value.keys())}) does not fit "
                f"{expected}: not every value of it would be valid."
            )
        if not isinstance(value, JsonDataModel | DataModel):
            raise CallError(f"{place} is {type(value).__name__}, which is not data; pass {expected}.")
        return value_from(value, schema, model, place)


def _fields(schema: Mapping[str, Any]) -> str:
    return ", ".join(schema.get("properties", {}))


def _count_text(args: Sequence[Any]) -> str:
    """Return a description of positional arguments."""
    texts = ", ".join(shape(arg)[:200] for arg in args)
    return f"{len(args)} argument{'s' if len(args) > 1 else ''}: {texts}" if args else "no argument"


# -- wiring ------------------------------------------------------------------------------------------------------------


class ProgramWiring:
    """What a program derives from its graph and modules: the Inputs, and on first use the plan and the live symbols.

    The program keeps it beside its attributes and never copies it: a copy of the program derives its own.
    """

    __slots__ = ("_live", "_plan", "flow", "inputs", "version")

    def __init__(self, program: Program[Any], live: tuple[Any, Any, tuple[Step, ...]] | None = None) -> None:
        self.flow = flow_of(program)
        self.version = program._record.version
        self.inputs = Inputs(self.flow)
        self._plan: Plan | None = None
        self._live = live

    def plan(self, program: Program[Any]) -> Plan:
        """Return the graph, compiled to run with the program's present modules."""
        if self._plan is None:
            self._plan = compile_flow(self.flow, program.__dict__, steps_before(program))
        return self._plan

    def live(self, program: Program[Any]) -> tuple[Any, Any, tuple[Step, ...]]:
        """Return inputs, outputs and steps as live objects: the user's own until the program is copied or changed."""
        if self._live is None:
            self._live = live_graph(self.flow, program.__dict__)
        return self._live


def flow_of(program: Program[Any]) -> FlowGraph:
    """Return the graph of a functional program."""
    flow = program._record.flow
    assert flow is not None
    return flow


def output_symbols(program: Program[Any]) -> Any:
    """Return new symbols for the outputs of a functional program."""
    flow = flow_of(program)
    return flow.fresh_symbols(flow.outputs)


def get_wiring(program: Program[Any]) -> ProgramWiring:
    """Return the wiring of a functional program; a new one when its graph or its modules have changed."""
    wiring: ProgramWiring | None = getattr(program, "_wiring", None)
    record = program._record
    if wiring is None or wiring.flow is not record.flow or wiring.version != record.version:
        wiring = ProgramWiring(program)
        object.__setattr__(program, "_wiring", wiring)
    return wiring


def graph_execution(program: Program[Any]) -> Execution:
    """Return how the steps of a functional program depend on each other."""
    flow = flow_of(program)
    makers: dict[int, int] = {}
    for index, step in enumerate(flow.steps):
        for ref in leaves(step.outputs):
            if ref is not None:
                makers[ref.index] = index
    parts = [None if step.node is None else ChildAt((step.node,), program.__dict__[step.node]) for step in flow.steps]
    needs = [sorted({makers[number] for number in step.needs if number in makers}) for step in flow.steps]
    return Execution("graph", tuple(parts), tuple(needs))

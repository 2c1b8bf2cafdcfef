"""The graph of a functional program: its Inputs, which argument goes to which of them, its steps, how they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from synmod.data import (
    DataModel,
    JsonDataModel,
    SymbolicDataModel,
    admit,
    declare,
    is_subschema,
    label_of,
    model_of,
    symbol,
)
from synmod.errors import ArgumentError, BuildError, CallError, ConfigError, SchemaError
from synmod.flow import (
    Declared,
    FlowGraph,
    Origin,
    Plan,
    Step,
    aligned,
    compile_flow,
    copied,
    is_leaf,
    kind_of,
    leaves,
    live_graph,
    map_leaves,
    record_graph,
    steps_between,
)
from synmod.leaves.names import did_you_mean
from synmod.module import Child, Execution, Module, running_own_build, steps_before, verify_wiring, where
from synmod.scope import current_call

if TYPE_CHECKING:
    from .program import Program


class Keys:
    """Hands out names, each once.

    Args:
        is_taken: Whether a name is in use already for another reason.
    """

    __slots__ = ("_given", "_is_taken", "_numbers")

    def __init__(self, is_taken: Callable[[str], bool] = lambda _: False) -> None:
        self._is_taken = is_taken
        self._given: set[str] = set()
        self._numbers: dict[str, int] = {}

    def give(self, name: str) -> str:
        """Return `name`, or the first of `name_1`, `name_2`, ... that is free."""
        number = self._numbers.get(name, 0)
        key = f"{name}_{number}" if number else name
        while key in self._given or self._is_taken(key):
            number += 1
            key = f"{name}_{number}"
        self._numbers[name] = number + 1
        self._given.add(key)
        return key


def Input(  # noqa: N802  # read as a noun, as in Keras
    data_model: Any = None, schema: Any = None, name: str | None = None, optional: bool = False
) -> SymbolicDataModel:
    """Make a symbol that starts a graph.

    Args:
        data_model: A data-model class, an instance, a value, a symbol, or a JSON Schema; exactly one of this and
            `schema`.
        schema: A JSON Schema.
        name: Label, by which the program also takes this input as a keyword; default the snake case of the title.
        optional: Whether an entry call may give None for it.

    Returns:
        A new symbol, also where a symbol is given.

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
        raise ArgumentError(
            f"Input got {fault} of data_model and schema; pass exactly one: sm.Input(data_model=Query)."
        )
    source = schema if data_model is None else data_model
    label = name or (source._label if isinstance(source, SymbolicDataModel) else None)
    made = symbol(declare(source), model_of(source), label)
    made._origin = Origin(None, optional=optional)
    return made


def is_optional(given: SymbolicDataModel) -> bool:
    """Whether an entry call may give None for a symbol."""
    origin: Origin | None = given._origin
    return origin is not None and origin.optional


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
        """Return the value or symbol for each Input, in order, each held to what its Input declares.

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
        """Return the values of one argument of the structure of the inputs, or of one argument per input of a list."""
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
        """Return the values by keywords to the names of the Inputs."""
        if args:
            raise CallError(
                f"{where(module)}: got {_given(args)} and the keywords {', '.join(named)}; pass all inputs by keyword "
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
        """Return one value or symbol that fits its Input."""
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
            f"{where(module)}: input {name!r} is {type(value).__name__}, which is not data; pass {_wanted(declared)}."
        )

    def _shape(self) -> str:
        """Return the structure of the inputs with their names."""
        names = iter(self.names)
        return str(map_leaves(lambda _: _Word(next(names)), self.structure))


class _Word(str):
    """A name that shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _given(args: Sequence[Any]) -> str:
    """Return what positional arguments there were."""
    if not args:
        return "no argument"
    shown = ", ".join(_shown(arg) for arg in args)
    return f"{len(args)} argument{'s' if len(args) > 1 else ''}: {shown}"


def _shown(nest: Any) -> str:
    """Return a nest with the labels of its leaves."""

    def word(leaf: Any) -> Any:
        if not isinstance(leaf, JsonDataModel | SymbolicDataModel):
            return _Word(type(leaf).__name__ if leaf is not None else "None")
        return _Word(leaf._label or label_of(leaf._schema))

    return str(word(nest) if is_leaf(nest) else map_leaves(word, nest))[:200]


def _wanted(declared: Declared) -> str:
    """Return a phrase for what an Input takes."""
    if declared.data_model is not None:
        return f"{declared.data_model.__name__}(...)"
    return f"data with the fields ({', '.join(declared.schema.get('properties', {}))})"


class Wiring:
    """What follows from a program's graph and modules: the door, the plan, the live symbols. Made when asked for.

    Kept by the program beside its attributes, never copied: a copy makes its own from the same graph.
    """

    __slots__ = ("_live", "_plan", "door", "flow", "version")

    def __init__(self, program: Program, live: tuple[Any, Any, tuple[Step, ...]] | None = None) -> None:
        self.flow: FlowGraph = program._record.flow
        self.version = program._record.version
        self.door = Door(self.flow)
        self._plan: Plan | None = None
        self._live = live

    def plan(self, program: Program) -> Plan:
        """The graph, ready to run with the program's present modules."""
        if self._plan is None:
            self._plan = compile_flow(self.flow, program.__dict__, steps_before(program))
        return self._plan

    def live(self, program: Program) -> tuple[Any, Any, tuple[Step, ...]]:
        """Inputs, outputs and steps as live objects: the user's own where the program was composed here."""
        if self._live is None:
            self._live = live_graph(self.flow, program.__dict__)
        return self._live


def wiring_of(program: Program) -> Wiring:
    """The wiring of a functional program; made anew when its graph or its modules have changed."""
    wiring: Wiring | None = getattr(program, "_wiring", None)
    record = program._record
    if wiring is None or wiring.flow is not record.flow or wiring.version != record.version:
        wiring = Wiring(program)
        object.__setattr__(program, "_wiring", wiring)
    return wiring


def take_graph(program: Program, inputs: Any, outputs: Any) -> None:
    """Make `program` a functional one.

    Args:
        program: A program under construction, or in its own `build`.
        inputs: A nest of symbols.
        outputs: A nest of symbols.

    Raises:
        ConfigError: The class defines `call` as well.
        BuildError: The program has a graph already.
        GraphError: The wiring is faulty.
        SkipVerifyError: The skip connections do not match.
    """
    record = program._record
    if record.flow is not None:
        raise BuildError(f"{where(program)} has a graph already; super().__init__(inputs=..., outputs=...) goes once.")
    steps = steps_between(inputs, outputs)
    _refuse_self(program, steps)
    record.flow = record_graph(inputs, outputs, steps, _Children(program).key)
    record.declared = None
    object.__setattr__(program, "_wiring", Wiring(program, (copied(inputs), copied(outputs), steps)))
    if _is_root(program):
        verify_wiring(program)


def graph_execution(program: Program) -> Execution:
    """How the steps of a functional program depend on each other."""
    flow: FlowGraph = program._record.flow
    makers: dict[int, int] = {}
    for index, step in enumerate(flow.steps):
        for ref in leaves(step.gives):
            if ref is not None:
                makers[ref.index] = index
    parts = [None if step.node is None else Child((step.node,), program.__dict__[step.node]) for step in flow.steps]
    needs = [sorted({makers[number] for number in step.needs if number in makers}) for step in flow.steps]
    return Execution("graph", tuple(parts), tuple(needs))


def _is_root(program: Program) -> bool:
    """Whether a program is made for itself, and not by the build of one that stands in another."""
    frame = current_call()
    while frame is not None and frame.owner is program._record:
        frame = frame.parent
    return frame is None or not program._record.constructed


def check_place(program: Program, base: type) -> None:
    """Check that a class of one's own takes its graph in its `build`, and has no `call` beside it.

    Raises:
        ConfigError: It defines `call`.
        BuildError: It is not in its own `build`.
    """
    cls = type(program)
    if getattr(cls, "call", None) is not vars(base)["call"]:
        raise ConfigError(
            f"class {cls.__name__} defines call, and {where(program)} was given a graph: a program runs one or the "
            "other. Leave out call, or the inputs and outputs."
        )
    if cls.__init__ is not base.__init__ and running_own_build(program._record) is None:
        raise BuildError(
            f"{where(program)}: super().__init__(inputs=..., outputs=...) of class {cls.__name__} goes at the end of "
            "its build, once: `async def build(self, inputs): ...`."
        )


class _Children:
    """Holds the modules of steps as attributes of the program, each once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[int, str] = {id(child): name for name, child in _held(program)}
        self._keys = Keys(partial(_is_taken, program))

    def key(self, module: Module) -> str:
        """The name under which the program holds a module; taken in at its first use."""
        known = self._known.get(id(module))
        if known is None:
            known = self._known[id(module)] = self._keys.give(module.name)
            setattr(self._program, known, module)
        return known


def _is_taken(program: Program, name: str) -> bool:
    """Whether a program has an attribute, method or property of that name."""
    return name in program.__dict__ or hasattr(type(program), name)


def _held(program: Program) -> list[tuple[str, Any]]:
    """The modules that a program holds as attributes already, the first name of each last, so that it wins."""
    return [(name, value) for name, value in reversed(list(vars(program).items())) if isinstance(value, Module)]


def _refuse_self(program: Program, steps: tuple[Step, ...]) -> None:
    """Raise for a graph that runs the program itself."""
    if any(step.module is program for step in steps):
        raise BuildError(f"{where(program)} waits for itself: its graph has a step that calls it.")

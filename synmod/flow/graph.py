"""The graph of a program: the steps that symbols remember, how they are found, and their record.

Steps: a symbolic call or operator records one `Step`; each symbol that it returns points to the step, and the step
points to the symbols that it takes. Nothing points the other way: no module, table or list refers to a step, and a step
does not refer to its outputs. So reference counting frees a history with the last symbol that needs it.

Record: immutable and without modules, so that a copy or a file can hold it. Its steps name their modules by the key
under which the program holds them, and symbols by their number in one table: first the inputs, then the outputs of each
step, in step order.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from synmod.data import Schema, SymbolicDataModel, symbol as fresh_symbol
from synmod.errors import DataError, GraphError
from synmod.leaves import NestPath, copy_nest, frozen, is_leaf, leaves, leaves_with_path, map_leaves, pack

# -- the steps that symbols remember ---------------------------------------------------------------------------------

_JSON_SCALARS = (str, int, float, bool, type(None))


class Declared:  # not a dataclass, which would not be a leaf of a nest
    """What is known about a future value: its schema, the class behind it, its label, whether it may be left out."""

    def __init__(self, schema: Schema, data_model: Any = None, name: str | None = None, optional: bool = False) -> None:
        self.schema = schema
        self.data_model = data_model
        self.name = name
        self.optional = optional

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declared) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.schema, self.name, self.optional

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One recorded call of a module, or one recorded operator.

    Attributes:
        module: The module, None for an operator.
        op: Name of the operator in `sm.ops`, None for a module.
        plan: The operator's plan, made when it was recorded.
        args: Positional arguments: nests of symbols, values and None.
        kwargs: Keyword arguments: nests in which symbols are edges and all else is constant.
        outputs: The output's structure with a `Declared` at the place of each symbol.
        side_effects: The values that the call leaves beside its outputs, for rooms above, or None.
    """

    module: Any
    op: str | None
    plan: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: Any
    side_effects: Mapping[Any, Any] | None = None

    @property
    def name(self) -> str:
        """The module's name, or the operator's."""
        return self.op if self.op is not None else self.module.name

    @property
    def inputs(self) -> tuple[SymbolicDataModel, ...]:
        """The symbols this step waits for, left to right, with repeats."""
        return tuple(x for x in leaves([self.args, dict(self.kwargs)]) if isinstance(x, SymbolicDataModel))

    def __repr__(self) -> str:
        return f"Step({self.name}: {', '.join(str(x._label) for x in self.inputs)} -> {leaves(self.outputs)})"


@dataclass(slots=True, eq=False, repr=False)
class Origin:
    """Where a symbol comes from: output number `index`, in the order of leaves, of `step`; an Input has no step."""

    step: Step | None
    index: int = 0
    optional: bool = field(default=False, kw_only=True)


def record_call(
    module: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    outputs: Any,
    side_effects: Mapping[Any, Any] | None = None,
) -> None:
    """Record a symbolic call in the symbols that it returns.

    Args:
        module: The module that was called.
        args: Positional arguments as `call` gets them.
        kwargs: Keyword arguments; symbols in them are edges too, plain JSON is frozen, the rest is kept as it is.
        outputs: A nest of fresh symbols, with None for a missing output.
        side_effects: The values that the call leaves beside its outputs.
    """
    _remember(
        Step(module, None, None, copy_nest(args), _constants(kwargs), map_leaves(_declare_leaf, outputs), side_effects),
        outputs,
    )


def record_operation(
    name: str, plan: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: SymbolicDataModel
) -> None:
    """Record an operation in the symbol that it returns, with the plan that fixes its field names."""
    _remember(Step(None, name, plan, tuple(map(_constant, args)), _constants(kwargs), _declare_leaf(output)), output)


def declare_symbol(symbol: SymbolicDataModel, *, optional: bool = False) -> Declared:
    """Return what a symbol declares, without its history."""
    return Declared(symbol._schema, symbol._model, symbol._label, optional)


def symbol_of(declared: Declared) -> SymbolicDataModel:
    """Return a symbol without history for what was declared."""
    return fresh_symbol(declared.schema, declared.data_model, declared.name)


def _remember(step: Step, outputs: Any) -> None:
    """Point each output symbol to the step; the numbers count all leaves, None included."""
    for index, leaf in enumerate(leaves(outputs)):
        if leaf is not None:
            leaf._origin = Origin(step, index)


def _declare_leaf(leaf: Any) -> Any:
    """Turn an output symbol into what it declares; None stays."""
    return None if leaf is None else declare_symbol(leaf)


def _constants(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Protect keyword arguments from later changes."""
    return MappingProxyType({key: _constant(value) for key, value in kwargs.items()})


def _constant(value: Any) -> Any:
    """Protect one argument from later changes: JSON is frozen, containers with symbols or objects are copied."""
    if is_leaf(value):
        return value
    if all(type(leaf) in _JSON_SCALARS for leaf in leaves(value)):
        with suppress(DataError):  # a tuple, NaN, nested too deeply: kept as any other object is
            return frozen(value)
    return copy_nest(value)


# -- from outputs back to inputs -------------------------------------------------------------------------------------

_STEPS_SHOWN = 12  # steps of a path that an error shows; the middle of a longer one is left out

Key = tuple[int, int]
"""Identity of a symbol: its step and output number, or itself where it has none."""


def key_of(symbol: SymbolicDataModel) -> Key:
    """Return the identity of a symbol; it is valid as long as the symbol lives."""
    origin: Origin | None = symbol._origin
    if origin is None or origin.step is None:
        return id(symbol), -1
    return id(origin.step), origin.index


def step_of(symbol: SymbolicDataModel) -> Step | None:
    """Return the step that made a symbol, None for one that starts a graph."""
    origin: Origin | None = symbol._origin
    return None if origin is None else origin.step


def steps_between(inputs: Any, outputs: Any) -> tuple[Step, ...]:
    """Find the steps that lead from inputs to outputs.

    Args:
        inputs: A nest of symbols, which cut the graph: what made them is left out.
        outputs: A nest of symbols.

    Returns:
        The steps, depth first from the outputs, arguments left to right, producers before consumers.

    Raises:
        GraphError: Lists every fault: an input or output that is not a symbol, the same symbol twice in `inputs`, a
            source that the outputs need but `inputs` lack.

    Example:
        >>> steps_between(x, x + y)  # doctest: +SKIP
        GraphError: the source 'y' is not among the inputs; the path from it: 'y' -> concat -> the output

    Source: Keras functional models; differs: iterative, all faults at once.
    """
    faults = _not_symbols("input", inputs) + _not_symbols("output", outputs)
    cuts: set[Key] = set()
    for symbol in leaves(inputs):
        if isinstance(symbol, SymbolicDataModel):
            if key_of(symbol) in cuts:
                faults.append(f"the symbol {symbol._label!r} is twice in `inputs`: name each Input once.")
            cuts.add(key_of(symbol))
    search = _Search(cuts)
    for path, symbol in leaves_with_path(outputs):
        if isinstance(symbol, SymbolicDataModel):
            search.visit(symbol, "the output" if not path else f"output {_place(path)}")
    faults += search.missing
    if faults:
        heading = "A program cannot be made of these inputs and outputs"
        raise GraphError(f"{heading}: {faults[0]}" if len(faults) == 1 else "\n- ".join([f"{heading}:", *faults]))
    return tuple(search.order)


class _Search:
    """The depth-first search: the steps found in order, and the sources that are missing."""

    def __init__(self, cuts: set[Key]) -> None:
        self.cuts = cuts
        self.order: list[Step] = []
        self.missing: list[str] = []
        self.seen: set[int | Key] = set()
        """The steps, by identity, and the sources."""

    def visit(self, symbol: SymbolicDataModel, goal: str) -> None:
        """Add all steps that `symbol` needs and that are not in `order` yet."""
        open_steps: list[Step] = []
        pending = [iter((symbol,))]
        while pending:
            needed = next(pending[-1], None)
            if needed is None:
                pending.pop()
                self.order += open_steps[-1:]
                del open_steps[-1:]
            elif (step := self._enter(needed, open_steps, goal)) is not None:
                open_steps.append(step)
                pending.append(iter(step.inputs))

    def _enter(self, symbol: SymbolicDataModel, open_steps: list[Step], goal: str) -> Step | None:
        """Return the step behind a symbol if it must still be searched; note a source that `inputs` lack."""
        key, step = key_of(symbol), step_of(symbol)
        mark = key if step is None else id(step)
        if key in self.cuts or mark in self.seen:
            return None
        self.seen.add(mark)
        if step is None:
            self.missing.append(_missing(symbol, [open_step.name for open_step in reversed(open_steps)], goal))
        return step


def _missing(symbol: SymbolicDataModel, path: list[str], goal: str) -> str:
    """Return the fault of a source that is missing in `inputs`, with the path from it to the output."""
    if len(path) > _STEPS_SHOWN:
        left_out = len(path) - _STEPS_SHOWN
        path = [*path[: _STEPS_SHOWN // 2], f"... {left_out} more ...", *path[-_STEPS_SHOWN // 2 :]]
    way = " -> ".join([repr(symbol._label), *path, goal])
    return f"the source {symbol._label!r} is not among the inputs; the path from it: {way}. Add it to `inputs`."


def _not_symbols(kind: str, nest: Any) -> list[str]:
    """Return which leaves are not symbols, and what to write instead."""
    parts = leaves_with_path(nest)
    if not parts:
        return [f"there is no {kind}: pass a symbol or a nest of symbols."]
    return [
        f"{kind}{' ' + _place(path) if path else ''} is {_describe(leaf)}"
        for path, leaf in parts
        if not isinstance(leaf, SymbolicDataModel)
    ]


def _describe(leaf: Any) -> str:
    """Describe a leaf that is not a symbol, with the remedy; a coroutine is closed, since it will not be awaited."""
    if inspect.isawaitable(leaf):
        if inspect.iscoroutine(leaf):
            leaf.close()
        return f"a {type(leaf).__name__}, not a symbol: await the call first, as in `y = await module(x)`."
    if isinstance(leaf, type):
        remedy = f"an input is sm.Input(data_model={leaf.__name__}), an output what a module returns, `await module(x)`"
        return f"the class {leaf.__name__}, not a symbol: {remedy}."
    if leaf is None:
        return "None, not a symbol: is a `return` missing? Otherwise the call there returns nothing."
    if callable(leaf):
        return (
            f"{type(leaf).__name__}, not a symbol: pass what it returns, `y = await module(x)`; modules in a row are "
            "an sm.Sequential([...])."
        )
    return f"{type(leaf).__name__}, not a symbol: start from sm.Input(...) and pass on what modules return."


def _place(path: NestPath) -> str:
    """Return the text of the place of a leaf in a nest."""
    return "/".join(map(str, path))


# -- the record ------------------------------------------------------------------------------------------------------


class SymbolRef:  # not a dataclass, which would not be a leaf of a nest
    """The number of a symbol, where an argument or output refers to one."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolRef) and other.index == self.index

    def __hash__(self) -> int:
        return hash(("symbol", self.index))

    def __repr__(self) -> str:
        return f"#{self.index}"


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One step: which module or operator, on which symbols and constants, giving which symbols.

    Attributes:
        node: Key of the module among the program's children, None for an operator.
        op: Name of the operator in `sm.ops`, None for a module.
        args: Positional arguments: nests of `SymbolRef`, values and None.
        kwargs: Keyword arguments: nests in which a `SymbolRef` is an edge and all else a constant.
        outputs: The structure of the output: `SymbolRef`s, and None for a missing output.
        plan: The operator's plan if it is known; else it is made again from the schemas.
    """

    node: str | None
    op: str | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: Any
    plan: Any = field(default=None, compare=False, repr=False)

    @property
    def needs(self) -> list[int]:
        """Numbers of the symbols among the arguments, left to right, with repeats."""
        return [x.index for x in leaves([self.args, dict(self.kwargs)]) if isinstance(x, SymbolRef)]

    def __reduce__(self) -> tuple[Any, ...]:
        return FlowStep, (self.node, self.op, self.args, dict(self.kwargs), self.outputs)


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The whole graph of a functional program.

    Attributes:
        symbols: The declaration of each symbol, by number.
        inputs: The structure of the inputs, `SymbolRef`s at its leaves.
        outputs: The structure of the outputs, likewise.
        steps: The steps, producers before consumers.
    """

    symbols: tuple[Declared, ...]
    inputs: Any
    outputs: Any
    steps: tuple[FlowStep, ...]

    def fresh_symbols(self, nest: Any) -> Any:
        """Return a nest of references, such as `inputs`, with a fresh symbol for each."""

        def fresh(ref: SymbolRef) -> SymbolicDataModel:
            return symbol_of(self.symbols[ref.index])

        return map_leaves(fresh, nest)

    def map_constants(self, fn: Callable[[Any], Any]) -> FlowGraph:
        """Replace every constant argument `x` by `fn(x)`; return the same graph if nothing changes."""

        def map_leaf(leaf: Any) -> Any:
            return leaf if leaf is None or isinstance(leaf, SymbolRef) else fn(leaf)

        def map_step(step: FlowStep) -> FlowStep:
            arguments = step.args, dict(step.kwargs)
            new = map_leaves(map_leaf, arguments)
            return step if new is arguments else replace(step, args=new[0], kwargs=new[1])

        steps = tuple(map(map_step, self.steps))
        return self if all(map(operator.is_, steps, self.steps)) else replace(self, steps=steps)


def record_graph(inputs: Any, outputs: Any, steps: Sequence[Step], key: Callable[[Any], str]) -> FlowGraph:
    """Turn live symbols and steps into their record.

    Args:
        inputs: The nest of input symbols.
        outputs: The nest of output symbols.
        steps: The steps between them, as `steps_between` returns them.
        key: Returns the key under which the program holds a module.
    """
    symbols: list[Declared] = []
    numbers: dict[Key, int] = {}

    def add(symbol_key: Key, declared: Declared) -> SymbolRef:
        numbers.setdefault(symbol_key, len(symbols))  # an output that an input replaces is not referred to
        symbols.append(declared)
        return SymbolRef(len(symbols) - 1)

    def add_input(symbol: SymbolicDataModel) -> SymbolRef:
        origin: Origin | None = symbol._origin  # its history ends here
        return add(key_of(symbol), declare_symbol(symbol, optional=origin is not None and origin.optional))

    def refer(leaf: Any) -> Any:
        return SymbolRef(numbers[key_of(leaf)]) if isinstance(leaf, SymbolicDataModel) else leaf

    refs_in = map_leaves(add_input, inputs)
    recorded: list[FlowStep] = []
    for step in steps:
        args, kwargs = map_leaves(refer, (step.args, dict(step.kwargs)))
        refs = [declared and add((id(step), index), declared) for index, declared in enumerate(leaves(step.outputs))]
        node = None if step.module is None else key(step.module)
        recorded.append(FlowStep(node, step.op, args, kwargs, pack(step.outputs, iter(refs)), step.plan))
    return FlowGraph(tuple(symbols), refs_in, map_leaves(refer, outputs), tuple(recorded))


# -- symbols and steps from a record ---------------------------------------------------------------------------------


def live_graph(flow: FlowGraph, modules: Mapping[str, Any]) -> tuple[Any, Any, tuple[Step, ...]]:
    """Make fresh symbols and steps from a record, such as that of a copy or a loaded file.

    Args:
        flow: The record.
        modules: The program's modules by the key that steps name.

    Returns:
        The nest of inputs, the nest of outputs, and the steps; the outputs remember the steps.
    """
    symbols: dict[int, SymbolicDataModel] = {}

    def live(leaf: Any) -> Any:
        return symbols[leaf.index] if isinstance(leaf, SymbolRef) else leaf

    def add_symbol(ref: SymbolRef, origin: Origin) -> None:
        symbols[ref.index] = symbol_of(flow.symbols[ref.index])
        symbols[ref.index]._origin = origin

    inputs: list[SymbolRef] = leaves(flow.inputs)
    for ref in inputs:
        add_symbol(ref, Origin(None, optional=flow.symbols[ref.index].optional))
    steps: list[Step] = []
    for record in flow.steps:
        module = None if record.node is None else modules[record.node]
        args, kwargs = map_leaves(live, (record.args, dict(record.kwargs)))
        refs: list[SymbolRef | None] = leaves(record.outputs)
        outputs = pack(record.outputs, iter([ref and flow.symbols[ref.index] for ref in refs]))
        step = Step(module, record.op, record.plan, args, kwargs, outputs)
        for index, ref in enumerate(refs):
            if ref is not None:
                add_symbol(ref, Origin(step, index))
        steps.append(step)
    return map_leaves(live, flow.inputs), map_leaves(live, flow.outputs), tuple(steps)

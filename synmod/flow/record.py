"""The record of a program's graph: immutable, without modules, so that a copy or a file can carry it.

Steps name their modules by the key under which the program holds them, and symbols by a number. What a symbol is, is
in one table: first the inputs, then what each step gives, in step order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synmod.data import SymbolicDataModel, symbol
from synmod.flow.graph import Key, key_of
from synmod.flow.steps import Declared, Origin, Step, declared_of
from synmod.leaves.nests import leaves, map_leaves


class SymbolRef:
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
        gives: The structure of the output: `SymbolRef`s, and None where nothing comes out.
        plan: The operator's plan where it is known; made again from the schemas where it is not.
    """

    node: str | None
    op: str | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    gives: Any
    plan: Any = field(default=None, compare=False, repr=False)

    @property
    def needs(self) -> list[int]:
        """Numbers of the symbols among the arguments, left to right, with repeats."""
        return [x.index for x in leaves([self.args, dict(self.kwargs)]) if isinstance(x, SymbolRef)]

    def __reduce__(self) -> tuple[Any, ...]:
        return FlowStep, (self.node, self.op, self.args, dict(self.kwargs), self.gives)


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The whole graph of a functional program.

    Attributes:
        symbols: What each symbol declares, by number.
        inputs: The structure of the inputs, `SymbolRef`s at its leaves.
        outputs: The structure of the outputs, likewise.
        steps: The steps, producers before consumers.
    """

    symbols: tuple[Declared, ...]
    inputs: Any
    outputs: Any
    steps: tuple[FlowStep, ...]

    def input_model(self, index: int) -> Any:
        """The class that input number `index` declares, in the order of leaves; None where only a schema is known."""
        numbers: list[int] = [ref.index for ref in leaves(self.inputs)]
        return self.symbols[numbers[index]].data_model if index < len(numbers) else None

    def output_symbols(self) -> Any:
        """Fresh symbols for the outputs, by their schemas alone."""

        def fresh(ref: SymbolRef) -> SymbolicDataModel:
            return symbol(self.symbols[ref.index].schema)

        return map_leaves(fresh, self.outputs)

    def map_constants(self, fn: Callable[[Any], Any]) -> FlowGraph:
        """Replace every constant argument `x` by `fn(x)`; the same graph where nothing changes."""

        def changed(leaf: Any) -> Any:
            return leaf if leaf is None or isinstance(leaf, SymbolRef) else fn(leaf)

        steps = tuple(_with_constants(step, changed) for step in self.steps)
        if all(new is old for new, old in zip(steps, self.steps, strict=True)):
            return self
        return FlowGraph(self.symbols, self.inputs, self.outputs, steps)


def record_graph(inputs: Any, outputs: Any, steps: Sequence[Step], key: Callable[[Any], str]) -> FlowGraph:
    """Turn live symbols and steps into their record.

    Args:
        inputs: The nest of input symbols.
        outputs: The nest of output symbols.
        steps: The steps between them, as `steps_between` gives them.
        key: Gives the key under which the program holds a module.
    """
    table = _Table()
    refs_in = map_leaves(table.input, inputs)
    made = [_record_step(step, table, key) for step in steps]
    return FlowGraph(tuple(table.symbols), refs_in, map_leaves(table.reference, outputs), tuple(made))


class _Table:
    """The numbers of symbols while a graph is recorded."""

    def __init__(self) -> None:
        self.symbols: list[Declared] = []
        self.numbers: dict[Key, int] = {}

    def input(self, symbol: SymbolicDataModel) -> SymbolRef:
        """Number an input; it may have a history, which ends here."""
        origin: Origin | None = symbol._origin
        self.numbers[key_of(symbol)] = len(self.symbols)
        return self._add(declared_of(symbol, optional=origin is not None and origin.optional))

    def given(self, step: Step, index: int, declared: Declared) -> SymbolRef:
        """Number an output of a step; one that is cut off by an input takes a number that nobody asks for."""
        self.numbers.setdefault((id(step), index), len(self.symbols))
        return self._add(declared)

    def reference(self, leaf: Any) -> Any:
        """Turn a symbol into its number, and leave everything else."""
        return SymbolRef(self.numbers[key_of(leaf)]) if isinstance(leaf, SymbolicDataModel) else leaf

    def _add(self, declared: Declared) -> SymbolRef:
        self.symbols.append(declared)
        return SymbolRef(len(self.symbols) - 1)


def _record_step(step: Step, table: _Table, key: Callable[[Any], str]) -> FlowStep:
    """Record one step, its arguments before its outputs."""
    args = tuple(map_leaves(table.reference, arg) for arg in step.args)
    kwargs = {name: map_leaves(table.reference, value) for name, value in step.kwargs.items()}
    numbered = iter(enumerate(leaves(step.gives)))

    def given(_: Any) -> Any:
        index, declared = next(numbered)
        return None if declared is None else table.given(step, index, declared)

    node = None if step.module is None else key(step.module)
    return FlowStep(node, step.op, args, kwargs, map_leaves(given, step.gives), step.plan)


def _with_constants(step: FlowStep, changed: Callable[[Any], Any]) -> FlowStep:
    """Map the constants of one step."""
    args = tuple(map_leaves(changed, arg) for arg in step.args)
    kwargs = {name: map_leaves(changed, value) for name, value in step.kwargs.items()}
    same = all(new is old for new, old in zip(args, step.args, strict=True)) and all(
        kwargs[name] is old for name, old in step.kwargs.items()
    )
    return step if same else FlowStep(step.node, step.op, args, kwargs, step.gives, step.plan)

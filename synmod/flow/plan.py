"""A plan: a program's graph made ready to run, with its modules and with everything counted beforehand.

Made once for a program and shared by all its calls; it is never written to. What a run changes is in `engine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from synmod.data import OPERATIONS, Schema
from synmod.errors import GraphError
from synmod.flow.record import FlowGraph, FlowStep, SymbolRef
from synmod.flow.steps import Declared
from synmod.leaves.nests import SEQUENCE, is_leaf, kind_of, leaves, map_leaves

_CONSTANT, _VALUE, _NEST = 0, 1, 2
Template = tuple[int, Any]
"""How one argument is made: a constant, the value of a symbol, or a nest that holds some."""


class PlannedStep:
    """One step with its module, its arguments as templates, and its outputs as numbers.

    `single_in` and `single_out` are the numbers of the only argument and the only output, -1 where there are others,
    `schema` that of the only output. `link` is the step that needs this one's only output, where it needs nothing else
    and nobody else needs it. `then` are the steps that wait for the end of this one, whatever it gives.
    """

    __slots__ = (
        "args",
        "gives",
        "index",
        "kwargs",
        "link",
        "module",
        "name",
        "needs",
        "numbers",
        "op",
        "plan",
        "schema",
        "single_in",
        "single_out",
        "then",
    )

    def __init__(self, index: int, step: FlowStep, module: Any, plan: Any, symbols: Sequence[Declared]) -> None:
        self.index = index
        self.name: str = step.node if step.node is not None else str(step.op)
        self.op = step.op
        self.module = module
        self.plan = plan
        self.args: tuple[Template, ...] = tuple(map(_template, step.args))
        self.kwargs: dict[str, Template] = {name: _template(value) for name, value in step.kwargs.items()}
        self.needs: tuple[int, ...] = tuple(dict.fromkeys(step.needs))
        self.gives = step.gives
        self.numbers: list[int | None] = [None if ref is None else ref.index for ref in leaves(step.gives)]
        is_single = len(self.args) == 1 and not self.kwargs and self.args[0][0] == _VALUE
        self.single_in: int = self.args[0][1] if is_single else -1
        self.single_out: int = step.gives.index if isinstance(step.gives, SymbolRef) else -1
        self.schema: Schema | None = symbols[self.single_out].schema if self.single_out >= 0 else None
        self.link: int = -1
        self.then: list[int] = []


class Plan:
    """A graph ready to run.

    Attributes:
        symbols: What each symbol declares, by number.
        inputs: Numbers of the inputs, in the order of leaves.
        outputs: The nest of output numbers.
        flat_outputs: The numbers where `outputs` is a plain list of them, None for any other nest.
        steps: The steps in order.
        sources: The steps that wait for nothing.
        waits: How many distinct symbols, and ends of other steps, each step waits for.
        consumers: The steps that wait for each symbol, in step order.
        uses: How often each symbol is still needed: once for each consumer, once more for an output.
    """

    __slots__ = ("consumers", "flat_outputs", "inputs", "outputs", "sources", "steps", "symbols", "uses", "waits")

    def __init__(self, flow: FlowGraph, steps: tuple[PlannedStep, ...], before: Mapping[int, Sequence[int]]) -> None:
        self.symbols: tuple[Declared, ...] = flow.symbols
        self.inputs: tuple[int, ...] = tuple(ref.index for ref in leaves(flow.inputs))
        self.outputs: Any = flow.outputs
        self.steps = steps
        self.waits: list[int] = [len(step.needs) + len(before.get(step.index, ())) for step in steps]
        self.sources: list[int] = [index for index, count in enumerate(self.waits) if not count]
        for index, earlier in before.items():
            for each in earlier:
                steps[each].then.append(index)
        waiting: list[list[int]] = [[] for _ in flow.symbols]
        for step in steps:
            for number in step.needs:
                waiting[number].append(step.index)
        self.consumers: tuple[tuple[int, ...], ...] = tuple(map(tuple, waiting))
        self.uses: list[int] = [len(steps) for steps in self.consumers]
        for number in {ref.index for ref in leaves(flow.outputs)}:
            self.uses[number] += 1
        outputs: list[Any] = cast("list[Any]", self.outputs) if kind_of(self.outputs) == SEQUENCE else []
        is_flat = type(outputs) is list and bool(outputs) and all(map(is_leaf, outputs))
        self.flat_outputs: list[int] | None = [ref.index for ref in outputs] if is_flat else None
        for step in steps:
            step.link = self._link(step)

    def _link(self, step: PlannedStep) -> int:
        """Find the step that follows one, if it follows it alone."""
        number = step.single_out
        if number < 0 or step.then or self.uses[number] != 1 or len(self.consumers[number]) != 1:
            return -1
        follower = self.steps[self.consumers[number][0]]
        is_alone = follower.op is None and follower.single_in == number and self.waits[follower.index] == 1
        return follower.index if is_alone else -1


def compile_flow(
    flow: FlowGraph, modules: Mapping[str, Any], before: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> Plan:
    """Make a graph ready to run.

    Args:
        flow: The record of the graph.
        modules: The program's modules by the key that steps name.
        before: For steps that wait for the end of others beside what these give, the indices of those.

    Raises:
        GraphError: A step names a module that the program does not hold.
    """
    planned: list[PlannedStep] = []
    for index, step in enumerate(flow.steps):
        if step.node is None:
            planned.append(PlannedStep(index, step, None, _operator_plan(flow, step), flow.symbols))
            continue
        if step.node not in modules:
            raise GraphError(
                f"step {index} of the program runs {step.node!r}, which is not among its modules "
                f"({', '.join(modules) or 'none'}): put one back under that name."
            )
        planned.append(PlannedStep(index, step, modules[step.node], None, flow.symbols))
    return Plan(flow, tuple(planned), before)


def filled(template: Template, values: list[Any]) -> Any:
    """Make one argument of its template and the values at hand."""
    kind, what = template
    if kind == _VALUE:
        return values[what]
    if kind == _CONSTANT:
        return what
    return map_leaves(lambda leaf: values[leaf.index] if isinstance(leaf, SymbolRef) else leaf, what)


def _template(argument: Any) -> Template:
    """Say how an argument is made."""
    if isinstance(argument, SymbolRef):
        return _VALUE, argument.index
    if is_leaf(argument) or not any(isinstance(leaf, SymbolRef) for leaf in leaves(argument)):
        return _CONSTANT, argument
    return _NEST, argument


def _operator_plan(flow: FlowGraph, step: FlowStep) -> Any:
    """Give the plan made at composition, or make it again from the recorded schemas."""
    if step.plan is not None:
        return step.plan

    def operand(leaf: Any) -> Any:
        return flow.symbols[leaf.index].schema if isinstance(leaf, SymbolRef) else leaf

    return OPERATIONS[str(step.op)].plan(tuple(operand(arg) for arg in step.args), dict(step.kwargs))

"""Running a program's graph: the plan that is made once, and the run of one call.

Each step starts as soon as its arguments are available. Hot: a step costs a few list reads here, a chain costs no task,
branches cost one task each. Levels have no barrier, nothing recurses, and a value is dropped when its last
consumer has taken it. A plan is shared by all calls and never written to.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from synmod.data import OPERATIONS, JsonDataModel, Schema, is_subschema, value_from
from synmod.errors import CallError, GraphError, Paused
from synmod.leaves import aio, align_nests, is_leaf, leaves, map_leaves
from synmod.scope import Pauses, current_call

from .graph import Declared, FlowGraph, FlowStep, SymbolRef

_CONSTANT, _VALUE, _NEST = 0, 1, 2
Template = tuple[int, Any]
"""How one argument is made: a constant, the value of a symbol, or a nest that holds symbols."""

# -- the plan --------------------------------------------------------------------------------------------------------


class PlannedStep:
    """One step with its module, its arguments as templates, and its outputs as numbers.

    Attributes:
        only: The number of the only argument, -1 unless it is one symbol.
        output: The number of the only output, -1 unless there is exactly one.
        schema: The schema of the only output.
        numbers: The numbers of all outputs.
        needs: The distinct symbols among the arguments.
        then: The steps that wait for the end of this one, whatever its outputs.
    """

    def __init__(self, index: int, step: FlowStep, module: Any, plan: Any, symbols: Sequence[Declared]) -> None:
        self.index = index
        self.name: str = step.node if step.node is not None else str(step.op)
        self.op = step.op
        self.module = module
        self.plan = plan
        self.args: tuple[Template, ...] = tuple(map(_template, step.args))
        self.only: int = self.args[0][1] if len(self.args) == 1 and self.args[0][0] == _VALUE else -1
        self.kwargs: dict[str, Template] = {name: _template(value) for name, value in step.kwargs.items()}
        self.needs: tuple[int, ...] = tuple(dict.fromkeys(step.needs))
        self.outputs = step.outputs
        self.numbers: list[int] = [ref.index for ref in leaves(step.outputs) if ref is not None]
        self.output: int = step.outputs.index if isinstance(step.outputs, SymbolRef) else -1
        self.schema: Schema | None = symbols[self.output].schema if self.output >= 0 else None
        self.then: list[int] = []


class Plan:
    """A graph ready to run.

    Attributes:
        symbols: The declaration of each symbol, by number.
        inputs: Numbers of the inputs, in the order of leaves.
        outputs: The nest of output numbers.
        steps: The steps in order.
        sources: The steps that wait for nothing.
        waits: How many distinct symbols, and ends of other steps, each step waits for.
        consumers: The steps that wait for each symbol, in step order.
        uses: How often each symbol is needed: once per consumer, once more for an output.
    """

    __slots__ = ("consumers", "inputs", "outputs", "sources", "steps", "symbols", "uses", "waits")

    def __init__(self, flow: FlowGraph, steps: tuple[PlannedStep, ...], before: Mapping[int, Sequence[int]]) -> None:
        self.symbols: tuple[Declared, ...] = flow.symbols
        self.inputs: tuple[int, ...] = tuple(ref.index for ref in leaves(flow.inputs))
        self.outputs: Any = flow.outputs
        self.steps = steps
        self.waits: list[int] = [len(step.needs) + len(before.get(step.index, ())) for step in steps]
        self.sources: list[int] = [index for index, count in enumerate(self.waits) if not count]
        for index, earlier in before.items():
            for needed_step in earlier:
                steps[needed_step].then.append(index)
        waiting: list[list[int]] = [[] for _ in flow.symbols]
        for step in steps:
            for number in step.needs:
                waiting[number].append(step.index)
        self.consumers: tuple[tuple[int, ...], ...] = tuple(map(tuple, waiting))
        self.uses: list[int] = [len(steps) for steps in self.consumers]
        for number in {ref.index for ref in leaves(flow.outputs)}:
            self.uses[number] += 1


def compile_flow(
    flow: FlowGraph, modules: Mapping[str, Any], before: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> Plan:
    """Make a graph ready to run.

    Args:
        flow: The record of the graph.
        modules: The program's modules by the key that steps name.
        before: For steps that wait for the end of others, not only for their outputs, the indices of those.

    Raises:
        GraphError: A step names a module that the program does not hold.
    """
    planned: list[PlannedStep] = []
    for index, step in enumerate(flow.steps):
        if step.node is not None and step.node not in modules:
            raise GraphError(
                f"step {index} of the program runs {step.node!r}, which is not among its modules "
                f"({', '.join(modules) or 'none'}): put one back under that name."
            )
        module, plan = (None, _operator_plan(flow, step)) if step.node is None else (modules[step.node], None)
        planned.append(PlannedStep(index, step, module, plan, flow.symbols))
    return Plan(flow, tuple(planned), before)


def _template(argument: Any) -> Template:
    """Return how an argument is made."""
    if isinstance(argument, SymbolRef):
        return _VALUE, argument.index
    if is_leaf(argument) or not any(isinstance(leaf, SymbolRef) for leaf in leaves(argument)):
        return _CONSTANT, argument
    return _NEST, argument


def _fill(kind: int, what: Any, values: list[Any]) -> Any:
    """Make one argument from its template and the values at hand."""
    if kind == _VALUE:
        return values[what]
    if kind == _CONSTANT:
        return what
    return map_leaves(lambda leaf: values[leaf.index] if isinstance(leaf, SymbolRef) else leaf, what)


def _operator_plan(flow: FlowGraph, step: FlowStep) -> Any:
    """Return the plan made at composition, or make it again from the recorded schemas."""
    if step.plan is not None:
        return step.plan

    def operand(leaf: Any) -> Any:
        return flow.symbols[leaf.index].schema if isinstance(leaf, SymbolRef) else leaf

    return OPERATIONS[str(step.op)].plan(tuple(operand(arg) for arg in step.args), dict(step.kwargs))


# -- the run ---------------------------------------------------------------------------------------------------------


async def run_plan(plan: Plan, inputs: Sequence[Any]) -> Any:
    """Run a program's graph once.

    Args:
        plan: The graph, ready to run.
        inputs: The value, or None, of each input, in the order of leaves; checked by the caller.

    Returns:
        The nest of outputs, each valid for its recorded schema or None.

    Raises:
        CallError: A step returned a structure other than the recorded one.
        SchemaError: A step returned a value that its recorded schema does not allow.
        BaseException: Whatever a step raises, as itself, after the other steps have ended.

    Source: Synalinks' functional programs; differs: no barrier by level, one failure cancels the rest.
    """
    run = _Run(plan)
    ready = run.begin(inputs)
    if len(ready) == 1:
        ready = await run.follow(ready[0])
    if ready:
        try:
            with Pauses() as run.pauses:
                async with aio.task_group() as run.group:
                    run.start(ready)
        finally:
            # Its tasks refer to the run: without this cycle, reference counting frees the values.
            run.group = run.pauses = None
    values = run.values
    return map_leaves(lambda ref: values[ref.index], plan.outputs)


class _Run:
    """The state of one run of a plan: values, what each step still waits for, and how often each value is still used.

    Attributes:
        values: The values at hand, by the number of their symbol.
        group: The tasks of this run, once there are any.
        pauses: The pauses of these tasks.
    """

    __slots__ = ("_uses", "_waits", "group", "pauses", "plan", "values")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.group: aio.task_group | None = None
        self.pauses: Pauses | None = None
        self.values: list[Any] = [None] * len(plan.symbols)
        self._waits = plan.waits.copy()
        self._uses = plan.uses.copy()

    def begin(self, inputs: Sequence[Any]) -> Sequence[int]:
        """Store the inputs; return the module steps that can start, in step order."""
        ready = list(self.plan.sources)
        for number, value in zip(self.plan.inputs, inputs, strict=True):
            self._put(number, value, ready)
        return self._run_ready_operators(ready)

    async def follow(self, index: int) -> Sequence[int]:
        """Run a step in place, and then the single step that it makes ready, and so on.

        Returns the steps that are ready at the end; if the run has tasks, they are started too.
        """
        steps, values = self.plan.steps, self.values
        ready: Sequence[int] = (index,)
        while len(ready) == 1:
            step = steps[ready[0]]
            only = step.only
            args: Any = (values[only],) if only >= 0 else [_fill(kind, what, values) for kind, what in step.args]
            kwargs: Any = None
            if step.kwargs:
                kwargs = {name: _fill(kind, what, values) for name, (kind, what) in step.kwargs.items()}
            self._drop(step)
            call = step.module(*args) if kwargs is None else step.module(*args, **kwargs)
            del args, kwargs  # a value that nothing else needs is freed as soon as the step releases it
            try:
                output = await call
            except Paused as pause:
                if self.pauses is None:
                    raise
                self.pauses.note(pause)  # the other branches run to their end
                return ()
            ready = self._after(step, output)
            del output
        if self.group is not None:
            self.start(ready)
        return ready

    def start(self, ready: Sequence[int]) -> None:
        """Begin a task for each ready step, in order."""
        assert self.group is not None
        for index in ready:
            self.group.start_soon(self.follow, index)

    def _drop(self, step: PlannedStep) -> None:
        """Remove the values that no other step needs."""
        uses = self._uses
        for number in step.needs:
            uses[number] -= 1
            if not uses[number]:
                self.values[number] = None

    def _after(self, step: PlannedStep, output: Any) -> Sequence[int]:
        """Store the output of a module step; return the module steps that can start now, in step order."""
        ready: list[int] = []
        if step.output >= 0:
            if output is not None and not (type(output) is JsonDataModel and output._schema is step.schema):
                output = _conform(output, self.plan.symbols[step.output], _place(step))
            self._put(step.output, output, ready)
        elif output is None:  # a step that was skipped: None stands for every output
            for number in step.numbers:
                self._put(number, None, ready)
        else:
            for number, value in _conform_nest(step.outputs, output, self.plan.symbols, _place(step)):
                self._put(number, value, ready)
        for index in step.then:
            self._waits[index] -= 1
            if not self._waits[index]:
                ready.append(index)
        return self._run_ready_operators(ready) if ready else ready

    def _put(self, number: int, value: Any, ready: list[int]) -> None:
        """Store a value for its consumers, and add those that wait for nothing more to `ready`."""
        if not self._uses[number]:
            return
        self.values[number] = value
        waits = self._waits
        for index in self.plan.consumers[number]:
            waits[index] -= 1
            if not waits[index]:
                ready.append(index)

    def _run_ready_operators(self, ready: list[int]) -> list[int]:
        """Run the operators among the ready steps, and what they make ready; return the module steps in step order."""
        if len(ready) == 1 and self.plan.steps[ready[0]].op is None:
            return ready
        modules: list[int] = []
        for index in ready:  # grows while it is read
            step = self.plan.steps[index]
            if step.op is None:
                modules.append(index)
                continue
            args = [_fill(kind, what, self.values) for kind, what in step.args]
            self._drop(step)
            self._put(step.output, step.plan.apply(args, _place(step)), ready)
        if len(modules) > 1:
            modules.sort()
        return modules


async def together(*calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run several calls at once.

    Args:
        *calls: Functions without arguments that return an awaitable.

    Returns:
        The results in the order of `calls`. A single call runs in place, without a task.

    Raises:
        BaseException: The first failure, as itself, after the others were cancelled and have ended; another failure
            becomes a note on it.
        Paused: Some calls have paused, and the others have ended; has the questions of all.

    Example:
        >>> await together(lambda: critic(x), lambda: writer(x))  # doctest: +SKIP

    Source: structured concurrency (trio, anyio).
    """
    if len(calls) == 1:
        return [await calls[0]()]
    results: list[Any] = [None] * len(calls)

    with Pauses() as pauses:

        async def run(index: int) -> None:
            results[index] = await pauses.run(calls[index]())

        async with aio.task_group() as group:
            for index in range(len(calls)):
                group.start_soon(run, index)
    return results


# -- outputs checked against the record ------------------------------------------------------------------------------


def _conform(value: Any, declared: Declared, where: str) -> Any:
    """Return `value` with the recorded schema, None as it is; raise an error that begins with `where`."""
    if value is None:
        return None
    if type(value) is not JsonDataModel:
        raise CallError(
            f"{where}: the step was recorded as returning one value {declared.name!r}, but returned "
            f"{type(value).__name__}: return what the symbolic call promised."
        )
    if value._schema is declared.schema:
        return value
    if not is_subschema(value._schema, declared.schema):  # the value itself may still fit
        where += f": the output was recorded as {fields_text(declared.schema)}, got {fields_text(value._schema)}"
    return value_from(value, declared.schema, declared.data_model, where)


def _conform_nest(recorded: Any, output: Any, symbols: Sequence[Declared], where: str) -> Iterator[tuple[int, Any]]:
    """Pair the numbers of a step's outputs with the returned values, each checked against its schema."""
    pairs = align_nests(recorded, output)
    if pairs is None:
        raise CallError(
            f"{where}: the step was recorded as returning {_shape(recorded)}, but returned {_shape(output)}: return "
            "the same structure as the symbolic call, or None."
        )
    for path, ref, value in pairs:
        if isinstance(ref, SymbolRef):
            place = f"{where}, output {'/'.join(map(str, path))}"
            yield ref.index, _conform(value, symbols[ref.index], place)


def _place(step: PlannedStep) -> str:
    """Return the path of a step below the running program, for errors."""
    frame = current_call()
    above = frame.path if frame is not None else ""
    return f"{above}/{step.name}" if above else step.name


def fields_text(schema: Schema) -> str:
    """Return the title and the fields of a schema."""
    return f"{schema.get('title', 'a value')}({', '.join(schema.get('properties', {}))})"


def _shape(nest: Any) -> str:
    """Return the structure of a nest, leaves as stars."""
    return repr(map_leaves(lambda leaf: None if leaf is None else "*", nest)).replace("'*'", "*")[:200]

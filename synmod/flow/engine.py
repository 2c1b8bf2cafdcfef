"""The engine: runs a plan, each step as soon as what it needs is there.

Hot: a step costs a few list reads here, a chain costs no task, branches cost one task each. There is no barrier between
levels, no recursion, and a value is dropped when its last consumer has taken it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from synmod.data import JsonDataModel
from synmod.flow.conform import conformed, conformed_nest
from synmod.flow.plan import Plan, PlannedStep, filled
from synmod.leaves import aio
from synmod.leaves.nests import map_leaves
from synmod.scope import current_call


async def run_plan(plan: Plan, inputs: Sequence[Any]) -> Any:
    """Run a program's graph once.

    Args:
        plan: The graph, ready to run.
        inputs: The value, or None, of each input, in the order of leaves; checked by the caller.

    Returns:
        The nest of outputs, each valid for its recorded schema or None.

    Raises:
        CallError: A step returned another structure than was recorded.
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
            async with aio.task_group() as run.group:
                run.start(ready)
        finally:
            run.group = None  # its tasks refer to the run: values are freed by counting, not by the collector
    return run.outputs()


_NOTHING: Final[Sequence[int]] = ()


class _Run:
    """What changes while a plan runs: values, and how much each step and value still waits for."""

    __slots__ = ("_uses", "_waits", "group", "plan", "values")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.group: aio.task_group | None = None
        """The tasks of this run, once there are any."""
        self.values: list[Any] = [None] * len(plan.symbols)
        self._waits = plan.waits.copy()
        self._uses = plan.uses.copy()

    def begin(self, inputs: Sequence[Any]) -> Sequence[int]:
        """Put the inputs in; give the module steps that can start, in step order."""
        ready = list(self.plan.sources)
        for number, value in zip(self.plan.inputs, inputs, strict=True):
            if self._uses[number]:
                self._put(number, value, ready)
        return self._settled(ready)

    async def follow(self, index: int) -> Sequence[int]:
        """Run a step in place, and then the single step that it makes ready, and so on.

        What is ready at the end is given; a branch starts it.
        """
        steps = self.plan.steps
        step = steps[index]
        output = await self.call(step)
        while True:
            link = step.link
            if link >= 0:  # the next step needs this output alone, and nobody else needs it: it goes by hand
                if output is not None and not (type(output) is JsonDataModel and output._schema is step.schema):
                    output = self._conformed(step, output)
                step = steps[link]
                output = await step.module(output)
                continue
            ready = self.after(step, output)
            if len(ready) != 1:
                break
            step, output = steps[ready[0]], None  # whoever needs the output has it
            output = await self.call(step)
        if self.group is not None:
            self.start(ready)
        return ready

    def start(self, ready: Sequence[int]) -> None:
        """Begin a task for each ready step, in order."""
        assert self.group is not None
        for index in ready:
            self.group.start_soon(self.follow, index)

    def call(self, step: PlannedStep) -> Any:
        """Call the module of a step; its arguments leave the table when nobody else needs them."""
        number = step.single_in
        if number >= 0:
            value = self.values[number]
            self._uses[number] -= 1
            if not self._uses[number]:
                self.values[number] = None
            return step.module(value)
        args, kwargs = self._arguments(step)
        return step.module(*args, **kwargs)

    def after(self, step: PlannedStep, output: Any) -> Sequence[int]:
        """Take the output of a module step; give the module steps that can start now, in step order."""
        ready: list[int] = []
        number = step.single_out
        if number >= 0:
            if output is not None and not (type(output) is JsonDataModel and output._schema is step.schema):
                output = self._conformed(step, output)
            if not self.plan.consumers[number] and not step.then:
                self.values[number] = output
                return _NOTHING
            self._put(number, output, ready)
        elif output is None:  # a step that was skipped: None stands for every output
            for number in step.numbers:
                if number is not None and self._uses[number]:
                    self._put(number, None, ready)
        else:
            for number, value in conformed_nest(step.gives, output, self.plan.symbols, self._place(step)):
                if self._uses[number]:
                    self._put(number, value, ready)
        if step.then:
            self._end(step, ready)
        return self._settled(ready) if ready else ready

    def _put(self, number: int, value: Any, ready: list[int]) -> None:
        """Put a value where its consumers find it, and note those that need nothing more."""
        self.values[number] = value
        waits = self._waits
        for index in self.plan.consumers[number]:
            waits[index] -= 1
            if not waits[index]:
                ready.append(index)

    def _end(self, step: PlannedStep, ready: list[int]) -> None:
        """Note that a step has ended, whatever it gave."""
        for index in step.then:
            self._waits[index] -= 1
            if not self._waits[index]:
                ready.append(index)

    def _settled(self, ready: list[int]) -> list[int]:
        """Run the operators among the ready steps, and what they make ready; give the module steps in step order."""
        modules: list[int] = []
        for index in ready:  # grows while it is read
            step = self.plan.steps[index]
            if step.op is None:
                modules.append(index)
                continue
            args, _ = self._arguments(step)
            self._put(step.single_out, step.plan.apply(args, self._place(step)), ready)
        if len(modules) > 1:
            modules.sort()
        return modules

    def outputs(self) -> Any:
        """Give the nest of outputs."""
        numbers, values = self.plan.flat_outputs, self.values
        if numbers is not None:
            return [values[number] for number in numbers]
        return map_leaves(lambda ref: values[ref.index], self.plan.outputs)

    def _arguments(self, step: PlannedStep) -> tuple[list[Any], dict[str, Any]]:
        """Fill the templates of a step, then drop the values that nobody else needs."""
        values = self.values
        args = [filled(template, values) for template in step.args]
        kwargs = {name: filled(template, values) for name, template in step.kwargs.items()}
        for number in step.needs:
            self._uses[number] -= 1
            if not self._uses[number]:
                values[number] = None
        return args, kwargs

    def _conformed(self, step: PlannedStep, output: Any) -> Any:
        """Hold the only output of a step to what was recorded."""
        return conformed(output, self.plan.symbols[step.single_out], self._place(step))

    def _place(self, step: PlannedStep) -> str:
        """Path of a step below the running program, for errors."""
        frame = current_call()
        above = frame.path if frame is not None else ""
        return f"{above}/{step.name}" if above else step.name

"""What stands in for modules in the tests of the flow room: something to call, with a name."""

import asyncio
import contextvars

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, symbol
from synmod.flow import compile_flow, leaves, map_leaves, record_call, record_graph, run_plan, steps_between
from synmod.leaves import aio


class Number(DataModel):
    """A number."""

    n: int


def number(n):
    return Number(n=n).to_json_data_model()


def a_symbol(name=None):
    return Number.to_symbolic_data_model(name)


class Fake:
    """A step: `work` on values, fresh symbols of `outputs` (default: one Number) on symbols."""

    def __init__(self, name="fake", work=None, outputs=None):
        self.name = name
        self.work = work or (lambda *args, **kwargs: args[0])
        self.outputs = outputs
        self.calls = 0

    async def __call__(self, *args, **kwargs):
        if any(isinstance(x, SymbolicDataModel) for x in leaves([list(args), kwargs])):
            given = a_symbol() if self.outputs is None else self.outputs
            fresh = map_leaves(lambda x: None if x is None else symbol(x._schema, x._model, self.name), given)
            record_call(self, args, kwargs, fresh)
            return fresh
        if args and all(x is None for x in leaves(list(args))):
            return None
        self.calls += 1
        result = self.work(*args, **kwargs)
        if hasattr(result, "__await__"):
            result = await result
        return result


def add(amount):
    return lambda x, **_: number(x.n + amount)


def plan_of(inputs, outputs):
    """Compile the graph between inputs and outputs; modules are keyed by identity."""
    steps = steps_between(inputs, outputs)
    keys = {}
    flow = record_graph(inputs, outputs, steps, lambda module: keys.setdefault(id(module), f"{module.name}{len(keys)}"))
    modules = {keys[id(step.module)]: step.module for step in steps if step.module is not None}
    return compile_flow(flow, modules)


async def run_graph(inputs, outputs, *values):
    return await run_plan(plan_of(inputs, outputs), values)


class Gate:
    """Lets tasks of any loop wait until a test opens it."""

    def __init__(self):
        self.signal = aio.Signal()

    async def passed(self):
        await self.signal.wait()

    def open(self):
        self.signal.set()


WHERE = contextvars.ContextVar("where", default="nowhere")

__all__ = [
    "WHERE",
    "Fake",
    "Gate",
    "JsonDataModel",
    "Number",
    "a_symbol",
    "add",
    "asyncio",
    "number",
    "plan_of",
    "run_graph",
]

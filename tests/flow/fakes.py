"""Steps of the graphs in the tests of the flow room."""

import synmod as sm
from synmod.data import DataModel
from synmod.flow import compile_flow, record_graph, run_plan, steps_between


class Number(DataModel):
    """A number."""

    n: int


def number(n):
    return Number(n=n).to_json_data_model()


def a_symbol(name=None):
    return Number.to_symbolic_data_model(name)


class Fake(sm.Module):
    """A step: `work` on values, fresh symbols of `outputs` (default: one Number) on symbols."""

    accepts_none = False

    def __init__(self, name="fake", work=None, outputs=None):
        super().__init__(name=name)
        self.work = sm.static(work or (lambda *args, **kwargs: args[0]))
        self.outputs = sm.static(Number if outputs is None else outputs)
        self.calls = 0

    async def call(self, *args, **kwargs):
        self.calls += 1
        result = self.work(*args, **kwargs)
        return await result if hasattr(result, "__await__") else result

    async def compute_output_spec(self, *args, **kwargs):
        return self.outputs


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

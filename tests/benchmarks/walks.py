"""The walk over a program, a visit at a time; the memory of a module."""

from itertools import cycle

import synmod as sm
from tests.benchmarks.measure import alone, memory


class Holder(sm.Module):
    """Two Variables and a child or more."""

    def __init__(self, children):
        super().__init__()
        self.first = sm.Param("x")
        self.second = sm.Param("y")
        self.children = children


class Built(sm.Module):
    """One Variable, made by its build."""

    async def build(self, inputs):
        self.notes = self.add_variable({}, name="notes")

    async def call(self, inputs):
        return inputs


async def built(count):
    """Return modules that were called once."""
    modules = [Built() for _ in range(count)]
    for module in modules:
        await module(sm.JsonDataModel({}, schema={"type": "object"}))
    return modules


def other_values(root):
    """Return two States of a program, of which each changes every value of the other."""
    state = sm.state(root)
    return tuple(state.replace(dict.fromkeys(state.to_json(), text)) for text in ("x", "z"))


def rows(scale=1.0):
    """Measure."""
    root = Holder([Holder([]) for _ in range(max(int(1_000 * scale), 10))])
    visits = sum(1 for _ in sm.tree.walk(root))
    small = Holder([Holder([]) for _ in range(99)])
    yield alone("the walk, a visit", lambda: sum(1 for _ in sm.tree.walk(root)), budget_us=5, per=visits)
    yield alone("split of 200 Variables in 100 modules", lambda: sm.split(small), budget_us=3_000)
    states = cycle(other_values(small))
    yield alone("update of 200 Variables in 100 modules", lambda: sm.update(small, next(states)), budget_us=3_000)
    yield alone("variables, 200 in 100 modules", lambda: small.variables, budget_us=3_000)
    yield memory("a built module with one Variable", lambda count: sm.run(built, count), budget_kib=20)

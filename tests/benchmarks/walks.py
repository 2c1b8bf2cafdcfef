"""The walk over a program, a visit at a time."""

import synmod as sm
from tests.benchmarks.measure import alone


class Holder(sm.Module):
    """Two Variables and a child or more."""

    def __init__(self, children):
        super().__init__()
        self.first = sm.Param("x")
        self.second = sm.Param("y")
        self.children = children


def rows(scale=1.0):
    """Measure."""
    root = Holder([Holder([]) for _ in range(max(int(1_000 * scale), 10))])
    visits = sum(1 for _ in sm.tree.walk(root))
    small = Holder([Holder([]) for _ in range(99)])
    yield alone("the walk, a visit", lambda: sum(1 for _ in sm.tree.walk(root)), budget_us=5, per=visits)
    yield alone("split of 200 Variables in 100 modules", lambda: sm.split(small), budget_us=3_000)
    yield alone("variables, 200 in 100 modules", lambda: small.variables, budget_us=3_000)

"""Overlays: entering one on a built program, and reading through it."""

import statistics

import synmod as sm
from tests.benchmarks.measure import Row, alone, timed


class Asked(sm.DataModel):
    """What goes through."""

    text: str


class Part(sm.Module):
    """Two Variables and children."""

    def __init__(self, children=()):
        super().__init__()
        self.first, self.second = sm.Param("x"), sm.Param("y")
        self.children = list(children)

    async def call(self, inputs: Asked) -> Asked:
        for child in self.children:
            inputs = await child(inputs)
        return inputs


def rows(scale=1.0):
    """Measure."""
    count = max(int(100 * scale), 2)
    program = Part(Part() for _ in range(count - 1))
    sm.run(program, Asked(text="x"))
    state = sm.state(program).map(lambda path, leaf: leaf.value + "!")

    def enter():
        for _ in range(100):
            with sm.using(program, state):
                pass

    leaves = len(state)
    yield alone(f"entering an overlay of {leaves} leaves", enter, budget_us=50 + leaves, per=100)
    yield _reads(program, {"children/0/first": "c"}, "a read of another Variable, beyond a live one")
    yield _reads(program, state, "a read through an overlay, beyond a live one")


def _reads(program, state, what):
    """How much longer a read takes inside."""
    variable, count = program.first, 20_000

    def read():
        for _ in range(count):
            variable.value

    read()
    beyond = []
    for _ in range(15):
        live = timed(read)
        with sm.using(program, state):
            beyond.append((timed(read) - live) / count * 1e6)
    got = max(statistics.median(beyond), 1e-3)
    return Row(what, got, None, 0.2, got)

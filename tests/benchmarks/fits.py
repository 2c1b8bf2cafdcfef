"""A row of `fit` beside the same calls and rewards under `asyncio.gather`, and the journal beside rows of 50 ms."""

import asyncio
import tempfile

import synmod as sm
from tests.benchmarks.calls import Question
from tests.benchmarks.evaluations import Waits, is_right
from tests.benchmarks.measure import paired, wall

STEPS = 10


class Texts(Waits):
    """A call that waits, and a value to train."""

    def __init__(self, seconds=0.0):
        super().__init__()
        self.text = self.add_variable("x", schema={"type": "string"}, name="text")
        self.seconds = seconds

    async def call(self, inputs: Question) -> Question:
        await asyncio.sleep(self.seconds)
        return inputs


class Tries(sm.optimizers.Optimizer):
    """Runs one candidate a step on all validation rows."""

    ends = True

    def __init__(self):
        super().__init__()
        self.taken = self.add_variable(0, schema={"type": "integer"}, name="taken", type=sm.OptState)

    @property
    def done(self):
        return self.taken.value >= STEPS

    async def update(self, state, feedback, bench):
        self.taken.assign(self.taken.value + 1)
        new = state.replace({"text": f"text {self.taken.value}"})
        await bench.evaluate(new, bench.validation)
        return new


def fit(data, *, seconds=0.0, run=None, concurrency=64):
    """Train on the rows: STEPS candidates and the seed."""
    trainer = sm.train.Trainer(Texts(seconds), reward=is_right, concurrency=concurrency)
    batches = [sm.train.Batch(data)]
    return asyncio.run(trainer.fit(batches, eval_data=data, optimizer=Tries(), run=run))


def by_hand(data):
    """The same calls and rewards."""
    program = Texts()

    async def one(row):
        return is_right(row.target, await program(row.inputs))

    async def main():
        for _ in range(STEPS + 1):
            await asyncio.gather(*map(one, data))

    asyncio.run(main())


def in_a_folder(data, seconds):
    """The same with a journal."""
    with tempfile.TemporaryDirectory() as folder:
        fit(data, seconds=seconds, run=folder, concurrency=1)


def rows(scale=1.0):
    """Measure."""
    times = max(int(100 * scale), 20)
    data = [sm.Example(str(i), sm.JsonDataModel(Question(text=f"x{i}")), f"x{i}") for i in range(times)]
    per = times * (STEPS + 1)
    yield paired("a row of fit, added to its call and its reward", lambda: fit(data), lambda: by_hand(data),
                 budget=100, unit="µs", per=per, rounds=9 if scale >= 1 else 1)  # fmt: skip
    few, seconds = data[:20], 0.05 if scale >= 1 else 0.005
    yield paired(
        "a run with a journal, beside one without: rows of 50 ms, one at a time",
        lambda: in_a_folder(few, seconds),
        lambda: fit(few, seconds=seconds, concurrency=1),
        budget=1.015, per=len(few) * (STEPS + 1), rounds=3 if scale >= 1 else 1,  # wanted: 1.01, on a quiet machine
        clock=wall,
    )  # fmt: skip

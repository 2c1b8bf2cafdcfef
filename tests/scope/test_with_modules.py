"""The promises of the scope, kept by real modules and models."""

import asyncio
import json
import time

import pytest

import synmod as sm
from synmod.leaves.aio import backend, sleep, task_group
from synmod.testing import FunctionLM


class Query(sm.DataModel):
    """A question."""

    question: str


class Answer(sm.DataModel):
    """An answer."""

    answer: str


class Write(sm.Module):
    """Asks a model, gives a reward, and waits or fails as the question says."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        model = FunctionLM(lambda request: {"answer": "yes"}, price=(1_000_000, 0))
        self.ask = sm.Generator(Answer, language_model=model)

    async def call(self, inputs: Query) -> Answer:
        question = inputs["question"]
        if question == "wait":
            await sleep(60)
        if question == "fail":
            raise ValueError("asked to")
        self.add_reward(len(question), name="length")
        return await self.ask(inputs)


class Pipeline(sm.Module):
    """One module below another."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.write = Write()

    async def call(self, inputs: Query) -> Answer:
        return await self.write(inputs)


class Events(sm.Hook):
    """Notes every event it is told."""

    def __init__(self):
        self.seen = []

    def on_call_begin(self, event):
        self.seen.append(("call begin", event.path))

    def on_call_end(self, event):
        self.seen.append(("call end", event.path))

    def on_lm_begin(self, event):
        self.seen.append(("lm begin", event.path))

    def on_lm_end(self, event):
        self.seen.append(("lm end", event.path))


def test_a_module_hook_sees_the_model_calls_below(any_loop):
    """A module's own hooks see its calls, and the model calls inside to any depth; a scope sees all."""

    async def main():
        scope, own = Events(), Events()
        pipeline = Pipeline(hooks=[own])
        with sm.hooks(scope):
            await pipeline(Query(question="why"))
        return scope.seen, own.seen

    scope, own = any_loop(main)
    paths = ["", "write", "write/ask"]
    model = [("lm begin", "write/ask"), ("lm end", "write/ask")]
    begins, ends = [("call begin", path) for path in paths], [("call end", path) for path in reversed(paths)]
    assert scope == [*begins, *model, *ends]
    assert own == [begins[0], *model, ends[-1]]


def test_a_trace_has_usage_cost_and_rewards(any_loop):
    """The tree of a real run, as JSON."""

    async def main():
        pipeline = Pipeline()
        with sm.trace() as t, sm.track_usage() as usage, sm.track_rewards() as rewards, sm.phase("reward"):
            await pipeline(Query(question="why"))
        assert rewards == [("write", "length", 3.0)]
        assert t.roots[0].rewards == (("write", "length", 3.0),)
        assert t.roots[0].usage == usage["reward"] == usage["reward"]
        assert t.roots[0].usage.cost_usd == usage.cost_usd > 0
        return json.loads(json.dumps(t.to_json())), str(t)

    written, text = any_loop(main)
    (root,) = written["calls"]
    assert root["inputs"] == [{"question": "why"}]
    assert root["outputs"] == {"answer": "yes"}
    ask = root["children"][0]["children"][0]
    assert ask["path"] == "write/ask"
    assert len(ask["lm_calls"]) == 1
    assert len(text.splitlines()) == 4


def test_a_deadline_names_the_module_that_waited(any_loop):
    """Whether the block is in the loop or around it, and nothing of it is left."""

    async def main():
        pipeline = Pipeline()
        await sm.build(pipeline, Query)
        started = time.monotonic()
        with pytest.raises(sm.DeadlineExceeded, match="'write'"):
            with sm.deadline(0.4):  # time enough to begin, also on a busy machine
                await pipeline(Query(question="wait"))
        assert time.monotonic() - started < 20
        assert pipeline.counters.cancelled == 1
        assert pipeline.counters.failed == 0
        assert sm.time_left() is None
        await pipeline(Query(question="on"))

    any_loop(main)


def test_a_deadline_around_plain_code_limits_what_runs_inside():
    """`sm.run`, and entry calls in a loop of one's own."""
    pipeline = Pipeline()
    with sm.deadline(0.2):
        with pytest.raises(sm.DeadlineExceeded, match="'write'"):
            asyncio.run(pipeline(Query(question="wait")))
    with sm.deadline(0.2), pytest.raises(sm.DeadlineExceeded, match="'write'"):
        sm.run(pipeline, Query(question="wait"))
    assert sm.time_left() is None


def test_a_hundred_calls_in_flight_cannot_overdraw_a_budget(any_loop):
    """Exactly as many model calls are made as the budget allows."""

    async def main():
        pipeline, refused = Pipeline(), []
        await sm.build(pipeline, Query)

        async def one(n):
            try:
                await pipeline(Query(question=f"{n}"))
            except sm.BudgetExceeded as error:
                refused.append(str(error))

        with sm.budget(calls=30) as spending:
            async with task_group() as group:
                for n in range(100):
                    group.start_soon(one, n)
        assert spending.used.calls == 30
        assert len(refused) == 70
        assert all("write/ask" in text and "calls=30" in text for text in refused)
        assert pipeline.counters.failed == 70

    any_loop(main)


def test_a_thousand_mixed_calls_leave_no_trace(any_loop):
    """Answers, failures and deadlines side by side: exact counters, own rewards, nothing left."""

    async def main():
        pipeline, events = Pipeline(), Events()
        await sm.build(pipeline, Query)

        async def one(n):
            question = "fail" if n % 5 == 0 else "wait" if n % 7 == 0 else "x" * (n % 11 + 1)
            with sm.phase(("inference", "reward", "optimizer")[n % 3]), sm.track_rewards() as rewards:
                try:
                    if question == "wait":
                        with sm.deadline(0.01):
                            await pipeline(Query(question=question))
                    else:
                        await pipeline(Query(question=question))
                        assert rewards == [("write", "length", float(len(question)))]
                except (ValueError, sm.DeadlineExceeded):
                    assert rewards == []
            assert sm.current_call() is None
            assert sm.current_phase() == "inference"

        with sm.hooks(events):
            async with task_group() as group:
                for n in range(300):
                    group.start_soon(one, n)
        begins = sum(1 for kind, _ in events.seen if kind == "call begin")
        assert begins == sum(1 for kind, _ in events.seen if kind == "call end")
        counters = pipeline.counters
        assert counters.invocations + counters.cancelled == 300
        assert (
            sum(counters[phase].invocations for phase in ("inference", "reward", "optimizer")) == counters.invocations
        )
        if backend() == "asyncio":
            assert not asyncio.current_task().cancelling()

    any_loop(main)

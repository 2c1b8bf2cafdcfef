"""`hooks_lib.Judge`: traffic is scored beside it."""

import pytest

import synmod as sm
from synmod.leaves import aio
from synmod.testing import ScriptedLM


class Query(sm.DataModel):
    question: str


class Seen(sm.Hook):
    """Keeps the events."""

    def __init__(self):
        self.calls, self.emitted = [], []

    def on_call_end(self, event):
        self.calls.append(event.name)

    def on_emit(self, event):
        self.emitted.append((event.topic, event.value["score"]))


def short(outputs):
    """Whether a question is short."""
    return len(outputs["question"]) < 5


async def test_verdicts_are_kept_and_emitted_to_the_hooks_around():
    """Leaving the block waits for them; hooks of the traffic get nothing."""
    around, of_traffic = Seen(), Seen()
    with sm.hooks(around):
        async with sm.hooks_lib.Judge(short) as judge:
            with sm.hooks(of_traffic):
                await sm.Identity()(Query(question="Why?"))
                await sm.Identity()(Query(question="And how?"))
    assert [verdict.feedback.score for verdict in judge.results] == [1.0, 0.0]
    assert around.emitted == [("judge", 1.0), ("judge", 0.0)]
    assert of_traffic.emitted == []


async def test_no_limit_or_hook_of_the_traffic_applies_to_the_reward():
    """A module that judges runs after the deadline and beyond the budget of the call, and is not judged itself."""
    model = ScriptedLM(["Fine."] * 2)

    async def ask(outputs):
        await model("Is it good?")
        return sm.time_left() is None and sm.current_call() is None

    of_traffic = Seen()
    async with sm.hooks_lib.Judge(ask) as judge:
        with sm.deadline(60), sm.budget(calls=1), sm.hooks(of_traffic), sm.track_usage() as usage:
            await sm.Identity()(Query(question="Why?"))
            await model("Traffic.")
    assert [verdict.feedback.score for verdict in judge.results] == [1.0]
    assert usage.total().calls == 1
    assert of_traffic.calls == ["identity"]


async def test_what_is_over_the_backlog_is_dropped_and_counted():
    """The calls are not held up."""
    gate = aio.Signal()

    async def wait(outputs):
        await gate.wait()
        return 1

    async with sm.hooks_lib.Judge(wait, backlog=2) as judge:
        for _ in range(5):
            await sm.Identity()(Query(question="Why?"))
        gate.set()
    assert (len(judge.results), judge.dropped) == (2, 3)


async def test_a_sample_of_none_scores_nothing_and_calls_inside_are_no_traffic():
    """Entry calls alone are scored."""
    async with sm.hooks_lib.Judge(short, sample=0.0) as nothing:
        await sm.Identity()(Query(question="Why?"))
    async with sm.hooks_lib.Judge(short) as judge:
        await sm.Sequential([sm.Identity(), sm.Identity()])(Query(question="Why?"))
    assert (len(nothing.results), len(judge.results)) == (0, 1)


async def test_an_error_of_the_reward_is_a_verdict():
    """Traffic and the block continue."""

    def fail(outputs):
        raise KeyError("label")

    async with sm.hooks_lib.Judge(fail) as judge:
        await sm.Identity()(Query(question="Why?"))
    (verdict,) = judge.results
    assert (verdict.feedback, verdict.error) == (None, "KeyError: 'label'")


def test_a_reward_that_needs_a_target_is_refused():
    """Traffic has no targets."""
    with pytest.raises(sm.ArgumentError, match="needs a target"):
        sm.hooks_lib.Judge(sm.rewards.ExactMatch())
    with pytest.raises(sm.ArgumentError, match="backlog"):
        sm.hooks_lib.Judge(short, backlog=0)


def test_it_works_on_trio():
    """As on asyncio."""
    trio = pytest.importorskip("trio")

    async def main():
        async with sm.hooks_lib.Judge(short) as judge:
            with sm.deadline(60):
                await sm.Identity()(Query(question="Why?"))
        return [verdict.feedback.score for verdict in judge.results]

    assert trio.run(main) == [1.0]

"""A thousand calls at once: nothing mixes, nothing is lost, everything adds up."""

import asyncio
import random
import threading
from collections import Counter

import pytest

from synmod.leaves import aio
from synmod.module import Module
from synmod.scope import FRAME, Hook, current_call, hooks, phase, track_rewards
from tests.module.models import Query


class Failure(Exception):
    """Raised on purpose."""


class Leaf(Module):
    """Fails, waits or returns, as its input says."""

    async def call(self, inputs, training=False):
        number = int(inputs["question"])
        await aio.checkpoint()
        frame = current_call()
        assert frame.training is (number % 3 == 0)
        assert training is (number % 3 == 0)
        assert frame.phase == ("reward" if number % 2 else "inference")
        self.add_reward(number)
        await aio.checkpoint()
        if number % 7 == 0:
            raise Failure(number)
        return inputs


class Middle(Module):
    """Makes up for some failures of its leaf, and fails with others."""

    def __init__(self):
        super().__init__()
        self.leaf = Leaf()

    async def call(self, inputs):
        try:
            return await self.leaf(inputs)
        except Failure as error:
            if error.args[0] % 5 == 0:
                raise
            return Query(question="spared")


class Root(Module):
    """Runs two branches at once."""

    def __init__(self):
        super().__init__()
        self.left, self.right = Middle(), Middle()

    async def call(self, inputs):
        results = {}

        async def branch(name):
            results[name] = await getattr(self, name)(inputs)

        async with aio.task_group() as group:
            group.start_soon(branch, "left")
            group.start_soon(branch, "right")
        return results["left"]


class Watch(Hook):
    """Checks each record against the frame it must come from, and raises now and then."""

    def __init__(self):
        self.lock = threading.Lock()
        self.open = {}
        self.right = True
        self.ended = Counter()
        self.children = []

    def on_call_begin(self, event):
        with self.lock:
            self.right &= event.call_id not in self.open
            self.open[event.call_id] = event
            if event.parent_call_id is not None:
                self.children.append((event.call_id, event.parent_call_id, event.path))
        raise ValueError("a hook that breaks")

    def on_call_end(self, event):
        with self.lock:
            begun = self.open[event.call_id]
            self.right &= (begun.path, begun.phase, begun.parent_call_id) == (
                event.path,
                event.phase,
                event.parent_call_id,
            )
            self.ended[event.call_id] += 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_a_thousand_mixed_calls_keep_every_record_right(any_loop):
    """Parents, paths, phases, modes and rewards are those of the call; counters add up exactly."""
    root, watch, collected = Root(), Watch(), {}
    cancelled = set(range(0, 1000, 11))
    outcomes = Counter()

    async def one(number):
        name = "reward" if number % 2 else "inference"
        with phase(name), track_rewards() as rewards:
            try:
                await root(Query(question=str(number)), training=number % 3 == 0)
                outcomes[name, "ok"] += 1
                collected[number] = list(rewards)
            except BaseException as error:
                if aio.is_cancellation(error):
                    outcomes[name, "cancelled"] += 1
                    raise
                outcomes[name, "failed"] += 1
                assert rewards == []
        assert FRAME.get() is None

    async def main():
        async with aio.task_group() as group:
            for number in range(1000):
                group.start_soon(limited, number)

    async def limited(number):
        if number in cancelled:
            with aio.deadline_scope(0):
                await one(number)
        else:
            await one(number)

    with hooks(watch):
        any_loop(main)
    counters = root.counters
    ok = {name: outcomes[name, "ok"] for name in ("inference", "reward")}
    failed = {name: outcomes[name, "failed"] for name in ("inference", "reward")}
    for name in ("inference", "reward"):
        assert counters[name].invocations == ok[name] + failed[name]
        assert counters[name].failed == failed[name]
        assert counters[name].cancelled == outcomes[name, "cancelled"]
    assert counters.invocations == root.cumulated_invocations == sum(ok.values()) + sum(failed.values())
    assert counters.cancelled == outcomes["inference", "cancelled"] + outcomes["reward", "cancelled"]
    assert failed["inference"] + failed["reward"] == sum(n % 35 == 0 for n in range(1000) if n not in cancelled)
    assert watch.right
    assert set(watch.ended.values()) == {1}
    assert set(watch.ended) == set(watch.open)
    paths = {call_id: event.path for call_id, event in watch.open.items()}
    for _, parent, path in watch.children:
        assert paths[parent] == path.rpartition("/")[0]
    for number, rewards in collected.items():
        given = [] if number % 7 == 0 else [("left/leaf", number), ("right/leaf", number)]
        assert sorted((path, value) for path, _, value in rewards) == given  # trio starts branches in any order
    assert FRAME.get() is None


@pytest.mark.parametrize("k", range(14))
async def test_cancelled_at_the_kth_await_everything_is_restored(k):
    """In calls and branches, for every k: no frame, no task, no lock stays; the end is told once."""

    class Counts(Hook):
        def __init__(self):
            self.begun = self.ended = 0

        def on_call_begin(self, event):
            self.begun += 1

        def on_call_end(self, event):
            self.ended += 1

    root, hook = Root(), Counts()
    with hooks(hook):
        task = asyncio.create_task(root(Query(question="2")))
    for _ in range(k):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert hook.begun == hook.ended
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert FRAME.get() is None
    counters = root.counters
    started = 0 if k == 0 else 1
    assert counters.invocations + counters.cancelled == started
    assert (await root(Query(question="2")))["question"] == "2"


def test_a_module_serves_many_threads_and_loops():
    """Counters stay exact; nothing is bound to a loop."""
    root = Root()
    randoms = random.Random(7)
    numbers = [[randoms.randrange(1, 6) * 2 for _ in range(50)] for _ in range(8)]

    async def run(mine):
        for number in mine:
            with phase("reward" if number % 2 else "inference"):
                await root(Query(question=str(number)), training=number % 3 == 0)

    threads = [threading.Thread(target=lambda mine=mine: asyncio.run(run(mine))) for mine in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert root.counters.invocations == 400
    assert root.left.leaf.counters.nested == 400

"""Rewards: of one sample each, in the order of the starts of the calls, kept nowhere."""

import asyncio

import pytest

from synmod.errors import CallError
from synmod.scope import Hook, current_call, hooks, track_rewards
from tests.scope.part import Part


class Giver(Part):
    """Gives its input as a reward, after waiting as long as asked."""

    def __init__(self, name, hooks=()):
        super().__init__(name, self.give, hooks)

    async def give(self, x):
        value, delay = x
        await asyncio.sleep(delay)
        self.module.add_reward(value, "named" if value > 10 else None)
        return self.module.rewards


async def test_rewards_come_by_the_start_of_the_calls():
    """Not by completion: the slow first call stands first."""
    slow, fast = Giver("slow"), Giver("fast")

    async def body(_):
        await asyncio.gather(slow((1.0, 0.02)), fast((20.0, 0)))
        top.module.add_reward(5)
        assert top.module.rewards == (5.0, 1.0, 20.0)
        assert slow.module.rewards == (1.0,)
        assert current_call().rewards == (("", None, 5.0), ("slow", None, 1.0), ("fast", "named", 20.0))

    top = Part("top", body)
    with track_rewards() as rewards:
        await top()
    assert rewards == [("", None, 5.0), ("slow", None, 1.0), ("fast", "named", 20.0)]
    assert isinstance(rewards, list)
    assert top.module.rewards == ()


async def test_a_block_collects_entry_calls_that_end_inside():
    """By the start of the calls, whoever ended first; nested blocks both have them."""
    first, second, late = Giver("first"), Giver("second"), Giver("late")
    with track_rewards() as outer:
        with track_rewards() as inner:
            pending = asyncio.create_task(late((3.0, 0.05)))
            await asyncio.gather(first((1.0, 0.02)), second((2.0, 0.0)))
        assert inner == [("", None, 1.0), ("", None, 2.0)]
        await pending
    assert sorted(reward[2] for reward in outer) == [1.0, 2.0, 3.0]
    assert inner == [("", None, 1.0), ("", None, 2.0)]


async def test_concurrent_samples_never_mix():
    """A hundred runs of one part, each with its own rewards."""
    child = Giver("child")

    async def body(n):
        await asyncio.gather(*(child((float(n), 0.001 * (n % 3))) for _ in range(3)))
        return child.module.rewards

    top = Part("top", body)
    with track_rewards() as rewards:
        values = await asyncio.gather(*(top(n) for n in range(100)))
    assert values == [(float(n),) * 3 for n in range(100)]
    assert [value for _, _, value in rewards] == [float(n) for n in range(100) for _ in range(3)]


async def test_the_rewards_of_a_failed_call_are_gone():
    """Also those of the calls below it, and also if the caller goes on."""
    leaf = Giver("leaf")

    async def fails(_):
        await leaf((1.0, 0))
        failing.module.add_reward(2)
        raise ValueError

    failing = Part("failing", fails)

    async def body(caught):
        top.module.add_reward(3)
        if not caught:
            await failing()
        with pytest.raises(ValueError):
            await failing()
        return top.module.rewards

    top = Part("top", body)
    with track_rewards() as rewards:
        assert await top(True) == (3.0,)
        with pytest.raises(ValueError):
            await top(False)
    assert rewards == [("", None, 3.0)]


async def test_the_end_of_an_entry_call_has_them():
    """The end record carries the rewards of the run; those of nested calls do not."""
    ends = []

    class Ends(Hook):
        def on_call_end(self, event):
            ends.append((event.name, event.rewards))

    child = Giver("child")
    with hooks(Ends()):
        await Part("top", lambda _: child((1.0, 0)))()
    assert ends == [("child", ()), ("top", (("child", None, 1.0),))]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "1", [1], 10**400])
async def test_what_is_no_finite_number_is_refused(value):
    """Told at the line that gives it."""

    async def body(_):
        part.module.add_reward(value)

    part = Part("p", body)
    with pytest.raises(CallError, match="reward"):
        await part()


def test_outside_a_call_there_is_nobody_to_reward():
    """A reward belongs to one sample."""
    part = Part("p")
    with pytest.raises(CallError, match="call"):
        part.module.add_reward(1.0)
    assert part.module.rewards == ()


async def test_the_path_is_that_of_the_giver():
    """A part that gives for another's sake is named by its own place."""
    child = Giver("child")

    async def helper(_):
        middle.module.add_reward(7)

    inner = Part("inner", helper)

    async def between(_):
        await inner()
        await child((1.0, 0))

    middle = Part("middle", between, b=inner, c=child)
    with track_rewards() as rewards:
        await Part("top", lambda _: middle(), a=middle)()
    assert rewards == [("a", None, 7.0), ("a/c", None, 1.0)]


async def test_ten_thousand_rewards_are_collected_in_order():
    """However many entry calls end, and whenever."""
    part = Giver("p")
    with track_rewards() as rewards:
        await asyncio.gather(*(part((float(n), 0.0001 * (n % 10))) for n in range(2_000)))
    assert [value for _, _, value in rewards] == [float(n) for n in range(2_000)]

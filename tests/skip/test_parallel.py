"""Parallel branches: skips as scheduling edges of graphs; in hand-written calls nothing waits."""

import asyncio

import pytest

import synmod as sm
from synmod.skip import SkipError, SkipVerifyError, peek, pop, skip_layout, skippable, stash
from tests.skip.parts import QUERY, Cite, Document, Query, Retrieve, Tell, calling

LOG = []


@skippable(stash={"doc": Document})
class Slow(sm.Module):
    """Stashes late."""

    async def call(self, inputs) -> Query:
        LOG.append("producer begins")
        for _ in range(5):
            await asyncio.sleep(0)
        stash("doc", Document(text=inputs["question"]))
        LOG.append("producer ends")
        return Query(question="made")


@skippable(pop={"doc": Document})
class Takes(sm.Module):
    """Pops."""

    async def call(self, inputs) -> Document:
        LOG.append("consumer begins")
        return pop("doc")


@skippable(peek={"doc": Document})
class Looks(sm.Module):
    """Peeks."""

    async def call(self, inputs) -> Document:
        for _ in range(3):
            await asyncio.sleep(0)
        LOG.append("looks")
        return peek("doc")


@pytest.fixture(autouse=True)
def empty_log():
    """Nothing was logged yet."""
    LOG.clear()


class Notes(sm.Module):
    """Notes when it runs."""

    async def call(self, inputs) -> Query:
        LOG.append("other branch")
        return inputs


async def test_a_consumer_in_a_parallel_branch_waits_for_its_producer_alone():
    """A skip is a scheduling edge; a third branch is not held up."""
    x = sm.Input(Query)
    taken = await Takes()(x)
    looked = await Looks()(x)
    other = await Notes()(x)
    made = await Slow()(x)
    program = sm.Program(inputs=x, outputs=[taken, looked, other, made])
    for _ in range(3):
        LOG.clear()
        outs = await program(QUERY)
        assert [out["text"] for out in outs[:2]] == ["why", "why"]
        assert LOG == ["other branch", "producer begins", "producer ends", "looks", "consumer begins"]
    assert (await program.clone()(QUERY))[0]["text"] == "why"


async def test_ends_may_be_deep_inside_steps():
    """The edge is between the steps of the graph that hold them."""
    x = sm.Input(Query)
    taken = await sm.Sequential([Tell(), Takes()])(x)
    made = await sm.Sequential([Slow(), Tell()])(x)
    outs = await sm.Program(inputs=x, outputs=[taken, made])(QUERY)
    assert outs[0]["text"] == "why"
    assert LOG == ["producer begins", "producer ends", "consumer begins"]


async def test_a_skip_against_the_data_flow_is_a_cycle():
    """Both modules and the name are told."""
    x = sm.Input(Query)
    taken = await Takes()(x)
    made = await Slow()(await sm.Lambda(as_query)(taken))
    with pytest.raises(SkipVerifyError, match="'takes'.*'doc'.*'slow'.*cycle") as caught:
        sm.Program(inputs=x, outputs=made)
    assert [(p.kind, p.path, p.name, p.other_path) for p in caught.value.problems] == [
        ("cycle", "takes", "doc", "slow")
    ]


async def as_query(inputs) -> Query:
    """A document as a query."""
    return Query(question=inputs["text"])


def gathering(*names):
    """A module that runs its parts at the same time."""

    async def call(self, inputs):
        outs = await asyncio.gather(*(getattr(self, name)(inputs) for name in names))
        return list(outs)

    return calling(call)


async def test_an_optional_skip_against_the_data_flow_is_absent():
    """As in a row: whoever comes before the producer finds nothing, and the pair after it is a pair."""

    async def call(self, inputs):
        return inputs if pop("doc", default=None) is None else None

    x = sm.Input(Query)
    symbol = await calling(call, pop=["doc"], optional=["doc"])(x)
    pair = await sm.Sequential([Retrieve(), Cite()])(symbol)
    program = sm.Program(inputs=x, outputs=pair)
    assert "cited_question" in (await program(QUERY)).keys()
    assert dict(skip_layout(program)) == {(None, "doc"): ("sequential/0", "sequential/1")}


@pytest.mark.parametrize("names", ["ab", "ba"])
async def test_a_skip_never_waits(names):
    """In a hand-written call a consumer that begins before its producer has returned fails at its entry."""
    program = gathering(*names)
    program.a, program.b = Slow(), Takes()
    with pytest.raises(SkipError, match="'b'.*'doc' has not been stashed"):
        await program(QUERY)
    assert "consumer begins" not in LOG


async def test_a_lock_of_the_user_around_a_consumer_cannot_hang():
    """The producer needs the lock that the consumer holds: an error at once, where a wait would never end."""
    gate = asyncio.Lock()

    async def call(self, inputs):
        async with gate:
            producer = asyncio.create_task(self.locked(inputs))
            await asyncio.sleep(0)
            with pytest.raises(SkipError, match="has not been stashed"):
                await self.takes(inputs)
        await producer
        return await self.takes(inputs)

    async def locked(self, inputs):
        async with gate:
            return await self.slow(inputs)

    program = calling(call)
    program.locked, program.takes = calling(locked), Takes()
    program.locked.slow = Slow()
    assert (await asyncio.wait_for(program(QUERY), 5))["text"] == "why"

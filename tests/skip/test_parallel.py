"""Parallel branches: skips as scheduling edges of graphs, and waiting in hand-written calls."""

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
        await stash("doc", Document(text=inputs["question"]))
        LOG.append("producer ends")
        return Query(question="made")


@skippable(pop={"doc": Document})
class Takes(sm.Module):
    """Pops."""

    async def call(self, inputs) -> Document:
        LOG.append("consumer begins")
        return await pop("doc")


@skippable(peek={"doc": Document})
class Looks(sm.Module):
    """Peeks."""

    async def call(self, inputs) -> Document:
        for _ in range(3):
            await asyncio.sleep(0)
        LOG.append("looks")
        return await peek("doc")


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
        return inputs if await pop("doc", default=None) is None else None

    x = sm.Input(Query)
    symbol = await calling(call, pop=["doc"], optional=["doc"])(x)
    pair = await sm.Sequential([Retrieve(), Cite()])(symbol)
    program = sm.Program(inputs=x, outputs=pair)
    assert "cited_question" in (await program(QUERY)).keys()
    assert dict(skip_layout(program)) == {(None, "doc"): ("sequential/0", "sequential/1")}


async def test_entry_waits_for_a_call_under_way_that_stashes():
    """In a hand-written call: the consumer begins when the outermost call around the producer has committed."""
    program = gathering("a", "b")
    program.a, program.b = sm.Sequential([Tell(waits=4), Slow(), Notes()]), sm.Sequential([Tell(), Takes()])
    for _ in range(2):
        LOG.clear()
        outs = await program(QUERY)
        assert outs[1]["text"] == "why"
        assert LOG == ["producer begins", "producer ends", "other branch", "consumer begins"]


async def test_a_producer_that_has_not_begun_is_not_waited_for():
    """Nowhere else does anything wait."""
    program = gathering("b", "a")
    program.a, program.b = Slow(), Takes()
    with pytest.raises(SkipError, match="'b'.*'doc' has not been stashed.*'a'"):
        await program(QUERY)


async def test_the_wait_ends_with_the_producer():
    """If that call fails, or ends without the stash, the consumer fails at entry."""

    @skippable(stash=["doc"])
    class Fails(sm.Module):
        async def call(self, inputs):
            await asyncio.sleep(0)
            raise ValueError("no document")

    async def call(self, inputs):
        outs = await asyncio.gather(self.a(inputs), self.b(inputs), return_exceptions=True)
        assert isinstance(outs[0], ValueError)
        assert "has not been stashed" in str(outs[1])
        return inputs

    program = calling(call)
    program.a, program.b = sm.Sequential([Fails()]), Takes()
    await program(QUERY)


async def test_a_waiting_consumer_may_be_cancelled():
    """It leaves nothing behind; the producer's value is there for the next."""

    async def call(self, inputs):
        producer = asyncio.create_task(self.a(inputs))
        await asyncio.sleep(0)
        consumer = asyncio.create_task(self.b(inputs))
        await asyncio.sleep(0)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        await producer
        return await self.b(inputs)

    program = calling(call)
    program.a, program.b = Slow(), Takes()
    assert (await program(QUERY))["text"] == "why"


async def test_consumers_that_wait_for_each_other():
    """A circle of waits is an error that names them; nothing hangs."""

    @skippable(pop=["x"], stash=["y"])
    class One(sm.Module):
        async def call(self, inputs):
            await pop("x")
            await stash("y", 1)
            return inputs

    @skippable(pop=["y"], stash=["x"])
    class Two(sm.Module):
        async def call(self, inputs):
            await pop("y")
            await stash("x", 1)
            return inputs

    program = gathering("a", "b")
    program.a, program.b = sm.Sequential([Tell(waits=2), One()]), sm.Sequential([Tell(waits=2), Two()])
    with pytest.raises(SkipError, match="wait for each other") as caught:
        await asyncio.wait_for(program(QUERY), 5)
    assert "'a/1'" in str(caught.value) and "'b/1'" in str(caught.value)


def test_waits_work_on_every_loop(any_loop):
    """asyncio, uvloop and trio."""
    from synmod.flow import together

    async def call(self, inputs):
        outs = await together(lambda: self.a(inputs), lambda: self.b(inputs))
        return outs

    @skippable(stash=["doc"])
    class Waits(sm.Module):
        async def call(self, inputs):
            from synmod.leaves import aio

            await aio.sleep(0.001)
            await stash("doc", Document(text="x"))
            return inputs

    program = calling(call)
    program.a, program.b = Waits(), Takes()
    assert any_loop(program, QUERY)[1]["text"] == "x"

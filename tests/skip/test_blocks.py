"""Skips under the blocks: routers, fallbacks, retries, samples."""

import pytest

import synmod as sm
from synmod.skip import SkipVerifyError, pop, skippable, stash, verify_skippables
from synmod.testing import FunctionLM
from tests.skip.parts import QUERY, Cite, Document, Dropped, Query, Retrieve, Tell, calling


class Choice(sm.Module):
    """Decides as it is told."""

    def __init__(self, choice="a"):
        super().__init__()
        self.choice = choice

    async def call(self, inputs) -> sm.JsonDataModel:
        return sm.JsonDataModel({"choice": self.choice}, schema={"type": "object", "properties": {"choice": {}}})


async def takes(self, inputs):
    """Pops if it can."""
    doc = pop("doc", default=None)
    return inputs if doc is None else inputs + doc


def router(kind, choice, **routes):
    """A Branch or a Route that takes one label."""
    if kind == "branch":
        return sm.Branch(routes, language_model=FunctionLM(lambda _: {"choice": choice}))
    return sm.Route(Choice(choice), routes)


@pytest.mark.parametrize("kind", ["branch", "route"])
async def test_producers_behind_a_router(kind):
    """Side by side they may stash one name; an optional pop takes it where it is there."""
    both = router(kind, "b", a=Retrieve(), b=Retrieve())
    row = sm.Sequential([both, Cite()])
    assert (await row(QUERY))["cited_question"] == "why"
    for choice, keys in (("a", 2), ("b", 1)):
        row = sm.Sequential(
            [router(kind, choice, a=Retrieve(), b=sm.Identity()), calling(takes, pop=["doc"], optional=["doc"])]
        )
        assert len((await row(QUERY)).keys()) == keys


async def test_alternatives_on_symbols_see_the_lane_alike():
    """What one route pops is still there for the next one, also where the pops are optional."""
    routes = {name: calling(takes, pop=["doc"], optional=["doc"]) for name in "ab"}
    row = sm.Sequential([Retrieve(), sm.Route(Choice(), routes, merge=False)])
    symbols = await sm.build(row, Query)
    assert [sorted(symbol.keys()) for symbol in symbols] == [["question", "question_1"]] * 2
    assert sorted((await row(QUERY))[0].keys()) == ["question", "question_1"]


async def test_a_consumer_that_is_not_taken():
    """No error: the leftover is dropped with one event."""
    hook = Dropped()
    row = sm.Sequential([Retrieve(), router("branch", "b", a=Cite(), b=sm.Identity())])
    with sm.hooks(hook):
        await row(QUERY)
    assert [event.names for event in hook.events] == [("doc",)]


async def test_routers_on_symbols():
    """Branches are called side by side; afterwards what some of them stash is there."""
    x = sm.Input(Query)
    y = await router("branch", "a", a=Retrieve(), b=Retrieve())(x)
    program = sm.Program(inputs=x, outputs=await typed_cite()(y))
    assert (await program(QUERY))["question_1"] == "why"
    untyped = sm.Sequential([router("branch", "a", a=Retrieve(), b=Retrieve()), Cite()])
    assert sorted((await sm.build(untyped, Query)).keys()) == ["cited_question", "question"]
    row = sm.Sequential([router("route", "a", a=Retrieve(), b=sm.Identity()), typed_cite()])
    assert len((await sm.build(row, Query)).keys()) == 2
    with pytest.raises(SkipVerifyError):
        verify_skippables(sm.Sequential([router("branch", "a", a=Retrieve()), Retrieve(), Cite()]))


def typed_cite():
    """Pops a query."""

    async def call(self, inputs):
        return inputs + pop("doc")

    return calling(call, pop={"doc": Query})


class Fails(sm.Module):
    """Fails the first time, after it has run a child."""

    def __init__(self, child):
        super().__init__()
        self.child = child
        self.failed = False

    async def call(self, inputs):
        out = await self.child(inputs)
        if not self.failed:
            self.failed = True
            raise ValueError("not yet")
        return out


async def test_fallbacks_and_retries():
    """Producers, consumers and rows of both: what failed has not happened."""
    fallback = sm.Fallback(Fails(Retrieve()), Retrieve(), on=ValueError)
    row = sm.Sequential([fallback, sm.Retry(Fails(Cite()), on=ValueError)])
    assert (await row(QUERY))["cited_question"] == "why"
    consumers = sm.Fallback(sm.Sequential([Fails(Cite())]), Cite(), on=ValueError)
    assert (await sm.Sequential([sm.Retry(Fails(Retrieve()), on=ValueError), consumers])(QUERY))[
        "cited_question"
    ] == "why"


async def test_samples_of_a_consumer():
    """Runs of one module at the same time all get the value."""

    @skippable(pop=["doc"])
    class Samples(sm.Module):
        async def call(self, inputs) -> Document:
            return Document(text=(pop("doc"))["question"])

    row = sm.Sequential([Retrieve(), sm.BestOf(Samples(), 3, reward=lambda inputs, outputs: 1.0)])
    assert (await row(QUERY))["text"] == "why"
    assert (await sm.Sequential([Retrieve(), sm.Majority(Samples(), 3)])(QUERY))["text"] == "why"


async def test_samples_of_a_producer():
    """What the sample that is kept has stashed stays, and nothing of the others."""
    numbers = iter(range(100))

    @skippable(stash=["doc"])
    class Numbered(sm.Module):
        async def call(self, inputs) -> Document:
            number = next(numbers)
            stash("doc", number)
            return Document(text=str(number % 3))

    @skippable(pop=["doc"])
    class Told(sm.Module):
        async def call(self, inputs) -> Document:
            return Document(text=f"{inputs['text']} {pop('doc')}")

    def best(outputs):
        return -abs(int(outputs["text"]) - 1)

    class Critic(sm.Module):
        async def call(self, inputs):
            schema = {"type": "object", "properties": {"critique": {"type": "string"}, "score": {"type": "number"}}}
            return sm.JsonDataModel({"critique": "", "score": -best(inputs)}, schema=schema)

    for sampler in (
        sm.BestOf(Numbered(), 3, reward=best),
        sm.BestOf(sm.Sequential([Numbered(), sm.Identity()]), 3, reward=best, threshold=0),
        sm.Majority(Numbered(), 3),
        sm.Refine(Numbered(), Critic(), rounds=3),
    ):
        hook = Dropped()
        with sm.hooks(hook):
            told = (await sm.Sequential([sampler, Told()])(QUERY))["text"].split()
        assert int(told[0]) == int(told[1]) % 3
        assert hook.events == []


async def test_rows_of_a_map_have_lanes_of_their_own():
    """A pair inside the mapped module meets in its own call, for every item."""

    class Shelf(sm.DataModel):
        docs: list[Document]

    @skippable(stash=["doc"])
    class Keep(sm.Module):
        async def call(self, inputs) -> Document:
            stash("doc", inputs)
            return Document(text="gone")

    @skippable(pop=["doc"])
    class Back(sm.Module):
        async def call(self, inputs) -> Document:
            return pop("doc")

    mapped = sm.Map(sm.Sequential([Keep(), Tell(waits=2), Back()]), "docs")
    out = await mapped(Shelf(docs=[Document(text=str(number)) for number in range(50)]))
    assert [doc["text"] for doc in out["docs"]] == [str(number) for number in range(50)]


async def test_what_has_open_skips_is_not_remembered():
    """A hit would leave out the stash, and give one call what another has popped; a closed pair is remembered."""
    for row in ([sm.Cached(Retrieve()), Cite()], [Retrieve(), sm.Lambda(lambda _: QUERY), sm.Cached(Cite())]):
        program = sm.Sequential(row)
        for question in ("one", "other", "one"):
            assert (await program(Query(question=question)))["cited_question"] == question
    middle = Tell()
    closed = sm.Sequential([sm.Cached(sm.Sequential([Retrieve(), middle, Cite()]))])
    for _ in range(2):
        assert (await closed(QUERY))["cited_question"] == "why"
    assert len(middle.seen) == 1

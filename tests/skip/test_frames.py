"""The frame in hand: given to calls, written down, read again; values that are retained."""

import pytest

import synmod as sm
from synmod.skip import Namespace, SkipError, SkipFrame, current_skip_frame, pop, skippable, stash, use_skip_frame
from tests.skip.parts import QUERY, Cite, Document, Dropped, Query, Retrieve, Tell, calling, popper, stasher


async def test_a_frame_given_by_hand_keeps_what_nobody_pops():
    """Stage one leaves its skips there, stage two goes on with them."""
    frame, hook = SkipFrame(), Dropped()
    with sm.hooks(hook), use_skip_frame(frame):
        await Retrieve()(QUERY)
        assert list(frame.keys()) == [(None, "doc")] and len(frame) == 1
        out = await Cite()(QUERY)
    assert out["cited_question"] == "why"
    assert len(frame) == 0
    assert hook.events == []
    with pytest.raises(SkipError, match="has not been stashed"):
        await Cite()(QUERY)


async def test_a_frame_may_be_given_inside_a_call():
    """The calls below run on it; the lane of the caller stays as it is."""

    async def call(self, inputs):
        await self.retrieve(inputs)
        frame = SkipFrame.from_json({"doc": {"json": {"question": "other"}, "schema": Query.get_schema()}})
        with use_skip_frame(frame):
            out = await self.inner(inputs)
        assert len(frame) == 0
        assert list(current_skip_frame().keys()) == [(None, "doc")]
        return out

    program = calling(call)
    program.retrieve, program.inner = Retrieve(), sm.Sequential([Tell(), Cite()])
    assert (await program(QUERY))["cited_question"] == "other"


async def test_a_frame_is_written_and_read():
    """JSON and data models with their schemas; isolated names with the number of the Namespace; back to equal skips."""
    one, nameless = Namespace("one"), Namespace()

    def stages():
        isolated = [stasher("x").isolate(one), stasher("x").isolate(nameless)]
        return sm.Sequential([stasher("doc"), stasher("a/b"), *isolated])

    frame = SkipFrame()
    with use_skip_frame(frame), pytest.raises(sm.SkipVerifyError):
        await stages()(QUERY)

    async def all_of_them(self, inputs):
        for member in self.members:
            await member(inputs)
        return inputs

    program = calling(all_of_them)
    program.members = [*stages().members]
    with use_skip_frame(frame):
        await program(QUERY)
    written = frame.to_json()
    assert list(written) == ["doc", "a~1b", "one-0/x", "1/x"]
    assert written["doc"] == {"json": {"question": "why"}, "schema": Query.get_schema()}

    consumers = calling(all_of_them)
    consumers.members = [popper("x").isolate(one), popper("doc"), popper("a/b"), popper("x").isolate(nameless)]
    again = SkipFrame.from_json(written)
    assert again.to_json() == written
    with use_skip_frame(again):
        await consumers(QUERY)
    assert len(again) == 0


async def test_what_is_no_json_cannot_be_written():
    """A DataError names the slot."""

    async def call(self, inputs):
        await stash("doc", object())
        return inputs

    frame = SkipFrame()
    with use_skip_frame(frame):
        await calling(call, stash=["doc"])(QUERY)
    with pytest.raises(sm.DataError, match="'doc'"):
        frame.to_json()


@pytest.mark.parametrize(
    "json", [{"doc": 1}, {"doc": {"json": 1}}, {"a/b/c": {"json": 1, "schema": None}}, {"x": {"json": 1, "schema": {}}}]
)
def test_what_is_no_frame_cannot_be_read(json):
    """A DataError names the slot."""
    with pytest.raises(sm.DataError, match=next(iter(json))):
        SkipFrame.from_json(json)


async def test_a_slot_that_the_program_cannot_place():
    """A namespace that the program has not is a DataError with those it has."""
    frame = SkipFrame.from_json({"two-0/doc": {"json": 1, "schema": None}})
    with use_skip_frame(frame), pytest.raises(sm.DataError, match="'two-0'"):
        await Cite().isolate(Namespace("one"))(QUERY)


async def test_retained_values_may_be_popped_again_by_their_consumer():
    """In a loop inside one call, and over several calls on one frame; by nobody else, and `retain` times."""

    async def loop(self, inputs):
        current_skip_frame().retain = 2
        await self.retrieve(inputs)
        for _ in range(3):
            out = await self.cite(inputs)
            assert len(current_skip_frame()) == 0
        with pytest.raises(SkipError, match="has not been stashed"):
            await self.other(inputs)
        with pytest.raises(SkipError, match="has not been stashed"):
            await self.cite(inputs)
        return out

    program = calling(loop)
    program.retrieve, program.cite, program.other = Retrieve(), Cite(), Cite()
    assert (await program(QUERY))["cited_question"] == "why"

    frame, cite = SkipFrame(), Cite()
    frame.retain = 1
    with use_skip_frame(frame):
        await Retrieve()(QUERY)
        await cite(QUERY)
        await cite(QUERY)
        with pytest.raises(SkipError):
            await cite(QUERY)


async def test_the_frame_is_seen_from_the_running_call():
    """Inside a call its own pending commands show; outside the frame shows what is committed."""
    views = []

    @skippable(stash=["b"], pop=["a"])
    class Both(sm.Module):
        async def call(self, inputs):
            frame = current_skip_frame()
            views.append(list(frame.keys()))
            await pop("a")
            await stash("b", Document(text="x"))
            views.append(list(frame.keys()))
            return inputs

    await sm.Sequential([stasher("a"), Both(), popper("b")])(QUERY)
    assert views == [[(None, "a")], [(None, "b")]]
    with pytest.raises(sm.ArgumentError):
        use_skip_frame({})

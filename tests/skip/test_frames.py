"""The frame in hand: given to calls, written down, read again."""

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
    """JSON and data models with their schemas, isolated names with their Namespace; back to equal skips."""
    one, two = Namespace("one"), Namespace("two")

    def stages():
        isolated = [stasher("x").isolate(one), stasher("x").isolate(two)]
        return sm.Sequential([stasher("doc"), stasher("a/b"), *isolated])

    async def all_of_them(self, inputs):
        for member in self.members:
            await member(inputs)
        return inputs

    frame = SkipFrame()
    with use_skip_frame(frame):
        await stages()(QUERY)
    written = frame.to_json()
    assert list(written) == ["doc", "a~1b", "one/x", "two/x"]
    assert written["doc"] == {"json": {"question": "why"}, "schema": Query.get_schema()}

    consumers = calling(all_of_them)
    consumers.members = [popper("x").isolate(one), popper("doc"), popper("a/b"), popper("x").isolate(two)]
    again = SkipFrame.from_json(written, namespaces=[one, two])
    assert again.to_json() == written
    with use_skip_frame(again):
        await consumers(QUERY)
    assert len(again) == 0


@pytest.mark.parametrize("names", [[None], ["one", "one"]])
async def test_namespaces_without_a_name_of_their_own_are_not_written(names):
    """A DataError names the slot."""
    frame = SkipFrame()
    with use_skip_frame(frame):
        for name in names:
            await stasher("doc").isolate(Namespace(name))(QUERY)
        with pytest.raises(sm.DataError, match="slot 'doc' in Namespace"):
            frame.to_json()


def test_a_namespace_that_is_not_given_cannot_be_read():
    """A DataError names the slot, and how to give it."""
    with pytest.raises(sm.DataError, match="'one/doc'.*namespaces="):
        SkipFrame.from_json({"one/doc": {"json": 1, "schema": None}}, namespaces=[Namespace("two")])


async def test_stages_of_a_program_go_on_where_the_one_before_stopped():
    """Rows of modules run on a frame in hand may stash for the next stage, and pop what is there; nothing else."""
    frame = SkipFrame()
    with use_skip_frame(frame):
        out = await sm.Sequential([Retrieve(), Tell()])(QUERY)
    with use_skip_frame(SkipFrame.from_json(frame.to_json())) as again:
        out = await sm.Sequential([Tell(), sm.Sequential([Cite()])])(out)
        assert len(again) == 0
        with pytest.raises(sm.SkipVerifyError, match="'1' declared 'doc' as poppable but it was not stashed"):
            await sm.Sequential([Tell(), Cite()])(out)
    assert "cited_question" in out.keys()


async def test_what_is_no_json_cannot_be_written():
    """A DataError names the slot."""

    async def call(self, inputs):
        stash("doc", object())
        return inputs

    frame = SkipFrame()
    with use_skip_frame(frame):
        await calling(call, stash=["doc"])(QUERY)
    with pytest.raises(sm.DataError, match="'doc'"):
        frame.to_json()


@pytest.mark.parametrize(
    "json",
    [
        {"doc": 1},
        {3: 1},
        {"doc": {"json": 1}},
        {"a/b/c": {"json": 1, "schema": None}},
        {"x": {"json": 1, "schema": {}}},
    ],
)
def test_what_is_no_frame_cannot_be_read(json):
    """A DataError names the slot."""
    with pytest.raises(sm.DataError, match=str(next(iter(json)))):
        SkipFrame.from_json(json)


async def test_the_frame_is_seen_from_the_running_call():
    """Inside a call its own pending commands show; outside the frame shows what is committed."""
    views = []

    @skippable(stash=["b"], pop=["a"])
    class Both(sm.Module):
        async def call(self, inputs):
            frame = current_skip_frame()
            views.append(list(frame.keys()))
            pop("a")
            stash("b", Document(text="x"))
            views.append(list(frame.keys()))
            return inputs

    await sm.Sequential([stasher("a"), Both(), popper("b")])(QUERY)
    assert views == [[(None, "a")], [(None, "b")]]
    with pytest.raises(sm.ArgumentError):
        use_skip_frame({})


@pytest.mark.parametrize("namespaces", [["one"], [], [Namespace("one"), Namespace("one")]])
def test_a_frame_is_read_with_the_one_namespace_of_each_slot(namespaces):
    """None of its name, two of it, and a name instead of a Namespace are a DataError; others do not matter."""
    written = {"one/doc": {"json": 1, "schema": None}}
    with pytest.raises(sm.DataError, match="amespaces"):
        SkipFrame.from_json(written, namespaces=namespaces)
    one = Namespace("one")
    others = [Namespace(), Namespace(), Namespace("two"), Namespace("two")]
    assert list(SkipFrame.from_json(written, namespaces=[one, *others]).keys()) == [(one, "doc")]

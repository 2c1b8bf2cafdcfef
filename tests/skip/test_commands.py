"""Commands: plain functions, checked when they are called."""

import pytest

import synmod as sm
from synmod.skip import Namespace, SkipError, peek, pop, skippable, stash
from tests.skip.parts import QUERY, Cite, Document, Query, Retrieve, Tell, calling, popper, stasher


async def test_a_value_goes_past_the_modules_between():
    """The consumer gets the value, the module between does not see it."""
    middle = Tell()
    out = await sm.Sequential([Retrieve(), middle, Cite()])(QUERY)
    assert out.get_json() == {"question": "why", "cited_question": "why"}
    assert middle.seen == [["question"]]


async def test_a_slot_is_a_plain_reference():
    """Large values are not copied; None is a value like any other."""
    got = []
    given = Document(text="x")

    async def produce(self, inputs):
        stash("doc", given)
        stash("none", None)
        return inputs

    async def consume(self, inputs):
        got.extend([pop("doc"), pop("none")])
        return inputs

    producer, consumer = calling(produce, stash=["doc", "none"]), calling(consume, pop=["doc", "none"])
    await sm.Sequential([producer, consumer])(QUERY)
    assert got[0] is given
    assert got[1] is None


async def test_commands_work_in_functions_that_call_calls():
    """Also in plain functions."""

    def below(inputs):
        stash("doc", inputs)

    async def produce(self, inputs):
        below(inputs)
        return inputs

    out = await sm.Sequential([calling(produce, stash=["doc"]), Cite()])(QUERY)
    assert "cited_question" in out.keys()


@pytest.mark.parametrize("command", [lambda: stash("x", 1), lambda: pop("x"), lambda: peek("x")])
async def test_outside_a_skippable_call(command):
    """In no call, and in that of a module without the decorator, naming the command."""
    with pytest.raises(SkipError, match="outside a skippable"):
        command()

    async def call(self, inputs):
        command()

    with pytest.raises(SkipError, match="outside a skippable"):
        await calling(call)(QUERY)


async def test_names_must_be_declared():
    """Each command has its own phrase, and names path, name and Namespace."""
    one = Namespace("one")

    async def stashing(self, inputs):
        stash("other", 1)

    async def popping(self, inputs):
        pop("other")

    for call, text in ((stashing, "stashable"), (popping, "poppable")):
        module = calling(call, stash=["doc"], optional=[]).isolate(one)
        with pytest.raises(SkipError, match=f"'other'.*has not been declared as {text}"):
            await module(QUERY)
    with pytest.raises(SkipError, match="'0'"):
        await sm.Sequential([calling(stashing, stash=["doc"]), popper("doc")])(QUERY)


async def test_twice_in_one_call():
    """A second pop, and a second stash, are errors."""

    async def pops(self, inputs):
        pop("doc")
        pop("doc")

    async def stashes(self, inputs):
        stash("doc", 1)
        stash("doc", 2)

    with pytest.raises(SkipError, match="has already been popped"):
        await sm.Sequential([Retrieve(), calling(pops, pop=["doc"])])(QUERY)
    with pytest.raises(SkipError, match="has already been stashed"):
        await calling(stashes, stash=["doc"])(QUERY)


async def test_an_occupied_slot_names_its_producer():
    """Stashing onto it is an error, unless it replaces."""

    async def twice(self, inputs):
        await self.first(inputs)
        return await self.second(inputs)

    program = calling(twice)
    program.first, program.second = stasher("doc"), stasher("doc")
    with pytest.raises(SkipError, match=r"'second'.*'doc'.*has already been stashed by 'first'"):
        await program(QUERY)

    async def loop(self, inputs):
        for number in range(3):
            await self.first(inputs, number=number)
        return await self.last(inputs)

    got = []

    async def replaces(self, inputs, number):
        stash("doc", number, replace=True)
        return inputs

    async def takes(self, inputs):
        got.append(pop("doc"))
        return inputs

    program = calling(loop)
    program.first, program.last = calling(replaces, stash=["doc"]), calling(takes, pop=["doc"])
    await program(QUERY)
    assert got == [2]


async def test_typed_skips_are_checked():
    """A value of another kind is a SchemaError at the stash; plain JSON becomes data."""

    async def wrong(self, inputs):
        stash("doc", {"no": 1})
        return inputs

    async def right(self, inputs):
        stash("doc", {"text": "x"})
        return inputs

    got = []

    async def takes(self, inputs):
        got.append(pop("doc"))
        return inputs

    with pytest.raises(sm.SchemaError, match=r"stash\('doc'\)"):
        await calling(wrong, stash={"doc": Document})(QUERY)
    await sm.Sequential([calling(right, stash={"doc": Document}), calling(takes, pop={"doc": Document})])(QUERY)
    assert got[0].to(Document) == Document(text="x")
    with pytest.raises(sm.SchemaError, match="'text', which is missing"):
        await sm.Sequential([Retrieve(), calling(takes, pop={"doc": Document})])(QUERY)


async def test_optional_names_may_be_absent():
    """Entry does not ask for them, the default comes, completeness accepts both."""
    got = []

    async def takes(self, inputs):
        got.append(pop("doc", default="nothing"))
        return inputs

    module = calling(takes, pop=["doc"], optional=["doc"])
    await module(QUERY)
    await sm.Sequential([Retrieve(), calling(takes, pop=["doc"], optional=["doc"])])(QUERY)
    assert got[0] == "nothing"
    assert got[1]["question"] == "why"


async def test_peeks_read_without_taking():
    """Many may follow one stash, before one pop."""
    got = []

    async def reads(self, inputs):
        got.append(peek("doc"))
        got.append(peek("doc"))
        return inputs

    await sm.Sequential([Retrieve(), calling(reads, peek=["doc"]), calling(reads, peek=["doc"]), Cite()])(QUERY)
    assert got == [QUERY] * 4
    assert isinstance(got[0], sm.JsonDataModel)
    assert Query in got[0]


@pytest.mark.parametrize("declared", [{"stash": ["b", "a"]}, {"pop": ["b", "a"]}])
async def test_a_call_must_keep_its_declaration(declared):
    """Names that were not stashed, or not popped, are listed sorted."""

    async def forgets(self, inputs):
        return inputs

    (command,) = declared
    word = {"stash": "stashed", "pop": "popped"}[command]
    program = sm.Sequential([stasher("a", "b"), calling(forgets, **declared)])
    if word == "stashed":
        program = calling(forgets, **declared)
    with pytest.raises(SkipError, match=rf"'a', 'b' must be {word} but have not.*`{command}\('a'"):
        await program(QUERY)


@skippable(pop=["doc"])
class Reads(sm.Module):
    """Notes that its body has begun."""

    begun = 0

    async def call(self, inputs):
        type(self).begun += 1
        pop("doc")
        return inputs


async def test_a_missing_value_is_found_before_the_body():
    """The error names path and name; no user code has run."""

    async def wrong_order(self, inputs):
        await self.reads(inputs)
        return await self.later(inputs)

    program = calling(wrong_order)
    program.reads, program.later = Reads(), Retrieve()
    with pytest.raises(SkipError, match=r"'reads'.*'doc' has not been stashed"):
        await program(QUERY)
    assert Reads.begun == 0

"""Commands: inert until awaited or yielded, and checked when they are performed."""

import asyncio
import gc
import re
import warnings

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
        await stash("doc", given)
        await stash("none", None)
        return inputs

    async def consume(self, inputs):
        got.extend([await pop("doc"), await pop("none")])
        return inputs

    producer, consumer = calling(produce, stash=["doc", "none"]), calling(consume, pop=["doc", "none"])
    await sm.Sequential([producer, consumer])(QUERY)
    assert got[0] is given
    assert got[1] is None


async def test_commands_work_in_functions_that_call_calls():
    """Idiom A works below the coroutine too."""

    async def below(inputs):
        await stash("doc", inputs)

    async def produce(self, inputs):
        await below(inputs)
        return inputs

    out = await sm.Sequential([calling(produce, stash=["doc"]), Cite()])(QUERY)
    assert "cited_question" in out.keys()


async def test_both_idioms_mix():
    """A generator may await, a coroutine may produce for a generator."""

    async def produce(self, inputs):
        await stash("a", inputs)
        yield stash("b", inputs)
        yield inputs

    out = await sm.Sequential([calling(produce, stash=["a", "b"]), popper("a", "b")])(QUERY)
    assert out["question"] == "why"


@pytest.mark.parametrize("command", [stash("x", 1), pop("x"), peek("x")])
async def test_outside_a_skippable_call(command):
    """In no call, and in that of a module without the decorator, naming the command."""
    with pytest.raises(SkipError, match="outside a skippable"):
        await command

    async def call(self, inputs):
        await command

    with pytest.raises(SkipError, match="outside a skippable"):
        await calling(call)(QUERY)


async def test_names_must_be_declared():
    """Each command has its own phrase, and names path, name and Namespace."""
    one = Namespace("one")

    async def stashing(self, inputs):
        await stash("other", 1)

    async def popping(self, inputs):
        await pop("other")

    for call, text in ((stashing, "stashable"), (popping, "poppable")):
        module = calling(call, stash=["doc"], optional=[]).isolate(one)
        with pytest.raises(SkipError, match=f"'other'.*has not been declared as {text}"):
            await module(QUERY)
    with pytest.raises(SkipError, match="'0'"):
        await sm.Sequential([calling(stashing, stash=["doc"]), popper("doc")])(QUERY)


async def test_twice_in_one_call():
    """A second pop, and a second stash, are errors."""

    async def pops(self, inputs):
        await pop("doc")
        await pop("doc")

    async def stashes(self, inputs):
        await stash("doc", 1)
        await stash("doc", 2)

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
        await stash("doc", number, replace=True)
        return inputs

    async def takes(self, inputs):
        got.append(await pop("doc"))
        return inputs

    program = calling(loop)
    program.first, program.last = calling(replaces, stash=["doc"]), calling(takes, pop=["doc"])
    await program(QUERY)
    assert got == [2]


@pytest.mark.slow
def test_a_command_that_is_never_awaited_warns():
    """One that was neither awaited nor yielded says so when it is collected."""
    with pytest.warns(RuntimeWarning, match=re.escape("stash('doc') was never awaited")):
        stash("doc", 1)
        gc.collect()
    with pytest.warns(RuntimeWarning, match=re.escape("pop('doc') was never awaited")):
        pop("doc")
        gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sm.run(sm.Sequential([Retrieve(), Cite()]), QUERY)
        gc.collect()


async def test_a_generator_gives_one_output_last():
    """A second value, a command after the output, no output: each is an ArgumentError naming the path."""

    async def second(self, inputs):
        yield inputs
        yield inputs

    async def late(self, inputs):
        yield inputs
        yield stash("doc", inputs)

    async def none(self, inputs):
        yield stash("doc", inputs)

    for call, text in (
        (second, "is not a command"),
        (late, "after its output"),
        (none, "without yielding an output"),
    ):
        declared = {} if call is second else {"stash": ["doc"]}
        program = sm.Sequential([calling(call, **declared or {"peek": ["p"], "optional": ["p"]}), sm.Identity()])
        if declared:
            program.add(popper("doc"))
        with pytest.raises(sm.ArgumentError, match=rf"'0'.*{text}"):
            await program(QUERY)


async def test_errors_are_thrown_into_the_generator_which_is_closed():
    """Its try and finally work, on errors and on cancellation."""
    seen = []

    async def handles(self, inputs):
        try:
            yield pop("undeclared")
        except SkipError as error:
            seen.append(str(error))
        yield inputs

    async def waits(self, inputs):
        try:
            yield stash("doc", inputs)
            await asyncio.sleep(60)
            yield inputs
        finally:
            seen.append("closed")

    async def fails(self, inputs):
        try:
            yield inputs
            yield inputs
        finally:
            seen.append("closed too")

    await calling(handles, pop=["x"], optional=["x"])(QUERY)
    assert "has not been declared as poppable" in seen.pop()
    task = asyncio.create_task(calling(waits, stash=["doc"])(QUERY))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["closed"]
    with pytest.raises(sm.ArgumentError):
        await calling(fails, stash=["doc"])(QUERY)
    assert seen == ["closed", "closed too"]


async def test_typed_skips_are_checked():
    """A value of another kind is a SchemaError at the stash; plain JSON becomes data."""

    async def wrong(self, inputs):
        await stash("doc", {"no": 1})
        return inputs

    async def right(self, inputs):
        await stash("doc", {"text": "x"})
        return inputs

    got = []

    async def takes(self, inputs):
        got.append(await pop("doc"))
        return inputs

    with pytest.raises(sm.SchemaError, match=r"stash\('doc'\)"):
        await calling(wrong, stash={"doc": Document})(QUERY)
    await sm.Sequential([calling(right, stash={"doc": Document}), calling(takes, pop={"doc": Document})])(QUERY)
    assert got[0].to(Document) == Document(text="x")
    with pytest.raises(sm.SchemaError, match="'text' is missing"):
        await sm.Sequential([Retrieve(), calling(takes, pop={"doc": Document})])(QUERY)


async def test_optional_names_may_be_absent():
    """Entry does not ask for them, the default comes, completeness accepts both."""
    got = []

    async def takes(self, inputs):
        got.append(await pop("doc", default="nothing"))
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
        got.append(await peek("doc"))
        got.append(await peek("doc"))
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
        await pop("doc")
        return inputs


async def test_a_missing_value_is_found_before_the_body():
    """The error names path, name and the producer that the program has; no user code has run."""

    async def wrong_order(self, inputs):
        await self.reads(inputs)
        return await self.later(inputs)

    program = calling(wrong_order)
    program.reads, program.later = Reads(), Retrieve()
    with pytest.raises(SkipError, match=r"'reads'.*'doc' has not been stashed.*'later'"):
        await program(QUERY)
    assert Reads.begun == 0

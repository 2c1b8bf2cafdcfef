"""Streams of events: what happens in a run, in its order, as fast as its reader."""

import asyncio
import json
import threading

import pytest

import synmod as sm
from synmod.scope import CallBegin, CallEnd
from synmod.testing import FunctionLM, ScriptedLM


class Query(sm.DataModel):
    """What is asked."""

    question: str


QUERY = Query(question="1 + 2?")


def kind(event):
    """What an item of a stream is, and where it happened."""
    if isinstance(event, sm.LMChunk):
        return ("chunk", event.path, event.text)
    if isinstance(event, sm.Emitted):
        return (event.topic, event.path, event.value)
    return ({CallBegin: "begin", CallEnd: "end"}[type(event)], event.path)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    sm.emit("adding", {"of": [a, b]})
    return a + b


def agent(**options):
    """An agent that calls a tool and then answers."""
    lm = ScriptedLM([sm.ToolCall("1", "add", {"a": 1, "b": 2}), [sm.LMChunk("It is "), sm.LMChunk("3.")]])
    return sm.Agent([add], language_model=lm, **options)


EXPECTED = [
    ("begin", ""),
    ("chunk", "", ""),
    ("begin", "tools/add"),
    ("adding", "tools/add", {"of": [1, 2]}),
    ("end", "tools/add"),
    ("chunk", "", "It is "),
    ("chunk", "", "3."),
    ("chunk", "", ""),
    ("end", ""),
]


def test_events_come_in_the_order_in_which_they_happen(any_loop):
    """Calls of modules and tools, what is emitted, and the pieces of replies; on asyncio and trio."""

    async def main():
        async with sm.stream(agent(), QUERY, events=True) as s:
            events = [event async for event in s]
        assert s.result["content"] == "It is 3."
        return events

    events = any_loop(main)
    assert [kind(event) for event in events] == EXPECTED
    assert events[0].inputs[0].get_json() == QUERY.get_json()
    assert events[-1].outputs["content"] == "It is 3."
    assert events[4].outputs["result"] == 3


async def test_without_events_a_stream_has_pieces_alone():
    """As before."""
    async with sm.stream(agent(), QUERY) as s:
        assert [kind(event)[0] async for event in s] == ["chunk"] * 4


async def test_plain_tools_emit_from_their_threads():
    """In the stream of their run, between its other events."""

    def count(to: int) -> int:
        """Count."""
        for n in range(to):
            sm.emit("count", n)
        return threading.get_ident()

    async with sm.stream(sm.Tool(count), events=True, to=1_000) as s:
        events = [event async for event in s]
    assert [event.value for event in events[1:-1]] == [*range(1_000)]
    assert s.result["result"] != threading.get_ident()
    assert {event.path for event in events} == {""}


async def test_hooks_see_what_is_emitted_and_without_a_listener_nothing_happens():
    """A value that is not JSON is found where somebody listens; a hook without the method is no listener."""
    seen = []

    class Seen(sm.Hook):
        def on_emit(self, event):
            seen.append((event.topic, event.value, event.path, event.phase))

    class Other(sm.Hook):
        pass

    sm.emit("nobody", object())
    with sm.hooks(Other()):
        sm.emit("nobody", object())
    with sm.hooks(Seen()):
        sm.emit("outside", QUERY)
        await agent()(QUERY)
        with pytest.raises(sm.DataError):
            sm.emit("bad", object())
        with pytest.raises(sm.ArgumentError, match="topic"):
            sm.emit(3)
    assert seen == [
        ("outside", QUERY.get_json(), "", "inference"),
        ("adding", {"of": [1, 2]}, "tools/add", "inference"),
    ]


async def test_a_build_emits_nothing():
    """Nothing happens on symbols."""
    seen = []

    class Seen(sm.Hook):
        def on_emit(self, event):
            seen.append(event.topic)

    class Part(sm.Module):
        async def call(self, inputs: Query) -> Query:
            sm.emit("part")
            return inputs

    with sm.hooks(Seen()):
        part = Part()
        await sm.build(part, Query)
        assert seen == []
        await part(QUERY)
    assert seen == ["part"]


class Steps(sm.Module):
    """Calls a module again and again, and notes how far it came."""

    def __init__(self, times, **options):
        super().__init__(**options)
        self.times, self.done, self.step = times, 0, sm.Identity()

    async def call(self, inputs: Query) -> Query:
        for _ in range(self.times):
            self.done += 1
            sm.emit("step", self.done)
            await self.step(inputs)
        return inputs


async def test_the_next_call_waits_for_a_slow_reader():
    """A program is never more than a call ahead of its reader; emit itself does not wait."""
    steps = Steps(50)
    async with sm.stream(steps, QUERY, events=True) as s:
        async for event in s:
            for _ in range(20):
                await asyncio.sleep(0)
            if isinstance(event, sm.Emitted):
                assert steps.done - event.value <= 1
    assert steps.done == 50


async def test_a_crowd_of_calls_is_no_further_ahead_of_its_reader():
    """Of three hundred that may run at once, one begins for each event that is taken."""
    step = Steps(0)
    program = sm.Map(step, concurrency=300)
    ended, begun = 0, []

    class Begun(sm.Hook):
        def on_call_begin(self, event):
            begun.append(event.path)

    with sm.hooks(Begun()):
        async with sm.stream(program, [QUERY] * 300, events=True) as s:
            async for event in s:
                for _ in range(5):
                    await asyncio.sleep(0)
                ended += isinstance(event, CallEnd)
                assert len(begun) - ended <= 3
    assert len(begun) == ended == 301


async def test_calls_of_models_wait_for_a_slow_reader_and_run_at_once_for_a_fast_one():
    """Ten that meet each other would never do so one after the other."""
    meet, answered = asyncio.Barrier(10), []

    async def answer(request):
        await meet.wait()
        answered.append(1)
        return "yes"

    lm = FunctionLM(answer)
    together = sm.Parallel(*(sm.Generator(language_model=lm, name=f"g{n}") for n in range(10)))
    async with sm.stream(together, QUERY, events=True) as s:
        async for _ in s:
            pass
    assert len(answered) == 10

    alone = FunctionLM(lambda request: answered.append(1) or "yes")
    answered.clear()
    async with sm.stream(sm.Generator(language_model=alone), QUERY, events=True) as s:
        for _ in range(20):
            await asyncio.sleep(0)
        assert answered == []
        async for _ in s:
            pass
    assert answered == [1]


async def test_a_stream_in_a_stream_waits_for_both_readers():
    """The outer one sees the events of the inner program as well."""
    inner_kinds = []

    async def outer(query):
        async with sm.stream(agent(), query, events=True) as s:
            async for event in s:
                inner_kinds.append(kind(event))
        return s.result

    async with sm.stream(outer, QUERY, events=True) as s:
        kinds = [kind(event) async for event in s]
    assert inner_kinds == kinds == EXPECTED


async def test_a_failure_ends_the_stream_behind_its_events():
    """The end of the failed call has its exception, which the iterator then raises."""

    def fail() -> None:
        """Fail."""
        raise ValueError("no")

    events = []
    with pytest.raises(ValueError, match="no"):
        async with sm.stream(sm.Tool(fail), events=True) as s:
            async for event in s:
                events.append(event)
    assert [kind(event)[0] for event in events] == ["begin", "end"]
    assert isinstance(events[-1].exception, ValueError)


@pytest.mark.slow
async def test_a_thousand_streams_keep_their_order_and_leave_nothing_behind():
    """Each has its own events in order; half of them are left early; no task and no event stays."""

    def answer(request):
        last = request.messages[-1]
        if last["role"] == "tool":
            return [sm.LMChunk(last["content"]), sm.LMChunk("!")]
        return sm.ToolCall("1", "add", {"a": int(last["content"]), "b": 1})

    solve = sm.Agent([add], language_model=FunctionLM(answer))

    async def read(n):
        kinds, early = [], n % 2
        async with sm.stream(solve, Query(question=str(n)), events=True) as s:
            async for event in s:
                kinds.append(kind(event))
                if early and kinds[-1][0] == "adding":
                    break
        return kinds, None if early else s.result["content"]

    before = asyncio.all_tasks()
    results = await asyncio.gather(*(read(n) for n in range(1_000)))
    assert asyncio.all_tasks() == before
    for n, (kinds, content) in enumerate(results):
        expected = json.loads(json.dumps(EXPECTED).replace("[1, 2]", f"[{n}, 1]").replace("It is ", str(n + 1)))
        expected = [tuple(event) for event in expected]
        expected[6] = ("chunk", "", "!")
        assert kinds == (expected[:4] if n % 2 else expected)
        assert content == (None if n % 2 else f"{n + 1}!")
    assert sm.current_call() is None


async def test_a_cancelled_reader_cancels_the_program():
    """Nothing is left of either."""
    started = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        sm.emit("waiting")
        started.set()
        await asyncio.sleep(60)

    async def read():
        async with sm.stream(sm.Tool(wait), events=True) as s:
            async for _ in s:
                pass

    task = asyncio.create_task(read())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}

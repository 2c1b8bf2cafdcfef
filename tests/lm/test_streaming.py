"""Streams: pieces of one call and of all calls in a program, held back by a slow reader, gone when closed early."""

import asyncio
import copy
import gc
import json
import pickle
import sys
import threading
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

import synmod as sm
from synmod.errors import BadReplyError, ConfigError, RateLimitError, RunError, UnavailableError
from synmod.leaves import aio
from synmod.lm import LanguageModel, LMChunk, LMReply
from synmod.testing import FunctionLM, SchemaLM, ScriptedLM

ANY = {}
QUERY = sm.JsonDataModel({"query": "why"}, schema={"type": "object"})


def pieces(*texts):
    """A streamed reply of these pieces."""
    return [LMChunk(text) for text in texts]


async def read(streamed):
    """Read a stream to its end; return the chunks and the stream."""
    async with streamed as stream:
        return [chunk async for chunk in stream], stream


async def call(lm, *args, **kwargs):
    """Call a model and read its stream."""
    return await read(await lm(*args, stream=True, **kwargs))


def ask(*replies, **keywords):
    """A generator of one answer by a script."""
    return sm.Generator({"answer": str}, language_model=ScriptedLM(list(replies)), **keywords)


# -- one call --------------------------------------------------------------------------------------------------------


def test_pieces_come_as_they_arrive_and_the_last_is_done(any_loop):
    """The texts of the adapter one by one, then an empty piece that is done; the reply is whole."""

    async def main():
        chunks, stream = await call(ScriptedLM([[LMChunk("Pa", "I th"), LMChunk("ris", "ink")]]), "Capital of France?")
        assert [(chunk.text, chunk.reasoning, chunk.done) for chunk in chunks] == [
            ("Pa", "I th", False),
            ("ris", "ink", False),
            ("", "", True),
        ]
        assert (stream.reply.text, stream.reply.reasoning, stream.reply.usage.calls) == ("Paris", "I think", 1)
        assert 0 <= stream.reply.first_chunk_s <= stream.reply.elapsed_s

    any_loop(main)


@pytest.mark.parametrize(
    "lm",
    [
        ScriptedLM(["Paris"]),
        LanguageModel("embedded/nearest"),
        SchemaLM(),
        FunctionLM(lambda request: [LMChunk("Paris", done=True)]),
    ],
)
def test_a_reply_that_comes_whole_is_one_piece(any_loop, lm):
    """Doubles, embedded models, and an adapter whose only piece is done: one piece, done, with all of the text."""

    async def main():
        if isinstance(lm, ScriptedLM):
            lm._used.clear()
        chunks, stream = await call(lm, "Capital of France?")
        assert [(chunk.text, chunk.done) for chunk in chunks] == [(stream.reply.text, True)]
        assert stream.reply.text

    any_loop(main)


async def test_a_call_that_is_not_streamed_gets_the_pieces_together():
    """A script of pieces serves both kinds of calls."""
    lm = ScriptedLM([[LMChunk("Pa", "be"), LMChunk("ris", "cause")]])
    reply = await lm("Capital of France?")
    assert (reply.text, reply.reasoning, reply.first_chunk_s) == ("Paris", "because", None)


async def test_what_an_adapter_yields_last_completes_the_reply():
    """Usage and finish reason are those of an LMReply at the end; without one they are estimated."""
    usage = sm.Usage(prompt_tokens=5, completion_tokens=2)
    lm = ScriptedLM([[LMChunk("Paris"), LMReply(finish_reason="length", usage=usage)], pieces("Par", "is")])
    _, stream = await call(lm, "Hi")
    assert (stream.reply.text, stream.reply.finish_reason) == ("Paris", "length")
    assert (stream.reply.usage.prompt_tokens, stream.reply.usage.estimated) == (5, False)
    _, stream = await call(lm, "Hi")
    assert (stream.reply.usage.completion_tokens, stream.reply.usage.estimated) == (2, True)


async def test_an_adapter_that_streams_something_else_is_a_type_error():
    """It names the adapter and what came."""

    class Texts:
        name, version = "texts", 1

        async def send(self, request):
            return LMReply("x")

        async def stream(self, request):
            yield "x"

    with pytest.raises(TypeError, match="adapter 'texts' streamed 'x', wanted an LMChunk"):
        await call(model(Texts()), "Hi")


async def test_an_unread_stream_sends_nothing():
    """The request leaves when the block is entered."""
    lm = ScriptedLM(["x"])
    await lm("Hi", stream=True)
    assert not lm.requests


async def test_a_stream_is_read_once_and_in_its_block():
    """Outside it is an error that shows the line; the reply is there at the end alone."""
    stream = await ScriptedLM([pieces("a", "b")])("Hi", stream=True)
    with pytest.raises(RunError, match="inside `async for chunk in s:`"):
        await anext(stream)
    async with stream:
        with pytest.raises(RunError, match="read the stream to its end"):
            stream.reply
        await anext(stream)
    with pytest.raises(RunError, match="read the stream to its end"):
        stream.reply
    with pytest.raises(RunError, match="read it in its block"):
        await anext(stream)
    with pytest.raises(RunError, match="read once"):
        await stream.__aenter__()


async def test_arguments_are_checked_before_the_stream():
    """As those of any call: by the `await`."""
    with pytest.raises(ConfigError, match="temprature"):
        await ScriptedLM([])("Hi", stream=True, temprature=1)


async def test_what_cannot_be_called_is_an_argument_error():
    """A coroutine instead of a program; it shows the line to write."""
    with pytest.raises(sm.ArgumentError, match=r"sm.stream\(program, inputs\)"):
        sm.stream(None)


async def test_a_stream_inside_a_generator_may_be_closed_by_another_task():
    """As servers do with a response that nobody reads any more."""
    words = Words()

    async def lines():
        async with await model(words)("Hi", stream=True) as stream:
            async for chunk in stream:
                yield chunk.text

    source = lines()
    assert await anext(source) == "word "
    await asyncio.create_task(source.aclose())
    assert not words.open


# -- partial JSON ----------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def extends(earlier, later):
    """Whether a partial value is the beginning of another: texts and lists are prefixes, numbers are equal."""
    if isinstance(earlier, str) and isinstance(later, str):
        return later.startswith(earlier)
    if isinstance(earlier, list) and isinstance(later, list):
        pairs = list(zip(earlier, later, strict=False))
        return len(earlier) <= len(later) and all(extends(a, b) for a, b in pairs)
    if isinstance(earlier, dict) and isinstance(later, dict):
        return all(key in later and extends(value, later[key]) for key, value in earlier.items())
    return earlier == later and type(earlier) is type(later)


@given(JSON, st.booleans(), st.sampled_from([None, 1]), st.randoms(use_true_random=False))
async def test_a_partial_value_only_ever_extends(value, ascii_only, indent, random):
    """Over any document and any split: what was known stays; each is what pydantic reads of the text shown so far;
    the last is the valid value."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    parts, at = [], 0
    while at < len(text):
        size = random.choice([1, 1, 2, 5, 30])
        parts.append(text[at : at + size])
        at += size
    chunks, stream = await call(ScriptedLM([pieces(*parts)]), "Hi", ANY)
    shown, before = "", None
    for chunk in chunks[:-1]:
        shown += chunk.text
        try:
            wanted = from_json(shown, allow_partial="trailing-strings")
        except ValueError:
            wanted = None
        assert chunk.partial == wanted
        assert before is None or extends(before, chunk.partial), (before, chunk.partial)
        before = chunk.partial
    assert "".join(chunk.text for chunk in chunks) == text == stream.reply.text
    assert chunks[-1].partial == stream.reply.json == value
    assert before is None or extends(before, value)


async def test_a_stream_is_a_method_too():
    """`lm.stream(...)` takes the keywords of a call, and raises its errors where it is read."""
    lm = ScriptedLM([pieces('{"n":', " 1}")])
    async with lm.stream("Hi", ANY, temperature=0) as stream:
        texts = [chunk.text async for chunk in stream]
    assert ("".join(texts), stream.reply.json, lm.requests[0].params) == ('{"n": 1}', {"n": 1}, {"temperature": 0})
    async with lm.stream("Hi", warmth=1) as stream:
        with pytest.raises(sm.ConfigError, match="unknown keyword 'warmth'"):
            await anext(stream)


async def test_a_number_is_shown_when_it_has_ended():
    """Not 1, then 12, then nothing at `12.`: its text waits for what follows it; digits in a text do not wait."""
    chunks, _ = await call(ScriptedLM([pieces('{"n": 1', "2", ".", '5, "t": "at 5', '0"}')]), "Hi", ANY)
    assert [(chunk.text, chunk.partial) for chunk in chunks[:-1]] == [
        ('{"n": ', {}),
        ('12.5, "t": "at 5', {"n": 12.5, "t": "at 5"}),
        ('0"}', {"n": 12.5, "t": "at 50"}),
    ]


async def test_what_is_not_json_has_no_partial_value_before_its_end():
    """A fence around the value: None until the reply was read."""
    chunks, _ = await call(ScriptedLM([pieces("```json\n", '{"n": 1}', "\n```")]), "Hi", ANY)
    assert [chunk.partial for chunk in chunks] == [None, None, None, {"n": 1}]


@pytest.mark.parametrize("prose", ["[Note] ", "[1, 2] gives ", '"So": ', "12 of ", "true: ", "{so} "])
async def test_brackets_before_an_answer_are_not_taken_for_its_beginning(prose):
    """Nothing is known that does not begin as the schema does: the last value extends each one before."""
    chunks, _ = await call(ScriptedLM([pieces(*prose, '{"n":', " 1}")]), "Hi", {"type": "object"})
    known = [chunk.partial for chunk in chunks if chunk.partial]
    assert known == [{"n": 1}]


async def test_a_key_that_repeats_takes_nothing_back():
    """Its second value is not shown, and the reply is refused, as one that is not streamed."""
    shown = []
    async with await ScriptedLM([pieces('{"a": "first", ', '"a": "sec', 'ond"}')])("Hi", ANY, stream=True) as stream:
        with pytest.raises(BadReplyError):
            async for chunk in stream:
                shown.append(chunk.partial)
    assert shown == [{"a": "first"}, None, None]


DRAFTS = [
    '{"x": 1} then {"answer": "a"}',
    '{"answer": 1}{"answer": "a"}',
    '{"answer": "b"} or {"answer": "a", "sure": true}',
]
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("text", DRAFTS)
async def test_the_last_piece_may_hold_another_value_than_was_shown(text):
    """A draft before the answer was shown: the reply is that of a call that is not streamed."""
    schema = ANSWER if "sure" not in text else {**ANSWER, "required": ["answer", "sure"]}
    chunks, stream = await call(ScriptedLM([pieces(*text)]), "Hi", schema)
    assert all(extends(a.partial, b.partial) for a, b in pairwise(chunks[:-1]) if a.partial)
    assert chunks[-1].partial == stream.reply.json == (await ScriptedLM([pieces(*text)])("Hi", schema)).json


async def test_a_partial_value_is_that_of_its_piece_whenever_it_is_read():
    """In order, backwards, twice, from a copy, and by the side of another reader."""
    parts = ['{"a": [1, {"b": "x', 'y", "c', '": nul', "l}, 2", '], "d": "\\ud83d', '\\ude00"}']
    wanted = [
        {"a": [1, {"b": "x"}]},
        {"a": [1, {"b": "xy"}]},
        {"a": [1, {"b": "xy"}]},
        {"a": [1, {"b": "xy", "c": None}]},
        {"a": [1, {"b": "xy", "c": None}, 2], "d": ""},
        {"a": [1, {"b": "xy", "c": None}, 2], "d": "\U0001f600"},
    ]
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 2, 0, 5]):
        chunks, _ = await call(ScriptedLM([pieces(*parts)]), "Hi", ANY)
        assert [chunks[place].partial for place in order] == [wanted[place] for place in order]
    chunks, _ = await call(ScriptedLM([pieces(*parts)]), "Hi", ANY)
    assert pickle.loads(pickle.dumps(chunks[1])) == copy.deepcopy(chunks[1]) == replace(chunks[1]) == chunks[1]
    assert repr(chunks[1]).startswith("LMChunk(text='y\", \"c'")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"found": [{"name": "abc", "number": n} for n in range(500)]}),
        json.dumps({"text": "wörd\n" * 2_000}),
        json.dumps({f"k{n}": [n] for n in range(1_000)}),
    ],
    ids=["objects", "text", "keys"],
)
async def test_the_work_for_a_structured_stream_grows_with_its_length(text):
    """Twice the pieces cost about twice the calls, though each partial value is read."""

    async def calls(length):
        count = 0

        def profile(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        lm = ScriptedLM([pieces(*[text[at : at + 5] for at in range(0, length, 5)])], repairs=0)
        async with await lm("Hi", ANY, stream=True) as stream:
            gc.disable()  # other tests may have left callbacks of the collector
            sys.setprofile(profile)
            with suppress(BadReplyError):
                async for chunk in stream:
                    assert chunk.partial is not None or not chunk.done
            sys.setprofile(None)
            gc.enable()
        return count

    short, long = await calls(len(text) // 2), await calls(len(text))
    assert long < 2.3 * short


@pytest.mark.parametrize("change", [lambda partial: partial.setdefault("a", 1), lambda partial: partial.pop("title")])
async def test_a_reader_cannot_change_the_outcome(change):
    """Every partial value is frozen, the last one too."""
    async with await ScriptedLM([pieces('{"title": "A"', ', "n": [3, ', "4]}")])("Hi", ANY, stream=True) as stream:
        async for chunk in stream:
            with pytest.raises(TypeError, match="frozen"):
                change(chunk.partial)
    assert stream.reply.json == {"title": "A", "n": [3, 4]}


async def test_an_answer_with_prose_after_it_is_what_was_shown():
    """What stands behind a value takes nothing back."""
    chunks, stream = await call(ScriptedLM([pieces(*'{"answer": "a"} as asked.')]), "Hi", ANSWER)
    assert [chunk.partial for chunk in chunks if chunk.partial][-1] == stream.reply.json == {"answer": "a"}


# -- failures --------------------------------------------------------------------------------------------------------

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_an_invalid_reply_is_raised_at_the_end_without_repair(any_loop):
    """After all of its pieces, by the iterator; nothing else is sent."""

    async def main():
        for item in (pieces('{"n": ', '"one"}'), '{"n": "one"}'):
            lm, got = ScriptedLM([item, '{"n": 1}']), []
            async with await lm("Hi", NUMBER, stream=True) as stream:
                with pytest.raises(BadReplyError) as caught:
                    async for chunk in stream:
                        got.append(chunk.text)
                assert [chunk async for chunk in stream] == []  # it is raised once
            assert (caught.value.reason, caught.value.text, len(lm.requests)) == ("schema", '{"n": "one"}', 1)
            assert "".join(got) in ('{"n": "one"}', "")
            assert (lm.cumulated_calls, lm.cumulated_failed_calls) == (1, 1)
            with pytest.raises(RunError):
                stream.reply

    any_loop(main)


async def test_failures_are_retried_before_the_first_piece_and_never_after():
    """Attempts are those of any call; what has been handed on cannot be taken back."""
    lm = ScriptedLM([RateLimitError("slow", status=429), [LMChunk("a"), UnavailableError("cut")], "never"])
    got = []
    async with await lm("Hi", stream=True) as stream:
        with pytest.raises(UnavailableError, match="not retried: pieces of the reply had been delivered") as caught:
            async for chunk in stream:
                got.append(chunk.text)
    assert (got, len(lm.requests), caught.value.streamed) == (["a"], 2, True)


async def test_a_fallback_answers_before_the_first_piece_and_never_after():
    """Likewise other models."""
    for item, texts in ((UnavailableError("down"), ["b", ""]), ([LMChunk("a"), UnavailableError("cut")], ["a"])):
        other, got = ScriptedLM([pieces("b")]), []
        lm = ScriptedLM([item], attempts=1, fallback=other)
        try:
            async with await lm("Hi", stream=True) as stream:
                async for chunk in stream:
                    got.append(chunk.text)
        except UnavailableError:
            pass
        assert (got, len(other.requests)) == (texts, len(texts) - 1)


async def test_what_came_before_a_failure_is_counted():
    """An estimate, marked, in the usage, the budget and the counters; with the price of the model."""
    lm = ScriptedLM([[LMChunk("abcdef"), UnavailableError("cut")]], price=(1_000_000, 1_000_000))
    with sm.track_usage() as usage, sm.budget(tokens=100) as budget:
        with pytest.raises(UnavailableError):
            await call(lm, "Hi")
    assert (usage.completion_tokens, usage.prompt_tokens, usage.cost_usd, usage.estimated) == (2, 1, 3.0, True)
    assert budget.used.tokens == 3
    assert (lm.cumulated_completion_tokens, lm.cumulated_requests, lm.cumulated_failed_calls) == (2, 1, 1)


# -- caches ----------------------------------------------------------------------------------------------------------


async def test_a_hit_is_one_piece_and_an_aborted_stream_is_not_kept():
    """Closing early keeps nothing; a stream that was read is kept, and then comes at once."""
    cache = sm.Cache()
    lm = ScriptedLM([pieces("no", "no"), pieces("Par", "is")], cache=cache)
    async with await lm("Hi", stream=True) as stream:
        await anext(stream)
    chunks, _ = await call(lm, "Hi")
    assert [chunk.text for chunk in chunks] == ["Par", "is", ""]
    chunks, stream = await call(lm, "Hi")
    assert [(chunk.text, chunk.done) for chunk in chunks] == [("Paris", True)]
    assert (stream.reply.cached, len(lm.requests)) == (True, 2)
    assert (await lm("Hi")).cached


async def test_equal_streams_at_once_are_one_request():
    """Who leads streams; the others get one piece when it has ended. A leader that leaves early hands over."""
    lm = ScriptedLM([pieces("Par", "is"), pieces("Pa", "ris")], cache=sm.Cache())
    read_by = await asyncio.gather(*[call(lm, "Hi") for _ in range(3)])
    assert sorted([chunk.text for chunk in chunks] for chunks, _ in read_by) == [
        ["Par", "is", ""],
        ["Paris"],
        ["Paris"],
    ]
    assert [stream.reply.cached for _, stream in read_by].count(True) == 2

    async def leave():
        async with await lm("Ho", stream=True) as stream:
            await anext(stream)
            await turns()

    lm = ScriptedLM([pieces("no", "no", "no"), pieces("Pa", "ris")], cache=sm.Cache())
    _, (chunks, _) = await asyncio.gather(leave(), call(lm, "Ho"))
    assert ([chunk.text for chunk in chunks], len(lm.requests)) == (["Pa", "ris", ""], 2)


async def test_a_stream_holds_its_place_under_a_limit_until_it_ends():
    """The next one begins when it was read or closed."""
    words = Words()
    lm = LanguageModel("my/model", adapter=words, price=(0, 0), limit=1)
    async with await lm("Hi", stream=True) as first:
        await anext(first)
        async with await lm("Hi", stream=True) as second:
            await turns()
            assert words.open == 1
    async with await lm("Hi", stream=True) as second:
        assert (await anext(second)).text == "word "


async def test_embeddings_in_a_program_are_not_streamed():
    """They have no pieces."""

    async def embed():
        return await sm.EmbeddingModel("embedded/hash")(["a"])

    chunks, stream = await read(sm.stream(embed))
    assert (chunks, len(stream.result.vectors)) == ([], 1)


async def test_an_agent_streams_its_calls_and_its_answer():
    """The calls of tools come whole, on the last piece of their turn; then the answer, piece by piece."""

    def add(x: int, y: int) -> int:
        """Add two numbers."""
        return x + y

    lm = ScriptedLM([sm.ToolCall("1", "add", {"x": 1, "y": 2}), pieces('{"answer"', ': "3"}')])
    agent = sm.Agent([sm.Tool(add)], {"answer": str}, language_model=lm)
    chunks, stream = await read(sm.stream(agent, QUERY))
    assert [len(chunk.tool_calls) for chunk in chunks] == [1, 0, 0, 0]
    assert [chunk.text for chunk in chunks] == ["", '{"answer"', ': "3"}', ""]
    assert stream.result["answer"] == "3"


# -- closing, cancelling, waiting ------------------------------------------------------------------------------------


class Words:
    """An adapter that streams words without end, and notes how far it got and whether it was closed."""

    name, version = "words", 1

    def __init__(self):
        self.sent, self.open = 0, 0

    async def send(self, request):
        return LMReply("whole")

    async def stream(self, request):
        self.open += 1
        try:
            while True:
                self.sent += 1
                yield LMChunk("word ")
                await aio.checkpoint()
        finally:
            self.open -= 1


def model(adapter):
    """A model by an adapter, at a known price."""
    return LanguageModel("my/model", adapter=adapter, price=(1_000_000, 1_000_000))


async def turns(count=50):
    """Let everything run that can."""
    for _ in range(count):
        await aio.checkpoint()


def test_a_slow_reader_holds_the_adapter_back(any_loop):
    """While a piece is not taken, at most one more is fetched, however long the reader takes."""

    async def main():
        words = Words()
        async with await model(words)("Hi", stream=True) as stream:
            for taken in range(1, 4):
                await anext(stream)
                await turns()
                assert words.sent <= taken + 2
        assert not words.open

    any_loop(main)


def test_closing_early_closes_the_adapter_and_counts_what_came(any_loop):
    """Also where the reader fails; the call counts as cancelled, with the tokens that came, and hooks get its end."""

    async def main():
        words, hook = Words(), Recorder()
        lm = model(words)
        with sm.hooks(hook), sm.track_usage() as usage:
            async with await lm("Hi", stream=True) as stream:
                await anext(stream)
            with pytest.raises(ZeroDivisionError):
                async with await lm("Hi", stream=True) as stream:
                    async for _ in stream:
                        raise ZeroDivisionError
        assert not words.open
        assert (lm.counters.cancelled, lm.cumulated_calls, lm.cumulated_requests) == (2, 0, 2)
        assert lm.cumulated_completion_tokens == usage.completion_tokens >= 4
        assert usage.estimated
        assert usage.cost_usd == usage.completion_tokens + usage.prompt_tokens == lm.cumulated_cost_usd
        assert [name for name, _ in hook.events].count("end") == 2

    any_loop(main)


class Recorder(sm.Hook):
    """Keeps the events of model calls."""

    def __init__(self):
        self.events = []

    def on_lm_begin(self, event):
        self.events.append(("begin", event))

    def on_lm_chunk(self, event):
        self.events.append(("chunk", event))

    def on_lm_end(self, event):
        self.events.append(("end", event))


def test_every_piece_is_an_event(any_loop):
    """`on_lm_chunk` between begin and end, in the module's place; nothing where a call is not streamed."""

    async def main():
        hook, program = Recorder(), sm.Sequential([ask(pieces('{"answer"', ': "so"}'), {"answer": "x"}, name="writer")])
        with sm.hooks(hook):
            chunks, _ = await read(sm.stream(program, QUERY))
            await program(QUERY)
        assert [name for name, _ in hook.events] == ["begin", "chunk", "chunk", "chunk", "end", "begin", "end"]
        events = [event for name, event in hook.events if name == "chunk"]
        assert [event.chunk for event in events] == chunks
        assert {(event.path, event.name) for event in events} == {(chunks[0].path, "writer")}

    any_loop(main)


@pytest.mark.parametrize("kind", ["call", "program"])
def test_a_cancellation_anywhere_leaves_nothing_behind(any_loop, kind):
    """At the k-th wait, for every k: the adapter is closed, no task is left, the reader's context is as before."""
    words = Words()

    async def streamed():
        lm = model(words)
        if kind == "call":
            return await lm("Hi", stream=True)
        return sm.stream(sm.Parallel(*[sm.Generator(sm.ChatMessage, language_model=lm) for _ in range(2)]), QUERY)

    async def reading(limit):
        async with await streamed() as stream:
            async for _ in stream:
                limit -= 1
                if limit < 0:
                    return True
        return False

    async def main():
        before = tasks()
        for k in range(60):
            reader = Cancelled(k)
            await reader.run(reading, 8)
            await turns(3)
            assert not words.open, k
            assert tasks() == before, k
            assert sm.current_call() is None
            if reader.result:
                return
        raise AssertionError("the reader never got to its end")

    any_loop(main)


class Cancelled:
    """Runs a function and cancels it when it waits for the k-th time."""

    def __init__(self, k):
        self.left, self.result = k, None

    async def run(self, function, *args):
        group = aio.task_group()

        async def work():
            self.result = await Counted(function(*args), self, group)

        async with group:
            group.start_soon(work)


class Counted:
    """Awaits a coroutine and counts its waits."""

    def __init__(self, coroutine, owner, group):
        self.coroutine, self.owner, self.group = coroutine, owner, group

    def __await__(self):
        waiting = self.coroutine.__await__()
        value = None
        while True:
            try:
                yielded = waiting.send(value)
            except StopIteration as end:
                return end.value
            while True:
                if self.owner.left == 0:
                    self.group.cancel()
                self.owner.left -= 1
                try:
                    value = yield yielded
                    break
                except BaseException as error:
                    try:
                        yielded = waiting.throw(error)
                    except StopIteration as end:
                        return end.value


def tasks():
    """How many tasks there are; trio's end with their blocks."""
    return 0 if aio.backend() == "trio" else len(asyncio.all_tasks())


def test_a_deadline_ends_a_stream(any_loop):
    """Around the block: DeadlineExceeded, and the adapter is closed."""

    async def main():
        words = Words()
        with pytest.raises(sm.DeadlineExceeded):
            with sm.deadline(0.05):
                async with await model(words)("Hi", stream=True) as stream:
                    async for _ in stream:
                        pass
        assert not words.open

    any_loop(main)


# -- programs --------------------------------------------------------------------------------------------------------


def test_a_program_streams_every_call_with_its_path(any_loop):
    """Concurrent calls mix; each one's pieces are in order, under its path; the modules get whole replies."""

    async def main():
        members = [ask(pieces('{"answer": ', f'"{name}', name, '"}'), name=name) for name in "abc"]
        chunks, stream = await read(sm.stream(sm.Parallel(*members), QUERY))
        assert {chunk.path for chunk in chunks} == {member.path for member in members}
        for name, member in zip("abc", members, strict=True):
            own = [chunk for chunk in chunks if chunk.path == member.path]
            assert "".join(chunk.text for chunk in own) == f'{{"answer": "{name}{name}"}}'
            assert [chunk.done for chunk in own] == [False] * 4 + [True]
            assert own[-1].partial == {"answer": name * 2}
            assert len({chunk.call_id for chunk in own}) == 1
        assert [answer["answer"] for answer in stream.result] == ["aa", "bb", "cc"]

    any_loop(main)


def test_a_slow_reader_holds_a_whole_program_back(any_loop):
    """Each of its calls has at most one piece in hand."""

    async def main():
        words = [Words() for _ in range(3)]
        members = [sm.Generator({"answer": str}, language_model=model(each)) for each in words]
        async with sm.stream(sm.Parallel(*members), QUERY) as stream:
            await anext(stream)
            await turns(200)
            assert sum(each.sent for each in words) <= 1 + 1 + 2 * len(words)
            assert all(each.open for each in words)
        assert not any(each.open for each in words)

    any_loop(main)


async def test_a_program_that_fails_raises_from_the_iterator():
    """After the pieces that came before; there is no result."""
    program, got = ask([LMChunk('{"answer"'), UnavailableError("cut")]), []
    async with sm.stream(program, QUERY) as stream:
        with pytest.raises(UnavailableError):
            async for chunk in stream:
                got.append(chunk.text)
    assert got == ['{"answer"']
    with pytest.raises(RunError):
        stream.result


async def test_a_program_without_models_has_no_pieces():
    """Just a result; keywords go to the program."""
    chunks, stream = await read(sm.stream(sm.Identity(), QUERY, training=True))
    assert (chunks, stream.result) == ([], QUERY)


async def test_streams_inside_a_program():
    """A module may read a stream itself, and a program may stream another: every stream around gets each piece."""

    class Reads(sm.Module):
        def __init__(self, lm):
            super().__init__()
            self.lm, self.seen = lm, sm.static([])

        async def call(self, inputs) -> sm.ChatMessage:
            async with await self.lm("Hi", stream=True) as stream:
                self.seen.extend([chunk.text async for chunk in stream])
            async with sm.stream(ask(pieces('{"answer": "x', '"}')), inputs) as stream:
                self.seen.extend([chunk.text async for chunk in stream])
            return sm.ChatMessage(role="assistant", content="done")

    reads = Reads(ScriptedLM([pieces("a", "b")]))
    chunks, _ = await read(sm.stream(reads, QUERY))
    assert [chunk.text for chunk in chunks] == reads.seen == ["a", "b", "", '{"answer": "x', '"}', ""]


async def test_calls_that_the_reader_or_an_adapter_makes_are_not_in_the_stream():
    """Only those of the program: not those in the reader's block, not those by which an adapter answers."""
    inner, got = ScriptedLM([pieces("in", "ner")] * 2), []

    async def answer(request):
        return (await inner("Hi")).text

    async with sm.stream(FunctionLM(answer), "Hi") as stream:
        async for chunk in stream:
            got.append(chunk.text)
            assert (await inner("Hi")).text == "inner"
    assert got == ["inner"]


async def test_calls_of_another_thread_are_not_streamed():
    """Its loop could not wait for this reader; the call itself is as always."""

    class Threaded(sm.Module):
        async def call(self, inputs) -> sm.ChatMessage:
            threads = []

            def work():
                threads.append(threading.get_ident())
                return sm.run(ScriptedLM([pieces("a", "b")])("Hi")).text

            text = await sm.in_thread(work)()
            assert threads != [threading.get_ident()]
            return sm.ChatMessage(role="assistant", content=text)

    chunks, stream = await read(sm.stream(Threaded(), QUERY))
    assert (chunks, stream.result["content"]) == ([], "ab")


async def test_a_task_that_outlives_the_stream_is_not_held_up():
    """Its call goes on without a reader."""
    release, tasks = asyncio.Event(), []

    class Leaves(sm.Module):
        async def call(self, inputs):
            async def later():
                await release.wait()
                return (await ScriptedLM([pieces("a", "b", "c")])("Hi")).text

            tasks.append(asyncio.create_task(later()))
            return inputs

    await read(sm.stream(Leaves(), QUERY))
    release.set()
    assert await asyncio.wait_for(tasks[0], 5) == "abc"


# -- memory ----------------------------------------------------------------------------------------------------------


async def test_the_memory_of_a_long_stream_is_that_of_its_text():
    """Thousands of pieces, ten bytes each, read one by one: a few times the text, much less than the pieces."""

    class Long:
        name, version = "long", 1

        async def send(self, request):
            raise AssertionError

        async def stream(self, request):
            for _ in range(5_000):
                yield LMChunk("0123456789")

    lm = model(Long())
    await call(ScriptedLM([pieces("warm", "up")]), "Hi")
    tracemalloc.start()
    try:
        async with await lm("Hi", stream=True) as stream:
            async for _ in stream:
                pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(stream.reply.text) == 50_000
    assert most < 4 * 50_000


async def test_a_stream_leaves_no_circle_of_references():
    """Read to its end, closed early, or failed: what it held is freed at once."""

    class Cut(Words):
        async def stream(self, request):
            yield LMChunk("a")
            raise UnavailableError("cut")

    words, cut = model(Words()), model(Cut())
    gc.collect()
    gc.disable()
    try:
        await call(ScriptedLM([pieces("a", "b")]), "Hi")
        async with await words("Hi", stream=True) as stream:
            await anext(stream)
        try:
            await call(cut, "Hi")
        except UnavailableError:
            pass
        del stream
        await turns(3)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        names = [type(each).__name__ for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {"LMStream", "Relay", "Gate", "UnavailableError", "ModelCall"} & {*names}

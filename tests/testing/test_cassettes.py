"""RecordReplayLM: what a cassette holds, and how requests find their replies in it."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest

import synmod as sm
from synmod.lm import LMReply, message
from synmod.testing import FunctionLM, RecordReplayLM, ScriptedLM

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.fixture
def cassette(tmp_path):
    """A path in a folder that is not there yet."""
    return tmp_path / "cassettes" / "desk.jsonl"


def echo(**keywords):
    """A model that answers with the last message."""
    return FunctionLM(lambda request: request.messages[-1]["content"], **keywords)


def lines(path):
    """The records of a cassette."""
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_what_was_recorded_is_replayed(cassette):
    """Text, usage, reasoning and finish reason come back; the model behind is asked once."""
    usage = sm.Usage(prompt_tokens=7, completion_tokens=3, reasoning_tokens=2)
    real = ScriptedLM([LMReply('{"a": 1}', reasoning="since", usage=usage, model="x-2024")])
    first = await RecordReplayLM(cassette, real)("?", SCHEMA)
    again = await RecordReplayLM(cassette)("?", SCHEMA)
    assert (again.json, again.reasoning, again.model) == ({"a": 1}, "since", "x-2024")
    assert again.usage == first.usage
    assert len(real.requests) == 1


async def test_what_the_provider_wants_back_is_replayed(cassette):
    """Its own blocks, such as reasoning with a signature, are in the next request of the conversation again."""
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "SIG"}, {"type": "text", "text": "Hello."}]
    turn = message("assistant", "Hello.", provider_content=blocks)
    real = FunctionLM(lambda request: LMReply("Hello.", message=turn), model="anthropic/m")
    recorded = await RecordReplayLM(cassette, real)("Hi")
    replayed = await RecordReplayLM(cassette)("Hi")
    assert replayed.message == recorded.message
    assert replayed.message["provider_content"] == blocks


async def test_a_cassette_is_read_by_people(cassette):
    """One JSON object per reply, with what the request was."""
    await RecordReplayLM(cassette, echo(model="openai/x", temperature=0))("Grüß Gott")
    assert '"Grüß Gott"' in cassette.read_text(encoding="utf-8")
    (record,) = lines(cassette)
    assert record["request"]["model"] == "openai/x"
    assert record["request"]["params"] == {"temperature": 0}
    assert record["reply"]["text"] == "Grüß Gott"


@pytest.mark.parametrize(
    "changed",
    [{"temperature": 1}, {"sample": 1}, {"schema": SCHEMA}, {"structured": "json", "schema": SCHEMA}, {"seed": 4}],
)
async def test_all_that_a_reply_depends_on_is_the_key(cassette, changed):
    """Another parameter, sample or schema is another request."""
    await RecordReplayLM(cassette, FunctionLM(lambda request: {"a": 1}))("?")
    with pytest.raises(sm.CassetteError, match="has none for this request"):
        await RecordReplayLM(cassette)("?", **changed)


async def test_equal_requests_replay_in_order(cassette):
    """The nth of them gets the nth reply, and one more than was recorded is an error that counts."""
    real = ScriptedLM(["one", "two", "three"])
    recording = RecordReplayLM(cassette, real)
    assert [(await recording("?")).text for _ in range(3)] == ["one", "two", "three"]
    replaying = RecordReplayLM(cassette, real, on_missing="error")
    assert [(await replaying("?")).text for _ in range(3)] == ["one", "two", "three"]
    with pytest.raises(sm.CassetteError, match="it has 3 for this request, and this is number 4"):
        await replaying("?")
    assert replaying.cumulated_calls == 4
    assert len(real.requests) == 3


async def test_equal_requests_at_once_keep_the_order_in_which_they_were_sent(cassette):
    """Though the second is answered first, the first one gets its own reply again."""
    waits = iter([0.02, 0.0])

    async def slow(request):
        wait = next(waits)
        await asyncio.sleep(wait)
        return f"after {wait}"

    recording = RecordReplayLM(cassette, FunctionLM(slow))
    first = [reply.text for reply in await asyncio.gather(recording("?"), recording("?"))]
    assert [record["nth"] for record in lines(cassette)] == [2, 1]
    replaying = RecordReplayLM(cassette)
    assert [(await replaying("?")).text for _ in range(2)] == first == ["after 0.02", "after 0.0"]


async def test_concurrent_calls_replay_in_any_order(cassette):
    """A hundred different calls, recorded at once and replayed backwards, get their own replies."""
    recording = RecordReplayLM(cassette, echo(latency_s=0.001))
    await asyncio.gather(*[recording(f"question {number}") for number in range(100)])
    assert len(lines(cassette)) == 100
    replaying = RecordReplayLM(cassette)
    order = list(reversed(range(100)))
    replies = await asyncio.gather(*[replaying(f"question {number}") for number in order])
    assert [reply.text for reply in replies] == [f"question {number}" for number in order]


async def test_what_is_missing_is_added(cassette):
    """Recording goes on where a cassette ends; what is there is not sent again."""
    await RecordReplayLM(cassette, echo())("one")
    real = echo()
    lm = RecordReplayLM(cassette, real)
    assert [(await lm(text)).text for text in ("one", "two")] == ["one", "two"]
    assert [request.messages[0]["content"] for request in real.requests] == ["two"]
    assert len(lines(cassette)) == 2


async def test_tool_calls_and_streams_are_recorded(cassette):
    """A cassette holds calls of tools; what was recorded from a stream, or for one, is the same reply."""
    tool = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    real = ScriptedLM([sm.ToolCall("1", "add", {"a": 2}), "hello there"])
    recording = RecordReplayLM(cassette, real)
    first = await recording("?", tools=[tool])
    async with await recording("hi", stream=True) as stream:
        assert "".join([chunk.text async for chunk in stream]) == "hello there"
    replaying = RecordReplayLM(cassette, real, on_missing="error")
    assert (await replaying("?", tools=[tool])).tool_calls == first.tool_calls == (sm.ToolCall("1", "add", {"a": 2}),)
    assert (await replaying("hi")).text == "hello there"
    with pytest.raises(sm.CassetteError, match='"name": "sub"'):
        await replaying("?", tools=[{**tool, "name": "sub"}])


async def test_failures_are_not_recorded(cassette):
    """A retry records the reply that came in the end, as the first of its request."""
    real = ScriptedLM([sm.UnavailableError("down"), "here", "again"])
    lm = RecordReplayLM(cassette, real, attempts=2)
    assert (await lm("?")).text == "here"
    assert (await lm("?")).text == "again"
    assert [(record["nth"], record["reply"]["text"]) for record in lines(cassette)] == [(1, "here"), (2, "again")]


async def test_a_cancelled_call_leaves_its_place(cassette):
    """Whoever asks next is the first again."""
    lm = RecordReplayLM(cassette, echo(latency_s=0.01))
    task = asyncio.create_task(lm("?"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not cassette.exists()
    await lm("?")
    assert lines(cassette)[0]["nth"] == 1


async def test_the_nearest_request_is_shown(cassette):
    """The error shows the request that is most alike, and the lines in which they differ."""
    recording = RecordReplayLM(cassette, echo())
    for text in ("What is the capital of France?\nAnswer briefly.", "Sing a song of sixpence."):
        await recording(text, temperature=0)
    with pytest.raises(sm.CassetteError) as caught:
        await RecordReplayLM(cassette)("What is the capital of Spain?\nAnswer briefly.", temperature=0)
    text = str(caught.value)
    removed, added = (
        [line[1:].strip() for line in text.splitlines() if line.startswith(sign) and not line.startswith(sign * 3)]
        for sign in "-+"
    )
    assert len(removed) == len(added) == 1
    assert "France" in removed[0] and "Spain" in added[0]
    assert "sixpence" not in text
    assert str(cassette) in text and "on_missing='record'" in text and "requests sent: 0" in text


@pytest.mark.parametrize("on_missing", ["record", "error"])
async def test_an_empty_cassette_without_a_model_is_an_error(cassette, on_missing):
    """Nothing is sent, and nothing is made."""
    with pytest.raises(sm.CassetteError, match="it is empty, or missing") as caught:
        await RecordReplayLM(cassette, on_missing=on_missing)("?")
    assert isinstance(caught.value, LookupError)
    assert not caught.value.transient
    assert not cassette.exists()


async def test_no_secret_is_written(cassette, monkeypatch):
    """Neither keys nor hidden headers, also where a prompt or reply quotes them; and they are no part of the key."""
    secret, quoted = "sk-0123456789", 'a"key\\with-signs'
    monkeypatch.setenv("GROQ_API_KEY", quoted)
    behind = FunctionLM(lambda request: f"you sent {secret} and {quoted}", api_key=secret, headers={"X-Team": "blue42"})
    reply = await RecordReplayLM(cassette, behind)(f"my key is {secret}, not {quoted}")
    assert secret in reply.text
    for word in (secret, "0123456789", "with-signs", "X-Team", "blue42"):
        assert word not in cassette.read_text()
    assert "***" in cassette.read_text()
    again = await RecordReplayLM(cassette, behind, on_missing="error")(f"my key is {secret}, not {quoted}")
    assert again.text == "you sent *** and ***"


async def test_replaying_needs_no_key_and_no_provider(cassette, monkeypatch):
    """A model without its key replays; only what is missing needs it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    await RecordReplayLM(cassette, echo(model="openai/gpt-4o-mini", temperature=0))("?")
    lm = RecordReplayLM(cassette, sm.LanguageModel("openai/gpt-4o-mini", temperature=0))
    assert (await lm("?")).text == "?"
    with pytest.raises(sm.AuthError, match="OPENAI_API_KEY"):
        await lm("another")


async def _asked(cassette, text):
    return await RecordReplayLM(cassette, echo())(text)


def test_a_crash_leaves_whole_lines(cassette):
    """A line that was cut off is left out, and cut from the file before the next one is added."""
    asyncio.run(_asked(cassette, "two"))
    whole = cassette.read_bytes()
    cassette.write_bytes(whole + b'{"request": {"mod')
    asyncio.run(_asked(cassette, "two"))
    assert cassette.read_bytes() == whole
    asyncio.run(_asked(cassette, "three"))
    assert [record["reply"]["text"] for record in lines(cassette)] == ["two", "three"]


def test_a_killed_recording_keeps_what_it_had(cassette):
    """Every reply that a killed process returned stands in the cassette."""
    script = f"""
        import os, sys
        import synmod as sm
        from synmod.testing import FunctionLM, RecordReplayLM
        lm = RecordReplayLM({str(cassette)!r}, FunctionLM(lambda request: "x" * 5000))
        async def main():
            for number in range(20):
                await lm(f"question {{number}}")
            os.kill(os.getpid(), 9)
        sm.run(main)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(script)]).returncode == -9
    assert len(lines(cassette)) == 20


@pytest.mark.parametrize("line", ["prose", "{}", '{"request": {"model": "a/b"}, "nth": 1, "reply": {"txt": ""}}', "[]"])
def test_what_is_no_cassette_is_refused(tmp_path, line):
    """The error names file, line and form."""
    path = tmp_path / "notes.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(sm.CassetteError, match=r"notes.jsonl, line 1: wanted .*\"request\"") as caught:
        RecordReplayLM(path)
    assert "indices" not in str(caught.value)


def test_a_folder_is_not_a_cassette(tmp_path):
    """A CassetteError names it."""
    with pytest.raises(sm.CassetteError, match=f"{tmp_path.name}: wanted a file"):
        RecordReplayLM(tmp_path)


def test_on_missing_is_one_of_two_words(cassette):
    """'Did you mean'."""
    with pytest.raises(sm.ConfigError, match="Did you mean 'record'"):
        RecordReplayLM(cassette, on_missing="recrd")


def test_it_runs_on_every_loop(any_loop, cassette):
    """asyncio, eager tasks and trio."""

    async def ask():
        return (await RecordReplayLM(cassette, echo())("hello")).text

    assert any_loop(ask) == any_loop(ask) == "hello"

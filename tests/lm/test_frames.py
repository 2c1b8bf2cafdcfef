"""Tracebacks: reporters of errors print the values in frames, and none of ours holds a key or a hidden header."""

import asyncio
import contextlib
import functools
import os
import traceback

import pytest
from pydantic import SecretStr

import synmod as sm
from synmod.errors import ConfigError, SynmodError
from synmod.lm import EmbeddingModel, LanguageModel
from synmod.testing import ScriptedLM
from tests.lm.loopback import Answer, Loopback, completion, failure, record

KEY, HEADER = "sk-secret-key-0123456789", "hidden-header-0123456789"


def errors_of(error):
    """An exception, what it is chained to, and the members of groups."""
    pending, known = [error], []
    while pending:
        one = pending.pop()
        if one is not None and one not in known:
            known.append(one)
            pending += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return known


def printed(error):
    """What a reporter prints of the frames that are not of this file: reprs, and one level of attributes."""
    shown = []
    for one in errors_of(error):
        shown += [repr(one), str(one)]
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_code.co_filename == __file__:
                continue
            for value in frame.f_locals.values():
                inside = not isinstance(value, SecretStr) and getattr(value, "__dict__", None)
                waiting = getattr(value, "cr_frame", None)
                with contextlib.suppress(AttributeError):  # the repr of a model that was not made
                    shown += [repr(value), repr(inside), repr(waiting and waiting.f_locals)]
    return "\n".join(shown)


async def cancelled(calling):
    task = asyncio.ensure_future(calling)
    await asyncio.sleep(0.1)
    task.cancel()
    await task


async def in_time(calling):
    async with asyncio.timeout(0.1):
        await calling


async def in_deadline(calling):
    with sm.deadline(0.1):
        await calling


async def in_group(calling):
    async with asyncio.TaskGroup() as group:
        group.create_task(calling)
        await asyncio.sleep(0.1)
        raise RuntimeError("another task")


ENDS = {
    "cancelled": cancelled,
    "asyncio.timeout": in_time,
    "wait_for": lambda calling: asyncio.wait_for(calling, 0.1),
    "sm.deadline": in_deadline,
    "a task group": in_group,
}


async def read(lm, **call):
    async with await lm("Hi", stream=True, **call) as stream:
        async for _ in stream:
            pass


CALLS = {
    "whole": lambda lm: lm("Hi"),
    "streamed": read,
    "in a generator": lambda lm: sm.Generator({"a": str}, language_model=lm)(sm.JsonDataModel({"q": "x"}, schema={})),
}


async def later():
    return KEY


def model(base, **given):
    headers = {"X-Hidden": SecretStr(HEADER), "Api-Key": HEADER}
    return LanguageModel("openai/m", **{"api_key": KEY, "api_base": base, "headers": headers, "attempts": 1} | given)


@pytest.mark.parametrize("adapter", ["direct", pytest.param("litellm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("end", ENDS)
async def test_a_call_that_is_ended_from_outside(end, call, adapter):
    """Neither the key nor a hidden header stands in a frame, whoever ends the call."""
    async with Loopback(Answer(delay_s=30)) as server:
        lm = model(server.base, adapter=adapter)
        await asyncio.to_thread(__import__, "litellm") if adapter == "litellm" else None
        with pytest.raises(BaseException) as caught:  # each end has a class of its own
            await ENDS[end](CALLS[call](lm))
        await lm.aclose()
    assert KEY not in printed(caught.value)
    assert HEADER not in printed(caught.value)


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.05])
@pytest.mark.parametrize(
    "key", [KEY, SecretStr(KEY), later, functools.partial(str, KEY)], ids=["text", "secret", "coroutine", "plain"]
)
async def test_a_call_that_is_cancelled_anywhere(key, after_s):
    """While the key is read, a connection opened, a stream read: however the key was given."""
    packets = (record({"content": "a"}), functools.partial(asyncio.sleep, 30))
    async with Loopback(Answer(packets=packets)) as server:
        lm = model(server.base, api_key=key)
        task = asyncio.ensure_future(read(lm))
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        await lm.aclose()
    assert KEY not in printed(caught.value)


@pytest.mark.parametrize(
    "answer", [failure(401), failure(429), failure(500), failure(400), Answer(200, {}), Answer(cut=True)], ids=str
)
@pytest.mark.parametrize("adapter", ["direct", pytest.param("litellm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_fails(call, adapter, answer):
    """Every class of error; a timeout of ours."""
    async with Loopback(answer) as server:
        lm = model(server.base, adapter=adapter)
        with pytest.raises(SynmodError) as caught:
            await CALLS[call](lm)
        await lm.aclose()
    assert KEY not in printed(caught.value)
    assert HEADER not in printed(caught.value)


@pytest.mark.parametrize("given", [{"timeout_s": 0.1}, {"attempt_timeout_s": 0.1}], ids=str)
async def test_a_call_that_takes_too_long(given):
    """`timeout_s` and `attempt_timeout_s`."""
    async with Loopback(Answer(delay_s=30)) as server:
        lm = model(server.base, **given)
        with pytest.raises(sm.ModelTimeout) as caught:
            await lm("Hi")
        await lm.aclose()
    assert KEY not in printed(caught.value)


async def test_a_server_that_cannot_be_reached():
    """A refused connection, and one to a port without TLS."""
    async with Loopback() as server:
        for base in ("http://127.0.0.1:9/v1", server.base.replace("http:", "https:")):
            with pytest.raises(sm.ModelError) as caught:
                await model(base)("Hi")
            assert KEY not in printed(caught.value)


@pytest.mark.parametrize("end", ENDS)
async def test_an_embedding_that_is_ended_from_outside(end):
    """The same adapters, in concurrent batches."""
    async with Loopback(Answer(delay_s=30)) as server:
        em = EmbeddingModel("openai/m", api_key=KEY, api_base=server.base, batch_size=1)
        with pytest.raises(BaseException) as caught:  # each end has a class of its own
            await ENDS[end](em(["a", "b"]))
        await em.aclose()
    assert KEY not in printed(caught.value)


async def test_a_callable_that_fails_is_shown_with_its_own_lines():
    """Its traceback is whole, and none of our frames holds the key of an earlier request."""
    keys = iter([KEY])

    async def rotating():
        return next(keys, None) or os.environ["NO_SUCH_VARIABLE_OF_OURS"]

    async with Loopback(completion()) as server:
        lm = model(server.base, api_key=rotating)
        await lm("Hi")
        with pytest.raises(KeyError) as caught:
            await lm("Hi")
        await lm.aclose()
    assert KEY not in printed(caught.value)
    assert "rotating" in [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("kind", [LanguageModel, EmbeddingModel])
@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"attemps": 3}, {"headers": {"X": SecretStr(f"{HEADER}\n")}}], ids=str
)
def test_a_model_that_cannot_be_made(kind, wrong):
    """The frames of the constructor show no key."""
    with pytest.raises((ConfigError, sm.ArgumentError)) as caught:
        kind("openai/m", api_key=KEY, **wrong)
    assert KEY not in printed(caught.value)
    assert HEADER not in printed(caught.value)


async def test_a_fault_of_our_own_lists_its_frames():
    """An exception that nobody expects loses its frames, not where it was raised."""

    class Unreadable(LanguageModel):
        pass

    async with Loopback(completion()) as server:
        lm = Unreadable("openai/m", api_key=KEY, api_base=server.base)
        lm.adapter._endpoint = lm.adapter._endpoint._replace(read=lambda *_: {}["missing"])
        with pytest.raises(KeyError) as caught:
            await lm("Hi")
        await lm.aclose()
    assert "in _read_content" in "".join(caught.value.__notes__)
    assert KEY not in printed(caught.value)


# -- what a reader sees ------------------------------------------------------------------------------------------------


class Query(sm.DataModel):
    """A question."""

    q: str


class Asking(sm.Module):
    """A module of the user, around a generator."""

    def __init__(self, lm):
        super().__init__()
        self.ask = sm.Generator({"a": str}, language_model=lm)

    async def call(self, inputs: Query):
        return await self.ask(inputs)


CAUSES = {
    "no key": lambda: LanguageModel("openai/m"),
    "no model": lambda: None,
    "a refused connection": lambda: LanguageModel("openai/m", api_base="http://127.0.0.1:9/v1", attempts=1),
    "a bad reply": lambda: ScriptedLM(["no JSON"], repairs=0),
    "all fallbacks": lambda: ScriptedLM([sm.UnavailableError("a")], attempts=1, fallback=LanguageModel("openai/m")),
}
RUNS = {"sm.run": sm.run, "asyncio.run": lambda module, inputs: asyncio.run(module(inputs))}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_traceback_is_short_and_holds_the_lines_of_the_user(cause, run, monkeypatch):
    """Of ours there is the frame that raised, of the user there are all."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    module = Asking(CAUSES[cause]())
    with pytest.raises(SynmodError) as caught:
        RUNS[run](module, Query(q="x"))
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    ours = [frame for frame in frames if f"{os.sep}synmod{os.sep}" in frame.f_code.co_filename]
    assert len(ours) <= 1
    assert [frame.f_code.co_name for frame in frames if frame.f_code.co_filename == __file__][-1] == "call"
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len([line for line in lines if line.strip(" ~^")]) <= 25  # Python 3.13 underlines some


def test_an_adapter_of_the_user_keeps_its_lines():
    """What a user's adapter raises shows where."""

    class Mine:
        name, version = "mine", 1

        async def send(self, request):
            raise sm.RequestError("not in this way")

    with pytest.raises(sm.RequestError) as caught:
        sm.run(LanguageModel("my/m", adapter=Mine()), "?")
    assert "raise sm.RequestError" in "".join(traceback.format_exception(caught.value))

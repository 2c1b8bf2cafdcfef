"""Events of a model call: one begin, one end, nothing where nobody listens; and errors that tell all."""

import asyncio

import pytest
from pydantic import SecretStr

import synmod as sm
from synmod.errors import AuthError, ModelError, RateLimitError, UnavailableError
from synmod.testing import FunctionLM, ScriptedLM
from tests.lm.in_module import inside


class Listener(sm.Hook):
    """Writes down what it is told."""

    def __init__(self):
        self.begins, self.ends = [], []

    def on_lm_begin(self, event):
        self.begins.append(event)

    def on_lm_end(self, event):
        self.ends.append(event)


async def test_one_begin_and_one_end_for_each_call():
    """The records carry place, request, model, reply, attempts, usage, time and cached."""
    lm, heard = ScriptedLM([UnavailableError("down"), "ok"]), Listener()

    async def ask():
        return sm.current_call(), await lm("?")

    with sm.hooks(heard), sm.phase("reward"):
        frame, reply = await inside("pipeline/writer", ask)
    (begin,), (end,) = heard.begins, heard.ends
    assert begin.request is end.request is lm.requests[0]
    assert (begin.model, end.model) == (lm.model, lm.model)
    assert (end.reply, end.exception, end.attempts, end.cached) == (reply, None, 2, False)
    assert (end.usage, end.elapsed_s) == (reply.usage, reply.elapsed_s)
    for event in (begin, end):
        assert (event.call_id, event.parent_call_id) == (frame.id, frame.parent_id)
        assert (event.path, event.name, event.phase, event.training) == ("pipeline/writer", "writer", "reward", False)


async def test_hooks_of_the_modules_above_are_told():
    """A module's own hooks see the model calls inside its calls."""
    heard = Listener()
    await inside("writer", lambda: FunctionLM(lambda request: "x")("?"), hooks=[heard])
    assert len(heard.begins) == len(heard.ends) == 1


async def test_an_end_tells_the_failure():
    """The exception is the object that the caller gets, with its text complete."""
    lm, heard = ScriptedLM([AuthError("bad key")]), Listener()
    with sm.hooks(heard), pytest.raises(AuthError) as caught:
        await lm("?")
    assert heard.ends[0].exception is caught.value
    assert heard.ends[0].reply is None
    assert heard.ends[0].attempts == 1


async def test_a_cancelled_call_ends_too():
    """The end of a cancelled call carries the cancellation."""
    lm, heard = FunctionLM(lambda request: "x", latency_s=60), Listener()
    with sm.hooks(heard):
        task = asyncio.create_task(lm("?"))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert isinstance(heard.ends[0].exception, asyncio.CancelledError)
    assert len(heard.begins) == len(heard.ends) == 1


async def test_a_failing_hook_changes_nothing(caplog):
    """What a hook raises is logged, and the call goes on."""

    class Broken(sm.Hook):
        def on_lm_begin(self, event):
            raise RuntimeError("hook")

        def on_lm_end(self, event):
            raise RuntimeError("hook")

    with sm.hooks(Broken()):
        assert (await FunctionLM(lambda request: "x")("?")).text == "x"
    assert "hook" in caplog.text


async def test_the_text_of_an_error_has_the_exact_shape():
    """Model, cause; then module and requests sent."""
    lm = ScriptedLM([RateLimitError("busy", status=429)], attempts=1)
    with pytest.raises(RateLimitError) as caught:
        await inside("pipeline/writer", lambda: lm("?"))
    assert str(caught.value) == "testing/scripted: busy\n  module: pipeline/writer   requests sent: 1"
    asking = sm.Generator(
        {"answer": str}, language_model=ScriptedLM([RateLimitError("busy")], attempts=1), name="draft"
    )
    with pytest.raises(RateLimitError, match=r"module: 0 \(draft\)   requests"):
        await sm.Sequential([asking])(sm.JsonDataModel({"query": "?"}, schema={"type": "object"}))


async def test_every_error_tells_where_and_when():
    """model, attempts, elapsed_s, path and phase are filled in; what the adapter told stays."""
    error = RateLimitError("busy", status=429, request_id="r1", retry_after_s=2, provider_message="slow down")
    lm = FunctionLM(lambda request: error, attempts=2, latency_s=0.01)
    with sm.phase("optimizer"), pytest.raises(ModelError) as caught:
        await inside("a/b", lambda: lm("?"))
    got = caught.value
    assert (got.model, got.status, got.attempts, got.path, got.phase) == (lm.model, 429, 2, "a/b", "optimizer")
    assert (got.request_id, got.retry_after_s, got.provider_message) == ("r1", 2, "slow down")
    assert got.elapsed_s >= 0.02
    assert got.transient is True


async def test_secrets_never_leave_in_an_error():
    """Texts of errors and of attempts are scrubbed of key and headers."""
    secret = "sk-very-secret-key"
    error = UnavailableError(f"bad {secret}", provider_message=f"echo {secret} and token-98765")
    heard = Listener()
    lm = FunctionLM(lambda request: error, api_key=secret, headers={"X-Auth": SecretStr("Bearer token-98765")})
    with sm.hooks(heard), pytest.raises(UnavailableError) as caught:
        await lm("?")
    told = f"{caught.value} {caught.value.provider_message} {caught.value.args} {heard.ends[0]!r}"
    assert secret not in told
    assert "token-98765" not in told
    assert "***" in told


async def test_provider_messages_are_cut():
    """At most 2 kB of what a provider said."""
    with pytest.raises(UnavailableError) as caught:
        await ScriptedLM([UnavailableError("x", provider_message="é" * 5000)], attempts=1)("?")
    assert len(caught.value.provider_message.encode()) <= 2000


@pytest.mark.parametrize("before", range(1_900, 2_010, 5))
async def test_no_part_of_a_secret_stays_where_a_text_is_cut(before):
    """Texts are scrubbed before they are cut, and the whole message keeps to 2 kB."""
    said = "y" * before + "sk-very-secret-key"
    lm = ScriptedLM([UnavailableError(said, provider_message=said)], attempts=1, api_key="sk-very-secret-key")
    heard = Listener()
    with sm.hooks(heard), pytest.raises(UnavailableError) as caught:
        await lm("?")
    assert "ysk" not in f"{caught.value} {caught.value.provider_message} {heard.ends[0]!r}"
    assert len(str(caught.value).encode()) <= 2_000
    assert "requests sent: 1" in str(caught.value)


async def test_no_listener_no_record(monkeypatch):
    """Without a listener no event is made."""
    from synmod import scope

    def refuse(*args, **kwargs):
        raise AssertionError("an event was made")

    monkeypatch.setattr(scope, "LMBegin", refuse)
    monkeypatch.setattr(scope, "LMEnd", refuse)
    lm = FunctionLM(lambda request: "x")
    assert (await lm("?")).text == "x"
    with sm.hooks(Listener()), pytest.raises(AssertionError, match="an event was made"):
        await lm("?")

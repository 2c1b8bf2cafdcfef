"""What is refused before a request leaves: by the adapter's own word, without a second try."""

import asyncio

import pytest

import synmod as sm
from synmod.errors import AuthError, BadReplyError, DeadlineExceeded, ModelTimeout, UnavailableError
from synmod.leaves.aio import use_clock
from synmod.lm import LanguageModel, LMReply
from synmod.testing import FunctionLM


class Adapter:
    """An adapter that may refuse early."""

    name, version = "early", 1

    def __init__(self, *, check=None, prepare=None, send=None):
        self.sent = 0
        self._check, self._prepare, self._send = check, prepare, send

    def check(self, request):
        if self._check is not None:
            raise self._check

    async def prepare(self, request):
        if isinstance(self._prepare, Exception):
            raise self._prepare
        await asyncio.sleep(self._prepare or 0)

    async def send(self, request):
        self.sent += 1
        if self._send is not None:
            raise self._send
        return LMReply("x")


@pytest.mark.parametrize("where", ["check", "prepare"])
async def test_an_early_refusal_costs_nothing(where):
    """No request, no budget, no second try, although the error is transient."""
    adapter = Adapter(**{where: UnavailableError("not here")})
    lm = LanguageModel("my/model", adapter=adapter)
    with sm.budget(calls=1) as budget, pytest.raises(UnavailableError, match="not here") as caught:
        await lm("?")
    assert (adapter.sent, caught.value.attempts, budget.used.calls, lm.cumulated_requests) == (0, 0, 0, 0)
    assert lm.cumulated_failed_calls == 1


async def test_getting_ready_does_not_count_as_time_of_the_call():
    """`timeout_s` begins after what an adapter loads first; a deadline around it holds all the same."""
    ready = LanguageModel("my/model", adapter=Adapter(prepare=0.1), timeout_s=0.05, attempt_timeout_s=0.04)
    assert (await ready("?")).text == "x"
    slow = LanguageModel("my/model", adapter=Adapter(prepare=5))
    with pytest.raises(DeadlineExceeded), sm.deadline(0.05):
        await slow("?")


async def test_what_an_adapter_finds_out_while_sending_is_no_request_either():
    """An error with `sent=False` is not counted, and not retried."""
    adapter = Adapter(send=UnavailableError("no credentials", sent=False))
    with sm.budget(calls=1) as budget, pytest.raises(UnavailableError) as caught:
        await LanguageModel("my/model", adapter=adapter)("?")
    assert (adapter.sent, caught.value.attempts, budget.used.calls) == (1, 0, 0)


async def test_the_end_of_the_time_is_never_tried_again():
    """Also on a clock that says that time stands still."""

    class Still:
        def now(self):
            return 0.0

        async def sleep(self, seconds):
            raise AssertionError("no wait is due")

    lm = FunctionLM(lambda request: "x", latency_s=60, timeout_s=0.05, backoff=True)
    with use_clock(Still()), pytest.raises(ModelTimeout, match="timeout_s"):
        await lm("?")
    assert len(lm.requests) == 1


async def test_a_plain_send_may_give_the_reply_itself():
    """An adapter that never waits needs no coroutine."""

    class Plain:
        name, version = "plain", 1

        def send(self, request):
            return LMReply("at once")

    assert (await LanguageModel("my/model", adapter=Plain())("?")).text == "at once"


async def test_a_reply_that_costs_too_much_to_check_is_a_bad_reply():
    """The reply is at fault, not the schema."""
    schema = {
        "type": "object",
        "properties": {"v": {"type": "array", "items": {"anyOf": [{"const": n} for n in range(99)]}}},
    }
    lm = FunctionLM(lambda request: {"v": list(range(1000, 9000))}, attempts=1)
    with pytest.raises(BadReplyError) as caught:
        await lm("?", schema)
    assert caught.value.reason == "schema"


async def test_checks_come_before_events_end(monkeypatch):
    """A missing key is told to hooks like any failure."""
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    ends = []

    class Listener(sm.Hook):
        def on_lm_end(self, event):
            ends.append((type(event.exception), event.attempts))

    with sm.hooks(Listener()), pytest.raises(AuthError):
        await LanguageModel("groq/m")("?")
    assert ends == [(AuthError, 0)]

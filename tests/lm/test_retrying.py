"""The one retry loop: exactly `attempts` requests, and waits by the book."""

import gc
import weakref
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

import synmod as sm
from synmod.errors import AuthError, ContextWindowError, ModelTimeout, RateLimitError, RequestError, UnavailableError
from synmod.leaves.aio import use_clock
from synmod.lm.failures import http_error
from synmod.testing import FunctionLM, ScriptedLM
from tests.clock import ManualClock


@pytest.fixture
def clock():
    """The clock of the test."""
    fake = ManualClock()
    with use_clock(fake):
        yield fake


@pytest.mark.parametrize("attempts", [1, 2, 3, 7])
@pytest.mark.parametrize("error", [UnavailableError, RateLimitError, ModelTimeout])
async def test_a_lasting_transient_failure_sends_exactly_attempts(clock, error, attempts):
    """Promise A4: never more requests, never fewer."""
    lm = FunctionLM(lambda request: error("still so"), attempts=attempts, timeout_s=None, backoff=True)
    with pytest.raises(error) as caught:
        await lm("?")
    assert len(lm.requests) == caught.value.attempts == attempts
    assert len(clock.waits) == attempts - 1


@pytest.mark.parametrize("error", [AuthError, RequestError, ContextWindowError])
async def test_permanent_failures_are_not_retried(clock, error):
    """A mistake to mend costs one request."""
    lm = FunctionLM(lambda request: error("no"), backoff=True)
    with pytest.raises(error):
        await lm("?")
    assert (len(lm.requests), clock.waits) == (1, [])


async def test_waits_are_full_jitter(clock):
    """Each wait lies between 0 and min(30, 0.5 * 2**n) seconds."""
    lm = FunctionLM(lambda request: UnavailableError("down"), attempts=10, timeout_s=None, backoff=True)
    for _ in range(20):
        clock.waits.clear()
        with pytest.raises(UnavailableError):
            await lm("?")
        for number, wait in enumerate(clock.waits):
            assert 0 <= wait <= min(30, 0.5 * 2**number)


async def test_retry_after_is_honoured(clock):
    """What the provider asks for is waited, and told in the attempts."""
    lm = ScriptedLM([RateLimitError("busy", retry_after_s=7), "ok"], backoff=True)
    reply = await lm("?")
    assert clock.waits == [7]
    assert [attempt.waited_s for attempt in reply.attempts] == [0, 7]


async def test_a_wait_over_sixty_seconds_raises_now(clock):
    """A wait of more than 60 s raises the failure at once, and names it."""
    lm = ScriptedLM([RateLimitError("busy", retry_after_s=90), "ok"], backoff=True)
    with pytest.raises(RateLimitError, match=r"90 s.*60 s") as caught:
        await lm("?")
    assert (clock.waits, caught.value.retry_after_s, caught.value.attempts) == ([], 90, 1)


async def test_a_wait_past_the_deadline_raises_now(clock):
    """A wait that would pass the end of the call raises at once, and names it."""
    lm = ScriptedLM([RateLimitError("busy", retry_after_s=7), "ok"], backoff=True, timeout_s=5)
    with pytest.raises(RateLimitError, match="7 s would pass the deadline"):
        await lm("?")
    lm = ScriptedLM([RateLimitError("busy", retry_after_s=7), "ok"], backoff=True)
    with pytest.raises(RateLimitError, match="7 s would pass the deadline"), sm.deadline(6):
        await lm("?")
    assert clock.waits == []


async def test_doubles_do_not_sleep_unless_asked():
    """A double goes on at once."""
    lm = ScriptedLM([RateLimitError("busy", retry_after_s=50), "ok"])
    assert (await lm("?")).elapsed_s < 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7), ("0", 0), ("-3", 0), ("1.5", 1.5), ("soon", None), ("nan", None), ("inf", None), (None, None)],
)
def test_retry_after_in_seconds(value, seconds):
    """A number of seconds; anything that is none counts as not given."""
    headers = {} if value is None else {"retry-after": value}
    assert http_error(429, headers, "").retry_after_s == seconds


def test_retry_after_as_a_date():
    """A date gives the seconds until it, none if it is over."""
    later = datetime.now(UTC) + timedelta(seconds=30)
    soon = http_error(429, {"retry-after": format_datetime(later, usegmt=True)}, "")
    assert 28 < soon.retry_after_s <= 30
    assert http_error(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "").retry_after_s == 0


async def test_an_error_raised_again_and_again_stays_readable():
    """The same error object may come from the adapter several times."""
    error = UnavailableError("down")
    lm = ScriptedLM([error, error, error, error])
    for sent in (3, 1):
        lm_now = lm if sent == 3 else ScriptedLM([error], attempts=1)
        with pytest.raises(UnavailableError) as caught:
            await lm_now("?")
        assert str(caught.value) == f"testing/scripted: down\n  requests sent: {sent}"
        assert caught.value is error


class Failing:
    """An adapter that fails in one way."""

    name = "failing"
    version = 1

    def __init__(self, made):
        self.made = made

    async def send(self, request):
        raise self.made()


@pytest.mark.parametrize(
    "made",
    [
        lambda: AuthError("no"),
        lambda: UnavailableError("down", retry_after_s=0),
        lambda: RateLimitError("later", retry_after_s=61),
    ],
)
async def test_a_failed_call_is_freed_by_counting(made):
    """No frame of the layers holds the error whose traceback holds the frame."""
    gc.disable()
    try:
        lm = sm.LanguageModel("own/failing", adapter=Failing(made))
        with pytest.raises(type(made())):
            await lm("?")
        held = weakref.ref(lm)
        del lm
        assert held() is None
    finally:
        gc.enable()

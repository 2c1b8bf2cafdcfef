"""Fallback: another model answers where this one cannot, under settings of its own."""

import asyncio

import pytest

import synmod as sm
from synmod.testing import FunctionLM, ScriptedLM

ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
FALLS_BACK = [
    sm.UnavailableError("down"), sm.RateLimitError("busy"), sm.ModelTimeout("late"), sm.ContextWindowError("long"),
    sm.BadReplyError("bad"),
]  # fmt: skip


def failing(error, **lm):
    """A model that always fails."""
    return FunctionLM(lambda request: error, **lm)


@pytest.mark.parametrize("error", FALLS_BACK, ids=lambda error: type(error).__name__)
async def test_the_next_model_answers(error):
    """After the five failures that another model may not have; `reply.model` is who answered."""
    first = failing(error, model="a/first", fallback=FunctionLM(lambda request: {"answer": "Paris"}, model="b/second"))
    reply = await first("Capital?", ANSWER)
    assert (reply["answer"], reply.model) == ("Paris", "b/second")
    assert reply.usage.requests == 1


@pytest.mark.parametrize("error", [sm.AuthError("no key"), sm.RequestError("no"), TypeError("a bug")])
async def test_mistakes_to_correct_are_not_passed_on(error):
    """Nobody else is asked."""
    second = FunctionLM(lambda request: "x")
    with pytest.raises(type(error)):
        await failing(error, fallback=second)("?")
    assert second.requests == []


async def test_a_fallback_without_a_price_leaves_the_first_error():
    """Under a limit of cost it cannot answer: what failed first is raised, and the rest is a note."""
    first = failing(sm.UnavailableError("down"), attempts=1, price=(1, 1), fallback=FunctionLM(lambda _: "x"))
    with sm.budget(cost_usd=1), pytest.raises(sm.UnavailableError, match="down") as caught:
        await first("?")
    assert "ConfigError" in caught.value.__notes__[0] and "price=" in caught.value.__notes__[0]
    with sm.budget(cost_usd=1), pytest.raises(sm.ConfigError, match="price="):
        await FunctionLM(lambda _: "x", fallback=first)("?")


async def test_if_all_fail_the_first_error_is_raised_with_notes():
    """One note for each other model, in order, with its error."""
    models = [failing(error, model=f"m/{n}") for n, error in enumerate(FALLS_BACK[1:])]
    first = failing(sm.UnavailableError("down"), model="a/first", fallback=models)
    with pytest.raises(sm.UnavailableError, match="down") as caught:
        await first("?")
    assert caught.value.model == "a/first"
    assert [note.split(" ")[1] for note in caught.value.__notes__] == ["m/0", "m/1", "m/2", "m/3"]
    assert "RateLimitError: m/0: busy" in caught.value.__notes__[0]
    assert caught.value.__context__ is None


async def test_a_mistake_of_a_fallback_ends_the_search():
    """It stands in a note of the first error, and the models after it are not asked."""
    third = FunctionLM(lambda request: "x")
    first = failing(sm.RateLimitError("busy"), attempts=1, fallback=[failing(sm.AuthError("no key")), third])
    with pytest.raises(sm.RateLimitError) as caught:
        await first("?")
    assert "AuthError" in caught.value.__notes__[0]
    assert third.requests == []


async def test_each_model_has_settings_of_its_own():
    """Attempts, sampling defaults, structured level, cache and limit; call parameters go to all."""
    second = FunctionLM(
        lambda request: sm.UnavailableError("down") if len(second.requests) < 4 else "x", model="b/second",
        attempts=4, temperature=1, structured="prompt", cache=sm.Cache(), limit=1,
    )  # fmt: skip
    first = failing(sm.UnavailableError("down"), attempts=2, temperature=0, top_k=3, fallback=second)
    assert (await first("?", seed=7)).text == "x"
    assert (len(first.requests), len(second.requests)) == (2, 4)
    assert first.requests[0].params == {"temperature": 0, "top_k": 3, "seed": 7}
    assert second.requests[0].params == {"temperature": 1, "seed": 7}
    assert (second.requests[0].model, second.requests[0].structured) == ("b/second", "prompt")
    again = await first("?", seed=7)
    assert again.cached
    assert len(second.requests) == 4


async def test_timeouts_are_those_of_each_model_and_a_deadline_bounds_all():
    """The second model has its whole time; `sm.deadline` ends everything."""
    second = FunctionLM(lambda request: "x", latency_s=0.08)
    first = FunctionLM(lambda request: "x", latency_s=9, timeout_s=0.05, fallback=second)
    assert (await first("?")).text == "x"
    third = FunctionLM(lambda request: "x", latency_s=9)
    with pytest.raises(sm.DeadlineExceeded), sm.deadline(0.1):
        await FunctionLM(lambda request: "x", latency_s=9, timeout_s=0.05, fallback=third)("?")
    assert len(third.requests) == 1


async def test_every_model_tried_is_a_call_in_events_and_counters():
    """One begin and one end each; budgets count both."""
    ends = []

    class Ends(sm.Hook):
        def on_lm_end(self, event):
            ends.append((event.model, type(event.exception).__name__))

    second = FunctionLM(lambda request: "x", model="b/second")
    first = failing(sm.UnavailableError("down"), model="a/first", attempts=1, fallback=second)
    with sm.hooks(Ends()), sm.budget(calls=5) as budget:
        await first("?")
    assert ends == [("a/first", "UnavailableError"), ("b/second", "NoneType")]
    assert (first.cumulated_failed_calls, second.cumulated_calls, second.cumulated_failed_calls) == (1, 1, 0)
    assert budget.used.calls == 2


async def test_a_fallback_has_fallbacks_of_its_own():
    """Depth first, each model once, however it is reached."""
    last = FunctionLM(lambda request: "x", model="m/last")
    down = sm.UnavailableError("down")
    third = failing(down, model="m/third", attempts=1, fallback=last)
    second = failing(down, model="m/second", attempts=1, fallback=[third])
    first = failing(down, model="m/first", attempts=1, fallback=[second, third])
    assert [lm.model for lm in first.with_fallbacks()] == ["m/first", "m/second", "m/third", "m/last"]
    assert (await first("?")).model == "m/last"
    assert len(third.requests) == 1


def test_strings_are_the_models_of_the_process():
    """One string, several, or models."""
    lm = sm.LanguageModel("openai/a", fallback=["openai/b", sm.LanguageModel("openai/c")])
    assert [each.model for each in lm.fallback] == ["openai/b", "openai/c"]
    assert lm.fallback[0] is sm.LanguageModel("openai/d", fallback="openai/b").fallback[0]
    assert sm.LanguageModel("openai/a").fallback == ()


def test_a_cycle_is_refused():
    """Also one that is closed later; the model stays as it was."""
    with pytest.raises(sm.ConfigError, match="openai/a: fallback: 'openai/a' leads back"):
        sm.LanguageModel("openai/a", fallback="openai/a")
    last = sm.LanguageModel("openai/a")
    first = sm.LanguageModel("openai/b", fallback=sm.LanguageModel("openai/c", fallback=last))
    with pytest.raises(sm.ConfigError, match="leads back"):
        last.fallback = first
    assert last.fallback == ()
    with pytest.raises(sm.ConfigError, match="leads back"):
        last.fallback = last
    last.fallback = None
    for wrong in (3, [3], "no-slash"):
        with pytest.raises(sm.ConfigError, match="fallback|wanted 'provider/name'"):
            last.fallback = wrong


async def test_stand_ins_answer_for_fallbacks_too():
    """By name; one that stands for all brings its own fallbacks."""
    down = sm.UnavailableError("down")
    first = failing(down, model="a/first", attempts=1, fallback="b/second")
    double = ScriptedLM(["x"])
    with sm.use_language_models({"b/second": double}):
        assert (await first("?")).text == "x"
    backup = ScriptedLM(["y"])
    with sm.use_language_models(failing(down, attempts=1, fallback=backup)):
        assert (await sm.LanguageModel("openai/m")("?")).text == "y"


async def test_a_cancelled_call_asks_nobody_else():
    """A cancellation is no failure."""
    second = FunctionLM(lambda request: "x")
    task = asyncio.create_task(FunctionLM(lambda request: "x", latency_s=9, fallback=second)("?"))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert second.requests == []

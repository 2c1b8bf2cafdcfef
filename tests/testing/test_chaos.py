"""ChaosLM: faults drawn from seed and request, and a program that meets them."""

import asyncio
import collections

import pytest

import synmod as sm
from synmod.lm import LMReply
from synmod.testing import ChaosLM, FunctionLM, ScriptedLM, assert_saves
from tests.lm.in_module import inside

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "kind": {"enum": ["a", "b"]}},
    "required": ["text", "kind"],
}
VALUE = {"text": "fine", "kind": "a"}


class Question(sm.DataModel):
    """A question."""

    text: str


def chaos(**shares):
    """A model that would always answer well, behind certain faults, with one attempt and no repair."""
    return ChaosLM(FunctionLM(lambda request: VALUE if request.schema else "fine"), attempts=1, repairs=0, **shares)


@pytest.mark.parametrize(
    ("kind", "error", "status"),
    [
        ("rate_limited", sm.RateLimitError, 429),
        ("server_error", sm.UnavailableError, 503),
        ("timeout", sm.ModelTimeout, None),
        ("dropped", sm.UnavailableError, None),
    ],
)
async def test_a_failure_of_a_provider_is_transient(kind, error, status):
    """Each has its class and status, and leaves the model behind alone."""
    lm = chaos(**{kind: 1.0}, retry_after_s=7)
    with pytest.raises(error) as caught:
        await lm("?")
    assert (caught.value.status, caught.value.transient) == (status, True)
    assert caught.value.retry_after_s == (7 if kind == "rate_limited" else None)
    assert [fault.kind for fault in lm.faults] == [kind]


@pytest.mark.parametrize("kind", ["fenced", "prose"])
async def test_a_wrapped_value_is_read(kind):
    """A fence or sentences around the value cost nothing."""
    lm = chaos(**{kind: 1.0})
    reply = await lm("?", SCHEMA)
    assert reply.json == VALUE
    assert reply.text != sm.data.dump_json(VALUE)
    assert len(lm.faults) == 1


async def test_a_cut_reply_is_told_by_its_reason():
    """Half of the text, and `length`."""
    with pytest.raises(sm.BadReplyError) as caught:
        await chaos(truncated=1.0)("?", SCHEMA)
    assert caught.value.reason == "length"


@pytest.mark.parametrize(
    "schema", [SCHEMA, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}, {"const": None}]
)
async def test_a_wrong_schema_is_wrong(schema):
    """What `wrong_schema` sends never satisfies the schema."""
    for seed in range(10):
        lm = ChaosLM(seed=seed, wrong_schema=1.0, attempts=1)
        with pytest.raises(sm.BadReplyError) as caught:
            await lm("?", schema)
        assert caught.value.reason == "schema"


async def test_hostile_texts_stand_where_the_schema_allows_them():
    """The value stays valid: only free texts become markers, paths and templates; or an unknown tool is called."""
    seen = collections.Counter()
    for number in range(60):
        lm = chaos(adversarial=1.0)
        try:
            reply = await lm(f"question {number}", SCHEMA)
        except sm.BadReplyError as error:
            seen[error.reason] += 1
            continue
        assert reply["kind"] == "a"
        assert reply["text"] != "fine"
        seen[reply["text"]] += 1
    assert seen["tool"] > 0
    assert len(seen) >= 6


async def test_a_program_survives_hostile_replies():
    """Markers, paths and templates in outputs are data: the next prompt and a saved file hold them as such."""
    lm = ChaosLM(adversarial=0.9, attempts=5, repairs=5)
    writer = sm.Generator({"answer": str}, name="writer", language_model=lm)
    program = sm.Sequential([sm.Generator({"answer": str}, language_model=lm), writer])
    for number in range(30):
        answer = (await program(Question(text=f"question {number}")))["answer"]
        assert [turn["role"] for turn in lm.requests[-1].messages[:2]] == ["system", "user"]
        assert "</inputs>" not in lm.requests[-1].messages[1]["content"]
        assert_saves(sm.Generator({"answer": str}, instructions=answer))
    assert len({fault.request.messages for fault in lm.faults}) > 30


async def test_text_has_no_schema_to_break():
    """`fenced`, `prose` and `wrong_schema` leave plain text alone, and are not listed."""
    lm = chaos(fenced=0.4, prose=0.3, wrong_schema=0.3)
    assert {(await lm(f"{number}")).text for number in range(10)} == {"fine"}
    assert lm.faults == []


async def test_faults_depend_on_seed_request_and_repetition_alone():
    """Any order of concurrent calls meets the same faults; another seed others; a second sight is drawn anew."""

    async def kinds(seed, order):
        lm = ChaosLM(seed=seed, attempts=1, latency_s=(0.0, 0.002), dropped=0.3, server_error=0.3)
        await asyncio.gather(*[lm(f"question {number}") for number in order], return_exceptions=True)
        return {(fault.request.messages[0]["content"], fault.kind) for fault in lm.faults}

    forward = await kinds(1, range(40))
    assert await kinds(1, reversed(range(40))) == forward
    assert await kinds(2, range(40)) != forward
    again = ChaosLM(seed=1, attempts=1, dropped=0.5)
    for _ in range(20):
        await asyncio.gather(again("same"), return_exceptions=True)
    assert 0 < len(again.faults) < 20


async def test_shares_are_probabilities():
    """About as many requests as asked for; a fault names path and request."""
    lm = ChaosLM(attempts=1, rate_limited=0.2, dropped=0.1)
    for number in range(400):
        await asyncio.gather(inside("desk/team", lambda text=f"question {number}": lm(text)), return_exceptions=True)
    counted = collections.Counter(fault.kind for fault in lm.faults)
    assert 50 < counted["rate_limited"] < 110
    assert 20 < counted["dropped"] < 65
    assert {fault.path for fault in lm.faults} == {"desk/team"}


async def test_retries_and_repairs_are_real():
    """Under faults that pass, every call of a program ends well within its attempts."""
    lm = ChaosLM(attempts=20, repairs=20, rate_limited=0.2, timeout=0.1, wrong_schema=0.2, fenced=0.2, retry_after_s=1)
    replies = await asyncio.gather(*[lm(f"question {number}", SCHEMA) for number in range(50)])
    assert all(reply.json is not None for reply in replies)
    assert len(lm.requests) > 60


async def test_streams_and_tools_meet_faults_too():
    """A stream fails before its first piece, and is retried; a call of a tool is left alone, or becomes a wrong one."""
    lm = ChaosLM(FunctionLM(lambda request: "text"), attempts=30, dropped=0.5, rate_limited=0.2)
    for number in range(10):
        async with await lm(f"question {number}", stream=True) as stream:
            assert "".join([chunk.text async for chunk in stream]) == "text"
    assert {fault.kind for fault in lm.faults} == {"dropped", "rate_limited"}
    tool = {"name": "add", "parameters": {"type": "object"}}
    call = sm.ToolCall("1", "add", {})
    for shares in ({"truncated": 0.5, "fenced": 0.5}, {"prose": 0.5, "wrong_schema": 0.5}):
        assert (await ChaosLM(FunctionLM(lambda request: call), **shares)("?", tools=[tool])).tool_calls == (call,)
    reasons = []
    for number in range(40):
        try:
            await ChaosLM(FunctionLM(lambda request: call), attempts=1, adversarial=1.0)(f"{number}", tools=[tool])
        except sm.BadReplyError as error:
            reasons.append(error.reason)
    assert set(reasons) == {"tool"}


async def test_it_takes_over_the_settings_of_the_model_behind():
    """Model string, defaults and attempts are those of the model, unless given; its own layers stay out."""
    behind = ScriptedLM([LMReply("a")], model="openai/x", temperature=0, attempts=7)
    lm = ChaosLM(behind, top_p=1)
    await lm("?")
    assert (lm.model, lm.attempts, dict(lm.defaults)) == ("openai/x", 7, {"temperature": 0, "top_p": 1})
    assert dict(behind.requests[0].params) == {"temperature": 0, "top_p": 1}
    assert behind.cumulated_calls == 0
    assert ChaosLM(behind, attempts=2).attempts == 2


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"dropped": 2}, "dropped must be a number from 0 to 1, got 2"),
        ({"dropped": "often"}, "dropped must be a number from 0 to 1, got 'often'"),
        ({"dropped": 0.7, "timeout": 0.7}, "add up to 1.4"),
        ({"rate_limit": 0.1}, "rate_limit"),
    ],
)
def test_what_is_no_share_is_refused(keywords, message):
    """A share is a probability, and all together are at most 1."""
    with pytest.raises(sm.ConfigError, match=message):
        ChaosLM(**keywords)


def test_shares_may_add_up_to_one_as_floats_do():
    """Rounding is not a mistake of the user."""
    assert ChaosLM(rate_limited=0.2, server_error=0.4, timeout=0.3, dropped=0.1).attempts == 3


def test_it_runs_on_every_loop(any_loop):
    """asyncio, eager tasks and trio; also while a latency is drawn."""
    lm = ChaosLM(ScriptedLM(["a"]), latency_s=(0.0, 0.001))

    async def ask():
        return (await lm("?")).text

    assert any_loop(ask) == "a"


def test_a_latency_changes_no_fault():
    """It is drawn from another stream than what becomes of the request."""

    async def outcomes(**options):
        lm, found = ChaosLM(seed=3, attempts=2, wrong_schema=0.3, adversarial=0.3, **options), []
        for number in range(40):
            try:
                found.append((await lm(f"question {number}", schema=SCHEMA)).json)
            except sm.SynmodError as error:
                found.append(type(error).__name__)
        return found

    without = sm.run(outcomes())
    for latency in (1e-5, (0.0, 1e-5)):
        assert sm.run(outcomes(latency_s=latency)) == without

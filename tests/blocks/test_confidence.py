"""Decision with confidence: the probability of the label where the provider gives it, else the share of samples."""

import json
import math
import warnings

import pytest

import synmod as sm
from synmod.errors import ConfigError, RequestError, SynmodWarning, UnavailableError
from synmod.leaves import aio
from synmod.testing import FunctionLM, RecordReplayLM, ScriptedLM
from tests.lm.loopback import DONE, STOP, Answer, Loopback, completion, failure, record


class Query(sm.DataModel):
    question: str


ASK = Query(question="You won!")
LABELS = ["spam", "ham"]


def tokens(*pairs):
    """Tokens with their log probabilities."""
    return tuple(sm.TokenLogprob(token, logprob) for token, logprob in pairs)


def reply(*pairs):
    """A reply of these tokens."""
    return sm.LMReply("".join(token for token, _ in pairs), logprobs=tokens(*pairs))


def decision(lm, labels=LABELS, **options):
    """A decision with confidence."""
    return sm.Decision(labels, confidence=True, language_model=lm, **options)


AROUND = [('{"', -1.0), ("choice", -1.0), ('":', -1.0)]


@pytest.mark.parametrize(
    ("labels", "pairs", "counted"),
    [
        (LABELS, [*AROUND, (' "', -1.0), ("spam", -0.2), ('"}', -1.0)], 0.2),
        (LABELS, [*AROUND, (' "sp', -0.2), ('am"}', -0.3)], 0.5),
        (
            LABELS,
            [('{"choice":"', -1.0), ("s", -0.1), ("p", -0.1), ("a", -0.1), ("m", -0.1), ('"', -1.0), ("}", -1)],
            0.4,
        ),
        (LABELS, [('{"choice": "spam"}', -0.7)], 0.7),
        (["spam", "spammy"], [*AROUND, (' "', -1.0), ("spam", -0.2), ('"}', -0.4)], 0.6),
        (["", "x"], [*AROUND, (' "', -1.0), ('"', -0.3), ("}", -1.0)], 0.3),
        (
            ['a "b"', "c"],
            [*AROUND, (' "', -1.0), ("a ", -0.1), ('\\"b', -0.1), ('\\"', -0.1), ('"', -1), ("}", -1)],
            0.3,
        ),
        (["größer 😀"], [*AROUND, (' "gr', -0.1), ("\\u00f6", -0.1), ("ßer ", -0.1), ("😀", -0.1), ('"}', -1.0)], 0.4),
        (
            LABELS,
            [('Maybe {"choice": "', -1.0), ("ham", -3.0), ('"}? No: {"choice": "', -1.0), ("ham", -0.1), ('"}', -1)],
            0.1,
        ),
        (LABELS, [*AROUND, (' "', -1.0), ("spam", -9999.0), ('"}', -1.0)], 9999.0),
    ],
)
async def test_the_tokens_of_the_label_count_alone(labels, pairs, counted):
    """Also where they share a token with a quotation mark; the mark that ends a label counts if others go on."""
    lm = ScriptedLM([reply(*pairs)])
    out = await decision(lm, labels)(ASK)
    assert out["confidence"] == pytest.approx(math.exp(-counted))
    assert lm.requests[0].params["logprobs"] is True


async def test_thinking_does_not_count():
    """Not even if it quotes the choice."""
    thought = json.dumps({"thinking": 'Say {"choice": "ham"}.'})[:-1]
    lm = ScriptedLM([reply((thought, -1.0), (', "choice": "', -1.0), ("spam", -0.5), ('"}', -1.0))])
    out = await decision(lm, with_thinking=True)(ASK)
    assert list(out) == ["thinking", "choice", "confidence"]
    assert out["confidence"] == pytest.approx(math.exp(-0.5))


def votes(request):
    """Two thirds of the samples are spam."""
    return {"choice": "ham" if request.sample % 3 == 0 else "spam"}


@pytest.mark.filterwarnings("ignore:.*log probabilities")
@pytest.mark.parametrize("options", [{}, {"layout": "tags"}, {"structured": "prompt"}, {"structured": "tool"}])
async def test_elsewhere_it_is_the_share_of_samples(options):
    """The most frequent label wins, and nothing of a confidence is requested of the model."""
    lm = FunctionLM(votes)
    out = await decision(lm, samples=6, **options)(ASK)
    assert out.get_json() == {"choice": "spam", "confidence": pytest.approx(4 / 6)}
    assert sorted(request.sample for request in lm.requests) == [*range(6)]
    assert all("confidence" not in str(request.messages) + str(request.schema) for request in lm.requests)


async def test_what_samples_cost_is_said_once():
    """By each module, however many calls there are."""
    choose = decision(FunctionLM(votes))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            await choose(ASK)
    assert [warning.category for warning in caught] == [SynmodWarning]
    assert "costs 5 calls" in str(caught[0].message)


@pytest.mark.filterwarnings("ignore:.*log probabilities")
async def test_samples_differ_inside_of_samples():
    """An own number of the sample, and that of a block around, are multiplied, so that no draw is used twice."""
    lm = FunctionLM(votes)
    await sm.Majority(decision(lm, samples=2), 2)(ASK)
    await decision(lm, samples=2, sample=4)(ASK)
    assert sorted(request.sample for request in lm.requests) == [0, 1, 2, 3, 8, 9]


@pytest.mark.filterwarnings("ignore:.*log probabilities")
def test_samples_are_drawn_together_and_end_together(any_loop):
    """All that are left after the first one; a cancelled decision leaves none behind."""
    ended = []

    async def main():
        everyone, entered = aio.Signal(), []

        async def answer(request):
            if request.sample == 0:
                return {"choice": "spam"}
            entered.append(request.sample)
            if len(entered) == 4:
                everyone.set()
            try:
                await aio.sleep(60)
            finally:
                ended.append(request.sample)

        async def ask():
            await decision(FunctionLM(answer))(ASK)

        async with aio.task_group() as group:
            group.start_soon(ask)
            await everyone.wait()
            group.cancel()

    any_loop(main)
    assert sorted(ended) == [1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore:.*log probabilities")
async def test_a_failure_of_a_sample_is_that_of_the_decision():
    """As itself; nothing is made of fewer samples than were requested."""
    error = UnavailableError("down")
    lm = FunctionLM(lambda request: error if request.sample == 3 else {"choice": "spam"}, attempts=1)
    with pytest.raises(UnavailableError, match="down"):
        await decision(lm)(ASK)


@pytest.mark.filterwarnings("ignore:.*log probabilities")
async def test_a_stream_shows_one_reply():
    """The pieces of the first sample; those of the others would be mixed with them."""
    async with sm.stream(decision(FunctionLM(votes)), ASK) as pieces:
        text = "".join([piece.text async for piece in pieces])
    assert text == '{"choice": "ham"}'
    assert pieces.result["choice"] == "spam"


# -- servers -----------------------------------------------------------------------------------------------------------

PIECES = [('{"', -1.0), ("choice", -1.0), ('": "', -1.0), ("sp", -0.25), ('am"', -0.25), ("}", -1.0)]
CONTENT = [{"token": token, "logprob": logprob, "bytes": None, "top_logprobs": []} for token, logprob in PIECES]


@pytest.mark.parametrize("way", ["chat completions", "streamed", "responses"])
async def test_a_server_that_gives_log_probabilities(way, tmp_path):
    """One request, from which the confidence is read; from the cache, too."""
    whole = completion("".join(token for token, _ in PIECES))
    whole.body["choices"][0]["logprobs"] = {"content": CONTENT}
    part = {"type": "output_text", "text": "".join(token for token, _ in PIECES), "logprobs": CONTENT}
    events = [
        record({"content": token["token"]}).replace(b'"finish_reason"', b'"logprobs": %s, "finish_reason"' % logprobs)
        for token in CONTENT
        for logprobs in [json.dumps({"content": [token]}).encode()]
    ]
    answers = {
        "chat completions": whole,
        "streamed": Answer(packets=(*events, STOP, DONE)),
        "responses": Answer(200, {"output": [{"type": "message", "content": [part]}]}),
    }
    async with Loopback(answers[way]) as server:
        given = {"adapter": "responses"} if way == "responses" else {}
        lm = sm.LanguageModel("openai/m", api_base=server.base, cache=tmp_path / "replies.db", **given)
        choose = decision(lm)
        if way == "streamed":
            async with sm.stream(choose, ASK) as pieces:
                assert "".join([piece.text async for piece in pieces]) == '{"choice": "spam"}'
            out = pieces.result
        else:
            out = await choose(ASK)
        again = await choose(ASK)
        await lm.aclose()
    assert out.get_json() == again.get_json() == {"choice": "spam", "confidence": pytest.approx(math.exp(-0.5))}
    assert len(server.arrived) == 1


@pytest.mark.filterwarnings("ignore:.*log probabilities")
@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        ("openai/m", failure(403, "You are not allowed to request logprobs from this model")),
        ("openai/m", failure(400, "logprobs is not supported by this model")),
        ("anthropic/m", None),
    ],
)
async def test_a_provider_that_refuses_log_probabilities(model, refusal):
    """Samples are drawn without requesting them."""
    block = {"type": "text", "text": '{"choice": "ham"}'}
    message = {"type": "message", "content": [block], "stop_reason": "end_turn", "usage": {}}
    answer = completion('{"choice": "ham"}') if refusal else Answer(200, message)
    async with Loopback(*filter(None, [refusal, answer])) as server:
        lm = sm.LanguageModel(model, api_base=server.base, api_key="sk-key-of-the-test", structured="prompt")
        out = await decision(lm, samples=3)(ASK)
        await lm.aclose()
    assert out.get_json() == {"choice": "ham", "confidence": 1.0}
    assert len(server.arrived) == 3 + bool(refusal)
    assert all("logprobs" not in arrived.body for arrived in server.arrived[bool(refusal) :])


async def test_another_refusal_is_raised():
    """It has nothing to do with log probabilities."""
    async with Loopback(failure(400, "No such model")) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base)
        with pytest.raises(RequestError, match="No such model"):
            await decision(lm)(ASK)
        await lm.aclose()
    assert len(server.arrived) == 1


@pytest.mark.filterwarnings("ignore:.*log probabilities")
async def test_a_cassette_replays_both_ways(tmp_path):
    """Log probabilities are recorded; where the provider refused them, the samples are found."""

    def refuse(request):
        return RequestError("no logprobs here") if "logprobs" in request.params else votes(request)

    given = reply(*PIECES)
    for name, real in {"given": FunctionLM(lambda request: given), "refused": FunctionLM(refuse)}.items():
        path = tmp_path / name
        outs = [(await decision(RecordReplayLM(path, lm))(ASK)).get_json() for lm in (real, None)]
        assert outs[0] == outs[1]


# -- the module --------------------------------------------------------------------------------------------------------


async def test_the_confidence_is_in_the_schema_and_survives_a_file(tmp_path):
    """Symbolic outputs have it; a loaded program has it; a decision without one is saved as it was."""
    choose = decision("embedded/nearest", samples=7)
    assert (await choose(Query.to_symbolic_data_model())).keys() == ("choice", "confidence")
    program = sm.Sequential([choose])
    program.save(tmp_path / "p.json")
    [loaded] = sm.load(tmp_path / "p.json").members
    assert loaded.samples == 7
    assert (await loaded(Query.to_symbolic_data_model())).keys() == ("choice", "confidence")
    sm.save(sm.Decision(LABELS), tmp_path / "d.json")
    text = (tmp_path / "d.json").read_text()
    assert "confidence" not in text
    assert "samples" not in text


async def test_examples_have_no_confidence():
    """Neither those of a user nor those that an optimizer takes from outputs: the model must not write one."""
    choose = decision(None, examples=[{"inputs": ASK, "outputs": {"choice": "spam"}}])
    outputs = choose.examples.schema["items"]["properties"]["outputs"]
    assert [*outputs["properties"]] == ["choice"]
    assert "confidence" not in str(choose.render(ASK))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"multiple": True}, "leave out multiple"), ({"samples": 0}, "samples"), ({"sampels": 3}, "Did you mean")],
)
def test_what_makes_no_confidence_is_refused(options, words):
    """Several labels have no single probability; a count is one at least."""
    with pytest.raises(ConfigError, match=words):
        decision(None, **options)

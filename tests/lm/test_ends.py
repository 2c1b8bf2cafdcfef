"""How replies end: only known words of success are success; and records that adapters of others return."""

import json

import pytest

import synmod as sm
from synmod.errors import BadReplyError, SynmodWarning, UnavailableError
from synmod.testing import FunctionLM
from tests.lm.loopback import DONE, Answer, Loopback, ask, completion, record


class Query(sm.DataModel):
    """A question."""

    q: str


WORDS = {
    "stop": (
        "stop",
        "STOP",
        "end_turn",
        "stop_sequence",
        "eos",
        "eos_token",
        "tool_calls",
        "COMPLETE",
        None,
        "",
        "null",
    ),
    "length": ("length", "max_tokens", "MAX_TOKENS", "model_length", "FINISH_REASON_MAX_TOKENS", "token_limit"),
    "refused": ("content_filter", "content_filter: RECITATION", "SAFETY", "sensitive", "blocklist", "refusal", "spii"),
    "broken": (
        "error",
        "network_error",
        "insufficient_system_resource",
        "abort",
        "ERROR",
        "not_finished",
        "a new word",
    ),
}


@pytest.mark.parametrize(("meaning", "word"), [(meaning, word) for meaning in WORDS for word in WORDS[meaning]])
async def test_each_word_has_its_meaning(meaning, word, tmp_path):
    """Cuts are `length`, filters refusals; what broke off, or has an unknown word, is retried. Neither is cached."""
    async with Loopback(completion("Hello", finish_reason=word)) as server:
        cache = sm.Cache(tmp_path / "cache.db")
        lm = sm.LanguageModel("openai/m", api_base=server.base, attempts=2, cache=cache)
        lm.backoff = False
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append(await lm("Hi"))
            except sm.ModelError as error:
                outcomes.append(error)
        await lm.aclose()
    first, second = outcomes
    assert len(server.arrived) == {"stop": 1, "broken": 4}.get(meaning, 2)
    if meaning == "stop":
        assert (first.text, second.cached) == ("Hello", True)
    elif meaning == "length":
        assert (first.text, first.finish_reason, second.cached) == ("Hello", "length", False)
    elif meaning == "refused":
        assert (type(first), first.reason) == (BadReplyError, "refused")
    else:
        assert (type(first), first.transient) == (UnavailableError, True)
        assert repr(word) in str(first)


async def test_what_broke_off_is_paid():
    """The tokens count, and the attempt holds the error."""
    lm = FunctionLM(lambda _: next(turns))
    turns = iter([sm.LMReply("ha", finish_reason="error", usage=sm.Usage(completion_tokens=7)), "whole"])
    reply = await lm("Hi")
    assert (reply.text, reply.usage.completion_tokens >= 7, len(lm.requests)) == ("whole", True, 2)
    assert "'error'" in reply.attempts[0].error


@pytest.mark.parametrize(
    ("text", "word", "reason"), [("", "length", "length"), (None, "stop", "empty"), (" ", "stop", "empty")]
)
async def test_a_text_that_is_empty_is_no_answer(text, word, reason):
    """With and without a schema."""
    for schema in (None, {"type": "object"}):
        error, _ = await ask(completion(text, finish_reason=word), schema=schema)
        assert (type(error), error.reason) == (BadReplyError, reason)


async def test_a_generator_warns_of_a_text_that_was_cut():
    """Its output would look whole."""
    ask_cut = sm.Generator(language_model=FunctionLM(lambda _: sm.LMReply("The dose is 5", finish_reason="max_tokens")))
    with pytest.warns(SynmodWarning, match="max_tokens"):
        assert (await ask_cut(Query(q="?")))["content"] == "The dose is 5"


async def test_reasoning_at_the_beginning_of_a_text_is_reasoning():
    """As servers send it that know no better."""
    reply, _ = await ask(completion("<think>they want</think>\n\nParis"))
    assert (reply.text, reply.reasoning) == ("Paris", "they want")
    reply, _ = await ask(completion("Paris <think>so</think>"))
    assert (reply.text, reply.reasoning) == ("Paris <think>so</think>", None)


class Own:
    """An adapter that answers with what it was given."""

    name = "own"
    version = 1

    def __init__(self, reply, *pieces):
        self.reply, self.pieces = reply, pieces

    async def send(self, request):
        """Return the reply."""
        return self.reply

    async def stream(self, request):
        """Yield the pieces, then the reply."""
        for piece in self.pieces:
            yield piece
        yield self.reply


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", None),
        ("tool_calls", None),
        ("reasoning", 3),
        ("finish_reason", 3),
        ("usage", None),
        ("usage", {"prompt_tokens": 3}),
        ("usage", sm.Usage(prompt_tokens=10**400)),
        ("usage", sm.Usage(completion_tokens=-1)),
        ("usage", sm.Usage(cached_tokens=None)),
        ("usage", sm.Usage(cost_usd=float("nan"))),
        ("usage", sm.Usage(cost_usd="1")),
        ("usage", sm.Usage(cost_usd=-1.0)),
        ("cached", "yes"),
        ("message", "text"),
        ("model", None),
        ("request_id", 7),
    ],
)
async def test_a_field_of_another_type_is_named(field, value):
    """In a reply of an adapter of one's own."""
    lm = sm.LanguageModel("own/x", adapter=Own(sm.LMReply(**{"text": "Hello", field: value})))
    with pytest.raises(TypeError, match=f"adapter 'own' returned an LMReply whose {field}"):
        await lm("Hi")


@pytest.mark.parametrize(("field", "value"), [("text", None), ("text", 3), ("reasoning", None), ("tool_calls", None)])
async def test_a_field_of_a_piece_is_named(field, value):
    """In a stream of such an adapter."""
    lm = sm.LanguageModel("own/x", adapter=Own(sm.LMReply("Hello"), sm.LMChunk(**{field: value})))
    with pytest.raises(TypeError, match=f"adapter 'own' streamed an LMChunk whose {field}"):
        async with await lm("Hi", stream=True) as stream:
            async for _ in stream:
                pass


STATED = {
    "a message of Cohere": ({"message": "too many requests"}, UnavailableError),
    "a throttle of DashScope": ({"code": "Throttling.RateQuota", "message": "Slow down"}, sm.RateLimitError),
    "a list of Cloudflare": ({"success": False, "errors": [{"code": 5007, "message": "No route"}]}, UnavailableError),
    "details of FastAPI": ({"detail": [{"loc": ["body"], "msg": "field required"}]}, UnavailableError),
    "a word of Baidu": ({"error_code": 336100, "error_msg": "high load"}, UnavailableError),
    "a text of Ollama": ({"error": "model 'm' not found"}, sm.RequestError),
}


@pytest.mark.parametrize("form", ["whole", "streamed first", "streamed behind a piece"])
@pytest.mark.parametrize(("body", "kind"), STATED.values(), ids=STATED)
async def test_an_error_in_a_success_is_one_under_whatever_key(form, body, kind):
    """The piece before it is no reply, though `[DONE]` comes behind it."""
    event = b"data: " + json.dumps(body).encode() + b"\n\n"
    before = (record({"content": "Hel"}),) if form.endswith("piece") else ()
    answer = Answer(200, body) if form == "whole" else Answer(packets=(*before, event, DONE))
    async with Loopback(answer) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base, attempts=1)
        with pytest.raises(kind) as raised:
            async with await lm("Hi", stream=form != "whole") as stream:
                async for _ in stream:
                    pass
        await lm.aclose()
    texts = ("too many", "Slow down", "No route", "field required", "high load", "not found")
    assert any(text in str(raised.value) for text in texts)


async def test_null_between_the_records_of_a_stream_is_nothing():
    """Some servers keep the connection alive by it."""
    packets = (b"data: null\n\n", record({"content": "Hello"}), b"data: null\n\n", record(finish_reason="stop"), DONE)
    async with Loopback(Answer(packets=packets)) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base, attempts=1)
        async with await lm("Hi", stream=True) as stream:
            assert [piece.text async for piece in stream if piece.text] == ["Hello"]
        await lm.aclose()


@pytest.mark.parametrize("adapter", [None, "litellm"])
async def test_half_a_character_in_an_error_can_be_printed(adapter):
    """A replacement character, or its escape, stands for it."""
    given = {} if adapter is None else {"adapter": adapter}
    error, _ = await ask(Answer(400, {"error": {"message": "bad \ud800"}}), **given)
    assert f"{error}{error.provider_message}".encode() and "bad" in str(error)

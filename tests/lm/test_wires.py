"""Three wires, one reply: chat completions, messages and responses on servers that refuse what the real ones refuse."""

import json

import pytest

import synmod as sm
from synmod.errors import (
    AuthError,
    BadReplyError,
    ConfigError,
    ContextWindowError,
    RateLimitError,
    RequestError,
    UnavailableError,
)
from synmod.lm import LanguageModel
from tests.lm.loopback import Answer, Loopback, ask
from tests.lm.wire_servers import WIRES, Messages, Responses, Script

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"name": "weather", "description": "The weather.", "parameters": CITY}, {"name": "now"}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BOTH = [("c1", "weather", {"city": "Paris"}), ("c2", "now", {})]

MEDIA = [sm.Image(media_type="image/png", data=PIXEL, url=None), sm.File.from_bytes(b"%PDF-1.4", "application/pdf")]
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "And there?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for key, name, arguments in BOTH
    ]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "tool", "tool_call_id": "c2", "content": "noon"},
]  # fmt: skip

CASES = {
    "text": (Script("Hello, größer 日本 😀."), {}),
    "a long text": (Script("word " * 500), {}),
    "structured": (Script('{"city": "Paris"}'), {"schema": CITY}),
    "a tool": (Script(calls=(("c1", "weather", {"city": "Paris"}),)), {"tools": TOOLS}),
    "tools in parallel": (Script("Wait.", calls=tuple(BOTH)), {"tools": TOOLS}),
    "no call, though tools are there": (Script("No need."), {"tools": TOOLS}),
    "a forced tool": (Script(calls=(BOTH[0],)), {"tools": TOOLS, "tool_choice": "weather"}),
    "reasoning": (Script("Yes.", thinking="Hm, let me see.", reasoned=5), {}),
    "reasoning before a call": (Script(thinking="Hm.", calls=(BOTH[0],), reasoned=4), {"tools": TOOLS}),
    "reasoning before a value": (Script('{"city": "Paris"}', thinking="Hm.", reasoned=4), {"schema": CITY}),
    "usage of a cache": (Script("Yes.", read=60, written=30), {}),
    "usage of all kinds": (Script("Yes.", thinking="Hm.", read=60, written=30, reasoned=5), {}),
    "media": (Script("A dot."), {"messages": [{"role": "user", "content": ["What is this?", *MEDIA]}]}),
    "results of tools": (Script("Take a coat."), {"messages": TALK, "tools": TOOLS}),
    "a text that was cut": (Script("Once upon", end="length"), {}),
}
FIELDS = "text json reasoning finish_reason tool_calls usage request_id logprobs media citations cached".split()


async def play(wire, script, call, *, stream=False, **given):
    """The reply of a model on a server, and the pieces of its stream."""
    async with wire(script) as server:
        lm = server.model(**given)
        shown, call = [], {"messages": "Hi", **call}
        try:
            if not stream:
                return await lm(**call), shown
            async with await lm(stream=True, **call) as pieces:
                shown += [piece async for piece in pieces]
            return pieces.reply, shown
        finally:
            await lm.aclose()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CASES)
async def test_the_three_give_equal_replies(name, stream):
    """Whole, and as a stream in pieces that cut events and characters anywhere."""
    replies = []
    for wire in WIRES.values():
        reply, shown = await play(wire, *CASES[name], stream=stream)
        assert reply.model == wire.settings["model"]
        fields = {field: getattr(reply, field) for field in FIELDS}
        turn = {key: reply.message.get(key) for key in ("role", "content", "tool_calls")}
        replies.append({**fields, "turn": turn, "requests": len(reply.attempts)})
        if stream:
            assert "".join(piece.text for piece in shown) == reply.text
            assert "".join(piece.reasoning for piece in shown) == (reply.reasoning or "")
    script = CASES[name][0]
    assert replies[0] == replies[1] == replies[2]
    assert replies[0]["text"] == script.text
    usage = replies[0]["usage"]
    assert (usage.prompt_tokens, usage.completion_tokens) == (script.prompt, 7)
    counts = usage.cached_tokens, usage.cache_write_tokens, usage.reasoning_tokens
    assert counts == (script.read, script.written, script.reasoned)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_reasoning_is_carried_over_three_turns(wire, stream):
    """What was thought before a call of a tool goes back unchanged, signed as it came, in its place."""
    scripts = [Script(thinking=f"Hm {at}.", text="Look.", calls=(("c1", "weather", {"city": "X"}),)) for at in range(3)]

    def weather(city: str) -> str:
        """The weather."""
        return f"rain in {city}"

    async with WIRES[wire](*scripts, Script("Take a coat.", thinking="Clear.")) as server:
        lm = server.model()
        agent = sm.Agent([weather], {"answer": str}, language_model=lm, structured="prompt")
        server.scripts[-1].text = '{"answer": "Take a coat."}'
        if stream:
            async with sm.stream(agent, sm.JsonDataModel({"q": "?"}, schema={"type": "object"})) as pieces:
                async for _ in pieces:
                    pass
            answer = pieces.result
        else:
            answer = await agent(sm.JsonDataModel({"q": "?"}, schema={"type": "object"}))
        await lm.aclose()
    assert answer["answer"] == "Take a coat."
    assert len(server.arrived) == 4
    sent = str(server.arrived[-1].body)
    assert all(signature in sent for signature in server.signed[:3])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("script", "error"),
    [
        (Script(error=(401, "authentication_error", "invalid x-api-key")), AuthError),
        (Script(error=(429, "rate_limit_error", "slow down")), RateLimitError),
        (Script(error=(529, "overloaded_error", "Overloaded")), UnavailableError),
        (
            Script(error=(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000")),
            ContextWindowError,
        ),
        (Script(error=(404, "not_found_error", "model: m")), RequestError),
        (Script("I cannot", end="content_filter"), BadReplyError),
        (Script('{"city": "Par', end="length"), BadReplyError),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
async def test_errors_are_of_one_kind(script, error, stream):
    """Class, status and reason do not depend on the wire, and no key is in the text."""
    seen = []
    for wire in WIRES.values():
        with pytest.raises(error) as raised:
            await play(wire, script, {"schema": CITY}, stream=stream)
        assert "sk-given" not in str(raised.value)
        fields = {name: getattr(raised.value, name, None) for name in ("status", "transient", "attempts", "reason")}
        seen.append({"class": type(raised.value), **fields})
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("wire", WIRES)
async def test_media_are_sent_in_the_form_of_the_wire(wire):
    """An image and a file stand between texts."""
    async with WIRES[wire](Script("A dot.")) as server:
        lm = server.model()
        assert (await lm(CASES["media"][1]["messages"])).text == "A dot."
        await lm.aclose()
    body = str(server.arrived[0].body)
    assert PIXEL in body
    assert "JVBERi0xLjQ=" in body


# -- messages ----------------------------------------------------------------------------------------------------------


async def body_sent(wire, call=None, script=None, messages="Hi", **given):
    """The body that a server received."""
    async with wire(script or Script("x")) as server:
        lm = server.model(**given)
        await lm(messages, **(call or {}))
        await lm.aclose()
    return server.arrived[0].body


async def test_a_request_of_messages_is_complete():
    """System turns apart, the limit of tokens always, stops as a list; results of tools in one turn of the user."""
    calls = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}} for key, name in ("ab", "cd")
    ]
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
        {"role": "user", "content": "And?"},
    ]
    body = await body_sent(Messages, messages=turns, model="anthropic/claude-sonnet-4-5", temperature=0.5, stop="END")
    assert (body["model"], body["max_tokens"]) == ("claude-sonnet-4-5", 64_000)
    assert (body["temperature"], body["stop_sequences"]) == (0.5, ["END"])
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]
    assert body["messages"][2]["content"][1] == {
        "type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "2"}],
    }  # fmt: skip
    assert (await body_sent(Messages))["max_tokens"] == 4_096
    assert (await body_sent(Messages, max_tokens=9))["max_tokens"] == 9


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        (
            "claude-opus-4-7",
            "low",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        ),
        ("claude-haiku-4-5", "medium", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-opus-4-7", "none", {"thinking": {"type": "disabled"}}),
    ],
)
async def test_an_effort_becomes_thinking(model, effort, fields):
    """As the model takes it: adaptive with an effort, or with a budget of tokens."""
    body = await body_sent(Messages, model=f"anthropic/{model}", reasoning_effort=effort)
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == fields


@pytest.mark.parametrize(
    ("schema", "given", "level"),
    [
        (CITY, {}, "output_config"),
        ({**CITY, "additionalProperties": True}, {}, "tools"),
        ({**CITY, "properties": {"city": {"type": "string", "minLength": 2}}}, {}, "tools"),
        ({**CITY, "additionalProperties": True}, {"reasoning_effort": "low"}, "system"),
    ],
)
async def test_a_schema_is_requested_as_the_api_can(schema, given, level):
    """Natively within the grammar of the API, else as a tool; in text where no tool may be forced."""
    replies = {"tools": Script(calls=(("c1", "reply", {"city": "Paris"}),))}
    body = await body_sent(Messages, {"schema": schema}, replies.get(level, Script('{"city": "Paris"}')), **given)
    assert {"output_config", "tools", "system"} & {*body} - ({"output_config"} if given else set()) == {level}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_marks_of_the_cache_reach_the_api(stream):
    """The system turn and the last example are marked where they end."""
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    async with Messages(Script("x", written=90)) as server:
        lm = server.model(prompt_cache="1h", model="anthropic/claude-sonnet-4-5")
        if stream:
            async with await lm(turns, stream=True) as pieces:
                [piece async for piece in pieces]
            reply = pieces.reply
        else:
            reply = await lm(turns)
        await lm.aclose()
    assert server.arrived[0].body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert reply.usage.cost_usd is None or reply.usage.cache_write_tokens == 90


@pytest.mark.parametrize(
    ("adapter", "given", "words"),
    [
        ({"model": "anthropic/claude-sonnet-4-5"}, {"seed": 1}, "does not take seed"),
        ({"model": "anthropic/claude-opus-4-7"}, {"temperature": 0}, "does not take temperature"),
        ({"model": "openai/m", "adapter": "responses"}, {"stop": "x"}, "does not take stop"),
        ({"model": "openai/m", "adapter": "responses"}, {"frequency_penalty": 1}, "does not take frequency_penalty"),
    ],
)
async def test_what_cannot_be_done_is_refused_before_sending(adapter, given, words):
    """By the API, or by what the price list knows of the model."""
    async with Loopback() as server:
        lm = LanguageModel(api_base=server.base, **adapter, **given)
        with pytest.raises(RequestError, match=words):
            await lm("Hi")
        await lm.aclose()
    assert server.arrived == []


# -- addresses ---------------------------------------------------------------------------------------------------------


async def test_the_address_of_the_environment_is_the_root(monkeypatch):
    """ANTHROPIC_BASE_URL is the root, with the key of the environment; an argument wins."""
    async with Messages(Script("x")) as server, Messages(Script("y")) as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base.removesuffix("/v1"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-given-secret-key-1")
        lm, away = (
            LanguageModel("anthropic/m"),
            LanguageModel("anthropic/m", api_base=other.base, api_key="sk-given-secret-key-1"),
        )
        assert [(await lm("Hi")).text, (await away("Hi")).text] == ["x", "y"]
        await lm.aclose()
        await away.aclose()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "not an address")
    with pytest.raises(ConfigError, match="ANTHROPIC_BASE_URL"):
        await LanguageModel("anthropic/m")("Hi")


async def test_a_missing_key_is_named(monkeypatch):
    """Before anything is opened."""
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AuthError, match="ANTHROPIC_API_KEY"):
        await LanguageModel("anthropic/claude-sonnet-4-5")("Hi")


# -- tools of the provider ---------------------------------------------------------------------------------------------

FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]}
CITED = {"type": "web_search_result_location", "url": "https://x.org", "title": "X", "cited_text": "so it is"}
SEARCHED = {
    "type": "message",
    "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        FOUND,
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "so.", "citations": [CITED]},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 5, "server_tool_use": {"web_search_requests": 1}},
}
ANSWERED = {
    "object": "response",
    "status": "completed",
    "output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "It is so.",
                    "annotations": [
                        {"type": "url_citation", "url": "https://x.org", "title": "X", "start_index": 6, "end_index": 9}
                    ],
                }
            ],
        },
    ],
    "usage": {"input_tokens": 10, "output_tokens": 5},
}


@pytest.mark.parametrize(
    ("answer", "given", "tool", "text"),
    [
        (
            SEARCHED,
            {"model": "anthropic/claude-sonnet-4-5"},
            {"type": "web_search_20250305", "name": "web_search"},
            "so it is",
        ),
        (ANSWERED, {"model": "openai/gpt-4.1", "adapter": "responses"}, {"type": "web_search"}, "so."),
    ],
    ids=["messages", "responses"],
)
async def test_a_tool_of_the_provider_runs_there(answer, given, tool, text):
    """What it did goes back as it came, what it cites is in the reply, and its price in the usage."""
    call = {"tools": [sm.native_tool("web_search", max_uses=2)]}
    reply, arrived = await ask(Answer(200, answer), call=call, price=(1.0, 1.0), **given)
    assert arrived[0].body["tools"] == [{**tool, "max_uses": 2}]
    assert reply.text == "It is so."
    assert reply.citations == (sm.Citation(text, "https://x.org", "X", 6, 9),)
    searches = 0.01 if "anthropic" in given["model"] else 0.025
    assert reply.usage.cost_usd == pytest.approx(15e-6 + searches)
    talk = ["Hi", {**reply.message}, "And?"]
    turns = [{"role": "user", "content": turn} if isinstance(turn, str) else turn for turn in talk]
    _, arrived = await ask(Answer(200, answer), messages=turns, call=call, **given)
    own = answer.get("content") or answer["output"]
    assert str(own)[1:-1] in str(arrived[0].body)


async def test_another_adapter_runs_no_native_tool():
    """It is refused before anything is sent."""
    error, arrived = await ask(call={"tools": [sm.native_tool("web_search")]})
    assert isinstance(error, RequestError)
    assert "web_search" in str(error)
    assert arrived == []


async def test_an_agent_offers_native_tools_beside_its_own():
    """They are sent with each step, and never run here."""

    def now() -> str:
        """The time."""
        return "noon"

    async with Responses(Script("x")) as server:
        server.check = lambda body, headers: None
        lm = server.model()
        await sm.Agent([now, sm.native_tool("web_search")], language_model=lm)(
            sm.JsonDataModel({"q": "?"}, schema={"type": "object"})
        )
        await lm.aclose()
    assert [tool.get("name", tool["type"]) for tool in server.arrived[0].body["tools"]] == ["now", "web_search"]


# -- what was paid for is in the reply ---------------------------------------------------------------------------------

TOKENS = [{"token": "Hi", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": "Ho", "logprob": -2.0}]}]


@pytest.mark.parametrize("way", ["chat", "chat stream", "responses"])
async def test_log_probabilities_are_in_the_reply(way, tmp_path):
    """Whole and streamed, from the cache too."""
    choice = {"index": 0, "finish_reason": "stop", "logprobs": {"content": TOKENS}}
    answers = {
        "chat": Answer(200, {"choices": [{**choice, "message": {"role": "assistant", "content": "Hi"}}]}),
        "responses": Answer(
            200,
            {"output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi", "logprobs": TOKENS}]}]},
        ),
    }
    given = {"adapter": "responses"} if way == "responses" else {}
    about = {"cache": tmp_path / "replies.db", "params": {"logprobs": True, "top_logprobs": 1}}
    async with Loopback(answers.get(way, answers["chat"])) as server:
        lm = LanguageModel("openai/m", api_base=server.base, cache=about["cache"], **given, **about["params"])
        replies = [await lm("Hi"), await lm("Hi")]
        await lm.aclose()
    assert replies[1].cached
    assert [reply.logprobs for reply in replies] == [(sm.TokenLogprob("Hi", -0.5, {"Ho": -2.0}),)] * 2
    if way == "responses":
        assert server.arrived[0].body["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]


async def test_media_of_the_model_are_in_the_reply(tmp_path):
    """Images and sound, also where there is no text; the conversation gets the id of the sound back."""
    images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
    sound = {"id": "a1", "data": "UklGRg==", "transcript": "Hello"}
    message = {"role": "assistant", "content": None, "images": images, "audio": sound}
    answer = Answer(200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
    reply, _ = await ask(answer, call={"modalities": ["text", "audio"]}, cache=tmp_path / "r.db")
    assert reply.text == "Hello"
    assert [item.media_type for item in reply.media] == ["image/png", "audio/wav"]
    assert reply.message["audio"] == {"id": "a1"}
    alone = Answer(200, {"choices": [{"index": 0, "finish_reason": "stop", "message": {**message, "audio": None}}]})
    reply, _ = await ask(alone)
    assert (reply.text, len(reply.media)) == ("", 1)

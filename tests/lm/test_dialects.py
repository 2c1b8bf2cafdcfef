"""What real servers send, as data: each case of `dialects/*.json` through the whole and the streamed path."""

import json
from pathlib import Path

import pytest

from synmod.errors import SynmodError
from synmod.lm import LanguageModel
from tests.lm.loopback import Answer, Loopback

FILES = sorted(Path(__file__).with_name("dialects").glob("*.json"))
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "weather", "parameters": CITY}, {"name": "now"}]
MODELS = {
    "anthropic_messages": {"model": "anthropic/m"},
    "openai_responses": {"model": "openai/m", "adapter": "responses"},
}
CASES = {
    f"{file.stem}: {name}: {way}": (case, way, MODELS.get(file.stem, {"model": "openai/m"}))
    for file in FILES
    for name, case in json.loads(file.read_text(encoding="utf-8")).items()
    for way in ("body", "stream")
    if way in case
}


def answer(case, way):
    """The answer of the server."""
    status, headers, content = case.get("status", 200), case.get("headers", {}), case[way]
    if way == "stream":
        events = [event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in content]
        return Answer(status, headers=headers, packets=tuple(event.encode() for event in events))
    return Answer(status, headers=headers, raw=(content if isinstance(content, str) else json.dumps(content)).encode())


async def outcome(case, way, model):
    """The reply or the error of one call, and the pieces of a stream."""
    async with Loopback(answer(case, way)) as server:
        lm = LanguageModel(**model, api_base=server.base, attempts=1, repairs=0)
        schema, tools = CITY if case.get("schema") else None, TOOLS if case.get("tools") else None
        pieces = []
        try:
            if way == "body":
                return await lm("Hi", schema, tools), None
            async with await lm("Hi", schema, tools, stream=True) as stream:
                pieces += [piece async for piece in stream]
            return stream.reply, pieces
        except SynmodError as error:
            return error, pieces
        finally:
            await lm.aclose()


def shown(got):
    """What a case may expect of a reply or an error."""
    if isinstance(got, SynmodError):
        fields = {name: getattr(got, name, None) for name in ("reason", "status", "transient")}
        return {"error": type(got).__name__, "says": str(got), **fields}
    usage = got.usage
    counts = [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.reasoning_tokens]
    fields = {name: getattr(got, name) for name in ("text", "json", "reasoning", "finish_reason", "message")}
    calls = [[call.name, call.arguments] for call in got.tool_calls]
    return {"error": None, "tool_calls": calls, "usage": "estimated" if usage.estimated else counts, **fields}


@pytest.mark.parametrize("name", CASES)
async def test_each_case_comes_out_as_it_must(name):
    """Whole and streamed alike; the pieces of a stream add up to its reply."""
    case, way, model = CASES[name]
    want = {"error": None, **case["want"]}
    reply, pieces = await outcome(case, way, model)
    got = shown(reply)
    if (says := want.pop("says", None)) is not None:
        assert says in got["says"]
    if (message := want.pop("message", None)) is not None:
        assert {key: got["message"].get(key) for key in message} == message
    assert {key: got[key] for key in want} == want
    if pieces is not None and want["error"] is None:
        assert "".join(piece.text for piece in pieces) == reply.text
        assert "".join(piece.reasoning for piece in pieces) == (reply.reasoning or "")
        assert pieces[-1].tool_calls == reply.tool_calls


def test_the_dialects_of_the_usual_servers_are_there():
    """A folder that was not found would pass every test."""
    assert len(FILES) >= 12

"""Native reasoning: what a provider tells of its model's thinking fills the field that asks for it."""

import pytest

import synmod as sm
from synmod.errors import BadReplyError, ConfigError
from synmod.lm import LanguageModel, Layout, LMReply
from synmod.testing import FunctionLM, ScriptedLM

SCHEMA = {
    "type": "object",
    "properties": {"thinking": {"type": "string", "minLength": 2}, "answer": {"type": "integer"}},
    "required": ["thinking", "answer"],
    "additionalProperties": False,
}
FIELD = {"reasoning_field": "thinking"}


class Thinker:
    """An adapter that says of itself that it reasons."""

    name = "thinker"
    version = 1

    def __init__(self, *replies, native=True):
        self.replies = list(replies)
        self.native = native
        self.seen = []

    def reasons(self, request):
        """Whether it reasons."""
        return self.native

    async def send(self, request):
        """Answer with the next reply."""
        self.seen.append(request)
        return self.replies.pop(0)


def asked(adapter, **given):
    """A model of an adapter."""
    return LanguageModel("own/thinker", adapter=adapter, **given)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 3}',
        '```json\n{"answer": 3}\n```',
        'It is {"answer": 3}.',
        '<think>{"answer": 4}</think>{"answer": 3}',
    ],
)
async def test_a_reply_without_the_field_is_filled_before_validation(text):
    """Whatever adapter it comes from, and however the reply is read."""
    lm = ScriptedLM([LMReply(text, reasoning="One and two.")])
    reply = await lm("1 + 2?", SCHEMA, **FIELD)
    assert reply.json == {"thinking": "One and two.", "answer": 3}
    assert list(reply.json) == ["thinking", "answer"]
    assert lm.requests[0].schema == SCHEMA
    assert lm.requests[0].reasoning_field == "thinking"


async def test_the_thinking_of_the_reply_wins():
    """A field that the model wrote stays, also a wrong one."""
    said = LMReply('{"thinking": "mine", "answer": 3}', reasoning="not mine")
    assert (await ScriptedLM([said])("?", SCHEMA, **FIELD))["thinking"] == "mine"
    wrong = LMReply('{"thinking": null, "answer": 3}', reasoning="not mine")
    with pytest.raises(BadReplyError) as caught:
        await ScriptedLM([wrong], repairs=0)("?", SCHEMA, **FIELD)
    assert caught.value.errors[0][0] == "/thinking"


async def test_what_fills_the_field_is_validated():
    """Reasoning that the schema does not allow is a bad reply, and nothing else is forgiven."""
    for reply in (LMReply('{"answer": 3}', reasoning="x"), LMReply('{"answer": "3"}', reasoning="because")):
        with pytest.raises(BadReplyError):
            await ScriptedLM([reply], repairs=0)("?", SCHEMA, **FIELD)


async def test_without_reasoning_a_missing_field_is_a_fault():
    """Where it was asked for and nothing came, the reply gets its repair turn."""
    lm = ScriptedLM(['{"answer": 3}', '{"thinking": "so", "answer": 3}'])
    assert (await lm("?", SCHEMA, **FIELD))["thinking"] == "so"
    assert "thinking" in lm.requests[1].messages[-1]["content"]


async def test_nothing_is_filled_unless_it_is_said():
    """Reasoning beside a reply changes nothing by itself."""
    with pytest.raises(BadReplyError):
        await ScriptedLM([LMReply('{"answer": 3}', reasoning="because")], repairs=0)("?", SCHEMA)


async def test_where_a_provider_reasons_the_field_is_not_asked_for():
    """Schema and prompt leave it out, through repair too; the reply is valid for the whole schema."""
    adapter = Thinker(LMReply("prose", reasoning="hm"), LMReply('{"answer": 3}', reasoning="One and two."))
    layout = Layout(sm.SymbolicDataModel(SCHEMA).get_schema())
    turns = layout.render("Add.", [], {"q": "1 + 2"}, {"properties": {"q": {}}})
    reply = await asked(adapter)(turns, SCHEMA, **FIELD)
    assert reply.json == {"thinking": "One and two.", "answer": 3}
    for request in adapter.seen:
        assert request.schema == {
            "type": "object",
            "properties": {"answer": {"type": "integer"}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        assert "thinking" not in request.messages[0]["content"]
    assert len(adapter.seen[1].messages) == len(turns) + 2


async def test_the_output_never_lacks_the_field():
    """A provider that reasons in silence leaves it empty."""
    loose = {**SCHEMA, "properties": {**SCHEMA["properties"], "thinking": {"type": "string"}}}
    reply = await asked(Thinker(LMReply('{"answer": 3}')))("?", loose, **FIELD)
    assert reply.json == {"thinking": "", "answer": 3}


async def test_an_adapter_may_reason_on_some_requests_only():
    """It is asked for each request, and gets the whole schema where it says no."""
    adapter = Thinker(LMReply('{"thinking": "so", "answer": 3}'), native=False)
    assert (await asked(adapter)("?", SCHEMA, **FIELD))["thinking"] == "so"
    assert adapter.seen[0].schema == SCHEMA


@pytest.mark.parametrize("given", [{"reasoning_field": "thinking"}, {"schema": SCHEMA, "reasoning_field": 3}])
async def test_a_field_of_nothing_is_refused(given):
    """The field is one of the schema's."""
    lm = FunctionLM(lambda request: "x")
    with pytest.raises(ConfigError, match="reasoning_field"):
        await lm("?", **given)
    assert lm.requests == []

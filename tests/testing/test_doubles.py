"""The doubles ScriptedLM and FunctionLM: only the adapter is replaced, everything else is real."""

import asyncio

import pytest

import synmod as sm
from synmod.errors import ConfigError, UnavailableError
from synmod.lm import LanguageModel, LMReply
from synmod.testing import FunctionLM, SchemaLM, ScriptedLM
from tests.lm.in_module import inside

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Answer(sm.DataModel):
    """A data model as a reply."""

    a: int


@pytest.mark.parametrize("double", [ScriptedLM([]), FunctionLM(lambda request: ""), SchemaLM()])
def test_doubles_are_language_models(double):
    """They go wherever a model goes, and keep what reached them."""
    assert isinstance(double, LanguageModel)
    assert double.requests == []


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("plain", "plain"),
        ({"a": 1}, '{"a": 1}'),
        ([1, 2], "[1, 2]"),
        (7, "7"),
        (None, "null"),
        (Answer(a=3), '{"a": 3}'),
        (Answer(a=3).to_json_data_model(), '{"a": 3}'),
        (LMReply("as it is"), "as it is"),
        ("é", "é"),
    ],
)
async def test_each_kind_of_item(item, text):
    """Text as it is, values as JSON text, replies as they are."""
    assert (await ScriptedLM([item])("?")).text == text
    assert (await FunctionLM(lambda request: item)("?")).text == text


@pytest.mark.parametrize("item", [sm.ToolCall("1", "add", {}), [sm.ToolCall("1", "add", {})]])
async def test_a_tool_call_is_a_call(item):
    """Alone or in a list."""
    reply = await ScriptedLM([item])("?", tools=[{"name": "add"}])
    assert reply.tool_calls == (sm.ToolCall("1", "add", {}),)


async def test_a_list_with_something_beside_calls_is_refused():
    """Text beside calls goes into an LMReply."""
    with pytest.raises(ConfigError, match="either"):
        await ScriptedLM([[sm.ToolCall("1", "add", {}), "text"]])("?", tools=[{"name": "add"}])


async def test_schema_lm_calls_each_tool_in_its_first_turns():
    """Validly, as often as it is told, and then it answers."""

    class Add(sm.DataModel):
        """Two numbers."""

        a: int
        b: int = sm.Field(ge=100)

    tools = [{"name": "add", "parameters": Add.get_schema()}, {"name": "now"}]
    lm, messages = SchemaLM(3, tool_calls=2), [sm.ChatMessage("user", "?")]
    names = []
    for _ in range(3):
        reply = await lm(messages, Answer, tools)
        names.append([call.name for call in reply.tool_calls])
        results = [sm.ChatMessage("tool", "1", tool_call_id=call.id) for call in reply.tool_calls]
        messages = [*messages, reply.message, *results]
    assert names == [["add", "now"], ["add", "now"], []]
    assert isinstance(reply["a"], int)
    assert (await lm("?", tools=tools, tool_choice="none")).tool_calls == ()


async def test_exceptions_are_raised():
    """An exception among the replies is raised as itself."""
    error = ValueError("boom")
    with pytest.raises(ValueError, match="boom") as caught:
        await ScriptedLM([error])("?")
    assert caught.value is error


async def test_functions_may_be_async_or_give_awaitables():
    """Plain, async, and plain functions that give a coroutine."""

    async def later(request):
        await asyncio.sleep(0)
        return request.messages[-1]["content"]

    for fn in (later, lambda request: later(request), lambda request: request.messages[-1].content):
        assert (await FunctionLM(fn)("echo")).text == "echo"


async def test_replies_come_in_order():
    """One a request, in call order."""
    lm = ScriptedLM(["a", "b"])
    assert [(await lm("1")).text, (await lm("2")).text] == ["a", "b"]
    lm.assert_done()
    assert [request.messages[0]["content"] for request in lm.requests] == ["1", "2"]


async def test_a_cycle_begins_again():
    """`cycle=True` never runs out."""
    lm = ScriptedLM(["a", "b"], cycle=True)
    assert [(await lm("?")).text for _ in range(5)] == ["a", "b", "a", "b", "a"]
    lm.assert_done()


async def test_running_out_is_an_assertion_error():
    """With path, number and the last message."""
    lm = ScriptedLM(["a"])
    await lm("first")
    with pytest.raises(AssertionError) as caught:
        await inside("pipeline/writer", lambda: lm("the last message"))
    for words in ("pipeline/writer", "2", "the last message"):
        assert words in str(caught.value)


async def test_unused_replies_fail_assert_done():
    """`assert_done()` says how many are left."""
    lm = ScriptedLM(["a", "b", "c"])
    await lm("?")
    with pytest.raises(AssertionError, match="2 of 3"):
        lm.assert_done()


async def test_a_mapping_answers_by_path():
    """Paths and globs do not depend on the order of concurrent calls; the path itself comes first."""
    lm = ScriptedLM(
        {"a/b": ["exact"], "a/*": ["star", "star"], "**/deep": ["deep"], "entry": ["entry"], "**": ["rest"] * 2}
    )
    for path, text in [("a/b", "exact"), ("a/c", "star"), ("x/y/deep", "deep"), ("x/y", "rest"), ("a/c/d", "rest")]:
        assert (await inside(path, lambda: lm("?"))).text == text
    assert (await inside("", lambda: lm("?"), name="entry")).text == "entry"
    with pytest.raises(AssertionError, match=r"1 of 2 for 'a/\*'"):
        lm.assert_done()


async def test_a_path_without_replies_names_those_there_are():
    """A module nobody wrote for is an AssertionError."""
    with pytest.raises(AssertionError, match="'other'.*'writer'"):
        await inside("other", lambda: ScriptedLM({"writer": ["x"]})("?"))


@pytest.mark.parametrize("replies", ["text", {"writer": "text"}, {"answer": 3}, 5, {"writer": {"a": 1}}])
def test_what_is_no_list_is_refused(replies):
    """A text or an object alone is no list of replies."""
    with pytest.raises(ConfigError, match="wanted a list of replies"):
        ScriptedLM(replies)


async def test_all_keywords_of_a_model_are_taken():
    """Defaults, attempts, structured, price and name are those of LanguageModel."""
    lm = FunctionLM(
        lambda request: "x", attempts=1, name="n", temperature=0, structured="json", price=(1, 1), timeout_s=3
    )
    await lm("?")
    assert (lm.name, lm.attempts, lm.requests[0].params["temperature"]) == ("n", 1, 0)
    assert lm.requests[0].structured == "json"
    with pytest.raises(ConfigError, match="Did you mean 'attempts'"):
        FunctionLM(lambda request: "x", retries=3)


async def test_every_request_that_reached_the_adapter_is_kept():
    """Retries and repairs are in `requests`."""
    lm = ScriptedLM([UnavailableError("down"), "prose", {"a": 1}])
    await lm("?", SCHEMA)
    assert len(lm.requests) == 3


async def test_a_hundred_calls_at_once_get_a_reply_each():
    """No reply is given twice."""
    lm = ScriptedLM([str(number) for number in range(100)], latency_s=0.001)
    got = await asyncio.gather(*[lm("?") for _ in range(100)])
    assert sorted(int(reply.text) for reply in got) == list(range(100))
    lm.assert_done()


def test_doubles_run_on_every_loop(any_loop):
    """asyncio, eager tasks and trio."""
    lm = ScriptedLM(["x", "y"])

    async def ask():
        return (await lm("?")).text

    assert any_loop(ask) == "x"

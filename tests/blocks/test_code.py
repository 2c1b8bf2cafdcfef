"""Code and CodeAct: what code computes, what it calls, what the model reads of it, and what ends a run."""

import asyncio
import json

import pytest

import synmod as sm
from synmod.blocks.code import _CodeRun
from synmod.testing import FunctionLM, ScriptedLM


class Numbers(sm.DataModel):
    """Numbers."""

    numbers: list[int]


class Total(sm.DataModel):
    """A total."""

    total: int


class Question(sm.DataModel):
    """A question."""

    question: str


NUMBERS, QUESTION = Numbers(numbers=[1, 2, 3]), Question(question="How much?")
SOURCE = """
    def f(inputs):
        return {"total": sum(inputs["numbers"])}
"""


async def price(item: str, count: int = 1) -> int:
    """Look up a price."""
    if item == "gold":
        raise sm.ToolError("there is no gold")
    return len(item) * count


def agent(*pieces, tools=(price,), **options):
    """A CodeAct whose model writes these pieces."""
    lm = ScriptedLM([{"code": piece} for piece in pieces])
    return sm.CodeAct(list(tools), Total, language_model=lm, **options), lm


# -- Code --------------------------------------------------------------------------------------------------------------


async def test_code_computes_its_output():
    """Dedented, validated, saved like instructions, and changed by an overlay."""
    block = sm.Code(SOURCE, Total)
    assert block.source.value.startswith("def f")
    assert (await block(NUMBERS)).get_json() == {"total": 6}
    assert (await sm.loads(sm.dumps(block))(NUMBERS))["total"] == 6
    with sm.using(block, {"source": "def f(inputs): return {'total': 7}"}):
        assert (await block(NUMBERS))["total"] == 7
    assert isinstance(await block(sm.Input(Numbers)), sm.SymbolicDataModel)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(inputs): return 1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(", "SyntaxError"),
        ("x = 1", "name 'f' is not defined"),
        ("def f(inputs): return {'total': 'six'}", "something else than its output: .*total"),
        ("def f(inputs): return 6", "something else than its output"),
        ("def f(inputs): return {'total': float('nan')}", "something else than its output"),
        ("def f(inputs): return {'total': 'x' * 2_000_000}", "over 1,000,000 characters"),
        ("def f(inputs):\n    while True: pass", "TimeoutError"),
        ("def f(inputs): return 'x' * 10**9", "MemoryError"),
        ("def f(inputs): return lambda: 1", "TypeError"),
    ],
)
async def test_a_failure_is_a_code_error_with_its_traceback(source, words):
    """And the module works on."""
    block = sm.Code(source, Total, seconds=0.2)
    with pytest.raises(sm.CodeError, match=words) as raised:
        await block(NUMBERS)
    assert raised.value.traceback
    block.source.assign("def f(inputs): return {'total': 6}")
    assert (await block(NUMBERS))["total"] == 6


def test_wrong_arguments_are_named():
    """By their constructor."""
    for make, words in (
        (lambda: sm.Code(5, Total), "source is 5"),
        (lambda: sm.Code("x", Total, seconds=0), "seconds must be"),
        (lambda: sm.Code("x", Total, memory_mb=0), "memory_mb must be"),
        (lambda: sm.CodeAct([], Total, inputs_as="text "), "Did you mean 'text'"),
        (lambda: sm.CodeAct([sm.Tool(price, name="answer")], Total), "a tool is called 'answer'"),
    ):
        with pytest.raises(sm.ConfigError, match=words):
            make()


# -- CodeAct -----------------------------------------------------------------------------------------------------------


async def test_names_live_on_and_tools_are_calls_below():
    """From piece to piece, until the answer; each run of a tool is in the trace."""
    act, lm = agent(
        "x = await price('tea', count=2)\nprint(x)",
        "import asyncio\ny = await asyncio.gather(price('a'), price('bb'))\nprint(y)",
        "await answer(total=x + sum(y))\nprint('never')",
    )
    with sm.trace() as trace:
        assert await act(QUESTION) == Total(total=9).to_json_data_model()
    assert [child.path for child in trace.roots[0].children] == ["tools/price"] * 3
    first, second, third = lm.requests
    assert "- price(item, count): Look up a price." in first.messages[0].content
    assert second.messages[-1].content == "Output:\n6\n"
    assert third.messages[-1].content == "Output:\n[1, 2]\n"


async def test_code_may_be_in_a_fence_of_markdown():
    """As many models write it, whatever was asked for; what was not awaited did not run, and the model reads so."""
    fenced = "```python\n{}\n```"
    act, lm = agent(fenced.format("answer(total=1)"), fenced.format("await answer(total=2)"))
    assert (await act(QUESTION))["total"] == 2
    assert "where it is awaited" in lm.requests[1].messages[-1].content
    assert await sm.Code(fenced.format(SOURCE), Total)(NUMBERS) == Total(total=6).to_json_data_model()


async def test_the_code_reads_what_it_did_wrong():
    """Wrong arguments, errors of tools, a wrong answer: each an exception that it may catch, or a traceback."""
    act, lm = agent(
        "for call in (price(5), price('a', 1, 2), price('a', item='b'), price('gold'), answer(total='x')):\n"
        "    try:\n        await call\n    except RuntimeError as error:\n        print(error)",
        "await price('gold')",
        "while True: pass",
        "print(call)",
        "await answer(6)",
        seconds=0.2,
    )
    assert (await act(QUESTION))["total"] == 6
    caught, raised, stopped, lost = (request.messages[-1].content for request in lm.requests[1:])
    lines = caught.splitlines()[1:]
    for line, words in zip(
        lines, ["/item: wanted string", "each once", "each once", "no gold", "/total"], strict=False
    ):
        assert words in line
    assert "RuntimeError: ToolError: there is no gold" in raised
    assert "TimeoutError" in stopped and "begins without the names" in stopped
    assert "name 'call' is not defined" in lost


async def test_a_long_input_is_never_in_the_prompt():
    """It is a variable of the code, of which the model sees the size and the beginning; other models may read it."""
    reader = FunctionLM(lambda request: str(len(request.messages[0].content)))
    text = "secret " * 100_000
    code = "parts = [question[at : at + 300_000] for at in range(0, len(question), 300_000)]\n"
    code += "await answer(total=sum([int(await ask_model(part)) for part in parts]))"
    act, lm = agent(code, tools=[sm.ask_model(reader)], inputs_as="variables")
    assert (await act(Question(question=text)))["total"] == len(text)
    assert sum(len(str(message.content)) for message in lm.requests[0].messages) < 2_000
    assert "question, str of 700,000 characters: secret" in lm.requests[0].messages[-1].content
    assert len(reader.requests) == 3


async def test_without_a_data_model_the_answer_is_text():
    """A message, as of an Agent."""
    lm = ScriptedLM([{"code": "await answer('So it is.')"}])
    reply = await sm.CodeAct([], language_model=lm)(QUESTION)
    assert (reply["role"], reply["content"]) == ("assistant", "So it is.")


CATCHES = "try:\n    await {}\nexcept BaseException:\n    pass\nawait answer(total=1)"


class Failure(Exception):
    """Something that no code may catch."""


async def test_only_its_own_mistakes_can_be_caught():
    """An exception of a tool, a spent budget, too many calls and a deadline end the run whatever the code catches."""

    async def fails(item: str = "") -> int:
        raise Failure("broken")

    async def waits() -> int:
        await asyncio.sleep(60)

    for call, tools, options, error in (
        ("fails()", [fails], {}, Failure),
        ("price('gold')", [price], {"on_tool_error": "raise"}, sm.ToolError),
        ("asyncio.gather(*[price('a') for i in range(9)])", [price], {"max_calls": 8}, sm.AgentLimitError),
        ("asyncio.gather(price('a'), price('a'))", [price], {"budget": {"tool_calls": 1}}, sm.AgentLimitError),
    ):
        act, _ = agent("import asyncio\n" + CATCHES.format(call), tools=tools, **options)
        with pytest.raises(error):
            await act(QUESTION)
    act, _ = agent(CATCHES.format("waits()"), tools=[waits])
    with pytest.raises(sm.DeadlineExceeded), sm.deadline(0.3):
        await act(QUESTION)


async def test_the_end_of_a_run_is_the_end_of_its_tools():
    """An answer, a failure and a cancellation cancel what runs, and wait for it."""
    ended = []

    async def slow(item: str) -> int:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(item)

    code = "import asyncio\nawait asyncio.gather(slow('a'), slow('b'), answer(total=1))"
    assert (await agent(code, tools=[slow])[0](QUESTION))["total"] == 1
    assert sorted(ended) == ["a", "b"]
    task = asyncio.create_task(agent("await slow('c')", tools=[slow])[0](QUESTION))
    while len(asyncio.all_tasks()) < 3:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended[2:] in ([], ["c"])


async def test_a_call_that_arrives_after_a_cancellation_does_nothing():
    """Not even the answer, which would wait for the end of a run that waits for it."""
    act, _ = agent("")
    run, replies = _CodeRun(act, None), []

    class Leaving:
        async def run(self, _code):
            try:
                await asyncio.Event().wait()
            finally:
                replies.append(await run.use(json.dumps(["answer", [1], {}])))

    task = asyncio.create_task(run.piece(Leaving(), ""))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=10)
    assert task.cancelled()
    assert replies == ["{}"]
    assert run.answer is None


async def test_no_answer_is_a_limit_error_with_the_messages():
    """After `max_steps` pieces."""
    act, _ = agent("print(1)", "print(2)", max_steps=2)
    with pytest.raises(sm.AgentLimitError, match="max_steps=2 pieces") as raised:
        await act(QUESTION)
    assert raised.value.messages[-1]["content"] == "Output:\n2\n"


async def test_tools_are_approved():
    """As in an Agent; a refusal is an exception in the code."""
    tool = sm.Tool(price, approve=lambda name, arguments: arguments["item"] != "tea")
    act, lm = agent("print(await price('cake'))\nawait price('tea')", "await answer(total=4)", tools=[tool])
    assert (await act(QUESTION))["total"] == 4
    assert "4" in lm.requests[1].messages[-1].content
    assert "not approved" in lm.requests[1].messages[-1].content


async def test_runs_at_once_do_not_mix():
    """Each has a worker of its own, also inside another run."""

    async def nested() -> int:
        return (await agent("await answer(total=1)")[0](QUESTION))["total"]

    async def one(number):
        code = f"x = {number}\nprint(x)"
        return (await agent(code, "await answer(total=x + await nested())", tools=[nested])[0](QUESTION))["total"]

    assert await asyncio.gather(*map(one, range(70))) == list(range(1, 71))


async def test_a_saved_agent_is_the_same(tmp_path):
    """Instructions and settings; the code of its runs is in no file."""
    act, _ = agent(tools=[])
    loaded = sm.loads(sm.dumps(act), language_models=ScriptedLM([{"code": "await answer(total=3)"}]))
    assert (await loaded(QUESTION))["total"] == 3


async def test_a_durable_run_pays_once(tmp_path):
    """Started again, neither the model nor a tool runs a second time; a tool that asks a person pauses the run."""
    runs = []

    async def count(item: str) -> int:
        runs.append(item)
        return len(item)

    pieces = ("x = await count('tea')\ny = await count('tea')", "await answer(total=x + y)")
    for requests in (2, 0):
        act, lm = agent(*pieces, tools=[count])
        async with sm.durable(tmp_path / "run"):
            assert (await act(QUESTION))["total"] == 6
        assert (len(lm.requests), runs) == (requests, ["tea", "tea"])
    act, _ = agent(CATCHES.format("count('tea')"), tools=[sm.Tool(count, approve="ask")])
    with pytest.raises(sm.Paused):
        await act(QUESTION)

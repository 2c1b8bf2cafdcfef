"""Durable blocks: what is found instead of done, what is numbered, counted, settled and forgotten."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import nullcontext

import pytest
from anyio import create_task_group

import synmod as sm
from synmod.cache import Cache
from synmod.scope import Hook
from synmod.testing import FunctionLM, ScriptedLM

RAN = []
"""What tools have run."""


class Query(sm.DataModel):
    text: str


class Answer(sm.DataModel):
    answer: str


@pytest.fixture(autouse=True)
def _forget_runs():
    RAN.clear()


def echo(**options):
    """Return a model that answers with a number of its own to each request."""
    model = FunctionLM(lambda request: f"{len(model.requests)}: {request.messages[-1]['content']}", **options)
    return model


def shout(text: str) -> str:
    """Return a text in capitals."""
    RAN.append(text)
    return text.upper()


async def twice(folder, main):
    """Return what two starts of a block returned."""
    results = []
    for _ in range(2):
        async with sm.durable(folder):
            results.append(await main())
    return results


# -- what is found -----------------------------------------------------------------------------------------------------


async def test_what_is_recorded_is_found(tmp_path):
    """Model calls, embeddings and tools are made once; equal calls have records of their own."""
    model, embed, tool = echo(), sm.EmbeddingModel("embedded/hash", batch_size=2), sm.Tool(shout)

    async def main():
        texts = [(await model(text)).text for text in ("a", "b", "a")]
        vectors = (await embed(["x", "y", "z"])).vectors
        return texts, vectors, (await tool(text="hello"))["result"], (await tool(text="hello"))["result"]

    first, second = await twice(tmp_path, main)
    assert first == second
    assert (first[0], first[2:]) == (["1: a", "2: b", "3: a"], ("HELLO", "HELLO"))
    assert (len(model.requests), RAN, embed.cumulated_calls, embed.cumulated_cached_calls) == (3, ["hello"] * 2, 4, 2)
    calls = sm.Run(tmp_path).calls
    assert [call.kind for call in calls] == ["model"] * 3 + ["embedding"] * 2 + ["tool"] * 2
    assert calls[-1].name == "shout"
    assert all(call.ended for call in calls)


async def test_a_found_call_is_a_cache_hit(tmp_path):
    """`cached` for hooks and counters, without usage; the usage of the run is that of the records."""
    model, seen = echo(price=(1.0, 1.0)), []

    class Watch(Hook):
        def on_lm_end(self, event):
            seen.append((event.cached, event.usage.calls))

    with sm.hooks(Watch()), sm.track_usage() as usage:
        await twice(tmp_path, lambda: model("Hello"))
    assert seen == [(False, 1), (True, 0)]
    assert (model.cumulated_calls, model.cumulated_cached_calls, usage.calls) == (2, 1, 1)
    run = sm.Run(tmp_path)
    assert run.usage == usage.total()
    assert run.calls[0].cost == run.usage.cost_usd > 0


async def test_paths_tell_equal_calls_apart(tmp_path):
    """Order and concurrency do not matter: each branch finds its own reply."""
    model = echo()
    names = ["a", "b", "c"]
    generators = {name: sm.Generator(language_model=model, name=name) for name in names}

    def program(order):
        return sm.Parallel(*(generators[name] for name in order))

    async with sm.durable(tmp_path):
        first = await program(names)(Query(text="Hi"))
    again = sm.Parallel(*(generators[name] for name in names))
    async with sm.durable(tmp_path):
        assert await again(Query(text="Hi")) == first
    assert len(model.requests) == 3


@pytest.mark.slow
async def test_a_thousand_calls_at_once(tmp_path):
    """Each is recorded and found, equal ones too."""
    model = echo()

    async def main():
        async with sm.map_concurrently(lambda n: model(f"{n % 500}"), range(1000), progress=False) as replies:
            return sorted([reply.text async for reply in replies])

    first, second = await twice(tmp_path, main)
    assert first == second
    assert (len(model.requests), len(sm.Run(tmp_path).calls)) == (1000, 1000)


async def test_a_call_that_raised_takes_no_number(tmp_path):
    """An equal call after a failure finds its own record."""
    model = ScriptedLM([sm.RequestError("no"), "yes", sm.RequestError("no again"), "yes again"])

    async def main():
        replies = []
        for _ in range(2):
            try:
                await model("Hi")
            except sm.RequestError:
                replies.append((await model("Hi")).text)
            else:
                replies.append("found")
        return replies

    async with sm.durable(tmp_path):
        assert await main() == ["yes", "yes again"]
    async with sm.durable(tmp_path):
        assert await main() == ["found", "found"]
    assert len(model.requests) == 4


async def test_a_fallback_that_answered_is_found_first(tmp_path):
    """The model before it is not called again."""
    down = ScriptedLM([sm.UnavailableError("down")] * 9, attempts=1, model="testing/down")
    model = sm.LanguageModel("testing/down", adapter=down.adapter, attempts=1, fallback=[echo(model="testing/spare")])
    first, second = await twice(tmp_path, lambda: model("Hi"))
    assert (first.text, second.text, second.cached) == ("1: Hi", "1: Hi", True)
    assert len(down.requests) == 1


async def test_a_stream_of_a_found_call_has_its_text(tmp_path):
    """A reader gets the reply in one piece."""
    writer = sm.Generator(language_model=echo())

    async def main():
        async with sm.stream(writer, Query(text="Hi")) as pieces:
            return "".join([piece.text async for piece in pieces]), pieces.result["content"]

    first, second = await twice(tmp_path, main)
    assert first == second
    assert first[0] == first[1]


async def test_an_edited_prompt_pays_only_for_what_changed(tmp_path):
    """Other calls are found, whatever stands before them."""
    model = echo()

    def program(instructions):
        return sm.Sequential(
            [sm.Generator(instructions=instructions, language_model=model),
             sm.Lambda(lambda message: Query(text="the same"), output=Query),
             sm.Generator(instructions="Answer.", language_model=model)]
        )  # fmt: skip

    for instructions, paid in (("Be brief.", 2), ("Be brief.", 2), ("Be long.", 3), ("Be brief.", 3)):
        async with sm.durable(tmp_path):
            await program(instructions)(Query(text="Hi"))
        assert len(model.requests) == paid


async def test_a_failure_that_the_model_has_read_is_found(tmp_path):
    """A tool's failure that was reported is not run again; one that was raised is."""

    def fail(text: str) -> str:
        """Fail."""
        RAN.append(text)
        raise sm.ToolError("out of paper")

    model = ScriptedLM([sm.ToolCall("1", "fail", {"text": "x"}), "done"], cycle=True)
    agent = sm.Agent([fail], language_model=model)
    await twice(tmp_path / "reported", lambda: agent(Query(text="Print.")))
    assert (RAN, len(model.requests)) == (["x"], 2)
    assert "out of paper" in model.requests[-1].messages[-1]["content"]
    model = ScriptedLM([sm.ToolCall("1", "fail", {"text": "x"})])
    agent = sm.Agent([fail], language_model=model, on_tool_error="raise")
    for _ in range(2):
        with pytest.raises(sm.ToolError, match="paper"):
            async with sm.durable(tmp_path / "raised"):
                await agent(Query(text="Print."))
    assert (RAN, len(model.requests)) == (["x"] * 3, 1)


async def test_outputs_of_tools_come_back_as_they_were(tmp_path):
    """Data models, media and None."""

    def reply(text: str) -> Answer:
        return Answer(answer=text)

    def nothing(text: str) -> None:
        RAN.append(text)

    def picture(text: str) -> sm.Image:
        return sm.Image.from_bytes(text.encode(), media_type="image/png")

    tools = [sm.Tool(fn) for fn in (reply, nothing, picture, shout)]
    first, second = await twice(tmp_path, lambda: asyncio.gather(*(tool(text="x") for tool in tools)))
    assert first == second
    assert [sm.data.schema_of(x) for x in first] == [sm.data.schema_of(x) for x in second]
    assert second[0].to() == Answer(answer="x")


async def test_a_module_among_the_tools_is_no_record(tmp_path):
    """What it calls is."""
    inner = echo()
    writer = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "a"}]), name="writer", description="Writes.")

    class Writer(sm.Module):
        """Writes."""

        def __init__(self):
            super().__init__(name="write")
            self.inner = sm.Generator(language_model=inner, name="inner")

        async def call(self, inputs: Query):
            RAN.append("write")
            return await self.inner(inputs)

    model = ScriptedLM([sm.ToolCall("1", "write", {"text": "x"}), "done"])
    agent = sm.Agent([Writer()], language_model=model)
    await twice(tmp_path, lambda: agent(Query(text="Write.")))
    assert (RAN, len(inner.requests), writer.name) == (["write"] * 2, 1, "writer")
    assert [(call.kind, call.path) for call in sm.Run(tmp_path).calls][1] == ("model", "tools/write/inner")


async def test_a_nested_block_holds_what_is_inside(tmp_path):
    """The outer folder has the rest."""
    model = echo()

    async def main():
        await model("outer")
        async with sm.durable(tmp_path / "inner"):
            await model("inner")

    await twice(tmp_path / "outer", main)
    assert len(model.requests) == 2
    assert [len(sm.Run(tmp_path / name).calls) for name in ("outer", "inner")] == [1, 1]


async def test_an_evaluation_in_a_block_has_a_folder_of_its_own(tmp_path):
    """Its rows are recorded there; with `durable_rows` their calls, too."""
    model = echo()
    writer = sm.Generator(language_model=model)
    async with sm.durable(tmp_path / "block"):
        await sm.evaluate(writer, [Query(text="Hi")], run=tmp_path / "rows")
    assert sm.Run(tmp_path / "block").calls == ()
    async with sm.durable(tmp_path / "block"):
        await sm.evaluate(writer, [Query(text="Hi")])
    assert [len(sm.Run(tmp_path / name).calls) for name in ("block", "rows")] == [1, 0]


async def test_a_killed_row_pays_for_the_rest_alone(tmp_path):
    """With `durable_rows`, and its usage is that of an uninterrupted one."""
    script = ["one", sm.RateLimitError("busy"), "two"]
    model = ScriptedLM(script, attempts=1, price=(1.0, 1.0))
    first, second = (sm.Generator(language_model=model, name=name) for name in ("first", "second"))

    class Two(sm.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        async def call(self, inputs: Query):
            await self.first(inputs)
            return await self.second(inputs)

    rows = [Query(text="Hi")]
    with pytest.raises(sm.EvaluationError):
        await sm.evaluate(Two(), rows, run=tmp_path, durable_rows=True)
    found = await sm.evaluate(Two(), rows, run=tmp_path, durable_rows=True)
    assert (len(model.requests), found.usage.calls) == (3, 2)
    assert sm.Run(tmp_path).usage == found.usage
    with pytest.raises(sm.ArgumentError, match="durable_rows"):
        await sm.evaluate(Two(), rows, durable_rows=True)


# -- budgets -----------------------------------------------------------------------------------------------------------


async def test_budgets_inside_count_what_is_found(tmp_path):
    """A run ends where it would have ended; a budget around the block counts what is paid now."""
    model = echo()

    async def main():
        with sm.budget(calls=3):
            for number in range(9):
                await model(f"{number}")

    for _ in range(2):
        with sm.budget(calls=3), pytest.raises(sm.BudgetExceeded, match="calls=3"):
            async with sm.durable(tmp_path):
                await main()
    assert len(model.requests) == 3
    with sm.budget(calls=1) as spending:
        async with sm.durable(tmp_path):
            for number in range(4):
                await model(f"{number}")
    assert spending.used.calls == 1


async def test_an_agent_ends_where_it_would_have_ended(tmp_path):
    """Its budget counts found calls."""
    model = ScriptedLM([sm.ToolCall("1", "shout", {"text": "a"}), sm.ToolCall("2", "shout", {"text": "b"}), "done"])
    agent = sm.Agent([shout], language_model=model, budget={"calls": 2})
    for _ in range(2):
        with pytest.raises(sm.AgentLimitError, match="calls=2"):
            async with sm.durable(tmp_path):
                await agent(Query(text="Go."))
    assert (len(model.requests), RAN) == (2, ["a", "b"])


# -- folders -----------------------------------------------------------------------------------------------------------


async def test_a_folder_has_one_holder(tmp_path):
    """A second block on it is a RunError with the process, as is the folder of an evaluation."""
    async with sm.durable(tmp_path / "one"):
        with pytest.raises(sm.RunError, match="under way in process"):
            async with sm.durable(tmp_path / "one"):
                pass
    with pytest.raises(sm.RunError, match="something else"):
        await sm.evaluate(sm.Identity(), [Query(text="a")], run=tmp_path / "one")
    await sm.evaluate(sm.Identity(), [Query(text="a")], run=tmp_path / "two")
    with pytest.raises(sm.RunError, match="something else"):
        async with sm.durable(tmp_path / "two"):
            pass


async def test_no_secret_is_in_the_folder(tmp_path):
    """Keys of models and injected values are in no file."""

    class Customer(sm.DataModel):
        token: str

    def greet(text: str, customer: sm.Injected[Customer]) -> str:
        return f"{text} {len(customer.token)}"

    model = FunctionLM(lambda _: "your key is sk-very-secret-1234567", api_key="sk-very-secret-1234567")
    with sm.inject(Customer(token="a-token-of-a-customer")):
        async with sm.durable(tmp_path):
            await model("Hi")
            assert (await sm.Tool(greet)(text="Hi"))["result"] == "Hi 21"
    for secret in (b"sk-very-secret", b"a-token-of"):
        assert not any(secret in file.read_bytes() for file in tmp_path.iterdir())


async def test_another_injected_value_is_another_call(tmp_path):
    """A data model counts by its content, another object by its type."""

    class Customer(sm.DataModel):
        id: int

    def orders(text: str, customer: sm.Injected[Customer], file: sm.Injected[Cache]) -> int:
        RAN.append(customer.id)
        return customer.id

    for number in (1, 2, 1):
        with sm.inject(Customer(id=number), Cache()):
            async with sm.durable(tmp_path):
                assert (await sm.Tool(orders)(text="x"))["result"] == number
    assert RAN == [1, 2]


async def test_a_journal_that_cannot_be_written_stops_the_block(tmp_path):
    """A JournalError, which no Agent reports to its model."""
    model = ScriptedLM([sm.ToolCall("1", "shout", {"text": "a"}), "done"])
    agent = sm.Agent([shout], language_model=model, on_tool_error="report")
    with pytest.raises(sm.JournalError):
        async with sm.durable(tmp_path):
            (tmp_path / "lock").unlink()
            await agent(Query(text="Go."))


@pytest.mark.parametrize("cached", [True, False])
async def test_a_cached_reply_is_recorded(tmp_path, cached):
    """It is found even where the cache is gone."""
    model = echo(cache=sm.Cache())
    if cached:
        await model("Hi")
    first, second = await twice(tmp_path, lambda: model("Hi"))
    assert first.cached == cached
    assert (second.text, len(model.requests)) == (first.text, 1)
    (record,) = sm.Run(tmp_path).calls
    assert record.usage.calls == (0 if cached else 1)


def test_it_works_on_trio(tmp_path):
    """Blocks, branches and questions, on the other loop."""
    trio = pytest.importorskip("trio")
    model = echo()

    async def main():
        async with sm.durable(tmp_path) as run:
            await sm.Parallel(*(sm.Generator(language_model=model, name=name) for name in "ab"))(Query(text="Hi"))
            assert run.path == tmp_path
            return await sm.ask("Good?")

    with pytest.raises(sm.Paused):
        trio.run(main)
    run = sm.Run(tmp_path)
    run.answer(run.waiting[0].id, True)
    assert trio.run(main) is True
    assert len(model.requests) == 2


# -- people ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_question_is_answered_by_another_process(tmp_path):
    """In a fresh interpreter: the answer is validated, kept with time and name, and found by the same lines."""

    async def main():
        async with sm.durable(tmp_path):
            return await sm.ask("Which?", {"n": 1}, Answer)

    assert sm.Run(tmp_path).waiting == ()
    with pytest.raises(sm.Paused) as caught:
        await main()
    code = """
        import sys, synmod as sm
        run = sm.Run(sys.argv[1])
        (question,) = run.waiting
        assert question.value == {"n": 1}, question
        for value in ({"answer": 1}, "yes", None):
            try:
                run.answer(question.id, value)
            except sm.SchemaError as error:
                assert "Which?" in str(error), error
            else:
                raise AssertionError(value)
        run.answer(question.id, {"answer": "this"}, by="Ada")
        try:
            run.answer(question.id, {"answer": "that"})
        except sm.RunError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "is open" in done.stdout
    assert (await main())["answer"] == "this"
    run = sm.Run(tmp_path)
    assert run.waiting == ()
    lines = map(json.loads, run.export(tmp_path / "records.jsonl").read_text("utf-8").splitlines())
    answer = next(line["value"] for line in lines if line["key"] == f"answer/{caught.value.questions[0].id}")
    assert (answer["value"], answer["by"]) == ({"answer": "this"}, "Ada")
    assert answer["when"] > 1e9


async def test_answers_of_a_block_are_kept_by_the_run(tmp_path):
    """They need not be given again."""

    async def main():
        async with sm.durable(tmp_path):
            return await sm.ask("Good?")

    with pytest.raises(sm.Paused) as caught:
        await main()
    with sm.answers({caught.value.questions[0].id: False}):
        assert await main() is False
    assert await main() is False


async def test_a_question_that_is_no_longer_asked_does_not_wait(tmp_path):
    """The list is that of the last start that came so far."""
    texts = ["Red?", "Blue?"]
    for text in texts:
        with pytest.raises(sm.Paused):
            async with sm.durable(tmp_path):
                await sm.ask(text)
    assert [question.text for question in sm.Run(tmp_path).waiting] == ["Blue?"]
    with pytest.raises(ZeroDivisionError):
        async with sm.durable(tmp_path):
            raise ZeroDivisionError
    assert [question.text for question in sm.Run(tmp_path).waiting] == ["Blue?"]
    async with sm.durable(tmp_path):
        pass
    assert sm.Run(tmp_path).waiting == ()


async def test_an_approved_run_is_made_once(tmp_path):
    """Each of two equal calls is approved by itself, in turns, and runs once."""
    calls = [sm.ToolCall(f"{n}", "shout", {"text": "a"}) for n in (1, 2)]
    model = ScriptedLM([calls, calls[0], "done"])
    agent = sm.Agent([sm.Tool(shout, approve="ask", once=True)], language_model=model, parallel_tools=1)
    run, ran = sm.Run(tmp_path), []
    for expected in (2, 1, 1, 0):
        with nullcontext() if not expected else pytest.raises(sm.Paused):
            async with sm.durable(run):
                await agent(Query(text="Go."))
        assert len(run.waiting) == expected
        if expected:
            run.answer(run.waiting[-1].id, True)
        ran.append(len(RAN))
    assert ran == [0, 1, 2, 3]
    assert len(model.requests) == 3


# -- once --------------------------------------------------------------------------------------------------------------


async def cancel_inside(folder, tool):
    """Leave a run of a tool in the middle."""
    started = asyncio.Event()

    async def wait(text: str) -> str:
        """Wait for ever."""
        RAN.append(text)
        started.set()
        await asyncio.Event().wait()
        return ""

    async def main():
        async with sm.durable(folder):
            await sm.Tool(wait, name="pay", once=True)(text="a")

    task = asyncio.create_task(main())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def pay(text: str) -> str:
    """Pay."""
    RAN.append(text)
    return "paid"


@pytest.mark.parametrize("way", ["settle", "forget"])
async def test_a_run_that_may_have_run_is_not_repeated(tmp_path, way):
    """Neither it nor an equal call behind it, and no model reads why; until a person decides."""
    tool, run = sm.Tool(pay, once=True), sm.Run(tmp_path)
    await cancel_inside(tmp_path, tool)
    model = ScriptedLM([[sm.ToolCall(f"{n}", "pay", {"text": "a"}) for n in (1, 2)], "done"])
    agent = sm.Agent([tool], language_model=model, on_tool_error="report")

    async def main(called):
        async with sm.durable(run):
            return await called(Query(text="a"))

    for called in (tool, tool):
        with pytest.raises(sm.ToolError, match="may have run"):
            await main(called)
    (call,) = run.calls
    assert (call.name, call.ended, RAN) == ("pay", False, ["a"])
    if way == "settle":
        run.settle(call, "paid by hand")
        for other in (call, "pay"):
            with pytest.raises(sm.RunError, match="began and did not end"):
                run.settle(other, "again")
        assert (await main(tool))["result"] == "paid by hand"
        assert RAN == ["a"]
    else:
        assert run.forget([call]) == (call,)
        assert (await main(tool))["result"] == "paid"
        assert RAN == ["a", "a"]
    await main(agent)
    assert len(RAN) == (3 if way == "settle" else 4)


async def test_a_run_out_of_time_may_have_run(tmp_path):
    """The timeout of a tool with `once=True` is not reported; one that raised has ended, and may run again."""

    async def slow(text: str) -> str:
        """Wait."""
        RAN.append(text)
        await asyncio.Event().wait()
        return ""

    async def broken(text: str) -> str:
        """Fail."""
        RAN.append(text)
        raise LookupError(text)

    model = ScriptedLM([sm.ToolCall("1", "slow", {"text": "a"}), "done"])
    agent = sm.Agent([sm.Tool(slow, once=True, timeout_s=0.01)], language_model=model)
    for _ in range(2):
        with pytest.raises(sm.ToolError, match="may have run"):
            async with sm.durable(tmp_path / "slow"):
                await agent(Query(text="Go."))
    assert RAN == ["a"]
    for _ in range(2):
        with pytest.raises(LookupError):
            async with sm.durable(tmp_path / "broken"):
                await sm.Tool(broken, once=True)(text="b")
    assert RAN == ["a", "b", "b"]


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_run_beside_the_end_of_its_block(tmp_path, has_begun):
    """A tool that outlives the block does not begin any more, and may run next time; one that has begun may not."""
    arrived, may_go_on = asyncio.Event(), asyncio.Event()

    async def wait(*_):
        arrived.set()
        return await may_go_on.wait()

    async def pay_slowly(text: str) -> str:
        """Pay."""
        RAN.append(text)
        return str(await wait()) if has_begun else "paid"

    async with sm.durable(tmp_path):
        tool = sm.Tool(pay_slowly, once=True, approve=None if has_begun else wait)
        task = asyncio.create_task(tool(text="a"))
        await arrived.wait()
    may_go_on.set()
    with pytest.raises(sm.JournalError, match="block has ended"):
        await task
    assert RAN == ["a"] * has_begun
    async with sm.durable(tmp_path):
        with pytest.raises(sm.ToolError, match="may have run") if has_begun else nullcontext():
            await sm.Tool(pay_slowly, once=True)(text="a")
    assert RAN == ["a"]


@pytest.mark.parametrize("is_ended", [False, True])
async def test_a_busy_journal_is_not_an_empty_one(tmp_path, monkeypatch, is_ended):
    """While another program locks the file, a run that is recorded, or began, is not made again."""
    monkeypatch.setattr("synmod.cache.database._use_wal", lambda connection: None)  # a file system that has no WAL
    monkeypatch.setattr("synmod.cache.database._WAIT_S", 0.0)
    tool = sm.Tool(pay, once=True)
    if is_ended:
        async with sm.durable(tmp_path):
            await tool(text="a")
    else:
        await cancel_inside(tmp_path, tool)
    async with sm.durable(tmp_path):
        other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sm.JournalError, match="cannot be read: .* locked"):
            await tool(text="a")
        other.close()
        with nullcontext() if is_ended else pytest.raises(sm.ToolError, match="may have run"):
            await tool(text="a")
    assert RAN == ["a"]


@pytest.mark.parametrize("name", ["calls", "usage", "waiting"])
async def test_a_busy_journal_is_not_read_as_an_empty_one(tmp_path, monkeypatch, name):
    """What a run has recorded is a JournalError while another program locks the file."""
    monkeypatch.setattr("synmod.cache.database._WAIT_S", 0.0)
    async with sm.durable(tmp_path) as run:
        await sm.Tool(shout)(text="a")
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sm.JournalError, match="cannot be used: .* locked"):
        getattr(run, name)
    other.close()
    assert run.calls


async def test_a_failure_in_a_task_group_of_a_tool_is_recorded_as_itself(tmp_path):
    """The model has read it, so the tool does not run again."""

    async def fail(text: str):
        RAN.append(text)
        raise sm.ToolError("no such order")

    async def look_up(text: str) -> str:
        async with create_task_group() as group:
            group.start_soon(fail, text)
        return text

    async def main():
        model = ScriptedLM([sm.ToolCall("1", "look_up", {"text": "a"}), "done"])
        await sm.Agent([sm.Tool(look_up)], language_model=model)(Query(text="Go."))

    await twice(tmp_path, main)
    assert RAN == ["a"]


# -- forgetting --------------------------------------------------------------------------------------------------------


async def test_calls_are_forgotten_by_path(tmp_path):
    """What is dropped is made again; `after=True` drops all that came later, answers too; what was paid stays paid."""
    model = echo(price=(1.0, 1.0))
    first, second = (sm.Generator(language_model=model, name=name) for name in ("first", "second"))

    class Two(sm.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        async def call(self, inputs: Query):
            await self.first(inputs)
            await sm.ask("Go on?")
            return await self.second(inputs)

    async def main():
        async with sm.durable(tmp_path) as run:
            await Two()(Query(text="Hi"))
            return run

    run = sm.Run(tmp_path)
    with pytest.raises(sm.RunError, match="no journal"):
        run.forget("first")
    with pytest.raises(sm.Paused):
        await main()
    run.answer(run.waiting[0].id, True)
    await main()
    assert [call.path for call in run.calls] == ["first", "second"]
    assert run.forget("third") == ()
    assert [call.path for call in run.forget("fir*")] == ["first"]
    await main()
    assert [call.path for call in run.calls] == ["second", "first"]
    assert (len(model.requests), run.usage.calls) == (3, 3)
    await main()
    run.forget(run.calls[:1], after=True)
    assert (run.calls, run.usage.calls) == ((), 3)
    await main()
    run.forget("first", after=True)
    await main()
    assert len(model.requests) == 7


async def test_time_travel_asks_again(tmp_path):
    """Answers that were given after the call that is forgotten go with it."""
    model = echo()

    async def main():
        async with sm.durable(tmp_path):
            await model("Hi")
            return await sm.ask("Go on?")

    run = sm.Run(tmp_path)
    with pytest.raises(sm.Paused):
        await main()
    run.answer(run.waiting[0].id, True)
    assert await main() is True
    run.forget("", after=True)
    with pytest.raises(sm.Paused):
        await main()
    assert len(model.requests) == 2


def test_a_damaged_journal_is_refused(tmp_path):
    """Nothing is paid for, and no tool runs, a second time because half of the file is gone."""
    lm = FunctionLM(lambda request: "reply")

    async def main():
        async with sm.durable(tmp_path / "run"):
            return [(await lm(f"question {number}")).text for number in range(200)]

    sm.run(main)
    file = tmp_path / "run" / "journal.db"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 17])
    for _ in range(2):
        with pytest.raises(sm.JournalError, match="damaged"):
            sm.run(main)
    assert len(lm.requests) == 200
    (tmp_path / "run" / "journal.db.corrupt-1").unlink()
    assert len(sm.run(main)) == 200

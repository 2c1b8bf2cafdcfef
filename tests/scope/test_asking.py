"""Questions to people: what pauses, what the questions are called, and who does not take a pause for a failure."""

import asyncio
from typing import Literal

import pytest

import synmod as sm
from synmod.testing import ScriptedLM

RAN = []
"""What has run."""


class Order(sm.DataModel):
    id: int


class Verdict(sm.DataModel):
    ok: bool
    why: str


class Asks(sm.Module):
    """Asks one question, and returns the answer."""

    def __init__(self, text="Refund?", value=None, answer=bool, **options):
        super().__init__(**options)
        self.text, self.value, self.answer = text, value, answer

    async def call(self, inputs: Order) -> Order:
        answer = await sm.ask(self.text, self.value, self.answer)
        return Order(id=int(answer) if isinstance(answer, int) else len(answer))


async def pause_of(module, *inputs, answers=None):
    """Return the pause of a call."""
    with sm.answers(answers or {}), pytest.raises(sm.Paused) as caught:
        await module(*(inputs or (Order(id=1),)))
    return caught.value


@pytest.mark.parametrize(
    ("answer", "given", "expected"),
    [
        (bool, True, True),
        (str, "no", "no"),
        (Literal["a", "b"], "b", "b"),
        (int | None, None, None),
        (list[int], [1, 2], [1, 2]),
        (Verdict, {"ok": True, "why": "kind"}, Verdict(ok=True, why="kind")),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 1}, {"n": 1}),
    ],
)
async def test_an_answer_has_the_type_that_was_wanted(answer, given, expected):
    """Plain types are Python's, data models are JsonDataModels."""
    with pytest.raises(sm.Paused) as caught:
        await sm.ask("What?", {"order": 1}, answer)
    (question,) = caught.value.questions
    assert (question.text, question.value, question.path) == ("What?", {"order": 1}, "")
    with sm.answers({question.id: given, "unknown": 1}):
        reply = await sm.ask("What?", {"order": 1}, answer)
    assert reply == expected
    assert isinstance(reply, sm.JsonDataModel) == isinstance(given, dict)


async def test_a_misfit_is_an_error_where_it_is_asked():
    """A SchemaError that names the question."""
    pause = await pause_of(Asks())
    with sm.answers({pause.questions[0].id: "yes"}), pytest.raises(sm.SchemaError, match="Refund"):
        await Asks()(Order(id=1))


async def test_equal_questions_are_numbered_in_their_call():
    """The second of two equal questions is another one, in each entry call anew."""

    class Twice(sm.Module):
        async def call(self, inputs: Order) -> Order:
            return Order(id=await sm.ask("How many?", answer=int) + await sm.ask("How many?", answer=int))

    twice, answers = Twice(), {}
    for number in (1, 2):
        pause = await pause_of(twice, answers=answers)
        answers[pause.questions[0].id] = number
    assert len(answers) == 2
    with sm.answers(answers):
        assert [(await twice(Order(id=1)))["id"] for _ in range(2)] == [3, 3]


def branches(kind):
    """Return a program of three branches that ask, and of one that works."""
    work, done = sm.Lambda(lambda order: done.append(order) or order, output=Order, name="work"), []
    asking = [Asks(f"Question {n}?", name=f"ask_{n}") for n in range(3)]
    if kind == "parallel":
        return sm.Parallel(*asking, work), done

    @sm.compose
    async def program(order: Order):
        return [await asking[0](order), await asking[1](order), await asking[2](order), await work(order)]

    return program, done


@pytest.mark.parametrize("kind", ["parallel", "program"])
async def test_branches_ask_all_at_once_and_the_others_run_to_their_end(kind):
    """Three branches that ask give three questions, and the fourth has run."""
    program, done = branches(kind)
    pause = await pause_of(program)
    assert sorted(question.text for question in pause.questions) == [f"Question {n}?" for n in range(3)]
    assert len(done) == 1
    with sm.answers({question.id: True for question in pause.questions}):
        assert len(await program(Order(id=1))) == 4


async def test_items_of_a_map_ask_all_at_once():
    """One question for each item; equal ones need a value."""

    class AskEach(sm.Module):
        async def call(self, inputs: Order) -> Order:
            return Order(id=int(await sm.ask("Good?", inputs)))

    orders = [Order(id=n) for n in range(3)]
    pause = await pause_of(sm.Map(AskEach(), on_error="collect"), orders)
    assert [question.value for question in pause.questions] == [{"id": n} for n in range(3)]
    with pytest.raises(sm.CallError, match="asked twice"):
        await sm.Map(Asks())(orders)


async def test_a_failure_beside_a_pause_is_raised():
    """With the pause as a note."""

    def fail(order):
        raise LookupError("broken")

    with pytest.raises(LookupError) as caught:
        await sm.Parallel(Asks(), sm.Lambda(fail, output=Order))(Order(id=1))
    assert "Refund?" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    "around",
    [
        lambda asks: sm.Retry(asks, 3, on=Exception),
        lambda asks: sm.Fallback(asks, sm.Identity(), on=(Exception,)),
        lambda asks: sm.Fallback(sm.Lambda(lambda _: 1 / 0, output=Order), asks, on=(Exception,)),
        lambda asks: sm.Cached(asks),
        lambda asks: sm.Sequential([asks, sm.Identity()]),
        lambda asks: sm.BestOf(asks, 2, reward=lambda outputs: 1.0, threshold=0.5, concurrency=1),
    ],
    ids=["retry", "fallback", "spare", "cached", "sequential", "best of"],
)
async def test_no_block_takes_a_pause_for_a_failure(around):
    """It is asked once, and its answer goes on."""
    module = around(Asks())
    pause = await pause_of(module)
    assert len(pause.questions) == 1
    with sm.answers({pause.questions[0].id: True}):
        assert (await module(Order(id=1)))["id"] == 1


async def test_waiters_of_one_cached_call_share_its_question():
    """A module that is called twice at once, through one cache, asks once."""
    cached = sm.Cached(Asks())
    pause = await pause_of(sm.Parallel(cached, cached))
    assert len(pause.questions) == 1


async def test_nothing_is_asked_on_symbols():
    """A question in a trace is a SymbolicValueError."""

    class Traced(sm.Module):
        async def call(self, inputs: Order):
            await sm.ask("Now?")
            return inputs

    with pytest.raises(sm.SymbolicValueError, match="Now"):
        await Traced()(sm.SymbolicDataModel(data_model=Order))
    with pytest.raises(sm.SymbolicValueError):
        await sm.ask("This?", sm.SymbolicDataModel(data_model=Order))


def is_right(outputs, target):
    """Judge a row, and note it."""
    RAN.append(1)
    return outputs["id"] == target["id"]


async def test_a_row_that_asks_has_no_score(tmp_path):
    """It is void, is not recorded, and the run lists its question; with the answer, the same line goes on."""

    class Picky(sm.Module):
        async def call(self, inputs: Order) -> Order:
            return inputs if inputs["id"] else Order(id=int(await sm.ask("Zero?", inputs)))

    RAN.clear()
    rows = [(Order(id=n), Order(id=1)) for n in range(3)]
    found = [await sm.evaluate(Picky(), rows, reward=is_right, run=tmp_path / "run") for _ in range(2)]
    assert [(each.score, len(each.errors), each.results[0].score) for each in found] == [(0.5, 1, None)] * 2
    assert found[0].errors[0].error.type == "Paused"
    assert len(RAN) == 2
    run = sm.Run(tmp_path / "run")
    (question,) = run.waiting
    run.answer(question.id, True, by="Ada")
    assert run.waiting == ()
    last = await sm.evaluate(Picky(), rows, reward=is_right, run=run)
    assert (last.score, len(RAN)) == (pytest.approx(2 / 3), 3)


# -- in an Agent -------------------------------------------------------------------------------------------------------


def refund(order: int, amount: float) -> str:
    """Pay money back."""
    RAN.append((order, amount))
    return f"refunded {amount:g}"


async def check(order: int) -> str:
    """Look at an order."""
    return "good" if await sm.ask("Is it good?", {"order": order}) else "bad"


def call(number, name="refund", **arguments):
    """Return a tool call."""
    return sm.ToolCall(str(number), name, arguments or {"order": 17, "amount": 30})


def desk(*replies, **options):
    """Return an Agent whose refunds are approved by people."""
    RAN.clear()
    model = ScriptedLM([*replies, "done"])
    tools = [sm.Tool(refund, approve="ask"), check]
    return sm.Agent(tools, language_model=model, resume_calls=True, **options), model


@pytest.mark.parametrize(
    ("answer", "ran", "content"),
    [
        (True, [(17, 30)], "refunded 30"),
        ({"arguments": {"order": 17, "amount": 5}}, [(17, 5)], "refunded 5"),
        (False, [], "not approved"),
        ("He is a thief.", [], "He is a thief."),
    ],
)
@pytest.mark.parametrize("way", ["report", "raise", None])
async def test_a_person_approves_the_run_of_a_tool(answer, ran, content, way):
    """True runs it, arguments run it with those, the rest becomes the tool message."""
    agent, model = desk([call(1)], on_tool_error=way)
    pause = await pause_of(agent)
    (question,) = pause.questions
    assert question.value == {"name": "refund", "arguments": {"order": 17, "amount": 30}}
    with sm.answers({question.id: answer}):
        await agent(sm.ChatMessages(messages=pause.messages))
    assert ran == RAN
    assert content in model.requests[-1].messages[-1]["content"]


async def test_arguments_of_a_person_are_checked():
    """A SchemaError, and nothing runs."""
    agent, _ = desk([call(1)])
    pause = await pause_of(agent)
    with sm.answers({pause.questions[0].id: {"arguments": {"order": "x"}}}), pytest.raises(sm.SchemaError):
        await agent(sm.ChatMessages(messages=pause.messages))
    assert RAN == []


@pytest.mark.parametrize("at_once", [8, 1])
async def test_tools_that_run_at_once_ask_all_at_once(at_once):
    """The others run to their end, and their results stand in the messages; equal calls are told apart."""
    agent, _ = desk([call(1), call(2, "check", order=3), call(3), call(4, "check", order=4)], parallel_tools=at_once)
    pause = await pause_of(agent)
    assert [question.text for question in pause.questions] == ["Run refund?", "Is it good?"] * 2
    ids = [question.id for question in pause.questions]
    assert len({*ids}) == 4
    second = await pause_of(agent, sm.ChatMessages(messages=pause.messages), answers={ids[1]: True, ids[2]: True})
    assert [turn["tool_call_id"] for turn in second.messages if turn["role"] == "tool"] == ["2", "3"]
    assert [question.id for question in second.questions] == [ids[0], ids[3]]
    with sm.answers({ids[0]: True, ids[3]: False}):
        await agent(sm.ChatMessages(messages=second.messages))
    assert RAN == [(17, 30)] * 2


async def test_a_later_call_asks_again():
    """An answer holds for one run of a tool, also where a later turn calls it with the same arguments."""
    agent, _ = desk([call(1)], [call(2)])
    first = await pause_of(agent)
    answers = {first.questions[0].id: True}
    second = await pause_of(agent, sm.ChatMessages(messages=first.messages), answers=answers)
    assert second.questions[0].id not in answers
    third = await pause_of(agent, sm.ChatMessages(messages=second.messages), answers=answers)
    assert third.questions[0].id == second.questions[0].id
    assert RAN == [(17, 30)]


async def test_equal_questions_of_tools_need_a_value():
    """Two runs of a tool that ask the same at the same time are a CallError."""

    async def vague(order: int) -> bool:
        """Ask."""
        return await sm.ask("Is it good?")

    agent = sm.Agent([vague], language_model=ScriptedLM([[call(1, "vague", order=1), call(2, "vague", order=2)]]))
    with pytest.raises(sm.CallError, match="sm.ask"):
        await agent(Order(id=1))


async def test_the_id_does_not_depend_on_where_the_agent_stands():
    """A conversation that began in a program goes on by the Agent alone."""
    agent, _ = desk([call(1)])
    inside = sm.Sequential([sm.Identity(), agent])
    pause = await pause_of(inside)
    with sm.answers({pause.questions[0].id: True}):
        await agent(sm.ChatMessages(messages=pause.messages))
    assert RAN == [(17, 30)]


@pytest.mark.parametrize("texts", [["Refund?", "Why?"], ["Refund?", "Refund?"]])
async def test_questions_of_a_task_group_of_the_users_are_one_pause(texts):
    """It has those of all tasks that asked before the first pause cancelled them; equal ones are a CallError."""

    class Crowd(sm.Module):
        async def call(self, inputs: Order) -> Order:
            async with asyncio.TaskGroup() as group:
                for text in texts:
                    group.create_task(sm.ask(text))
            return inputs

    with pytest.raises(sm.Paused if texts[0] != texts[1] else sm.CallError, match=texts[1][:-1]) as caught:
        await Crowd()(Order(id=1))
    assert texts[0] == texts[1] or [question.text for question in caught.value.questions] == texts

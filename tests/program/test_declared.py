"""Declared outputs: what a symbolic call meets beyond schemas is left for the call with values."""

import asyncio

import pytest

import synmod as sm
from synmod.testing import ScriptedLM


class Query(sm.DataModel):
    """What is asked."""

    question: str


class Answer(sm.DataModel):
    """What is answered."""

    answer: str


QUERY = Query(question="x")
RUNS = []


def is_value(inputs):
    """Whether inputs are a value; note it."""
    RUNS.append(type(inputs).__name__)
    return isinstance(inputs, sm.JsonDataModel)


async def ask_a_model(inputs):
    await ScriptedLM(["hi"])("Hi")


async def embed(inputs):
    await sm.EmbeddingModel("embedded/hash")(["a"])


async def stream(inputs):
    async with sm.stream(ScriptedLM(["hi"]), "Hi") as pieces:
        assert [piece.text async for piece in pieces]


async def start_tasks(inputs):
    async with asyncio.TaskGroup() as group:
        group.create_task(ask_a_model(inputs))


async def wait(inputs):
    await asyncio.sleep(0)


async def look_up(inputs):
    {True: 1}[is_value(inputs)]


async def refuse_symbols(inputs):
    if not is_value(inputs):
        raise TypeError("not a value")


async def refuse_as_data(inputs):
    if not is_value(inputs):
        raise sm.DataError("not a value")


async def check(inputs):
    assert is_value(inputs)


async def read(inputs):
    assert inputs["question"] == "x"


def sequential(module):
    return sm.Sequential([sm.Input(Query), module])


async def built(module):
    await sm.build(module, Query)
    return module


async def below(module):
    """The module inside another one with a declared output."""

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        async def call(self, inputs: Query) -> Answer:
            return await self.inner(inputs)

    return await built(Outer())


def composed(module):
    @sm.compose
    async def program(query: Query):
        return await module(query)

    return program


async def by_hand(module):
    asked = sm.Input(Query)
    return sm.Program(asked, await module(asked))


WAYS = [sequential, built, below, composed, by_hand]


async def made(way, module):
    """The program that a way makes of a module."""
    program = way(module)
    return await program if asyncio.iscoroutine(program) else program


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "body",
    [
        ask_a_model, embed, stream, start_tasks, wait, look_up, refuse_symbols, refuse_as_data, check, read,
    ],
)  # fmt: skip
async def test_what_a_body_does_is_no_obstacle_where_its_output_is_declared(body, way):
    """A model, a task, a wait, or an error because of the symbol: all of it happens in the call with values alone."""

    class Does(sm.Module):
        def __init__(self):
            super().__init__()
            self.note = sm.Param("x")

        async def call(self, inputs: Query) -> Answer:
            await body(inputs)
            return Answer(answer=self.note.value)

    program = await made(way, Does())
    assert (await program(QUERY)).get_json() == {"answer": "x"}


async def test_a_model_is_refused_where_the_output_is_not_declared():
    """The message says what to declare."""

    class Asks(sm.Module):
        async def call(self, inputs):
            await ask_a_model(inputs)
            return inputs

    with pytest.raises(sm.BuildError, match="declare its output"):
        await sm.build(Asks(), Query)


def typed(inputs) -> Answer:
    is_value(inputs)
    return Answer(answer="x")


async def typed_later(inputs) -> Answer | None:
    return typed(inputs)


def untyped(inputs):
    return typed(inputs)


class Typed:
    """A callable."""

    def __call__(self, inputs) -> Answer:
        """Answer."""
        return typed(inputs)


def route():
    """A route to a function, chosen by a function."""
    choice = sm.Lambda(lambda inputs: {"choice": str(is_value(inputs))}, output={"properties": {"choice": {}}})
    return sm.Route(choice, {"True": sm.Lambda(typed)})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: sm.Lambda(typed),
        lambda: sm.Lambda(typed_later),
        lambda: sm.Lambda(untyped, output=Answer),
        lambda: sm.Lambda(Typed()),
        lambda: sm.Fallback(sm.Lambda(typed), sm.Lambda(typed)),
        lambda: sm.BestOf(sm.Lambda(typed), 2, reward=lambda y_pred: float(is_value(y_pred))),
        lambda: sm.Cached(sm.Lambda(typed)),
        route,
    ],
)
async def test_a_function_that_declares_its_output_gets_values_alone(make, way):
    """Composing and building never run it."""
    RUNS.clear()
    program = await made(way, make())
    assert RUNS == []
    await program(QUERY)
    assert set(RUNS) == {"JsonDataModel"}

"""Functional programs, Sequentials and the ready-made modules: the flow is saved, never the function."""

import pytest

import synmod as sm
from synmod.program import Sequential, compose
from synmod.saving import dumps, loads
from synmod.testing import ScriptedLM, assert_saves
from tests.saving.programs import Answer, Built, Explain, Keep, Query, Unregistered


async def branching():
    """A program with shared modules, operators, an optional Input, nests and constants."""
    query, hint = sm.Input(Query), sm.Input(Unregistered, name="hint", optional=True)
    write = sm.Generator(Answer, instructions="Write.")
    first = await write(query)
    second = await write(query | hint)
    both = first + second.prefix("again")
    masked = both.out_mask(["score", "again_*"])
    return sm.Program(
        inputs=[query, hint], outputs={"all": both, "part": (masked, first & None or first)}, name="branching"
    )


async def test_a_functional_program_comes_back_with_its_flow():
    """Steps, operators, symbols, structure of inputs and outputs; loading traces nothing."""
    program = await branching()
    again = assert_saves(program)
    assert [step.name for step in again.steps] == [step.name for step in program.steps]
    assert again.inputs[1].name == "hint"
    assert set(again.outputs) == {"all", "part"}
    assert type(again.outputs["part"]) is tuple
    assert again.built
    assert again.name == "branching"


async def test_a_loaded_program_runs_as_the_saved_one():
    """Same replies, same outputs; typed where the class is known."""
    program = await branching()
    again = loads(dumps(program))
    replies = ['{"answer": "a", "score": 1.0}', '{"answer": "b", "score": 0.0}']
    given = [Query(question="?"), None]
    with sm.use_language_models(ScriptedLM(replies)):
        before = await program(given)
    with sm.use_language_models(ScriptedLM(replies)):
        after = await again(given)
    assert after["all"] == before["all"]
    assert after["part"] == before["part"]
    assert type(after["part"][1].to()) is Answer


async def test_a_composed_program_saves_without_its_function():
    """`compose`: the wiring is the program."""

    @compose
    async def rag(query: Query) -> Answer:
        """Answers."""
        return await sm.Generator(Answer)(query)

    again = assert_saves(rag)
    assert again.name == "rag"
    assert again.description == "Answers."


async def test_programs_in_programs_and_shared_modules():
    """A program is one step of another; a module shared by steps is one node."""
    x = sm.Input(Query)
    inner_module = sm.Generator(Query)
    inner = sm.Program(inputs=x, outputs=await inner_module(x), name="inner")
    y = sm.Input(Query)
    z = await inner(await inner(y))
    outer = sm.Program(inputs=y, outputs=await inner_module(z))
    again = assert_saves(outer)
    assert len(again.submodules) == 2
    assert again.inner.generator is again.generator


async def test_a_mixed_program_keeps_its_own_arguments():
    """A subclass that composes in `build`: its arguments are those of its own constructor."""

    @sm.register("tests_saving_mixed")
    class Mixed(sm.Program):
        def __init__(self, words):
            super().__init__()
            self.words = words

        async def build(self, inputs):
            outputs = await sm.Generator(Answer, instructions=self.words)(inputs)
            super().__init__(inputs=inputs, outputs=outputs, name=self.name)

    program = Mixed("hello")
    unbuilt = assert_saves(program)
    assert not unbuilt.built
    await sm.build(program, Query)
    again = assert_saves(program)
    assert again.built
    assert again.words == "hello"
    assert [step.name for step in again.steps] == ["generator"]


async def test_a_chain_of_thousands_of_steps(recwarn):
    """Nothing recurses: 2,000 steps in a chain save and load in linear time."""
    x = y = sm.Input(Query)
    module = Keep()
    for _ in range(2000):
        y = await module(y)
    program = sm.Program(inputs=x, outputs=y)
    text = dumps(program)
    assert dumps(loads(text)) == text


def test_sequentials_with_and_without_input():
    """Members at int steps, plain functions by id; built ones come back built."""
    for members in ([], [Explain(), Keep()], [Query, Explain(), Keep()], [Explain(), sm.OutMask("score")]):
        program = Sequential(members)
        again = assert_saves(program)
        assert again.built == program.built
        assert [type(member) for member in again.members] == [type(member) for member in program.members]
        assert [path for path, _ in sm.iter_graph(again)] == [path for path, _ in sm.iter_graph(program)]


async def test_a_built_sequential_comes_back_built():
    """Its members know their schemas; it knows that it was built."""
    program = Sequential([Built(), Keep()])
    assert not program.built
    await sm.build(program, Query)
    assert program.built
    again = assert_saves(program)
    assert again.built


def blocks():
    """Each ready-made module once."""
    return [
        sm.Generator(),
        sm.Generator(Answer, instructions="x", examples=[{"inputs": {"question": "?"}, "outputs": {"answer": "!"}}]),
        sm.Generator(schema={"type": "object", "properties": {"a": {"type": "integer"}}}, temperature=0.5),
        sm.Generator(Unregistered, language_model="embedded/nearest", return_inputs=True),
        sm.Generator(Answer, language_model=sm.LanguageModel("openai/gpt-4o-mini", temperature=0)),
        sm.ChainOfThought(Answer, return_thinking=False),
        sm.Decision(["a", "b c"], question="Which?"),
        sm.Parallel(Keep(), Explain(), merge="and"),
        sm.InMask(["answer"]),
        sm.OutMask("score"),
        sm.Prefix("p"),
        sm.Suffix("s"),
        sm.Factorize({"a": "many"}),
        sm.Constant(Answer(answer="x")),
        sm.Identity(),
        sm.Concat(),
        sm.And(),
        sm.Or(),
        sm.Xor(),
        sm.blocks.Not(),
    ]


@pytest.mark.parametrize("block", blocks(), ids=repr)
def test_every_block_saves(block):
    """The round trip of each ready-made module, alone and inside another."""
    assert_saves(block)
    assert_saves(Keep(block, [block]))

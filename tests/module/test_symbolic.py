"""Calls on symbols: the output schema is found, a step recorded, nothing is run or charged."""

import asyncio
from typing import Annotated

import pytest

import synmod as sm
from synmod.data import JsonDataModel, SymbolicDataModel
from synmod.errors import CallError, SchemaError, SymbolicValueError
from synmod.module import Module, build
from synmod.scope import Hook, current_call, hooks
from synmod.tree import static
from tests.module.models import Answer, Built, Echo, Notes, Query, Reply

query = SymbolicDataModel(data_model=Query)


class Traced(Module):
    """Declares nothing; says what it does only by doing it."""

    def __init__(self):
        self.echo = Echo()
        self.memory = self.add_variable("old", name="memory")
        self.runs = 0

    async def call(self, inputs):
        assert current_call().symbolic
        self.memory.assign("new")
        assert self.memory.value == "new"
        self.add_reward(1.0)
        both = inputs + await self.echo(inputs)
        return {"both": both, "none": None}


async def test_a_declared_output_is_not_run():
    """The annotation is the output schema; `call` does not run."""

    class Declared(Module):
        async def call(self, inputs: Query) -> tuple[Answer, Query | None]:
            raise AssertionError

    first, second = await Declared()(query)
    assert first.get_schema() == Answer.get_schema()
    assert second.keys() == ("question",)


@pytest.mark.parametrize(
    ("annotation", "may_be_none"),
    [
        (Answer | sm.JsonDataModel[Answer], False),
        (sm.JsonDataModel[Answer] | Answer | None, True),
        (sm.JsonDataModel[Answer], False),
        (Annotated[Answer, "what it found"] | sm.JsonDataModel[Answer], False),
    ],
)
async def test_an_instance_and_a_value_declare_the_same_output(annotation, may_be_none):
    """`-> Answer | JsonDataModel[Answer]` is `-> Answer`: what a type checker needs where `call` returns either."""

    class Either(Module):
        async def call(self, inputs):
            return None if inputs["question"] == "none" else Answer(answer="a")

    Either.call.__annotations__["return"] = annotation
    either = Either()
    assert (await either(query)).get_schema() == Answer.get_schema()
    assert (await either(Query(question="x"))).to() == Answer(answer="a")
    if may_be_none:
        assert await either(Query(question="none")) is None
    else:
        with pytest.raises(CallError, match="call returned None, which its annotation does not allow"):
            await either(Query(question="none"))


async def test_a_union_of_two_models_declares_nothing():
    """`call` runs on symbols, to find out."""

    class Either(Module):
        async def call(self, inputs) -> Answer | Query:
            return inputs

    assert (await Either()(query)).keys() == ("question",)


async def test_a_trace_finds_the_schema_and_writes_nothing():
    """Variables, rewards, counters and events are untouched."""
    told = []

    class Watch(Hook):
        def on_call_begin(self, event):
            told.append(event)

    traced = Traced()
    with hooks(Watch()):
        out = await traced(query)
    assert out["both"].keys() == ("question", "question_1")
    assert out["none"] is None
    assert (traced.memory.value, traced.memory.version) == ("old", 0)
    assert traced.counters.invocations == 0
    assert told == []


async def test_each_symbolic_output_is_a_new_symbol_that_remembers_its_step():
    """Even where a module returns its input."""
    echo = Echo()
    out = await echo(query)
    assert out is not query
    assert out._origin.step.module is echo
    assert out._origin.step.args == (query,)


async def test_reading_a_value_in_a_trace_tells_the_three_remedies():
    """A SymbolicValueError with a note: annotation, output_spec, compute_output_spec."""

    class Reads(Module):
        async def call(self, inputs):
            return Answer(answer=inputs["question"])

    with pytest.raises(SymbolicValueError, match="question") as caught:
        await Reads()(query)
    notes = "".join(caught.value.__notes__)
    for remedy in ("-> Answer", "output_spec", "compute_output_spec"):
        assert remedy in notes


async def test_reading_a_value_inside_a_task_group_is_the_same():
    """A program whose `call` starts tasks of its own is built by its annotation; without one the error is plain."""

    class Tasks(Module):
        async def call(self, inputs):
            async def read():
                return inputs["question"]

            async with asyncio.TaskGroup() as group:
                question = group.create_task(read())
            return Answer(answer=question.result())

    class Declared(Tasks):
        async def call(self, inputs) -> Answer:
            return await super().call(inputs)

    await build(declared := Declared(), Query)
    assert (await declared(Query(question="why")))["answer"] == "why"
    with pytest.raises(SymbolicValueError, match="question"):
        await Tasks()(query)


async def test_output_spec_on_class_and_instance():
    """A nest of models, schemas or symbols declares the output and is checked at run time."""

    class OnClass(Module):
        output_spec = {"a": Answer, "n": [Notes, None]}

        async def call(self, inputs):
            return {"a": Answer(answer=inputs["question"]), "n": [Notes(), None]}

    class OnInstance(Module):
        def __init__(self, model):
            self.output_spec = model

        async def call(self, inputs):
            return inputs

    out = await OnClass()(query)
    assert out["a"].keys() == ("answer",)
    assert out["n"][1] is None
    assert (await OnClass()(Query(question="x")))["a"]["answer"] == "x"
    assert (await OnInstance(Answer)(query)).keys() == ("answer",)
    with pytest.raises(SchemaError, match="declared"):
        await OnInstance(Answer)(Query(question="x"))
    assert OnInstance(Answer).output_spec.keys() == ("answer",)


async def test_specs_may_be_properties_of_a_class():
    """What comes in and out may depend on a constructor argument."""

    class Chosen(Module):
        def __init__(self, model):
            super().__init__()
            self.model = static(model)

        @property
        def input_spec(self):
            return self.model

        @property
        def output_spec(self):
            return self.model

        async def call(self, inputs):
            return inputs

    chosen = Chosen(Query)
    assert (await chosen(query)).get_schema() == Query.get_schema()
    assert chosen.input_spec.get_schema() == chosen.output_spec.get_schema() == Query.get_schema()
    with pytest.raises(SchemaError, match="input_spec"):
        await chosen(Answer(answer="x"))
    with pytest.raises(SchemaError):
        await Chosen(Answer)(Query(question="x"))


async def test_an_overridden_compute_output_spec_wins():
    """It gets the same arguments and returns models, schemas or symbols."""

    class Spec(Module):
        async def compute_output_spec(self, inputs, *, wide=False):
            return [Answer, inputs] if wide else Answer

        async def call(self, inputs, *, wide=False):
            raise AssertionError

    assert (await Spec()(query)).keys() == ("answer",)
    answer, same = await Spec()(query, wide=True)
    assert (answer.keys(), same.keys()) == (("answer",), ("question",))


async def test_a_symbolic_call_builds_and_checks_the_contract():
    """The wrong model in the right slot fails before the first token."""
    built = Built()
    await built(query)
    assert built.built
    with pytest.raises(SchemaError, match="Query"):
        await Reply()(SymbolicDataModel(data_model=Answer))


async def test_values_beside_symbols_are_constants():
    """A mixed call is symbolic."""

    class Both(Module):
        async def call(self, a, b):
            return a + b

    out = await Both()(query, Answer(answer="x"))
    assert out.keys() == ("question", "answer")
    assert isinstance(out._origin.step.args[1], JsonDataModel)


async def test_a_symbol_returned_where_values_went_in_is_refused():
    """So is any other thing that is no data."""

    class Confused(Module):
        async def call(self, inputs):
            return query

    with pytest.raises(CallError, match="symbol"):
        await Confused()(Query(question="x"))


async def test_a_call_with_values_never_traces():
    """Its `call` runs exactly once."""
    runs = []

    class Counts(Module):
        async def call(self, inputs):
            runs.append(current_call().symbolic)
            return inputs

    await Counts()(Query(question="x"))
    assert runs == [False]
    await build(Counts(), Query)
    assert runs == [False, True]

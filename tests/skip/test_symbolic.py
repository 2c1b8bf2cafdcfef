"""Skips on symbols: what traces and builds see, and composition module by module."""

import pytest

import synmod as sm
from synmod.skip import SkipError, SkipVerifyError, peek, pop, skippable, stash
from tests.skip.parts import QUERY, Cite, Document, Query, Retrieve, Tell, calling


@skippable(stash={"doc": Document})
class Typed(sm.Module):
    """Declares its output, and what it stashes; its `call` reads values."""

    async def call(self, inputs: Query) -> Query:
        stash("doc", Document(text=inputs["question"]))
        return inputs


class Fields(sm.Module):
    """Built on what it is given."""

    async def build(self, inputs):
        self.fields = sorted(inputs.keys())

    async def call(self, inputs):
        return inputs


@skippable(pop=["doc"])
class Joins(sm.Module):
    """Gives what it pops to a child that is built lazily."""

    def __init__(self):
        super().__init__()
        self.child = Fields()

    async def call(self, inputs):
        return await self.child(inputs + pop("doc"))


@pytest.mark.parametrize("producer", [Typed, Retrieve])
async def test_a_lazy_build_sees_what_was_popped(producer):
    """The child of the consumer is built on both; the schema of the module between has nothing of it."""
    between, joins = Fields(), Joins()
    row = sm.Sequential([producer(), between, joins])
    outputs = await sm.build(row, Query)
    expected = ["question", "text"] if producer is Typed else ["question", "question_1"]
    assert sorted(outputs.keys()) == expected
    assert joins.child.fields == expected
    assert between.fields == ["question"]
    assert sorted((await row(QUERY)).keys()) == expected


async def test_composition_module_by_module():
    """The stash is remembered with the symbol, the pop finds it in the history of its inputs."""
    x = sm.Input(Query)
    y = await Tell()(await Retrieve()(x))
    out = await Cite()(y.prefix("my"))
    assert out.keys() == ("my_question", "cited_question")
    program = sm.Program(inputs=x, outputs=out)
    assert (await program(QUERY)).get_json() == {"my_question": "why", "cited_question": "why"}


async def test_composition_of_containers():
    """A row of producers is followed inside; what it leaves is remembered."""
    x = sm.Input(Query)
    y = await sm.Sequential([Retrieve(), Tell()])(x)
    out = await sm.Sequential([Tell(), Cite()])(y)
    assert (await sm.Program(inputs=x, outputs=out)(QUERY))["cited_question"] == "why"


async def test_a_parallel_branch_takes_the_declared_schema():
    """An untyped pop without a history is a SkipError that says to type the skip."""

    async def takes(self, inputs):
        doc = pop("doc")
        return inputs + doc

    x = sm.Input(Query)
    with pytest.raises(SkipError, match="Type the skip"):
        await Cite()(x)
    cited = await calling(takes, pop={"doc": Document})(x)
    assert cited.keys() == ("question", "text")
    produced = await Typed()(x)
    program = sm.Program(inputs=x, outputs=[cited, produced])
    first, _ = await program(QUERY)
    assert first.get_json() == {"question": "why", "text": "why"}


async def test_what_does_not_fit_is_found_when_the_program_is_made():
    """Every fault, with the keys of the program."""
    x = sm.Input(Query)
    one = await Retrieve(name="one")(x)
    two = await Retrieve(name="two")(one)
    with pytest.raises(SkipVerifyError) as caught:
        sm.Program(inputs=x, outputs=two)
    assert [(each.kind, each.path) for each in caught.value.problems] == [("unpopped", "one"), ("restashed", "two")]
    with pytest.raises(SkipVerifyError):

        @sm.compose
        async def alone(query: Query):
            return await Retrieve()(query)


@sm.compose
async def composed(query: Query):
    """A composed program with a skip."""
    found = await Retrieve()(query)
    return await Cite()(await Tell()(found))


async def test_composed_functions_have_skips():
    """No frame, no loop: the lane runs along the symbols."""
    assert (await composed(QUERY))["cited_question"] == "why"


async def test_a_program_that_composes_in_its_build():
    """The lane is that of the build; nothing of it reaches the call that builds."""

    class Mixed(sm.Program):
        async def build(self, inputs):
            out = await Cite()(await Tell()(await Retrieve()(inputs)))
            super().__init__(inputs=inputs, outputs=out, name=self.name)

    assert (await Mixed()(QUERY))["cited_question"] == "why"
    row = sm.Sequential([sm.Sequential([Retrieve(), Cite()]), Mixed()])
    with pytest.raises(SkipVerifyError, match="redeclared"):
        await sm.build(row, Query)
    other = sm.Sequential([Tell(), Mixed()])
    assert (await sm.build(other, Query)).keys()
    assert (await other(QUERY))["cited_question"] == "why"


async def test_an_untyped_value_of_an_unread_producer():
    """A producer that declares its output is not followed: sm.build goes as far as it can, composition asks."""

    @skippable(stash=["doc"])
    class Untyped(sm.Module):
        async def call(self, inputs) -> Query:
            stash("doc", sm.JsonDataModel(Document(text=inputs["question"])))
            return inputs

    row = sm.Sequential([Untyped(), Cite()])
    assert await sm.build(row, Query) is None
    assert (await row(QUERY))["cited_text"] == "why"
    x = sm.Input(Query)
    with pytest.raises(SkipError, match="Type the skip"):
        await Cite()(await Untyped()(x))


async def test_rules_hold_on_symbols():
    """Forgotten and double commands are found while building."""

    async def forgets(self, inputs):
        return inputs

    async def twice(self, inputs):
        stash("doc", inputs)
        stash("doc", inputs)
        return inputs

    for call, text in ((forgets, "must be stashed but have not"), (twice, "has already been stashed")):
        with pytest.raises(SkipError, match=text):
            await sm.build(sm.Sequential([calling(call, stash=["doc"]), Cite()]), Query)


async def test_a_first_call_builds_without_touching_the_lane():
    """Symbols of a build inside an eager call never reach its lane."""

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.row = sm.Sequential([Retrieve(), Tell(), Cite()])

        async def build(self, inputs):
            await self.row.build(inputs)

        async def call(self, inputs):
            from synmod.skip import current_skip_frame

            assert len(current_skip_frame()) == 0
            return await self.row(inputs)

    assert (await Outer()(QUERY))["cited_question"] == "why"


@pytest.mark.parametrize("command", [pop, peek])
async def test_what_may_be_absent_is_looked_for_too(command):
    """Symbols tell of an optional skip what the run will give: the value if a step before has stashed it."""

    async def call(self, inputs):
        doc = command("doc", default=None)
        return inputs if doc is None else inputs + doc.prefix("found")

    x = sm.Input(Query)
    for before in ((), (Retrieve(),), (sm.Sequential([Retrieve(), Tell()]), Tell())):
        symbol = x
        for module in before:
            symbol = await module(symbol)
        symbol = await calling(call, **{command.__name__: ["doc"], "optional": ["doc"]})(symbol)
        fields = ["question", "found_question"] if before else ["question"]
        assert list(symbol.get_schema()["properties"]) == fields
        assert list((await sm.Program(inputs=x, outputs=symbol)(QUERY)).keys()) == fields


@pytest.mark.parametrize("in_a_row", [True, False])
async def test_what_was_popped_before_is_absent(in_a_row):
    """Also on symbols, in a row and step by step."""

    async def call(self, inputs):
        doc = peek("doc", default=None)
        return inputs if doc is None else inputs + doc.prefix("found")

    modules = [Retrieve(), Tell(), Cite(), Tell(), calling(call, peek=["doc"], optional=["doc"])]
    if in_a_row:
        program = sm.Sequential(modules)
        symbol = await sm.build(program, Query)
    else:
        symbol = x = sm.Input(Query)
        for module in modules:
            symbol = await module(symbol)
        program = sm.Program(inputs=x, outputs=symbol)
    assert list(symbol.get_schema()["properties"]) == ["question", "cited_question"]
    assert list((await program(QUERY)).keys()) == ["question", "cited_question"]

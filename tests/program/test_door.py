"""The door of a functional program: calling conventions, and what each mistake says."""

import re

import pytest

from synmod.data import DataModel, JsonDataModel
from synmod.errors import CallError, SchemaError
from synmod.module import Module
from synmod.program import Input, Program
from tests.program.parts import Answer, Echo, Hint, Query, Reply, query


def passing(structure):
    return Program(inputs=structure, outputs=structure)


def two(**kwargs):
    return [Input(Query), Input(Hint, **kwargs)]


async def test_one_argument_of_the_structure_of_the_inputs():
    """Bare, list, tuple, dict, nested; a list and a tuple alike."""
    hint = Hint(hint="h")
    assert await passing(Input(Query))(query()) == query()
    assert await passing(two())([query(), hint]) == [query(), hint]
    assert await passing(two())((query(), hint)) == [query(), hint]
    q, h = two()
    assert await passing({"q": q, "more": (h,)})({"more": [hint], "q": query()}) == {"q": query(), "more": (hint,)}


async def test_several_inputs_one_argument_each_or_by_keyword():
    """A list of inputs reads like a signature; so does their names."""
    hint = Hint(hint="h")
    program = passing(two())
    assert await program(query(), hint) == [query(), hint]
    assert await program(hint=hint, query=query()) == [query(), hint]
    assert await passing([Input(Query)])(query()) == [query()]
    assert await passing(Input(Query))(query=query()) == query()


async def test_equal_names_take_the_suffix_rule():
    """Two inputs of one name are `query` and `query_1`."""
    program = passing([Input(Query), Input(Query)])
    assert await program(query=query("a"), query_1=query("b")) == [query("a"), query("b")]


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "got no argument; it takes \\[query, hint\\]"),
        ((query(),), {}, "got 1 argument: Query; it takes"),
        ((query(), query(), query()), {}, "got 3 arguments"),
        (([query()],), {}, "got 1 argument"),
        (({"query": query()},), {}, "got 1 argument"),
        ((), {"query": query()}, "missing keyword 'hint'"),
        ((), {"query": query(), "hnt": query()}, "unknown keyword 'hnt'. Did you mean 'hint'"),
        ((query(),), {"hint": Hint(hint="h")}, "all inputs by keyword"),
    ],
)
async def test_too_many_too_few_missing_or_unknown_show_both_sides(args, kwargs, words):
    """CallError with what was given and what it takes."""
    with pytest.raises(CallError, match=words) as caught:
        await passing(two())(*args, **kwargs)
    assert "query" in str(caught.value)
    assert "hint" in str(caught.value)


async def test_each_value_must_be_valid_for_its_input():
    """SchemaError that names the Input."""
    with pytest.raises(SchemaError, match="input 'query'"):
        await passing(two())(Hint(hint="h"), query())
    with pytest.raises(SchemaError, match="input 'hint'"):
        await passing(two())(hint=query(), query=query())


async def test_a_value_that_fits_takes_the_schema_of_the_input():
    """A narrower value is welcome, and is then what the Input declares."""
    narrow = {**Query.get_schema(), "properties": {"question": {"const": "Who?"}}}
    out = await passing(Input(Query))(JsonDataModel({"question": "Who?"}, schema=narrow))
    assert out.get_schema() == Query.get_schema()


async def test_the_class_of_an_input_validates_what_comes_in():
    """Validators of the data model run once, at the door, for a value that was not made from an instance."""
    from pydantic import field_validator

    class Polite(DataModel):
        text: str

        @field_validator("text")
        @classmethod
        def please(cls, text):
            if "please" not in text:
                raise ValueError("say please")
            return text

    program = passing(Input(Polite))
    rude = JsonDataModel({"text": "now"}, schema=Polite.get_schema())
    with pytest.raises(SchemaError, match="say please"):
        await program(rude)
    assert (await program(JsonDataModel({"text": "please"}, schema=Polite.get_schema())))["text"] == "please"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("text", r"write Query\(\.\.\.\)\.$"),
        (3, r"write Query\(\.\.\.\)\.$"),
        ({"question": "x"}, r"sm\.JsonDataModel\(x, data_model=Query\)"),
        (Query, r"sm\.Input\(data_model=Query\)"),
    ],
)
async def test_what_is_no_data_is_told_the_remedy(wrong, words):
    """The class of the Input is named in the remedy."""
    with pytest.raises(CallError) as caught:
        await passing(Input(Query))(wrong)
    assert re.search(words, str(caught.value))


async def test_what_is_no_data_by_keyword_is_a_call_error():
    """Inputs by keyword are data too."""
    with pytest.raises(CallError, match="input 'query' is str"):
        await passing(Input(Query))(query="text")


async def test_none_at_the_door_of_an_entry_call():
    """CallError naming the Input that is not optional, wherever the None stands."""
    for call in (
        lambda: passing(Input(Query))(None),
        lambda: passing(Input(Query))(query=None),
        lambda: passing([Input(Query)])([None]),
        lambda: passing(two())(None, Hint(hint="h")),
        lambda: passing(two())(None, None),
        lambda: passing(two())(None),
    ):
        with pytest.raises(CallError, match="None for the input 'query'"):
            await call()


async def test_an_optional_input_takes_none_and_may_be_left_out():
    """None, by any convention; by keyword and at the end it may be missing."""
    program = passing(two(optional=True))
    assert await program(query(), None) == [query(), None]
    assert await program(query()) == [query(), None]
    assert await program(query=query()) == [query(), None]
    assert await passing(Input(Query, optional=True))(None) is None


async def test_below_another_call_none_just_flows():
    """A nested program is skipped where nothing came, and runs where something did."""

    class Outer(Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        async def call(self, inputs: Query):
            return await self.inner(None), await self.inner(inputs, None), await self.inner(None, None)

    q, h = two()
    inner = Program(inputs=[q, h], outputs={"q": await Echo()(q), "h": await Echo()(h)})
    nothing, some, neither = await Outer(inner)(query())
    assert nothing == neither == {"q": None, "h": None}
    assert some == {"q": query(), "h": None}
    assert inner.counters.nested == 1


async def test_refused_arguments_are_failed_calls():
    """One begin, one end, counted as failed, frame gone."""
    program = passing(Input(Query))
    with pytest.raises(CallError):
        await program(None)
    assert program.counters.failed == 1
    assert await program(query()) == query()


async def test_symbols_go_through_the_same_door():
    """All conventions hold for symbols; None beside them flows."""
    q, h = two()
    program = Program(inputs=[q, h], outputs=await Reply()(q))
    for args, kwargs in [(([q, h],), {}), ((q, h), {}), ((), {"query": q, "hint": h}), ((q, None), {})]:
        out = await program(*args, **kwargs)
        assert out.keys() == Answer.to_symbolic_data_model().keys()
    with pytest.raises(CallError):
        await program(q, h, q)
    with pytest.raises(SchemaError, match="input 'hint'"):
        await program(q, q)

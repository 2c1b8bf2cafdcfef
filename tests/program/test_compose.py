"""compose: a functional program of a function."""

import asyncio
import functools
import inspect
from contextvars import ContextVar

import pytest
from pydantic import BaseModel

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
from synmod.errors import (
    ArgumentError,
    BadNameError,
    BuildError,
    CallError,
    GraphError,
    SchemaError,
    SymbolicValueError,
)
from synmod.flow import run
from synmod.module import Module
from synmod.program import Program, compose
from synmod.scope import budget, deadline
from tests.program.parts import Answer, Echo, Hint, Noted, Query, Reply, Shout, WaitingBuild, query

WHERE = ContextVar("where", default="nowhere")


def test_the_form_of_the_docs():
    """Parameters are Inputs, the body is the wiring, labels are those of the function."""

    @compose
    async def rag(query: Query):
        """Finds and answers.

        At length.
        """
        docs = await Reply()(query)
        return await Echo()(query + docs)

    assert isinstance(rag, Program)
    assert (rag.name, rag.description, rag.built) == ("rag", "Finds and answers.", True)
    assert rag.inputs.name == "query"
    assert run(rag, query("q")).get_json() == {"question": "q", "answer": "q"}


def test_it_works_inside_a_running_loop_and_without_one(any_loop):
    """Wiring needs no loop, and disturbs none."""

    async def main():
        @compose
        async def program(query: Query):
            return await Reply()(query)

        return await program(query("q"))

    assert any_loop(main)["answer"] == "q"


def test_a_plain_function_of_operators():
    """Nothing that waits needs no `async`."""

    @compose
    def mine(query: Query):
        return query.prefix("my")

    assert run(mine, query("q")).get_json() == {"my_question": "q"}


def test_name_and_description_may_be_given():
    """As keywords, with the function or before it."""

    def body(query: Query):
        return query

    assert compose(body, name="other", description="Something.").name == "other"
    decorated = compose(name="third")(body)
    assert (decorated.name, decorated.description) == ("third", "")
    with pytest.raises(BadNameError):
        compose(body, name="no name")
    with pytest.raises(BadNameError):
        compose(lambda: None)


async def test_parameters_become_inputs_with_their_names():
    """In order, by their names; a default None or `| None` makes one optional; keyword-only ones too."""

    @compose
    async def program(first: Query, second: JsonDataModel[Hint], *, third: Hint | None, fourth: Hint = None):
        return first, second, third, fourth

    assert [given.name for given in program.inputs] == ["first", "second", "third", "fourth"]
    hint = Hint(hint="h")
    assert await program(first=query(), second=hint) == (query(), hint, None, None)
    assert await program(query(), hint, None, hint) == (query(), hint, None, hint)
    with pytest.raises(CallError, match="'second'"):
        await program(query(), None)


class NoDataModel(BaseModel):
    x: int


def untyped(query):
    return query


def star(*queries: Query):
    return queries


def stars(**queries: Query):
    return queries


def number(query: Query, k: int):
    return query


def defaulted(query: Query = Query(question="x")):
    return query


def foreign(query: NoDataModel):
    return query


@pytest.mark.parametrize("fn", [untyped, star, stars, number, defaulted, foreign])
def test_any_other_parameter_is_an_argument_error(fn):
    """Named, with the form to write."""
    with pytest.raises(ArgumentError, match="cannot be an Input"):
        compose(fn)


@pytest.mark.parametrize("fn", [3, Query, Reply, Reply(), functools.partial(star), print])
def test_what_is_no_function_is_an_argument_error(fn):
    """Classes and values cannot be composed."""
    with pytest.raises(ArgumentError, match="function"):
        compose(fn)


def test_a_generator_is_an_argument_error():
    """A body returns its outputs."""

    def body(query: Query):
        yield query

    with pytest.raises(ArgumentError, match="function"):
        compose(body)


def test_a_return_annotation_is_held_to():
    """The outputs must contain it, in its structure."""

    @compose
    async def good(query: Query) -> Answer:
        return await Reply()(query) + query

    @compose
    async def both(query: Query) -> tuple[Answer, Query]:
        return await Reply()(query), query

    assert isinstance(good, Program)
    assert isinstance(both, Program)

    async def bad(query: Query) -> Answer:
        return query

    async def other(query: Query) -> tuple[Answer, Query]:
        return query

    with pytest.raises(SchemaError, match="Answer"):
        compose(bad)
    with pytest.raises(SchemaError, match="structure"):
        compose(other)


def test_the_body_runs_once_on_symbols_in_a_copy_of_the_context():
    """What it sets in ContextVars stays inside; what holds outside is seen."""
    seen = []

    def body(query: Query):
        seen.append((type(query), WHERE.get()))
        WHERE.set("inside")
        return query

    token = WHERE.set("outside")
    try:
        program = compose(body)
        run(program, query())
        assert seen == [(SymbolicDataModel, "outside")]
        assert WHERE.get() == "outside"
    finally:
        WHERE.reset(token)


def test_a_body_that_waits_is_told_both_ways_out():
    """BuildError contains 'compose' and shows the form with await and Input; nothing stays half-built."""
    noted = Noted()

    async def body(query: Query):
        await noted(query)
        return await WaitingBuild()(query)

    with pytest.raises(BuildError, match="compose") as caught:
        compose(body)
    assert "sm.Input" in str(caught.value)
    assert "await" in str(caught.value)
    assert not noted.built


@pytest.mark.parametrize("inside", [True, False])
def test_gather_in_a_body_is_told_that_branches_run_at_once(inside):
    """asyncio.gather is not needed, in a running loop or without one."""

    async def body(query: Query):
        calls = [Reply()(query), Reply()(query)]
        try:
            return await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.close()

    async def main():
        with pytest.raises(BuildError, match="branches already run at the same time|Branches already run"):
            compose(body)
        await asyncio.sleep(0)

    if inside:
        asyncio.run(main())
    else:
        with pytest.raises(BuildError, match="no gather"):
            compose(body)


@pytest.mark.parametrize(
    "read",
    [
        bool,
        list,
        lambda query: query["question"] == "why",
        lambda query: [word for word in query.question],  # noqa: C416  (as users write it)
        lambda query: f"about {query}",
        lambda query: f"about {query['question']}",
        len,
        lambda query: Answer(answer=query["question"]),
    ],
    ids=["if", "for", "if of a field", "for of a field", "f-string", "f-string of a field", "len", "data model"],
)
def test_a_body_that_reads_a_value_is_told_what_to_write(read):
    """A choice is a Route or Branch, a loop a Map, a function a Lambda; an f-string once held the symbol's repr."""

    async def body(query: Query):
        read(query)
        return await Echo()(query)

    with pytest.raises(SymbolicValueError, match=r"Route.*Branch.*Map.*Lambda.*class with `call`"):
        compose(body)


async def a_try(query: Query):
    """A provider's error comes when the program runs."""
    try:
        return await Echo()(query)
    except RuntimeError:
        return await Reply()(query)


async def a_finally_around_a_loop(query: Query):
    """However deep in the block."""
    try:
        for _ in range(2):
            query = await Echo()(query)
    finally:
        print("done")
    return query


async def a_with(query: Query):
    """A deadline or budget is of a call."""
    with deadline(5), budget(calls=1):
        return await Echo()(query)


async def with_a_second_try(query: Query):
    """Called by another."""
    try:
        return await Echo()(query)
    except RuntimeError:
        return query


async def a_try_in_a_helper(query: Query):
    """A function that is awaited in the body runs on symbols, too."""
    return await with_a_second_try(query)


async def a_comparison_with_none(query: Query):
    """A symbol is equal to nothing but itself."""
    reply = await Reply()(query)
    return query if reply == None else reply  # noqa: E711  (as users write it)


async def a_test_of_a_parameter(query: Query, hint: Hint | None = None):
    """An optional Input is a symbol, too."""
    if hint is None:
        return await Echo()(query)
    return await Echo()(query + hint)


async def a_test_of_a_result(query: Query):
    """What a call returns may turn out to be None when the program runs."""
    reply = await Reply()(query)
    return query if reply is not None else reply


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (a_try, r"has a `try` around a call.*sm\.Fallback.*sm\.Retry"),
        (a_finally_around_a_loop, r"has a `try` around a call"),
        (a_try_in_a_helper, r"has a `try` around a call"),
        (a_comparison_with_none, r"has a test whether reply is None"),
        (a_with, r"has a `with` around a call.*`with \.\.\.: await a_with\(\.\.\.\)`"),
        (a_test_of_a_parameter, r"has a test whether hint is None.*`a \| b`"),
        (a_test_of_a_result, r"has a test whether reply is None"),
    ],
)
def test_python_that_decides_around_a_call_is_refused(body, message):
    """The body runs once, on symbols, so that it would be lost; the error has the line and what to write."""
    with pytest.raises(BuildError, match=rf"^compose: the body of '{body.__name__}', line \d+, {message}.*with `call`"):
        compose(body)


def test_python_that_decides_while_composing_is_allowed(tmp_path):
    """Without a call inside, or about plain values."""
    settings = tmp_path / "settings"
    extra = None

    @compose
    async def mine(query: Query, hint: Hint | None = None):
        try:
            prefix = settings.read_text()
        except OSError:
            prefix = "my"
        with settings.open("w") as file:
            file.write(prefix)
        for place in range(3):
            if extra is None and place is not None:
                query = await Echo()(query)
        return (query & hint).prefix(prefix)

    assert len([step for step in mine.steps if step.module is not None]) == 3


def test_a_symbol_as_a_field_of_a_data_model_is_named():
    """Pydantic's error would speak of a type."""

    async def body(query: Query):
        return Answer(answer=await Echo()(query))

    with pytest.raises(SymbolicValueError, match=r"makes a Answer of SymbolicDataModel.*sm\.Lambda"):
        compose(body)


def test_a_symbol_can_be_printed_while_composing(capsys):
    """For looking at the fields."""

    @compose
    async def shown(query: Query):
        print(query)
        return query

    assert capsys.readouterr().out == "SymbolicDataModel('query': 'question')\n"


def test_a_program_is_not_composed_again():
    """It is one already."""
    with pytest.raises(ArgumentError, match="takes an async or plain function; got Program"):
        compose(compose(a_plain))


async def a_plain(query: Query):
    """Return its input."""
    return query


def test_errors_of_the_body_surface_as_themselves():
    """The same object, whatever it is."""
    failure = LookupError("mine")

    async def body(query: Query):
        raise failure

    with pytest.raises(LookupError) as caught:
        compose(body)
    assert caught.value is failure


def test_faults_of_the_wiring_are_graph_errors():
    """A forgotten await, an output that is no symbol, an unused source."""

    async def forgotten(query: Query):
        return Reply()(query)

    async def value(query: Query):
        return Answer(answer="x")

    async def nothing(query: Query):
        await Reply()(query)

    for body, words in ((forgotten, "await"), (value, "Answer"), (nothing, "None")):
        with pytest.raises(GraphError, match=words):
            compose(body)


async def test_a_composed_program_composes():
    """It is a module like any other."""

    @compose
    async def inner(query: Query):
        return await Reply()(query)

    @compose
    async def outer(query: Query):
        return await Shout()(await inner(query))

    assert (await outer(query("a")))["answer"] == "A"
    assert outer.get_module("inner/reply") is inner.reply


def test_modules_of_the_outside_are_children():
    """A module made elsewhere is used, not copied."""
    reply = Reply()

    @compose
    async def program(query: Query):
        return await reply(query)

    assert program.reply is reply


def test_a_call_with_values_in_the_body_runs_where_nothing_waits():
    """Constants may be computed while composing."""

    class Fixed(Module):
        async def call(self, inputs: Query) -> Hint:
            return Hint(hint=inputs["question"])

    @compose
    async def program(query: Query):
        return query + await Fixed()(Query(question="fixed"))

    assert run(program, query("q")).get_json() == {"question": "q", "hint": "fixed"}


def test_data_models_of_the_function_are_found_where_it_stands():
    """Annotations are resolved in the scope of the function, quoted ones too."""

    class Local(DataModel):
        x: int

    def body(local: Local):
        return local

    assert list(inspect.signature(body).parameters) == ["local"]
    assert run(compose(body), Local(x=1))["x"] == 1

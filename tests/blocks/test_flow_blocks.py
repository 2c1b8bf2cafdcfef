"""Parallel, Lambda, Identity, Constant: the shape of the flow."""

import pytest

import synmod as sm
from synmod.blocks import Constant, Identity, Lambda, Parallel
from synmod.data import DataModel, JsonDataModel
from synmod.errors import CallError, ConfigError, DataError
from synmod.leaves import aio
from synmod.module import Module, build
from synmod.tree import variables


class Query(DataModel):
    question: str


class Answer(DataModel):
    answer: str


class Built(Module):
    """Needs its input's schema."""

    async def build(self, inputs):
        self.note = self.add_variable("", name="note")

    async def call(self, inputs):
        return inputs


def answering(text):
    """A module that answers with a text."""
    return Lambda(lambda _: Answer(answer=text), output=Answer)


ASKED = Query(question="Who?")


async def test_members_run_on_the_same_inputs():
    """Outputs are a tuple in the order of the members."""
    one, two = await Parallel(answering("a"), answering("b"))(ASKED)
    assert (one["answer"], two["answer"]) == ("a", "b")
    symbols = await Parallel(answering("a"), Identity())(Query.to_symbolic_data_model())
    assert [symbol.keys() for symbol in symbols] == [("answer",), ("question",)]


def test_members_run_at_once(any_loop):
    """Each member waits for the other: one after the other would never end."""

    async def main():
        here, there = aio.Signal(), aio.Signal()

        async def first(x):
            here.set()
            await there.wait()
            return x

        async def second(x):
            there.set()
            await here.wait()
            return x

        return await Parallel(Lambda(first), Lambda(second))(ASKED)

    assert len(any_loop(main)) == 2


def test_the_first_failure_cancels_and_is_raised_as_itself(any_loop):
    """Other members have ended when the error arrives, and it is the very object."""
    error = KeyError("mine")
    seen = []

    async def main():
        async def fail(x):
            raise error

        async def wait(x):
            try:
                await aio.sleep(60)
            finally:
                seen.append("ended")

        with pytest.raises(KeyError) as caught:
            await Parallel(Lambda(wait), Lambda(fail))(ASKED)
        assert caught.value is error

    any_loop(main)
    assert seen == ["ended"]


@pytest.mark.parametrize(
    ("merge", "json"),
    [
        ("concat", {"answer": "a", "answer_1": "b"}),
        ("and", {"answer": "a", "answer_1": "b"}),
        ("or", {"answer": "a", "answer_1": "b"}),
    ],
)
async def test_outputs_can_be_merged(merge, json):
    """One output by the operators' rules, on values and on symbols."""
    parallel = Parallel(answering("a"), answering("b"), merge=merge)
    assert (await parallel(ASKED)).get_json() == json
    assert (await parallel(Query.to_symbolic_data_model())).keys() == ("answer", "answer_1")


async def test_merges_follow_the_table_for_none():
    """A member that gives None: concat fails, `and` is None, `or` is the rest."""
    none = Lambda(lambda _: None, output=Answer | None)
    with pytest.raises(DataError):
        await Parallel(answering("a"), none, merge="concat")(ASKED)
    assert await Parallel(answering("a"), none, merge="and")(ASKED) is None
    assert (await Parallel(answering("a"), none, merge="or")(ASKED)).get_json() == {"answer": "a"}
    assert (await Parallel(answering("a"), merge="concat")(ASKED)).get_json() == {"answer": "a"}


async def test_parallel_builds_its_members():
    """Members build on the inputs, eagerly and by `build`; None skips."""
    parallel = Parallel(Built(), Identity())
    assert await parallel(None) is None
    await build(parallel, Query)
    assert parallel.modules[0].built
    assert list(variables(parallel)) == ["modules/0/note"]
    other = Parallel(Built(), Built())
    await other(ASKED)
    assert all(member.built for member in other.modules)


@pytest.mark.parametrize(
    ("args", "keywords", "says"),
    [
        ((), {}, "no members"),
        ((len,), {}, "sm.Lambda"),
        (([Identity(), Identity()],), {}, "the members are a list; pass them one by one, Parallel(a, b)"),
        ((Identity(),), {"merge": "adn"}, "Did you mean 'and'"),
        ((Identity(),), {"merge": ["and"]}, "got ['and']"),
        ((Identity(),), {"marge": "and"}, "Did you mean 'merge'"),
    ],
)
def test_parallel_checks_its_arguments(args, keywords, says):
    """What cannot run is refused at construction."""
    with pytest.raises(ConfigError) as caught:
        Parallel(*args, **keywords)
    assert says in str(caught.value)


async def test_lambda_calls_plain_and_async_functions():
    """A function is a step: one or several inputs, sync or async."""

    async def both(a, b):
        return a + b

    def shout(x):
        return Query(question=x["question"].upper())

    assert (await Lambda(shout, output=Query)(ASKED))["question"] == "WHO?"
    assert (await Lambda(both)(ASKED, Answer(answer="a"))).get_json() == {"question": "Who?", "answer": "a"}
    assert await Lambda(shout)(None) is None


async def test_lambda_declares_its_output_in_three_ways():
    """`output`, the return annotation, or a trace on symbols."""

    def annotated(x) -> JsonDataModel[Answer]:
        return {"answer": x["question"]}

    def pair(x) -> tuple[Answer, Query | None]:
        return Answer(answer="a"), None

    asked = Query.to_symbolic_data_model()
    assert (await Lambda(lambda x: {"answer": x["question"]}, output=Answer)(asked)).keys() == ("answer",)
    assert (await Lambda(annotated)(asked)).keys() == ("answer",)
    assert (await Lambda(annotated)(ASKED)).to() == Answer(answer="Who?")
    assert [out.keys() for out in await Lambda(pair)(asked)] == [("answer",), ("question",)]
    assert (await Lambda(lambda x: x.prefix("a"))(asked)).keys() == ("a_question",)


async def test_a_function_that_forgets_its_return_is_an_error():
    """Declared without `| None`, in the annotation or by `output`, it returns data, as a `call` does."""

    def forgets(x) -> Answer:
        Answer(answer=x["question"])

    def answers(x) -> Answer | None:
        return None

    for faulty in (Lambda(forgets), Lambda(lambda _: None, output=Answer), sm.Sequential([forgets, Identity()])):
        with pytest.raises(CallError, match="returned None, but declares data: is a `return` missing?"):
            await faulty(ASKED)
    for fine in (Lambda(answers), Lambda(lambda _: None, output=Answer | None), Lambda(lambda _: None)):
        assert await fine(ASKED) is None
    assert (await Lambda(answers)(Query.to_symbolic_data_model())).keys() == ("answer",)


def test_a_return_annotation_with_an_unknown_name_is_an_error():
    """When the Lambda or the Tool is made; it would otherwise declare nothing."""

    def returns(x: int) -> "Answr":  # noqa: F821
        return x

    def takes(x: "Nmber") -> int:  # noqa: F821
        return x

    for make, name in ((lambda: Lambda(returns), "Answr"), (lambda: sm.Tool(returns), "Answr"),
                       (lambda: sm.Tool(takes), "Nmber")):  # fmt: skip
        with pytest.raises(ConfigError, match=f"the name '{name}' in the annotation .* is not defined"):
            make()


async def test_lambda_errors():
    """No function, a module, or a result that is no data: each says what to write."""
    with pytest.raises(ConfigError, match="function"):
        Lambda(3)
    with pytest.raises(ConfigError, match="module"):
        Lambda(Identity())
    with pytest.raises(CallError):
        await Lambda(lambda _: "text")(ASKED)
    with pytest.raises(ZeroDivisionError):
        await Lambda(lambda _: 1 / 0)(ASKED)


async def test_identity_gives_what_it_gets():
    """Values, nests and symbols; None skips."""
    value = ASKED.to_json_data_model()
    assert await Identity()(value) is value
    assert (await Identity()([value, {"a": value}]))[1]["a"] is value
    symbol = Query.to_symbolic_data_model()
    out = await Identity()(symbol)
    assert out is not symbol
    assert out.keys() == symbol.keys()
    assert await Identity()(None) is None


async def test_constant_gives_its_value():
    """A data model keeps its class; a value its schema."""
    assert (await Constant(Answer(answer="a"))(ASKED)).to() == Answer(answer="a")
    plain = Constant(JsonDataModel({"n": 1}, schema={"type": "object", "properties": {"n": {}}}))
    assert (await plain(ASKED)).get_json() == {"n": 1}
    assert (await plain(Query.to_symbolic_data_model())).keys() == ("n",)
    assert await plain(None) is None
    for value in ({"n": 1}, [1], Answer):
        with pytest.raises(ConfigError, match="must be a data model"):
            Constant(value)

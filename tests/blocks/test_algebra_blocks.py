"""Masks, renames and merges as modules: what the functions do, as steps."""

import pytest

from synmod.blocks import And, Concat, Factorize, InMask, Not, Or, OutMask, Prefix, Suffix, Xor
from synmod.data import DataModel, ops
from synmod.errors import ArgumentError, ConfigError, DataError, SchemaError


class Cited(DataModel):
    answer: str
    source: str


class Query(DataModel):
    question: str


CITED = Cited(answer="Paris", source="atlas").to_json_data_model()
QUERY = Query(question="Who?").to_json_data_model()


async def alike(block, function, *inputs):
    """Check that block and function agree on values and on symbols, and give the value."""
    got = await block(*inputs)
    assert got.get_json() == function(*inputs).get_json()
    symbols = [x if x is None else x.to_symbolic_data_model() for x in inputs]
    assert (await block(*symbols)).get_schema() == function(*symbols).get_schema()
    return got.get_json()


async def test_masks():
    """Fields are kept or removed by pattern, list of patterns, or data model."""
    assert await alike(InMask("answer"), lambda x: ops.in_mask(x, "answer"), CITED) == {"answer": "Paris"}
    assert await alike(OutMask(["answer"]), lambda x: ops.out_mask(x, "answer"), CITED) == {"source": "atlas"}
    both = CITED + QUERY
    assert await alike(InMask(Query), lambda x: ops.in_mask(x, Query), both) == {"question": "Who?"}
    nested = InMask("source", recursive=True)
    assert await alike(nested, lambda x: ops.in_mask(x, "source", recursive=True), CITED) == {"source": "atlas"}
    assert await InMask("answer")(None) is None


async def test_masks_that_name_nothing():
    """A mask must match, and be one."""
    with pytest.raises(SchemaError, match="Did you mean"):
        await InMask("answr")(CITED)
    with pytest.raises(SchemaError):
        await OutMask("answr")(Cited.to_symbolic_data_model())
    with pytest.raises(ArgumentError):
        await InMask(3)(CITED)
    with pytest.raises(SchemaError):
        await OutMask([])(CITED)


async def test_renames():
    """Prefix, suffix and factorize rename as the functions do; None skips."""
    assert await alike(Prefix("my"), lambda x: ops.prefix(x, "my"), QUERY) == {"my_question": "Who?"}
    assert await alike(Suffix("2"), lambda x: ops.suffix(x, "2"), QUERY) == {"question_2": "Who?"}
    twice = QUERY + QUERY
    assert await alike(Factorize(), ops.factorize, twice) == {"question_list": ["Who?", "Who?"]}
    named = Factorize({"question": "questions"})
    assert (await named(twice)).get_json() == {"questions": ["Who?", "Who?"]}
    assert await Prefix("my")(None) is None
    for make in (lambda: Prefix("a b"), lambda: Suffix("")):
        with pytest.raises(DataError):
            await make()(QUERY)
    with pytest.raises(ArgumentError):
        await Factorize(["question"])(twice)
    with pytest.raises(SchemaError):
        await Factorize({"answer": "answers"})(twice)


@pytest.mark.parametrize(("block", "function"), [(Concat, ops.concat), (And, ops.logical_and), (Or, ops.logical_or)])
async def test_merges_of_values(block, function):
    """Two or more inputs, or one list or tuple of them."""
    wanted = {"answer": "Paris", "source": "atlas", "question": "Who?"}
    assert await alike(block(), function, CITED, QUERY) == wanted
    assert (await block()([CITED, QUERY])).get_json() == wanted
    assert (await block()((CITED, QUERY, QUERY))).get_json() == {**wanted, "question_1": "Who?"}
    assert (await block()(Cited(answer="Paris", source="atlas"), QUERY)).get_json() == wanted
    with pytest.raises(ArgumentError):
        await block()(CITED)


async def test_merges_follow_the_table_for_none():
    """None is an operand like any other, all-None included."""
    with pytest.raises(DataError):
        await Concat()(CITED, None)
    with pytest.raises(DataError):
        await Concat()(None, None)
    assert await And()(CITED, None) is None
    assert await And()([None, None]) is None
    assert await Or()(None, CITED) is CITED
    assert await Or()(None, None) is None
    assert await Xor()(None, CITED) is CITED
    assert await Xor()(CITED, QUERY) is None
    assert await Xor()([None, None]) is None
    assert await Not()(CITED) is None
    assert await Not()(None) is None


async def test_merges_of_symbols():
    """Symbols merge by schema; a None among them is the table's."""
    cited, query = Cited.to_symbolic_data_model(), Query.to_symbolic_data_model()
    assert (await Xor()(cited, query)).keys() == ("answer", "source", "question")
    assert (await Not()(cited)).get_schema() == Cited.get_schema()
    assert (await Or()(cited, None)).keys() == ("answer", "source")
    assert await And()(cited, None) is None
    with pytest.raises(DataError):
        await Concat()([cited, None])


@pytest.mark.parametrize(
    "block",
    [
        InMask("answer"), OutMask(["answer"], recursive=True), InMask(Query), Prefix("a"), Suffix("b"),
        Factorize({"a": "b"}), Concat(), And(name="both"), Or(), Xor(), Not(),
    ],
)  # fmt: skip
def test_blocks_are_made_again_from_their_config(block):
    """Arguments are what was given, and clones are equal."""
    again = type(block).from_config(block.get_config())
    assert again.get_config() == block.get_config()
    assert block.clone().get_config() == block.get_config()
    assert repr(again) == repr(block)


def test_unknown_keywords_are_refused():
    """A typing mistake is told with the accepted names."""
    with pytest.raises(ConfigError, match="Did you mean 'name'"):
        Concat(nam="x")
    with pytest.raises(ConfigError, match="Did you mean 'recursive'"):
        InMask("a", recursiv=True)

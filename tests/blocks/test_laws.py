"""Laws over the catalogue: what every block promises, one test a law."""

import asyncio
import inspect
import pickle

import pytest

import synmod as sm
import synmod.blocks as blocks
from synmod.module import Module
from synmod.saving import dumps, loads
from synmod.testing import SchemaLM


class Query(sm.DataModel):
    """A question."""

    question: str
    source: str = "web"


class Answer(sm.DataModel):
    """An answer."""

    answer: str


@sm.register(package="block_laws")
def shout(x) -> Answer:
    """Say it loud."""
    return Answer(answer=x["question"].upper())


@sm.register(package="block_laws")
def length(inputs, outputs):
    """A reward."""
    return len(str(outputs.get_json()))


@sm.register(package="block_laws")
def always(value):
    """Enough at once."""
    return True


@sm.register(package="block_laws")
class Verdict(sm.DataModel):
    """Whether something may pass."""

    allowed: bool


@sm.register(package="block_laws")
class Shelf(sm.DataModel):
    """Several questions."""

    queries: list[Query]


INPUT = Query(question="Who?").to_json_data_model()
TWICE = INPUT + INPUT
SHELF = Shelf(queries=[Query(question="Who?"), Query(question="Why?")]).to_json_data_model()

CATALOGUE = {
    "And": (sm.And, (INPUT, INPUT)),
    "BestOf": (lambda: sm.BestOf(sm.Generator(Answer), 3, reward=length, threshold=1e9), (INPUT,)),
    "Branch": (
        lambda: sm.Branch(
            {"a b": ("x", sm.Generator(Answer)), "c": sm.Generator(Answer)}, question="Which?", merge=True
        ),
        (INPUT,),
    ),
    "Cached": (lambda: sm.Cached(sm.Generator(Answer), ttl_s=60), (INPUT,)),
    "ChainOfThought": (lambda: sm.ChainOfThought(Answer, return_thinking=False, temperature=0.5), (INPUT,)),
    "Concat": (lambda: sm.Concat(name="both"), ([INPUT, INPUT],)),
    "Constant": (lambda: sm.Constant({"style": "brief", "n": [1, 2.5, None]}), (INPUT,)),
    "Decision": (lambda: sm.Decision({"a/b": "x", "": "y"}, question="Which?", multiple=True), (INPUT,)),
    "Factorize": (lambda: sm.Factorize({"question": "questions"}), (TWICE,)),
    "Fallback": (lambda: sm.Fallback(sm.Generator(Answer), sm.Identity(), on=(sm.ModelError, KeyError)), (INPUT,)),
    "Generator": (
        lambda: sm.Generator(
            Answer,
            instructions="Be brief.",
            examples=[{"inputs": {"question": "a"}, "outputs": {"answer": "b"}}],
            template={"system": "{instructions}", "user": "{examples}{inputs}"},
            return_inputs=True,
        ),
        (INPUT,),
    ),
    "Guard": (lambda: sm.Guard(sm.Generator(Verdict), on_block="none"), (INPUT,)),
    "Identity": (sm.Identity, (INPUT,)),
    "InMask": (lambda: sm.InMask(["question"]), (INPUT,)),
    "Lambda": (lambda: sm.Lambda(shout), (INPUT,)),
    "Majority": (lambda: sm.Majority(sm.Generator(Answer), 3, field="answer"), (INPUT,)),
    "Map": (lambda: sm.Map(sm.Generator(Answer), "queries", concurrency=2, on_error="collect"), (SHELF,)),
    "Not": (blocks.Not, (INPUT,)),
    "Or": (sm.Or, (INPUT, INPUT)),
    "OutMask": (lambda: sm.OutMask("source", recursive=True), (INPUT,)),
    "Parallel": (lambda: sm.Parallel(sm.Identity(), sm.Generator(Answer), merge="concat"), (INPUT,)),
    "Prefix": (lambda: sm.Prefix("my"), (INPUT,)),
    "Refine": (lambda: sm.Refine(sm.Generator(Answer), sm.SelfCritique(), rounds=3, threshold=0.9), (INPUT,)),
    "Repeat": (lambda: sm.Repeat(sm.Identity(), until=always, on_limit="return"), (INPUT,)),
    "Retry": (lambda: sm.Retry(sm.Generator(Answer), 3, on=sm.BadReplyError), (INPUT,)),
    "Route": (
        lambda: sm.Route(sm.Identity(), {"web": sm.Identity(), "x": sm.Generator(Answer)}, key="source", merge=True),
        (INPUT,),
    ),
    "SelfCritique": (lambda: sm.SelfCritique(Answer), (INPUT,)),
    "Suffix": (lambda: sm.Suffix("old", trainable=False, description="d"), (INPUT,)),
    "Xor": (sm.Xor, (INPUT, None)),
}

every = pytest.mark.parametrize("name", sorted(CATALOGUE))


@pytest.fixture(autouse=True)
def _default_model():
    with sm.set_default_language_model(SchemaLM(seed=3)):
        yield


def made(name):
    """A new block of the catalogue, with inputs for it."""
    make, inputs = CATALOGUE[name]
    return make(), inputs


def test_every_block_is_in_the_catalogue():
    """A new block cannot be forgotten."""
    public = {
        name for name in blocks.__all__ if inspect.isclass(value := getattr(blocks, name)) and issubclass(value, Module)
    }
    assert public == set(CATALOGUE)
    assert all(getattr(blocks, name).__module__ == "synmod.blocks" for name in public)


@every
async def test_outputs_fit_their_symbols(name):
    """What a call gives is valid for what a symbolic call said, and asks nobody before."""
    block, inputs = made(name)
    asked = [
        [x.to_symbolic_data_model() for x in i] if isinstance(i, list) else i and i.to_symbolic_data_model()
        for i in inputs
    ]
    symbol = await block(*asked)
    value = await block(*inputs)
    assert isinstance(symbol, sm.SymbolicDataModel)
    if value is not None:
        sm.JsonDataModel(value.get_json(), schema=symbol.get_schema())
        assert sm.is_subschema(value.get_schema(), symbol.get_schema())


@every
async def test_blocks_are_saved_and_loaded(name):
    """Saving is the identity, fresh and after a call, and the loaded block answers alike."""
    block, inputs = made(name)
    assert dumps(loads(dumps(block))) == dumps(block)
    value = await block(*inputs)
    assert dumps(loads(dumps(block))) == dumps(block)
    again = loads(dumps(block))
    assert type(again) is type(block)
    assert await again(*inputs) == value


@every
async def test_copies_answer_alike(name):
    """A clone, and a copy through pickle, are the block again."""
    block, inputs = made(name)
    value = await block(*inputs)
    for copy in (block.clone(), pickle.loads(pickle.dumps(block))):
        assert copy is not block
        assert repr(copy) == repr(block)
        assert await copy(*inputs) == value


@every
async def test_none_at_an_input_skips(name):
    """Merging blocks apart, None in is None out, without a call."""
    block, _inputs = made(name)
    if block.accepts_none:
        return
    assert await block(None) is None
    assert block.cumulated_invocations == 0


@every
def test_unknown_keywords_are_refused(name):
    """A misspelt keyword vanishes nowhere."""
    block, _ = made(name)
    with pytest.raises(sm.ConfigError, match="Did you mean 'description'"):
        type(block).from_config({**block.get_config(), "descripton": "x"})


@every
def test_labels_are_kept(name):
    """Name, description and trainable are arguments of every block."""
    block, _ = made(name)
    labels = {"name": "mine", "description": "Mine.", "trainable": False}
    other = type(block).from_config({**block.get_config(), **labels})
    assert {label: getattr(other, label) for label in labels} == labels


@every
async def test_a_hundred_calls_at_once_agree(name):
    """Concurrent calls of one block do not mix."""
    block, inputs = made(name)
    values = await asyncio.gather(*(block(*inputs) for _ in range(100)))
    assert all(value == values[0] for value in values)
    assert block.cumulated_invocations == 100
    assert sm.current_call() is None


@every
async def test_blocks_are_steps_of_a_program(name):
    """In a functional program a block gives what it gives in plain code."""
    block, inputs = made(name)
    sources = [sm.Input(data_model=x, optional=False) for x in inputs if isinstance(x, sm.JsonDataModel)]
    args = list(sources)
    if isinstance(inputs[0], list):
        sources = args = [sm.Input(data_model=x) for x in inputs[0]]
    if name == "Xor":
        args = [*sources, None]
    output = await block(*args)
    program = sm.Program(inputs=sources if len(sources) > 1 else sources[0], outputs=output)
    given = [x for x in (inputs[0] if isinstance(inputs[0], list) else inputs) if x is not None]
    value = await program(given if len(given) > 1 else given[0])
    assert value == await block(*inputs)

"""Laws over the conformance catalogue: what every public module promises, one test a law."""

import asyncio
import importlib
import inspect
import json
import pickle
import pkgutil
from pathlib import Path

import pytest

import synmod as sm
from synmod import blocks
from synmod.module import Module
from synmod.saving import dumps, loads
from synmod.testing import FunctionLM
from tests.conformance import catalogue
from tests.conformance.catalogue import CATALOGUE, CodingLM

every = pytest.mark.parametrize("name", sorted(CATALOGUE))


@pytest.fixture(autouse=True)
def _default_model():
    with sm.default_language_model(CodingLM(seed=3)):
        yield


WITHOUT_MODELS = frozenset(
    "And Code Concat Constant Factorize Fallback Identity InMask Lambda Map "
    "Not Or OutMask Prefix Repeat Retrieve Route Suffix Tool Xor".split()
)
"""Those that ask no model in the catalogue, or by their own promise go on where one fails."""


SEVERAL_MODEL_CALLS = frozenset({"BestOf", "Majority", "Refine"})
"""Those of which one call asks a model several times."""


def _fail(request):
    raise sm.UnavailableError("down")


def made(name):
    """A new block of the catalogue, with inputs for it."""
    make, inputs = CATALOGUE[name]
    return make(), inputs


def is_composed(cls):
    """Whether modules of a class stand in programs; those of training judge and change programs from outside."""
    return not cls.__module__.startswith(("synmod.train", "synmod.optimizers"))


def test_every_public_module_is_in_the_catalogue():
    """A new one cannot be forgotten, in whatever room it is."""
    public = {}
    rooms = [importlib.import_module(f"synmod.{each.name}") for each in pkgutil.iter_modules(sm.__path__)]
    for room in (sm, *rooms):
        for name, value in vars(room).items():
            if inspect.isclass(value) and issubclass(value, Module) and value is not Module and is_composed(value):
                public[name] = value
    assert set(public) == set(CATALOGUE)
    assert all(getattr(blocks, name).__module__ == "synmod.blocks" for name in public if name in vars(blocks))


def test_every_block_is_shown_to_the_type_checker():
    """Its constructor and its call stand in the typing tests."""
    text = (Path(__file__).parents[1] / "typing" / "blocks.py").read_text(encoding="utf-8")
    assert [name for name in vars(blocks) if name in CATALOGUE and f"{name}(" not in text] == []


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
    """A clone, and a copy through pickle, are the block again; what becomes of a copy never reaches the original."""
    block, inputs = made(name)
    value = await block(*inputs)
    text = dumps(block)
    is_live = name in ("Nearest", "Retrieve")  # a live model or index is never pickled
    pickled = [] if is_live else [pickle.loads(pickle.dumps(block))]
    for copy in (block.clone(), *pickled):
        assert copy is not block
        assert repr(copy) == repr(block)
        assert await copy(*inputs) == value
        for variable in copy.variables:
            others = variable.schema.get("enum", ["", f"{variable.value} And so on."])
            variable.assign([] if isinstance(variable.value, list) else others[-1])
        assert dumps(block) == text


@every
def test_a_live_model_is_never_pickled(name):
    """It holds connections and keys: what goes into a pickle is the module without it."""
    block, _ = made(name)
    live = [each for each in (block, *block.submodules) if isinstance(each, sm.Generator)]
    for each in live:
        each.language_model = sm.LanguageModel("embedded/nearest")
    if live:
        with pytest.raises(TypeError, match="a live model holds connections and keys"):
            pickle.dumps(block)


@every
async def test_none_at_an_input_skips(name):
    """Merging blocks apart, None in is None out, without a call; only a program's door asks for its Inputs."""
    block, _inputs = made(name)
    if block.accepts_none:
        return
    if name == "Program":
        with pytest.raises(sm.CallError, match="not optional"):
            await block(None)
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
    expected = await block(*inputs)
    for each in (program, loads(dumps(program)), sm.Sequential([program])):
        assert await each(given if len(given) > 1 else given[0]) == expected


@every
async def test_modules_come_apart_and_together_again(name):
    """Merge after split is the module again; the State of one fits the other."""
    block, inputs = made(name)
    value = await block(*inputs)
    graphdef, state = sm.split(block)
    twin = sm.merge(graphdef, state)
    assert (sm.graphdef(twin), sm.state(twin)) == (graphdef, state)
    assert sm.graphdef(twin).fingerprint == graphdef.fingerprint
    assert await twin(*inputs) == value


@every
@pytest.mark.slow
async def test_a_thousand_first_calls_build_once(name):
    """Unbuilt, called by a thousand tasks (a thousand model calls at least): one set of Variables, equal answers."""
    block, inputs = made(name)
    calls = 200 if name in SEVERAL_MODEL_CALLS else 1_000
    values = await asyncio.gather(*(block(*inputs) for _ in range(calls)))
    assert all(value == values[0] for value in values)
    assert len(block.variables) == len(set(map(id, block.variables)))
    assert sm.variables(sm.loads(dumps(block))).keys() == sm.variables(block).keys()


@every
async def test_cancelling_at_every_await_leaves_nothing(name):
    """No task, no frame, no phase; the module works afterwards."""
    tasks = asyncio.all_tasks()
    expected = await made(name)[0](*made(name)[1])
    for steps in range(60):
        block, inputs = made(name)
        task = asyncio.create_task(block(*inputs))
        for _ in range(steps):
            await asyncio.sleep(0)
        if task.done():
            break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == tasks
        assert (sm.current_call(), sm.current_phase()) == (None, "inference")
        assert await block(*inputs) == expected


@every
async def test_modules_are_shown(name):
    """A repr that is the constructor's call, a row of the summary for each module, a box of the plot."""
    block, inputs = made(name)
    await block(*inputs)
    assert repr(block).startswith(name)
    if name != "Program":  # a graph is no argument
        names = {**vars(blocks), **{word: getattr(sm, word) for word in sm.__all__}, **vars(catalogue)}
        assert repr(eval(repr(block), names)) == repr(block)
    assert all(type(each).__name__ in block.summary() for each in (block, *block.submodules))
    assert json.loads(block.plot(format="json"))["nodes"]


@every
async def test_a_failing_model_call_raises(name):
    """An error is never None, nor an answer; it leaves no task, no frame and no phase, and the module works on."""
    block, inputs = made(name)
    tasks = asyncio.all_tasks()
    with sm.use_language_models(FunctionLM(_fail)):
        if name in WITHOUT_MODELS:
            await block(*inputs)
        else:
            with pytest.raises(sm.UnavailableError):
                await block(*inputs)
    assert asyncio.all_tasks() == tasks
    assert (sm.current_call(), sm.current_phase()) == (None, "inference")
    assert await block(*inputs) == await made(name)[0](*inputs)

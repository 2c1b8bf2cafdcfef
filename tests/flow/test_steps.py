"""Steps: symbols remember what made them, and nothing else does."""

import gc
import weakref

import pytest

from synmod.data import ops, schema_of, symbol
from synmod.flow import Step
from synmod.leaves.frozen import FrozenDict
from tests.flow.fakes import Fake, Number, a_symbol, number


def test_an_operator_records_a_step(any_loop):
    """`a + b` of symbols gives a symbol whose step names the operation, its operands and its plan."""
    a, b = a_symbol("a"), a_symbol("b")
    step = (a + b)._origin.step
    assert isinstance(step, Step)
    assert (step.op, step.module, step.name) == ("concat", None, "concat")
    assert step.inputs == (a, b)
    assert step.plan is not None


def test_a_value_beside_a_symbol_is_a_constant():
    """Values among the operands stay as they are, and are no inputs."""
    a = a_symbol()
    one = number(1)
    step = (a + one)._origin.step
    assert step.args[1] is one
    assert step.inputs == (a,)


async def test_keyword_symbols_are_edges_and_json_is_frozen():
    """Data in keyword arguments counts as input; plain JSON beside it cannot change any more."""
    a, b = a_symbol(), a_symbol()
    options, docs = {"k": [1]}, [b]
    out = await Fake()(a, docs=docs, options=options, style="brief")
    docs.append(a_symbol())
    options["k"].append(2)
    step = out._origin.step
    assert step.inputs == (a, b)
    assert isinstance(step.kwargs["options"], FrozenDict)
    assert step.kwargs["options"] == {"k": [1]}
    assert step.kwargs["style"] == "brief"


async def test_a_list_changed_later_does_not_change_the_step():
    """Containers among the arguments are copied when the step is recorded."""
    a = a_symbol()
    docs = [a]
    step = (await Fake()(docs))._origin.step
    docs.append(a_symbol())
    assert step.inputs == (a,)


async def test_objects_in_keyword_arguments_stay_themselves():
    """What is no JSON is kept by reference, tuples stay tuples, NaN stays a number."""
    thing = object()
    out = await Fake()(a_symbol(), thing=thing, pair=(1, 2), weird=[float("nan")])
    kwargs = out._origin.step.kwargs
    assert kwargs["thing"] is thing
    assert kwargs["pair"] == (1, 2)
    assert isinstance(kwargs["weird"], list)


async def test_each_output_knows_its_number():
    """Outputs are numbered by leaves; None among them counts."""
    outputs = (a_symbol(), None, {"k": a_symbol()})
    first, nothing, last = await Fake(outputs=outputs)(a_symbol())
    assert nothing is None
    assert (first._origin.index, last["k"]._origin.index) == (0, 2)
    assert first._origin.step is last["k"]._origin.step


async def test_nothing_knows_the_steps_of_a_module():
    """A discarded symbol is freed at once, though its module lives on."""
    module = Fake()
    out = await module(a_symbol())
    gone = weakref.ref(out)
    gc.disable()
    try:
        del out
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.interpreter
async def test_long_histories_are_freed_without_recursion():
    """Twenty thousand steps in a chain, and five thousand operators, die with their last symbol."""
    module = Fake()
    chain = a_symbol()
    first = weakref.ref(chain)
    for _ in range(20_000):
        chain = await module(chain)
    del chain
    assert first() is None
    masked = a_symbol()
    first = weakref.ref(masked)
    for _ in range(5_000):
        masked = ops.in_mask(masked, "n")
    del masked
    assert first() is None


def test_a_copy_of_a_symbol_has_no_history():
    """A step is reached only through the symbols it made."""
    import copy

    out = a_symbol() + a_symbol()
    assert copy.copy(out)._origin is None
    assert symbol(schema_of(out))._origin is None


def test_a_step_shows_what_runs_on_what():
    """The repr names the operation and the labels around it."""
    assert "concat" in repr((a_symbol("left") + Number.to_symbolic_data_model("right"))._origin.step)

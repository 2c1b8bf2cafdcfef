"""Extraction: which steps lead from inputs to outputs, in which order, and what can be wrong."""

import time

import pytest

from synmod.errors import GraphError
from synmod.flow import FlowGraph, SymbolRef, live_graph, record_graph, steps_between
from tests.flow.fakes import Fake, Number, a_symbol, number


def names(steps):
    return [step.name for step in steps]


async def diamond():
    x = a_symbol("x")
    left, right = await Fake("left")(x), await Fake("right")(x)
    return x, await Fake("join")([left, right])


async def test_producers_come_before_consumers_arguments_left_to_right():
    """Depth first from the outputs, whatever the order of composition was."""
    x = a_symbol("x")
    right = await Fake("right")(x)
    left = await Fake("left")(x)
    top = await Fake("top")(left, right, more=await Fake("key")(x))
    assert names(steps_between(x, top)) == ["left", "right", "key", "top"]


async def test_the_order_depends_on_outputs_from_left_to_right():
    """Another order of outputs gives another order of steps; a shared step stands at its first place."""
    x = a_symbol("x")
    shared = await Fake("shared")(x)
    a, b = await Fake("a")(shared), await Fake("b")(shared)
    assert names(steps_between(x, [a, b])) == ["shared", "a", "b"]
    assert names(steps_between(x, [b, a])) == ["shared", "b", "a"]


async def test_any_symbol_may_cut_the_graph():
    """What made an input is left out."""
    x = a_symbol("x")
    middle = await Fake("before")(x)
    end = await Fake("after")(middle)
    assert names(steps_between(middle, end)) == ["after"]


async def test_cutting_at_one_output_of_a_needed_step_keeps_the_step():
    """The other output of the step still comes from it, the cut one from the input."""
    first, second = await Fake("two", outputs=(a_symbol(), a_symbol()))(a_symbol("x"))
    x = steps_between([first], [await Fake("after")(first)])
    assert names(x) == ["after"]
    both = await Fake("both")([first, second])
    with pytest.raises(GraphError, match="'x'"):
        steps_between([first], both)


async def test_an_unused_input_and_an_input_as_output_are_fine():
    """Inputs that nobody needs, and that pass through, are no faults."""
    x, unused = a_symbol("x"), a_symbol("unused")
    assert steps_between([x, unused], x) == ()


async def test_a_missing_source_is_named_with_the_way_from_it():
    """The error names the source and the steps from it to the output."""
    x, lost = a_symbol("x"), a_symbol("lost")
    out = await Fake("top")([x, await Fake("search")(lost)])
    with pytest.raises(GraphError, match="'lost' -> search -> top -> the output"):
        steps_between(x, out)


async def test_every_fault_is_listed_at_once():
    """Two missing sources, a double input and an output that is no symbol make one error."""
    x = a_symbol("x")
    outputs = {"a": await Fake("a")([a_symbol("one"), a_symbol("two")]), "b": number(1)}
    with pytest.raises(GraphError) as caught:
        steps_between([x, x], outputs)
    text = str(caught.value)
    for words in ("'one'", "'two'", "twice", "output b is JsonDataModel", "output a"):
        assert words in text


@pytest.mark.parametrize(
    ("output", "words"),
    [(Number, r"sm\.Input\(data_model=Number\)"), (None, "None"), (3, "int"), ("text", "str"), (Number(n=1), "Number")],
)
def test_an_output_that_is_no_symbol_is_told_what_to_do(output, words):
    """Classes, None, numbers and instances each get their remedy."""
    with pytest.raises(GraphError, match=words):
        steps_between(a_symbol(), [output])


def test_a_coroutine_as_output_says_await():
    """A forgotten await is named, and the coroutine is closed without a warning."""
    with pytest.raises(GraphError, match="await"):
        steps_between(a_symbol(), Fake()(a_symbol()))
    with pytest.raises(GraphError, match="await"):
        steps_between(Fake()(a_symbol()), a_symbol())


def test_no_inputs_and_no_outputs_are_faults():
    """An empty nest wires nothing."""
    with pytest.raises(GraphError, match="no output"):
        steps_between(a_symbol(), [])
    with pytest.raises(GraphError, match="no input"):
        steps_between([], a_symbol())


async def test_the_record_refers_by_number_and_key():
    """Inputs are numbered first, then what each step gives, in step order."""
    x, out = await diamond()
    flow = record_graph(x, out, steps_between(x, out), lambda module: module.name)
    assert flow.inputs == SymbolRef(0)
    assert flow.outputs == SymbolRef(3)
    assert [(step.node, step.args, step.outputs) for step in flow.steps] == [
        ("left", (SymbolRef(0),), SymbolRef(1)),
        ("right", (SymbolRef(0),), SymbolRef(2)),
        ("join", ([SymbolRef(1), SymbolRef(2)],), SymbolRef(3)),
    ]
    assert [symbol.name for symbol in flow.symbols] == ["x", "number", "number", "number"]


async def test_equal_graphs_have_equal_records():
    """Records compare by content, so copies of a program are equal."""
    records = []
    for _ in range(2):
        x, out = await diamond()
        records.append(record_graph(x, out, steps_between(x, out), lambda module: module.name))
    assert records[0] == records[1]
    other = a_symbol("x")
    assert records[0] != record_graph(other, other, (), lambda module: module.name)


async def test_constants_of_a_record_can_be_mapped():
    """Only constants are given to the function; nothing changes where it returns them."""
    x = a_symbol("x")
    out = await Fake()(x, tool="hammer", none=None)
    flow = record_graph(x, out, steps_between(x, out), lambda module: module.name)
    assert flow.map_constants(lambda leaf: leaf) is flow
    changed = flow.map_constants(str.upper)
    assert changed.steps[0].kwargs == {"tool": "HAMMER", "none": None}
    assert isinstance(changed, FlowGraph)


async def test_a_record_comes_alive_again():
    """Fresh symbols and steps of a record give the same record."""
    x, out = await diamond()
    steps = steps_between(x, out)
    flow = record_graph(x, out, steps, lambda module: module.name)
    modules = {step.name: step.module for step in steps}
    inputs, outputs, again = live_graph(flow, modules)
    assert names(again) == names(steps)
    assert record_graph(inputs, outputs, steps_between(inputs, outputs), lambda module: module.name) == flow


async def test_a_record_travels_by_pickle():
    """A record is data: plans are left behind and made again."""
    import pickle

    from synmod.flow import compile_flow, run_plan
    from tests.flow.fakes import add

    x = a_symbol("x")
    out = x + await Fake("one", add(1))(x)
    steps = steps_between(x, out)
    flow = record_graph(x, out, steps, lambda module: module.name)
    again = pickle.loads(pickle.dumps(flow))
    assert again == flow
    modules = {step.name: step.module for step in steps if step.module is not None}
    assert (await run_plan(compile_flow(again, modules), [number(1)])).get_json() == {"n": 1, "n_1": 2}


@pytest.mark.slow
@pytest.mark.interpreter
async def test_five_thousand_steps_take_linear_time():
    """Chain and fan of 5,000 are extracted, recorded and made alive without recursion, in well under a second each."""
    module = Fake()
    chain = x = a_symbol("x")
    for _ in range(5_000):
        chain = await module(chain)
    fan = [await module(x) for _ in range(5_000)]
    for out in (chain, fan):
        started = time.process_time()
        steps = steps_between(x, out)
        flow = record_graph(x, out, steps, lambda module: module.name)
        live_graph(flow, {module.name: module})
        assert len(steps) == 5_000
        assert time.process_time() - started < 3

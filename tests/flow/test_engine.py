"""The engine: no barrier, no task without need, the first failure, None, checked outputs, memory."""

import asyncio
import contextlib
import dataclasses
import gc
import random
import time
import weakref

import pytest
from hypothesis import given, strategies as st

from synmod.data import DataModel, JsonDataModel, ops, schema_of
from synmod.errors import CallError, DataError, SchemaError
from synmod.flow import run_plan, together
from synmod.leaves import aio
from tests.flow.fakes import Fake, Number, a_symbol, add, number, plan_of, run_graph


class Word(DataModel):
    w: str


def test_a_chain_gives_what_calls_in_a_row_give(any_loop):
    """Values run through the steps in order."""

    async def main():
        x = a_symbol()
        out = await Fake(work=add(10))(await Fake(work=add(1))(x))
        return await run_graph(x, out, number(0))

    assert any_loop(main)["n"] == 11


async def test_a_chain_costs_no_task():
    """A single ready step runs in the caller's own task."""
    tasks = []

    async def look(x):
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        return x

    x = out = a_symbol()
    for _ in range(5):
        out = await Fake(work=look)(out)
    await run_graph(x, out, number(1))
    assert set(tasks) == {asyncio.current_task()}


async def test_branches_cost_one_task_each_and_what_follows_none():
    """Each branch is a task; the chain behind it, and the join, run in tasks that are there already."""
    tasks = set()

    async def look(x, *_):
        tasks.add(id(asyncio.current_task()))
        await asyncio.sleep(0)
        return x

    x = a_symbol()
    ends = []
    for _ in range(3):
        end = x
        for _ in range(4):
            end = await Fake(work=look)(end)
        ends.append(end)
    out = await Fake("join", work=lambda a, b, c: look(a))(*ends)
    out = await Fake("after", work=look)(out)
    await run_graph(x, out, number(1))
    assert len(tasks) == 3


def test_there_is_no_barrier_between_levels(any_loop):
    """A step of the second level starts although a step of the first is still waiting."""

    async def main():
        gate = aio.Signal()

        async def wait(x):
            await gate.wait()
            return x

        async def second(x):
            gate.set()
            return x

        x = a_symbol()
        slow = await Fake("slow", wait)(x)
        quick = await Fake("second", second)(await Fake("first")(x))
        return await run_graph(x, [slow, quick], number(1))

    assert [out["n"] for out in any_loop(main)] == [1, 1]


async def test_steps_ready_together_start_in_step_order():
    """Forty branches begin one after the other (trio orders the tasks that are ready together as it likes)."""
    begun = []

    def beginning(index):
        async def work(x):
            begun.append(index)
            await aio.sleep(0)
            return x

        return work

    x = a_symbol()
    outs = [await Fake(work=beginning(index))(x) for index in range(40)]
    await run_graph(x, outs, number(1))
    assert begun == list(range(40))


def test_an_operator_makes_its_consumers_ready_at_once(any_loop):
    """A module behind an operator starts together with a module beside it."""

    async def main():
        gate = aio.Signal()

        async def wait(x):
            await gate.wait()
            return x

        async def open_it(x):
            gate.set()
            return x

        x = a_symbol()
        beside = await Fake("beside", wait)(x)
        behind = await Fake("behind", open_it)(ops.in_mask(x, "n"))
        assert await run_graph(x, [beside, behind], number(1)) == [number(1), number(1)]

    any_loop(main)


def test_the_first_failure_is_raised_as_itself(any_loop):
    """Same object, cause and context; the other branches are cancelled, and have ended by then."""

    async def main():
        cause = KeyError("cause")
        failure = ValueError("first")
        ended = []

        async def fail(_):
            await aio.sleep(0.001)
            raise failure from cause

        async def wait(_):
            try:
                await aio.sleep(60)
            finally:
                ended.append(True)

        x = a_symbol()
        outs = [await Fake("wait", wait)(x), await Fake("fail", fail)(x), await Fake("wait", wait)(x)]
        with pytest.raises(ValueError, match="first") as caught:
            await run_graph(x, outs, number(1))
        assert caught.value is failure
        assert failure.__cause__ is cause
        assert ended == [True, True]

    any_loop(main)


async def test_a_second_failure_is_a_note_on_the_first():
    """Two branches that fail in one turn of the loop: the first is raised, the other told."""

    async def fail(name):
        await asyncio.sleep(0)
        raise ValueError(name)

    x = a_symbol()
    outs = [await Fake(work=lambda _, name=name: fail(name))(x) for name in ("one", "two")]
    with pytest.raises(ValueError, match="one") as caught:
        await run_graph(x, outs, number(1))
    assert any("ValueError: two" in note for note in caught.value.__notes__)


async def test_an_exception_group_of_a_step_stays_what_it_is():
    """A step may raise a group of its own; it is not unwrapped, unless it has one failure."""
    group = ExceptionGroup("mine", [ValueError("inner"), ValueError("too")])

    async def fail(_):
        await asyncio.sleep(0)
        raise group

    x = a_symbol()
    outs = [await Fake(work=fail)(x), await Fake()(x)]
    with pytest.raises(ExceptionGroup) as caught:
        await run_graph(x, outs, number(1))
    assert caught.value is group


async def test_a_step_that_is_cancelled_by_itself_does_not_pass_for_finished():
    """A cancellation out of a step is raised, and the other branches end."""
    ended = []

    async def stop(_):
        await asyncio.sleep(0)
        raise asyncio.CancelledError("of its own")

    async def wait(_):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    x = a_symbol()
    outs = [await Fake(work=stop)(x), await Fake(work=wait)(x)]
    with pytest.raises(asyncio.CancelledError, match="of its own"):
        await run_graph(x, outs, number(1))
    assert ended == [True]
    assert asyncio.current_task().cancelling() == 0


async def test_nothing_begins_after_a_failure():
    """What a branch makes ready while it is being cancelled is not started."""
    begun = []

    async def fail(_):
        raise ValueError("no")

    async def shrug(x):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return x

    x = a_symbol()
    survivor = await Fake("shrug", shrug)(x)
    after = [await Fake("after", lambda x: begun.append(1) or x)(survivor) for _ in range(2)]
    with pytest.raises(ValueError, match="no"):
        await run_graph(x, [await Fake("fail", fail)(x), *after], number(1))
    assert begun == []


async def random_program(seed, work):
    """A random graph of two-operand steps, masks, and operators; returns its input, outputs and a direct evaluation."""
    chance = random.Random(seed)
    x = a_symbol("x")
    symbols, recipes = [x], [None]
    for _ in range(chance.randrange(1, 14)):
        a, b = chance.randrange(len(symbols)), chance.randrange(len(symbols))
        kind = chance.choice(["one", "two", "nest", "mask", "xor"])
        recipes.append((kind, a, b))
        symbols.append(await applied(kind, symbols[a], symbols[b], work))
    chosen = [chance.randrange(len(symbols)) for _ in range(chance.randrange(1, 4))]

    async def direct(value):
        values = [value]
        for kind, a, b in recipes[1:]:
            values.append(await applied(kind, values[a], values[b], work))
        return [values[index] for index in chosen]

    return x, [symbols[index] for index in chosen], direct


async def applied(kind, a, b, work):
    if kind == "one":
        return await Fake("one", lambda x: work(x, x))(a)
    if kind == "two":
        return await Fake("two", work)(a, b)
    if kind == "nest":
        return await Fake("nest", lambda xs: work(xs[0], xs[1]["k"]))([a, {"k": b}])
    if kind == "mask":
        return ops.in_mask(a, "n")
    return ops.logical_and(ops.in_mask(a, "n"), ops.in_mask(b, "n")).out_mask("n_1")


@given(st.integers(0, 10**6), st.integers(-5, 5))
def test_a_random_program_gives_what_a_direct_evaluation_gives(seed, start):
    """Whatever the graph and whoever finishes first, the values are those of plain calls."""
    chance = random.Random(seed)

    async def work(a, b):
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(0)
        return number((a.n * 7 + b.n * 3 + 1) % 1009)

    async def main():
        x, outputs, direct = await random_program(seed, work)
        plan = plan_of(x, outputs)
        assert await run_plan(plan, [number(start)]) == await direct(number(start))
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_none_skips_a_step_and_all_its_outputs(any_loop):
    """A None for the whole stands for every output of a step; what follows is skipped too."""

    async def main():
        x = a_symbol()
        nothing = await Fake("nothing", lambda _: None, outputs=(a_symbol(), {"k": a_symbol()}))(x)
        after = Fake("after")
        out = await after(nothing[1]["k"])
        result = await run_graph(x, [nothing, out], number(1))
        assert after.calls == 0
        return result

    assert any_loop(main) == [(None, {"k": None}), None]


async def test_operators_follow_their_table_on_none():
    """`&` passes None on, `|` and `^` give the other, `+` is an error that names the step."""
    x = a_symbol()
    nothing = await Fake("nothing", lambda _: None)(x)
    outs = [nothing & x, nothing | x, nothing ^ x, ~nothing, ops.in_mask(nothing, "n")]
    both, either, one, missing, masked = await run_graph(x, outs, number(1))
    assert (both, missing, masked) == (None, None, None)
    assert either.get_json() == one.get_json() == {"n": 1}
    with pytest.raises(DataError, match=r"concat: .*operand 0 is None"):
        await run_graph(x, nothing + x, number(1))


async def test_names_do_not_shift_when_a_value_is_absent():
    """An operand that is None this time leaves the names of the plan alone."""
    x = a_symbol()
    nothing = await Fake("nothing", lambda _: None)(x)
    out = (nothing | x) + x
    result = await run_graph(x, out, number(1))
    assert schema_of(result) is schema_of(out)


async def test_another_structure_is_a_call_error():
    """A step must return the structure that was recorded."""
    x = a_symbol()
    pair = await Fake("pair", lambda x: x, outputs=(a_symbol(), a_symbol()))(x)
    with pytest.raises(CallError, match=r"pair0.*\(\*, \*\)"):
        await run_graph(x, pair[0], number(1))
    single = await Fake("single", lambda x: (x, x))(x)
    with pytest.raises(CallError, match="single0"):
        await run_graph(x, single, number(1))


async def test_a_list_for_a_tuple_and_other_key_orders_are_fine():
    """Structures are compared by places."""
    x = a_symbol()
    made = Fake("made", lambda x: {"b": [x, x], "a": x}, outputs={"a": a_symbol(), "b": (a_symbol(), a_symbol())})
    out = await made(x)
    result = await run_graph(x, out, number(1))
    assert result == {"a": number(1), "b": (number(1), number(1))}


async def test_an_output_that_misses_its_schema_names_the_path():
    """SchemaError begins with the step, and shows what was wanted and got."""
    x = a_symbol()
    out = await Fake("write", lambda _: Word(w="a").to_json_data_model())(x)
    with pytest.raises(SchemaError, match=r"^write0: the output was recorded as Number\(n\), got Word\(w\)"):
        await run_graph(x, out, number(1))
    pair = await Fake("pair", lambda x: (x, Word(w="a").to_json_data_model()), outputs=(a_symbol(), a_symbol()))(x)
    with pytest.raises(SchemaError, match="^pair0, output 1"):
        await run_graph(x, pair[0], number(1))


async def test_the_value_carries_the_recorded_schema():
    """A narrower value fits, and has the schema of the symbol from there."""
    narrow = {"type": "object", "properties": {"n": {"const": 1}}, "required": ["n"], "additionalProperties": False}
    x = a_symbol()
    out = await Fake("narrow", lambda _: JsonDataModel({"n": 1}, schema=narrow))(x)
    result = await run_graph(x, out, number(1))
    assert schema_of(result) is schema_of(out)


async def test_a_value_is_dropped_after_its_last_consumer():
    """While the third step runs, the value that only the second one needed is gone."""
    gone = []

    def remember(x):
        made = number(x.n + 1)
        gone.append(weakref.ref(made))
        return made

    def look(x):
        assert gone[0]() is None
        return x

    x = a_symbol()
    first = await Fake("first", remember)(x)
    second = await Fake("second", add(1))(first)
    out = await Fake("third", look)(second)
    beside = await Fake("beside")(x)
    await run_graph(x, out, number(1))
    await run_graph(x, [out, beside], number(1))


async def test_nothing_of_a_run_stays():
    """Values of a finished run, and of a failed one, are freed."""
    x = a_symbol()

    async def fail(_):
        raise ValueError

    plan = plan_of(x, await Fake("join", lambda both: both[0])([await Fake()(x), await Fake()(x)]))
    failing = plan_of(x, [await Fake(work=fail)(x), await Fake()(x)])
    value = number(1)
    gone = weakref.ref(value)
    await run_plan(plan, [value])
    with pytest.raises(ValueError):
        await run_plan(failing, [value])
    del value
    await asyncio.sleep(0)
    assert gone() is None


async def test_constants_reach_their_steps():
    """Values beside symbols, None, and keyword arguments come as they were given."""
    seen = []
    two = number(2)
    x = a_symbol()
    out = await Fake(work=lambda *args, **kwargs: seen.append((args, kwargs)) or args[0])(x, two, None, [x, two], k="v")
    await run_graph(x, out, number(1))
    ((args, kwargs),) = seen
    assert args[:3] == (number(1), two, None)
    assert args[3] == [number(1), two]
    assert kwargs == {"k": "v"}


@pytest.mark.slow
@pytest.mark.interpreter
def test_two_thousand_steps_in_a_chain_and_branches(any_loop):
    """Linear time and a stack of constant depth, in a chain, in branches, and in a chain of diamonds."""

    async def main():
        module = Fake("module", add(1))
        x = chain = a_symbol()
        for _ in range(2_000):
            chain = await module(chain)
        fan = [await module(x) for _ in range(2_000)]
        diamonds = x
        join = Fake("join", lambda a, b: a)
        for _ in range(500):
            diamonds = await join(await module(diamonds), await module(diamonds))
        started = time.process_time()
        assert (await run_graph(x, chain, number(0)))["n"] == 2_000
        assert {out["n"] for out in await run_graph(x, fan, number(0))} == {1}
        assert (await run_graph(x, diamonds, number(0)))["n"] == 500
        assert time.process_time() - started < 10

    any_loop(main)


def test_a_thousand_runs_at_once(any_loop):
    """One plan serves a thousand concurrent runs, each with its own values."""

    async def main():
        async def slow(x):
            await aio.sleep(0.001)
            return number(x.n + 1)

        x = a_symbol()
        a, b = await Fake("a", slow)(x), await Fake("b", slow)(x)
        plan = plan_of(x, await Fake("join", lambda a, b: number(a.n * 10_000 + b.n))(a, b))
        results = {}

        async def one(index):
            results[index] = await run_plan(plan, [number(index)])

        async with aio.task_group() as group:
            for index in range(1_000):
                group.start_soon(one, index)
        return results

    for index, value in any_loop(main).items():
        assert value["n"] == (index + 1) * 10_001


async def test_cancelled_at_each_await_no_task_is_left():
    """Cancelled at the k-th turn of the loop, for every k, the run ends cancelled with all its branches."""

    async def slow(x, *_):
        for _ in range(3):
            await asyncio.sleep(0)
        return x

    x = a_symbol()
    branches = [await Fake("b", slow)(await Fake("a", slow)(x)) for _ in range(3)]
    plan = plan_of(x, await Fake("join", slow)(*branches))
    k, finished = 0, False
    while not finished:
        task = asyncio.ensure_future(run_plan(plan, [number(1)]))
        for _ in range(k):
            await asyncio.sleep(0)
        finished = task.done()
        if not finished:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(asyncio.all_tasks()) == 1
        k += 1
    assert k > 8


async def test_an_external_cancellation_wins_over_nothing():
    """Cancelling the program cancels its branches, waits for their clean-up, and is raised."""
    cleaned = []

    async def slow(_):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0) if not cleaned else None
            cleaned.append(True)

    async def wait(_):
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(True)

    x = a_symbol()
    plan = plan_of(x, [await Fake(work=wait)(x), await Fake(work=wait)(x)])
    task = asyncio.ensure_future(run_plan(plan, [number(1)]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True, True]


def test_number_has_the_shape_the_tests_think():
    """The data model of these tests is closed and has one field."""
    assert Number.get_schema()["required"] == ["n"]


# -- several calls at once --------------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_calls(any_loop):
    """Whoever finishes first, the first call's result is first."""

    async def main():
        async def after(turns, result):
            for _ in range(turns):
                await aio.sleep(0)
            return result

        return await together(lambda: after(3, "a"), lambda: after(0, "b"))

    assert any_loop(main) == ["a", "b"]


async def test_a_single_call_runs_in_place_and_none_is_fine():
    """One call costs no task; no call gives no result."""

    async def task():
        return asyncio.current_task()

    assert await together(task) == [asyncio.current_task()]
    assert await together() == []


async def test_the_traceback_of_a_failure_leads_to_its_line():
    """The error is raised as itself, its traceback kept."""

    async def fail():
        await asyncio.sleep(0)
        raise LookupError("here")

    with pytest.raises(LookupError) as caught:
        await together(fail, fail)
    assert any(entry.name == "fail" for entry in caught.traceback)


async def test_the_same_error_in_two_branches_is_no_note_on_itself():
    """An exception object that reaches two branches is raised once, without a note."""
    shared = LookupError("shared")

    async def fail():
        await asyncio.sleep(0)
        raise shared

    with pytest.raises(LookupError) as caught:
        await together(fail, fail)
    assert not getattr(caught.value, "__notes__", [])


async def test_system_exit_is_never_swallowed():
    """SystemExit in a branch leaves as itself."""

    def main():
        async def leave():
            await asyncio.sleep(0)
            raise SystemExit(3)

        async def wait():
            await asyncio.sleep(60)

        asyncio.run(together(leave, wait))

    with pytest.raises(SystemExit) as caught:
        await asyncio.to_thread(main)
    assert caught.value.code == 3


async def test_failures_that_refuse_attributes_are_noted_too():
    """Frozen exceptions, or ones with notes of their own kind, break nothing."""

    @dataclasses.dataclass(frozen=True)
    class Frozen(Exception):
        x: int

    class Odd(Exception):
        __notes__ = 3

    async def fail(error):
        raise error

    with pytest.raises(Frozen) as caught:
        await together(lambda: fail(Frozen(1)), lambda: fail(Frozen(2)), lambda: fail(Odd("odd")))
    assert [note.split(":")[0] for note in caught.value.__notes__] == ["another task failed too"] * 2


@pytest.mark.parametrize("fails", [False, True])
async def test_results_are_freed_by_counting(fails):
    """Nothing of an ended group waits for the collector."""

    class Value:
        pass

    async def make():
        value = Value()
        refs.append(weakref.ref(value))
        return value

    async def fail():
        value = await make()
        if fails:
            raise LookupError(value)

    refs = []
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(LookupError):
            await together(make, fail)
        await asyncio.sleep(0)
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()

"""Functional programs: made of a graph, at once; children, order, steps, running."""

import asyncio
import dataclasses
import time

import anyio
import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.data import JsonDataModel, ops
from synmod.errors import ConfigError, DataError, DeadlineExceeded, GraphError, SchemaError, SealedError
from synmod.flow import run
from synmod.leaves import aio
from synmod.module import Module, build
from synmod.program import Input, Program
from synmod.scope import Hook, current_call, hooks
from synmod.tree import Param, merge, split
from tests.program.parts import Answer, Echo, Hint, Noted, Nothing, Pair, Query, Reply, Shout, TakesNone, query


async def two_steps(**kwargs):
    x = Input(Query)
    return Program(inputs=x, outputs=await Shout()(await Reply()(x)), **kwargs)


def test_it_runs_on_every_loop(any_loop):
    """Composed and called in the same loop."""

    async def main():
        program = await two_steps()
        return await program(query("who"))

    assert any_loop(main)["answer"] == "WHO"


async def test_it_is_made_without_waiting_sealed_and_built():
    """Nothing waits between the graph and the program; its structure is closed."""
    program = await two_steps(name="mine", description="Shouts.")
    assert (program.name, program.description, program.built) == ("mine", "Shouts.", True)
    with pytest.raises(SealedError):
        program.more = Reply()


async def test_modules_are_children_under_their_names_in_step_order():
    """Each once; equal names are told apart by `_1`, `_2`."""
    x = Input(Query)
    first, shared = Reply(), Echo(name="shared")
    outputs = [await shared(await first(x)), await Reply()(x), await shared(await Reply()(x))]
    program = Program(inputs=x, outputs=outputs)
    assert list(program.__dict__) == ["reply", "shared", "reply_1", "reply_2"]
    assert program.reply is first
    assert program.submodules == (first, shared, program.reply_1, program.reply_2)


async def test_names_that_a_program_answers_by_itself_are_taken():
    """A module called `inputs` or `variables` does not hide anything."""
    x = Input(Query)
    out = await Echo(name="variables")(await Echo(name="inputs")(await Echo(name="call")(x)))
    program = Program(inputs=x, outputs=out)
    assert list(program.__dict__) == ["call_1", "inputs_1", "variables_1"]
    assert await program(query()) == query()


async def test_a_name_counts_as_it_is_then():
    """The key is the module's name when the program is made; renaming later changes no path."""
    x = Input(Query)
    module = Echo()
    program = Program(inputs=x, outputs=await module(x))
    module.name = "other"
    assert program.get_module("echo") is module


async def test_inputs_outputs_and_steps_are_read_only():
    """They are the symbols and steps of the composition, and cannot be set."""
    x = Input(Query)
    y = await Reply()(x)
    program = Program(inputs={"q": x}, outputs=[y])
    assert program.inputs == {"q": x}
    assert program.outputs == [y]
    assert [step.name for step in program.steps] == ["reply"]
    assert program.steps[0].module is program.reply
    for name in ("inputs", "outputs", "steps"):
        with pytest.raises(ConfigError, match=f"'{name}' would hide.*program_{name}"):
            setattr(program, name, None)


async def test_get_module_finds_by_path():
    """Of nested modules, of shared ones by each of their paths; 'Did you mean' otherwise."""
    x = Input(Query)
    inner = await two_steps(name="inner")
    outer = Program(inputs=x, outputs=await inner(x))
    assert outer.get_module("inner/shout") is inner.shout
    assert outer.get_module(("inner", "shout")) is inner.shout
    with pytest.raises(GraphError, match=r"Did you mean 'inner/shout'\?"):
        outer.get_module("inner/shot")


def test_faulty_wirings_list_every_fault():
    """GraphError with all faults, before anything is made."""

    async def main():
        x, lost = Input(Query), Input(Hint, name="lost")
        out = await Echo()([x, lost])
        with pytest.raises(GraphError) as caught:
            Program(inputs=[x, x], outputs=[out[0], query()])
        assert "twice" in str(caught.value)
        assert "'lost'" in str(caught.value)
        assert "output 1" in str(caught.value)

    run(main)


async def test_an_output_that_was_not_awaited_says_await():
    """The forgotten await of a composition is named."""
    x = Input(Query)
    with pytest.raises(GraphError, match="await"):
        Program(inputs=x, outputs=Reply()(x))


def test_inputs_without_outputs_is_a_fault():
    """Both or neither."""
    x = Input(Query)
    with pytest.raises(GraphError, match="output is None"):
        Program(inputs=x)
    with pytest.raises(GraphError, match="input is None"):
        Program(outputs=x)


def test_an_unknown_keyword_is_a_config_error():
    """With the accepted ones and 'Did you mean'; nothing vanishes."""
    x = Input(Query)
    with pytest.raises(ConfigError, match="'hooks'"):
        Program(inputs=x, outputs=x, hook=[])


def test_an_input_may_be_an_output_and_may_be_unused():
    """Values pass through unchanged."""
    x, y = Input(Query), Input(Hint)
    program = Program(inputs=[x, y], outputs=x)
    assert run(program, query(), Hint(hint="h")) == query()


def test_operators_are_replayed_by_their_plans():
    """Functions of `sm.ops` in a program give what they give on values."""
    x = Input(Query)
    program = Program(inputs=x, outputs=[x + x, ops.prefix(x, "my"), x.in_mask("question") & x])
    a, b, c = run(program, query("1"))
    assert a.get_json() == {"question": "1", "question_1": "1"}
    assert b.get_json() == {"my_question": "1"}
    assert c.get_json() == {"question": "1", "question_1": "1"}


async def test_each_module_step_is_a_call_below_the_program():
    """Paths, depth and parents of the frames; a program in a program has its own frame."""
    seen = []

    class Look(Module):
        async def call(self, inputs: Answer) -> Answer:
            frame = current_call()
            seen.append((frame.path, frame.depth, frame.parent.path))
            return inputs

    x = Input(Query)
    look = Look()
    inner = Program(inputs=x, outputs=await look(await Reply()(x)), name="inner")
    outer = Program(inputs=x, outputs=await inner(x))
    await outer(query())
    await inner(query())
    assert seen == [("inner/look", 2, "inner"), ("look", 1, "")]


async def test_events_tell_begin_and_end_of_each_step_once():
    """A hook sees the program and its steps, each with one begin and one end."""

    class Seen(Hook):
        def __init__(self):
            self.events = []

        def on_call_begin(self, event):
            self.events.append(("begin", event.path))

        def on_call_end(self, event):
            self.events.append(("end", event.path))

    program = await two_steps()
    seen = Seen()
    with hooks(seen):
        await program(query())
    assert seen.events == [
        ("begin", ""), ("begin", "reply"), ("end", "reply"), ("begin", "shout"), ("end", "shout"), ("end", ""),
    ]  # fmt: skip


async def test_only_the_program_counts_as_entry():
    """Steps are nested calls."""
    program = await two_steps()
    await program(query())
    assert program.cumulated_invocations == 1
    assert program.reply.cumulated_invocations == 0
    assert program.reply.counters.nested == 1


async def test_on_symbols_it_gives_its_outputs_and_runs_nothing():
    """A program composes like a module; its inputs are checked as subschemas."""
    calls = []

    class Once(Module):
        async def call(self, inputs: Query) -> Answer:
            calls.append(current_call().symbolic)
            return Answer(answer="")

    x = Input(Query)
    inner = Program(inputs=x, outputs=await Once()(x))
    out = await inner(Input(Query))
    assert out.keys() == ("answer",)
    with pytest.raises(SchemaError, match="'query'"):
        await inner(Input(Hint))
    assert await build(inner) is not None
    assert calls == []


async def test_independent_branches_run_at_the_same_time():
    """Two branches wait for each other and both end."""
    gate = {"a": asyncio.Event(), "b": asyncio.Event()}

    class Meet(Module):
        def __init__(self, mine, other, **kwargs):
            super().__init__(**kwargs)
            self.mine, self.other = mine, other

        async def call(self, inputs: Query) -> Query:
            gate[self.mine].set()
            await gate[self.other].wait()
            return inputs

    x = Input(Query)
    program = Program(inputs=x, outputs=[await Meet("a", "b")(x), await Meet("b", "a")(x)])
    assert await asyncio.wait_for(program(query()), 60) == [query(), query()]


async def test_the_first_failure_is_raised_with_the_path_of_its_step():
    """As itself, with one note that tells where; other entry calls are untouched."""

    class Fail(Module):
        async def call(self, inputs: Query) -> Answer:
            await asyncio.sleep(0)
            if inputs["question"] == "bad":
                raise LookupError("no")
            await asyncio.sleep(0.01)
            return Answer(answer="fine")

    class Slow(Module):
        async def call(self, inputs: Query) -> Answer:
            await asyncio.sleep(0.01)
            return Answer(answer="slow")

    x = Input(Query)
    program = Program(inputs=x, outputs=[await Slow()(x), await Fail(name="critic")(x)])
    other = asyncio.ensure_future(program(query("good")))
    with pytest.raises(LookupError, match="no") as caught:
        await program(query("bad"))
    assert [note for note in caught.value.__notes__ if "'critic' (Fail)" in note]
    assert len(caught.value.__notes__) == 1
    assert [value["answer"] for value in await other] == ["slow", "fine"]
    assert program.counters.failed == 1
    assert program.slow.counters.cancelled == 0


@pytest.mark.parametrize("inside", ["program", "parallel", "deadline"])
def test_a_clean_up_that_a_user_shields_ends_before_the_failure_is_raised(any_loop, inside):
    """In a failed branch, and under a deadline, whatever the loop; the clean-up was once cut off at its first wait."""
    steps = []

    class Careful(Module):
        async def call(self, inputs: Query) -> Answer:
            try:
                await aio.sleep(60)
            finally:
                with anyio.CancelScope(shield=True):
                    await aio.sleep(0.01)
                    await aio.sleep(0.01)
                    steps.append("rolled back")

    class Fail(Module):
        async def call(self, inputs: Query) -> Answer:
            await aio.sleep(0.01)
            raise LookupError("no")

    async def main():
        if inside == "deadline":
            with sm.deadline(0.3):  # time enough to begin, also on a busy machine
                await Careful()(query())
        elif inside == "parallel":
            await sm.Parallel(Careful(), Fail())(query())
        else:
            x = Input(Query)
            await Program(inputs=x, outputs=[await Careful()(x), await Fail()(x)])(query())

    with pytest.raises((LookupError, DeadlineExceeded)):
        any_loop(main)
    assert steps == ["rolled back"]


async def test_cancelling_the_program_cancels_and_awaits_all():
    """Counted as cancelled, not as failed; no task is left."""
    cleaned = []

    class Slow(Module):
        async def call(self, inputs: Query) -> Query:
            try:
                await asyncio.sleep(60)
            finally:
                cleaned.append(current_call().path)

    x = Input(Query)
    program = Program(inputs=x, outputs=[await Slow(name="a")(x), await Slow(name="b")(x)])
    task = asyncio.ensure_future(program(query()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(cleaned) == ["a", "b"]
    assert (program.counters.cancelled, program.counters.failed) == (1, 0)
    assert len(asyncio.all_tasks()) == 1
    assert current_call() is None


async def test_a_step_whose_argument_is_none_is_skipped():
    """Skipped without event or count; a module that takes None runs."""
    x = Input(Query)
    nothing = await Nothing()(x)
    shout, takes = Shout(), TakesNone()
    program = Program(inputs=x, outputs=[await shout(nothing), await takes(nothing & x), nothing | x])
    first, second, third = await program(query("q"))
    assert first is None
    assert second["answer"] == "none"
    assert third.get_json() == {"question": "q"}
    assert shout.counters.nested == 0


async def test_concat_with_none_names_the_step():
    """`+` is an error that tells the operand, the step and `&`."""
    x = Input(Query)
    program = Program(inputs=x, outputs=await Nothing()(x) + x, name="p")
    with pytest.raises(DataError, match="concat: operand 0 is None.*&"):
        await program(query())


async def test_a_skipped_step_gives_none_for_every_output():
    """Structures of outputs are kept, with None at each leaf."""
    x = Input(Query, optional=True)
    first, second = await Pair()(x)
    program = Program(inputs=x, outputs={"a": first, "b": [second]})
    assert await program(None) == {"a": None, "b": [None]}


async def test_outputs_of_steps_are_checked_against_the_record():
    """A module that returns another model than it did on symbols is told where, what was declared and what came."""

    class Fickle(Module):
        async def call(self, inputs):
            return inputs if current_call().symbolic else Answer(answer="x")

    x = Input(Query)
    program = Program(inputs=x, outputs=await Fickle()(x))
    with pytest.raises(SchemaError, match="^fickle"):
        await program(query())


async def test_state_of_a_program_is_that_of_its_modules():
    """Variables at the paths of their modules; built at composition."""
    x = Input(Query)
    program = Program(inputs=x, outputs=await Noted()(x))
    assert [variable.name for variable in program.variables] == ["notes"]
    graphdef, state = split(program)
    twin = merge(graphdef, state)
    assert await twin(query()) == query()
    assert split(program, Param)[1].keys() == split(twin, Param)[1].keys()


async def test_two_calls_of_one_module_share_its_state():
    """A shared module is one child and serves several steps."""
    x = Input(Query)
    echo = Echo()
    program = Program(inputs=x, outputs=[await echo(x), await echo(await echo(x))])
    assert len(program.steps) == 3
    assert program.submodules == (echo,)
    await program(query())
    assert echo.counters.nested == 3


async def test_a_program_is_freed_by_counting():
    """Programs, symbols and modules have no cycle through one another."""
    import gc
    import weakref

    gc.disable()
    try:
        program = await two_steps()
        await program(query())
        gone = weakref.ref(program)
        module = weakref.ref(program.reply)
        del program
        assert gone() is None
        assert module() is None
    finally:
        gc.enable()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.booleans()), min_size=1, max_size=12))
def test_a_random_program_gives_what_plain_code_gives(shape):
    """Join and step modules in any acyclic wiring: the program equals the direct evaluation."""

    class Join(Module):
        async def call(self, a: Query, b: Query) -> Query:
            await aio.sleep(0)
            return Query(question=f"({a['question']}{b['question']})"[-40:])

    async def wire(start, one, join):
        symbols = [start]
        for a, b, single in shape:
            a, b = symbols[a % len(symbols)], symbols[b % len(symbols)]
            symbols.append(await one(a) if single else await join(a, b))
        return symbols[-1]

    async def main():
        one, join = Echo(), Join()
        x = Input(Query)
        program = Program(inputs=x, outputs=await wire(x, one, join))
        value = JsonDataModel(query("x"))
        assert await program(value) == await wire(value, one, join)

    asyncio.run(main())


@pytest.mark.slow
def test_five_thousand_steps_compose_make_run_and_clone_in_linear_time():
    """A chain, and as many branches; no recursion."""

    async def main(chained):
        started = time.process_time()
        x = out = Input(Query)
        outs = []
        for _ in range(5_000):
            out = await Echo()(out if chained else x)
            outs.append(out)
        program = Program(inputs=x, outputs=out if chained else outs)
        result = await program(query("end"))
        twin = program.clone()
        again = await twin(query("end"))
        assert len(twin.steps) == len(program.steps) == 5_000
        assert (result if chained else result[-1]) == (again if chained else again[0]) == query("end")
        assert list(program.__dict__)[-1] == "echo_4999"
        assert time.process_time() - started < 30

    asyncio.run(main(True))
    asyncio.run(main(False))


@pytest.mark.slow
def test_a_thousand_concurrent_calls_do_not_mix(any_loop):
    """Each entry call has its own values and frames."""

    class Slow(Module):
        async def call(self, inputs: Query) -> Answer:
            await aio.sleep(0.001)
            return Answer(answer=inputs["question"] + current_call().path)

    async def main():
        x = Input(Query)
        a, b = await Slow(name="a")(x), await Slow(name="b")(x)
        program = Program(inputs=x, outputs=[a, b])
        results = {}

        async def one(index):
            results[index] = await program(query(str(index)))

        async with aio.task_group() as group:
            for index in range(1_000):
                group.start_soon(one, index)
        assert program.cumulated_invocations == 1_000
        return results

    for index, (a, b) in any_loop(main).items():
        assert (a["answer"], b["answer"]) == (f"{index}a", f"{index}b")


@dataclasses.dataclass
class Both:
    """A container of the user's for two values."""

    left: object
    right: object


class Right(Module):
    async def call(self, both):
        return both.right


async def test_dataclasses_of_data_are_nests():
    """As inputs and outputs of a program, and as the argument of a step."""
    x, y = Input(Query, name="x"), Input(Query, name="y")
    reply = await Reply()(x)
    program = Program(inputs=Both(x, y), outputs=Both(reply, await Right()(Both(reply, y))))
    for each in (program, program.clone()):
        out = await each(Both(query("one"), query("two")))
        assert type(out) is Both
        assert (out.left["answer"], out.right["question"]) == ((await Reply()(query("one")))["answer"], "two")
    with pytest.raises(sm.CallError):
        await program([query("one"), query("two")])


async def test_inputs_may_be_called_self_but_not_training():
    """`training` is a keyword of every call, so a program with such an Input could not be given it."""
    both = [sm.Input(Query, name="self"), sm.Input(Query, name="b")]
    given = Query(question="x")
    assert await sm.Program(inputs=both, outputs=both)(self=given, b=given) == [given, given]
    mode = sm.Input(Query, name="training")
    with pytest.raises(GraphError, match="an Input is named 'training'.*give it another name"):
        sm.Program(inputs=mode, outputs=mode)

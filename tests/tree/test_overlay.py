"""Overlays: what is read inside, where writes go, nesting, tasks, threads, traces; and against a model of them."""

import asyncio
import contextvars
import threading
import tracemalloc

import hypothesis
import pytest
from hypothesis import strategies as st

import synmod as sm
from synmod.errors import ArgumentError, GraphError, SchemaError, StateError, StateSchemaError
from synmod.tree import Memory, Param, State, discard_writes, graphdef, state, update, using
from tests.tree.stores import Store


@pytest.fixture
def program():
    """A shared Variable and two more."""
    shared = Param("s")
    return Store(a=shared, b=shared, m=Memory([]), inner=Store(x=Param("x")))


def test_reads_inside_come_from_the_state(program):
    """In part or whole, State or JSON; the rest is live; afterwards everything is."""
    with using(program, {"a": "A"}):
        assert (program.a.value, program.m.value) == ("A", [])
    assert program.a.value == "s"
    goal = state(program).replace({"inner/x": "X"})
    with using(program, goal) as overlay:
        assert program.inner.x.value == "X"
        assert state(program) == goal
        assert overlay.state == goal
    assert program.a.version == 0


def test_entry_checks_everything(program):
    """Unknown paths, wrong values, leaves for subgraphs; two aliases with two values; nothing stays behind."""
    for bad, phrase in (
        ({"nope": 1, "m": 3}, r"(?s)m#.*Unknown keys: 'nope'"),
        ({"inner": 1}, "Expected a subgraph at 'inner'"),
        ({"a": "x", "b": "y"}, "'a' and 'b'"),
        ({"a": 3}, "a#"),
    ):
        with pytest.raises(StateError, match=phrase), using(program, bad):
            raise AssertionError("entered")
    with pytest.raises(StateSchemaError), using(program, {"a": 3}):
        pass
    with pytest.raises(ArgumentError), using(program, 3):
        pass
    with pytest.raises(ArgumentError), using(3, {}):
        pass
    foreign = state({"a": Param("x", schema={"type": "string", "maxLength": 9}), "m": Memory([])})
    with using(program, foreign):
        assert program.a.value == "x"
    assert program.a.value == "s"


def test_texts_that_are_no_path_are_unknown():
    """Empty steps, ints written in another way and bad escapes are unknown; escaped keys and ints are found."""
    program = {"a/b": {"1": Param("x")}, "l": [Param("y")], "~": Param("z")}
    for text in ("l/", "/l/0", "l//0", "l/00", "~7", "//", "l/0/"):
        with pytest.raises(StateError), using(program, {text: "w"}):
            raise AssertionError("entered")
    for text in ("a~1b/1", "l/0", "~0"):
        with using(program, {text: "w"}) as overlay:
            assert overlay.state.to_json() == {text: "w"}


def test_alias_paths_are_accepted(program):
    """As in update."""
    with using(program, {"b": "B"}) as overlay:
        assert program.a.value == "B"
    assert overlay.state.to_json() == {"a": "B"}


def test_writes_stay_in_the_layer(program):
    """`overlay.state` has given and written values, `changes` only what was written, both after the block too."""
    with using(program, {"a": "A"}) as overlay:
        program.m.assign([1])
        program.inner.x.assign("X")
        with pytest.raises(SchemaError):
            program.a.assign(3)
        assert program.m.value == [1]
    assert (program.m.value, program.m.version) == ([], 0)
    assert overlay.state.to_json() == {"a": "A", "m": [1], "inner/x": "X"}
    assert overlay.changes.to_json() == {"m": [1], "inner/x": "X"}
    assert update(program, overlay.state) == (("a",), ("m",), ("inner", "x"))


def test_blocks_nest(program):
    """Reads fall through to the outer overlay, then to the live value; a write goes to the innermost that knows it."""
    with using(program, {"a": "outer", "m": [0]}) as outer:
        with using(program.inner, {"x": "inner"}) as inner:
            assert (program.a.value, program.inner.x.value, program.m.value) == ("outer", "inner", [0])
            program.inner.x.assign("written")
            program.m.assign([1])
        assert program.inner.x.value == "x"
        assert program.m.value == [1]
    assert inner.changes.to_json() == {"x": "written"}
    assert outer.changes.to_json() == {"m": [1]}


def test_variables_outside_are_live(program):
    """They are read and written as without the block."""
    outside = Param("o")
    with using(program, {"a": "A"}):
        outside.assign("new")
    assert (outside.value, outside.version) == ("new", 1)


async def test_a_hundred_candidates_at_once(program):
    """Each task sees its own candidate, and what its children write."""

    async def score(number):
        with using(program, {"a": f"candidate {number}"}) as overlay:
            await asyncio.sleep(0)
            program.m.assign([number])

            async def child():
                program.inner.x.assign(program.a.value)

            await asyncio.gather(child(), asyncio.sleep(0))
            await asyncio.sleep(0)
            return overlay.changes.to_json()

    results = await asyncio.gather(*(score(number) for number in range(100)))
    assert results == [{"m": [n], "inner/x": f"candidate {n}"} for n in range(100)]
    assert program.m.value == []


async def test_a_thousand_overlays_at_once_leave_the_program_alone(program):
    """With writes, nested ones, child tasks and cancellations inside: each reads its own, nothing live moves."""
    variables = (program.a, program.m, program.inner.x)
    live = [(variable.value, variable.version) for variable in variables]

    async def read():
        await asyncio.sleep(0)
        return program.inner.x.value

    async def score(number):
        with using(program, {"inner/x": f"{number}", "a": "A"}) as overlay:
            program.m.assign([number])
            assert await asyncio.create_task(read()) == f"{number}"
            with using(program, {"inner/x": "nested"}) as nested:
                program.a.assign(f"written {number}")
                assert await asyncio.create_task(read()) == "nested"
            assert program.a.value == "A"
            assert (program.m.value, await read()) == ([number], f"{number}")
        assert [leaf.value for leaf in nested.changes.flat().values()] == [f"written {number}"]
        assert [leaf.value for leaf in overlay.changes.flat().values()] == [[number]]

    tasks = [asyncio.create_task(score(number)) for number in range(1_000)]
    for step in range(3):
        await asyncio.sleep(0)
        for task in tasks[step::20]:
            task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    stopped = [error for error in ended if isinstance(error, asyncio.CancelledError)]
    assert len(stopped) == 150
    assert ended.count(None) == 850
    assert [(variable.value, variable.version) for variable in variables] == live


def test_an_overlay_holds_on_every_loop(any_loop, program):
    """Entered around a loop it is seen inside."""

    async def read():
        return program.a.value

    with using(program, {"a": "A"}):
        assert any_loop(read) == "A"


def test_a_new_thread_sees_live_values(program):
    """Without a copied context; with one it sees the overlay."""
    seen = []
    with using(program, {"a": "A"}):
        plain = threading.Thread(target=lambda: seen.append(program.a.value))
        context = contextvars.copy_context()
        carried = threading.Thread(target=lambda: context.run(lambda: seen.append(program.a.value)))
        for thread in (plain, carried):
            thread.start()
            thread.join()
    assert seen == ["s", "A"]


def test_a_block_left_elsewhere_restores_nothing_and_raises_nothing(program):
    """Closed in another context than it was entered in."""
    block = using(program, {"a": "A"})
    contextvars.copy_context().run(block.__enter__)
    block.__exit__(None, None, None)
    assert program.a.value == "s"


def test_an_error_inside_restores(program):
    """By token, on every exit."""
    with pytest.raises(RuntimeError), using(program, {"a": "A"}):
        raise RuntimeError
    assert program.a.value == "s"


def test_a_trace_throws_its_writes_away(program):
    """`assign` validates, reads see it inside, no live value and no overlay changes."""
    with using(program, {"a": "A"}) as overlay:
        with discard_writes():
            program.a.assign("traced")
            assert program.a.value == "traced"
            with pytest.raises(SchemaError):
                program.m.assign("no list")
        assert program.a.value == "A"
    assert len(overlay.changes) == 0
    assert (program.a.value, program.a.version) == ("s", 0)


def test_structure_is_not_touched(program):
    """The graph definition is the same inside."""
    before = graphdef(program)
    with using(program, State()):
        assert graphdef(program) == before


def test_an_overlay_may_give_nothing(program):
    """Then it only keeps the writes."""
    with using(program) as overlay:
        program.a.assign("w")
    assert (program.a.value, overlay.state.to_json()) == ("s", {"a": "w"})


def test_a_block_is_one_overlay(program):
    """Entered twice at once it is refused; before its entry its state is empty."""
    block = using(program, {"a": "A"})
    assert not block.state
    with block:
        with pytest.raises(GraphError, match="already entered"):
            block.__enter__()
        assert program.a.value == "A"
    with block:
        program.a.assign("again")
    assert block.changes.to_json() == {"a": "again"}
    assert program.a.value == "s"


def test_blocks_may_be_left_in_any_order(program):
    """What generators and exit stacks do; the end of the last one leaves no layer behind."""
    outer, inner = using(program, {"a": "outer"}), using(program, {"m": [1]})
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert program.m.value == [1]
    inner.__exit__(None, None, None)
    assert (program.a.value, program.m.value) == ("s", [])


async def test_a_task_that_outlives_the_block_stays_in_it(program):
    """It reads and writes the overlay, never the live values, also after blocks of its own."""
    go = asyncio.Event()

    async def straggler():
        await go.wait()
        with using(program.inner, {"x": "own"}):
            assert program.a.value == "A"
        program.m.assign([1])
        return program.a.value

    with using(program, {"a": "A"}) as overlay:
        task = asyncio.create_task(straggler())
        await asyncio.sleep(0)
    go.set()
    assert await task == "A"
    assert program.m.value == []
    assert overlay.changes.to_json() == {"m": [1]}


def test_an_overlay_of_one_leaf_is_small_in_a_large_program():
    """Entering takes no memory, and so no time, for each Variable that is not overlaid."""
    program = sm.Module()
    program.parts = [Param("x") for _ in range(2_000)]
    sm.run(sm.build(program))
    with using(program, {"parts/0": "a"}):  # lists the Variables
        pass
    tracemalloc.start()
    try:
        with using(program, {"parts/0": "b"}):
            assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


def test_variables_made_inside_the_block_are_live(program):
    """A Variable that came to the program later is read and written as without the block."""
    with using(program, {"a": "A"}) as overlay:
        program.inner.entries["late"] = late = Param("late")
        late.assign("written")
    assert (late.value, late.version) == ("written", 1)
    assert overlay.state.to_json() == {"a": "A"}


NAMES = ("a", "b", "c", "d")
INNER = ("c", "d")
VALUES = st.sampled_from(["x", "y", "z"])
STEPS = st.one_of(
    st.tuples(st.just("enter"), st.booleans(), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)),
    st.tuples(st.just("leave")),
    st.tuples(st.just("write"), st.sampled_from(NAMES), VALUES),
    st.tuples(st.just("fork")),
)


class Task:
    """A context with the overlays that are open in it, and what the model says of them."""

    def __init__(self, context, layers, own=()):
        self.context = context
        self.layers = list(layers)
        self.own = list(own)

    def expected(self, name, live):
        """What a read gives: the innermost layer that knows the name, else the live value."""
        for _, given, _, _ in reversed(self.layers):
            if name in given:
                return given[name]
        return live[name]


@hypothesis.given(st.lists(st.tuples(st.integers(0, 5), STEPS), max_size=40))
def test_overlays_do_what_the_model_says(script):
    """Each task reads its innermost layer; children share the layers they were born in; live values move last."""
    inner = Store(c=Param("live"), d=Param("live"))
    program = Store(a=Param("live"), b=Param("live"), inner=inner)
    variables = {"a": program.a, "b": program.b, "c": inner.c, "d": inner.d}
    live = dict.fromkeys(NAMES, "live")
    tasks = [Task(contextvars.copy_context(), [])]
    for number, (what, *arguments) in script:
        task = tasks[number % len(tasks)]
        if what == "enter":
            whole, given = arguments
            given = {name: value for name, value in given.items() if whole or name in INNER}
            paths = {f"inner/{n}" if whole and n in INNER else n: v for n, v in given.items()}
            overlay = using(program if whole else inner, paths)
            task.context.run(overlay.__enter__)
            layer = overlay, dict(given), set(), NAMES if whole else INNER
            task.layers.append(layer)
            task.own.append(layer)
        elif what == "leave" and task.own:
            task.context.run(task.own[-1][0].__exit__, None, None, None)
            task.layers.remove(task.own.pop())
        elif what == "write":
            name, value = arguments
            task.context.run(variables[name].assign, value)
            for _, given, written, members in reversed(task.layers):
                if name in members:
                    given[name] = value
                    written.add(name)
                    break
            else:
                live[name] = value
        elif what == "fork":
            tasks.append(Task(task.context.run(contextvars.copy_context), task.layers))
        for each in tasks:
            for name in NAMES:
                assert each.context.run(lambda n: variables[n].value, name) == each.expected(name, live)
            for overlay, given, written, _ in each.own:
                assert {path[-1]: leaf.value for path, leaf in overlay.state.items()} == given
                assert {path[-1] for path in overlay.changes} == written
    for task in tasks:
        seen = task.context.run(state, program)
        assert {path[-1]: leaf.value for path, leaf in seen.items()} == {n: task.expected(n, live) for n in NAMES}
    for overlay, given, _, members in tasks[0].own:
        update(program if members is NAMES else inner, overlay.state)
        assert all(variables[name].value == value for name, value in given.items())

"""Overlays against a model of them: any interleaving of tasks, blocks, reads and writes."""

import contextvars

import hypothesis
from hypothesis import strategies as st

from synmod.tree import Param, state, update, using
from tests.tree.stores import Store

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

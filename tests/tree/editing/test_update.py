"""update: atomic, validated, aliases, extra and new paths, metadata, hooks."""

import pytest

import synmod as sm
from synmod.errors import SchemaError, StateError, StateSchemaError
from synmod.tree import Memory, Param, state, update, using
from tests.tree.stores import Store


@pytest.fixture
def program():
    """A shared Variable, a list, a dict, a tuple, a static."""
    shared = Param("s")
    return Store(
        a=shared, b=shared, m=Memory([]), l=[Param(0), Param(1)], d={"k": Param("k")}, t=(Param("t"),), style="x"
    )


def test_a_step_of_another_type_is_shown_as_it_was_given():
    """So that a path is not told to mean itself."""
    with pytest.raises(StateError, match=r"\('d', '1'\) Did you mean 'd/1'"):
        update({"d": {1: Param("x")}}, {("d", "1"): "y"})


def test_changed_paths_come_back_in_definition_order(program):
    """Equal values are not assigned; missing ones are left alone; an alias gives its canonical path."""
    assert update(program, {"m": [1], "b": "new", "l": {"0": 0}}) == (("a",), ("m",))
    assert (program.a.value, program.m.value, program.l[0].version) == ("new", [1], 0)
    assert update(program, state(program)) == ()
    assert update(program) == ()
    assert update(program, {"l/0": 0}, {"l/1": 2}) == (("l", 1),)


def test_numbers_of_another_kind_are_a_change():
    """1 and 1.0 are not equal."""
    variable = Param(1, schema={"type": "number"})
    assert update(variable, {"": 1.0}) == ((),)
    assert type(variable.value) is float


def test_nothing_is_written_unless_everything_fits(program):
    """Unknown, static, subgraph, leaf, range, schema and conflict are found before the first write."""
    before = state(program)
    faults = [
        ({"nope": 1}, "Unknown keys: 'nope'"),
        ({"l/7": 1}, "'l/7' .*out of range: 2"),
        ({"l": 3}, "Expected a subgraph at 'l'"),
        ({"style": "y"}, "Trying to update a non-Variable: 'style'"),
        ({"a/deep": 1}, "Expected a leaf at 'a'"),
        ({"m": "no list"}, "m#"),
        ({"a": "x", "b": "y"}, "'a' and 'b'.*two different values"),
        ({"a": Param("x")}, "Variable"),
    ]
    for fault, phrase in faults:
        with pytest.raises(StateError, match=phrase):
            update(program, {"l/0": 5, "d/k": "new"}, fault)
        assert state(program) == before
    assert program.l[0].version == 0
    with pytest.raises(StateSchemaError) as caught:
        update(program, {"m": 1, "l": [True, None]})
    assert [problem.pointer for problem in caught.value.errors] == ["m#", "l/0#", "l/1#"]


def test_a_refusing_class_stops_the_whole_update(program):
    """`on_assign` runs before the first write."""

    class Picky(Param):
        def on_assign(self, old, new):
            raise RuntimeError("never")

    program.entries["z"] = Picky("z")
    with pytest.raises(RuntimeError):
        update(program, {"a": "new", "z": "new"})
    assert program.a.value == "s"


def test_what_classes_make_of_values_is_checked_too(program):
    """`on_assign` may give another value: each that misses its schema is named, and nothing is written."""

    class Odd(Param):
        def on_assign(self, old, new):
            if new == "no":
                raise SchemaError("not that")
            return 5

    program.entries |= {"y": Odd("y"), "z": Odd("z")}
    with pytest.raises(StateSchemaError, match=r"(?s)'y': .*wanted string, got 5.*'z': not that") as caught:
        update(program, {"a": "new", "y": "new", "z": "no"})
    assert [problem.pointer for problem in caught.value.errors] == ["y#", "z#"]
    assert (program.a.value, program.y.value) == ("s", "y")


def test_extra_paths_may_be_skipped(program):
    """`allow_extra` skips what nobody knows, indices included; other faults stay."""
    assert update(program, {"a": "new", "nope": 1, "l/9": 2, "no/where": 3}, allow_extra=True) == (("a",),)
    with pytest.raises(StateError, match="style"):
        update(program, {"style": 1}, allow_extra=True)


def test_live_metadata_stays_unless_asked(program):
    """`metadata=True` takes that of the States, also where the value is equal."""
    goal = state({"a": program.a.replace(tag="t")})
    assert update(program, goal) == ()
    assert program.a.metadata == {}
    assert update(program, goal, metadata=True) == (("a",),)
    assert program.a.metadata == {"tag": "t"}
    assert program.a.version == 0


def test_hooks_hear_of_each_change(program):
    """One event a changed Variable, after all is written."""

    class Listener(sm.Hook):
        def on_variable_assign(self, event):
            seen.append((event.new, program.a.value, program.m.value))

    seen = []
    with sm.hooks(Listener()):
        update(program, {"a": "A", "m": [1], "d/k": "k"})
    assert seen == [("A", "A", [1]), ([1], "A", [1])]


def test_inside_an_overlay_the_overlay_is_written(program):
    """Live values do not change."""
    with using(program, {}) as overlay:
        assert update(program, {"a": "A"}) == (("a",),)
        assert overlay.changes.to_json() == {"a": "A"}
    assert program.a.value == "s"
    assert update(program, overlay.state) == (("a",),)
    assert program.a.value == "A"


def test_steps_may_need_escapes():
    """Raw keys, escaped keys and nested keys all reach the Variable."""
    program = {"x/y": Param(0), "~": {"#": Param(0)}, 7: Param(0)}
    assert update(program, {"x~1y": 1, "~0/~2": 1, "7": 1}) == (("x/y",), ("~", "#"), (7,))
    assert update(program, {"x/y": 2, "~": {"#": 2}, 7: 2}) == (("x/y",), ("~", "#"), (7,))
    assert update(program, {("x/y",): 3, ("~", "#"): 3, (7,): 3}) == (("x/y",), ("~", "#"), (7,))
    with pytest.raises(StateError, match="'7'"):
        update(program, {("7",): 4})

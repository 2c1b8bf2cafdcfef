"""update, set_attributes, set_metadata and pop."""

import pytest

import synmod as sm
from synmod.errors import SchemaError, StateError, StateSchemaError
from synmod.tree import Memory, Param, state, update, using
from tests.module.models import Answer, Query
from tests.tree.parts import Tree
from tests.tree.stores import Store


@pytest.fixture
def program():
    """A shared Variable, a list, a dict, a tuple, a static."""
    shared = Param("s")
    return Store(
        a=shared, b=shared, m=Memory([]), l=[Param(0), Param(1)], d={"k": Param("k")}, t=(Param("t"),), style="x"
    )


def test_changed_paths_come_back_in_definition_order(program):
    """Equal values are not assigned; missing ones are left alone; an alias gives its canonical path."""
    assert update(program, {"m": [1], "b": "new", "l/0": 0}) == (("a",), ("m",))
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
        ({"l/7": 1}, "'l/7' .*out of range: length 2"),
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
        update(program, {"m": 1, "l/0": True, "l/1": None})
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
    """Path texts and tuples reach the Variable."""
    program = {"x/y": Param(0), "~": {"#": Param(0)}, 7: Param(0)}
    assert update(program, {"x~1y": 1, "~0/~2": 1, "7": 1}) == (("x/y",), ("~", "#"), (7,))
    assert update(program, {("x/y",): 3, ("~", "#"): 3, (7,): 3}) == (("x/y",), ("~", "#"), (7,))
    assert update(program, {("7",): 4}) == ((7,),)


@pytest.fixture
def tree():
    return Tree()


def test_set_attributes_sets_what_matching_nodes_have(tree):
    """On every node that has it, by function and by method."""
    sm.set_attributes(tree, limit=5)
    assert (tree.a.limit, tree.b.limit) == (5, 5)
    tree.set_attributes(sm.PathIn("b"), limit=6)
    assert (tree.a.limit, tree.b.limit) == (5, 6)
    assert not hasattr(tree, "limit")
    program = sm.Generator(Answer, temperature=1.0)
    before = sm.graphdef(program)
    program.set_attributes(sm.Generator, temperature=0.25, top_p=0.5)
    assert program.get_config()["temperature"] == 0.25
    assert sm.graphdef(program) != before
    assert sm.clone(program).temperature == 0.25
    loaded = sm.loads(sm.dumps(program))
    assert (loaded.temperature, loaded.top_p) == (0.25, 0.5)


def test_set_attributes_names_what_is_nowhere(tree):
    """A GraphError unless the flag is off; nothing is set."""
    with pytest.raises(sm.GraphError, match=r"at least one instance with the attribute 'limits'.*Did you mean 'limit'"):
        sm.set_attributes(tree, limits=5, limit=9)
    assert tree.a.limit == 1
    sm.set_attributes(tree, limits=5, limit=9, raise_if_not_found=False)
    assert tree.a.limit == 9
    assert not hasattr(tree.a, "limits")


def test_set_attributes_leaves_structure_alone(tree):
    """An attribute that holds a node or Variable, or a value that does, is a GraphError with every path."""
    for name in ("prompt", "more", "a"):
        with pytest.raises(sm.GraphError, match=name):
            sm.set_attributes(tree, **{name: 1, "limit": 8})
    with pytest.raises(sm.GraphError, match="limit"):
        sm.set_attributes(tree, limit=[sm.Param(1)])
    assert tree.a.limit == 1


async def test_set_attributes_works_after_build(tree):
    """Plain attributes stay open."""
    await sm.build(tree, Query)
    tree.set_attributes(limit=3)
    assert tree.b.limit == 3


def test_set_metadata_changes_matching_variables(tree):
    """And no value; the changed paths come back."""
    assert sm.set_metadata(tree, only=sm.Param, trainable=False, tag="t") == (
        ("more", "again", "prompt"),
        ("b", "prompt"),
    )
    assert not tree.a.prompt.trainable
    assert tree.a.prompt.metadata["tag"] == "t"
    assert tree.note.metadata["tag"] == "log"
    assert tree.a.prompt.version == 0
    assert sm.set_metadata(tree, only=sm.Param, trainable=False, tag="t") == ()
    with pytest.raises(sm.BadNameError):
        sm.set_metadata(tree, name="1a")
    with pytest.raises(sm.DataError):
        sm.set_metadata(tree, tag=object())
    assert {v.metadata.get("tag") for v in tree.variables} == {"t", "log", None}


def test_pop_takes_variables_from_all_their_paths(tree):
    """Canonical paths in the State; a second pop is empty."""
    tree.alias = tree.note
    gone = sm.pop(tree, (sm.Memory, sm.Stat))
    assert gone.to_json() == {"note": "note", "more/own": 0}
    assert not hasattr(tree, "note")
    assert not hasattr(tree, "alias")
    assert list(tree.more) == ["again"]
    assert len(sm.pop(tree, sm.Memory)) == 0


def test_pop_takes_nothing_from_fixed_containers():
    """A GraphError with every path, and nothing is removed."""
    shared = sm.Stat(0)
    root = Store(a=shared, rows=[shared, sm.Stat(1)], pair=(sm.Stat(2),))
    with pytest.raises(sm.GraphError, match=r"Cannot pop key 'rows/0', 'rows/1', 'pair/0'"):
        sm.pop(root, sm.Stat)
    assert root.a is shared
    assert len(sm.state(root)) == 4 - 1
    with pytest.raises(sm.GraphError, match="Cannot pop key"):
        sm.pop(sm.Stat(0), ...)


def test_pop_takes_from_a_dict_that_stands_in_two_places():
    """Once, and both have lost it."""
    held = {"x": sm.Param(1), "y": 2}
    root = Store(a=held, b=held, c=[held])
    assert sm.pop(root, ...).to_json() == {"a/x": 1}
    assert held == {"y": 2}


async def test_pop_seals_anew(tree):
    """The version of the module that lost something goes up; it stays removed after a load."""
    await sm.build(tree, Query)
    sm.pop(tree, "log")
    assert (tree.version, tree.a.version) == (1, 0)
    await tree(Query(question="q"))
    assert not hasattr(sm.loads(sm.dumps(tree)), "note")
    sm.pop(tree, sm.Stat)
    assert tree.version == 2
    await tree(Query(question="q"))
    with pytest.raises(sm.SealedError):
        tree.more = {}

"""State: lookup, filters, algebra, JSON, diff; VariableState."""

import pytest

from synmod.errors import ArgumentError, DataError, FieldError, SchemaError, StateError, StateSchemaError
from synmod.tree import Memory, Param, State, VariableState, graphdef, split, state
from tests.tree.stores import Store


@pytest.fixture
def program():
    """Layers, an odd key, a shared Variable."""
    shared = Param("s")
    return Store(
        a=shared, b=shared, memory=Memory([]), layers=[Store(prompt=Param("p0")), Store(prompt=Param("p1"))],
        d={1: Param("one"), "x/y": Param("slash")},
    )  # fmt: skip


def test_iterates_over_leaf_paths_in_definition_order(program):
    """`len` counts leaves; a shared Variable has one entry, at its canonical path."""
    values = state(program)
    assert list(values) == [
        ("a",), ("memory",), ("d", 1), ("d", "x/y"), ("layers", 0, "prompt"), ("layers", 1, "prompt"),
    ]  # fmt: skip
    assert len(values) == 6
    assert "b" not in values
    assert "a" in values
    assert next(iter(values.items())) == (("a",), values["a"])


def test_lookup_takes_tuples_texts_and_keys(program):
    """A leaf or the State below; attributes for identifiers; a step counts as its text."""
    values = state(program)
    assert values[("layers", 0, "prompt")].value == "p0"
    assert values["layers/0/prompt"].value == "p0"
    assert values["layers"][0]["prompt"].value == "p0"
    assert values.layers[1].prompt.value == "p1"
    assert values["d"][1].value == "one"
    assert values["d/1"].value == "one"
    assert values["d/x~1y"].value == "slash"
    assert values["d"]["x/y"].value == "slash"
    assert list(values["layers"]) == [(0, "prompt"), (1, "prompt")]
    assert values["d", "1"].value == "one"
    assert () in values
    assert 3.5 not in values
    for missing in ("layer", ("layers", 7), 9, "layers/0/promt"):
        with pytest.raises(KeyError):
            values[missing]
    with pytest.raises(FieldError, match="Did you mean 'layers/0/prompt'"):
        values["layers/0/promt"]
    with pytest.raises(AttributeError):
        _ = values.nothing


def test_nothing_changes_a_state(program):
    """Neither attributes nor items can be set; `flat` is a copy."""
    values = state(program)
    with pytest.raises(AttributeError, match="frozen"):
        values.a = 1
    with pytest.raises(TypeError):
        values["a"] = 1
    values.flat().clear()
    assert len(values) == 6
    with pytest.raises(AttributeError, match="frozen"):
        values["a"].value = 3
    with pytest.raises(AttributeError, match="frozen"):
        del values["a"].value


def test_flat_and_back(program):
    """`from_flat(flat())` is the same State."""
    values = state(program)
    assert State.from_flat(values.flat()) == values
    assert State(values.flat()) == values
    assert State() == State.from_flat({})
    with pytest.raises(StateError, match="VariableState"):
        State.from_flat({("a",): "raw"})
    with pytest.raises(StateError, match="below the leaf 'a'"):
        State.from_flat({("a",): values["a"], ("a", "b"): values["a"]})
    with pytest.raises(StateError, match="is not a path"):
        State.from_flat({("a", True): values["a"]})


def test_filter_drops_and_split_must_be_exhaustive(program):
    """`filter` takes one; `split` gives a State for one filter, a tuple for more, and the first match takes a leaf."""
    values = state(program)
    assert set(values.filter(Memory)) == {("memory",)}
    params, memory = values.split(Param, Memory)
    assert (len(params), len(memory)) == (5, 1)
    everything, rest = values.split(Param, ...)
    assert list(rest) == [("memory",)]
    assert everything | rest == values
    assert values.split(...) == values
    with pytest.raises(StateError, match=r"Non-exhaustive.*'memory'.*\.\.\."):
        values.split(Param)
    with pytest.raises(StateError, match=r"Filter 0.*can only be used as the last"):
        values.split(..., Param)


def test_map_and_replace_validate(program):
    """Every miss is listed with path and pointer; nothing is changed."""
    values = state(program)
    assert values.filter(Param).map(lambda path, leaf: leaf.value.upper())["a"].value == "S"
    with pytest.raises(StateSchemaError, match=r"(?s)'?a#(.*)layers/1/prompt#") as caught:
        values.filter(Param).map(lambda path, leaf: 3)
    assert len(caught.value.errors) == 5
    assert isinstance(caught.value, SchemaError)
    assert values.replace({"layers/0/prompt": "new", "d/1": "uno"}).to_json()["layers/0/prompt"] == "new"
    with pytest.raises(StateError, match="'nope'"):
        values.replace({"nope": 1})
    with pytest.raises(StateError, match="'b'"):
        values.replace({"b": "alias"})
    with pytest.raises(StateSchemaError, match="memory"):
        values.replace({"memory": "no list"})
    with pytest.raises(StateSchemaError, match="memory"):
        values.replace({"memory": [object()]})
    with pytest.raises(ArgumentError):
        values.replace(3)


def test_algebra():
    """`|`: later wins; `-`: what is not in the other."""
    five = state([Param(n) for n in range(5)])
    four = state([Param(n + 10) for n in range(4)])
    assert list(five - four) == [(4,)]
    assert len(four - five) == 0
    assert (five | four).to_json() == {"0": 10, "1": 11, "2": 12, "3": 13, "4": 4}
    with pytest.raises(TypeError):
        _ = five | {"0": 1}


def test_json_is_by_path_text(program):
    """Types and key types come from the graph; aliases are accepted, in any order."""
    shape, values = split(program)
    json = values.to_json()
    assert json["d/x~1y"] == "slash"
    for each in (json, dict(reversed(json.items()))):
        again = State.from_json(shape, each)
        assert again == values
        assert list(again) == list(values)
    assert State.from_json(shape, {"d/1": "uno"})[("d", 1)].value == "uno"
    assert State.from_json(shape, {"b": "alias"})["a"].value == "alias"
    with pytest.raises(StateError, match="Unknown keys: 'nope'"):
        State.from_json(shape, {"nope": 1})
    with pytest.raises(StateSchemaError, match="layers/1/prompt#"):
        State.from_json(shape, {"layers/0/prompt": "x", "layers/1/prompt": 3})


def test_a_bare_variable_has_the_empty_path():
    """As a root its JSON has one key, the empty text."""
    shape, values = split(Param("x"))
    assert values.to_json() == {"": "x"}
    assert State.from_json(shape, {"": "y"})[()].value == "y"
    with pytest.raises(ArgumentError):
        State.from_json(shape, "z")


def test_diff_has_old_and_new_by_path(program):
    """None where the path is absent; empty for equal States."""
    a = state(program)
    b = a.replace({"a": "t"}) - a.filter(Memory)
    diff = a.diff(b)
    assert list(diff) == ["a", "memory"]
    assert (diff["a"][0].value, diff["a"][1].value) == ("s", "t")
    assert diff["memory"] == (a["memory"], None)
    assert b.diff(a)["memory"] == (None, a["memory"])
    assert a.diff(a) == {}


def test_equal_states_have_equal_fingerprints(program):
    """Whatever the order; numbers of other kinds differ, so do metadata."""
    values = state(program)
    assert values.fingerprint == state(program).fingerprint
    one, two = (State.from_flat({("a",): VariableState(Param, x)}) for x in (1, 1.0))
    assert one != two
    assert one.fingerprint != two.fingerprint
    assert one != State.from_flat({("a",): VariableState(Param, 1, metadata={"tag": "t"})})
    assert values != 3


def test_a_leaf_is_always_valid():
    """A VariableState is validated when it is made by hand."""
    leaf = VariableState(Memory, {"a": 1}, {"type": "object"}, {"name": "n", "tag": [1]})
    assert (leaf.trainable, leaf.name, leaf.description, leaf.metadata["tag"]) == (False, "n", None, [1])
    assert leaf.to_variable().metadata == {"tag": [1]}
    assert leaf == VariableState(Memory, {"a": 1}, {"type": "object"}, {"name": "n", "tag": [1]})
    assert leaf != VariableState(Memory, {"a": 1.0}, {"type": "object"}, {"name": "n", "tag": [1]})
    with pytest.raises(SchemaError):
        VariableState(Param, 3, {"type": "string"})
    with pytest.raises(DataError):
        VariableState(Param, object())
    with pytest.raises(ArgumentError):
        VariableState(int, 3)


def test_a_graph_lists_as_the_program(program):
    """Keys of the JSON are in definition order."""
    assert list(state(program).to_json()) == [
        "a", "memory", "d/1", "d/x~1y", "layers/0/prompt", "layers/1/prompt",
    ]  # fmt: skip
    assert graphdef(program) == graphdef(program)


LEAF = VariableState(Param, 1)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({("a",): LEAF}, {("a", "b"): LEAF}, "'a/b' is below the leaf 'a'"),
        ({("a", 0): LEAF}, {("a", "0"): LEAF}, "have the same path text 'a/0'"),
        ({("1",): LEAF}, {(1, "x"): LEAF, (1, "y"): LEAF}, "'1/x' is below the leaf '1'; '1/y' is"),
    ],
)
def test_no_state_has_leaves_that_no_program_can_have(one, other, message):
    """However it comes about: put together by hand or by `|`, the error lists the paths."""
    a, b = State.from_flat(one), State.from_flat(other)
    for make in (lambda: State.from_flat({**one, **other}), lambda: a | b):
        with pytest.raises(StateError, match=message):
            make()


@pytest.mark.parametrize("path", [5, ("",), (True,), "a//b", None, ["a"]])
def test_what_is_no_path_is_refused(path):
    """A path is a tuple of str and int, or its text."""
    with pytest.raises((StateError, TypeError), match=r"is not a path|unhashable"):
        State.from_flat({path: LEAF})

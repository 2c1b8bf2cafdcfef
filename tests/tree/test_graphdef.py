"""GraphDef: equality, hash, fingerprint, diff, repr; statics by their encoding."""

import datetime as dt
import decimal
import enum
import pickle
import subprocess
import sys
import uuid

import optree
import pytest

import synmod as sm
from synmod.errors import GraphError
from synmod.skip import Namespace, skippable
from synmod.tree import GraphCodec, GraphDef, Param, clone, graphdef, split, static
from tests.tree.stores import Handle, Pair, Part, Spot, Store


class Colour(enum.Enum):
    """Two members."""

    RED = 1
    BLUE = 2


class Answer(sm.DataModel):
    """A data model as static."""

    text: str = ""


def helper():
    """A plain function that is not registered."""


@sm.register(package="tests_tree")
def known_function():
    """A registered function."""


def test_equality_is_structural():
    """Equal after a value changed, and for another order of assignment; unequal after a static or schema changed."""
    one = Store(a=Param("x"), b=Store(c=Param(1)), style="brief")
    two = Store(style="brief", b=Store(c=Param(1)), a=Param("x"))
    assert graphdef(one) == graphdef(two)
    assert hash(graphdef(one)) == hash(graphdef(two))
    assert graphdef(one).fingerprint == graphdef(two).fingerprint
    before = graphdef(one)
    one.a.assign("y")
    assert graphdef(one) == before
    one.entries["style"] = "long"
    assert graphdef(one) != before
    assert graphdef(one).fingerprint != before.fingerprint
    assert graphdef(Store(a=Param(1))) != graphdef(Store(a=Param("x")))
    assert before != "graph"


def test_lists_changed_in_place_show_at_their_path():
    """Plain JSON containers are recorded by value."""
    store = Store(steps=["a", "b"], options={"k": 1})
    before = graphdef(store)
    store.steps[1] = "c"
    store.options["new"] = 2
    assert before != graphdef(store)
    assert before.diff(graphdef(store)) == (("steps", 1), ("options", "new"))
    assert before.diff(before) == ()


def test_diff_names_the_changed_paths():
    """Nodes by metadata, Variables by schema or metadata, what came and went by its top, sharing."""
    shared = Param("x")
    one = Store(a=Store(label="l", v=Param(1)), b=shared, c=shared)
    two = Store(a=Store(label="m", v=Param("1")), b=shared, c=Param("x"), d=Store(e=Store(f=Param(1))))
    assert set(graphdef(one).diff(graphdef(two))) == {("a",), ("a", "v"), ("c",), ("d",)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: None, lambda: True, lambda: 1, lambda: 1.0, lambda: -0.0, lambda: "text", lambda: 10**30, lambda: b"x",
        lambda: Colour.RED, lambda: Answer, lambda: Answer(text="x"), lambda: Store, lambda: known_function,
        lambda: dt.date(2024, 1, 2), lambda: dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), lambda: dt.timedelta(1),
        lambda: decimal.Decimal("1.10"), lambda: uuid.UUID(int=1), lambda: {1, 2}, lambda: frozenset("ab"),
        lambda: {7: 1, "": 2}, lambda: {7: 1, "7": [{"7": 2, 7: None}]}, lambda: [{7: 1, "7": 2}],
        lambda: Pair(1, "x"), lambda: Spot(1, [2]), lambda: Answer(text="x").to_json_data_model(), lambda: ValueError,
    ],
)  # fmt: skip
def test_encodable_statics_compare_by_content(make):
    """Made twice they are equal, and all of them are told apart."""
    one, two = graphdef(Store(x=make())), graphdef(Store(x=make()))
    assert one == two
    assert hash(one) == hash(two)
    assert one.fingerprint == two.fingerprint


def test_numbers_of_other_kinds_are_other_statics():
    """1, 1.0 and True stay apart; so do 0.0 and -0.0."""
    prints = {graphdef(Store(x=x)).fingerprint for x in (1, 1.0, True, 0.0, -0.0, "1", None)}
    assert len(prints) == 7


def test_other_functions_and_handles_compare_by_identity():
    """They hinder neither split nor comparison; a fingerprint names path, type and remedies."""
    handle = object()
    one = graphdef(Store(deep=[Store(client=handle, fn=helper)]))
    assert one == graphdef(Store(deep=[Store(client=handle, fn=helper)]))
    assert one != graphdef(Store(deep=[Store(client=object(), fn=helper)]))
    assert isinstance(hash(one), int)
    with pytest.raises(GraphError, match=r"'deep/0/client'.*object(.|\n)*'deep/0/fn'.*(.|\n)*static\(x\).*get_config"):
        _ = one.fingerprint


def test_what_is_neither_encodable_nor_hashable_counts_by_identity():
    """For equality and hash."""
    blob = bytearray(b"x")
    one = graphdef(Store(blob=blob))
    assert one == graphdef(Store(blob=blob))
    assert one != graphdef(Store(blob=bytearray(b"x")))
    assert hash(one) == hash(graphdef(Store(blob=blob)))


def test_static_is_in_no_fingerprint():
    """Whatever is inside."""
    one, two = (graphdef(Store(x=static(object()))) for _ in range(2))
    assert one == two
    assert one.fingerprint == two.fingerprint


def test_references_in_metadata_count_by_position():
    """They are equal across clones, and other positions differ; an object outside of the graph counts by identity."""

    def make(position):
        children = Part(), Part()
        return Part(children[position], "brief", one=children[0], two=children[1])

    assert graphdef(make(0)) == graphdef(make(0))
    assert graphdef(make(0)).fingerprint == graphdef(make(0)).fingerprint
    assert graphdef(make(0)) != graphdef(make(1))
    outside = Part()
    assert graphdef(Part(outside)) == graphdef(Part(outside))
    assert graphdef(Part(outside)) != graphdef(Part(Part()))


def test_records_are_readable():
    """Nodes and Variables in definition order, with types, indices, schemas and metadata."""
    handle = Handle()
    shape = graphdef(Store(a=Param("x", tag="t"), b=Store(label="l"), m=handle))
    assert [(each.type, each.index) for each in shape.nodes] == [(Store, 0), (Store, 2), (Handle, 3)]
    (leaf,) = shape.variables
    assert (leaf.type, leaf.index, leaf.schema) == (Param, 1, {"type": "string"})
    assert leaf.metadata == {"trainable": True, "tag": "t"}
    assert shape.nodes[1].metadata == "l"
    assert dict(shape.leaf_paths) == {("a",): 1}
    with pytest.raises(AttributeError, match="root"):
        shape.root = None


def test_repr_is_one_line():
    """What stands at the root, and how much is in it."""
    store = Store(a=Param("x"), b=Store(), l=[1])
    assert repr(graphdef(store)) == "GraphDef(Store, 2 nodes, 1 variables)"


def test_pickles_and_copies():
    """A pickled definition is equal."""
    shape, _ = split(Store(a=Param("x", tag="t"), l=[1, {"k": 2}], s=Spot(1)))
    assert pickle.loads(pickle.dumps(shape)) == shape


@pytest.mark.slow
def test_fingerprints_are_equal_in_every_process():
    """Another interpreter with another hash seed gives the same digest."""
    code = (
        "from tests.tree.stores import Store; from synmod.tree import Param, graphdef, state\n"
        "s = Store(a=Param('x', tag='t'), l=[1, {'k': 2}], f={1, 2, 'a'}, c=Store, d=frozenset('abc'))\n"
        "print(graphdef(s).fingerprint, state(s).fingerprint)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(texts) == 1


def test_json_goes_through_the_codec(monkeypatch):
    """The functions that saving supplies do the work."""
    shape = graphdef(Store())
    codec = GraphCodec(lambda graph: {"graph": graph is shape}, lambda *args: args)
    monkeypatch.setattr(GraphCodec, "instance", codec)
    assert shape.to_json() == {"graph": True}
    assert GraphDef.from_json({}, custom_objects={"a": 1}) == ({}, None, {"a": 1})


def test_registered_containers_compare_by_class_parts_and_metadata():
    """The metadata of `flatten` counts."""

    class Bag:
        def __init__(self, kind, *items):
            self.kind, self.items = kind, items

    optree.register_pytree_node(
        Bag, lambda x: (x.items, x.kind), lambda kind, items: Bag(kind, *items), namespace="synmod"
    )
    assert graphdef(Store(x=Bag("a", 1))) == graphdef(Store(x=Bag("a", 1)))
    assert graphdef(Store(x=Bag("a", 1))) != graphdef(Store(x=Bag("b", 1)))


def test_an_attribute_kept_out_by_static_is_in_no_fingerprint():
    """So a graph equals what its JSON gives back, which cannot have it."""

    @sm.register(package="tests_tree")
    class Client(sm.Module):
        pass

    client = Client()
    before = graphdef(client)
    client.connection = static(object())
    after = graphdef(client)
    assert (after == before, after.fingerprint == before.fingerprint, after.diff(before)) == (True, True, ())
    assert GraphDef.from_json(after.to_json()) == after


def test_a_data_model_is_recorded_by_its_json():
    """Changing one in place shows as a difference at its path, as for a plain dict; copies hold the very object."""
    program = Store(answer=Answer(text="a"), plain={"text": "a"}, rows=[Answer(text="a")])
    before = graphdef(program)
    for answer in (program.answer, program.rows[0]):
        answer.text = "b"
    assert before.diff(graphdef(program)) == (("answer",), ("rows", 0))
    program.plain["text"] = "b"
    assert before.diff(graphdef(program)) == (("answer",), ("plain", "text"), ("rows", 0))
    assert clone(program).answer is program.answer


@pytest.mark.parametrize("shared", [lambda: Param("x"), lambda: Store(prompt=Param("x"))])
def test_a_diff_names_the_alias_that_was_taken_away(shared):
    """Whatever the keys are called: the canonical path stays what it is."""
    tied, untied = Store(encoder=shared()), Store(encoder=shared())
    tied.entries["decoder"], untied.entries["decoder"] = tied.encoder, shared()
    assert graphdef(tied).diff(graphdef(untied)) == (("decoder",),)
    assert graphdef(untied).diff(graphdef(tied))[0] == ("decoder",)


def test_a_diff_names_the_one_place_that_changed():
    """References and counts elsewhere are what they were, though all numbers have shifted."""

    @sm.register(package="tests_tree")
    class Counted(sm.Module):
        def __init__(self, rows=(), options=None):
            super().__init__()

    inner = Param("x")
    program = Store(own=Counted([1, 2], {"k": 1}), list=[inner, Counted([inner])], last=Store(again=inner))
    program.last.entries["up"] = program
    before = graphdef(program)
    program.own.added = Param("y")
    assert before.diff(graphdef(program)) == (("own", "added"),)
    assert graphdef(program).diff(before) == (("own", "added"),)


def test_a_diff_is_in_definition_order():
    """As everything that lists paths."""
    assert graphdef(Store(b=1, a=2, c=3)).diff(graphdef(Store(c=0, a=0, b=0))) == (("b",), ("a",), ("c",))


def test_what_only_metadata_mentions_differs_nowhere_else():
    """Namespaces of skip connections are told apart by their order, not by what else there is."""

    @skippable(stash=["note"])
    class Stage(sm.Module):
        pass

    def isolated():
        stages = [Stage(), Stage()]
        for stage in stages:
            stage.isolate(Namespace())
        return stages

    before, program = graphdef(isolated()), isolated()
    program[0].added = Param("x")
    assert before.diff(graphdef(program)) == ((0, "added"),)


def test_a_fingerprint_with_words_for_what_has_none():
    """Where a static has no text, the caller tells it; equal words, equal fingerprints."""
    holder = sm.Lambda(lambda inputs: inputs)
    graph = sm.graphdef(holder)
    with pytest.raises(sm.GraphError):
        _ = graph.fingerprint
    assert graph.fingerprint_with(lambda x: "a") == graph.fingerprint_with(lambda x: "a")
    assert graph.fingerprint_with(lambda x: "a") != graph.fingerprint_with(lambda x: "b")
    assert sm.graphdef(sm.Identity()).fingerprint_with(repr) == sm.graphdef(sm.Identity()).fingerprint

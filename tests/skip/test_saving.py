"""Namespaces in copies and files: by position, renewed consistently, equal in two builds."""

import copy
import json
import pickle

import pytest

import synmod as sm
from synmod.skip import Namespace, skippable, verify_skippables
from tests.skip.parts import QUERY, Cite, Retrieve

for _cls in (Retrieve, Cite):
    sm.register(package="tests_skip")(_cls)


@sm.register(package="tests_skip")
@skippable(pop=["doc"])
class Given(sm.Module):
    """Is given its Namespace, and keeps it."""

    def __init__(self, namespace):
        super().__init__()
        self.namespace = namespace
        self.isolate(namespace)

    async def call(self, inputs):
        from synmod.skip import pop

        return inputs + (pop("doc")).prefix("given")


def crossing():
    """Two crossing pairs in two Namespaces."""
    one, two = Namespace("one"), Namespace()
    return sm.Sequential(
        [Retrieve().isolate(one), Retrieve().isolate(two), Given(two), Cite().isolate(one)], name="crossing"
    )


def spaces(program):
    """The Namespace of each member."""
    return [member.namespaced("doc")[0] for member in program.members]


WAYS = {
    "clone": lambda program: program.clone(),
    "deepcopy": copy.deepcopy,
    "merge": lambda program: sm.merge(*sm.split(program)),
    "pickle": lambda program: pickle.loads(pickle.dumps(program)),
    "file": lambda program: sm.loads(sm.dumps(program)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("built", [False, True])
async def test_a_copy_has_namespaces_of_its_own(way, built):
    """New ones, alike for all modules, also where a constructor and an attribute hold them; everything works on."""
    program = crossing()
    if built:
        await sm.build(program, type(QUERY))
    twin = WAYS[way](program)
    a, b, c, d = spaces(twin)
    assert a is d and b is c and a is not b
    assert not {a, b} & set(spaces(program))
    assert (a.name, b.name) == ("one", None)
    assert twin.members[2].namespace is c
    assert twin.members[2].get_config()["namespace"] is c
    verify_skippables(twin)
    assert (await twin(QUERY)).get_json() == (await program(QUERY)).get_json()
    assert sm.graphdef(twin) == sm.graphdef(program)
    assert sm.dumps(twin) == sm.dumps(program)


def test_two_builds_are_equal_and_other_wiring_is_not():
    """Namespaces count by position, not by identity."""
    one, again = sm.graphdef(crossing()), sm.graphdef(crossing())
    assert one == again and one.fingerprint == again.fingerprint
    a, b = Namespace("one"), Namespace()
    nested = sm.Sequential([Retrieve().isolate(a), Retrieve().isolate(b), Given(a), Cite().isolate(b)], name="crossing")
    assert sm.graphdef(nested) != one
    plain = sm.Sequential([Retrieve()])
    assert sm.graphdef(plain) != sm.graphdef(sm.Sequential([Retrieve().isolate(a)]))
    assert sm.GraphDef.from_json(one.to_json()) == one


def test_the_file_names_namespaces_in_the_record():
    """`isolated` holds pairs of name and node, and is no config."""
    text = json.loads(sm.dumps(sm.Sequential([Retrieve().isolate(Namespace("one"))])))
    record = text["graph"]["nodes"][1]
    assert record["isolated"] == [["doc", {"node": 2}]]
    assert "isolated" not in record["config"]
    assert text["graph"]["nodes"][2] == {"type": "synmod>Namespace", "metadata": {"name": "one"}, "children": []}
    assert "isolated" not in Retrieve().isolate(Namespace()).get_config()


def _changed(change):
    program = sm.Sequential([Retrieve().isolate(Namespace("one"))])
    json_ = json.loads(sm.dumps(program))
    change(json_["graph"]["nodes"])
    sections = {key: json_[key] for key in ("graph", "data_models", "language_models")}
    return lambda: sm.GraphDef.from_json(sections)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda nodes: nodes[1].update(isolated=[["other", {"node": 2}]]), "declares no skip 'other'"),
        (lambda nodes: nodes[1].update(isolated=[["doc", {"node": 0}]]), "a node that is a Namespace"),
        (lambda nodes: nodes[1].update(isolated=[["doc", {"node": 9}]]), "is not an index"),
        (lambda nodes: nodes[1].update(isolated=[["doc", {"node": 2}]] * 2), "twice"),
        (lambda nodes: nodes[1].update(isolated=[["doc"]]), "pair"),
        (lambda nodes: nodes[1].update(isolated={}), "array"),
        (lambda nodes: nodes[1].pop("isolated"), "nothing in the graph leads here"),
        (lambda nodes: nodes[2].update(metadata={"name": "not a name"}), "not a valid"),
        (lambda nodes: nodes[2].update(metadata={}), "Namespace"),
        (lambda nodes: nodes[2].update(metadata=None), "Namespace"),
        (lambda nodes: nodes[2].update(children=[["a", {"json": 1}]]), "no children"),
    ],
)
def test_a_bad_record_is_a_load_error(change, text):
    """Each with its place."""
    with pytest.raises(sm.LoadError, match=text):
        _changed(change)()


def test_a_namespace_may_stand_for_itself():
    """It is a node: kept as an attribute it has a path, and is shared with the modules that use it."""

    class Holder(sm.Module):
        def __init__(self):
            super().__init__()
            self.space = Namespace("s")
            self.retrieve = Retrieve().isolate(self.space)

    twin = Holder().clone()
    assert twin.retrieve.namespaced("doc")[0] is twin.space
    assert sm.paths_of(twin, twin.space) == [("space",)]


async def test_a_failed_build_takes_back_what_it_isolated():
    """All or nothing."""

    class Isolates(sm.Module):
        def __init__(self):
            super().__init__()
            self.retrieve = Retrieve()

        async def build(self, inputs):
            self.retrieve.isolate(Namespace())
            raise ValueError

        async def call(self, inputs):
            return inputs

    module = Isolates()
    with pytest.raises(ValueError):
        await module(QUERY)
    assert module.retrieve.namespaced("doc") == (None, "doc")

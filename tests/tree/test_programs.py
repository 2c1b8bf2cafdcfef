"""Real modules and programs seen through the tree: what their structure counts, what their copies keep."""

import copy
import functools
import threading

import pytest

import synmod as sm
from synmod.errors import SealedError
from synmod.tree import GraphDef, clone, graphdef, merge, split, state, using, variables


class Query(sm.DataModel):
    """One text."""

    text: str = ""


class Leaf(sm.Module):
    """Two Variables, a cached property, an ignored attribute, a static."""

    _graph_ignored = frozenset({"cache"})

    def __init__(self, size=1):
        self.size = size
        self.prompt = sm.Param("p")
        self.notes = sm.Memory([])
        self.cache = {"v": sm.Param("hidden")}
        self.client = sm.static(object())

    @functools.cached_property
    def made(self):
        return sm.Param("made")

    async def call(self, x):
        return x


class Holder(sm.Module):
    """Holds what it is given."""

    def __init__(self, *parts):
        self.parts = list(parts)

    async def call(self, x):
        for part in self.parts:
            x = await part(x)
        return x


def answer(model, **more):
    """A program of one generator."""
    start = sm.Input(Query)

    async def compose():
        return await sm.Generator(Query, language_model=sm.LanguageModel(model, **more))(start)

    return sm.Program(inputs=start, outputs=sm.run(compose))


def test_only_attributes_count():
    """Cached properties, ignored attributes and statics are not seen, and copies have the ignored and static ones."""
    leaf = Leaf()
    assert leaf.made.value == "made"
    assert list(variables(leaf)) == ["prompt", "notes"]
    twin = clone(leaf)
    assert (twin.cache is leaf.cache, twin.client is leaf.client) == (True, True)
    assert "made" not in vars(twin)


def test_structure_counts_arguments_models_and_wiring():
    """Not keys; equal programs have equal fingerprints, through JSON too."""
    one = answer("openai/gpt-4o-mini", temperature=0)
    assert graphdef(one) == graphdef(answer("openai/gpt-4o-mini", temperature=0, api_key="sk-" + "x" * 30))
    assert graphdef(one).fingerprint == graphdef(one.clone()).fingerprint
    for other in (answer("openai/gpt-4o", temperature=0), answer("openai/gpt-4o-mini", temperature=1)):
        assert graphdef(one) != graphdef(other)
        assert graphdef(one).diff(graphdef(other)) == (("generator", "language_model"),)
    assert graphdef(Leaf()) != graphdef(Leaf(2))
    again = GraphDef.from_json(graphdef(one).to_json())
    assert again == graphdef(one)
    assert again.fingerprint == graphdef(one).fingerprint
    twin = merge(again, state(one).to_json())
    assert (type(twin), twin.built, state(twin)) == (sm.Program, True, state(one))


def test_arguments_follow_and_sharing_is_kept_across_copies():
    """A part given to the constructor is, in the copy, the copied part; deepcopy of two programs shares theirs."""
    shared = Leaf()
    one, two = Holder(shared), Holder(shared, Leaf())
    new = copy.deepcopy({"one": one, "two": two})
    assert new["one"].parts[0] is new["two"].parts[0] is not shared
    assert new["two"].get_config()["parts"][0] is new["two"].parts[0]


def test_masks_follow_the_root_that_is_asked():
    """`trainable = False` masks, and gives back every choice."""
    holder = Holder(Leaf(), Leaf())
    holder.parts[0].prompt.trainable = False
    holder.parts[1].trainable = False
    assert holder.trainable_variables == ()
    assert set(variables(holder.parts[1], sm.Trainable())) == set()
    holder.parts[1].trainable = True
    assert list(variables(holder, sm.Trainable())) == ["parts/1/prompt"]


def test_a_changed_container_is_found_by_the_next_split():
    """Behind the back of a sealed module; values and candidates go on."""
    holder = Holder(Leaf())
    sm.run(holder, Query(text="x"))
    with using(holder, {"parts/0/prompt": "candidate"}):
        assert state(holder)["parts/0/prompt"].value == "candidate"
    holder.parts.append(Leaf())
    with pytest.raises(SealedError, match="parts"):
        split(holder)


def test_split_from_another_thread_while_attributes_come():
    """Plain attributes set during calls never break a walk in another thread."""
    holder = Holder(Leaf())
    sm.run(holder, Query(text="x"))
    leaf, stop = holder.parts[0], threading.Event()

    def add():
        for number in range(20_000):
            setattr(leaf, f"plain_{number % 500}", number)
            if number % 500 == 0:
                for name in [name for name in vars(leaf) if name.startswith("plain_")]:
                    delattr(leaf, name)
        stop.set()

    thread = threading.Thread(target=add)
    thread.start()
    while not stop.is_set():
        assert len(state(holder)) == 2
        assert len(split(holder)[1]) == 2
    thread.join()

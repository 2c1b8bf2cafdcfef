"""Real modules and programs seen through the tree: what their structure counts, what their copies keep."""

import copy
import functools
import threading

import pytest

import synmod as sm
from synmod.errors import SealedError
from synmod.tree import GraphDef, clone, graphdef, merge, path_table, split, state, using, variables


class Query(sm.DataModel):
    """One text."""

    text: str = ""


class Leaf(sm.Module):
    """Two Variables, a cached property, an ignored attribute, a static."""

    graph_ignored = frozenset({"cache"})

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
        for number in range(5_000):
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


class Late(sm.Module):
    """Makes a part when it is built, under another name than its label."""

    async def build(self, inputs):
        self.inner = Noting(name="label")

    async def call(self, inputs: Query) -> Query:
        return await self.inner(inputs)


class Noting(sm.Module):
    """Notes its path, and writes a Variable."""

    def __init__(self, **options):
        super().__init__(**options)
        self.count = sm.Stat(0)
        self.seen = sm.static([])

    async def call(self, inputs: Query) -> Query:
        self.seen.append(self.path)
        self.count.assign(self.count.value + 1)
        return inputs


class Switch(sm.Module):
    """Calls what it holds, once it is switched on."""

    def __init__(self, part):
        super().__init__()
        self.deep, self.on = {"k": part}, False

    async def call(self, inputs: Query) -> Query:
        return await self.deep["k"](inputs) if self.on else inputs


class Assigned(sm.Hook):
    """Notes the paths of what is assigned."""

    def __init__(self):
        self.paths = []

    def on_variable_assign(self, event):
        self.paths.append(event.variable)


async def test_paths_are_exact_after_another_program_has_built_a_shared_module():
    """The root that was called before the build shows its new parts at their paths, in frames, events and overlays."""
    shared, heard = Late(), Assigned()
    first, second = Switch(shared), Switch(shared)
    await first(Query(text="q"))
    second.on = True
    await second(Query(text="q"))
    first.on = True
    with sm.hooks(heard):
        await first(Query(text="q"))
    assert shared.inner.seen == ["deep/k/inner", "deep/k/inner"]
    assert heard.paths == ["deep/k/inner/count"]
    with using(first, {"deep/k/inner/count": 7}):
        assert shared.inner.count.value == 7


async def test_edits_of_other_programs_do_not_touch_the_table_of_a_program():
    """It is made anew after an edit of a module that it lists, and only then."""
    holder, other = Holder(Leaf()), Holder(Leaf())
    for program in (holder, other):
        await program(Query(text="q"))
    kept = path_table(holder, sealed=True)
    sm.pop(other, sm.Memory)
    await sm.build(Late(), Query)
    assert path_table(holder, sealed=True) is kept
    sm.pop(holder, sm.Memory)
    assert path_table(holder, sealed=True) is not kept
    assert list(path_table(holder).variables) == [("parts", 0, "prompt")]

"""What goes in comes out: every kind of value, shape of graph and attribute survives, and the text is the same."""

import dataclasses
import datetime as dt
import decimal
import json
import uuid
from collections import OrderedDict, deque

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.leaves.frozen import json_equal
from synmod.saving import dumps, load, loads, save
from synmod.testing import ScriptedLM, assert_saves
from tests.saving.hostile import edited, sections_of
from tests.saving.programs import (
    Answer,
    Asks,
    Bag,
    Box,
    Built,
    Colour,
    Explain,
    Fixed,
    Keep,
    Pair,
    Point,
    Query,
    Rule,
    Store,
    Unregistered,
    shout,
)

TRICKY = [
    {"type": "synmod>Program", "config": {}},
    {"class_name": "Model", "config": {}, "module": "os"},
    {"lc": 1, "type": "constructor", "id": ["os", "system"]},
    {"$ref": "#/x"},
    {"__proto__": {"polluted": True}, "__class__": "x", "__reduce__": []},
    {"node": 0},
    {"json": {"variable": 1}},
    {"data_model": 0},
    {"function": "os>system"},
    {"": {"": ""}},
    {"a/b~c#d": [1, 1.0, True, None, -0.0, 12345678901234567890]},
    "{{ x.__class__ }}",
    "{x.__class__}",
    "\u0000\u0085\u2028\u2029\u202e\u2066é日本\U0001f600\x7f",
    "\ufeff",
    {"k\u0085\u202e": 1},
    [],
    {},
    [[]],
    0.1,
    1e308,
    5e-324,
]


@pytest.mark.parametrize("value", TRICKY, ids=lambda value: json.dumps(value)[:40])
def test_no_key_of_user_data_means_anything(value):
    """As argument, attribute and state, odd JSON comes back exactly as it went in."""
    module = Keep(value)
    module.later = {"here": value}
    module.state = module.add_variable(value, name="state", schema={})
    again = assert_saves(module)
    assert json_equal(again.thing, value)
    assert json_equal(again.later, {"here": value})
    assert json_equal(again.state.value, value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(json_values, json_values)
def test_the_round_trip_is_the_identity_on_json(argument, value):
    """S3: whatever the JSON, as an argument and as a Variable's value."""
    module = Keep(argument)
    module.v = sm.Param(value, schema={})
    text = dumps(module)
    again = loads(text)
    assert json_equal(again.thing, argument)
    assert json_equal(again.v.value, value)
    assert dumps(again) == text


def test_keys_keep_their_order_and_texts_are_what_json_dumps_writes():
    """Nothing is sorted, the layout is that of `json.dumps(indent=2)`, with a line feed at the end."""
    module = Keep({"z": 1, "a": {"y": 2, "b": 3}})
    text = dumps(module)
    document = json.loads(text)
    assert list(document) == ["header", "graph", "data_models", "language_models", "state"]
    assert list(document["graph"]["nodes"][0]["config"]["thing"]["json"]) == ["z", "a"]
    assert json.dumps(document, indent=2, ensure_ascii=False) + "\n" == text
    assert list(loads(text).thing) == ["z", "a"]


def test_hidden_characters_are_written_as_escapes():
    """C1 controls, line separators and bidirectional overrides show in a diff; other text stays readable."""
    text = dumps(Keep("é日\u0085\u009f\u2028\u2029\u202a\u202e\u2066\u2069\u200d"))
    assert "é日\\u0085\\u009f\\u2028\\u2029\\u202a\\u202e\\u2066\\u2069\u200d" in text
    assert not set(text) & set("\u0085\u009f\u2028\u2029\u202a\u202e\u2066\u2069")


@pytest.mark.parametrize(
    "value",
    [
        (1, (2, "x")),
        {1: "a", "1": "b", -3: [None]},
        {1, 2.5, "a", None},
        frozenset({"x", "y"}),
        set(),
        Point(1, (2,)),
        Pair([1], {"a": (1,)}),
        Fixed((1, 2)),
        deque([1, (2,)], maxlen=5),
        deque(),
        OrderedDict(b=1, a=(2,)),
        OrderedDict([(1, 2)]),
        dt.date(2024, 2, 29),
        dt.time(1, 2, 3, 4, tzinfo=dt.UTC),
        dt.datetime(2024, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001
        dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))),
        dt.timedelta(days=-3, microseconds=7),
        dt.timedelta(0),
        decimal.Decimal("1.10"),
        decimal.Decimal("-0E+5"),
        uuid.UUID(int=5),
        b"\x00\xff",
        Colour.RED,
        Colour.GREEN,
        shout,
        Answer,
        ValueError,
        sm.AuthError,
        Colour,
        [Answer, (Query, {"k": {1: shout}})],
        sm.Score.P90,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_beyond_json_come_back_as_what_they_were(value):
    """Containers, scalars, classes, functions and members of enums keep their types."""
    module = Keep(value)
    module.attribute = [value]
    again = assert_saves(module)
    for found in (again.thing, again.attribute[0]):
        assert type(found) is type(value)
        assert found == value
        assert type(value) in (set, frozenset) or repr(found) == repr(value)


def test_a_dataclass_is_written_alike_whatever_ran_before():
    """The bytes do not depend on whether instances of its class were inputs before, and neither does a load.

    What stands beside its fields is kept.
    """

    @sm.register("tests_saving_fresh")
    @dataclasses.dataclass
    class Fresh:
        a: int
        b: object = None

    module = Keep(Fresh(1, (2,)))
    text = dumps(module)
    assert not sm.is_symbolic(module.thing)
    assert dumps(module) == text
    assert loads(text).thing == Fresh(1, (2,))
    module.thing.extra = "beside the fields"
    assert loads(dumps(module)).thing.extra == "beside the fields"
    hostile = text.replace(
        '"config": {\n                "json": null', '"config": {\n                "json": {"__class__": 1}'
    )
    assert hostile != text
    with pytest.raises(sm.LoadError):
        loads(hostile)


def test_a_users_container_type_comes_back():
    """A registered tree type is rebuilt by its own function, its Variables at the steps that it tells."""
    module = Keep()
    module.bag = Bag(sm.Param("a"), 2, Keep("deep"))
    again = assert_saves(module)
    assert type(again.bag) is Bag
    assert again.bag.items[0].value == "a"
    assert again.bag.items[1] == 2
    assert again.bag.items[2].thing == "deep"


def test_data_models_come_back_typed_where_they_are_registered():
    """A registered class comes back as itself, an unregistered one as a symbol of its schema, instances likewise."""
    value = sm.JsonDataModel({"text": "x"}, data_model=Unregistered)
    module = Box(Answer, Unregistered, Answer(answer="a"), Unregistered(text="b"), value)
    again = assert_saves(module)
    known, symbol, instance, bare, plain = again.get_config()["args"]
    assert known is Answer
    assert isinstance(symbol, sm.SymbolicDataModel)
    assert symbol.get_schema() == Unregistered.get_schema()
    assert type(instance) is Answer
    assert instance == Answer(answer="a")
    assert isinstance(bare, sm.JsonDataModel)
    assert bare.get_json() == {"text": "b"}
    assert plain == value


def test_shared_nodes_cycles_and_aliases():
    """Identity of nodes and Variables survives; containers are rebuilt."""
    module = Keep()
    shared = Explain()
    module.a, module.b = shared, [shared, {"deep": shared.write, 3: shared.note}]
    module.me = module
    shared.up = module
    again = assert_saves(module)
    assert again.me is again
    assert again.a is again.b[0]
    assert again.b[1]["deep"] is again.a.write
    assert again.b[1][3] is again.a.note
    assert again.a.up is again


def test_roots_may_be_lists_and_dicts_of_nodes_and_users_own_nodes():
    """One file, one index space, sharing kept."""
    shared = Keep("shared")
    store = Store("tools")
    store.entries = {"a": shared, 2: sm.Memory({"k": 1})}
    again = assert_saves({"draft": Keep(shared), "verify": [shared, store], "store": store})
    assert again["draft"].thing is again["verify"][0] is again["store"].entries["a"]
    assert again["store"].label == "tools"
    assert again["store"].entries[2].value == {"k": 1}
    assert type(assert_saves(store)) is Store
    assert assert_saves([shared, shared])[0].thing == "shared"


@pytest.mark.parametrize("nothing", [3, None, "x", [], {}, [1], Keep, sm.Param(1), object(), {"a": [2]}, (Keep(),)])
def test_what_holds_no_node_is_nothing_to_save(nothing):
    """Anything but nodes and containers of them is a SaveError that names the type."""
    with pytest.raises(sm.SaveError, match="nothing to save"):
        dumps(nothing)


def test_all_variable_types_with_all_they_say():
    """Type, schema, trainable, name, description and free metadata come back."""
    module = Keep()
    kinds = (sm.Variable, sm.Param, sm.Memory, sm.Stat, sm.OptState, sm.Intermediate, Rule)
    module.all = [
        kind({"k": 1}, schema={"type": "object"}, trainable=flag, name="n", description="d", tag="t", free={"x": [1]})
        for kind in kinds
        for flag in (True, False)
    ]
    again = assert_saves(module)
    for old, new in zip(module.all, again.all, strict=True):
        assert type(new) is type(old)
        assert new.schema is old.schema
        assert (new.trainable, new.name, new.description, new.metadata) == (old.trainable, "n", "d", old.metadata)
        assert new.version == 0


def test_nodes_that_only_an_argument_reaches():
    """They have no path, are in no State, and come back with the values of their Variables."""
    inner = Explain("hidden")
    inner.note.assign("kept")
    loose = sm.Param("loose")
    module = Box(inner, [loose, inner.note], key={"deep": inner})
    assert sm.state(module).to_json() == {}
    again = assert_saves(module)
    config = again.get_config()
    found, (variable, note) = config["args"]
    assert found.note is note
    assert note.value == "kept"
    assert variable.value == "loose"
    assert config["key"]["deep"] is found


def test_labels_frozen_bits_and_surgery_survive():
    """Name, description and trainable, removed attributes, replaced children and later attributes."""
    module = Explain("long")
    module.name, module.description, module.trainable = "renamed", "Says why.", False
    module.write = Keep("instead")
    module.extra = sm.Param([1])
    del module.note
    module.style = "changed"
    again = assert_saves(module)
    assert (again.name, again.description, again.trainable) == ("renamed", "Says why.", False)
    assert type(again.write) is Keep
    assert again.extra.value == [1]
    assert not hasattr(again, "note")
    assert again.style == "changed"
    assert again.get_config()["style"] == "changed"


def test_order_of_definition_survives():
    """Variables and children list as they did, also where attributes were moved or made late."""
    module = Explain()
    note = module.note
    del module.note
    module.first = sm.Param(1)
    module.note = note
    module.thing = Keep()
    again = assert_saves(module)
    assert list(sm.state(again)) == list(sm.state(module))
    assert [type(x) for x in again.submodules] == [type(x) for x in module.submodules]


async def test_a_built_module_comes_back_built():
    """What `build` made is restored, not made again; the schemas it was built on hold again."""
    module = Built()
    await sm.build(module, Query)
    module.notes.assign({"seen": [1]})
    assert module.built
    again = assert_saves(module)
    assert again.built
    assert again.fields == ["question"]
    assert again.notes.value == {"seen": [1]}
    assert again.get_build_config() == module.get_build_config()
    with pytest.raises(sm.SealedError):
        again.new = sm.Param(1)
    with pytest.raises(sm.SchemaError):
        await again(Answer(answer="x"))


def test_a_build_config_of_ones_own_may_hold_classes():
    """Data models stand for their schemas; any other registered class comes back as itself."""

    @sm.register("tests_saving_config")
    class Configured(sm.Module):
        found = None

        async def build(self, inputs):
            pass

        async def call(self, inputs):
            return inputs

        def get_build_config(self):
            return {"cls": Keep, "wanted": Query, "symbol": Answer.to_symbolic_data_model()}

        def build_from_config(self, config):
            type(self).found = config

    module = Configured()
    sm.run(sm.build(module, Query))
    loads(dumps(module))
    assert Configured.found == {"cls": Keep, "wanted": Query.get_schema(), "symbol": Answer.get_schema()}


def test_an_unbuilt_module_comes_back_unbuilt():
    """And builds itself at its first call."""
    again = assert_saves(Built(7))
    assert not again.built
    assert again.size == 7


def test_a_class_that_answers_for_its_config_is_taken_at_its_word():
    """Only what `get_config` returns is written of its plain values; children and Variables are kept."""
    module = Asks("a b")
    module.child.thing = "changed"
    again = assert_saves(module)
    assert again.words == ("a", "b")
    assert again.child.thing == "changed"


def test_what_constructors_made_is_adopted():
    """A child that its parent's constructor makes as the record says stays the very object that it made."""
    made = []

    @sm.register("tests_saving_adopt")
    class Parent(sm.Module):
        graph_ignored = frozenset({"_keeps"})

        def __init__(self):
            self.child = Explain("same")
            self.variable = self.add_variable(1, name="variable")
            self._keeps = (self.child, self.child.note, self.variable)
            made.append(self)

    module = Parent()
    module.child.note.assign("later")
    module.variable.assign(2)
    text = dumps(module)
    made.clear()
    again = loads(text)
    assert made == [again]
    assert again._keeps == (again.child, again.child.note, again.variable)
    assert again.child.note.value == "later"
    again_once_more = loads(dumps(again))
    assert again_once_more.variable.value == 2


def test_a_model_that_code_makes_as_the_record_says_is_adopted_too():
    """So the children that were made with it are; a model that the caller supplies wins over both."""

    @sm.register("tests_saving_adopt")
    class Writes(sm.Module):
        graph_ignored = frozenset({"_made"})

        def __init__(self):
            self.one = sm.Generator(Answer, language_model="openai/adopted")
            self.two = sm.Generator(Answer, language_model="openai/adopted")
            self._made = (self.one, self.two)

    text = dumps(Writes())
    again = loads(text)
    assert again._made == (again.one, again.two)
    assert again.one.language_model is again.two.language_model
    assert dumps(again) == text
    live = ScriptedLM([])
    again = loads(text, language_models=live)
    assert again.one.language_model is again.two.language_model is live
    assert again.one is not again._made[0]


def test_each_node_is_made_once_arguments_first():
    """Constructors see the very objects that the attributes lead to."""
    encoder = Explain("shared")
    module = Keep(encoder, [encoder, {"k": encoder.note}])
    again = assert_saves(module)
    assert again.thing is again.other[0]
    assert again.other[1]["k"] is again.thing.note
    assert again.get_config()["thing"] is again.thing


def test_a_candidate_is_saved_inside_using(tmp_path):
    """Inside an overlay the overlaid values are saved; the live program stays as it is."""
    module = Explain()
    with sm.using(module, {"note": "candidate"}):
        path = save(module, tmp_path / "candidate.json")
    assert module.note.value == "none yet"
    assert load(path).note.value == "candidate"
    assert dumps(load(path)) == path.read_text()


def test_the_same_program_gives_the_same_bytes():
    """No time, host or identity is in a file."""
    assert dumps(Explain()) == dumps(Explain())
    assert dumps([Keep({3, 1, 2}), ScriptedLM([])]) == dumps([Keep({2, 3, 1}), ScriptedLM([])])


def test_an_attribute_that_differs_from_its_argument_only_in_the_order_of_keys_keeps_its_order():
    """Field order is part of a prompt."""
    keep = Keep({"a": 1, "b": [1, True]})
    keep.extra = keep.thing = {"b": [1, True], "a": 1}
    again = assert_saves(keep) or loads(dumps(keep))
    assert list(again.thing) == list(again.extra) == ["b", "a"]

    @sm.register("tests_saving_round_trip")
    class Sorted(sm.Module):
        def __init__(self, table):
            self.table = dict(sorted(table.items()))

    made = Sorted({"b": 1, "a": 2})
    assert list(loads(dumps(made)).table) == ["a", "b"]


@pytest.mark.parametrize("depth", [8, 18])
def test_containers_that_are_no_json_may_nest_as_deep_as_the_document(depth):
    """The limit of a JSON value does not hold for terms, which nest three times as deep as what they tell."""
    value = ()
    for _ in range(depth):
        value = [(value,)]
    if depth < 10:
        assert loads(dumps(Keep(value))).thing == value
        return
    with pytest.raises(sm.SaveError, match=r"max_depth=\d+"):
        dumps(Keep(value))


@pytest.mark.parametrize("options", [{7: 1}, {"": 1}, {7: 1, "": 2}, {7: 1, "7": 2}, {7: {0: 1, "0": []}, "": [1.5]}])
def test_a_dict_whose_keys_no_path_could_name_apart(options):
    """It comes back, equal to what it was, with the same fingerprint."""
    module = Keep(options)
    module.tuned = sm.Param("v")
    again = loads(dumps(module))
    assert again.thing == options
    assert sm.graphdef(again) == sm.graphdef(module)
    assert sm.graphdef(again).fingerprint == sm.graphdef(module).fingerprint


def test_json_out_of_the_ordinary_inside_containers():
    """What is no plain tree goes the long way, and comes out the same."""
    shared = {"é\u202e": [10**30, -0.0, True]}
    for value in ([shared, shared], {"a": [(1,), shared]}, [[{"k": {1, 2}}]], [{1: [shared]}, [Answer]]):
        assert_saves(Keep(value))
        assert loads(dumps(Keep([shared, shared]))).thing == [shared, shared]


def test_a_variable_in_the_place_of_one_that_was_given_stays_another():
    """The given one is an argument alone, the other the attribute; both keep their values."""
    for other in (Keep(1, sm.Memory({"a": 1})), Keep([Keep(2)], sm.Memory({"a": 1}))):
        other.other = sm.Memory("x")
        assert_saves(other)
        again = loads(dumps(other))
        assert again.other.value == "x"
        assert again.get_config()["other"].value == {"a": 1}


async def test_a_load_runs_build_again_for_what_no_file_holds():
    """Plain values that `build` made are made again; Variables and nodes that it made are those of the file."""

    @sm.register("tests_saving_again")
    class Indexed(sm.Module):
        def __init__(self, top=3):
            self.top = top
            self.notes = sm.Param("from the constructor", name="notes")

        async def build(self, inputs):
            self.fields = sorted(inputs.keys())
            self.extra = self.add_variable("from build", name="notes")
            self.inner = Keep(self.extra)
            self.index = dict.fromkeys(self.fields, self.extra)

        async def call(self, inputs):
            return inputs

    module = Indexed(top=5)
    module.style = sm.Param("assigned before the build")
    await sm.build(module, Query)
    module.extra.assign("trained")
    module.style.assign("trained too")
    text = dumps(module)
    assert "fields" not in text
    again = loads(text)
    assert dumps(again) == text
    assert again.fields == ["question"]
    assert (again.notes.value, again.extra.value, again.style.value) == (
        "from the constructor", "trained", "trained too",
    )  # fmt: skip
    assert again.inner.thing is again.extra is again.notes_1
    assert again.index["question"] is again.extra
    assert list(sm.state(again)) == list(sm.state(module))


@sm.register("tests_saving_again")
class Grows(sm.Module):
    """Its `build` changes what the constructor made, here and in a child, and makes something new."""

    def __init__(self, top=1):
        self.top, self.stops = min(top, 10), ["the"]
        self.child = Keep({"stops": []})

    async def build(self, inputs):
        self.stops += inputs.keys()
        self.child.thing["stops"].append("a")
        self.child.made = sm.Param("made")
        self.top += 1
        self.cut = 3
        self.add_variable([], name="log")
        self.table = {"log": sm.Memory([])}

    async def call(self, inputs):
        return inputs


def cut(module):
    """Return what a `Grows` has of all that its `build` changes."""
    names = {*sm.variables(module), *vars(module), *vars(module.child)}
    return module.top, module.stops, module.child.thing, getattr(module, "cut", None), names


@pytest.mark.parametrize("top", [1, 50])
@pytest.mark.parametrize(
    "change",
    [
        lambda module: None,
        lambda module: module.set_attributes(sm.OfType(Grows), cut=9),
        lambda module: setattr(module, "top", 9),
        lambda module: module.stops.append("of"),
        lambda module: setattr(module, "stops", ["of"]),
        lambda module: delattr(module, "cut"),
        lambda module: sm.pop(module, sm.PathIn("log")),
        lambda module: sm.pop(module, sm.PathIn("table/log")),
        lambda module: sm.pop(module, sm.PathIn("child/made")),
    ],
)
async def test_what_is_changed_after_the_build_outlasts_the_build_of_a_load(change, top):
    """A load leaves each attribute as it was saved, whatever `build` does to it again."""
    module = Grows(top)
    await sm.build(module, Query)
    change(module)
    again = assert_saves(module)
    assert cut(again) == cut(module)
    assert cut(assert_saves(again)) == cut(module)


def test_an_attribute_outlasts_a_constructor_that_changes_its_argument():
    """What was assigned after construction comes back as it was, in a child too; so does what the constructor made."""

    @sm.register("tests_saving_again")
    class Clamps(sm.Module):
        def __init__(self, size=5):
            self.size = min(size, 10)
            self.child = Clamps(2) if size == 7 else None

    module = Clamps(7)
    module.size, module.child.size = 50, 60
    assert assert_saves(module).size == sm.clone(module).size == 50
    assert assert_saves(module).child.size == 60
    assert assert_saves(Clamps(50)).size == 10


@sm.register("round_trip")
class Log(sm.Module):
    """Its build makes a second way to one list."""

    def __init__(self):
        super().__init__()
        self.items = []

    async def build(self, inputs):
        self.view = {"items": self.items}

    async def call(self, inputs: Query) -> Query:
        self.view["items"].append(inputs["question"])
        return inputs


async def test_a_list_that_build_puts_into_two_attributes_stays_one():
    """A load sets again what it has recorded only where build has changed it."""
    module = Log()
    await module(Query(question="a"))
    again = sm.loads(sm.dumps(module))
    await again(Query(question="b"))
    assert again.items == again.view["items"] == ["a", "b"]


@sm.register("tests_saving")
class Tuned(sm.Module):
    """Holds some of its arguments in Variables of the same names."""

    def __init__(self, rows, style="brief", shouted="x", number=1):
        super().__init__()
        self.rows = sm.Param(rows)
        self.style = sm.Param(style)
        self.shouted = sm.Param(shouted.upper())
        self.number = number

    async def call(self, inputs):
        return inputs


@sm.register("tests_saving")
class Derives(sm.Module):
    """Makes something of an argument that no file holds."""

    def __init__(self, style="brief"):
        super().__init__()
        self.style = sm.Param(style)
        self.index = sm.static({style: 1})

    async def call(self, inputs):
        return inputs


@pytest.mark.parametrize(
    ("make", "held"),
    [
        (lambda: sm.Generator(Answer, instructions="First. "), ["instructions"]),
        (lambda: sm.ChainOfThought(Answer, instructions="First."), ["instructions"]),
        (lambda: sm.SelfCritique(data_model=Answer, instructions="First."), ["instructions"]),
        (lambda: sm.Decision(["First.", "Second."], instructions="First."), ["instructions"]),
        (
            lambda: sm.Generator(
                examples=[{"inputs": {"a": "First."}, "outputs": {"b": 1}}], schema={"type": "object"}
            ),
            ["examples"],
        ),
        (lambda: Tuned(rows=[{"a": "First."}], style="First."), ["rows", "style"]),
    ],
)
def test_what_a_variable_holds_stands_in_the_state_alone(make, held):
    """So an edit of the one place works; the arguments are recorded again by a load."""
    module = make()
    text = dumps(module)
    assert not {*held} & {*sections_of(text)["graph"]["nodes"][0]["config"]}
    again = loads(text)
    assert dumps(again) == text
    assert {*held} <= {*again.get_config()}
    state = sections_of(text)["state"]
    after = {path: json.loads(json.dumps(value).replace("First.", "Edited.")) for path, value in state.items()}
    changed = loads(edited(text, lambda sections: sections.update(state=after)))
    assert sm.state(changed).to_json() == after
    for name in held:
        getattr(module, name).assign(after[name])
    assert sm.state(loads(dumps(module))).to_json() == after
    graph = sm.graphdef(module)
    twin = sm.merge(sm.GraphDef.from_json(graph.to_json()), sm.state(module))
    assert dumps(twin) == dumps(module)


def test_an_argument_that_a_variable_does_not_hold_as_it_was_given_stays():
    """It was changed on the way, or something that no file holds was made of it; files with both load as before."""
    tuned = sections_of(dumps(Tuned([], shouted="loud", number=3)))
    assert tuned["graph"]["nodes"][0]["config"] == {"shouted": {"json": "loud"}, "number": {"json": 3}}
    again = loads(dumps(Derives("long")))
    assert again.index == {"long": 1}
    text = dumps(sm.Generator(Answer, instructions="Now."))
    before = edited(text, lambda s: s["graph"]["nodes"][0]["config"].update(instructions={"json": "Then."}))
    assert loads(before).instructions.value == "Now."
    assert dumps(loads(before)) == text

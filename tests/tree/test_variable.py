"""Variables: frozen values, validated writes, metadata, first values, subclasses, threads."""

import copy
import json
import pickle
import threading

import pytest

import synmod as sm
from synmod.errors import ArgumentError, BadNameError, DataError, FieldError, SchemaError
from synmod.tree import Intermediate, Memory, OptState, Param, Stat, Variable, using


class Notes(sm.DataModel):
    """What was noted."""

    text: str = ""
    score: int = 0


class Strict(sm.DataModel):
    """Two required fields."""

    name: str
    age: int


def test_value_is_frozen_json():
    """The value equals plain JSON, dumps as JSON, and cannot be changed."""
    variable = Param({"a": [1, 2]})
    assert variable.value == {"a": [1, 2]}
    assert json.dumps(variable.value) == '{"a": [1, 2]}'
    with pytest.raises(TypeError, match="frozen"):
        variable.value["a"] = 1
    with pytest.raises(TypeError, match=r"frozen.*variable\.assign\(\[\*variable\.value, item\]\)"):
        variable.value["a"].append(3)


def test_a_variable_does_not_pass_into_a_text_unseen():
    """An f-string would hold its repr; the error names `.value`. `repr`, `str` and `print` show it."""
    variable = Param("Be kind.", name="tone")
    for text in (lambda: f"{variable} Hello", lambda: "{:>9}".format(variable), lambda: format(variable)):  # noqa: UP032
        with pytest.raises(ArgumentError, match=r"Param 'tone': write \{variable\.value\}"):
            text()
    assert f"{variable!r} {variable!s}" == "Param('Be kind.', name='tone') Param('Be kind.', name='tone')"


def test_setting_the_value_is_assign():
    """Validated, and counted."""
    variable = Param("a")
    variable.value = "b"
    assert (variable.value, variable.version) == ("b", 1)
    with pytest.raises(SchemaError):
        variable.value = 3


def test_assign_swaps_the_whole_value_and_counts():
    """Each assign raises the version by one; what was read before stays as it was."""
    variable = Param(["a"])
    before = variable.value
    variable.assign(["b", "c"])
    assert variable.value == ["b", "c"]
    assert variable.version == 1
    assert before == ["a"]


def test_a_wrong_value_leaves_everything_untouched():
    """A value against the schema is a SchemaError with pointer, wanted and got."""
    variable = Param({"name": "x", "age": 1}, data_model=Strict, name="who")
    with pytest.raises(SchemaError, match="who") as caught:
        variable.assign({"name": "x", "age": "old"})
    assert caught.value.errors[0].pointer == "/age"
    with pytest.raises(DataError, match="who"):
        variable.assign({"name": "x", "age": {1, 2}})
    assert variable.value == {"name": "x", "age": 1}
    assert variable.version == 0


def test_a_variable_is_no_value():
    """Assigning a Variable to a Variable is a SchemaError, also as a first value."""
    variable = Param("x")
    for write in (variable.assign, Param):
        with pytest.raises(SchemaError, match="Variable"):
            write(Param("y"))


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {}),
        (True, {"type": "boolean"}),
        (1, {"type": "integer"}),
        (1.5, {"type": "number"}),
        ("x", {"type": "string"}),
        ([1], {"type": "array"}),
        ({"a": 1}, {"type": "object"}),
    ],
)
def test_schema_comes_from_the_first_value(value, schema):
    """Without a schema it is the JSON type of the first value, `{}` for None."""
    variable = Variable(value)
    assert variable.schema == schema
    assert variable.value == value


def test_data_models_declare_and_start_variables():
    """A class gives its schema and the JSON of its defaults; an instance is the first value too."""
    assert Variable(data_model=Notes).value == {"text": "", "score": 0}
    assert Variable(data_model=Notes(text="hello")).value == {"text": "hello", "score": 0}
    with pytest.raises(SchemaError, match="Strict accepts no empty value.*pass a first value"):
        Variable(data_model=Strict)
    assert Variable(Notes(text="x"), data_model=Notes).schema == Notes.get_schema()
    assert Variable(data_model=Notes, schema=Notes.get_schema()).schema == Notes.get_schema()
    with pytest.raises(ArgumentError, match="differ"):
        Variable(data_model=Notes, schema={"type": "string"})
    with pytest.raises(SchemaError):
        Variable("x", data_model=Notes)


def test_initializers_are_values_or_plain_callables():
    """JSON, a data model, a callable that is given the schema; not an async one, not beside a value."""
    seen = []

    def first(schema):
        seen.append(schema)
        return ["x"]

    async def late(schema):
        return "x"

    assert Variable(initializer=["a"]).value == ["a"]
    assert Variable(initializer=Notes(text="t")).value == {"text": "t", "score": 0}
    assert Variable(initializer=first, schema={"type": "array"}).value == ["x"]
    assert seen == [{"type": "array"}]
    assert Variable(initializer=first).schema == {"type": "array"}
    assert Variable(initializer=sm.initializers.Empty(data_model=Notes)).value == {"text": "", "score": 0}
    assert Variable(initializer=sm.initializers.Empty(), data_model=Notes).value == {"text": "", "score": 0}
    assert Variable(initializer=sm.initializers.Constant({"a": 1})).value == {"a": 1}
    with pytest.raises(ArgumentError, match="async"):
        Variable(initializer=late)
    with pytest.raises(ArgumentError, match="both"):
        Variable("x", initializer="y")
    with pytest.raises(SchemaError):
        Variable(initializer="x", schema={"type": "integer"})


def test_own_trainable_bit_depends_on_the_type():
    """True for Variable and Param, False for the others, unless the class or the argument says otherwise."""

    class Dial(Memory):
        trainable_default = True

    class Log(Memory):
        pass

    assert [cls(None).trainable for cls in (Variable, Param)] == [True, True]
    assert not any(cls(None).trainable for cls in (Memory, Stat, OptState, Intermediate, Log))
    assert Dial(None).trainable
    assert not Dial(None, trainable=False).trainable
    variable = Memory(None)
    variable.trainable = True
    assert variable.trainable
    with pytest.raises(ArgumentError, match="trainable"):
        variable.trainable = "yes"


def test_metadata_is_free_json():
    """Further keywords are read as metadata; what is no JSON is a DataError."""
    variable = Param("x", tag="prompt", init={"a": [1]}, name="style", description="how to write")
    assert variable.metadata == {"tag": "prompt", "init": {"a": [1]}}
    assert (variable.name, variable.description) == ("style", "how to write")
    with pytest.raises(DataError, match="tag"):
        Param("x", tag=object())


@pytest.mark.parametrize("name", ["", "1a", "a/b", "a-b", "$x", "class"])
def test_names_are_identifiers(name):
    """Names that are no identifiers, or keywords, are refused at once and when set later."""
    with pytest.raises(BadNameError, match="is not a valid"):
        Param("x", name=name)
    variable = Param("x")
    with pytest.raises(BadNameError):
        variable.name = name
    assert variable.name is None


def test_fields_are_read_without_the_value():
    """`get`, `v["key"]` and `in` read a value that is an object; anything else is refused with a reason."""
    variable = Param({"text": "x"})
    assert variable["text"] == "x"
    assert variable.get("text") == "x"
    assert variable.get("none", 7) == 7
    assert "text" in variable
    assert "none" not in variable
    with pytest.raises(FieldError, match="Did you mean 'text'"):
        variable["texd"]
    assert Param(["a", "b"])[1] == "b"
    with pytest.raises(DataError):
        Param("abc")[0]
    with pytest.raises(DataError):
        Param("abc").get("x")
    with pytest.raises(TypeError):
        iter(variable)


def test_replace_gives_a_new_variable():
    """Value and metadata change in the copy alone; type and schema stay."""
    old = Memory("abc", tag="t", trainable=True)
    new = old.replace(value="x", tag="u", trainable=False, name="n")
    assert type(new) is Memory
    assert (new.value, new.metadata, new.trainable, new.name) == ("x", {"tag": "u"}, False, "n")
    assert (old.value, old.metadata, old.trainable, old.name) == ("abc", {"tag": "t"}, True, None)
    assert old.replace().value == "abc"
    assert new.replace(name=None).name is None
    with pytest.raises(SchemaError):
        old.replace(value=3)


def test_state_of_a_variable_is_the_way_there_and_back():
    """`to_state().to_variable()` gives an equal Variable."""
    variable = Memory([1], tag="t", name="n")
    leaf = variable.to_state()
    assert (leaf.type, leaf.value, leaf.schema) == (Memory, [1], {"type": "array"})
    assert (leaf.trainable, leaf.name, leaf.metadata["tag"]) == (False, "n", "t")
    assert leaf.to_variable().to_state() == leaf
    assert leaf.to_variable() is not variable


def test_on_assign_may_change_or_refuse():
    """It is called after validation and before the swap; its value is validated again; its error leaves the value."""

    class Growing(Param):
        def on_assign(self, old, new):
            if "bad" in new:
                raise RuntimeError("no")
            return [*old, *new] if len(old) + len(new) < 5 else 3

    variable = Growing([1])
    variable.assign([2])
    assert variable.value == [1, 2]
    with pytest.raises(RuntimeError):
        variable.assign(["bad"])
    with pytest.raises(SchemaError):
        variable.assign([1, 2, 3])
    with pytest.raises(SchemaError):
        variable.assign("x")
    assert (variable.value, variable.version) == ([1, 2], 1)


def test_on_assign_without_a_return_keeps_the_value():
    """Returning None keeps what was assigned."""

    class Watched(Param):
        def on_assign(self, old, new):
            seen.append((old, new))

    seen = []
    Watched("a").assign("b")
    assert seen == [("a", "b")]


def test_assign_is_exact_under_threads():
    """No assign is lost: versions add up, and a read-modify-write in on_assign sees every predecessor."""

    class Sum(Param):
        def on_assign(self, old, new):
            return old + new

    variable = Sum(0)
    threads = [threading.Thread(target=lambda: [variable.assign(1) for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (variable.value, variable.version) == (1600, 1600)


def test_hooks_are_told_of_assignments():
    """A listener gets old, new and version; a refused assign tells nothing."""

    class Listener(sm.Hook):
        def on_variable_assign(self, event):
            events.append((event.variable, event.old, event.new, event.version))

    events = []
    variable = Param("a", name="style")
    with sm.hooks(Listener()):
        variable.assign("b")
        with pytest.raises(SchemaError):
            variable.assign(3)
        with using(variable, {"": "c"}):
            variable.assign("d")
    assert events == [("style", "a", "b", 1), ("style", "c", "d", 1)]


def test_copies_and_pickles_are_equal_and_apart():
    """copy, deepcopy and pickle give new Variables with the present value."""
    variable = Param("a", tag="t")
    for twin in (copy.copy(variable), copy.deepcopy(variable), pickle.loads(pickle.dumps(variable))):
        assert twin.to_state() == variable.to_state()
        twin.assign("b")
    assert variable.value == "a"
    shared = copy.deepcopy([variable, variable])
    assert shared[0] is shared[1]


def test_repr_is_short():
    """Type, value cut, name."""
    assert repr(Param("brief", name="style")) == "Param('brief', name='style')"
    assert len(repr(Param("x" * 1000))) < 120


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, None),
        ({"type": "string"}, ""),
        ({"type": "integer"}, 0),
        ({"type": "number"}, 0),
        ({"type": "boolean"}, False),
        ({"type": "array"}, []),
        ({"type": "object"}, {}),
        ({"type": "string", "default": "x"}, "x"),
        ({"type": ["string", "null"]}, None),
        ({"enum": ["b", None]}, None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ""),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "array"}}}, []),
    ],
)
def test_emptiest_value(schema, value):
    """The default, else the first of null, "", 0, false, [] and {} that the schema accepts."""
    assert sm.initializers.Empty()(schema) == value
    assert Variable(schema=schema).value == value


def test_model_with_defaults_is_made_by_its_class():
    """All fields with defaults: the JSON of `Model()`, factories included."""

    class Plan(sm.DataModel):
        steps: list[str] = ["think"]
        note: str | None = None

    assert Variable(data_model=Plan).value == {"steps": ["think"], "note": None}


def test_an_emptiest_value_that_is_none_is_refused():
    """The first value is validated: a minimum above zero needs a value of its own."""
    with pytest.raises(sm.errors.SchemaError):
        Variable(schema={"type": "integer", "minimum": 1})


def test_recursive_schema_ends():
    """A reference that leads to itself does not hang."""
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(sm.errors.SchemaError):
        Variable(schema=schema)

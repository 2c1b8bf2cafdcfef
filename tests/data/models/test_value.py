"""Values: frozen JSON with its schema."""

import copy
import pickle
import types
import typing
from datetime import date

import pydantic
import pytest
from pydantic import ConfigDict, field_validator

import synmod
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, frozen, label, schema_of, value_from, wrap
from synmod.errors import ArgumentError, DataError, FieldError, SchemaError, SymbolicValueError


class Query(DataModel):
    question: str
    top: int = 3
    tags: list[str] = []


OPEN = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"default": [1]}, "c": {}},
    "title": "OpenThing",
}


def opened(**json):
    return JsonDataModel(json, schema=OPEN)


def test_fields():
    """Brackets and dots give frozen JSON."""
    value = Query(question="why", tags=["x"]).to_json_data_model()
    assert value["question"] == value.question == "why"
    assert value.get("top") == 3
    with pytest.raises(TypeError, match="frozen"):
        value.tags.append("y")
    assert list(value) == list(value.keys()) == ["question", "top", "tags"]
    fresh = value.get_json()
    fresh["tags"].append("y")
    assert value.get_json()["tags"] == ["x"]
    assert value.get_schema() == Query.get_schema()
    assert value.prettify_json().splitlines()[1] == '  "question": "why",'


def test_a_field_that_is_not_there():
    """A FieldError is a KeyError and an AttributeError, and says what is there."""
    value = Query(question="why").to_json_data_model()
    for ask in (lambda: value["qestion"], lambda: value.qestion):
        with pytest.raises(FieldError, match=r"'question', 'top', 'tags'\. Did you mean 'question'\?") as error:
            ask()
        assert isinstance(error.value, KeyError)
        assert isinstance(error.value, AttributeError)
        assert not str(error.value).startswith('"')
    assert not hasattr(value, "nothing")
    assert value.get("nothing", 5) == 5


def test_a_field_that_is_declared_but_absent():
    """It gives the default of its schema, frozen, else an error that says to use get."""
    value = opened(a=1)
    assert value.b == [1]
    with pytest.raises(TypeError, match="frozen"):
        value["b"].append(2)
    with pytest.raises(FieldError, match="get"):
        value.c
    assert value.get("b") is None
    assert value.get_json() == {"a": 1}
    assert "b" not in value


def test_methods_and_names():
    """Methods win over fields in dot form; a declared field `name` wins over the label."""
    schema = {"type": "object", "properties": {"keys": {}, "name": {}, "get": {}}}
    value = JsonDataModel({"keys": 1, "name": "Ada"}, schema=schema, name="person")
    assert callable(value.keys)
    assert value["keys"] == 1
    assert value.name == "Ada"
    assert label(value) == "person"
    assert opened().name == "open_thing"
    assert JsonDataModel({}, schema=OPEN, name="mine").name == "mine"


def test_always_true_without_length():
    """Only None means 'not there'."""
    assert opened()
    with pytest.raises(TypeError):
        len(opened())


def test_equality():
    """Equal by exact JSON, DataModels included; schema and name do not count; hashable."""
    a = JsonDataModel({"x": 1, "y": 2}, schema={"type": "object"})
    b = JsonDataModel({"y": 2, "x": 1}, schema={"type": "object", "title": "T"}, name="n")
    assert a == b
    assert hash(a) == hash(b)
    assert a != JsonDataModel({"x": True, "y": 2}, schema={"type": "object"})
    assert a != JsonDataModel({"x": 1.0, "y": 2}, schema={"type": "object"})
    query = Query(question="why")
    assert query.to_json_data_model() == query
    assert query == query.to_json_data_model()
    assert a == {"y": 2, "x": 1} == a
    assert a == types.MappingProxyType({"x": 1, "y": 2})
    assert hash(a) == hash(frozen({"x": 1, "y": 2}))
    for other in ({"x": 1}, {"x": 1.0, "y": 2}, {"x": object(), "y": 2}, {1: 1}, [("x", 1)], "x"):
        assert a != other
    assert query == {"question": "why", "top": 3, "tags": []} == query
    assert query != {"question": "why"}


def test_frozen():
    """Nothing can be set."""
    value = opened(a=1)
    with pytest.raises(AttributeError, match="frozen"):
        value.a = 2
    with pytest.raises(TypeError):
        value["a"] = 2


def test_how_it_is_made():
    """A schema or a model that agree; a data model brings its own."""
    query = Query(question="why")
    value = JsonDataModel(query)
    assert value == JsonDataModel(value) == JsonDataModel(query, data_model=Query)
    assert JsonDataModel({"question": "q"}, data_model=value).to() == Query(question="q")
    assert JsonDataModel({"question": "q"}, schema=Query.get_schema(), data_model=Query) == {"question": "q"} or True
    for arguments in (({},), ({}, OPEN, Query), (5,)):
        with pytest.raises(ArgumentError):
            JsonDataModel(*arguments)
    with pytest.raises(DataError, match="no value at run time"):
        JsonDataModel(Query)
    with pytest.raises(SymbolicValueError):
        JsonDataModel(Query.to_symbolic_data_model())
    for foreign in ([1], "text", None):
        with pytest.raises(SchemaError, match="a data model is a JSON object") as caught:
            JsonDataModel(foreign, schema=OPEN)
        assert caught.value.errors[0].pointer == ""
        assert caught.value.errors[0].wanted == "an object"
    with pytest.raises(DataError):
        JsonDataModel({"a": {1, 2}}, schema=OPEN)
    with pytest.raises(SchemaError):
        JsonDataModel({}, schema={"type": "array"})


def test_validated_when_made():
    """The value must satisfy the schema; all faults are told."""
    with pytest.raises(SchemaError) as error:
        JsonDataModel({"question": 5, "tops": 1}, data_model=Query)
    assert [problem.pointer for problem in error.value.errors][:1] == ["/question"] or error.value.errors
    assert JsonDataModel({"question": "q"}, data_model=Query).get_json() == {"question": "q"}


def test_the_validators_of_the_class():
    """They run too, once; the JSON stays as it came."""
    runs = []

    class Even(DataModel):
        n: int
        day: date = date(2020, 1, 1)

        @field_validator("n")
        @classmethod
        def even(cls, n):
            runs.append(n)
            if n % 2:
                raise ValueError("must be even")
            return n * 10

    value = JsonDataModel({"n": 2}, data_model=Even)
    assert value.get_json() == {"n": 2}
    assert JsonDataModel(value, data_model=Even) == value
    assert JsonDataModel(Even(n=4), data_model=Even).n == 40
    assert runs == [2, 4]
    with pytest.raises(SchemaError, match="must be even") as error:
        JsonDataModel({"n": 3}, data_model=Even)
    assert error.value.errors[0].pointer == "/n"
    with pytest.raises(SchemaError):
        JsonDataModel({"n": 2, "day": "no date"}, data_model=Even)
    assert value.to().n == 20


def test_to():
    """Typed, validated, nothing coerced; undeclared fields are left out unless extras are allowed."""
    value = Query(question="why") + JsonDataModel({"n": 1}, schema={"type": "object", "properties": {"n": {}}})
    assert value.to(Query) == Query(question="why")
    with pytest.raises(ArgumentError, match=r"to\(Model\)"):
        value.to()

    class Loose(pydantic.BaseModel):
        model_config = ConfigDict(extra="allow")
        question: str

    assert value.to(Loose).model_extra == {"top": 3, "tags": [], "n": 1}

    class Other(DataModel):
        question: int

    with pytest.raises(SchemaError):
        value.to(Other)
    with pytest.raises(SchemaError):
        JsonDataModel({"n": "5"}, schema={"type": "object"}).to(
            type("N", (DataModel,), {"__annotations__": {"n": int}})
        )
    with pytest.raises(ArgumentError):
        value.to(OPEN)


def test_to_a_strict_class():
    """Dates come back also where pydantic is strict."""

    class Event(DataModel):
        model_config = ConfigDict(strict=True)
        day: date

    event = Event(day=date(2020, 1, 2))
    assert event.to_json_data_model().to() == event
    assert not isinstance(event.to_json_data_model().to(), JsonDataModel)


def test_an_instance_shares_nothing_frozen():
    """What `to` gives is plain and can be changed."""
    query = Query(question="why", tags=["x"]).to_json_data_model().to()
    query.tags.append("y")
    assert type(query.tags) is list


def test_copies():
    """A copy is the value; a pickle comes back equal."""
    value = JsonDataModel({"question": "why"}, data_model=Query, name="mine")
    assert copy.copy(value) is copy.deepcopy(value) is value
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert again.name == "mine"
    assert schema_of(again) is schema_of(value)
    assert (again + again) == (value + value)
    assert pickle.loads(pickle.dumps(value + value)) == value + value


def test_annotations():
    """`JsonDataModel[Model]` is for annotations."""
    annotation = JsonDataModel[Query]
    assert typing.get_origin(annotation) is JsonDataModel
    assert typing.get_args(annotation) == (Query,)


def test_inside_json():
    """A data model stands for its JSON at any depth."""
    value = JsonDataModel({"a": 1, "c": [Query(question="q"), opened(a=2)]}, schema=OPEN)
    assert value.get_json() == {"a": 1, "c": [{"question": "q", "top": 3, "tags": []}, {"a": 2}]}


def test_admit_at_an_edge():
    """A known subschema is enough; else the value is checked, and carries the schema of the edge."""
    value = Query(question="why", tags=["x"]).to_json_data_model()
    assert value_from(value, schema_of(value), Query, "x").tags is value.tags
    with pytest.raises(SchemaError, match=r"^rag: "):
        value_from({"question": 1}, schema_of(value), None, "rag")
    with pytest.raises(SchemaError, match=r"^rag: "):
        value_from("text", schema_of(value), None, "rag")


def test_wrap_checks_nothing():
    """The trusted door."""
    json = frozen({"question": 3})
    value = wrap(json, schema_of(Query), Query, "n")
    assert (value.name, value.get_json()) == ("n", json)


def test_a_value_put_together_from_valid_parts():
    """`JsonDataModel.of` freezes plain JSON, takes any declaration, and validates nothing."""
    value = JsonDataModel.of({"question": "why"}, Query, Query, "n")
    assert value == JsonDataModel({"question": "why"}, data_model=Query)
    assert (value.name, value.to()) == ("n", Query(question="why"))
    json = frozen({"question": "why", "tags": ["x"]})
    assert JsonDataModel.of(json, Query).tags is json["tags"]
    with pytest.raises(DataError):
        JsonDataModel.of([], Query)
    with pytest.raises(DataError):
        JsonDataModel.of({"question": {1}}, Query)


def test_the_symbol_of_a_value():
    """A value gives a symbol of its schema."""
    made = Query(question="q").to_json_data_model().to_symbolic_data_model(name="s")
    assert isinstance(made, SymbolicDataModel)
    assert made.name == "s"
    assert JsonDataModel.__module__ == "synmod.data"
    assert synmod.JsonDataModel is JsonDataModel


def test_the_place_of_a_class_fault():
    """The pointer leads to the value, also where pydantic names the alternative it has tried."""

    class Late(DataModel):
        days: list[date | None]

    with pytest.raises(SchemaError) as error:
        JsonDataModel({"days": [None, "never"]}, data_model=Late)
    assert error.value.errors[0].pointer == "/days/1"


def test_a_notebook_shows_a_line_per_field():
    """Of a value and of an instance: a text as it is, all else as JSON, escaped, and cut where it is long."""

    class Facts(DataModel):
        title: str
        points: list[int]

    facts = Facts(title="<b>" + "x" * 300, points=[1, 2])
    page = facts._repr_html_()
    assert page == facts.to_json_data_model()._repr_html_()
    assert "<tr><td>title</td><td>&lt;b&gt;xxx" in page
    assert "<td>[1,2]</td>" in page.replace(", ", ",")
    assert "x" * 197 + "..." in page and "x" * 198 not in page

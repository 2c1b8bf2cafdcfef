"""Schemas are checked once and interned: the same schema is the same object."""

import contextlib
import copy
import gc
import json
import pickle
import threading
import weakref

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as LibrarySchemaError

from synmod.data import Schema, schema_from, trusted_schema
from synmod.errors import DataError, SchemaError, SchemaTooComplex
from synmod.leaves.frozen import FrozenDict, frozen
from tests.data.schema_strategies import schemas

POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}, "required": ["x"]}


def test_equal_schemas_are_one_object():
    """Whatever way a schema comes, equal content gives the same object."""
    schema = schema_from(POINT)
    assert schema_from(copy.deepcopy(POINT)) is schema
    assert schema_from(frozen(POINT)) is schema
    assert schema_from(schema) is schema
    assert trusted_schema(json.loads(json.dumps(POINT))) is schema
    assert schema == POINT
    assert isinstance(schema, Schema)
    assert isinstance(schema, FrozenDict)


def test_order_of_keys_and_kinds_of_numbers_tell_schemas_apart():
    """Key order counts, and so does 1 against 1.0 and True, since the text of a schema is what a model reads."""
    assert schema_from(dict(reversed(POINT.items()))) is not schema_from(POINT)
    made = [schema_from({"const": one}, root="any") for one in (1, 1.0, True)]
    assert len({id(schema) for schema in made}) == 3
    assert schema_from({"const": 0.0}, root="any") is not schema_from({"const": -0.0}, root="any")


def test_true_is_the_schema_that_asks_nothing_and_false_is_none():
    """`True` is the interned `{}`; `False` is refused."""
    assert schema_from(True, root="any") is schema_from({}, root="any") is trusted_schema(True)
    for refused in (False, None, 1, "object", [], [{}]):
        with pytest.raises(SchemaError):
            schema_from(refused, root="any")
        with pytest.raises(SchemaError):
            trusted_schema(refused)


def test_schemas_are_kept_weakly():
    """A schema that nobody holds is forgotten."""
    schema = schema_from({"type": "string", "title": "held by nobody"}, root="any")
    gone = weakref.ref(schema)
    del schema
    gc.collect()
    assert gone() is None


def test_copies_and_pickles_are_the_schema_itself():
    """A schema is its own copy, deepcopy and pickle."""
    schema = schema_from(POINT)
    assert copy.copy(schema) is schema
    assert copy.deepcopy({"a": schema})["a"] is schema
    assert pickle.loads(pickle.dumps(schema)) is schema
    assert hash(schema) == hash(frozen(POINT))
    with pytest.raises(TypeError, match="frozen"):
        schema["type"] = "array"


def test_interning_is_safe_from_many_threads():
    """Threads that declare the same schemas at the same time get the same objects."""
    barrier = threading.Barrier(8)
    made = [[] for _ in range(8)]

    def declare(found):
        barrier.wait()
        for number in range(200):
            found.append(schema_from({"type": "object", "properties": {f"k{number % 20}": {"const": number}}}))

    threads = [threading.Thread(target=declare, args=(found,)) for found in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for found in made for a, b in zip(made[0], found, strict=True))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"properties": {}},
        {"properties": {"a": True}},
        {
            "$ref": "#/$defs/Node",
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        },
        {"$ref": "#/$defs/Node", "$defs": {"Node": {"properties": {"a": {}}}}},
    ],
)
def test_a_data_model_needs_an_object_at_its_root(schema):
    """`type` object, `properties`, or a reference to such."""
    assert schema_from(schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "array"},
        {"type": ["object", "null"]},
        {"anyOf": [{"type": "object"}]},
        {"type": "string", "properties": {}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "object"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": True}},
    ],
)
def test_any_other_root_is_for_variables_only(schema):
    """Without an object at its root a schema is refused for a data model, and taken for a Variable."""
    with pytest.raises(SchemaError, match="object at its root"):
        schema_from(schema)
    schema_from(schema, root="any")


@settings(max_examples=30)
@given(schemas())
def test_a_schema_that_jsonschema_takes_is_taken(schema):
    """What the metaschema of 2020-12 allows is refused for its cost only."""
    Draft202012Validator.check_schema(schema)
    with contextlib.suppress(SchemaTooComplex):
        assert schema_from(schema, root="any") == schema


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "strin"}, "/type"),
        ({"type": []}, "/type"),
        ({"type": ["string", "string"]}, "/type"),
        ({"type": {}}, "/type"),
        ({"properties": []}, "/properties"),
        ({"properties": {"a": 1}}, "/properties"),
        ({"properties": {"a/b": {"type": 1}}}, "/properties/a~1b/type"),
        ({"required": "a"}, "/required"),
        ({"required": ["a", "a"]}, "/required"),
        ({"required": [1]}, "/required"),
        ({"items": [{}]}, "/items"),
        ({"prefixItems": []}, "/prefixItems"),
        ({"allOf": []}, "/allOf"),
        ({"anyOf": {}}, "/anyOf"),
        ({"oneOf": [1]}, "/oneOf"),
        ({"enum": {}}, "/enum"),
        ({"minimum": "1"}, "/minimum"),
        ({"maximum": True}, "/maximum"),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"minLength": -1}, "/minLength"),
        ({"maxItems": 1.5}, "/maxItems"),
        ({"uniqueItems": "yes"}, "/uniqueItems"),
        ({"pattern": 1}, "/pattern"),
        ({"title": 1}, "/title"),
        ({"description": []}, "/description"),
        ({"examples": "x"}, "/examples"),
        ({"$ref": 1}, "/$ref"),
        ({"$defs": {"A": {"$defs": {"B": {"not": "x"}}}}}, "/$defs/A/$defs/B/not"),
        ({"dependentRequired": {"a": "b"}}, "/dependentRequired"),
        ({"if": 1}, "/if"),
    ],
)
def test_what_cannot_stand_in_a_keyword_is_named_with_its_pointer(schema, pointer):
    """Each malformed keyword is a SchemaError, as the library has it too."""
    with pytest.raises(LibrarySchemaError):
        Draft202012Validator.check_schema(schema)
    with pytest.raises(SchemaError) as caught:
        schema_from(schema, root="any")
    assert f"at {pointer}: " in str(caught.value)
    assert caught.value.errors == ()


def test_data_inside_a_schema_is_no_schema():
    """What looks like a keyword inside a constant, an enum, a default or an example is data."""
    like = {"$ref": "http://example.com", "type": "nonsense", "$id": 1}
    schema = {"const": like, "enum": [like], "default": like, "examples": [like], "x-more": like}
    assert schema_from(schema, root="any") == schema
    names = {"properties": {"$ref": {"type": "string"}, "$id": {}, "type": {"const": 1}}}
    assert schema_from(names) == names


def test_a_schema_is_json():
    """What is no JSON is no schema."""
    with pytest.raises(DataError, match="/enum"):
        schema_from({"enum": ("a", "b")}, root="any")
    with pytest.raises(SchemaError, match="inside itself"):
        cyclic = {}
        cyclic["properties"] = {"a": cyclic}
        schema_from(cyclic)

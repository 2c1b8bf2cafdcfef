"""Schemas are checked once and interned; they are closed, of one draft, and of bounded complexity."""

import copy
import gc
import json
import pickle
import re
import socket
import threading
import time
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as LibrarySchemaError

from synmod.data import (
    DataModel,
    Schema,
    SymbolicDataModel,
    intern_schema,
    is_subschema,
    is_valid,
    problems,
    schema_from,
    schema_of,
)
from synmod.errors import DataError, Problem, SchemaError, SchemaTooComplex
from synmod.leaves.frozen import FrozenDict, frozen
from tests.data.schema_strategies import schemas

POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}, "required": ["x"]}


def test_equal_schemas_are_one_object():
    """Whatever way a schema comes, equal content gives the same object."""
    schema = schema_from(POINT)
    assert schema_from(copy.deepcopy(POINT)) is schema
    assert schema_from(frozen(POINT)) is schema
    assert schema_from(schema) is schema
    assert intern_schema(json.loads(json.dumps(POINT))) is schema
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
    assert schema_from(True, root="any") is schema_from({}, root="any") is intern_schema(True)
    for refused in (False, None, 1, "object", [], [{}]):
        with pytest.raises(SchemaError):
            schema_from(refused, root="any")
        with pytest.raises(SchemaError):
            intern_schema(refused)


def test_schemas_that_nobody_holds_are_forgotten():
    """A bounded number of the latest apart, so that plain dicts find what is known of them."""
    schema = schema_from({"type": "string", "title": "held by nobody"}, root="any")
    gone = weakref.ref(schema)
    del schema
    for number in range(300):
        schema_from({"type": "string", "title": f"another {number}"}, root="any")
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


@pytest.mark.parametrize("schema", [{"type": "object"}, {"properties": {}}, {"properties": {"a": True}}])
def test_a_data_model_needs_an_object_at_its_root(schema):
    """`type` object, or `properties`."""
    assert schema_from(schema) == schema


def test_a_root_reference_to_an_object_is_resolved_one_step():
    """As pydantic writes a recursive model: `type` and `properties` stand at the root, beside the definitions."""

    class Tree(DataModel):
        name: str
        children: list["Tree"] = []

    node = Tree.model_json_schema()["$defs"]["Tree"]
    assert Tree.get_schema() == {"$defs": {"Tree": node}, **node}
    assert Tree.get_schema() == schema_from(Tree.model_json_schema())
    assert Tree.get_schema()["properties"].keys() == {"name", "children"}
    assert Tree(name="a", children=[Tree(name="b")]).get_json()["children"][0]["name"] == "b"
    assert is_subschema(Tree, Tree.model_json_schema())
    assert "description" in schema_from({"$ref": "#/$defs/A", "description": "D", "$defs": {"A": {"type": "object"}}})


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
        {"$ref": "#/$defs/A", "minProperties": 1, "$defs": {"A": {"type": "object", "minProperties": 2}}},
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
    """What the metaschema of 2020-12 allows, and is within the limits."""
    Draft202012Validator.check_schema(schema)
    made = schema_from(schema, root="any")
    assert made == schema or schema.keys() <= {"$ref", "$defs", "title", "default"}


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "strin"}, "/type"),
        ({"type": []}, "/type"),
        ({"type": ["string", "string"]}, "/type"),
        ({"type": {}}, "/type"),
        ({"properties": []}, "/properties"),
        ({"properties": {"a": 1}}, "/properties/a"),
        ({"properties": {"a/b": {"type": 1}}}, "/properties/a~1b/type"),
        ({"required": "a"}, "/required"),
        ({"required": ["a", "a"]}, "/required"),
        ({"required": [1]}, "/required/0"),
        ({"items": [{}]}, "/items"),
        ({"prefixItems": []}, "/prefixItems"),
        ({"allOf": []}, "/allOf"),
        ({"anyOf": {}}, "/anyOf"),
        ({"oneOf": [1]}, "/oneOf/0"),
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
        ({"dependentRequired": {"a": "b"}}, "/dependentRequired/a"),
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
    with pytest.raises(SchemaError, match="itself"):
        cyclic = {}
        cyclic["properties"] = {"a": cyclic}
        schema_from(cyclic)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "http://example.com/schema"}, "/$ref"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "/$ref"),
        ({"$ref": "file:///etc/passwd"}, "/$ref"),
        ({"$ref": "other.json"}, "/$ref"),
        ({"$ref": "other.json#/$defs/A"}, "/$ref"),
        ({"$ref": ""}, "/$ref"),
        ({"$ref": "#name"}, "/$ref"),
        ({"properties": {"a": {"items": {"$ref": "urn:x"}}}}, "/properties/a/items/$ref"),
        ({"$ref": "#/$defs/missing"}, "/$ref"),
        ({"$defs": {"unused": {"$ref": "#/$defs/missing"}}}, "/$defs/unused/$ref"),
        ({"$ref": "#/$defs/A/items", "$defs": {"A": {}}}, "/$ref"),
        ({"$ref": "#/prefixItems/1", "prefixItems": [{}]}, "/$ref"),
        ({"$ref": "#/prefixItems/-1", "prefixItems": [{}]}, "/$ref"),
        ({"$ref": "#/prefixItems/00", "prefixItems": [{}]}, "/$ref"),
        ({"$defs": {"A": {"$id": "http://example.com"}}}, "/$defs/A/$id"),
        ({"$anchor": "x"}, "/$anchor"),
        ({"items": {"$anchor": "x"}}, "/items/$anchor"),
        ({"$dynamicRef": "#x"}, "/$dynamicRef"),
        ({"$dynamicAnchor": "x"}, "/$dynamicAnchor"),
        ({"$vocabulary": {}}, "/$vocabulary"),
        ({"items": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}, "/items/$schema"),
    ],
)
def test_what_could_lead_out_is_refused_with_its_pointer(schema, pointer):
    """A reference that leaves the schema or leads nowhere, and every keyword that names or moves places."""
    with pytest.raises(SchemaError) as caught:
        schema_from(schema, root="any")
    assert f"at {pointer}: " in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}},
        {"$ref": "#/definitions/A", "definitions": {"A": {"type": "integer"}}},
        {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "integer"}}},
        {"$ref": "#/$defs/a%20%C3%A9", "$defs": {"a é": {"type": "integer"}}},
        {"$ref": "#/components/schemas/A", "components": {"schemas": {"A": {"type": "integer"}}}},
        {"allOf": [{"$ref": "#/x-list/1"}], "x-list": [{}, {"type": "integer"}]},
        {"anyOf": [{"$ref": "#/$defs/A/properties/x"}], "$defs": {"A": {"properties": {"x": {"type": "integer"}}}}},
    ],
)
def test_references_inside_the_schema_lead_where_the_pointer_says(schema):
    """Any place of the document may be named, escapes and percent signs included."""
    declared = schema_from(schema, root="any")
    assert is_valid(declared, 1)
    assert not is_valid(declared, "1")


def test_what_a_reference_names_is_checked_as_a_schema():
    """A place that is no subschema by itself becomes one when it is referred to."""
    schema_from({"x-part": {"type": "nonsense", "$ref": "http://x"}}, root="any")
    for part in ({"type": "nonsense"}, {"$ref": "http://x"}, {"items": {"$ref": "#/gone"}}, 5, "text", [{}]):
        with pytest.raises(SchemaError):
            schema_from({"x-part": part, "$ref": "#/x-part"}, root="any")


def test_a_whole_schema_may_refer_to_itself():
    """`#` is the root; below a property that is recursion."""
    schema = schema_from({"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}})
    assert is_valid(schema, {"child": {"child": {"n": 1}}})
    assert not is_valid(schema, {"child": {"child": {"n": "1"}}})


def test_format_is_an_annotation():
    """`format` asks nothing."""
    assert is_valid(schema_from({"type": "string", "format": "date-time"}, root="any"), "never")


def test_no_socket_is_opened(monkeypatch):
    """A hostile reference does not even look up a name."""
    opened = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: opened.append(args))
    monkeypatch.setattr(socket.socket, "connect", lambda *args: opened.append(args))
    with pytest.raises(SchemaError):
        schema_from({"properties": {"a": {"$ref": "http://example.com/x"}}})
    assert opened == []


def declared(schema):
    return schema_from(schema, root="any")


def refused(schema, said, kind=SchemaTooComplex):
    """The message of a refusal, which takes less than a second."""
    start = time.process_time()
    with pytest.raises(SchemaError, match=said) as caught:
        declared(schema)
    assert time.process_time() - start < 5  # a bound far above what is needed, for a machine that is busy
    assert type(caught.value) is kind
    return str(caught.value)


def inside_one_another(levels, wrap):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


WRAPS = {
    "items": lambda inner: {"items": inner},
    "properties": lambda inner: {"properties": {"a": inner}},
    "anyOf": lambda inner: {"anyOf": [inner]},
    "$defs": lambda inner: {"$defs": {"A": inner}},
    "not": lambda inner: {"not": inner},
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_fifty_subschemas_may_stand_inside_one_another(wrap):
    """Fifty pass, one more is refused with its pointer, and so are a hundred thousand."""
    declared(inside_one_another(50, wrap))
    assert "Schema at /" in refused(inside_one_another(51, wrap), "50 nested subschemas")
    refused(inside_one_another(100_000, wrap), "over 200 levels")


def test_ten_thousand_subschemas_are_allowed():
    """Counted over the whole schema, wherever they stand."""
    declared({"properties": {f"k{number}": {} for number in range(10_000)}})
    message = refused({"properties": {f"k{number}": {} for number in range(10_001)}}, "10,000 subschemas")
    assert "/properties/k10000" in message
    refused({"$defs": {str(outer): {"anyOf": [True] * 100} for outer in range(100)}}, "10,000 subschemas")


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_expansion_is_counted_without_expanding(keyword):
    """Definitions that double each other forty times are refused at once; what fits is allowed."""

    def doubling(levels):
        definitions = {f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
        return {"$defs": {**definitions, f"d{levels}": {"type": "integer"}}, "$ref": "#/$defs/d0"}

    declared(doubling(7))
    assert "1,000" in refused(doubling(20), "1,000 subschemas")
    refused(doubling(60), "subschemas in one chain")
    refused(doubling(4_000), "10,000 subschemas")


@pytest.mark.parametrize("order", [1, -1])
def test_fifty_references_may_stand_behind_one_another(order):
    """In whatever order the definitions are written."""

    def chain(length):
        links = [(f"d{number}", {"$ref": f"#/$defs/d{number + 1}", "minimum": 0}) for number in range(length)]
        return {"$ref": "#/$defs/d0", "$defs": dict([*links, (f"d{length}", {"type": "integer"})][::order])}

    assert is_valid(declared(chain(49)), 1)
    assert not is_valid(declared(chain(49)), -1)
    refused(chain(51), "50 subschemas in one chain")


def test_expansion_starts_again_below_a_property():
    """What is asked of the value of a key does not count where the object stands."""
    many = {"$defs": {"many": {"allOf": [{"minimum": number} for number in range(600)]}}}
    apart = declared({**many, "properties": {"a": {"$ref": "#/$defs/many"}, "b": {"$ref": "#/$defs/many"}}})
    assert is_valid(apart, {"a": 599, "b": 599})
    assert not is_valid(apart, {"a": 599, "b": 598})
    refused({**many, "allOf": [{"$ref": "#/$defs/many"}, {"$ref": "#/$defs/many"}]}, "1,000 subschemas")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
        {"properties": {"a": {"not": {"$ref": "#/properties/a"}}}},
        {"$defs": {"A": {"if": {"$ref": "#/$defs/A"}}}},
        {"$defs": {"A": {"dependentSchemas": {"x": {"$ref": "#/$defs/A"}}}}},
        {"oneOf": [{"then": {"oneOf": [{"$ref": "#/oneOf/0"}]}}]},
    ],
)
def test_a_cycle_without_a_step_into_the_value_is_refused(schema):
    """Such a schema could never be checked; it is a SchemaError with a pointer."""
    refused(schema, "Schema at .*leads back", SchemaError)


@pytest.mark.parametrize(
    "step",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"items": {"$ref": "#"}},
        {"prefixItems": [{"$ref": "#"}]},
        {"additionalProperties": {"$ref": "#"}},
        {"patternProperties": {"a": {"$ref": "#"}}},
        {"contains": {"$ref": "#"}},
        {"unevaluatedItems": {"$ref": "#"}},
        {"anyOf": [{"type": "null"}, {"properties": {"a": {"anyOf": [{"$ref": "#"}]}}}]},
    ],
)
def test_a_cycle_through_a_part_of_the_value_is_recursion(step):
    """Properties, items and additional properties make the value smaller at each turn."""
    assert is_valid(declared(step), None)


@pytest.mark.parametrize("source", [r"^\w{1,250}$", r"[\w]{1,300}", r"(\w{1,64}\.){1,10}"])
def test_patterns_with_long_repeats_compile(source):
    """Though the classes of every script would be too large for the engine."""
    assert schema_from({"pattern": source}, root="any")["pattern"] == source


@pytest.mark.parametrize(
    "source", ["(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "(", "[", "a{2,1}", "(a{1000}){1000}", "(" * 5_000 + ")" * 5_000]
)
def test_patterns_must_compile_in_linear_time(source):
    """Look-around, backreferences, syntax errors and huge automata are refused with the pointer, used or not."""
    message = refused({"properties": {"a": {"pattern": source}}}, "linear-time engine", SchemaError)
    assert "/properties/a/pattern: " in message
    message = refused({"patternProperties": {source: {}}}, "linear-time engine", SchemaError)
    assert "/patternProperties/" in message
    refused({"$defs": {"unused": {"pattern": source}}}, "linear-time engine", SchemaError)


def test_a_pattern_is_searched_for_anywhere():
    """As JSON Schema wants; `$` is the end of the text, not of a line."""
    assert is_valid(declared({"pattern": "b"}), "abc")
    assert not is_valid(declared({"pattern": "^b"}), "abc")
    assert not is_valid(declared({"pattern": "c$"}), "abc\n")


def test_unique_items_of_any_kind_are_declared_and_checked():
    """A set of tuples is an honest field."""

    class Pairs(DataModel):
        pairs: set[tuple[int, int]]
        anything: set[Any] = set()

    assert Pairs(pairs={(1, 2)}).get_json()["pairs"] == [[1, 2]]
    assert [fault.pointer for fault in problems(schema_from(Pairs.get_schema()), {"pairs": [[1, 2], [1, 2]]})] == [
        "/pairs"
    ]


DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
PLAIN = {"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"type": "string"}}}


@pytest.mark.parametrize("address", [*DRAFTS.values(), "https://json-schema.org/draft-07/schema"])
def test_the_name_of_a_draft_is_taken_off(address):
    """The root names no `$schema`, so that equal schemas are one."""
    assert schema_from({"$schema": address, **PLAIN}) is schema_from(PLAIN)


@pytest.mark.parametrize("name", ["$id", "id"])
def test_the_name_of_the_document_is_taken_off(name):
    """A root `$id` or `id` goes if every reference stays inside; else the reference is refused."""
    assert schema_from({name: "https://example.com/a", **PLAIN}) is schema_from(PLAIN)
    with pytest.raises(SchemaError, match=r"/properties/a/\$ref"):
        schema_from({name: "https://example.com/a", "properties": {"a": {"$ref": "https://example.com/a#/x"}}})


REFUSED = [
    ({"items": [{"type": "string"}]}, "/properties/a/items", "prefixItems"),
    ({"additionalItems": False}, "/properties/a/additionalItems", "prefixItems"),
    ({"dependencies": {"x": ["y"]}}, "/properties/a/dependencies", "dependentRequired"),
    ({"$recursiveRef": "#"}, "/properties/a/$recursiveRef", "$ref"),
    ({"minimum": 1, "exclusiveMinimum": True}, "/properties/a/exclusiveMinimum", "bound"),
    ({"maximum": 1, "exclusiveMaximum": False}, "/properties/a/exclusiveMaximum", "bound"),
]


@pytest.mark.parametrize("draft", [None, "4", "7", "2019-09"])
@pytest.mark.parametrize(("part", "pointer", "said"), REFUSED)
def test_keywords_of_older_drafts_are_refused(part, pointer, said, draft):
    """A SchemaError names the pointer and how it is written today."""
    named = {"$schema": DRAFTS[draft]} if draft else {}
    with pytest.raises(SchemaError) as caught:
        schema_from({**named, **PLAIN, "properties": {"a": part}})
    assert f"at {pointer}: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("draft", DRAFTS)
def test_annotations_beside_a_reference_are_fine(draft):
    """Titles, descriptions and definitions beside `$ref` mean the same in every draft."""
    part = {"$ref": "#/definitions/A", "title": "T", "description": "D", "default": "d", "x-more": 1}
    schema = schema_from({"$schema": DRAFTS[draft], **PLAIN, "properties": {"a": part}})
    assert is_valid(schema, {"a": "text"})
    assert not is_valid(schema, {"a": 1})


def test_assertions_beside_a_reference_hold():
    """As 2020-12 reads them, whatever draft is named."""
    for named in ({}, {"$schema": DRAFTS["7"]}):
        schema = schema_from({**named, **PLAIN, "properties": {"a": {"$ref": "#/definitions/A", "minLength": 3}}})
        assert is_valid(schema, {"a": "abc"})
        assert not is_valid(schema, {"a": "ab"})


@pytest.mark.parametrize(
    ("reference", "holder"),
    [
        ("#/$defs/JSON schema for X", {"$defs": {"JSON schema for X": {"type": "string"}}}),
        ("#/$defs/JSON%20schema%20for%20X", {"$defs": {"JSON schema for X": {"type": "string"}}}),
        ("#/definitions/a.b/definitions/c d", {"definitions": {"a.b": {"definitions": {"c d": {"type": "string"}}}}}),
        ("#/components/schemas/C d", {"components": {"schemas": {"C d": {"type": "string"}}}}),
        (
            "#/components/schemas/C d",
            {"components": {"schemas": {"C d": {"$ref": "#/components/x"}}, "x": {"$ref": "#/$defs/e f"}}}
            | {"$defs": {"e f": {"type": "string"}, "x": {"type": "null"}}},
        ),
        ("#/$defs/100%", {"$defs": {"100%": {"type": "string"}}}),
        ("#/$defs/100%25", {"$defs": {"100%": {"type": "string"}}}),
        ("#/$defs/x~1y~0z", {"$defs": {"x/y~z": {"type": "string"}}}),
        ('#/$defs/List["X"]<é>|^`{}#', {"$defs": {'List["X"]<é>|^`{}#': {"type": "string"}}}),
        ("#/$defs/%C3%A9", {"$defs": {"é": {"type": "string"}}}),
        ("#/properties/b c", {}),
    ],
)
def test_references_of_others_are_resolved(reference, holder):
    """After percent decoding, by RFC 6901: as it is written elsewhere, the schema validates and is merged here."""
    fields = {"b c": {"type": "string"}, "a": {"$ref": reference}}
    schema = schema_from({"type": "object", "properties": fields, **holder})
    assert schema_from({"type": "object", "properties": fields, **holder}) is schema
    assert is_valid(schema, {"a": "x"})
    assert problems(schema, {"a": 1}) == (Problem("/a", "string", "1"),)
    merged = schema_of(
        SymbolicDataModel(schema=schema) + SymbolicDataModel(schema={"type": "object", "properties": {"z": True}})
    )
    assert is_valid(merged, {"a": "x", "z": 1})
    assert not is_valid(merged, {"a": 1})


@pytest.mark.parametrize("reference", ["#/$defs/none here", "#anchor", "other.json#/$defs/x", "#/$defs/a%20b"])
def test_a_reference_that_cannot_be_resolved_is_named(reference):
    """In an error of ours, with its place."""
    with pytest.raises(SchemaError, match=re.escape(repr(reference))):
        schema_from({"type": "object", "properties": {"a": {"$ref": reference}}, "$defs": {"x": True}})


def test_a_limit_is_told_at_a_place_that_the_schema_has():
    """The place in a definition, not the way to it through references."""
    levels = 24
    links = [{"$ref": f"#/$defs/d{level + 1}"} for level in range(levels)]
    chain = {f"d{level}": {"allOf": [{"not": {"not": link}}]} for level, link in enumerate(links)}
    schema = {"type": "object", "properties": {"a": links[0]}, "$defs": {**chain, f"d{levels}": {"minimum": 0}}}
    with pytest.raises(SchemaTooComplex) as caught:
        schema_from(schema)
    place = str(caught.value).removeprefix("Schema at ").partition(":")[0]
    here = schema
    for step in place.split("/")[1:]:
        here = here[int(step) if isinstance(here, list) else step]
    assert here

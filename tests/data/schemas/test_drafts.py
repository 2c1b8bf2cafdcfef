"""Schemas of older drafts: taken where they mean the same today, refused where they do not."""

import pytest

from synmod.data import is_valid, schema_from
from synmod.errors import SchemaError

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


@pytest.mark.parametrize("address", ["http://json-schema.org/draft-03/schema#", "https://example.com", "", 7, None, {}])
def test_an_unknown_draft_is_refused(address):
    """Anything but the drafts from 4 to 2020-12 is a SchemaError at /$schema."""
    with pytest.raises(SchemaError, match=r"/\$schema"):
        schema_from({"$schema": address, **PLAIN})


REFUSED = [
    ({"items": [{"type": "string"}]}, "/properties/a/items", "prefixItems", "4 6 7 2019-09"),
    ({"additionalItems": False}, "/properties/a/additionalItems", "prefixItems", "4 6 7 2019-09"),
    ({"dependencies": {"x": ["y"]}}, "/properties/a/dependencies", "dependentRequired", "4 6 7 2019-09"),
    ({"$recursiveRef": "#"}, "/properties/a/$recursiveRef", "$ref", "4 6 7 2019-09"),
    ({"minimum": 1, "exclusiveMinimum": True}, "/properties/a/exclusiveMinimum", "bound", "4 6 7 2019-09"),
    ({"maximum": 1, "exclusiveMaximum": False}, "/properties/a/exclusiveMaximum", "bound", "4 6 7 2019-09"),
    ({"$ref": "#/definitions/A", "minLength": 3}, "/properties/a/minLength", "beside '$ref'", "4 6 7"),
    ({"$ref": "#/definitions/A", "properties": {}}, "/properties/a/properties", "beside '$ref'", "4 6 7"),
]


@pytest.mark.parametrize(
    ("part", "pointer", "said", "draft"),
    [(part, pointer, said, draft) for part, pointer, said, drafts in REFUSED for draft in drafts.split()],
)
def test_what_means_something_else_today_is_refused(part, pointer, said, draft):
    """A SchemaError names the pointer and how it is written today."""
    schema = {"$schema": DRAFTS[draft], **PLAIN, "properties": {"a": part}}
    with pytest.raises(SchemaError) as caught:
        schema_from(schema)
    assert f"at {pointer}: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("draft", DRAFTS)
def test_annotations_beside_a_reference_are_fine(draft):
    """Titles, descriptions and definitions beside `$ref` mean the same in every draft."""
    part = {"$ref": "#/definitions/A", "title": "T", "description": "D", "default": "d", "x-more": 1}
    schema = schema_from({"$schema": DRAFTS[draft], **PLAIN, "properties": {"a": part}})
    assert is_valid(schema, {"a": "text"})
    assert not is_valid(schema, {"a": 1})


@pytest.mark.parametrize("draft", [None, "2020-12", "2019-09"])
def test_assertions_beside_a_reference_hold_in_the_newer_drafts(draft):
    """From 2019-09 on, what stands beside `$ref` is asked as well."""
    named = {"$schema": DRAFTS[draft]} if draft else {}
    schema = schema_from({**named, **PLAIN, "properties": {"a": {"$ref": "#/definitions/A", "minLength": 3}}})
    assert is_valid(schema, {"a": "abc"})
    assert not is_valid(schema, {"a": "ab"})


def test_old_keywords_without_a_draft_are_unknown_words():
    """A schema that names no draft is one of 2020-12, where unknown keywords ask nothing."""
    schema = schema_from({"properties": {"a": {"dependencies": {"x": ["y"]}, "additionalItems": False}}})
    assert is_valid(schema, {"a": {"x": 1}})


def test_an_id_inside_a_schema_of_draft_4_is_refused():
    """There it moved the base of references."""
    with pytest.raises(SchemaError, match="/properties/a/id"):
        schema_from({"$schema": DRAFTS["4"], "type": "object", "properties": {"a": {"id": "#x"}, "id": {}}})
    schema_from({"$schema": DRAFTS["4"], "type": "object", "properties": {"id": {"type": "string"}}})

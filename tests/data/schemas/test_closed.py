"""A schema refers to itself only: nothing in it opens a file or a socket."""

import socket

import pytest

from synmod.data import is_valid, schema_from
from synmod.errors import SchemaError


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

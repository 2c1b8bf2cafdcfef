"""A schema over the complexity budget is refused when it is declared, and quickly."""

import time

import pytest

from synmod.data import MAX_WEIGHT, compiled, is_valid, schema_from, weight_of
from synmod.errors import SchemaError, SchemaTooComplex


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
    assert "Schema at /" in refused(inside_one_another(51, wrap), "50 subschemas")
    refused(inside_one_another(100_000, wrap), "50 subschemas")


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

    declared(doubling(8))
    assert "10,000" in refused(doubling(40), "10,000 subschemas")
    refused(doubling(4_000), "10,000 subschemas")


def test_expansion_starts_again_below_a_property():
    """What is asked of the value of a key does not count where the object stands."""
    many = {"$defs": {"many": {"allOf": [{"minimum": number} for number in range(6_000)]}}}
    declared({**many, "properties": {"a": {"$ref": "#/$defs/many"}, "b": {"$ref": "#/$defs/many"}}})
    refused({**many, "allOf": [{"$ref": "#/$defs/many"}, {"$ref": "#/$defs/many"}]}, "10,000 subschemas")


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


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("(?=a)", "look-around"),
        ("(?!a)", "look-around"),
        ("(?<=a)b", "look-around"),
        (r"(a)\1", "backreferences"),
        ("(", "unclosed group"),
        ("[", "unclosed character class"),
        (r"\Z", "unrecognized escape"),
        ("a{2,1}", "repetition"),
        (r"\w{1000}", "large|limit"),
        ("[a-z]{999999}", "limit"),
        ("(a{1000}){1000}", "large|limit"),
        ("(" * 5_000 + ")" * 5_000, "nest|limit"),
    ],
)
def test_patterns_must_compile_in_linear_time(source, said):
    """Look-around, backreferences, syntax errors and huge automata are refused with the pointer."""
    message = refused({"properties": {"a": {"pattern": source}}}, said)
    assert "/properties/a/pattern: " in message
    message = refused({"patternProperties": {source: {}}}, said)
    assert "/patternProperties/" in message


def test_all_patterns_together_have_a_limit():
    """A thousand large patterns are refused before they are compiled."""
    refused({"anyOf": [{"pattern": rf"\w{{190}}x{number}"} for number in range(1_000)]}, "limit of size")
    declared({"anyOf": [{"pattern": rf"^[a-z]{{1,20}}_{number}$"} for number in range(100)]})
    declared({"anyOf": [{"pattern": r"\w{150}"}] * 100})


def test_the_weight_of_a_pattern_follows_its_repetitions():
    """Nested repetitions multiply, classes of letters weigh more than letters."""
    assert weight_of("abc") == 3
    assert weight_of("a{10}") >= 10
    assert weight_of("(a{10}){10}") >= 100
    assert weight_of(r"\w{10}") > weight_of("[a-z]{10}") >= 10
    assert weight_of(r"\(\[\{") < 20
    assert weight_of("(a{999999999}){999999999}") > MAX_WEIGHT
    assert weight_of(")(") == 0


def test_a_pattern_is_searched_for_anywhere():
    """As JSON Schema wants; `$` is the end of the text, not of a line."""
    assert compiled("b").found_in("abc")
    assert not compiled("^b").found_in("abc")
    assert not compiled("c$").found_in("abc\n")
    assert compiled(r"^\d$").found_in("٣")


UNKNOWN = [
    {},
    {"items": {}},
    {"items": {"type": "object"}},
    {"items": {"type": ["string", "array"]}},
    {"items": {"enum": [1, [2]]}},
    {"items": {"anyOf": [{"type": "string"}, {}]}},
    {"items": {"$ref": "#/$defs/A"}},
    {"prefixItems": [{"type": "string"}]},
    {"prefixItems": [{}], "items": {"type": "string"}},
    {"items": {"minimum": 3}},
]
SCALAR = [
    {"items": {"type": "string"}},
    {"items": {"type": ["integer", "null"]}},
    {"items": {"enum": ["a", 1, None]}},
    {"items": {"const": 1}},
    {"items": {"anyOf": [{"type": "string"}, {"const": 1}]}},
    {"items": {"allOf": [{}, {"type": "string"}]}},
    {"items": {"$ref": "#/$defs/B"}},
    {"items": {"$ref": "#/$defs/C"}},
    {"prefixItems": [{"type": "string"}], "items": False},
    {"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}},
]
DEFINITIONS = {"A": {"type": "object"}, "B": {"type": "number"}, "C": {"oneOf": [{"$ref": "#/$defs/B"}]}}


@pytest.mark.parametrize("schema", UNKNOWN)
def test_unique_items_that_may_be_large_need_a_short_list(schema):
    """Unless the items are shown to be scalars, `maxItems` of at most 1,000 is asked for."""
    schema = {"uniqueItems": True, "$defs": DEFINITIONS, **schema}
    refused({"properties": {"a": schema}, "$defs": DEFINITIONS}, "/properties/a/uniqueItems.*1,000")
    refused({**schema, "maxItems": 1_001}, "1,000")
    declared({**schema, "maxItems": 1_000})
    declared({**schema, "uniqueItems": False})


@pytest.mark.parametrize("schema", SCALAR)
def test_unique_scalars_may_be_many(schema):
    """Where `items`, `prefixItems` and what they refer to show scalars, any length is fine."""
    declared({"uniqueItems": True, "$defs": DEFINITIONS, **schema})


def test_shared_parts_do_not_make_a_small_dict_a_large_schema():
    """A dict that doubles itself in memory is counted as what it would be when written."""
    part = {"type": "string"}
    for _ in range(45):
        part = {"anyOf": [part, part]}
    refused(part, "limit")
    data = ["x"]
    for _ in range(45):
        data = [data, data]
    refused({"default": data}, "limit")

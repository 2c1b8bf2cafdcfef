"""Validation has the meaning of jsonschema, tells every fault with its place, and cannot hang."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from synmod.data import CheckBudget, is_valid, problems, schema_from, trusted_schema, validate
from synmod.errors import Problem, SchemaError, SchemaTooComplex
from synmod.leaves.frozen import frozen
from tests.data.schema_strategies import VALUES, schemas


def declared(schema):
    return schema_from(schema, root="any")


def place_in(value, pointer):
    """Where a pointer leads, as indices in document order."""
    place = []
    for step in pointer.split("/")[1:]:
        index = list(value).index(step) if isinstance(value, dict) else int(step)
        value = value[step] if isinstance(value, dict) else value[index]
        place.append(index)
    return place


@settings(max_examples=80, deadline=None)
@given(schemas(), st.lists(VALUES, min_size=5, max_size=5))
def test_the_verdict_is_that_of_jsonschema(written, values):
    """Over all keywords, values plain and frozen; and an invalid value has a fault that is told."""
    try:
        schema = declared(written)
    except SchemaTooComplex:
        return
    library = Draft202012Validator(written, registry=Registry())
    for value in values:
        expected = library.is_valid(value)
        assert is_valid(schema, value) == expected
        assert is_valid(schema, frozen(value)) == expected
        found = problems(schema, value)
        assert bool(found) != expected
        assert all(len(problem.got) <= 200 and problem.wanted for problem in found)
        places = [place_in(value, problem.pointer) for problem in found]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "integer"}, [1, 1.0, -0.0, 10**50], [True, 1.5, "1", None]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"const": 1}, [1, 1.0], [True, "1"]),
        ({"const": [1, {"a": 0}]}, [[1.0, {"a": 0.0}]], [[True, {"a": 0}], [1, {"a": False}], [1]]),
        ({"enum": [True, "a"]}, [True, "a"], [1, "b", [True]]),
        ({"multipleOf": 0.1}, [0.2, 1], [0.3, 0.35]),
        ({"multipleOf": 0.5}, [10**900, 1e308], [0.3]),
        ({"multipleOf": 10**900}, [0, 10**901], [1e300, 5]),
        ({"minLength": 2, "maxLength": 2}, ["éa", "🙂🙂", 1], ["a", "abc"]),
        ({"pattern": r"^\d+$"}, ["1", 5], ["a", "1\n"]),
        ({"uniqueItems": True, "maxItems": 9}, [[1, True], [1, "1"], [{"a": 1}, {"a": 2}]], [[1, 1.0], [{"a": 1}] * 2]),
        ({"contains": {"const": 1}, "minContains": 0}, [[], [2]], []),
        ({"contains": {"const": 1}, "maxContains": 1}, [[1], [1, 2]], [[], [1, 1.0]]),
        ({"minContains": 2}, [[], 1], []),
        ({"required": ["a"]}, [{"a": None}, []], [{}, {"b": 1}]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"const": 1}}, ["ab", 1], ["a", 2]),
        ({"then": False}, [1], []),
        ({"properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}]),
        ({"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False}, [{"ab": "x"}], [{"b": 1}]),
        ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
        ({"prefixItems": [{"const": 1}], "items": False}, [[1], []], [[2], [1, 1]]),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, [{"a": 1}], [{"b": 1}]),
        ({"anyOf": [{"prefixItems": [{"const": 1}]}, True], "unevaluatedItems": False}, [[1], []], [[2], [1, 1]]),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 1}, {}], [{"a": 1}]),
        ({"oneOf": [{"minimum": 2}, {"maximum": 3}]}, [1, 4], [2, 3, "x"]),
    ],
)
def test_known_verdicts(schema, valid, invalid):
    """Examples of what each keyword means."""
    checked = declared(schema)
    library = Draft202012Validator(schema, registry=Registry())
    for value in valid:
        assert is_valid(checked, value)
        assert problems(checked, value) == ()
    for value in invalid:
        assert not is_valid(checked, value)
        assert problems(checked, value)
    for value in [*valid, *invalid]:
        try:
            expected = library.is_valid(value)
        except OverflowError:  # the library cannot divide these
            continue
        if not (isinstance(value, str) and value.endswith("\n")):  # where its engine of patterns means something else
            assert is_valid(checked, value) == expected


def test_a_schema_is_a_value_too():
    """An interned schema stands for its JSON like any frozen object."""
    schema = trusted_schema({"type": "object"})
    assert is_valid(declared({"type": "object", "properties": {"type": {"const": "object"}}}), schema)
    assert not is_valid(declared({"type": "array"}), schema)


ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": ["integer", "null"], "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        "home": {"anyOf": [{"$ref": "#/$defs/Home"}, {"type": "null"}]},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
    "$defs": {
        "Home": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ([], [("", "object", "[]")]),
        ({"name": "x"}, [("", "the key 'age'", '{"name": "x"}'), ("/name", "at least 2 characters", '"x"')]),
        ({"age": -1, "name": 5}, [("/age", "a number of at least 0", "-1"), ("/name", "string", "5")]),
        ({"name": "xy", "age": "1"}, [("/age", "integer or null", '"1"')]),
        ({"name": "xy", "age": 1, "nane": 1}, [("/nane", "no key 'nane'", "1")]),
        (
            {"name": "xy", "age": 1, "tags": ["a", "c", "b", 1]},
            [
                ("/tags", "at most 3 items", '["a", "c", "b", 1]'),
                ("/tags/1", 'one of "a", "b"', '"c"'),
                ("/tags/3", 'one of "a", "b"', "1"),
            ],
        ),
        ({"name": "xy", "age": 1, "home": 3}, [("/home", "object or null", "3")]),
        (
            {"name": "xy", "age": 1, "home": {"zip": 1}},
            [("/home", "the key 'city'", '{"zip": 1}'), ("/home/zip", "string", "1")],
        ),
    ],
)
def test_faults_are_told_in_document_order(value, faults):
    """Each with its pointer, what was wanted and what was got; a fault in a nullable part is told where it is."""
    assert problems(declared(ORDER), value) == tuple(Problem(*fault) for fault in faults)
    assert problems(declared(ORDER), frozen(value)) == tuple(Problem(*fault) for fault in faults)


def test_an_unknown_key_is_told_with_the_nearest_known_one():
    """'Did you mean' for what was misspelt, at the place of the key."""
    (fault,) = problems(declared(ORDER), {"name": "xy", "age": 1, "tagss": []})
    assert fault.pointer == "/tagss"
    assert "Did you mean 'tags'?" in fault.wanted


def test_the_alternative_that_is_meant_is_told_by_its_constant():
    """Of several kinds of objects the one with the right constant is taken for meant."""
    cat = {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind", "lives"]}
    dog = {"properties": {"kind": {"const": "dog"}, "name": {"type": "string"}}, "required": ["kind", "name"]}
    for keyword in ("anyOf", "oneOf"):
        schema = declared({"items": {keyword: [{"type": "object", **cat}, {"type": "object", **dog}]}})
        assert problems(schema, [{"kind": "dog", "name": 1}]) == (Problem("/0/name", "string", "1"),)
        assert [fault.pointer for fault in problems(schema, [{"kind": "cow"}])] == ["/0"]


def test_at_most_ten_faults_are_told():
    """All up to ten; the first ones of the document."""
    schema = declared({"items": {"type": "string"}})
    assert [fault.pointer for fault in problems(schema, list(range(100)))] == [f"/{index}" for index in range(10)]
    assert len(problems(schema, list(range(7)))) == 7
    assert len(problems(schema, list(range(100)), limit=3)) == 3
    assert len(problems(declared({"required": [f"k{index}" for index in range(100)]}), {})) == 10


def test_what_was_got_is_cut_to_200_characters():
    """Large values are not written out for an error."""
    schema = declared({"type": "integer"})
    for value in ["x" * 500, "é" * 200, ["y" * 300], {str(n): n for n in range(1000)}, '"' * 150, [[]] * 10_000]:
        (fault,) = problems(schema, value)
        assert len(fault.got) == 200
        assert fault.got.endswith("…")
    assert problems(schema, "x" * 198)[0].got == json.dumps("x" * 198)


def test_the_error_begins_with_where_and_carries_the_faults():
    """`validate` raises what `problems` lists, and gives back nothing for a valid value."""
    schema = declared(ORDER)
    assert validate(schema, {"name": "xy", "age": None}, "critic/answer") is None
    with pytest.raises(SchemaError) as caught:
        validate(schema, {"name": 1, "age": 1, "x": 1}, "critic/answer")
    assert str(caught.value).startswith("critic/answer: ")
    assert caught.value.errors == problems(schema, {"name": 1, "age": 1, "x": 1})
    assert "/name" in str(caught.value)
    assert "/x" in str(caught.value)


def test_patterns_run_in_linear_time():
    """Nested repetitions that hang Python's engine are answered at once, in keys as well."""
    start = time.process_time()
    text = "a" * 20_000 + "b"
    assert not is_valid(declared({"pattern": "^(a+)+$"}), text)
    assert not is_valid(declared({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}), {text: 1})
    assert not is_valid(declared({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}), {text: 1})
    assert problems(declared({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}), {text: 1})
    assert not is_valid(declared({"propertyNames": {"pattern": "^(a+)+$"}}), {text: 1})
    assert time.process_time() - start < 5


def test_a_validation_over_its_budget_is_stopped():
    """More than 200,000 keyword checks, and more than 50 for each JSON value, are a SchemaTooComplex."""
    heavy = declared({"items": {"anyOf": [{"const": number} for number in range(2_000)]}})
    assert is_valid(heavy, [1_999] * 50)
    with pytest.raises(SchemaTooComplex, match="200,000"):
        is_valid(heavy, [1_999] * 400)
    with pytest.raises(SchemaTooComplex, match="200,000"):
        problems(heavy, [1_999] * 400)
    with pytest.raises(SchemaTooComplex, match="200,000"):
        validate(heavy, [1_999] * 400, "x")


def test_a_large_value_may_take_fifty_checks_for_each_part():
    """The budget grows with what is checked."""
    light = declared({"items": {"allOf": [{"minimum": number - 40} for number in range(40)]}})
    assert is_valid(light, [0] * 20_000)
    heavier = declared({"items": {"allOf": [{"minimum": number - 60} for number in range(60)]}})
    with pytest.raises(SchemaTooComplex):
        is_valid(heavier, [0] * 20_000)


def test_several_validations_may_share_a_budget():
    """What one has spent the next has not; verdicts are not mixed up between values."""
    schema = declared({"items": {"type": "integer", "minimum": 0}})
    budget = CheckBudget(1_000)
    for _ in range(4):
        assert is_valid(schema, [1] * 100, budget=budget)
    with pytest.raises(SchemaTooComplex):
        is_valid(schema, [1] * 100, budget=budget)
    union = declared({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "integer"}}]})
    budget = CheckBudget(10_000)
    for number in range(200):
        value = [number] if number % 2 else [None]
        assert is_valid(union, value, budget=budget) == bool(number % 2)
        del value


def test_recursive_alternatives_do_not_double_at_each_level():
    """Unions whose arms have a recursive part in common are checked once for each value."""
    arms = [
        {
            "type": "object",
            "properties": {"args": {"items": {"$ref": "#/$defs/E"}}, "op": {"const": op}},
            "required": ["op"],
        }
        for op in "abc"
    ]
    schema = declared({"$ref": "#/$defs/E", "$defs": {"E": {"anyOf": [*arms, {"type": "integer"}]}}})
    value = 1
    for _ in range(24):
        value = {"args": [value], "op": "c"}
    budget = CheckBudget(5_000)
    assert is_valid(schema, value, budget=budget)
    bad = "x"
    for _ in range(24):
        bad = {"args": [bad], "op": "c"}
    assert not is_valid(schema, bad, budget=CheckBudget(5_000))
    assert [fault.pointer for fault in problems(schema, bad)] == ["/args/0" * 24]


@pytest.mark.slow
def test_long_chains_of_references_are_followed():
    """Thousands of references behind one another are no deeper than one."""
    links = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}", "minimum": 0} for number in range(4_900)}
    schema = declared({"$ref": "#/$defs/d0", "$defs": {**links, "d4900": {"type": "integer"}}})
    assert is_valid(schema, 1)
    assert not is_valid(schema, -1)
    links = {f"d{n}": {"anyOf": [{"type": "string"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(3_000)}
    schema = declared({"$ref": "#/$defs/d0", "$defs": {**links, "d3000": {"type": "integer"}}})
    assert is_valid(schema, 1)
    assert problems(schema, None)
    links = {f"d{number}": {"not": {"$ref": f"#/$defs/d{number + 1}"}} for number in range(3_000)}
    with pytest.raises(SchemaTooComplex):
        is_valid(declared({"$ref": "#/$defs/d0", "$defs": {**links, "d3000": {}}}), 1)

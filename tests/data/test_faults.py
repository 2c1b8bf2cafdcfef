"""Validation has the meaning of jsonschema, names every fault with its place, and cannot hang, on both libraries."""

import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement
from referencing import Registry

from synmod.data import intern_schema, is_valid, problems, schema_from, validate
from synmod.errors import Problem, SchemaError
from synmod.leaves.frozen import frozen
from tests.data.schema_strategies import VALUES, schemas


@pytest.fixture(params=["jsonschema_rs", "jsonschema"])
def declared(request, monkeypatch):
    """Declares a schema that the one or the other library checks; the comment keeps the two apart."""
    if request.param == "jsonschema":
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)  # as where it has no wheel

    def declare(schema):
        return schema_from({"$comment": request.param, **schema}, root="any")

    return declare


def place_in(value, pointer):
    """Where a pointer leads, as indices in document order."""
    place = []
    for step in pointer.split("/")[1:]:
        index = list(value).index(step) if isinstance(value, dict) else int(step)
        value = value[step] if isinstance(value, dict) else value[index]
        place.append(index)
    return place


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schemas(), st.lists(VALUES, min_size=5, max_size=5))
def test_the_verdict_is_that_of_jsonschema(declared, written, values):
    """Over all keywords, values plain and frozen; and an invalid value has a fault."""
    schema = declared(written)
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
        ({"multipleOf": 0.1}, [0.2, 0.3, 1], [0.35]),
        ({"multipleOf": 0.5}, [10**900, 1e308], [0.3]),
        ({"multipleOf": 10**900}, [0, 10**901], [1e300, 5]),
        ({"minLength": 2, "maxLength": 2}, ["éa", "🙂🙂", 1], ["a", "abc"]),
        ({"multipleOf": 2**53}, [2.0**64, 2**64], [2**53 + 1]),
        ({"pattern": r"^\d+$"}, ["1", "٣", 5], ["a", "1\n"]),
        ({"pattern": r"^\w+$"}, ["José", "_1", "東京"], ["a-b", "😀"]),
        ({"pattern": r"^[^\d-]+-[\w.]*$"}, ["é-é.1"], ["1-a", "٣-a", "é-!"]),
        ({"pattern": r"^\\d\W\D$"}, ["\\d!é"], ["1!é", "\\dé!"]),
        (
            {"patternProperties": {r"^\w+$": {"type": "string"}}, "additionalProperties": False},
            [{"é": "x"}],
            [{"!": "x"}],
        ),
        (
            {"properties": {"pattern": {"const": r"\d"}}, "const": {"pattern": r"\d"}},
            [{"pattern": r"\d"}],
            [{"pattern": "d"}],
        ),
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
def test_known_verdicts(declared, schema, valid, invalid):
    """Examples of what each keyword means."""
    checked = declared(schema)
    for value in valid:
        assert is_valid(checked, value)
        assert problems(checked, value) == ()
    for value in invalid:
        assert not is_valid(checked, value)
        assert problems(checked, value)


def test_a_schema_is_a_value_too(declared):
    """An interned schema stands for its JSON like any frozen object."""
    schema = intern_schema({"type": "object"})
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
def test_faults_are_told_in_document_order(declared, value, faults):
    """Each with its pointer, what was wanted and what was got; a fault in a nullable part is told where it is."""
    assert problems(declared(ORDER), value) == tuple(Problem(*fault) for fault in faults)
    assert problems(declared(ORDER), frozen(value)) == tuple(Problem(*fault) for fault in faults)


def test_an_unknown_key_is_told_with_the_nearest_known_one(declared):
    """'Did you mean' for what was misspelt, at the place of the key."""
    (fault,) = problems(declared(ORDER), {"name": "xy", "age": 1, "tagss": []})
    assert fault.pointer == "/tagss"
    assert "Did you mean 'tags'?" in fault.wanted


def test_the_alternative_that_is_meant_is_told_by_its_constant(declared):
    """Of several kinds of objects the one with the right constant is taken for meant."""
    cat = {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind", "lives"]}
    dog = {"properties": {"kind": {"const": "dog"}, "name": {"type": "string"}}, "required": ["kind", "name"]}
    for keyword in ("anyOf", "oneOf"):
        schema = declared({"items": {keyword: [{"type": "object", **cat}, {"type": "object", **dog}]}})
        assert problems(schema, [{"kind": "dog", "name": 1}]) == (Problem("/0/name", "string", "1"),)
        assert problems(schema, [{"kind": "cow"}]) == (Problem("/0/kind", 'one of "cat", "dog"', '"cow"'),)


_SHORT = {"type": "string", "maxLength": 3}
_SMALL = {"type": "string", "pattern": "^[a-z]+$"}
_NULL = {"type": "null"}
_CAT = {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]}
_DOG = {"type": "object", "properties": {"kind": {"enum": ["dog", "wolf"]}}, "required": ["kind"]}
_ONE = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
_TWO = {"type": "object", "properties": {"a": {"type": "integer"}, "c": {"type": "string"}}, "required": ["a", "c"]}


@pytest.mark.parametrize(
    ("arms", "value", "fault"),
    [
        ([{"type": "integer", "minimum": 1}, _NULL], 0, ("", "a number of at least 1")),
        ([_NULL, _SHORT], "abcd", ("", "at most 3 characters")),
        ([_SMALL, _NULL], "A1", ("", 'a text that matches "^[a-z]+$"')),
        ([{"enum": ["a", "b"], "type": "string"}, _NULL], "c", ("", 'one of "a", "b"')),
        ([{"type": "integer"}, _NULL], "x", ("", "integer or null")),
        ([_SHORT, _SMALL], "ABCD", ("", 'at most 3 characters or a text that matches "^[a-z]+$"')),
        ([{"anyOf": [_SHORT, _NULL], "title": "T"}, {"type": "integer"}], "abcd", ("", "at most 3 characters")),
        ([{"type": "array", "items": {"type": "integer"}}, _NULL], [1, "a"], ("/1", "integer")),
        ([{"items": {"type": "integer"}}, {"items": {"type": "string"}}], ["a", 1, "b"], ("/1", "string")),
        ([_CAT, _DOG], {"kind": "cow"}, ("/kind", 'one of "cat", "dog", "wolf"')),
        ([_CAT, _DOG, _NULL], {"kind": "cow"}, ("/kind", 'one of "cat", "dog", "wolf"')),
        ([_CAT, _DOG], {}, ("", "the key 'kind'")),
        ([_CAT, _NULL], {"kind": "cow"}, ("/kind", '"cat"')),
        ([_ONE, _TWO], {"a": "x"}, ("/a", "integer")),
        ([_ONE, _TWO], {"a": 1.5, "c": "x"}, ("/a", "integer")),
        ([_ONE, _NULL], [], ("", "object or null")),
        ([{"const": "a"}, {"const": 1}], 2, ("", '"a" or 1')),
        ([{"minimum": 3}, {"minimum": 5}], 2, ("", "a number of at least 3 or a number of at least 5")),
        ([_ONE, {"type": "object", "required": ["b"]}], {}, ("", "the key 'a' or the key 'b'")),
    ],
)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_the_alternative_that_fits_best_gives_the_fault(declared, keyword, arms, value, fault):
    """That of the value's type, then of its constants, then of its parts; of several, what each of them wants."""
    for schema, at in (({keyword: arms}, value), ({"properties": {"x": {keyword: arms}}}, {"x": value})):
        ((pointer, wanted, _),) = problems(declared(schema), at)
        place = pointer.removeprefix("/x") if at is not value else pointer
        assert (place, wanted.removeprefix("exactly one of: ")) == fault


def test_at_most_ten_faults_are_told(declared):
    """All up to ten; the first ones of the document."""
    schema = declared({"items": {"type": "string"}})
    assert [fault.pointer for fault in problems(schema, list(range(100)))] == [f"/{index}" for index in range(10)]
    assert len(problems(schema, list(range(7)))) == 7
    assert len(problems(schema, list(range(100)), limit=3)) == 3
    assert len(problems(declared({"required": [f"k{index}" for index in range(100)]}), {})) == 10


def test_what_was_got_is_cut_to_200_characters(declared):
    """Large values are not written out for an error."""
    schema = declared({"type": "integer"})
    for value in ["x" * 500, "é" * 200, ["y" * 300], {str(n): n for n in range(1000)}, '"' * 150, [[]] * 10_000]:
        (fault,) = problems(schema, value)
        assert len(fault.got) == 200
        assert fault.got.endswith("…")
    assert problems(schema, "x" * 198)[0].got == json.dumps("x" * 198)


def test_the_error_begins_with_where_and_carries_the_faults(declared):
    """`validate` raises what `problems` lists, and gives back nothing for a valid value."""
    schema = declared(ORDER)
    assert validate(schema, {"name": "xy", "age": None}, "critic/answer") is None
    with pytest.raises(SchemaError) as caught:
        validate(schema, {"name": 1, "age": 1, "x": 1}, "critic/answer")
    assert str(caught.value).startswith("critic/answer: ")
    assert caught.value.errors == problems(schema, {"name": 1, "age": 1, "x": 1})
    assert "/name" in str(caught.value)
    assert "/x" in str(caught.value)


def test_patterns_run_in_linear_time(declared):
    """Nested repetitions that hang Python's engine are answered at once, in keys as well."""
    start = time.process_time()
    text = "a" * 20_000 + "b"
    assert not is_valid(declared({"pattern": "^(a+)+$"}), text)
    assert not is_valid(declared({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}), {text: 1})
    assert problems(declared({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}), {text: 1})
    assert not is_valid(declared({"propertyNames": {"pattern": "^(a+)+$"}}), {text: 1})
    assert time.process_time() - start < 5


def test_patterns_beside_unevaluated_properties_run_in_linear_time():
    """Where jsonschema-rs decides."""
    schema = schema_from({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}, root="any")
    assert not is_valid(schema, {"a" * 20_000 + "b": 1})
    assert problems(schema, {"a" * 20_000 + "b": 1})


def test_recursive_alternatives_do_not_double_at_each_level(declared):
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
    assert is_valid(schema, value)
    bad = "x"
    for _ in range(24):
        bad = {"args": [bad], "op": "c"}
    assert not is_valid(schema, bad)
    assert [fault.pointer for fault in problems(schema, bad)] == ["/args/0" * 24]


def test_faults_inside_nested_alternatives_are_found_in_bounded_time(declared):
    """The arms of a union that do not differ by a constant are not multiplied by each other."""
    node = {"$ref": "#/$defs/E"}
    arms = [
        {"type": "object", "properties": {"a": node}, "required": ["a"]},
        {"type": "object", "properties": {"a": node, "b": {}}, "required": ["a"]},
        {"type": "integer"},
    ]
    schema = declared({**node, "$defs": {"E": {"anyOf": arms}}})
    value = "x"
    for _ in range(24):
        value = {"a": value}
    start = time.process_time()
    assert problems(schema, value)
    assert time.process_time() - start < 5


def test_a_valid_value_is_valid_at_any_depth_of_the_stack():
    """A value 20 levels deep was once refused near Python's recursion limit, for alternatives that lie too deep."""
    union = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}
    node = {"type": "object", "properties": {"below": union}}
    schema = schema_from({"$defs": {"node": node}, "$ref": "#/$defs/node"}, root="any")
    value = {}
    for _ in range(20):
        value = {"below": value}

    def below(frames):
        try:
            return below(frames - 1) if frames else is_valid(schema, value)
        except RecursionError:
            return True  # the stack of the caller is full: an honest error

    assert all(below(frames) for frames in range(500, sys.getrecursionlimit(), 20))


def test_a_value_of_unbounded_depth_is_refused_and_exhausts_no_stack():
    """More than 100 levels are a fault where the schema is recursive, and where values are compared."""
    deep = 1
    for _ in range(100_000):
        deep = [deep]
    recursive = schema_from({"items": {"$ref": "#"}, "type": ["array", "integer"]}, root="any")
    assert not is_valid(recursive, deep)
    assert problems(recursive, deep) == (Problem("", "at most 100 levels of nesting", "…"),)
    shallow = 1
    for _ in range(99):
        shallow = [shallow]
    assert is_valid(recursive, shallow)
    compared = schema_from({"uniqueItems": True}, root="any")
    assert not is_valid(compared, [deep, deep])
    assert is_valid(schema_from({"type": "array"}, root="any"), deep)


def test_the_alternatives_of_a_nullable_union_are_looked_through(declared):
    """An arm that only holds alternatives counts as those."""
    cat = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}}
    dog = {"type": "object", "properties": {"kind": {"const": "dog"}}}
    schema = declared({"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}], "$defs": {"Pet": {"anyOf": [cat, dog]}}})
    assert problems(schema, {"kind": "cat", "lives": "9"}) == (Problem("/lives", "integer", '"9"'),)


def test_references_to_the_root_are_followed_in_faults(declared):
    """A fault behind `#`, or behind a reference through the root, has its own place."""
    schema = declared(
        {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}, "m": {"$ref": "#/properties/n"}}}
    )
    assert [fault.pointer for fault in problems(schema, {"child": {"n": "1", "m": "2"}})] == ["/child/n", "/child/m"]


@pytest.mark.parametrize(
    ("implementation", "system", "machine", "has_wheel"),
    [
        ("CPython", "linux", "x86_64", True),
        ("CPython", "linux", "aarch64", True),
        ("CPython", "darwin", "arm64", True),
        ("CPython", "darwin", "x86_64", True),
        ("CPython", "win32", "AMD64", True),
        ("CPython", "win32", "ARM64", True),
        ("CPython", "linux", "armv7l", False),
        ("CPython", "linux", "ppc64le", False),
        ("CPython", "linux", "riscv64", False),
        ("CPython", "linux", "s390x", False),
        ("CPython", "emscripten", "wasm32", False),
        ("CPython", "freebsd14", "amd64", False),
        ("PyPy", "linux", "x86_64", False),
    ],
)
def test_jsonschema_rs_is_required_where_it_has_a_wheel(implementation, system, machine, has_wheel):
    """Elsewhere it is left out, so that the package installs and jsonschema validates."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = {each.name: each for each in map(Requirement, project["dependencies"])}
    platform = {"platform_python_implementation": implementation, "sys_platform": system, "platform_machine": machine}
    assert requirements["jsonschema-rs"].marker.evaluate(platform) is has_wheel
    assert requirements["jsonschema"].marker is None


WITHOUT_WHEEL = """
import sys
sys.modules["jsonschema_rs"] = None
import synmod as sm
from synmod.data import is_valid, problems, schema_from

class Tree(sm.DataModel):
    name: str
    children: list["Tree"] = []

assert Tree(name="a", children=[Tree(name="b")]).get_json()["children"][0]["name"] == "b"
keys = schema_from({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, root="any")
long = "a" * 5_000 + "b"
assert [fault.pointer for fault in problems(keys, {"aa": 1, long: 1, "c": 2})] == ["/" + long, "/c"]
assert sm.is_subschema({"const": "x"}, {"pattern": "^x$"})
for bad in ({"type": "nonsense"}, {"pattern": "(?=a)"}, {"$ref": "#"}, {"patternProperties": {"(": {}}}):
    try:
        schema_from(bad, root="any")
    except sm.SchemaError:
        continue
    raise AssertionError(bad)
assert "jsonschema" in sys.modules
"""


@pytest.mark.slow
def test_a_process_without_jsonschema_rs_checks_by_jsonschema():
    """From the first schema on: declarations, values, patterns, faults and proofs."""
    subprocess.run([sys.executable, "-c", WITHOUT_WHEEL], check=True, timeout=120)

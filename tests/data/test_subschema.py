"""Structural subtyping is sound, reflexive, ends always, and decides what it promises; containment rests on it."""

import copy
import gc
import time
from typing import Annotated, Literal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import Field

from synmod.data import DataModel, JsonDataModel, contains, is_subschema, is_valid, schema_from, symbol
from synmod.errors import ArgumentError, SchemaError
from tests.data.model_strategies import schemas_with_values
from tests.data.schema_strategies import SCALARS, TYPES, VALUES, schemas

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
NULL = {"type": "null"}


def record(**fields):
    return {"type": "object", "properties": fields, "required": list(fields)}


def closed(schema):
    return {**schema, "additionalProperties": False}


def recursive(name, value):
    node = {"type": "object", "properties": {"v": value, "next": {"anyOf": [{"$ref": f"#/$defs/{name}"}, NULL]}}}
    return {"$ref": f"#/$defs/{name}", "$defs": {name: node}}


class Query(DataModel):
    question: str


class Described(DataModel):
    """With a description."""

    question: str
    extra: int = 0


class Optional(DataModel):
    question: str = ""


class Empty(DataModel):
    pass


PROVEN = [
    (INTEGER, NUMBER),
    (INTEGER, True),
    (True, {}),
    (INTEGER, {"type": ["string", "number"]}),
    ({"enum": [1, 2]}, INTEGER),
    ({"const": 1.0}, INTEGER),
    ({"enum": ["a", "b"]}, {"enum": ["b", "c", "a"]}),
    ({"const": {"a": 1}}, record(a=INTEGER)),
    ({"enum": ["a", 1], "type": "string"}, STRING),
    ({"type": "boolean"}, {"enum": [True, False, None]}),
    (record(a=INTEGER, b=STRING), record(a=NUMBER)),
    (record(a=INTEGER), {"properties": {"a": NUMBER, "b": {}}}),
    (closed(record(a=INTEGER)), closed({"properties": {"a": NUMBER, "b": STRING}})),
    (closed(record(a=INTEGER)), {"properties": {"a": INTEGER, "b": STRING}}),
    ({"additionalProperties": INTEGER}, {"additionalProperties": NUMBER}),
    ({"additionalProperties": INTEGER}, {"properties": {"x": NUMBER}}),
    ({"properties": {"a": INTEGER}, "additionalProperties": INTEGER}, {"additionalProperties": NUMBER}),
    ({"type": "array", "items": INTEGER}, {"items": NUMBER}),
    ({"prefixItems": [INTEGER, STRING], "items": False}, {"prefixItems": [NUMBER], "items": STRING}),
    ({"prefixItems": [INTEGER], "items": INTEGER}, {"items": NUMBER}),
    ({"items": INTEGER}, {"prefixItems": [NUMBER, NUMBER], "items": NUMBER}),
    ({"items": {}, "maxItems": 1, "prefixItems": [INTEGER]}, {"items": INTEGER}),
    ({"minimum": 3, "type": "number"}, {"minimum": 2}),
    ({"minimum": 3, "type": "number"}, {"exclusiveMinimum": 2}),
    ({"exclusiveMinimum": 1, "type": "number"}, {"minimum": 1}),
    ({"exclusiveMaximum": 2, "maximum": 9}, {"exclusiveMaximum": 2.5}),
    ({"minLength": 3, "maxLength": 4}, {"minLength": 2, "maxLength": 4}),
    ({"minItems": 3, "maxItems": 4}, {"minItems": 3, "maxItems": 5}),
    (record(a={}, b={}), {"minProperties": 2}),
    (closed(record(a={}, b={})), {"maxProperties": 2}),
    ({"multipleOf": 3, "title": "x"}, {"multipleOf": 3}),
    ({"anyOf": [INTEGER, NULL]}, {"anyOf": [NULL, NUMBER]}),
    ({"type": ["integer", "null"]}, {"anyOf": [NULL, NUMBER]}),
    ({"anyOf": [INTEGER, {"type": "number", "minimum": 0}]}, NUMBER),
    ({"oneOf": [INTEGER, STRING]}, {"anyOf": [STRING, INTEGER]}),
    ({"allOf": [INTEGER, {"minimum": 3}]}, {"type": "integer", "minimum": 2}),
    ({"type": "integer", "minimum": 3}, {"allOf": [INTEGER, {"minimum": 3}]}),
    ({"$ref": "#/$defs/A", "$defs": {"A": INTEGER}}, {"$ref": "#/$defs/B", "$defs": {"B": NUMBER}}),
    (recursive("A", INTEGER), recursive("B", NUMBER)),
    (STRING, {"minimum": 3, "items": False, "required": ["a"]}),
    ({"pattern": "^a"}, {"pattern": "^a"}),
    ({"not": {"type": "integer", "title": "x"}}, {"not": INTEGER}),
    ({"oneOf": [INTEGER, STRING], "title": "x"}, {"oneOf": [INTEGER, STRING]}),
    ({"contains": INTEGER, "minContains": 2}, {"contains": INTEGER, "minContains": 2}),
    ({"if": STRING, "then": {"minLength": 1}}, {"if": STRING, "then": {"minLength": 1}}),
    ({"dependentRequired": {"a": ["b"]}, "type": "object"}, {"dependentRequired": {"a": ["b"]}}),
    ({"patternProperties": {"^a": INTEGER}, "type": "object"}, {"patternProperties": {"^a": INTEGER}}),
    ({"unevaluatedProperties": False, "title": "x"}, {"unevaluatedProperties": False}),
    ({"not": {"$ref": "#/$defs/A"}, "$defs": {"A": INTEGER}}, {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": INTEGER}}),
    ({"allOf": [INTEGER, STRING]}, {"type": "object"}),
    ({"enum": []}, {"type": "object"}),
]
DISPROVEN = [
    ({"anyOf": [record(a={}), record(b={})], "unevaluatedProperties": False}, {"unevaluatedProperties": False}),
    ({"oneOf": [record(a={})], "unevaluatedProperties": False}, {"maxProperties": 0}),
    (NUMBER, INTEGER),
    (True, INTEGER),
    (INTEGER, {"type": "boolean"}),
    ({"const": True}, {"const": 1}),
    (record(a=NUMBER), record(a=INTEGER)),
    ({"properties": {"a": INTEGER}}, record(a=INTEGER)),
    (record(a=INTEGER), closed(record(a=INTEGER))),
    (record(a=INTEGER), record(a=INTEGER, b=STRING)),
    (record(a=INTEGER), {"properties": {"b": STRING}}),
    ({"type": "array"}, {"items": INTEGER}),
    ({"prefixItems": [INTEGER]}, {"items": INTEGER}),
    ({"minimum": 2}, {"minimum": 3}),
    ({"minimum": 2}, {"exclusiveMinimum": 2}),
    ({"exclusiveMinimum": 0, "type": "number"}, {"minimum": 1}),
    ({"multipleOf": 3}, {"multipleOf": 6}),
    ({"multipleOf": 0.2}, {"multipleOf": 0.1}),
    ({"anyOf": [INTEGER, NULL]}, INTEGER),
    (recursive("A", NUMBER), recursive("B", INTEGER)),
    ({"pattern": "^a"}, {"pattern": "^b"}),
    (STRING, {"not": INTEGER}),
    ({"not": {"$ref": "#/$defs/A"}, "$defs": {"A": INTEGER}}, {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": STRING}}),
    ({"unevaluatedProperties": False}, {"unevaluatedProperties": False, "properties": {"a": {}}}),
    ({"patternProperties": {"^a": INTEGER}, "additionalProperties": False}, closed(record(a=INTEGER))),
    ({"contains": INTEGER}, {"contains": INTEGER, "maxContains": 1}),
    ({"prefixItems": [True], "items": INTEGER}, {"items": INTEGER}),
    ({"allOf": [{"oneOf": [record(a={})]}]}, {"type": "array"}),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [INTEGER]}}}, STRING),
]


@pytest.mark.parametrize(("sub", "sup"), PROVEN)
def test_what_is_decided_is_proven(sub, sup):
    """Type sets, enums, properties, items, bounds, alternatives, references and recursion."""
    assert is_subschema(sub, sup)


@pytest.mark.parametrize(("sub", "sup"), DISPROVEN)
def test_what_is_wrong_or_unknown_is_false(sub, sup):
    """False also means that it cannot be proven."""
    assert not is_subschema(sub, sup)


def test_annotations_do_not_count():
    """Titles, descriptions, defaults, examples, formats and their like change nothing."""
    plain = {"not": {"type": "object", "properties": {"a": {"pattern": "x"}}}, "unevaluatedItems": STRING}
    said = copy.deepcopy(plain)
    for place in (said, said["not"], said["not"]["properties"]["a"]):
        place |= {"title": "T", "description": "D", "default": 1, "examples": [1], "format": "f", "deprecated": True}
        place |= {"readOnly": True, "writeOnly": False, "discriminator": {"propertyName": "a"}, "$comment": "c"}
    assert is_subschema(plain, said)
    assert is_subschema(said, plain)


def weakened(draw, schema):
    """A schema that mostly asks less."""
    if not isinstance(schema, dict):
        return draw(st.sampled_from([schema, True]))
    changed = {}
    for keyword, value in schema.items():
        dice = draw(st.integers(0, 9))
        if keyword in ("$defs", "properties"):
            changed[keyword] = {name: weakened(draw, part) for name, part in value.items()}
        elif dice == 0:
            continue
        elif keyword in ("minimum", "exclusiveMinimum") and dice < 6:
            changed[keyword] = value - 1
        elif keyword in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties") and dice < 6:
            changed[keyword] = value + 1
        elif keyword == "type" and dice < 4:
            changed[keyword] = sorted({*([value] if isinstance(value, str) else value), draw(TYPES)})
        elif keyword == "enum" and dice < 4:
            changed[keyword] = [*value, draw(SCALARS)]
        elif keyword in ("items", "additionalProperties", "unevaluatedProperties", "propertyNames"):
            changed[keyword] = weakened(draw, value)
        elif keyword in ("allOf", "prefixItems", "anyOf", "oneOf"):
            changed[keyword] = [weakened(draw, part) for part in value]
        else:
            changed[keyword] = value
    return changed


@st.composite
def pairs(draw):
    schema = draw(schemas())
    return schema, weakened(draw, schema) if draw(st.integers(0, 4)) else draw(schemas())


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs(), st.lists(VALUES, min_size=5, max_size=5))
def test_a_subschema_has_no_value_that_its_super_schema_refuses(pair, values):
    """Soundness, over all keywords: True only if every value of the one is a value of the other."""
    try:
        sub, sup = (schema_from(schema, root="any") for schema in pair)
    except SchemaError:
        return
    if is_subschema(sub, sup):
        for value in values:
            assert is_valid(sup, value) or not is_valid(sub, value)


@settings(max_examples=40, deadline=None)
@given(schemas())
def test_every_schema_is_its_own_subschema(schema):
    """Reflexivity, also for an equal schema with another order of keys and another title."""
    try:
        sub = schema_from(schema, root="any")
    except SchemaError:
        return
    assert is_subschema(sub, sub)
    assert is_subschema(sub, {**dict(reversed(schema.items())), "title": "other"})


def test_what_is_not_a_schema_is_refused():
    """Dicts are declared first; data models stand for their schema."""
    assert is_subschema(Query, {"properties": {"question": STRING}})
    assert is_subschema(Query(question="q"), Query.to_symbolic_data_model())
    with pytest.raises(SchemaError):
        is_subschema({"type": "nonsense"}, NUMBER)
    with pytest.raises(SchemaError):
        is_subschema(NUMBER, {"$ref": "http://example.com"})
    with pytest.raises(ArgumentError):
        is_subschema(5, NUMBER)


def test_answers_are_never_confused_between_schemas_that_come_and_go():
    """Whatever is kept and forgotten."""
    sub = schema_from(record(a=INTEGER))
    for number in range(3_000):
        sup = schema_from({"properties": {"a": {"type": "number", "minimum": -number} if number % 2 else NUMBER}})
        assert is_subschema(sub, sup) == (not number % 2)
        del sup


def test_a_repeated_check_is_a_lookup(counted_work):
    """Of classes, symbols and plain dicts: the second time takes a small part of the first."""

    wide = {"anyOf": [record(k={"const": number}) for number in range(60)]}
    other = {"anyOf": [{**arm, "title": "T"} for arm in reversed(wide["anyOf"])]}
    with counted_work() as first:
        assert is_subschema(wide, other)
    gc.collect()
    wide, other = copy.deepcopy((wide, other))
    with counted_work() as again:
        assert is_subschema(wide, other)
    assert first[0] > 5 * again[0]

    class Wide(DataModel):
        a: list[dict[str, int | str | float | None]]
        b: dict[str, list[tuple[int, str] | tuple[str, int]]]
        c: int

    class Wider(Wide):
        c: int | None

    with counted_work() as first:
        assert is_subschema(Wide, Wider)
    with counted_work() as again:
        assert is_subschema(Wide, Wider)
    assert first[0] > 20 * again[0]


CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "n": INTEGER}, "required": ["kind", "n"]}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}, "n": INTEGER}, "required": ["kind"]}


def with_numbers(arm):
    return {**arm, "properties": {**arm["properties"], "n": NUMBER}}


def test_tagged_unions_are_proven_arm_by_arm():
    """`oneOf` on the right is proven where its arms require one property with different constants."""
    wider = {"oneOf": [with_numbers(DOG), with_numbers(CAT)]}
    assert is_subschema({"oneOf": [CAT, DOG]}, wider)
    assert is_subschema({"anyOf": [CAT, DOG]}, wider)
    assert is_subschema(CAT, wider)
    assert not is_subschema(wider, {"oneOf": [CAT, DOG]})
    assert not is_subschema({"oneOf": [CAT, DOG, with_numbers(record(kind={"const": "cow"}))]}, wider)
    assert not is_subschema(CAT, {"oneOf": [with_numbers(CAT), CAT]})
    optional = {"type": "object", "properties": {"kind": {"const": "cat"}}}
    assert not is_subschema(
        optional, {"oneOf": [optional, {"type": "object", "properties": {"kind": {"const": "dog"}}}]}
    )

    class Stop(DataModel):
        kind: Literal["stop"]
        after: int

    class Go(DataModel):
        kind: Literal["go"]

    class Move(DataModel):
        action: Annotated[Stop | Go, Field(discriminator="kind")]

    class LooseStop(Stop):
        after: float

    class LooseMove(DataModel):
        action: Annotated[LooseStop | Go, Field(discriminator="kind")]

    assert is_subschema(Move, LooseMove)
    assert not is_subschema(LooseMove, Move)


@pytest.mark.slow
def test_large_and_tangled_schemas_end():
    """Products of alternatives and doubly recursive types end soon, if need be without a proof."""
    start = time.process_time()
    wide = {"anyOf": [record(k={"const": number}) for number in range(100)]}
    assert is_subschema(wide, {"anyOf": [{**arm, "title": "T"} for arm in reversed(wide["anyOf"])]})
    product = {"allOf": [{"anyOf": [{"minimum": number}, {"maximum": -number}]} for number in range(40)]}
    is_subschema(product, {"anyOf": [{"minimum": 1}, {"maximum": -2}]})
    arms = [{"properties": {"a": {"$ref": "#/$defs/N"}}, "required": [name]} for name in "xyz"]
    tangled = {"$ref": "#/$defs/N", "$defs": {"N": {"anyOf": arms}}}
    assert is_subschema(tangled, {**tangled, "$defs": {"N": {"anyOf": arms[::-1]}}})
    links = {f"d{n}": {"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(3_000)}
    deep = {"$ref": "#/$defs/d0", "$defs": {**links, "d3000": INTEGER}}
    assert is_subschema(deep, {**deep, "title": "T"})
    is_subschema(deep, {"anyOf": [deep["$defs"]["d0"], STRING], "$defs": deep["$defs"]})
    assert time.process_time() - start < 20


def test_keys():
    """On a value a key that is there, on a class or symbol one that is declared."""
    value = JsonDataModel({"question": "q"}, schema=Described.get_schema())
    assert "question" in value
    assert "extra" not in value
    assert "extra" in Described
    assert "extra" in Described.to_symbolic_data_model()
    assert "extra" in Described(question="q")
    assert "other" not in Described


def test_parts():
    """Everything required is required there with a subschema; the rest does not matter."""
    assert Query in Described
    assert Query in Described.to_symbolic_data_model()
    assert Query in Described(question="q")
    assert Query(question="a") in Described(question="q").to_json_data_model()
    assert Described not in Optional
    assert Query not in Optional
    assert Optional in Query
    assert Optional in Empty
    assert Empty in Query
    assert Described in Query
    assert Query not in Empty


def test_kinds_matter():
    """A field of another kind does not contain it, even where it is optional."""

    class Number(DataModel):
        question: int

    class MaybeNumber(DataModel):
        question: int = 0

    assert Query not in Number
    assert MaybeNumber not in Query
    assert contains(Number, MaybeNumber)


def test_always_a_bool():
    """Bad schemas and things without one are not in anything."""
    assert ({"type": "object", "properties": {"question": {"type": "string"}}} in Query) is True
    assert ({"type": "array"} in Query) is False
    assert (5 in Query(question="q")) is False
    assert (None in Query.to_symbolic_data_model()) is False
    assert contains(Query, "question")


@given(schemas_with_values())
def test_reflexive(pair):
    """Everything contains itself, and the empty model."""
    schema, _ = pair
    assert symbol(schema) in symbol(schema)
    assert Empty in symbol(schema)
    assert schema_from({"type": "object"}) in symbol(schema)

"""SchemaLM: a valid instance of any schema that data models write, the same for the same seed and request."""

import enum
import uuid
from datetime import date, datetime
from random import Random
from typing import Annotated, Literal

import pydantic
import pytest
from hypothesis import given, strategies as st

import synmod as sm
from synmod.data import declare, is_valid, problems
from synmod.testing import SchemaLM, instance_of, text_for


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(sm.DataModel):
    name: str
    left: "Tree | None" = None
    kids: list["Tree"] = []


class Cat(sm.DataModel):
    kind: Literal["cat"]
    lives: int = sm.Field(ge=1, le=9)


class Dog(sm.DataModel):
    kind: Literal["dog"]
    tricks: list[str] = sm.Field(max_length=2)


class Everything(sm.DataModel):
    text: str = sm.Field(min_length=5, max_length=7)
    code: str = sm.Field(pattern=r"^[A-Z]{2}\d{3}-(x|yy)$")
    number: float = sm.Field(multiple_of=0.5, gt=1, lt=3)
    colour: Colour
    choice: Literal["p", "q"]
    pair: tuple[int, str]
    unique: set[int] = sm.Field(min_length=2)
    mapping: dict[str, int]
    keyed: dict[Colour, int]
    coded: dict[Annotated[str, pydantic.StringConstraints(pattern="^k[0-9]+$")], int] = sm.Field(min_length=1)
    maybe: int | str | None
    when: datetime
    day: date
    ident: uuid.UUID
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    tree: Tree
    many: list[Cat] = sm.Field(min_length=1, max_length=3)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("model", [Everything, Tree, Cat])
async def test_a_data_model_gets_a_valid_instance(model, seed):
    """The reply is valid at once, and pydantic accepts it."""
    reply = await SchemaLM(seed, attempts=1, repairs=0)("?", model)
    assert isinstance(model(**reply.json), model)


HARD = [
    {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "boolean"}, "minItems": 2}]},
    {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": [1, 2, 3]}},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
    {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
    {"type": "object", "propertyNames": {"pattern": "^k[0-9]$"}, "minProperties": 2, "maxProperties": 4},
    {
        "type": "object",
        "patternProperties": {"^x_": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 1,
    },
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
            {"properties": {"a": {"maximum": 4}}},
        ]
    },
    {"type": "integer", "multipleOf": 7, "minimum": 50, "maximum": 60},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
    {"type": "integer", "maximum": -1000},
    {"type": "string", "minLength": 100, "maxLength": 101},
    {"type": "string", "pattern": "^(?:[a-f0-9]{4}:){2}[\\w.-]+@x$", "maxLength": 40},
    {"type": ["string", "null"]},
    {"enum": [1, "x", None, {"a": [1]}]},
    {"const": {"deep": [1, {"x": None}]}},
    {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}},
    True,
]


@pytest.mark.parametrize("schema", HARD)
def test_hard_schemas_are_satisfied(schema):
    """Whatever a schema combines, the drawn value is valid."""
    declared = declare(schema, root="any")
    for seed in range(20):
        assert problems(declared, instance_of(declared, seed, "test")) == ()


def _schemas(inner):
    names = st.sampled_from(["a", "b", "c d", "é"])
    return (
        st.builds(lambda item, least: {"type": "array", "items": item, "minItems": least}, inner, st.integers(0, 2))
        | st.builds(
            lambda parts, closed: {
                "type": "object",
                "properties": parts,
                "required": sorted(parts)[:2],
                "additionalProperties": not closed,
            },
            st.dictionaries(names, inner, max_size=3),
            st.booleans(),
        )
        | st.builds(lambda arms: {"anyOf": arms}, st.lists(inner, min_size=1, max_size=3))
    )


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer", "minimum": 3},
            {"type": "number", "maximum": -1},
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["x", 1]},
            {"type": "string", "minLength": 3, "maxLength": 4},
            {},
        ]
    ),
    _schemas,
    max_leaves=8,
)


@given(SCHEMAS, st.integers(0, 5))
def test_any_schema_gets_a_valid_instance(schema, seed):
    """Arbitrary nests of the usual keywords."""
    declared = declare(schema, root="any")
    assert is_valid(declared, instance_of(declared, seed, "law"))


async def test_the_answer_is_a_function_of_seed_and_request():
    """Equal requests get equal answers, from any SchemaLM of that seed; another seed or request another one."""
    asked = [(await SchemaLM(1)("?", Everything)).text for _ in range(2)]
    assert asked[0] == asked[1]
    others = {
        (await SchemaLM(2)("?", Everything)).text,
        (await SchemaLM(1)("!", Everything)).text,
        (await SchemaLM(1)("?", Everything, sample=1)).text,
        (await SchemaLM(1)("?", Everything, temperature=1)).text,
    }
    assert len(others | {asked[0]}) == 5


async def test_without_a_schema_the_answer_is_text():
    """Some text, the same each time."""
    one, two = await SchemaLM()("?"), await SchemaLM()("?")
    assert one.text == two.text != (await SchemaLM()("!")).text
    assert one.json is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "array", "contains": {"type": "string"}, "minContains": 2, "items": {"type": "integer"}},
    ],
)
async def test_a_schema_that_nothing_satisfies_is_an_assertion_error(schema):
    """The message names where the last draw failed; so for what no data model writes and no draw guesses."""
    with pytest.raises(AssertionError, match="no valid instance"):
        await SchemaLM()("?", schema)


async def test_a_schema_whose_values_never_end_is_an_assertion_error():
    """A required recursion has no finite value, and does not hang."""
    endless = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"type": "object", "properties": {"n": {"$ref": "#/$defs/A"}}, "required": ["n"]}},
    }
    with pytest.raises(AssertionError):
        await SchemaLM()("?", endless)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\d{3}$",
        r"^(ab|cd)+$",
        r"[^a-z]",
        r"^[\w.+-]+@[\w-]+\.[a-z]{2,4}$",
        r"^a*b?c{2,}$",
        r"^(?i:x)$",
        r"^(?P<name>q)r$",
        r"^[]a]+$",
        r"^[a\-z]$",
        r"\bword\b",
        r"^$",
        r"^.{5}$",
        r"^[+-]?\d+(?:\.\d*)?$",
    ],
)
def test_texts_for_patterns(pattern):
    """A drawn text matches its pattern."""
    declared = declare({"type": "string", "pattern": pattern}, root="any")
    for seed in range(20):
        assert is_valid(declared, text_for(pattern, Random(seed)))

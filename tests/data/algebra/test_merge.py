"""`C` and `U`: the one rule of merging."""

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from synmod.data import DataModel, JsonDataModel, is_subschema, json_equal, ops, schema_from, schema_of, symbol
from tests.data.model_strategies import schemas_with_values, symbol_of, values


def model(*names, required=None, extra=False, **more):
    fields = {name: {"type": "integer"} for name in names}
    schema = {"type": "object", "properties": fields, "additionalProperties": extra, **more}
    schema["required"] = list(names if required is None else required)
    return schema


def value(schema, **json):
    return JsonDataModel(json, schema=schema)


def keys(*schemas):
    return list(ops.concat(*(symbol(schema_from(schema)) for schema in schemas)).keys())


def test_names_keep_or_take_the_next_number():
    """A field that collides takes the smallest number that neither side and nothing given has."""
    assert keys(model("note", "a"), model("note", "b")) == ["note", "a", "note_1", "b"]
    assert keys(model("x"), model("x", "x_1")) == ["x", "x_2", "x_1"]
    assert keys(model("x", "x_1"), model("x", "x_1")) == ["x", "x_1", "x_2", "x_1_1"]
    assert keys(model("x"), model("x"), model("x")) == ["x", "x_1", "x_2"]


def test_optional_stays_optional():
    """`required` is that of both sides under the new names."""
    merged = ops.concat(*(symbol(schema_from(s)) for s in (model("x", "y", required=["y"]), model("x", "y"))))
    assert merged.get_schema()["required"] == ["y", "x_1", "y_1"]


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        (False, False, False),
        (False, {"type": "integer"}, {"type": "integer"}),
        ({"type": "integer"}, {"type": "integer", "title": "N"}, {"type": "integer"}),
        ({"type": "integer"}, {"type": "string"}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ({"type": "integer"}, True, None),
        (True, False, None),
    ],
)
def test_extra_keys_are_the_looser_of_both(left, right, merged):
    """`additionalProperties` is the looser one, two schemas are alternatives."""
    result = ops.concat(*(symbol(schema_from(model("x", extra=extra))) for extra in (left, right)))
    assert result.get_schema().get("additionalProperties") == merged


def test_pattern_properties_open_the_object():
    """Root keywords are dropped; what they would have forbidden is allowed, so nothing valid is refused."""
    left = model("x", patternProperties={"^p": {"type": "string"}}, minProperties=1)
    result = ops.concat(symbol(schema_from(left)), symbol(schema_from(model("y")))).get_schema()
    assert "additionalProperties" not in result
    assert result.keys() == {"properties", "required", "type"}


def test_texts_are_joined_and_cut():
    """Distinct titles are joined by `_`, distinct descriptions by an empty line."""

    def merged(*texts):
        parts = [symbol(schema_from(model("x", title=title, description=text))) for title, text in texts]
        return ops.concat(*parts).get_schema()

    result = merged(("A", "one"), ("B", "two"), ("A", "one"))
    assert (result["title"], result["description"]) == ("A_B_A", "one\n\ntwo\n\none")
    assert merged(("A", "one"), ("A", "one"))["title"] == "A"
    long = merged(("A" * 50, "d" * 1500), ("B" * 50, "e" * 1500))
    assert (len(long["title"]), len(long["description"])) == (64, 2000)


class Inner(DataModel):
    a: int


class HoldsInner(DataModel):
    inner: Inner


def holds_other_inner():
    class Inner(DataModel):
        b: str
        again: "list[Inner] | None" = None

    class Other(DataModel):
        inner: Inner

    return Other


def test_equal_definitions_are_one():
    """Two definitions of one name are one if they are equal."""
    assert list((HoldsInner + HoldsInner).get_schema()["$defs"]) == ["Inner"]


def test_differing_definitions_are_told_apart():
    """The second takes the suffix rule, and every reference of its side follows."""
    other = schema_from(
        {
            "type": "object",
            "properties": {"inner": {"$ref": "#/$defs/Inner"}, "b": {"$ref": "#/$defs/Unused/properties/b"}},
            "$defs": {
                "Inner": {"type": "object", "properties": {"again": {"$ref": "#/$defs/Inner"}}},
                "Unused": {"type": "object", "properties": {"b": {"type": "null"}}},
                "Nobody": {"type": "string"},
            },
        }
    )
    schema = (HoldsInner.to_symbolic_data_model() + symbol(other)).get_schema()
    assert list(schema["$defs"]) == ["Inner", "Inner_1", "Unused"]
    assert schema["properties"]["inner_1"] == {"$ref": "#/$defs/Inner_1"}
    assert schema["$defs"]["Inner_1"]["properties"]["again"] == {"$ref": "#/$defs/Inner_1"}


def test_a_definition_of_extra_fields_goes_where_all_are_admitted():
    """Beside an open object nothing refers to it any more."""
    typed = model(extra={"$ref": "#/$defs/Price"}, **{"$defs": {"Price": {"type": "number"}}})
    for combine in (ops.concat, ops.logical_xor):
        schema = combine(symbol(schema_from(typed)), symbol(schema_from(model(extra=True)))).get_schema()
        assert "$defs" not in schema, combine


def test_definitions_that_refer_to_differing_ones_differ():
    """Equal text does not make two definitions one when what they refer to differs."""

    def holding(leaf):
        definitions = {"Mid": {"type": "array", "items": {"$ref": "#/$defs/Leaf"}}, "Leaf": {"type": leaf}}
        return schema_from({"type": "object", "properties": {"m": {"$ref": "#/$defs/Mid"}}, "$defs": definitions})

    schema = (symbol(holding("integer")) + symbol(holding("string"))).get_schema()
    assert schema["properties"]["m_1"] == {"$ref": "#/$defs/Mid_1"}
    assert schema["$defs"]["Mid_1"]["items"] == {"$ref": "#/$defs/Leaf_1"}


def test_discriminator_mappings_follow():
    """The mapping of a discriminator is a reference like any other."""

    def pets(kind):
        cat = {"type": "object", "properties": {"kind": {"const": "cat"}, "x": {"type": kind}}, "required": ["kind"]}
        pet = {
            "oneOf": [{"$ref": "#/$defs/Cat"}],
            "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat"}},
        }
        return symbol(schema_from({"type": "object", "properties": {"pet": pet}, "$defs": {"Cat": cat}}))

    second = (pets("integer") + pets("string")).get_schema()["properties"]["pet_1"]
    assert second["discriminator"]["mapping"] == {"cat": "#/$defs/Cat_1"} == {"cat": second["oneOf"][0]["$ref"]}


def test_references_to_the_root_find_it_again():
    """A schema that refers to its own root still does when its fields move to another."""
    tree = schema_from(
        {"type": "object", "title": "Tree", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    )
    schema = (symbol(schema_from(model("kids"))) + symbol(tree)).get_schema()
    checker = Draft202012Validator(schema)
    assert checker.is_valid({"kids": 1, "kids_1": [{"kids": [{"kids": []}]}]})
    assert not checker.is_valid({"kids": 1, "kids_1": [{"kids": [{"kids": 5}]}]})


def test_extra_keys_give_way():
    """An extra key that collides takes the suffix rule; declared fields never move."""
    opened = model("x", extra=True)
    a = value(opened, x=1, y=2)
    b = value(model("x", "y"), x=3, y=4)
    assert (a + b).get_json() == {"x": 1, "y_1": 2, "x_1": 3, "y": 4}
    c = value(opened, x=5, y=6, x_1=7)
    assert (a + c).get_json() == {"x": 1, "y": 2, "x_1": 5, "y_1": 6, "x_1_1": 7}


@pytest.mark.slow
@given(values(), values())
def test_no_value_is_lost(a, b):
    """Every value of both operands is in the result, those of the first at its place."""
    merged = (a + b).get_json()
    assert sorted(map(str, merged.values())) == sorted(map(str, [*a.get_json().values(), *b.get_json().values()]))
    declared = a.get_schema()["properties"]
    assert all(json_equal(merged[key], a[key]) for key in a.keys() if key in declared)


@pytest.mark.slow
@given(values(), values(), values())
def test_a_fold_is_its_steps(a, b, c):
    """`concat` of three is `(a + b) + c`, in values and in schemas."""
    folded, stepped = ops.concat(a, b, c), (a + b) + c
    assert json_equal(folded.get_json(), stepped.get_json())
    assert schema_of(folded) is schema_of(stepped)
    symbols = [symbol_of(x) for x in (a, b, c)]
    assert schema_of(ops.concat(*symbols)) is schema_of(folded)


@given(schemas_with_values(), schemas_with_values())
def test_u_admits_what_either_admits(left, right):
    """`U` is one object that every value of each alternative satisfies, and each alternative is a subschema of it."""
    (a, (x,)), (b, (y,)) = left, right
    either = schema_of(ops.logical_xor(symbol(a), symbol(b)))
    checker = Draft202012Validator(either)
    assert checker.is_valid(x)
    assert checker.is_valid(y)
    assert is_subschema(a, either)
    assert is_subschema(b, either)


def test_u_keeps_fields_plain():
    """A field with differing schemas gets alternatives; one that differs in annotations alone does not."""
    a = symbol(schema_from({"type": "object", "properties": {"x": {"type": "integer", "title": "X"}}}))
    b = symbol(
        schema_from(
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
                "required": ["y"],
                "additionalProperties": False,
            }
        )
    )
    assert (a ^ b).get_schema() == {
        "properties": {"x": {"type": "integer", "title": "X"}, "y": {"anyOf": [{}, {"type": "string"}]}},
        "type": "object",
    }

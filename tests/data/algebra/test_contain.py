"""Containment: whether everything one data model needs is in another."""

from hypothesis import given

from synmod.data import DataModel, JsonDataModel, contains, schema_from, symbol
from tests.data.model_strategies import schemas_with_values


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

"""Input: a symbol that starts a graph."""

import pytest

from synmod.data import JsonDataModel, SymbolicDataModel
from synmod.errors import ArgumentError, SchemaError
from synmod.program import Input
from tests.program.parts import Query

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "title": "Ask"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"data_model": Query},
        {"data_model": Query(question="x")},
        {"data_model": JsonDataModel(Query(question="x"))},
        {"data_model": SymbolicDataModel(data_model=Query)},
        {"data_model": Query.get_schema()},
        {"schema": Query.get_schema()},
        {"schema": Query},
    ],
)
def test_it_takes_a_class_an_instance_a_symbol_or_a_schema(arguments):
    """Each declaration gives a symbol of the same schema."""
    x = Input(**arguments)
    assert isinstance(x, SymbolicDataModel)
    assert x.get_schema() == Query.get_schema()


def test_each_call_makes_a_new_symbol():
    """Also where a symbol is given."""
    x = Input(Query)
    assert Input(Query) is not x
    assert Input(x) is not x


@pytest.mark.parametrize("arguments", [{}, {"data_model": Query, "schema": SCHEMA}])
def test_exactly_one_declaration(arguments):
    """Neither and both are ArgumentErrors."""
    with pytest.raises(ArgumentError, match="exactly one"):
        Input(**arguments)


def test_the_name_is_a_label():
    """By default the snake case of the title, that of a symbol, or what is given."""
    assert Input(schema=SCHEMA).name == "ask"
    assert Input(Query, name="mine").name == "mine"
    assert Input(Input(Query, name="mine")).name == "mine"


@pytest.mark.parametrize("bad", [3, "text", {"type": "string"}, int])
def test_what_declares_no_data_is_refused(bad):
    """A schema with another root, or no declaration at all."""
    with pytest.raises((ArgumentError, SchemaError)):
        Input(bad)

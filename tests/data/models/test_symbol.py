"""Symbols: a schema that stands for a value to come."""

import copy
import pickle
from dataclasses import dataclass, replace
from typing import Any

import pytest

from synmod.data import DataModel, SymbolicDataModel, SymbolTracing, is_symbolic, model_of, schema_of, symbol
from synmod.errors import ArgumentError, CallError, FieldError, SchemaError, SymbolicValueError


class Person(DataModel):
    name: str
    age: int = 0


class Query(DataModel):
    question: str


S = SymbolicDataModel(data_model=Query)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x["question"],
        lambda x: x["anything"],
        lambda x: x.question,
        lambda x: x.get("question"),
        lambda x: x.get_json(),
        lambda x: x.prettify_json(),
        lambda x: x.to(),
        lambda x: x.to(Query),
        lambda x: f"about {x}",
        bool,
        len,
        lambda x: "yes" if x else "no",
        lambda x: not x,
        list,
        dict,
    ],
)
def test_reading_a_value(read):
    """A symbol has no value, not even for a text: the error names the ways out."""
    with pytest.raises(SymbolicValueError, match="compute_output_spec") as error:
        read(S)
    for way in ("sm.ops", "sm.Route", "sm.Branch", "sm.Map", "sm.Lambda", "class with `call`"):
        assert way in str(error.value)
    assert repr(S) == "SymbolicDataModel('query': 'question')"


def test_the_path_being_traced(monkeypatch):
    """The field and the module path are named."""
    tracing = replace(SymbolTracing.instance, current_path=lambda: "rag/search")
    monkeypatch.setattr(SymbolTracing, "instance", tracing)
    with pytest.raises(SymbolicValueError, match=r"^rag/search: the field 'question'"):
        S.question


def test_a_symbol_can_be_printed():
    """`print(x)` is for looking, alone and in a list; an f-string would put the text into a prompt."""
    assert str(S) == "SymbolicDataModel('query': 'question')"
    assert str([S]) == f"[{S!r}]"


def test_undeclared_names():
    """In dot form they are a FieldError, so hasattr and copy work."""
    with pytest.raises(FieldError, match="Did you mean 'question'"):
        S.qestion
    assert not hasattr(S, "nothing")


def test_a_declared_name():
    """A declared field `name` is what was asked, and has no value."""
    person = Person.to_symbolic_data_model(name="who")
    with pytest.raises(SymbolicValueError):
        person.name
    assert "who" in repr(person)
    assert S.name == "query"


def test_the_schema_answers():
    """Keys and `in` work without a value."""
    assert S.keys() == ("question",)
    assert "question" in S
    assert "other" not in S
    assert S.get_schema() == Query.get_schema()
    assert S.prettify_schema() == Query.prettify_schema()


def test_identity():
    """Equality and hash are by identity."""
    again = SymbolicDataModel(data_model=Query)
    assert again != S
    assert len({S, again, S}) == 2


def test_copies_have_no_history():
    """copy, deepcopy and pickle give schema and name."""
    made = symbol(schema_of(S), Query, "mine")
    made._origin = object()
    pickled = pickle.dumps(symbol(schema_of(S), Query, "mine"))
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickled)):
        assert again is not made
        assert schema_of(again) is schema_of(made)
        assert again.name == "mine"
        assert again._origin is None
        assert model_of(again) is Query


def test_how_it_is_made():
    """A schema or a model that agree."""
    assert schema_of(SymbolicDataModel(Query.get_schema())) is schema_of(S)
    assert schema_of(SymbolicDataModel(data_model=Query(question="q"))) is schema_of(S)
    assert schema_of(SymbolicDataModel(data_model=S)) is schema_of(S)
    assert SymbolicDataModel(Query.get_schema(), Query).name == "query"
    with pytest.raises(ArgumentError):
        SymbolicDataModel()
    with pytest.raises(ArgumentError, match="differ"):
        SymbolicDataModel({"type": "object"}, Query)
    with pytest.raises(SchemaError):
        SymbolicDataModel({"type": "array"})
    with pytest.raises(SchemaError):
        SymbolicDataModel({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}})


def test_is_symbolic():
    """A symbol, or a nest that holds one: in a container, or in a field of a dataclass."""

    @dataclass
    class Pair:
        left: Any
        right: Any

    loop = []
    loop.append(loop)
    assert is_symbolic(S)
    assert is_symbolic([1, {"a": (None, S)}])
    assert not is_symbolic([1, {"a": Query(question="q")}])
    assert is_symbolic(Pair(None, S))
    with pytest.raises(CallError, match="holds itself"):
        is_symbolic(loop)
    assert not is_symbolic(Query)


def test_pickles_of_local_classes():
    """A class that no other process can find is left out; the schema is enough."""

    class Local(DataModel):
        n: int

    again = pickle.loads(pickle.dumps(Local.to_symbolic_data_model()))
    assert model_of(again) is None
    assert schema_of(again) is schema_of(Local.to_symbolic_data_model())
    value = pickle.loads(pickle.dumps(Local(n=1).to_json_data_model()))
    assert value == Local(n=1)

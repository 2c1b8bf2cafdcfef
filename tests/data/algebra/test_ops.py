"""Operators and functions: the table of who is there."""

import json
import operator
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from synmod.data import (
    OPERATIONS,
    DataModel,
    JsonDataModel,
    SymbolicDataModel,
    SymbolTracing,
    is_subschema,
    is_valid,
    json_equal,
    ops,
    schema_of,
)
from synmod.errors import ArgumentError, DataError, SymbolicValueError, SynmodError
from tests.data.model_strategies import is_sound, schemas_with_values, symbol_of, values


class Query(DataModel):
    question: str


class Answer(DataModel):
    answer: str
    question: str = "?"


Q, A = Query(question="why"), Answer(answer="so")
SQ, SA = Query.to_symbolic_data_model(), Answer.to_symbolic_data_model()


@pytest.fixture
def recorded(monkeypatch):
    """What is told to whoever records operations."""
    calls = []
    tracing = replace(SymbolTracing.instance, record_operation=lambda *call: calls.append(call))
    monkeypatch.setattr(SymbolTracing, "instance", tracing)
    return calls


def test_both_there():
    """With both operands `+ & |` put together, `^` gives None."""
    both = {"question": "why", "answer": "so", "question_1": "?"}
    assert [(Q + A).get_json(), (Q & A).get_json(), (Q | A).get_json()] == [both] * 3
    assert (Q ^ A) is None
    assert ~Q is None


@pytest.mark.parametrize("flip", [False, True])
def test_one_there(flip):
    """With one operand `+` is an error, `&` None, `|` and `^` give the one."""

    def of(operation):
        return operation(None, Q) if flip else operation(Q, None)

    with pytest.raises(DataError, match="logical_and"):
        of(operator.add)
    assert of(operator.and_) is None
    assert of(operator.or_) == Q
    assert of(operator.xor) == Q


def test_the_one_that_is_there_is_that_value():
    """`value | None` is the very value, with its own schema."""
    value = Q.to_json_data_model()
    assert (value | None) is value
    assert (None ^ value) is value
    assert (SQ | None) is SQ
    assert (None ^ SQ) is SQ


def test_plans_are_made_once_for_values_and_symbols(recorded):
    """The plan of two schemas is kept: another composition of the same symbols records the very plan."""
    for _ in range(2):
        _ = SQ + SA
    first, second = (call[1] for call in recorded)
    assert first is second
    assert OPERATIONS["concat"].plan((Q.to_json_data_model(), SA)) is first


def test_nothing_there():
    """The functions take None on every side; between two None Python's operators know nothing."""
    assert ops.logical_and(None, None) is ops.logical_or(None, None) is ops.logical_xor(None, None) is None
    assert ops.logical_not(None) is None
    with pytest.raises(DataError, match="operand 0 is None"):
        ops.concat(None, None)
    with pytest.raises(TypeError):
        None | None


def test_symbols():
    """Symbols give symbols: `C`, `U(C(A, B), A, B)`, `U(A, B)`, and the operand's schema for `~`."""
    merged = SQ + SA
    assert isinstance(merged, SymbolicDataModel)
    assert list(merged.keys()) == ["question", "answer", "question_1"]
    assert schema_of(SQ & SA) is schema_of(merged)
    assert "required" not in (SQ | SA).get_schema()
    assert list((SQ | SA).keys()) == ["question", "answer", "question_1"]
    assert list((SQ ^ SA).keys()) == ["question", "answer"]
    assert schema_of(~SQ) is schema_of(SQ)
    assert (SQ & None) is None
    assert (None & SQ) is None
    with pytest.raises(DataError):
        SQ + None


def test_a_value_beside_a_symbol_is_a_constant(recorded):
    """The operation is recorded with the value among its operands."""
    merged = SQ + A
    ((name, plan, args, kwargs, output),) = recorded
    assert (name, kwargs, output) == ("concat", {}, merged)
    assert args[0] is SQ
    assert args[1] == A
    assert plan.schema is schema_of(merged)


def test_what_is_none_or_unchanged_is_not_recorded(recorded):
    """Only operations that make a new symbol are steps."""
    assert SQ & None is None
    assert SQ | None is SQ
    assert not recorded
    made = [SQ | SA, SQ ^ SA, ~SQ, SQ.in_mask("question"), SQ.prefix("p"), SA.factorize()]
    assert [call[-1] for call in recorded] == made


def test_classes():
    """Between classes the result is a new symbol, recorded by nobody; `|` stays Python's union."""
    merged = Query + Answer
    assert isinstance(merged, SymbolicDataModel)
    assert list(merged.keys()) == ["question", "answer", "question_1"]
    assert isinstance(Query & Answer, SymbolicDataModel)
    assert isinstance(Query ^ Answer, SymbolicDataModel)
    assert isinstance(~Query, SymbolicDataModel)
    assert (Query & None) is None
    assert (Query | None) == (None | Query)
    assert isinstance(Q, Query | None)
    assert isinstance(ops.logical_or(Query, Answer), SymbolicDataModel)
    assert isinstance(ops.logical_or(Query, None), SymbolicDataModel)


@pytest.mark.parametrize("beside", [Q, Q.to_json_data_model(), SQ], ids=["instance", "value", "symbol"])
@pytest.mark.parametrize("operation", [operator.add, operator.and_, operator.or_, operator.xor])
def test_a_class_beside_data(beside, operation):
    """A class beside a value or a symbol has no value at run time."""
    with pytest.raises(DataError, match="no value at run time"):
        operation(beside, Answer)
    with pytest.raises(DataError, match="no value at run time"):
        operation(Answer, beside)


def test_a_text_with_a_symbol_is_told_what_to_write():
    """On either side: an f-string's `+` reads a value that is not there."""
    for make in (lambda: "about " + SQ, lambda: SQ + " too"):
        with pytest.raises(SymbolicValueError, match="the value of SymbolicDataModel.* was read"):
            make()


@pytest.mark.parametrize("other", [5, b"x", {}, [1]])
def test_other_operands(other):
    """Anything else is Python's TypeError, from operators and functions."""
    for operation in (operator.add, operator.and_, operator.or_, operator.xor):
        for pair in ((Q, other), (other, Q), (SQ, other), (Q.to_json_data_model(), other)):
            with pytest.raises(TypeError):
                operation(*pair)
    with pytest.raises(TypeError):
        Query + other
    with pytest.raises(ArgumentError):
        ops.concat(Q, other)


def test_a_coroutine():
    """A coroutine in place of data asks for its await."""

    async def search():
        return Q

    for use in (lambda x: Q + x, lambda x: x | SQ, lambda x: ops.logical_and(Q, x), lambda x: ops.in_mask(x, "a")):
        with pytest.raises(DataError, match="await"):
            use(search())


def test_how_many_operands():
    """The functions take two or more."""
    with pytest.raises(ArgumentError, match="two or more"):
        ops.concat(Q)
    assert list(ops.concat(Q, A, Q).keys()) == ["question", "answer", "question_1", "question_2"]
    assert ops.logical_xor(None, Q, None) == Q
    assert ops.logical_xor(None, Q, A) is None
    assert ops.logical_and(Q, None, A) is None
    assert ops.logical_or(None, Q, None, A) == Q + A


def test_a_replayed_plan_keeps_its_names():
    """An operand that is None this time cannot shift a name, and the result carries the symbol's schema."""
    plan = OPERATIONS["logical_or"].plan((schema_of(SQ), schema_of(SA)), {})
    both = plan.apply((Q.to_json_data_model(), A.to_json_data_model()))
    only = plan.apply((None, A.to_json_data_model()))
    assert both.get_json() == {"question": "why", "answer": "so", "question_1": "?"}
    assert only.get_json() == {"answer": "so", "question": "?"}
    assert schema_of(both) is schema_of(only) is plan.schema
    assert plan.apply((None, None)) is None
    follow = OPERATIONS["concat"].plan((plan.schema, schema_of(SQ)), {})
    assert list(follow.apply((only, Q.to_json_data_model())).keys()) == ["answer", "question", "question_2"]


def test_concat_names_who_is_missing():
    """The step's path, the operand, and the way out are in the message."""
    plan = OPERATIONS["concat"].plan((schema_of(SQ), schema_of(SA)), {})
    with pytest.raises(DataError, match=r"^rag/3: concat: operand 1 is None.*`&`"):
        plan.apply((Q.to_json_data_model(), None), where="rag/3")


BINARY = ["concat", "logical_and", "logical_or", "logical_xor"]


@given(st.sampled_from(BINARY), schemas_with_values(count=1), schemas_with_values(count=1), st.sampled_from("ab "))
def test_values_agree_with_their_symbol(name, left, right, absent):
    """Whoever is there, the value satisfies its own schema and the symbol's, and its schema is a subschema of that."""
    a, b = (JsonDataModel(pair[1][0], schema=pair[0]) for pair in (left, right))
    made = getattr(ops, name)(symbol_of(a), symbol_of(b))
    plan = OPERATIONS[name].plan((schema_of(a), schema_of(b)), {})
    there = [None if absent == "a" else a, None if absent == "b" else b]
    if name == "concat" and None in [x if x is None else 0 for x in there]:
        return
    eager, replayed = getattr(ops, name)(*there), plan.apply(there)
    assert (eager is None) == (replayed is None)
    if eager is None:
        return
    assert json_equal(eager.get_json(), replayed.get_json())
    assert is_sound(eager)
    assert is_sound(replayed)
    assert schema_of(replayed) is schema_of(made) is plan.schema
    assert is_valid(schema_of(made), eager.get_json())
    assert is_subschema(schema_of(eager), schema_of(made))


@given(st.lists(st.none() | values(names=["k", "k_1", "a"]), min_size=2, max_size=4))
def test_folds_of_or(operands):
    """`logical_or` of several is the fold of its steps, replayed too."""
    stepped = operands[0]
    for x in operands[1:]:
        stepped = ops.logical_or(stepped, x)
    folded = ops.logical_or(*operands)
    assert (folded is None) == (stepped is None)
    if folded is None:
        return
    assert json_equal(folded.get_json(), stepped.get_json())
    plan = OPERATIONS["logical_or"].plan([x and schema_of(x) for x in operands], {})
    replayed = plan.apply(operands)
    assert is_sound(replayed)
    assert json_equal(replayed.get_json(), folded.get_json()) or None in [x if x is None else 0 for x in operands]


def test_plans_are_json(recorded):
    """What is recorded of masks and renames is JSON, so a saved file can replay it."""
    symbol = SQ + SA
    recorded.clear()
    symbol.in_mask(Answer)
    symbol.out_mask(["question"], recursive=True)
    symbol.prefix("my")
    symbol.suffix("old")
    symbol.factorize({"question": "questions"})
    calls = list(recorded)
    value = (Q + A).to_symbolic_data_model()
    for name, plan, args, kwargs, output in calls:
        again = OPERATIONS[name].plan((schema_of(args[0]),), json.loads(json.dumps(kwargs)))
        assert again.schema is plan.schema is schema_of(output)
    assert [call[3] for call in calls] == [
        {"mask": ["answer", "question"]},
        {"mask": ["**/question"]},
        {"prefix": "my"},
        {"suffix": "old"},
        {"names": {"question": "questions"}},
    ]
    assert value.keys() == symbol.keys()


def test_operands_are_never_changed():
    """Operands keep their JSON, and the result shares their content."""

    class Nested(DataModel):
        inner: dict[str, int]

    value = Nested(inner={"a": 1}).to_json_data_model()
    merged = value + Q
    assert merged["inner"] is value["inner"]
    assert value.get_json() == {"inner": {"a": 1}}


@pytest.mark.parametrize(
    ("name", "operands", "kwargs"),
    [
        ("concat", 1, {}),
        ("concat", 0, {}),
        ("prefix", 2, {"prefix": "p"}),
        ("prefix", 1, {}),
        ("prefix", 1, {"prefix": "p", "more": 1}),
        ("suffix", 1, {"suffix": 5}),
        ("in_mask", 1, {}),
        ("in_mask", 1, {"mask": 5}),
        ("in_mask", 1, {"mask": []}),
        ("factorize", 1, {"names": ["question"]}),
        ("logical_not", 2, {}),
    ],
)
def test_plans_from_bad_files(name, operands, kwargs):
    """A plan that a file asks for is checked like a call."""
    with pytest.raises(SynmodError):
        OPERATIONS[name].plan((schema_of(SQ),) * operands, kwargs)

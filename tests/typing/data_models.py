"""Checked by pyright, never run: what type checkers know of data models, values and symbols."""

# pyright: reportUnnecessaryTypeIgnoreComment=true
# each mistake below must be one

from typing import Any, assert_type

import pydantic

from synmod.data import ChatMessage, DataModel, JsonDataModel, SymbolicDataModel, ToolCall, ops


class Query(DataModel):
    question: str


class Answer(DataModel):
    answer: str = ""


class Plain(pydantic.BaseModel):
    n: int


def operators_on_classes() -> None:
    """Between classes an operator gives a symbol; `|` stays the union of types."""
    assert_type(Query + Answer, SymbolicDataModel)
    assert_type(Query & Answer, SymbolicDataModel)
    assert_type(Query ^ Answer, SymbolicDataModel)
    assert_type(~Query, SymbolicDataModel)
    assert_type("question" in Query, bool)
    assert_type(Query in Answer, bool)


def unions(query: object, other: Query | None) -> bool:
    """`Query | None` is an annotation, and works in isinstance."""
    del other
    return isinstance(query, Query | None)


def typed_values(value: JsonDataModel[Answer], bare: JsonDataModel) -> None:
    """`x.to()` is the class of the annotation; `x.to(Model)` the one asked for."""
    assert_type(value.to(), Answer)
    assert_type(value.to(Query), Query)
    assert_type(value.to(Plain), Plain)
    assert_type(bare.to(Query), Query)
    text: str = value.answer
    also: str = value["answer"]
    assert_type(value.get_json(), dict[str, Any])
    del text, also


def fields() -> None:
    """Constructors know their fields."""
    Query(question="why")
    Query(question=5)  # pyright: ignore[reportArgumentType]
    Query()  # pyright: ignore[reportCallIssue]
    assert_type(Query(question="why").to_json_data_model(), JsonDataModel[Query])
    assert_type(Query.to_symbolic_data_model(), SymbolicDataModel)
    assert_type(JsonDataModel({"question": "why"}, data_model=Query), JsonDataModel[Query])
    ChatMessage("user", "Hi")
    ChatMessage("user", "Hi", tool_calls=[ToolCall("1", "add", {"a": 1})])
    ChatMessage("someone", "Hi")  # pyright: ignore[reportArgumentType]


def operations(query: Query, value: JsonDataModel[Answer], symbol: SymbolicDataModel) -> None:
    """Operators and functions take what they take at run time."""
    ops.concat(query + value, value & None, None | value, symbol ^ query)
    ops.in_mask(Query, "question")
    value.in_mask(Answer).out_mask(["answer"]).prefix("p").suffix("s").factorize()
    del symbol


def constructors() -> None:
    """Fields are keywords, complete and of their types."""
    Query(question="Who?")
    Answer()
    Query(qestion="Who?")  # pyright: ignore[reportCallIssue]
    Query("Who?")  # pyright: ignore[reportCallIssue]
    Query(question=3)  # pyright: ignore[reportArgumentType]
    Query()  # pyright: ignore[reportCallIssue]
    ChatMessage("user", "Hi")

"""What a type checker says of blocks; checked by pyright, never run."""

from typing import Any, assert_type

from synmod.blocks import ChainOfThought, Decision, Generator
from synmod.data.messages import ChatMessage
from synmod.data.model import DataModel
from synmod.data.symbol import SymbolicDataModel
from synmod.data.value import JsonDataModel


class Query(DataModel):
    """A question."""

    question: str


class Answer(DataModel):
    """An answer."""

    answer: str


async def generators(value: JsonDataModel[Query], symbol: SymbolicDataModel) -> None:
    """The output model is known from the constructor."""
    generator = Generator(Answer, temperature=0.5)
    assert_type(generator, Generator[Answer])
    assert_type(await generator(Query(question="?")), JsonDataModel[Answer])
    assert_type(await generator(value), JsonDataModel[Answer])
    assert_type((await generator(value)).to(), Answer)
    assert_type(await generator(symbol), SymbolicDataModel)
    assert_type(await generator(None), None)
    assert_type(await Generator()(value), JsonDataModel[ChatMessage])
    assert_type(await Generator(schema={"type": "object"})(value), JsonDataModel[Any])
    assert_type(await Generator(symbol)(value), JsonDataModel[Any])


async def thinkers(value: JsonDataModel[Query], symbol: SymbolicDataModel) -> None:
    """Subclasses keep what Generator knows."""
    assert_type(await ChainOfThought(Answer, return_thinking=False)(value), JsonDataModel[Answer])
    assert_type(await ChainOfThought(Answer)(symbol), SymbolicDataModel)
    assert_type(await Decision(["a"], multiple=True)(value), JsonDataModel[Any])


def mistakes() -> None:
    """A misspelt keyword is a fault for the checker too."""
    Generator(Answer, temperture=1)  # pyright: ignore[reportCallIssue, reportArgumentType]  # the mistake under test
    Decision(["a"], labls=1)  # pyright: ignore[reportCallIssue]  # the mistake under test

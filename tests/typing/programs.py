"""What a type checker says of programs; checked by pyright, never run."""

from typing import Any, assert_type

from synmod.blocks import Generator, Retry
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
from synmod.program import Input, Program, Sequential, compose


class Query(DataModel):
    """A question."""

    question: str


class Answer(DataModel):
    """An answer."""

    answer: str


class Agent(Program):
    """Takes the type of its `call`."""

    async def call(self, inputs: JsonDataModel[Query]) -> tuple[JsonDataModel[Answer], int]:
        """Answer."""
        raise NotImplementedError


async def functional(program: Program[Answer], value: JsonDataModel[Query], symbol: SymbolicDataModel) -> None:
    """A program is generic in its output model."""
    assert_type(await program(value), JsonDataModel[Answer])
    assert_type((await program(Query(question="?"))).to(), Answer)
    assert_type(await program(question=value), JsonDataModel[Answer])
    assert_type(await program(symbol), SymbolicDataModel)
    assert_type(await Program(inputs=symbol, outputs=symbol)(value), JsonDataModel[Any])


async def by_subclass(agent: Agent, value: JsonDataModel[Query], symbol: SymbolicDataModel) -> None:
    """A class of one's own takes the type of its `call`."""
    assert_type(await agent(value), tuple[JsonDataModel[Answer], int])
    assert_type(await agent(symbol), SymbolicDataModel)


async def composed(value: JsonDataModel[Query]) -> None:
    """A composed program knows its output model where the function says it."""

    @compose
    async def mine(query: JsonDataModel[Query]) -> JsonDataModel[Answer]:
        raise NotImplementedError

    assert_type(await mine(value), JsonDataModel[Answer])
    assert_type(Input(Query, name="q"), SymbolicDataModel)


async def in_a_row(value: JsonDataModel[Query], symbol: SymbolicDataModel) -> None:
    """A row gives what its last member gives, where the checker sees which one that is."""
    ask, write = Generator(Query), Generator(Answer)
    assert_type(Sequential((Input(Query), ask, Retry(write, on=KeyError)), name="row"), Sequential[Answer])
    assert_type(await Sequential([Input(Query), write])(value), JsonDataModel[Answer])
    assert_type(await Sequential((ask, Sequential([write])))(value), JsonDataModel[Answer])
    assert_type(await Sequential([ask, write])(value), JsonDataModel[Any])
    assert_type(await Sequential({"ask": ask, "write": write})(value), JsonDataModel[Any])
    assert_type(await Sequential([write])(symbol), SymbolicDataModel)
    assert_type(Sequential(Input(Query), ask, write, name="row"), Sequential[Answer])
    assert_type(Sequential(write), Sequential[Answer])
    assert_type(Sequential(ask, len), Sequential[Any])
    assert_type(Sequential(), Sequential[Any])

"""What a type checker says of the bridge; checked by pyright, never run."""

from typing import assert_type

from synmod.blocks import Generator
from synmod.data import DataModel, JsonDataModel
from synmod.flow import in_thread, run
from synmod.program import Program


class Ticket(DataModel):
    """A question."""

    text: str


class Answer(DataModel):
    """An answer."""

    answer: str


async def double(x: int, *, times: int = 2) -> int:
    """Work."""
    return x * times


def plain(generator: Generator[Answer], program: Program[Answer]) -> None:
    """`run` has the type of what it runs, and checks its arguments."""
    assert_type(run(double, 1, times=3), int)
    assert_type(run(double(1)), int)
    assert_type(run(generator, Ticket(text="x")), JsonDataModel[Answer])
    assert_type(run(program, Ticket(text="x")), JsonDataModel[Answer])
    run(double, "x")  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert_type(run(in_thread(len), "abc"), int)

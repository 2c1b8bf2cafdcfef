"""A program as a user writes it, under pyright in strict mode; checked, never run."""

from typing import Any, Literal, assert_type

import synmod as sm


class Ticket(sm.DataModel):
    """What a customer wrote."""

    text: str


class Sorted(sm.DataModel):
    """Where it goes."""

    team: Literal["billing", "technical"]


class Reply(sm.DataModel):
    """What the desk answers."""

    answer: str


class Verdict(sm.DataModel):
    """Whether a ticket may be answered."""

    allowed: bool


def short(ticket: sm.JsonDataModel[Ticket]) -> Verdict:
    """Let short tickets pass."""
    return Verdict(allowed=len(ticket["text"]) < 1000)


class Signed(sm.Module):
    """Signs what a module answers."""

    def __init__(self, write: sm.Generator[Reply], signature: str = "The desk", **options: Any) -> None:
        super().__init__(**options)
        self.write = write
        self.signature = sm.Param(signature)

    async def call(self, inputs: Ticket) -> Reply:
        reply = await self.write(inputs)
        return Reply(answer=f"{reply.to().answer}\n{self.signature.value}")


class Careful(sm.Module):
    """Hands a ticket on, or answers it itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Signed(sm.Generator(Reply), name="inner")

    async def call(self, inputs: Ticket) -> Reply | sm.JsonDataModel[Reply]:
        if "lawyer" in inputs.text:
            return Reply(answer="A person will call you.")
        return await self.inner(inputs)


class Costs(sm.Hook):
    """Adds up what model calls cost."""

    total = 0.0

    def on_lm_end(self, event: sm.scope.LMEnd) -> None:
        self.total += event.usage.cost_usd or 0.0
        print(event.place, event.model)


desk = sm.Route(
    sm.Generator(Sorted),
    {"billing": sm.Retry(Careful(), 2, on=sm.ModelError), "technical": sm.Cached(sm.Generator(Reply))},
    key="team",
)
guarded = sm.Sequential({"guard": sm.Guard(sm.Lambda(short)), "desk": desk})


@sm.compose
async def program(ticket: Ticket) -> sm.JsonDataModel[Reply]:
    """Answer a ticket."""
    return await desk(ticket)


def exact(y_pred: sm.JsonDataModel[Reply], y_true: dict[str, Any]) -> float:
    """Reward the very answer."""
    return float(y_pred["answer"] == y_true["answer"])


async def all_replies(texts: list[str]) -> list[str]:
    """Answer many tickets at once."""
    async with sm.map_concurrently(program, [Ticket(text=text) for text in texts]) as replies:
        return [reply.to().answer async for reply in replies]


def main() -> None:
    """Run, evaluate, train, save and load."""
    reply = sm.run(desk, Ticket(text="My invoice is wrong."))
    assert_type(reply, sm.JsonDataModel[Reply])
    assert_type(sm.run(program, Ticket(text="?")).to().answer, str)
    assert_type(sm.run(all_replies, ["a", "b"]), list[str])
    with sm.hooks(Costs()), sm.budget(calls=100), sm.trace() as t:
        sm.run(guarded, Ticket(text="My invoice is wrong."))
    print(t, reply.to().answer)
    evaluation = sm.run(sm.evaluate(program, [(Ticket(text="?"), {"answer": "!"})], reward=exact))
    assert_type(evaluation.score, float | None)
    program.compile(reward="exact_match", optimizer=sm.optimizers.RandomFewShot())
    history = sm.run(program.fit([{"text": "?", "answer": "!"}], budget=10))
    print(history.diff(), program.save("desk.json"))
    for variable in program.trainable_variables:
        variable.value = "Be brief."
    again = sm.load("desk.json")
    print(again.summary())

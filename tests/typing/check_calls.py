"""What a type checker believes of calls; checked by pyright, never run."""

from typing import Any, assert_type

import synmod as sm


class Question(sm.DataModel):
    """What goes in."""

    text: str


class Answer(sm.DataModel):
    """What comes out."""

    answer: str


class Typed(sm.Module):
    """A `call` with a type."""

    async def call(self, inputs: sm.JsonDataModel[Question], training: bool = False) -> sm.JsonDataModel[Answer]:
        return sm.JsonDataModel(Answer(answer=inputs["text"]))


class Plain(sm.Module):
    """A `call` that waits for nothing."""

    def call(self, inputs: sm.JsonDataModel[Question]) -> sm.JsonDataModel[Question]:
        return inputs


class Instance(sm.Module):
    """A `call` that returns an instance."""

    async def call(self, inputs: sm.JsonDataModel[Question]) -> Answer:
        return Answer(answer=inputs["text"])


class Either(sm.Module):
    """A `call` that returns an instance, or what another module returned."""

    async def call(self, inputs: sm.JsonDataModel[Question]) -> Answer | sm.JsonDataModel[Answer]:
        return Answer(answer="") if inputs["text"] else await Instance()(inputs)


class Maybe(sm.Module):
    """A `call` that may return None, without waiting."""

    def call(self, inputs: sm.JsonDataModel[Question]) -> Answer | None:
        return None


class AnySignature(sm.Module):
    """Any signature may override `call` and `build`."""

    async def build(self, left: sm.SymbolicDataModel, right: sm.SymbolicDataModel) -> None:
        self.seen = self.add_variable(0, name="seen")

    async def call(self, left: Any, right: Any, *, times: int = 1) -> tuple[Any, Any]:
        return left, right


async def awaiting(
    question: Question, value: sm.JsonDataModel[Question], symbol: sm.SymbolicDataModel, lm: sm.LanguageModel
) -> None:
    """Awaiting a module gives what its `call` gives."""
    generator = sm.Generator(Answer, language_model=lm)
    reply = await generator(question)
    assert_type(reply, sm.JsonDataModel[Answer])
    assert_type(reply.to(), Answer)
    assert_type(await generator(value), sm.JsonDataModel[Answer])
    assert_type(await generator(symbol), sm.SymbolicDataModel)
    assert_type(await sm.ChainOfThought(Answer)(value), sm.JsonDataModel[Answer])
    assert_type(await Typed()(value), sm.JsonDataModel[Answer])
    assert_type(await Plain()(value), sm.JsonDataModel[Question])
    assert_type(await Instance()(value), sm.JsonDataModel[Answer])
    assert_type(await Either()(value), sm.JsonDataModel[Answer])
    assert_type(await Maybe()(value), sm.JsonDataModel[Answer] | None)
    assert_type(await sm.Retry(Maybe(), 2, on=KeyError)(value), sm.JsonDataModel[Answer] | None)
    assert_type(sm.run(Either(), question), sm.JsonDataModel[Answer])
    assert_type(await AnySignature()(value, value, times=2, training=True), tuple[Any, Any])
    assert_type(sm.Program(inputs=symbol, outputs=await generator(symbol)).name, str)


@sm.compose
async def composed(question: sm.JsonDataModel[Question]) -> sm.JsonDataModel[Answer]:
    """A composed program keeps the type."""
    return await sm.Generator(Answer)(question)


@sm.compose
async def wrapped(question: Question) -> Answer | sm.JsonDataModel[Answer]:
    """Likewise."""
    return await sm.Retry(sm.Generator(Answer), 2, on=sm.ModelError)(question)


async def composed_keeps_its_type(question: Question) -> None:
    """Awaiting a composed program gives what its function gives."""
    assert_type(await wrapped(question), sm.JsonDataModel[Answer])
    reply = await composed(question)
    assert_type(reply, sm.JsonDataModel[Answer])
    assert_type(reply.to(), Answer)


def data(question: Question) -> None:
    """Values are typed by their class."""
    value = sm.JsonDataModel(question)
    assert_type(value.to(), Question)
    assert_type(value.to(Answer), Answer)
    optional: Question | None = None
    assert optional is None or isinstance(optional, Question)


def graphs(module: Typed) -> None:
    """Copies keep the type."""
    assert_type(module.clone(), Typed)
    assert_type(sm.clone(module), Typed)
    graphdef, state = sm.split(module)
    assert_type(sm.merge(graphdef, state), Typed)


async def streams(lm: sm.LanguageModel, generator: sm.Generator[Answer]) -> None:
    """A stream has the type of what it ends with, and checks the arguments of the program."""
    assert_type(await lm("Hi"), sm.LMReply)
    async with await lm("Hi", Answer, stream=True) as one:
        async for chunk in one:
            assert_type(chunk, sm.LMChunk)
    assert_type(one.reply, sm.LMReply)
    async with sm.stream(generator, Question(text="x"), events=True) as events:
        async for event in events:
            assert_type(event, sm.LMChunk | sm.scope.CallBegin | sm.scope.CallEnd | sm.Emitted)
    async with sm.stream(generator, Question(text="x")) as program:
        pass
    assert_type(program.result, sm.JsonDataModel[Answer])

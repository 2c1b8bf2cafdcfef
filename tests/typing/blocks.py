"""What a type checker says of blocks; checked by pyright, never run."""

from typing import Any, assert_type

from synmod.blocks import (
    Agent,
    And,
    AskModel,
    BestOf,
    Branch,
    Cached,
    ChainOfThought,
    Choose,
    Code,
    CodeAct,
    Compact,
    Concat,
    Constant,
    Decision,
    Factorize,
    Fallback,
    Generator,
    Guard,
    Identity,
    InMask,
    Lambda,
    Majority,
    Map,
    Not,
    Or,
    OutMask,
    Parallel,
    Prefix,
    Refine,
    Repeat,
    Retry,
    Route,
    SelfCritique,
    Suffix,
    Tool,
    Xor,
)
from synmod.cache import Cache, key_of
from synmod.data import ChatMessage, DataModel, JsonDataModel, SymbolicDataModel
from synmod.tree import Choice


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
    assert_type(await Decision({"a": "the first"}, question="?")(symbol), SymbolicDataModel)
    assert_type(await Decision(["a"], confidence=True, samples=3)(value), JsonDataModel[Any])
    assert_type(await SelfCritique(Answer, return_inputs=False)(value), JsonDataModel[Any])
    assert_type(ChainOfThought(Answer).render(value), list[ChatMessage])


def mistakes() -> None:
    """A misspelt keyword is a fault for the checker too."""
    Generator(Answer, temperture=1)  # pyright: ignore[reportCallIssue, reportArgumentType]  # the mistake under test
    Decision(["a"], labls=1)  # pyright: ignore[reportCallIssue]  # the mistake under test
    Generator(Answer)("hello")  # pyright: ignore[reportCallIssue, reportArgumentType]  # the mistake under test


def length(inputs: Any, outputs: Any) -> float:
    """A reward asks by parameter name for what it wants."""
    return len(outputs["answer"]) / len(inputs["question"])


async def composed(value: JsonDataModel[Query]) -> None:
    """Blocks that hold members take modules, and give what their members give."""
    write, ask = Generator(Answer), Generator(Query)
    best = BestOf(write, 3, reward=length, threshold=0.5, concurrency=2, name="best")
    assert_type(await best(value), JsonDataModel[Answer])
    assert_type(await Majority(write, 3, field="answer")(value), JsonDataModel[Answer])
    assert_type(await Refine(write, SelfCritique(), rounds=3)(value), JsonDataModel[Answer])
    assert_type(await Guard(Generator(schema={"type": "object"}), on_block="error")(value), Any)
    assert_type(await Repeat(write, until=lambda output: True, on_limit="return")(value), JsonDataModel[Answer])
    assert_type(await Fallback(write, write, on=(KeyError, ValueError))(value), JsonDataModel[Answer])
    assert_type(await Choose(Choice(["a", "b"]), {"a": write, "b": write})(value), JsonDataModel[Answer])
    assert_type(await Retry(write, 2, on=KeyError, description="twice")(value), JsonDataModel[Answer])
    assert_type(await Cached(Retry(write, on=KeyError), ttl_s=60.0)(value), JsonDataModel[Answer])
    Generator(compact=Compact(0.5, keep=3, window=9_000, language_model="openai/m", instructions="Be brief."))
    Compact(wndow=3)  # pyright: ignore[reportCallIssue]
    await Cached(write, Cache("answers.db", max_bytes=1_000, ttl_s=9), key=len)(value)
    branch = Branch({"a": write, "b": ("second", write)}, question="?", temperature=0.0)
    assert_type(await branch(value), JsonDataModel[Answer])
    assert_type(await Branch({"a": write, "b": ask})(value), JsonDataModel[Answer] | JsonDataModel[Query])
    assert_type(await Branch({"a": write}, merge=False)(value), Any)
    routed = Route(Identity(), {"a": write, "b": branch}, key="question", default="a")
    assert_type(await routed(value), JsonDataModel[Answer])
    assert_type(await Route(Identity(), {"a": write}, merge=False)(value), tuple[Any, ...])
    assert_type(await Map(write, "items", concurrency=8, on_error="collect")(value), JsonDataModel[Any])
    assert_type(await Map(write)([value]), list[JsonDataModel[Answer]])
    assert_type(await Parallel(write, ask)(value), tuple[JsonDataModel[Answer], JsonDataModel[Query]])
    assert_type(await Parallel(write, merge="or")(value), Any)
    Cached(write, "answers.db")  # pyright: ignore[reportArgumentType]  # a path is no Cache
    found = await Cache().find(key_of({"a": 1}), ttl_s=2.5)
    assert found is None or found.keys()


def shout(inputs: JsonDataModel[Query]) -> Answer:
    """A function of one's own."""
    return Answer(answer=inputs["question"].upper())


async def plain(value: JsonDataModel[Query]) -> None:
    """Functions on data take what their functions take; what they give is known when they run."""
    assert_type(await Constant(Answer(answer="brief"))(value), JsonDataModel[Any])
    assert_type(await Identity(name="same")(value), Any)
    assert_type(await Lambda(shout, output=Answer)(value), Any)
    assert_type(await Parallel(Identity(), Lambda(shout), merge="concat")(value), Any)
    for block in (InMask(["question"]), OutMask(Answer, recursive=True), Prefix("my"), Suffix("old", trainable=False)):
        assert_type(await block(value), Any)
    assert_type(await Factorize({"question": "questions"})(value), Any)
    for merging in (Concat(), And(), Or(), Xor(name="one")):
        assert_type(await merging(value, None), Any)
        assert_type(await merging([value, value]), Any)
    assert_type(await Not()(None), Any)


def add(a: int, b: int = 1) -> int:
    """A tool."""
    return a + b


async def allow(name: str, arguments: dict[str, Any]) -> bool:
    """Whether a run may be."""
    return name == "add" and bool(arguments)


async def agents(value: JsonDataModel[Query], symbol: SymbolicDataModel) -> None:
    """Tools are functions and modules; an agent gives what its output model is."""
    tool = Tool(add, name="sum", timeout_s=2.5, approve=allow, parameters={"type": "object"})
    assert_type(await tool(a=1), Any)
    agent = Agent([tool, add, Identity()], Answer, max_steps=3, budget={"calls": 2, "cost_usd": 0.5}, temperature=0.5)
    assert_type(agent, Agent[Answer])
    assert_type(await agent(value), JsonDataModel[Answer])
    assert_type(await agent(symbol), SymbolicDataModel)
    assert_type(CodeAct([tool], Answer, inputs_as="variables", seconds=2), CodeAct[Answer])
    assert_type(Code("def f(inputs): return inputs", Answer, seconds=2).seconds, float)
    assert_type(AskModel("embedded/nearest").name, str)
    Agent([add], on_tool_error="ignore")  # pyright: ignore[reportArgumentType]  # the mistake under test


def more_mistakes() -> None:
    """A keyword of another block, and a word that is none of two."""
    BestOf(Identity(), 3, reward=len, treshold=1)  # pyright: ignore[reportCallIssue]  # the mistake under test
    Map(Identity(), on_error="colect")  # pyright: ignore[reportArgumentType, reportCallIssue]  # the mistake under test
    Parallel(Identity(), merge="xor")  # pyright: ignore[reportArgumentType, reportCallIssue]  # the mistake under test
    Generator(Answer, structured="jsn")  # pyright: ignore[reportCallIssue, reportArgumentType]  # the mistake under test
    Prefix()  # pyright: ignore[reportCallIssue]  # the mistake under test
    Retry(Identity(), 2)  # pyright: ignore[reportCallIssue]  # the mistake under test
    Guard(3)  # pyright: ignore[reportArgumentType]  # the mistake under test

"""The conformance catalogue: how every public module is made, and what it is called with. A law runs over all of it."""

import json

import synmod as sm
import synmod.blocks as blocks
from synmod.blocks.conversation import Transcript
from synmod.testing import SchemaLM


class CodingLM(SchemaLM):
    """A SchemaLM whose code gives an answer at once."""

    def _instance(self, request):
        if "code" in (request.schema or {}).get("properties", {}):
            return json.dumps({"code": "await answer(answer='So.')"})
        return super()._instance(request)


class Query(sm.DataModel):
    """A question."""

    question: str
    source: str = "web"


class Answer(sm.DataModel):
    """An answer."""

    answer: str


@sm.register(package="conformance")
def shout(x) -> Answer:
    """Say it loud."""
    return Answer(answer=x["question"].upper())


@sm.register(package="conformance")
def length(inputs, outputs):
    """A reward."""
    return len(str(outputs.get_json()))


@sm.register(package="conformance")
def always(value):
    """Enough at once."""
    return True


@sm.register(package="conformance")
class Verdict(sm.DataModel):
    """Whether something may pass."""

    allowed: bool


@sm.register(package="conformance")
class Shelf(sm.DataModel):
    """Several questions."""

    queries: list[Query]


@sm.register(package="conformance")
def look_up(question: str, source: str = "web") -> Answer:
    """Look it up."""
    return Answer(answer=f"{question} ({source})")


@sm.register(package="conformance")
async def allow(name, arguments):
    """Let every run pass."""
    return name == "search"


@sm.register(package="conformance")
class Library(sm.Index):
    """An index of one's own: every query finds the same, and a load opens it again."""

    name = "library"

    async def search(self, query, k=5):
        return [sm.FoundPassage(id="1", text=f"About {query}", score=1.0)][:k]

    @classmethod
    def unbound(cls, name):
        return cls()

    def __repr__(self):
        return "Library()"


INPUT = Query(question="Who?").to_json_data_model()
TWICE = INPUT + INPUT
SHELF = Shelf(queries=[Query(question="Who?"), Query(question="Why?")]).to_json_data_model()


@sm.compose
async def composed(asked: Query):
    """A program: two steps at once, merged."""
    one = await sm.Generator(Answer)(asked)
    return one + await sm.Prefix("my")(asked)


CATALOGUE = {
    "Agent": (
        lambda: sm.Agent(
            [look_up, sm.Tool(shout, name="shout", description="Say it loud.", parameters={"type": "object"})],
            Answer,
            max_steps=2,
            parallel_tools=False,
            budget={"calls": 3},
            on_tool_error="report",
            instructions="Be brief.",
        ),
        (INPUT,),
    ),
    "And": (sm.And, (INPUT, INPUT)),
    "AskModel": (lambda: blocks.AskModel(), (blocks.PromptText(prompt="Who?").to_json_data_model(),)),
    "BestOf": (lambda: sm.BestOf(sm.Generator(Answer), 3, reward=length, threshold=1e9), (INPUT,)),
    "Branch": (
        lambda: sm.Branch({"a b": ("x", sm.Generator(Answer)), "c": sm.Generator(Answer)}, question="Which?"),
        (INPUT,),
    ),
    "Cached": (lambda: sm.Cached(sm.Generator(Answer), sm.Cache(max_bytes=9_999), ttl_s=60), (INPUT,)),
    "ChainOfThought": (lambda: sm.ChainOfThought(Answer, return_thinking=False, temperature=0.5), (INPUT,)),
    "Choose": (lambda: sm.Choose(sm.Choice(["a", "b"]), {"a": sm.Generator(Answer), "b": sm.Identity()}), (INPUT,)),
    "Compact": (
        lambda: sm.Compact(0.5, 2, window=900, instructions="Be brief."),
        (Transcript(conversation="Hi").to_json_data_model(),),
    ),
    "Code": (lambda: sm.Code("def f(inputs): return {'answer': inputs['question'].upper()}", Answer), (INPUT,)),
    "CodeAct": (
        lambda: sm.CodeAct([look_up], Answer, max_steps=2, seconds=2, inputs_as="variables", budget={"calls": 3}),
        (INPUT,),
    ),
    "Concat": (lambda: sm.Concat(name="both"), ([INPUT, INPUT],)),
    "Constant": (lambda: sm.Constant(Answer(answer="brief")), (INPUT,)),
    "Decision": (lambda: sm.Decision({"a/b": "x", "": "y"}, question="Which?", multiple=True), (INPUT,)),
    "Factorize": (lambda: sm.Factorize({"question": "questions"}), (TWICE,)),
    "Fallback": (lambda: sm.Fallback(sm.Generator(Answer), sm.Identity(), on=(sm.ModelError, KeyError)), (INPUT,)),
    "Generator": (
        lambda: sm.Generator(
            Answer,
            instructions="Be brief.",
            examples=[{"inputs": {"question": "a"}, "outputs": {"answer": "b"}}],
            template={"system": "{instructions}", "user": "{examples}{inputs}"},
            return_inputs=True,
        ),
        (INPUT,),
    ),
    "Guard": (lambda: sm.Guard(sm.Generator(Verdict), on_block="none"), (INPUT,)),
    "Identity": (sm.Identity, (INPUT,)),
    "InMask": (lambda: sm.InMask(["question"]), (INPUT,)),
    "Lambda": (lambda: sm.Lambda(shout), (INPUT,)),
    "Majority": (lambda: sm.Majority(sm.Generator(Answer), 3, field="answer"), (INPUT,)),
    "Map": (lambda: sm.Map(sm.Generator(Answer), "queries", concurrency=2, on_error="collect"), (SHELF,)),
    "Nearest": (
        lambda: sm.Nearest(sm.Generator(Answer), 1, pool=[{"inputs": {"question": "a"}, "outputs": {"answer": "b"}}]),
        (INPUT,),
    ),
    "Not": (blocks.Not, (INPUT,)),
    "Or": (sm.Or, (INPUT, INPUT)),
    "OutMask": (lambda: sm.OutMask("source", recursive=True), (INPUT,)),
    "Parallel": (lambda: sm.Parallel(sm.Identity(), sm.Generator(Answer), merge="concat"), (INPUT,)),
    "Prefix": (lambda: sm.Prefix("my"), (INPUT,)),
    "Program": (lambda: composed.clone(), (INPUT,)),
    "Refine": (lambda: sm.Refine(sm.Generator(Answer), sm.SelfCritique(), rounds=3, threshold=0.9), (INPUT,)),
    "Repeat": (lambda: sm.Repeat(sm.Identity(), until=always, on_limit="return"), (INPUT,)),
    "Retry": (lambda: sm.Retry(sm.Generator(Answer), 3, on=sm.BadReplyError), (INPUT,)),
    "Retrieve": (lambda: sm.Retrieve(Library(), 3, field="question", return_inputs=True), (INPUT,)),
    "Route": (
        lambda: sm.Route(sm.Identity(), {"web": sm.Identity(), "x": sm.Generator(Answer)}, key="source"),
        (INPUT,),
    ),
    "SelfCritique": (lambda: sm.SelfCritique(Answer), (INPUT,)),
    "Sequential": (lambda: sm.Sequential([sm.Generator(Answer), sm.Suffix("out")]), (INPUT,)),
    "Tool": (lambda: sm.Tool(look_up, name="search", timeout_s=60, approve=allow), (INPUT,)),
    "Suffix": (lambda: sm.Suffix("old", trainable=False, description="d"), (INPUT,)),
    "Xor": (sm.Xor, (INPUT, None)),
}

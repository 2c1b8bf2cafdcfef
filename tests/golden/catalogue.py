"""The programs behind the golden files: each is saved by every release, and loads for ever.

`python -m tests.golden.rewrite` writes the files of the present format and what the programs answer on the embedded
model. Until the first published release format 1 may grow; then its files are never touched again.
"""

import synmod as sm
from synmod.program import Sequential
from synmod.skip import Namespace, pop, skippable, stash

PACKAGE = "golden"


@sm.register(PACKAGE)
class Ticket(sm.DataModel):
    """What a customer writes."""

    text: str = sm.Field(description="the message of the customer")


@sm.register(PACKAGE)
class Verdict(sm.DataModel):
    """What is decided."""

    label: str = sm.Field(description="one word")
    urgent: bool = False


@sm.register(PACKAGE)
def shout(inputs):
    """A function that a config refers to."""
    return Ticket(text=inputs["text"].upper())


@sm.register(PACKAGE)
class Allowed(sm.DataModel):
    """Whether something may pass."""

    allowed: bool


@sm.register(PACKAGE)
class Pile(sm.DataModel):
    """Several tickets."""

    tickets: list[Ticket]


@sm.register(PACKAGE)
class Topic(sm.DataModel):
    """What a tool is asked for."""

    topic: str


@sm.register(PACKAGE)
def length(inputs, outputs):
    """A reward."""
    return len(outputs["label"])


@sm.register(PACKAGE)
def done(inputs):
    """When it is enough."""
    return inputs["text"].isupper()


@sm.register(PACKAGE)
def desk_of(topic: str, floor: int = 1) -> str:
    """Return the desk of a topic, such as an invoice.

    Args:
        topic: What it is about.
    """
    return f"desk {len(topic)} on floor {floor}"


@sm.register(PACKAGE)
def allow(name, arguments):
    """Whether a run may be."""
    return name == "desk_of"


@sm.register(PACKAGE)
class Triage(sm.Module):
    """A class of a user: children, Variables and state made in `build`."""

    def __init__(self, style="brief", *rest, **options):
        super().__init__()
        self.style = style
        self.decide = sm.Decision(["billing", "technical"], question="Which desk?", language_model="embedded/nearest")
        self.seen = self.add_variable(0, name="seen", type=sm.Stat)

    async def build(self, inputs):
        self.fields = list(inputs.keys())
        self.log = self.add_variable(initializer=[], name="log", type=sm.Memory, description="What came in.")

    async def call(self, inputs: Ticket):
        return await self.decide(inputs)


@sm.register(PACKAGE)
@skippable(stash={"doc": Ticket, "note": None})
class Stash(sm.Module):
    """Puts what comes into the lane."""

    async def call(self, inputs):
        stash("doc", inputs)
        stash("note", None)
        return inputs


@sm.register(PACKAGE)
@skippable(pop=["doc", "note"])
class Pop(sm.Module):
    """Takes it out again."""

    def __init__(self, namespace=None):
        super().__init__()
        if namespace is not None:
            self.isolate(namespace)

    async def call(self, inputs):
        pop("note")
        return inputs + pop("doc").prefix("popped")


def model(**defaults):
    """The embedded model: no key, no network, the same answer everywhere."""
    return sm.LanguageModel("embedded/nearest", **defaults)


def examples(*pairs):
    return [{"inputs": {"text": text}, "outputs": {"label": label, "urgent": urgent}} for text, label, urgent in pairs]


def verdict(**options):
    shown = examples(("my invoice is wrong", "billing", True), ("the app crashes", "technical", False))
    return sm.Generator(Verdict, language_model=model(), instructions="Sort the tickets.", examples=shown, **options)


async def functional():
    """A functional program: operators, masks, a shared module, an optional Input, nested outputs."""
    ticket, hint = sm.Input(Ticket, name="ticket"), sm.Input(Ticket, name="hint", optional=True)
    write = verdict(name="write")
    first = await write(ticket)
    second = await write((ticket | hint).prefix("my"))
    both = (first + second).out_mask(["urgent*"])
    shared = await sm.Lambda(shout, output=Ticket)(ticket)
    return sm.Program(
        inputs={"ticket": ticket, "hint": hint},
        outputs=[both, (shared, first ^ hint), sm.ops.factorize(first & second)],
        name="functional",
        description="Every kind of step.",
    )


async def built():
    module = Triage("long", 1, 2, odd={"k": None})
    await sm.build(module, Ticket)
    module.log.assign(["a"])
    module.trainable = False
    return module


def skips():
    """Pairs of one name in two Namespaces, one of them also a constructor argument, and in the default one."""
    one, two = Namespace("one"), Namespace()
    crossing = [Stash().isolate(one), Stash().isolate(two), Stash(), Pop(two), Pop().isolate(one), Pop()]
    return Sequential([Ticket, *crossing])


def shared_and_cyclic():
    """Shared nodes and Variables, a cycle, surgery, a model of two names, labels that were changed."""
    prompt = sm.Param("shared prompt", tag="prompt")
    one, other = Triage("a"), Triage("b")
    one.partner, other.partner = other, one
    one.prompt = other.prompt = prompt
    del other.seen
    other.name, other.description = "second", "The other one."
    one.models = [sm.LanguageModel("openai/gpt-4o-mini", temperature=0), sm.LanguageModel("openai/gpt-4o-mini")]
    one.judge = sm.LanguageModel("openai/house", name="judge", api_base="http://localhost:1/v1")
    return one


def odd_data():
    """Keys and characters that mean something elsewhere, and containers beyond JSON."""
    module = sm.Generator(Verdict, language_model=model())
    odd = {
        "": {"type": "synmod>Program", "class_name": "x", "lc": 1, "$ref": "#", "__proto__": {}, "node": 0},
        "a/b~c#d": "\u0000\u0085\u2028\u202eé日本\U0001f600",
        "numbers": [1, 1.0, -0.0, 10**40, 1e-300, True, None],
    }
    module.odd = odd
    module.held = (1, {2: "two", "2": {3, 1, 2}}, frozenset("ab"))
    module.state = sm.Memory(odd, schema={})
    module.all = [kind([1], name="n") for kind in (sm.Variable, sm.Param, sm.Stat, sm.OptState, sm.Intermediate)]
    module.schemas = [Ticket, Ticket(text="x"), {"k": (Verdict, shout, ValueError, sm.AuthError, sm.Score.P50)}]
    return module


def embedding_models():
    """One with settings of its own, and one that a load must be given."""
    module = sm.Identity()
    small = sm.EmbeddingModel("openai/text-embedding-3-small", dimensions=256, batch_size=8, limit=4, name="small")
    house = sm.EmbeddingModel("openai/house", api_base="http://localhost:1/v1", timeout_s=None)
    module.models = [sm.EmbeddingModel("embedded/hash"), small, house]
    return module


TICKET = Ticket(text="the invoice has a wrong sum")


def agent():
    """Every kind of tool: a function, a Tool with settings, a schema of its own, a module."""
    tools = [
        sm.Tool(desk_of, timeout_s=9, approve=allow),
        sm.Tool(shout, name="loud", description="d", parameters={"type": "object", "properties": {"text": {}}}),
        Triage(name="triage"),
    ]
    limits = {"max_steps": 3, "parallel_tools": False, "budget": {"calls": 4}, "on_tool_error": "report"}
    return sm.Agent(tools, Verdict, instructions="desk_of: invoice", language_model=model(), **limits)


def limited():
    """A model with a limit and fallbacks, one of which is held elsewhere too."""
    last = sm.LanguageModel("openai/gpt-4o", limit=sm.Limit(rpm=60, tpm=90_000))
    first = sm.LanguageModel("openai/gpt-4o-mini", limit=4, fallback=[last, model()])
    return {"draft": sm.Generator(Verdict, language_model=first), "judge": sm.Generator(Verdict, language_model=last)}


CATALOGUE = {
    "agent": (agent, [TICKET]),
    "and": (lambda: sm.And(), [TICKET, Verdict(label="x")]),
    "best_of": (lambda: sm.BestOf(verdict(), 3, reward=length, threshold=5, concurrency=2), [TICKET]),
    "branch": (
        lambda: sm.Branch({"a": ("invoice", verdict()), "b c": sm.Identity()}, language_model=model()),
        [TICKET],
    ),
    "cached": (lambda: sm.Cached(verdict(), sm.Cache(ttl_s=9), ttl_s=60, key=shout), [TICKET]),
    "chain_of_thought": (lambda: sm.ChainOfThought(Verdict, language_model=model()), [TICKET]),
    "choose": (lambda: sm.Choose(sm.Choice(["a", "b"]), {"a": verdict(), "b": sm.Identity()}), [TICKET]),
    "compact": (lambda: sm.Generator(compact=sm.Compact(0.5, 2, window=9_000), language_model=model()), None),
    "ask_model": (lambda: sm.ask_model(model()), None),
    "code": (lambda: sm.Code("def f(inputs): return {'label': inputs['text'][:1]}", Verdict, seconds=2), None),
    "code_act": (lambda: sm.CodeAct([], Verdict, max_calls=3, inputs_as="variables", language_model=model()), None),
    "concat": (lambda: sm.Concat(), [TICKET, Verdict(label="x")]),
    "constant": (lambda: sm.Constant(Allowed(allowed=True)), [TICKET]),
    "decision": (lambda: sm.Decision({"a": "first", "b c": "second"}, language_model=model()), [TICKET]),
    "embedding_models": (embedding_models, [TICKET]),
    "factorize": (lambda: sm.Factorize({"text": "texts"}), [TICKET + TICKET]),
    "fallback": (lambda: sm.Fallback(verdict(), sm.Identity(), on=(sm.AuthError, KeyError)), [TICKET]),
    "functional": (functional, [{"ticket": TICKET, "hint": None}]),
    "generator": (verdict, [TICKET]),
    "generator_unbound": (lambda: sm.Generator(schema=Verdict.get_schema(), temperature=0.5), None),
    "guard": (lambda: sm.Guard(sm.Generator(Allowed, language_model=model()), on_block="none"), [TICKET]),
    "identity": (lambda: sm.Identity(), [TICKET]),
    "in_mask": (lambda: sm.InMask(["label"]), [Verdict(label="x")]),
    "lambda": (lambda: sm.Lambda(shout, output=Ticket), [TICKET]),
    "limits_and_fallbacks": (limited, None),
    "majority": (lambda: sm.Majority(verdict(), 3, field="label"), [TICKET]),
    "map": (lambda: sm.Map(verdict(), "tickets", concurrency=2, on_error="collect"), [Pile(tickets=[TICKET, TICKET])]),
    "nearest": (lambda: sm.Nearest(verdict(), 2, field="text"), [TICKET]),
    "not": (lambda: sm.blocks.Not(), [TICKET]),
    "odd_data": (odd_data, [TICKET]),
    "or": (lambda: sm.Or(), [TICKET, None]),
    "out_mask": (lambda: sm.OutMask("urgent"), [Verdict(label="x")]),
    "parallel": (lambda: sm.Parallel(verdict(), sm.Identity(), merge="and"), [TICKET]),
    "prefix": (lambda: sm.Prefix("my"), [TICKET]),
    "refine": (lambda: sm.Refine(verdict(), sm.SelfCritique(language_model=model()), threshold=0.5), [TICKET]),
    "repeat": (lambda: sm.Repeat(sm.Lambda(shout, output=Ticket), until=done, max_times=3), [TICKET]),
    "retry": (lambda: sm.Retry(verdict(), 3, on=(sm.BadReplyError,)), [TICKET]),
    "retrieve": (lambda: sm.Retrieve(sm.KeywordIndex(name="docs"), 3, field="text", return_inputs=True), None),
    "roots": (lambda: {"draft": verdict(), "verify": [sm.Identity(), Triage()]}, None),
    "route": (
        lambda: sm.Route(verdict(), {"billing": sm.Identity(), "x": verdict()}, key="label", default="x"),
        [TICKET],
    ),
    "self_critique": (lambda: sm.SelfCritique(Verdict, language_model=model()), [TICKET]),
    "sequential": (lambda: Sequential([Ticket, verdict(), sm.OutMask("urgent"), shout_member]), None),
    "shared_and_cyclic": (shared_and_cyclic, None),
    "skips": (skips, [TICKET]),
    "suffix": (lambda: sm.Suffix("s"), [TICKET]),
    "tool": (lambda: sm.Tool(desk_of, name="desk", description="d"), [Topic(topic="invoice")]),
    "user_built": (built, [TICKET]),
    "user_unbuilt": (Triage, [TICKET]),
    "xor": (lambda: sm.Xor(), [TICKET, None]),
}
"""Name -> what makes the program, and the inputs that its recorded outputs belong to (None: it is not run)."""


@sm.register(PACKAGE)
def shout_member(inputs) -> Ticket:
    """A plain member of a Sequential."""
    return Ticket(text=inputs["label"].upper())


def plain(nest):
    """Outputs as JSON: data by its JSON, tuples as lists."""
    if isinstance(nest, list | tuple):
        return [plain(each) for each in nest]
    if isinstance(nest, dict):
        return {key: plain(each) for key, each in nest.items()}
    return None if nest is None else nest.get_json()

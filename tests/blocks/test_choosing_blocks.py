"""Branch, Route, Guard: which module gets the inputs, and whether any does."""

import asyncio
from types import MappingProxyType

import pytest

import synmod as sm
from synmod.testing import ScriptedLM


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


class Refund(sm.DataModel):
    amount: int


ASKED = Query(question="Who?")


def saying(text):
    """A module that answers with a text."""
    return sm.Lambda(lambda _: Answer(answer=text), output=Answer)


def deciding(*choices, multiple=False):
    """A language model that chooses in turn."""
    field = "choices" if multiple else "choice"
    return ScriptedLM([{field: choice} for choice in choices])


async def test_the_chosen_branch_gets_the_inputs():
    """Without a merge: one entry per branch, in order; None where it was not taken."""
    lm = deciding("b", "a")
    branches = {"a": saying("A"), "b": ("second", sm.Identity())}
    branch = sm.Branch(branches, question="Which?", merge=False, language_model=lm)
    one, two = await branch(ASKED)
    assert one is None
    assert two == ASKED
    one, two = await branch(ASKED)
    assert one["answer"] == "A"
    assert two is None
    assert lm.requests[0].schema["properties"]["choice"]["enum"] == ["a", "b"]
    assert "b: second" in lm.requests[0].messages[0].content
    assert "Which?" in lm.requests[0].messages[0].content


async def test_branches_and_labels_may_be_any_mapping():
    """What is a mapping by its methods is one."""
    branches = MappingProxyType({"a": ("first", saying("A")), "b": saying("B")})
    assert (await sm.Branch(branches, language_model=deciding("a"))(ASKED))["answer"] == "A"
    assert "first" in sm.Decision(MappingProxyType({"a": "first"})).instructions.value


async def test_a_branch_not_taken_is_not_called():
    """No call, no token."""
    called = []
    left, right = (sm.Lambda(lambda x, side=side: called.append(side) or x, output=Query) for side in "lr")
    await sm.Branch({"l": left, "r": right}, language_model=deciding("l"))(ASKED)
    assert called == ["l"]


async def test_the_decision_can_be_injected_and_returned():
    """`inject` merges it behind the inputs; `return_decision` puts it first."""
    branch = sm.Branch({"a": sm.Identity()}, inject=True, return_decision=True, language_model=deciding("a"))
    decision, given = await branch(ASKED)
    assert decision["choice"] == "a"
    assert given.get_json() == {"question": "Who?", "choice": "a"}
    symbols = await branch(Query.to_symbolic_data_model())
    assert [symbol.keys() for symbol in symbols] == [("choice",), ("question", "choice")]


async def test_merge_gives_the_one_that_was_taken():
    """Its schema is `U` of the branches; with `multiple` the outputs are merged."""
    branches = {"a": saying("A"), "r": sm.Lambda(lambda _: Refund(amount=3), output=Refund)}
    branch = sm.Branch(branches, language_model=deciding("r"))
    assert (await branch(ASKED)).get_json() == {"amount": 3}
    symbol = await branch(Query.to_symbolic_data_model())
    assert symbol.keys() == ("answer", "amount")
    assert "required" not in symbol.get_schema() or not symbol.get_schema()["required"]
    both = sm.Branch(branches, multiple=True, language_model=deciding(["r", "a"], ["a"], multiple=True))
    assert (await both(ASKED)).get_json() == {"answer": "A", "amount": 3}
    assert (await both(ASKED)).get_json() == {"answer": "A"}


async def test_several_branches_run_at_once():
    """Each waits for the other."""
    here, there = asyncio.Event(), asyncio.Event()

    async def left(x):
        here.set()
        await there.wait()
        return x

    async def right(x):
        there.set()
        await here.wait()
        return x

    lm = deciding(["l", "r"], multiple=True)
    branches = {"l": sm.Lambda(left), "r": sm.Lambda(right)}
    outputs = await sm.Branch(branches, multiple=True, merge=False, language_model=lm)(ASKED)
    assert outputs == (ASKED, ASKED)


async def test_a_module_of_ones_own_decides():
    """Route takes any module that returns `choice`; one that names no route is a CallError with the routes."""

    class Choice(sm.DataModel):
        choice: str

    chosen = sm.Lambda(lambda query: Choice(choice=query.question), output=Choice)
    route = sm.Route(chosen, {"Who?": sm.Identity(), "Why?": saying("B")}, inject=True)
    assert (await route(ASKED)).get_json() == {"question": "Who?", "choice": "Who?"}
    assert (await route(Query.to_symbolic_data_model())).keys() == ("question", "choice", "answer")
    with pytest.raises(sm.CallError, match=r"the routes are Who\?, Why\?"):
        await route(Query(question="How?"))
    nobody = sm.Route(sm.Lambda(lambda _: None, output=Choice | None), {"a": saying("A")}, merge=False)
    assert await nobody(ASKED) == (None,)


async def test_unmerged_branches_go_on_with_xor():
    """In a functional program the next step takes whichever is there."""
    lm = deciding("b", "a")
    inputs = sm.Input(Query)
    one, two = await sm.Branch({"a": saying("A"), "b": saying("B")}, merge=False, language_model=lm)(inputs)
    program = sm.Program(inputs=inputs, outputs=one ^ two)
    assert (await program(ASKED))["answer"] == "B"
    assert (await program(ASKED))["answer"] == "A"


async def test_route_selects_by_a_field():
    """The value's field names the route; an unknown value takes the default, or is an error that lists the routes."""
    routes = {"Who?": saying("A"), "Why?": saying("B")}
    route = sm.Route(sm.Identity(), routes, key="question", merge=False)
    one, two = await route(ASKED)
    assert one["answer"] == "A"
    assert two is None
    with pytest.raises(sm.CallError, match=r"the routes are Who\?, Why\?"):
        await route(Query(question="How?"))
    kept = sm.Route(sm.Identity(), routes, key="question", default="Why?")
    assert (await kept(Query(question="How?")))["answer"] == "B"


class Claim(sm.DataModel):
    """What somebody sends who knows the fields that blocks go by."""

    allowed: bool = True
    choice: str = "b"


async def test_inputs_do_not_speak_for_a_check():
    """A check that hands on its inputs is asked for its own verdict, and a decision for its own choice."""
    verdict = {"title": "Verdict", "type": "object", "properties": {"allowed": {"type": "boolean"}}}
    refusing = sm.Generator(schema=verdict, return_inputs=True, language_model=ScriptedLM([{"allowed": False}, {}]))
    assert await sm.Guard(refusing)(Claim()) is None
    with pytest.raises(sm.CallError, match="allowed"):
        await sm.Guard(refusing)(Claim())
    branch = sm.Branch({"a": saying("A"), "b": saying("B")}, return_inputs=True, language_model=deciding("a"))
    assert (await branch(Claim()))["answer"] == "A"


async def test_wiring_is_checked_before_anything_runs():
    """A value that can have no such field is found when made, if its module declares it, else when composed."""
    asked = Query.to_symbolic_data_model()
    with pytest.raises(sm.SchemaError, match="Did you mean 'question'"):
        await sm.Route(sm.Identity(), {"a": saying("A")}, key="questoin", default="a")(asked)
    with pytest.raises(sm.SchemaError, match="Route: the value of its module has no field 'choice'; it has answer"):
        sm.Route(saying("A"), {"a": saying("A")})
    with pytest.raises(sm.SchemaError, match="Route: the value of its module has no field 'choice'; it has question"):
        await sm.Route(sm.Identity(), {"a": saying("A")})(ASKED)
    anything = sm.Constant(sm.JsonDataModel({"kind": "a"}, schema={"type": "object"}))
    assert await sm.Route(anything, {"a": saying("A")}, key="kind")(asked) is not None


async def test_guard_lets_pass_or_blocks():
    """Blocked inputs are None, or an error with the reason; nothing passes unchecked."""

    class Verdict(sm.DataModel):
        allowed: bool
        reason: str

    check = sm.Lambda(lambda q: Verdict(allowed=q.question != "Who?", reason="names nobody"), output=Verdict)
    assert await sm.Guard(check)(Query(question="Why?")) == Query(question="Why?")
    assert await sm.Guard(check)(ASKED) is None
    with pytest.raises(sm.GuardError, match="names nobody"):
        await sm.Guard(check, on_block="error")(ASKED)
    silent = sm.Lambda(lambda q: None, output=Verdict | None)
    with pytest.raises(sm.CallError, match="allowed"):
        await sm.Guard(silent)(ASKED)
    with pytest.raises(sm.SchemaError, match="'allowed'"):
        await sm.Guard(sm.Identity())(Query.to_symbolic_data_model())
    symbol = await sm.Guard(check)(Query.to_symbolic_data_model())
    assert symbol.keys() == ("question",)


@pytest.mark.parametrize("block", [sm.Guard, lambda both: sm.Route(both, {"a": sm.Identity()})], ids=["Guard", "Route"])
async def test_several_data_models_select_nothing(block):
    """A check, or a module that selects, returns one data model; a tuple of them is a CallError with the field."""
    with pytest.raises(sm.CallError, match="a tuple of data models"):
        await block(sm.Parallel(sm.Identity(), sm.Identity()))(ASKED)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sm.Branch({}), "write a non-empty mapping"),
        (lambda: sm.Branch([sm.Identity()]), "write a non-empty mapping"),
        (lambda: sm.Branch({1: sm.Identity()}), "the label 1"),
        (lambda: sm.Branch({"a": len}), "branches\\['a'\\] is a builtin"),
        (lambda: sm.Branch({"a": sm.Identity()}, questoin="?"), "Did you mean 'question'"),
        (lambda: sm.Branch({"a": sm.Identity()}, decision=sm.Identity()), "unknown keyword 'decision'"),
        (lambda: sm.Branch({"a": sm.Identity()}, injct=True), "Did you mean 'inject'"),
        (lambda: sm.Route(sm.Identity(), {"a": sm.Identity()}, default="A"), "Did you mean 'a'"),
        (lambda: sm.Route(sm.Identity(), {"a": sm.Identity()}, default=["a"]), "default must be 'a', got \\['a'\\]"),
        (lambda: sm.Route(sm.Identity(), {"a": sm.Identity()}, key=3), "key is 3"),
        (lambda: sm.Guard(sm.Identity(), on_block="eror"), "Did you mean 'error'"),
    ],
)
def test_arguments_are_checked_when_the_block_is_made(make, says):
    """What cannot run is refused at construction, by name."""
    with pytest.raises(sm.ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("question", "line"),
    [
        (None, "- choice: the label that fits: a (first)"),
        ("Which desk?", "- choice: Which desk? a (first)"),
        ("Choose a desk.", "- choice: Choose a desk. a (first)"),
        ("The desk", "- choice: The desk: a (first)"),
    ],
)
def test_the_prompt_of_a_decision_reads_as_sentences(question, line):
    """Meanings follow the question, whatever mark it ends with."""
    decision = sm.Decision({"a": "first", "b": ""}, question=question)
    shown = decision.render(sm.JsonDataModel({"text": "?"}, schema={"type": "object"}))
    assert line in shown[0].content.splitlines()


def test_one_is_singular_in_a_prompt():
    """Of several labels there is at least one."""
    decision = sm.Decision(["a", "b"], multiple=True)
    text = decision.render(sm.JsonDataModel({"text": "?"}, schema={"type": "object"}))[0].content
    assert "at least 1 item)" in text

"""Traces: the tree of the calls of a block."""

import asyncio
import json
from types import SimpleNamespace

import pytest

import synmod as sm
from synmod.errors import ArgumentError
from synmod.leaves.aio import task_group
from synmod.scope import (
    LMBegin,
    LMEnd,
    Tracer,
    Usage,
    ambient,
    current_call,
    hooks_inside,
    notify,
    open_meters,
    phase,
    place_of,
    trace,
)
from tests.scope.part import Part


async def ask(model, error=None):
    """One model call, as the room of models would tell it."""
    frame, request = current_call(), SimpleNamespace(model=model)
    listeners = hooks_inside(ambient(), frame)
    usage = Usage(calls=1, requests=2, prompt_tokens=10, completion_tokens=5, cost_usd=0.25)
    place = place_of(frame, "inference")
    notify(listeners, LMBegin(*place, request, request.model))
    await asyncio.sleep(0)
    for meter in open_meters(frame):
        meter.add(usage, "inference")
    notify(listeners, LMEnd(*place, request, request.model, None, error, 2, usage, 0.5))


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


class Leaf(sm.Module):
    """Asks a model, which refuses what is bad."""

    async def call(self, inputs: Query) -> Answer:
        await ask("a/b", ValueError("refused") if inputs.question == "bad" else None)
        return Answer(answer=inputs.question)


class Top(sm.Module):
    """Two leaves that ask a model, one after the other, and a reward."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Leaf(name="first"), Leaf(name="second")

    async def call(self, inputs: Query) -> Answer:
        await self.first(inputs)
        await self.second(Query(question="bad"))
        self.add_reward(0.5)
        return Answer(answer="42")


async def test_a_trace_is_the_tree_of_the_calls():
    """Children by their start, with values, usage, rewards and model calls."""
    with trace() as t, phase("reward"):
        await Top()(Query(question="question"))
    (root,) = t.roots
    assert (root.name, root.path, root.phase, root.parent_id) == ("top", "", "reward", None)
    assert [child.name for child in root.children] == ["first", "second"]
    assert all(child.parent_id == root.call_id for child in root.children)
    assert root.inputs[0]["question"] == "question"
    assert root.children[0].outputs.get_json() == {"answer": "question"}
    assert root.elapsed_s >= root.children[0].elapsed_s >= 0
    assert root.start <= root.children[0].start <= root.children[1].start
    assert root.usage.calls == 2
    assert root.children[0].usage == Usage(1, 2, 10, 5, 0, 0, 0.25)
    assert root.rewards == (("", None, 0.5),)
    assert root.error is None
    (call,) = root.children[1].lm_calls
    assert (call.model, call.tokens, call.cost_usd, call.attempts, call.cached, call.elapsed_s) == (
        "a/b", 15, 0.25, 2, False, 0.5,
    )  # fmt: skip
    assert call.error == "ValueError: refused"
    assert t.dropped == 0


async def test_a_trace_is_json_and_text():
    """`version` stands at the top; the text has a line a call."""
    with trace() as t:
        await Top()(Query(question="question"))
        await ask("free/model")
    written = t.to_json()
    assert next(iter(written)) == "version"
    assert written == json.loads(json.dumps(written))
    (root,) = written["calls"]
    assert root["outputs"] == {"answer": "42"}
    assert root["rewards"] == [["", None, 0.5]]
    assert root["children"][1]["lm_calls"][0]["error"] == "ValueError: refused"
    assert written["lm_calls"][0]["model"] == "free/model"
    lines = str(t).splitlines()
    assert [line.strip("└├│─ ").split("  ")[0] for line in lines] == [
        "top", "first", "a/b", "second", "a/b", "free/model",
    ]  # fmt: skip
    assert "30 tokens" in lines[0]
    assert "1 entry" in repr(t)


async def test_a_failed_call_has_its_error_as_text():
    """Kept as text, since an exception would keep its frames alive."""

    async def fails(_):
        raise ValueError("no\nand no more")

    with trace() as t, pytest.raises(ValueError):
        await Part("p", fails)()
    assert t.roots[0].error == "ValueError: no\nand no more"
    assert str(t).endswith("ValueError: no and no more")


async def test_without_values_none_are_kept():
    """A trace of a service need not hold what its users said."""
    with trace(values=False) as t:
        await Top()(Query(question="secret"))
    assert "secret" not in json.dumps(t.to_json())
    assert t.roots[0].inputs is None
    assert t.roots[0].outputs is None


async def test_a_sample_keeps_whole_entry_calls():
    """Chosen by the id of the run, so that a kept call has all its children."""
    top = Top()
    with trace(sample=0.3) as t:
        await asyncio.gather(*(top(Query(question=str(n))) for n in range(400)))
    assert 60 < len(t.roots) < 180
    assert all(len(root.children) == 2 for root in t.roots)
    assert all(root.usage.calls == 2 for root in t.roots)
    with trace(sample=0) as none, trace(sample=1) as all_of_them:
        await top(Query(question="1"))
    assert (len(none.roots), len(all_of_them.roots)) == (0, 1)
    assert none.dropped == 0


async def test_beyond_the_bound_whole_oldest_entry_calls_go():
    """They are counted, and what is left is whole."""
    top = Top()
    with trace(max_calls=10) as t:
        for n in range(20):
            await top(Query(question=str(n)))
    assert t.dropped == 17
    assert str(t).startswith("(17 older dropped)\ntop  ")
    assert [root.inputs[0]["question"] for root in t.roots] == ["17", "18", "19"]
    assert all(len(root.children) == 2 for root in t.roots)


async def test_an_entry_call_that_goes_while_it_runs_is_gone():
    """Its later children do not become roots."""

    async def many(_):
        for _ in range(20):
            await Part("leaf")()

    with trace(max_calls=10) as t:
        await Part("big", many)()
        assert (t.roots, t.dropped) == ([], 1)
        await Part("small")()
    assert [root.name for root in t.roots] == ["small"]


async def test_an_entry_call_that_goes_while_it_runs_holds_no_call_that_ended():
    """However long it runs on, what it called is freed."""
    nodes = []

    async def many(_):
        for _ in range(20):
            await Part("leaf")()
            nodes.extend(t.roots)

    with trace(max_calls=10) as t:
        await Part("big", many)()
    assert nodes and nodes[0].name == "big" and nodes[0].children == []


async def test_a_call_that_began_before_the_trace_is_not_in_it():
    """What it calls inside the block are roots of the trace."""

    async def body(_):
        with trace() as t:
            await Part("leaf")()
        return t

    t = await Part("top", body)()
    assert [root.name for root in t.roots] == ["leaf"]
    assert t.roots[0].parent_id is not None


def test_concurrent_calls_have_their_own_trees(any_loop):
    """A thousand entry calls at once, each with its own children."""

    async def body(n):
        async with task_group() as group:
            for child in range(3):
                group.start_soon(Part(f"c{n}", None), child)

    async def main():
        with trace() as t:
            async with task_group() as group:
                for n in range(300):
                    group.start_soon(Part(f"p{n}", body), n)
        return t

    t = any_loop(main)
    assert len(t.roots) == 300
    for root in t.roots:
        assert {child.name for child in root.children} == {root.name.replace("p", "c")}
        assert len(root.children) == 3


async def test_a_deep_trace_is_written():
    """As deep as calls can be nested."""
    depth = 150

    async def body(n):
        if n:
            await Part(f"p{n}", body)(n - 1)

    with trace() as t:
        await Part("top", body)(depth)
    assert len(str(t).splitlines()) == depth + 1
    node, levels = t.to_json()["calls"][0], 1
    while node["children"]:
        (node,), levels = node["children"], levels + 1
    assert levels == depth + 1


@pytest.mark.parametrize(
    "arguments", [{"sample": -0.1}, {"sample": 1.5}, {"sample": "all"}, {"max_calls": 0}, {"max_calls": 1.5}]
)
def test_what_is_no_bound_is_refused(arguments):
    """Told where it is written."""
    with pytest.raises(ArgumentError):
        trace(**arguments)


async def test_a_module_keeps_its_last_recorded_entry_call():
    """To be shown with it; a call below another is not kept, nor one that nobody records, nor one that still runs."""
    inner = sm.Identity()

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        async def call(self, inputs):
            seen.append(self._record.recorded)
            return await self.inner(inputs)

    outer, seen = Outer(), []
    x = sm.JsonDataModel({"a": 1}, schema={"type": "object"})
    await outer(x)
    assert outer._record.recorded is None
    with trace() as t:
        await outer(x)
        await outer(x)
    assert outer._record.recorded is t.roots[-1]
    assert inner._record.recorded is None
    assert seen == [None, None, t.roots[0]]
    await outer(x)
    assert outer._record.recorded is t.roots[-1]


async def test_a_tracer_without_our_constructor_breaks_no_call():
    """What a hook lacks is its own affair."""

    class Bare(Tracer):
        def __init__(self):
            pass

    with sm.hooks(Bare()):
        assert (await sm.Identity()(sm.JsonDataModel({"a": 1}, schema={"type": "object"})))["a"] == 1

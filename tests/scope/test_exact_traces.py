"""A trace of a thousand concurrent runs: who called whom, in what order, and what it all cost."""

import asyncio
import json
import math
import random
import threading
from contextvars import copy_context

import pytest

import synmod as sm
from synmod.lm import LMReply
from synmod.scope import Usage


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


class Priced:
    """Answers after some turns of the loop, with tokens and a cost that no binary fraction holds."""

    name, version = "priced", 1

    def __init__(self):
        self.draw = random.Random(7)

    async def send(self, request):
        prompt, completion = self.draw.randrange(1, 999), self.draw.randrange(1, 999)
        for _ in range(self.draw.randrange(4)):
            await asyncio.sleep(0)
        cost = prompt * 1.1e-7 + completion * 3.3e-6
        usage = Usage(1, 1, prompt, completion, cost_usd=cost)
        return LMReply('{"answer": "so"}', usage=usage)


class Both(sm.Module):
    """Two branches at once, one of which asks twice."""

    def __init__(self, lm):
        super().__init__()
        self.left = sm.Generator(Answer, language_model=lm)
        self.right = sm.Sequential([sm.Generator(Answer, language_model=lm), sm.Generator(Answer, language_model=lm)])

    async def call(self, inputs: Query) -> Answer:
        async with asyncio.TaskGroup() as group:
            left = group.create_task(self.left(inputs))
            group.create_task(self.right(inputs))
        return left.result()


async def traced(count, **arguments):
    """A trace of many runs at once, and the model that they asked."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())
    program = Both(lm)
    await sm.build(program, sm.Input(data_model=Query))
    queries = [sm.JsonDataModel(Query(question=f"What is {number}?")) for number in range(count)]
    with sm.trace(**arguments) as t:
        await asyncio.gather(*map(program, queries))
    return t, lm


def below(nodes):
    """Every node, each before those it called."""
    for node in nodes:
        yield node
        yield from below(node.children)


@pytest.mark.slow
async def test_a_thousand_concurrent_runs_are_traced_exactly():
    """Parents, order by start, tokens and cost, whatever ended first."""
    t, lm = await traced(1_000)
    assert [root.inputs[0]["question"] for root in t.roots] == [f"What is {number}?" for number in range(1_000)]
    asked = []
    for root in t.roots:
        assert (root.path, root.parent, root.parent_id) == ("", None, None)
        assert [child.path for child in root.children] == ["left", "right"]
        assert [child.path for child in root.children[1].children] == ["right/layers/0", "right/layers/1"] or [
            len(child.lm_calls) for child in root.children[1].children
        ] == [1, 1]
        for node in below([root]):
            assert all(child.parent is node and child.parent_id == node.call_id for child in node.children)
            starts = [child.start for child in node.children]
            assert starts == sorted(starts)
            assert all(node.start <= start for start in starts)
            asked += node.lm_calls
    starts = [root.start for root in t.roots]
    assert starts == sorted(starts)
    assert len(asked) == lm.cumulated_calls == t.usage.calls == 3_000
    assert sum(call.usage.prompt_tokens for call in asked) == lm.cumulated_prompt_tokens == t.usage.prompt_tokens
    assert sum(call.usage.completion_tokens for call in asked) == lm.cumulated_completion_tokens
    costs = [call.cost_usd for call in asked]
    assert t.usage.cost_usd == pytest.approx(math.fsum(costs)) == pytest.approx(lm.cumulated_cost_usd)
    assert all(root.usage == sum((child.usage for child in root.children), Usage()) for root in t.roots)


async def test_the_json_adds_up_too():
    """Whoever reads it alone finds the same figures, and every id once."""
    t, lm = await traced(50)
    written = json.loads(json.dumps(t.to_json()))
    waiting, ids, tokens, costs = [(call, None) for call in written["calls"]], [], 0, []
    while waiting:
        call, parent_id = waiting.pop()
        assert call["parent_id"] == parent_id
        ids.append(call["call_id"])
        tokens += sum(each["tokens"] for each in call["lm_calls"])
        costs += [each["cost_usd"] for each in call["lm_calls"]]
        waiting += [(child, call["call_id"]) for child in call["children"]]
    assert len(ids) == len(set(ids)) == 250
    assert tokens == lm.cumulated_prompt_tokens + lm.cumulated_completion_tokens
    assert written["usage"]["cost_usd"] == pytest.approx(math.fsum(costs))


async def test_a_model_call_has_what_was_asked_and_answered():
    """Turns, schema, text: with values; without, the figures alone."""
    t, _ = await traced(1)
    (call,) = t.to_json()["calls"][0]["children"][0]["lm_calls"]
    assert [turn["role"] for turn in call["request"]["messages"]] == ["system", "user"]
    assert call["request"]["schema"]["properties"]["answer"]["type"] == "string"
    assert call["reply"]["text"] == '{"answer": "so"}'
    assert (call["model"], call["attempts"], call["cached"], call["phase"]) == ("priced/one", 1, False, "inference")
    assert call["elapsed_s"] >= 0 and call["start"] > 1_600_000_000
    t, _ = await traced(1, values=False)
    (call,) = t.to_json()["calls"][0]["children"][0]["lm_calls"]
    assert call["request"] is call["reply"] is None
    assert call["tokens"] > 0


async def test_the_first_call_of_an_unbuilt_program_is_one_tree():
    """What runs on symbols while it builds is no call."""
    program = Both(sm.LanguageModel("priced/one", adapter=Priced()))
    with sm.trace() as t:
        await program(Query(question="Why?"))
    assert len(list(below(t.roots))) == 5


async def test_headers_and_keys_do_not_star_out_what_a_trace_holds():
    """A trace has what the program sent and got; header values are no secrets, and a key is in no event."""
    headers = {"X-Title": "Question Answering", "X-Role": "assistant"}
    lm = sm.LanguageModel("own/model", adapter=Priced(), headers=headers, api_key="sk-0123456789")
    with sm.trace() as t:
        await sm.Generator(Answer, language_model=lm)(Query(question="What is Answering, assistant?"))
    text = json.dumps(t.to_json())
    assert "What is Answering, assistant?" in text
    assert "***" not in text
    assert "sk-0123456789" not in text


async def test_a_tracer_of_one_module_has_what_is_below_it():
    """As a module's own hook it is told of the model calls below, to any depth, and shows them."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())
    program = Both(lm)
    tracer = sm.hooks_lib.Tracer()
    program.add_hook(tracer)
    await program(Query(question="Why?"))
    (root,) = tracer.roots
    assert (len(root.lm_calls), root.children) == (3, [])
    assert root.usage.calls == 3
    assert tracer.lm_calls == []


async def test_the_trace_is_bounded_also_outside_of_calls():
    """Model calls that no module makes are dropped like entry calls."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())
    with sm.trace(max_calls=3) as t:
        for _ in range(5):
            await lm("Why?")
    assert (len(t.lm_calls), t.dropped) == (3, 2)


async def test_what_runs_below_a_dropped_call_is_dropped_and_nothing_else():
    """A trace opened inside a call, whose first branch outgrows it, goes on to show the others."""

    class Many(sm.Module):
        def __init__(self):
            super().__init__()
            self.leaf = sm.Identity()

        async def call(self, inputs: Query) -> Query:
            for _ in range(20):
                await self.leaf(inputs)
            return inputs

    found = []

    class Outer(sm.Module):
        async def call(self, inputs: Query) -> Query:
            many, small = Many(), sm.Identity(name="small")
            with sm.trace(max_calls=10) as t:
                await many(inputs)
                await small(inputs)
            found.append(t)
            return inputs

    await Outer()(Query(question="Why?"))
    assert [root.name for root in found[0].roots] == ["small"]
    assert found[0].dropped == 1


async def test_numbers_that_json_has_not_are_text():
    """So that every reader takes the trace."""
    with sm.trace() as t:
        await Limited()(Query(question="Why?"), limit=math.inf)
    text = json.dumps(t.to_json(), allow_nan=False)
    assert '"limit": "inf"' in text


class Limited(sm.Module):
    """Takes a number by keyword."""

    async def call(self, inputs: Query, *, limit) -> Query:
        return inputs


async def test_a_trace_beside_other_hooks_is_the_trace_alone():
    """Beside another hook, and in a class of one's own: one result."""

    class Own(sm.hooks_lib.Tracer):
        pass

    program = Both(sm.LanguageModel("priced/one", adapter=Priced()))
    await sm.build(program, sm.Input(data_model=Query))
    with sm.trace() as outer:
        with sm.hooks(sm.Hook(), own := Own()), sm.trace() as beside:
            await program(Query(question="Why?"))
        with sm.trace() as alone:
            await program(Query(question="Why?"))
    for t in (own, beside):
        assert told(t) == told(alone)
        assert [node.call_id for node in below(t.roots)] == [node.call_id for node in below(outer.roots[:1])]
    assert program._record.recorded in (outer.roots[1], alone.roots[0])


def told(t):
    """What the calls of a trace tell, but for ids, times and figures, which no two runs share."""
    waiting, found = t.to_json()["calls"], []
    for call in waiting:  # grows while it is walked
        waiting += call["children"]
        found.append([call[key] for key in ("path", "name", "phase", "inputs", "kwargs", "outputs", "error")])
        found += [(each["model"], each["request"], each["reply"]["text"]) for each in call["lm_calls"]]
    assert len(found) == 8
    return found


async def test_a_trace_opened_inside_a_call_has_its_model_calls():
    """The call itself is not in it, so they stand beside the calls; the sums are those of the model."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())
    found = []

    class Asks(sm.Module):
        async def call(self, inputs: Query) -> Query:
            with sm.trace() as t, sm.trace(sample=0.0) as none:
                await lm("Why?")
                await sm.Generator(Answer, language_model=lm)(inputs)
            found.extend([t, none])
            return inputs

    await Asks()(Query(question="Why?"))
    t, none = found
    assert (len(t.lm_calls), len(t.roots)) == (1, 1)
    assert t.usage.cost_usd == pytest.approx(lm.cumulated_cost_usd)
    assert (none.lm_calls, none.roots, none.usage.calls) == ([], [], 0)


async def test_a_model_call_that_outlives_its_call_still_counts():
    """A task that goes on after its module has returned: the sums are those of the model, not of the moment."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())
    later = []

    class Leaves(sm.Module):
        async def call(self, inputs: Query) -> Query:
            later.append(asyncio.ensure_future(lm("Why?")))
            await asyncio.sleep(0)
            return inputs

    with sm.trace() as t:
        for _ in range(5):
            await Leaves()(Query(question="Why?"))
        await asyncio.gather(*later)
    assert [len(root.lm_calls) for root in t.roots] == [1] * 5
    assert t.usage.calls == lm.cumulated_calls == 5
    assert t.usage.cost_usd == pytest.approx(lm.cumulated_cost_usd)


async def test_a_model_call_has_the_phase_that_it_is_counted_in():
    """A block inside a call sets another phase than that of the call."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())
    rows = []

    class Judges(sm.Module):
        async def call(self, inputs: Query) -> Query:
            with sm.phase("reward"):
                await lm("Good?")
            return inputs

    with sm.trace() as t:
        await Judges()(Query(question="Why?"))
    with sm.hooks(sm.hooks_lib.Recorder(rows)):
        await Judges()(Query(question="Why?"))
    assert t.roots[0].phase == "inference"
    assert t.roots[0].lm_calls[0].phase == "reward"
    assert [row["phase"] for row in rows] == ["inference", "reward", "reward", "inference"]
    assert lm.counters["reward"].calls == 2


async def test_model_calls_of_one_call_are_bounded_too():
    """A call that asks without end does not fill the memory: ten model calls a call are kept, on the average."""
    lm = sm.LanguageModel("priced/one", adapter=Priced())

    class Asks(sm.Module):
        async def call(self, inputs: Query, *, times) -> Query:
            for _ in range(times):
                await lm("Why?")
            return inputs

    asks = Asks()
    with sm.trace(max_calls=2) as t:
        await asks(Query(question="few"), times=20)
        assert (len(t.roots), t.dropped) == (1, 0)
        await asks(Query(question="many"), times=25)
        assert (t.roots, t.dropped) == ([], 2)
        await asks(Query(question="few"), times=1)
    assert [len(root.lm_calls) for root in t.roots] == [1]


async def test_an_error_whose_text_fails_is_told_by_its_class():
    """A trace is never left with a call that seems to run."""

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    class Fails(sm.Module):
        async def call(self, inputs: Query) -> Query:
            raise Mute

    with sm.trace() as t, pytest.raises(Mute):
        await Fails()(Query(question="Why?"))
    assert (t.roots[0].error, t.roots[0].elapsed_s is None) == ("Mute", False)


def test_a_trace_is_read_while_other_threads_write_it():
    """No call waits for a reader, and what is read is whole."""

    class Repeats:
        name, version = "repeats", 1

        async def send(self, request):
            return LMReply('{"answer": "so"}', usage=Usage(1, 1, 1, 1))

    async def work():
        lm = sm.LanguageModel("own/model", adapter=Repeats())
        program = Both(lm)
        for _ in range(20):
            await program(Query(question="Why?"))

    with sm.trace(max_calls=200) as t:
        threads = [threading.Thread(target=copy_context().run, args=(asyncio.run, work())) for _ in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert json.dumps(t.to_json()) and str(t) is not None
            assert t.usage.calls >= 0
    assert len(t.roots) == 40
    assert t.usage.calls == 120

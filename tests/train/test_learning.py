"""backward, routing and update: who is told what, and that a failed step changes nothing."""

import asyncio
import random

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm

from .test_trainer import Answer, Echo, Query, Upper, asking, ready


class Worker(sm.Module):
    """Answers with its mark and the question, after a while that the question gives."""

    def __init__(self, mark, delays=None):
        super().__init__()
        self.mark = self.add_variable(mark, schema={"type": "string"}, name="mark")
        self.delays = delays

    async def call(self, inputs: Query) -> Answer:
        await asyncio.sleep(self.delays(inputs.question) if self.delays else 0)
        if inputs.question.startswith("fail"):
            raise ValueError(inputs.question)
        return Answer(answer=f"{self.mark.value}({inputs.question})")


class Program(sm.Module):
    """Two workers of one schema, and one that is called three times in a loop; the second is skipped where asked."""

    def __init__(self, delays=None):
        super().__init__()
        self.first, self.second, self.looped = (Worker(mark, delays) for mark in ("f", "s", "l"))

    async def call(self, inputs: Query) -> Answer:
        answer = await self.first(inputs)
        if "skip" not in inputs.question:
            answer = await self.second(Query(question=inputs.question))
        for number in range(3):
            answer = await self.looped(Query(question=f"{inputs.question}/{number}"))
        return answer


def by_question(target, inputs):
    """A reward whose critique names the row."""
    return sm.Feedback(0.5, critique=f"about {inputs['question']}", target=target)


def items(trainer, path):
    """What a param was told: row, question, critique."""
    return [(i.row, i.path, i.inputs["question"], i.outputs, i.feedback.critique) for i in trainer.feedback[path]]


async def routed(questions, program, **keywords):
    """A trainer after forward and backward."""
    trainer = sm.Trainer(program, reward=by_question)
    await trainer.bind(Query)
    await trainer.init_params()
    await trainer.forward(asking(*questions), **keywords)
    await trainer.backward()
    return trainer


async def test_credit_goes_by_call_and_path():
    """Two of one schema, a loop, a skip and a failing row; also where later rows are faster."""

    def reversed_latency(question):
        return 0.02 / (1 + int(question.split("/")[0][-1]))

    def none(question):
        return 0

    questions = ["a0", "skip1", "fail2", "a3", "a4"]
    found = {}
    for delays in (none, reversed_latency):
        trainer = await routed(questions, Program(delays), on_error="collect")
        first = items(trainer, "first/mark")
        assert [(row, path, question) for row, path, question, _, _ in first] == [
            (n, "first", question) for n, question in enumerate(questions)
        ]
        assert [critique for *_, critique in first] == [
            "about a0", "about skip1", "ValueError: fail2", "about a3", "about a4"
        ]  # fmt: skip
        assert first[2][3] is None
        assert [(row, path) for row, path, *_ in items(trainer, "second/mark")] == [
            (0, "second"), (3, "second"), (4, "second")
        ]  # fmt: skip
        assert [(row, question) for row, _, question, _, _ in items(trainer, "looped/mark")] == [
            (row, f"{questions[row]}/{number}") for row in (0, 1, 3, 4) for number in range(3)
        ]
        for path, mark in (("first/mark", "f"), ("second/mark", "s"), ("looped/mark", "l")):
            for _, _, question, outputs, _ in items(trainer, path):
                assert outputs is None or outputs["answer"] == f"{mark}({question})"
        found[delays] = trainer.feedback
    assert found[none] == found[reversed_latency]


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["a", "skip", "fail"]), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_routing_does_not_depend_on_latency(kinds, dice: random.Random):
    """The same feedback whatever finishes first, whatever the limit of rows at once."""
    questions = [f"{kind}{n}" for n, kind in enumerate(kinds)]
    waits = {}

    def delays(question):
        return waits.setdefault(question, dice.choice([0, 0.001, 0.002]))

    async def both():
        plain = await routed(questions, Program(), on_error="collect")
        slow = sm.Trainer(Program(delays), reward=by_question, concurrency=dice.randint(1, 4))
        await slow.bind(Query)
        await slow.init_params()
        await slow.forward(asking(*questions), on_error="collect")
        await slow.backward()
        return plain.feedback, slow.feedback

    plain, slow = asyncio.run(both())
    assert plain == slow


async def test_calls_at_once_within_a_row_keep_their_order():
    """Branches by path, calls of one module by their beginnings."""

    class Branches(Program):
        async def call(self, inputs: Query) -> Answer:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.second(Query(question="2")))
                group.create_task(self.first(Query(question="1")))
            return Answer(answer="x")

    trainer = await routed(["a"], Branches(lambda question: 0.001 * int(question)))
    assert items(trainer, "first/mark")[0][2] == "1"
    assert items(trainer, "second/mark")[0][2] == "2"


async def test_a_module_may_route_for_itself():
    """What the calls below it are told; plain or async; anything but a Feedback is an error."""

    class Routing(Program):
        async def route_feedback(self, inputs, outputs, feedback):
            return sm.Feedback(0.0, critique=f"below: {feedback.critique}")

    trainer = await routed(["a"], Routing())
    assert {item.feedback.critique for each in trainer.feedback.values() for item in each} == {"below: about a"}

    class Wrong(Program):
        def route_feedback(self, inputs, outputs, feedback):
            return 1.0

    with pytest.raises(sm.TrainerError, match="route_feedback returned 1.0"):
        await routed(["a"], Wrong())


async def test_parts_address_modules():
    """A critique for one path stands in place of the common one; a key that names nothing is an error."""

    async def run(parts):
        trainer = sm.Trainer(Program(), reward=lambda outputs: sm.Feedback(0.0, "all", parts=parts))
        await trainer.bind(Query)
        await trainer.init_params()
        await trainer.forward_backward(asking("a"))
        return {path: each[0].feedback.critique for path, each in trainer.feedback.items()}

    assert await run({"first": "you"}) == {"first/mark": "you", "second/mark": "all", "looped/mark": "all"}
    with pytest.raises(sm.TrainerError, match="'frist'.*Did you mean 'first'"):
        await run({"frist": "you"})


@pytest.mark.parametrize("path", ["first", "second"])
async def test_parts_address_a_shared_module_by_each_of_its_paths(path):
    """It is blamed and told, whichever of them the reward names."""
    asked = []

    class Note(sm.Module):
        async def call(self, inputs):
            asked.append((inputs["path"], [record["critique"] for record in inputs["records"]]))
            return sm.JsonDataModel({"value": "b"}, schema={"type": "object", "properties": {"value": {}}})

    class Shared(sm.Module):
        def __init__(self):
            super().__init__()
            self.first = self.second = Worker("a")
            self.third = Worker("c")

        async def call(self, inputs: Query) -> Answer:
            await self.first(inputs)
            return await self.third(inputs)

    trainer = sm.Trainer(Shared(), reward=lambda: sm.Feedback(0.0, "all", parts={path: "you"}))
    with pytest.warns(sm.SynmodWarning, match="no validation rows"):
        await trainer.fit([asking("a")], optimizer=sm.optimizers.Reflect(proposer=Note(), patience=1))
    assert asked == [("first/mark", ["you"])]


async def test_backward_without_a_reward_or_labels():
    """The message names what to give."""
    trainer = await ready()
    await trainer.forward(asking("a", "b"))
    with pytest.raises(sm.TrainerError, match="reward"):
        await trainer.backward()
    with pytest.raises(sm.TrainerError, match="one sm.Feedback per row, 2"):
        await trainer.backward([sm.Feedback(1.0)])
    with pytest.raises(sm.TrainerError, match="sm.Feedback"):
        await trainer.backward([1.0, 0.0])
    await trainer.backward([sm.Feedback(None, "shorter"), sm.Feedback(1.0)])
    assert [item.feedback.critique for item in trainer.feedback["style"]] == ["shorter", None]
    trainer = await ready(reward="exact_match", label_names=["answer"], bind={"label_schemas": Answer})
    await trainer.forward(asking("a"))
    with pytest.raises(sm.TrainerError, match="label_names"):
        await trainer.backward()
    await trainer.forward(sm.Batch([{"question": "a"}], [{"other": 1}]))
    with pytest.raises(sm.TrainerError, match="no label answer.*label_names"):
        await trainer.backward()


async def test_a_reward_that_raises_changes_nothing():
    """The former feedback stands; the number of the row is a note."""
    fails = []

    def reward(outputs, inputs):
        if fails and inputs["question"] == "b":
            raise ZeroDivisionError("broken")
        return 1.0

    trainer = await ready(reward=reward)
    await trainer.forward_backward(asking("a", "b"))
    before = trainer.feedback
    fails.append(1)
    await trainer.forward(asking("a", "b"))
    with pytest.raises(ZeroDivisionError) as caught:
        await trainer.backward()
    assert "row 1" in caught.value.__notes__
    assert trainer.feedback == before
    assert "backward" not in trainer.lifecycle


async def test_an_outage_has_no_score():
    """A transient error of a model is told, and not scored."""

    class Down(Echo):
        async def call(self, inputs: Query) -> Answer:
            if inputs.question.startswith("a"):
                raise sm.UnavailableError("down")
            return Answer(answer="x")

    trainer = await ready(Down(), reward=lambda outputs: 1.0)
    await trainer.forward(asking("a"), on_error="collect")
    await trainer.backward()
    (item,) = trainer.feedback["style"]
    assert item.feedback.score is None
    assert "down" in item.feedback.critique


async def test_input_grads():
    """One Feedback per row for each input, which another trainer takes as out_grads."""
    upstream, trainer = await ready(), await ready(reward=by_question, bind={"inputs_need_grad": True})
    await upstream.forward(asking("a", "b"))
    await trainer.forward(asking(*(output["answer"] for output in upstream.get_outputs())))
    await trainer.backward()
    (grads,) = trainer.get_input_grads()
    assert [each.critique for each in grads] == ["about plain: a (1)", "about plain: b (1)"]
    await upstream.backward(grads)
    assert [item.feedback.critique for item in upstream.feedback["style"]] == [each.critique for each in grads]


# -- update ------------------------------------------------------------------------------------------------------------


async def test_update_writes_in_one_piece():
    """The changed paths come back; the bench knows the rows so far."""
    seen = []

    class Looking(Upper):
        async def update(self, state, feedback, bench):
            seen.append((bench.step, len(bench.train), bench.train == bench.validation, sorted(feedback)))
            return await super().update(state, feedback, bench)

    trainer = await ready(reward=by_question, optimizer=False)
    trainer.init_optimizer(Looking())
    await trainer.forward_backward(asking("a", "b"))
    assert await trainer.update() == (("style",),)
    assert trainer.program.style.value == "PLAIN"
    await trainer.forward_backward(asking("b", "c"))
    assert await trainer.update() == ()
    assert seen == [(0, 2, True, ["style"]), (1, 3, True, ["style"])]
    assert trainer.optimizer.idle.value == 2


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (lambda state: "x", sm.TrainerError, r"Upper\.update returned 'x'; return a sm\.State, or a dict"),
        (lambda state: {"tone": "x"}, sm.StateError, "tone"),
        (lambda state: {"style": 1}, sm.StateSchemaError, "style"),
        (lambda state: sm.state(Echo()), sm.StateError, "tone"),
        (lambda state: sm.state({"style": sm.Param(1)}), sm.StateSchemaError, "style"),
    ],
)
async def test_an_answer_that_does_not_fit(answer, error, text):
    """Program and optimizer are as before, and the feedback stays for another try."""
    trainer = await ready(reward=by_question, optimizer=False, bind={"grad_req": "add"})
    trainer.init_optimizer(Upper(answer))
    await trainer.forward_backward(asking("a"))
    before = sm.state(trainer.program), sm.state(trainer.optimizer), trainer.feedback, trainer.lifecycle
    with pytest.raises(error, match=text):
        await trainer.update()
    assert (sm.state(trainer.program), sm.state(trainer.optimizer), trainer.feedback, trainer.lifecycle) == before
    trainer.optimizer.answer = None
    assert await trainer.update() == (("style",),)
    assert trainer.feedback == {"style": ()}


async def test_an_answer_may_be_values_by_path():
    """As wherever a State is expected; other targets keep theirs."""
    trainer = await ready(reward=by_question, optimizer=False)
    trainer.init_optimizer(Upper(lambda state: {"style": "x"}))
    await trainer.forward_backward(asking("a"))
    assert await trainer.update() == (("style",),)
    assert trainer.program.style.value == "x"


@pytest.mark.parametrize("how", ["raises", "cancelled"])
async def test_a_step_that_ends_early_changes_nothing(how):
    """Whatever the optimizer noted before, at whichever wait."""
    waiting = asyncio.Event()

    class Ending(Upper):
        async def update(self, state, feedback, bench):
            await super().update(state, feedback, bench)
            waiting.set()
            await bench.evaluate(state, bench.validation)
            if how == "raises":
                raise ZeroDivisionError
            await asyncio.sleep(60)

    trainer = await ready(reward=by_question, optimizer=False)
    trainer.init_optimizer(Ending())
    await trainer.forward_backward(asking("a"))
    before = sm.state(trainer.program), sm.state(trainer.optimizer), trainer.feedback
    task = asyncio.create_task(trainer.update())
    await waiting.wait()
    if how == "cancelled":
        await asyncio.sleep(0.01)
        task.cancel()
    with pytest.raises((ZeroDivisionError, asyncio.CancelledError)):
        await task
    assert (sm.state(trainer.program), sm.state(trainer.optimizer), trainer.feedback) == before
    assert "update" not in trainer.lifecycle


async def test_cancelled_forward_leaves_the_former_one():
    """Outputs and states are those of the last forward that succeeded."""
    trainer = await ready()
    await trainer.forward(asking("a"))
    states = trainer.get_states()
    for ticks in range(20):
        task = asyncio.create_task(trainer.forward(asking("b", "c")))
        for _ in range(ticks):
            await asyncio.sleep(0)
        if task.done():
            assert ticks > 1
            break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert trainer.get_outputs()[0]["answer"] == "plain: a (1)"
        assert trainer.get_states() == states
    assert len(trainer.get_outputs()) == 2


async def test_values_that_were_set_are_not_taken_for_those_before():
    """What the bench knows of rows holds for the values with which they ran."""
    scores = []

    class Evaluating(Upper):
        async def update(self, state, feedback, bench):
            scores.extend(rollout.score for rollout in await bench.evaluate(state, bench.validation))
            return state

    class Toned(Echo):
        async def call(self, inputs: Query) -> Answer:
            return Answer(answer=self.tone.value)

    trainer = await ready(Toned(), reward=lambda outputs: outputs["answer"] == "warm", optimizer=False)
    trainer.init_optimizer(Evaluating())
    await trainer.forward_backward(asking("a"))
    await trainer.update()
    trainer.set_params({"style": "plain"}, {"tone": "cold"})
    await trainer.update()
    assert scores == [1.0, 0.0]


async def test_a_reward_may_ask_for_the_calls_of_a_row():
    """All of them, by hand as in `fit`."""
    trainer = await routed(["a"], Program())
    trainer = sm.Trainer(trainer.program, reward=lambda calls: sm.Feedback(0.0, " ".join(call.path for call in calls)))
    await trainer.bind(Query)
    await trainer.init_params()
    await trainer.forward_backward(asking("a"))
    assert trainer.feedback["first/mark"][0].feedback.critique.split() == ["first", *["looped"] * 3, "second"]

"""BestOf, Majority, Refine, SelfCritique, Retry: several tries at one answer."""

import asyncio
import gc
import weakref
from fractions import Fraction

import pytest

import synmod as sm
from synmod.leaves import aio
from synmod.testing import FunctionLM, ScriptedLM


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


ASKED = Query(question="Who?")


def by_sample(reply):
    """A generator whose reply is a function of the sample number."""
    return sm.Generator(Answer, language_model=FunctionLM(lambda request: {"answer": str(reply(request.sample))}))


def value_of(outputs):
    """A reward: the number in the answer."""
    return float(outputs["answer"])


async def test_best_of_draws_distinct_samples_and_keeps_the_best():
    """Samples are numbered from 0, and equal rewards go to the lowest."""
    seen = []
    best = sm.BestOf(by_sample(lambda n: seen.append(n) or [3, 9, 9, 1][n]), 4, reward=value_of)
    assert (await best(ASKED))["answer"] == "9"
    assert sorted(seen) == [0, 1, 2, 3]
    tied = sm.BestOf(by_sample(lambda n: n), 4, reward=lambda inputs, outputs: 1)
    assert (await tied(ASKED))["answer"] == "0"


async def test_samples_inside_samples_are_all_different():
    """A block that draws inside one that draws goes on counting."""
    seen = []
    inner = sm.BestOf(by_sample(lambda n: seen.append(n) or n), 2, reward=value_of)
    await sm.BestOf(inner, 3, reward=value_of)(ASKED)
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


async def test_the_reward_may_wait_and_runs_in_its_phase():
    """An async reward is awaited; its phase is `reward`."""
    phases = []

    async def reward(inputs, outputs):
        phases.append(sm.current_phase())
        await asyncio.sleep(0)
        return float(outputs["answer"])

    assert (await sm.BestOf(by_sample(lambda n: n), 3, reward=reward)(ASKED))["answer"] == "2"
    assert phases == ["reward"] * 3


@pytest.mark.parametrize("reward", [lambda: "high", lambda: float("nan"), lambda: None])
async def test_a_reward_is_a_number(reward):
    """Anything else is a CallError, not a comparison that goes wrong."""
    with pytest.raises(sm.CallError, match="must be a finite number"):
        await sm.BestOf(by_sample(lambda n: n), 2, reward=reward)(ASKED)


def gated(gates, outcome):
    """A module whose sample n waits for gate n, then gives or raises what `outcome` says."""

    class Gated(sm.Module):
        async def call(self, inputs) -> Answer:
            number = sm.lm.current_sample()
            await gates[number].wait()
            result = outcome(number)
            if isinstance(result, Exception):
                raise result
            return Answer(answer=str(result))

    return Gated()


async def test_with_a_threshold_the_first_in_sample_order_wins():
    """A later sample that is ready first does not win while one before it may still suffice."""
    gates = [aio.Signal() for _ in range(3)]
    best = sm.BestOf(gated(gates, lambda n: [5, 6, 9][n]), 3, reward=value_of, threshold=5)
    task = asyncio.create_task(best(ASKED))
    gates[1].set()
    gates[2].set()
    await asyncio.sleep(0)
    assert not task.done()
    gates[0].set()
    assert (await task)["answer"] == "5"


async def test_with_a_threshold_the_rest_is_cancelled():
    """Sample 0 suffices; sample 1, which would wait for ever, is ended."""
    gates = [aio.Signal() for _ in range(2)]
    gates[0].set()
    before = asyncio.all_tasks()
    best = sm.BestOf(gated(gates, lambda n: 7), 2, reward=value_of, threshold=5)
    assert (await best(ASKED))["answer"] == "7"
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("threshold", [None, 100])
async def test_a_failing_sample_fails_the_call(threshold):
    """Its error is raised as itself."""
    gates = [aio.Signal() for _ in range(2)]
    for gate in gates:
        gate.set()
    best = sm.BestOf(gated(gates, lambda n: [9, KeyError("late")][n]), 2, reward=value_of, threshold=threshold)
    with pytest.raises(KeyError, match="late"):
        await best(ASKED)


@pytest.mark.parametrize("fails_first", [True, False])
async def test_with_a_threshold_a_failure_counts_when_its_turn_comes(fails_first):
    """Sample 0 suffices, whether sample 1 fails before or after it is ready."""
    gates = [aio.Signal() for _ in range(2)]
    best = sm.BestOf(gated(gates, lambda n: [9, KeyError("late")][n]), 2, reward=value_of, threshold=5)
    task = asyncio.create_task(best(ASKED))
    for number in (1, 0) if fails_first else (0, 1):
        gates[number].set()
        for _ in range(9):
            await asyncio.sleep(0)
    assert (await task)["answer"] == "9"


async def test_one_function_is_a_reward_here_and_there():
    """It asks by name, for inputs and outputs alone: a target is a ConfigError; of a Feedback the score counts."""
    module = by_sample(lambda n: n)
    best = sm.BestOf(module, 3, reward=lambda y_pred, inputs: sm.Feedback(-float(y_pred["answer"]), critique="x"))
    assert (await best(ASKED))["answer"] == "0"
    for reward, name in ((lambda y_true, y_pred: 1, "y_true"), (lambda output: 1, "Did you mean 'outputs'")):
        with pytest.raises(sm.ConfigError, match=name):
            sm.BestOf(module, 3, reward=reward)


async def test_without_a_sufficing_sample_the_best_is_kept():
    """No one reaches the threshold: the highest reward."""
    best = sm.BestOf(by_sample(lambda n: [3, 8, 5][n]), 3, reward=value_of, threshold=100, concurrency=1)
    assert (await best(ASKED))["answer"] == "8"


async def test_rewards_may_be_numbers_of_any_kind():
    """Fractions, as numpy's numbers, compare as floats do."""
    best = sm.BestOf(by_sample(lambda n: n), 4, reward=lambda y_pred: Fraction(int(y_pred["answer"]) % 3, 7))
    assert (await best(ASKED))["answer"] == "2"


class Lost(Exception):
    """An exception that a weak reference can watch."""


async def test_a_failed_sample_is_let_go():
    """A failure collected beside a threshold is in no circle with a frame that holds it."""

    def lose(_):
        raise Lost

    best = sm.BestOf(sm.Lambda(lose, output=Answer), 2, reward=value_of, threshold=1.0)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Lost) as caught:
            await best(ASKED)
        watched = weakref.ref(caught.value)
        del caught
        assert watched() is None
    finally:
        gc.enable()


async def test_majority_takes_the_most_frequent_answer():
    """By the whole output or by one field; ties go to the first seen."""
    replies = ["b", "a", "c", "a", "b"]
    assert (await sm.Majority(by_sample(lambda n: replies[n]), 5)(ASKED))["answer"] == "b"
    assert (await sm.Majority(by_sample(lambda n: replies[n]), 4, field="answer")(ASKED))["answer"] == "a"


async def test_majority_tells_numbers_apart_as_json_does():
    """1, 1.0 and True are three answers."""
    values = [1, 1.0, True, 1.0]
    lm = FunctionLM(lambda request: {"x": values[request.sample]})
    vote = sm.Majority(sm.Generator(schema={"type": "object", "properties": {"x": {}}}, language_model=lm), 4)
    assert type((await vote(ASKED))["x"]) is float


async def test_majority_needs_the_field():
    """A misspelt field is found when the program is composed, or called."""
    vote = sm.Majority(by_sample(lambda n: n), 2, field="anwser")
    for asked in (ASKED, Query.to_symbolic_data_model()):
        with pytest.raises(sm.SchemaError, match="Did you mean 'answer'"):
            await vote(asked)


async def test_majority_of_several_outputs():
    """A module may give a tuple: all of it is the answer."""
    pair = sm.Parallel(by_sample(lambda n: n > 0), sm.Identity())
    first, second = await sm.Majority(pair, 3)(ASKED)
    assert (first["answer"], second) == ("True", ASKED)


async def test_draws_that_give_nothing_do_not_count():
    """None is no answer; all None is None."""
    none = sm.Lambda(lambda x: None, output=Answer | None)
    assert await sm.BestOf(none, 2, reward=value_of)(ASKED) is None
    assert await sm.Majority(none, 2)(ASKED) is None
    odd = sm.Lambda(lambda x: Answer(answer="3") if sm.lm.current_sample() else None, output=Answer | None)
    assert (await sm.BestOf(odd, 2, reward=value_of)(ASKED))["answer"] == "3"
    assert (await sm.Majority(odd, 3)(ASKED))["answer"] == "3"


async def test_self_critique_gives_inputs_critique_and_score():
    """The inputs come first; the score is on the scale; a further model comes before."""
    lm = ScriptedLM([{"critique": "short", "score": 0.3}])
    out = await sm.SelfCritique(language_model=lm)(ASKED)
    assert out.get_json() == {"question": "Who?", "critique": "short", "score": 0.3}
    symbol = await sm.SelfCritique(Answer, return_inputs=False)(Query.to_symbolic_data_model())
    assert symbol.keys() == ("answer", "critique", "score")
    with pytest.raises(sm.BadReplyError):
        await sm.SelfCritique(language_model=ScriptedLM([{"critique": "x", "score": 0.35}] * 3))(ASKED)


class Recorder(sm.Module):
    """Gives scripted answers and keeps what it was asked."""

    def __init__(self, answers):
        super().__init__()
        self.answers = list(answers)
        self._asked = []

    async def call(self, inputs) -> Answer:
        self._asked.append(inputs.get_json())
        return Answer(answer=self.answers[len(self._asked) - 1])


def critic(*scores):
    """A critic that gives the scores in turn."""
    return sm.SelfCritique(
        language_model=ScriptedLM([{"critique": f"c{n}", "score": score} for n, score in enumerate(scores)])
    )


async def test_refine_hands_the_critique_on_and_keeps_the_best_round():
    """The critique takes the place of the one before; the score stays outside."""
    module = Recorder(["a", "b", "c"])
    refine = sm.Refine(module, critic(0.2, 0.9, 0.5), rounds=3)
    assert (await refine(ASKED))["answer"] == "b"
    assert module._asked == [
        {"question": "Who?"},
        {"question": "Who?", "critique": "c0"},
        {"question": "Who?", "critique": "c1"},
    ]


async def test_a_model_reads_what_the_critique_of_refine_is():
    """Its words alone do not tell that they are about an earlier answer."""
    lm = ScriptedLM([{"answer": "Lyon"}, {"answer": "Paris"}])
    write = sm.Generator({"answer": str}, language_model=lm)
    await sm.Refine(write, critic(0.2, 0.9))(ASKED)
    first, second = (request.messages[0]["content"] for request in lm.requests)
    line = "- critique: what is wrong with an earlier answer to these inputs; write a better one"
    assert (line in first, line in second) == (False, True)


async def test_refine_by_a_reward():
    """A Feedback gives critique and score; a number alone an empty critique."""
    module = Recorder(["a", "bb", "c"])
    lengths = {1: sm.Feedback(0.1, critique="too short"), 2: 0.9}
    refine = sm.Refine(module, lambda outputs: lengths[len(outputs["answer"])], rounds=3)
    assert (await refine(ASKED))["answer"] == "bb"
    assert [asked.get("critique") for asked in module._asked] == [None, "too short", ""]
    with pytest.raises(sm.ConfigError, match="critic takes a parameter 'target'"):
        sm.Refine(module, lambda target: 1)


async def test_refine_stops_at_its_threshold_and_takes_the_earliest_of_equal_rounds():
    """A round that is good enough is the last one."""
    module = Recorder(["a", "b", "c"])
    assert (await sm.Refine(module, critic(0.2, 0.8), rounds=3, threshold=0.8)(ASKED))["answer"] == "b"
    assert len(module._asked) == 2
    assert (await sm.Refine(Recorder("xy"), critic(0.5, 0.5))(ASKED))["answer"] == "x"


async def test_refine_of_inputs_that_have_a_critique():
    """A critique of the user's own is taken over by that of the round, never numbered."""

    class Criticised(sm.DataModel):
        question: str
        critique: str

    module = Recorder(["a", "b"])
    await sm.Refine(module, critic(0.1, 0.2))(Criticised(question="Who?", critique="mine"))
    assert module._asked[1] == {"question": "Who?", "critique": "c0"}


async def test_the_inputs_of_refine_keep_their_title_and_description():
    """The critique is one more field of them: a model is shown no name of ours."""

    class Asked(sm.DataModel):
        """A question of a customer."""

        question: str

    seen = []

    class Sees(sm.Module):
        async def call(self, inputs):
            seen.append(inputs.get_schema())
            return Answer(answer="a")

    await sm.Refine(Sees(), critic(0.1, 0.2))(Asked(question="Who?"))
    assert [schema["title"] for schema in seen] == ["Asked", "Asked"]
    assert [schema["description"] for schema in seen] == ["A question of a customer."] * 2


async def test_refine_needs_members_that_fit():
    """A module that cannot take the critique, a critic that gives none: found when composed."""

    class Graded(sm.DataModel):
        question: str
        critique: int = 0

    class Strict(sm.Module):
        async def call(self, inputs: Graded) -> Answer:
            return Answer(answer="a")

    with pytest.raises(sm.SchemaError):
        await sm.Refine(Strict(), sm.SelfCritique())(Query.to_symbolic_data_model())
    with pytest.raises(sm.SchemaError, match="critique"):
        await sm.Refine(by_sample(lambda n: n), sm.Identity())(Query.to_symbolic_data_model())
    assert (await sm.Refine(Strict(), sm.SelfCritique(), rounds=1)(ASKED))["answer"] == "a"


async def test_retry_runs_again_as_another_sample():
    """Only on what is named; the samples are raised; the last failure has the others as notes."""
    seen = []

    def flaky(inputs):
        seen.append(sm.lm.current_sample())
        if len(seen) < 3:
            raise KeyError(str(len(seen)))
        return Answer(answer="there")

    module = sm.Lambda(flaky, output=Answer)
    assert (await sm.Retry(module, 3, on=KeyError)(ASKED))["answer"] == "there"
    assert seen == [0, 1, 2]
    seen.clear()
    with pytest.raises(KeyError, match="2") as caught:
        await sm.Retry(module, 2, on=(KeyError,))(ASKED)
    assert any("attempt 1 failed: KeyError" in note for note in caught.value.__notes__)
    seen.clear()
    with pytest.raises(KeyError, match="1"):
        await sm.Retry(module, 3, on=ValueError)(ASKED)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sm.BestOf(len, 2, reward=value_of), "module is a builtin"),
        (lambda: sm.BestOf(sm.Identity(), 0, reward=value_of), "n must be .*, got 0"),
        (lambda: sm.BestOf(sm.Identity(), 2, reward=3), "reward is 3"),
        (lambda: sm.BestOf(sm.Identity(), 2, reward=value_of, threshold="x"), "threshold must be .*, got 'x'"),
        (lambda: sm.BestOf(sm.Identity(), 2, reward=value_of, treshold=1), "Did you mean 'threshold'"),
        (lambda: sm.Majority(sm.Identity(), 2, field=3), "field is 3"),
        (lambda: sm.Refine(sm.Identity(), sm.Identity(), rounds=True), "rounds must be .*, got True"),
        (lambda: sm.Retry(sm.Identity(), 2, on=()), "on is empty"),
        (lambda: sm.Retry(sm.Identity(), 2, on=asyncio.CancelledError), "on has"),
    ],
)
def test_arguments_are_checked_when_the_block_is_made(make, says):
    """What cannot run is refused at construction, by name."""
    with pytest.raises(sm.ConfigError, match=says):
        make()


async def test_refine_composes_with_a_module_of_several_outputs():
    """A module that returns a tuple is refined by a reward on symbols as on values."""
    refine = sm.Refine(sm.Parallel(sm.Identity(), sm.Identity()), lambda inputs: 1)
    assert len(await refine(Query.to_symbolic_data_model())) == len(await refine(ASKED)) == 2

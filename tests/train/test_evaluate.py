"""evaluate: examples, scores, failures, stops."""

import asyncio
import contextlib
import csv
import json

import pytest

import synmod as sm
from synmod.testing import FunctionLM


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


class Echo(sm.Module):
    """Answers with the question; fails where the question says so."""

    async def call(self, inputs: Query) -> Answer:
        if inputs.question.startswith("fail"):
            raise KeyError(inputs.question)
        return Answer(answer=inputs.question)


def same(outputs, target):
    """Whether the answer is the target."""
    return outputs["answer"] == target


def rows(*pairs):
    """Rows of (question, target)."""
    return [(Query(question=question), target) for question, target in pairs]


async def test_scores_and_results_in_input_order():
    """Whatever finishes first; the mean is over the examples."""

    class Slow(sm.Module):
        async def call(self, inputs: Query) -> Answer:
            for _ in range(10 - int(inputs.question)):
                await asyncio.sleep(0)
            return Answer(answer=inputs.question)

    data = rows(*((str(n), str(n % 2)) for n in range(10)))
    evaluation = await sm.evaluate(Slow(), data, reward=same)
    assert [result.id for result in evaluation.results] == [str(n) for n in range(10)]
    assert [result.outputs["answer"] for result in evaluation.results] == [str(n) for n in range(10)]
    assert evaluation.score == 0.2
    assert repr(evaluation) == "Evaluation(score 0.2 over 10 of 10 (0 failed))"
    assert len({result.call_id for result in evaluation.results}) == 10


async def test_rows_come_in_many_forms():
    """Pairs, inputs alone, JSON that the contract reads, Examples, generators sync and async."""

    async def later():
        yield {"question": "a"}, "a"
        yield Query(question="b")
        yield sm.Example("third", {"question": "c"}, "c", extra={"k": 1})

    evaluation = await sm.evaluate(Echo(), later())
    assert [(r.id, r.outputs["answer"]) for r in evaluation.results] == [("0", "a"), ("1", "b"), ("third", "c")]
    assert evaluation.score is None
    assert evaluation.results[0].score is None
    inputs = sm.Input(Query, name="q")
    program = sm.Program(inputs={"q": inputs}, outputs=await Echo()(inputs))
    evaluation = await sm.evaluate(program, ({"q": {"question": q}} for q in "xy"))
    assert [r.outputs["answer"] for r in evaluation.results] == ["x", "y"]


async def test_rows_that_cannot_be_read():
    """JSON without a schema, an id twice, no rows, no data: refused, by name."""

    class Loose(sm.Module):
        async def call(self, inputs):
            return inputs

    with pytest.raises(sm.ArgumentError, match="example '0'"):
        await sm.evaluate(Loose(), [{"question": "a"}])
    twice = [sm.Example("x", Query(question="a")), sm.Example("x", Query(question="b"))]
    with pytest.raises(sm.ArgumentError, match="'x' is there twice"):
        await sm.evaluate(Echo(), twice)
    with pytest.raises(sm.ArgumentError, match="no rows"):
        await sm.evaluate(Echo(), [])
    with pytest.raises(sm.ArgumentError, match="data is a dict"):
        await sm.evaluate(Echo(), {"question": "a"})
    with pytest.raises(sm.ArgumentError, match="data is a Query; give rows"):
        await sm.evaluate(Echo(), Query(question="a"))
    with pytest.raises(sm.ArgumentError, match="row 0: it is a tuple of 3"):
        await sm.evaluate(Echo(), [(1, 2, 3)])


async def test_rewards_may_be_async_and_ask_for_more():
    """Extras by name, phase `reward`, Feedback, a module; rewards given inside the call are objectives."""
    seen = []

    async def reward(example_id, inputs, *, extra):
        await asyncio.sleep(0)
        seen.append((inputs.question, extra, example_id, sm.current_phase()))
        return sm.Feedback(0.5, critique="so so", objectives={"length": 3})

    class Rewarding(Echo):
        async def call(self, inputs: Query) -> Answer:
            self.add_reward(0.25, "inner")
            return Answer(answer="x")

    data = [sm.Example("e", Query(question="a"), "a", extra={"k": 1})]
    evaluation = await sm.evaluate(Rewarding(), data, reward=reward)
    assert seen == [("a", {"k": 1}, "e", "reward")]
    (result,) = evaluation.results
    assert result.feedback.critique == "so so"
    assert result.feedback.objectives == {"inner": 0.25, "length": 3}

    class Judge(sm.Module):
        range = (-1.0, 1.0)

        async def call(self, y_true, y_pred) -> Answer:
            assert sm.current_call().name == "judge"
            return y_pred

    with pytest.raises(sm.EvaluationError, match="the only run has failed") as caught:
        await sm.evaluate(Echo(), rows(("a", Answer(answer="a"))), reward=Judge())
    assert "the reward is" in caught.value.errors[0].error.message


@pytest.mark.parametrize("reward", [lambda target, other: 1, lambda predicted: 1])
async def test_a_reward_or_metric_that_does_not_fit_is_an_error_before_anything_runs(reward):
    """One that asks for something else names what it may ask for; nothing has begun."""
    program = Echo()
    with pytest.raises(sm.ArgumentError, match="outputs, target, example_id"):
        await sm.evaluate(program, rows(("a", "a")), reward=reward)
    with pytest.raises(sm.ArgumentError, match="metric"):
        await sm.evaluate(program, rows(("a", "a")), metrics=[reward])
    assert program.counters.invocations == 0


async def test_rewards_and_metrics_ask_by_name_in_any_order():
    """`outputs` and `y_pred` are one thing, so are `target` and `y_true`; one function serves both."""
    functions = [
        lambda outputs, target: outputs["answer"] == target,
        lambda y_true, y_pred: y_pred["answer"] == y_true,
        lambda target, y_pred: y_pred["answer"] == target,
        lambda inputs, target: inputs["question"] == target,
        lambda: 0.5,
    ]
    for n, function in enumerate(functions):
        function.__name__ = f"m{n}"
        evaluation = await sm.evaluate(Echo(), rows(("a", "a"), ("b", "x")), reward=function, metrics=[function])
        assert evaluation.score == evaluation.metrics[f"m{n}"] == 0.5


async def test_an_evaluation_is_a_frozen_record_and_always_true():
    """Also one without metrics, which was an empty list once."""
    evaluation = await sm.evaluate(Echo(), rows(("a", "a")))
    assert evaluation
    assert evaluation != []
    with pytest.raises(AttributeError):
        evaluation.score = 1.0
    with pytest.raises(TypeError):
        evaluation.metrics["x"] = 1.0
    with pytest.raises(TypeError, match="seed"):
        await sm.evaluate(Echo(), rows(("a", "a")), seed=0)


async def test_an_evaluation_is_shown_as_a_table():
    """For notebooks: escaped, cut, and of the first fifty results."""
    data = rows(("<b>", "x" * 300), ("", ""), *((str(n), "") for n in range(59)))
    evaluation = await sm.evaluate(Echo(), data, reward=same)
    page = evaluation._repr_html_()
    assert "&lt;b&gt;" in page and "<b>'" not in page
    assert "x" * 300 not in page
    assert page.count("<tr>") == 51
    assert "and 11 more" in page


async def test_one_failure_is_that_examples():
    """It is collected with class, message, path and notes, and scores the lowest."""

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.inner = Echo()

        async def call(self, inputs: Query) -> Answer:
            return await self.inner(inputs)

    data = rows(("a", "a"), ("fail", "b"), ("c", "c"))
    evaluation = await sm.evaluate(Outer(), data, reward=same)
    assert evaluation.score == pytest.approx(2 / 3)
    (failed,) = evaluation.errors
    assert failed is evaluation.results[1]
    assert (failed.error.type, failed.error.path, failed.score, failed.outputs) == ("KeyError", "inner", 0.0, None)
    assert "fail" in failed.error.message
    assert any("inner" in note for note in failed.error.notes)
    assert repr(evaluation) == "Evaluation(score 0.6667 over 2 of 3 (1 failed, first: KeyError: 'fail'))"


@pytest.mark.parametrize(("failure_score", "mean"), [("lowest", 0.5), (-1, 0.0), (None, 1.0)])
async def test_what_a_failure_scores(failure_score, mean):
    """The lowest of the range, a number, or nothing at all."""
    evaluation = await sm.evaluate(Echo(), rows(("a", "a"), ("fail", "b")), reward=same, failure_score=failure_score)
    assert evaluation.score == mean


async def test_transient_failures_and_failures_of_the_reward_are_left_out():
    """An outage is no score of zero; a reward that breaks says nothing of the program."""

    class Down(Echo):
        async def call(self, inputs: Query) -> Answer:
            if inputs.question == "down":
                raise sm.UnavailableError("down")
            return Answer(answer=inputs.question)

    def picky(y_true, y_pred):
        if y_true == "bad":
            raise ZeroDivisionError
        return float("nan") if y_true == "nan" else 1

    data = rows(("a", "a"), ("down", "a"), ("b", "bad"), ("c", "nan"))
    evaluation = await sm.evaluate(Down(), data, reward=picky)
    assert evaluation.score == 1.0
    assert evaluation.scored == 1
    assert [r.error and r.error.type for r in evaluation.results] == [
        None,
        "UnavailableError",
        "ZeroDivisionError",
        "CallError",
    ]
    assert evaluation.results[2].outputs["answer"] == "b"


@pytest.mark.parametrize(("max_errors", "finished"), [(1, 4), (0, 2)])
async def test_too_many_failures_stop_it(max_errors, finished):
    """What finished is in `partial`, the first failure is the cause."""
    data = rows(("a", "a"), ("fail1", ""), ("b", "b"), ("fail2", ""), ("c", "c"))
    with pytest.raises(sm.EvaluationError, match=f"max_errors={max_errors}") as caught:
        await sm.evaluate(Echo(), data, reward=same, max_errors=max_errors, concurrency=1)
    assert caught.value.partial.total == finished
    assert len(caught.value.errors) == max_errors + 1
    assert str(caught.value.__cause__) == "'fail1'"


async def test_a_share_of_failures_is_looked_at_from_the_20th_on():
    """Half of the first two is nothing yet; more than 0.3 of twenty is, though the twentieth did not fail."""
    data = rows(*((f"fail{n}" if n % 2 == 0 else str(n), "x") for n in range(40)))
    with pytest.raises(sm.EvaluationError, match="10 of 20 runs .* max_error_rate=0.3") as caught:
        await sm.evaluate(Echo(), data, max_error_rate=0.3, concurrency=1)
    assert caught.value.partial.total == 20


async def test_nothing_but_failures_stops_it():
    """The first twenty, or all of a shorter set."""
    for concurrency in (4, 64):
        with pytest.raises(sm.EvaluationError, match="first 20") as caught:
            await sm.evaluate(Echo(), rows(*((f"fail{n}", "") for n in range(1_000))), concurrency=concurrency)
        assert caught.value.partial.total == 20
    with pytest.raises(sm.EvaluationError, match="all 3"):
        await sm.evaluate(Echo(), rows(*((f"fail{n}", "") for n in range(3))))


@pytest.mark.parametrize("error", [sm.AuthError("no key"), sm.ConfigError("x"), sm.BuildError("x")])
async def test_an_error_that_is_not_about_the_example_stops_it(error):
    """One such failure is enough."""

    class Broken(Echo):
        async def call(self, inputs: Query) -> Answer:
            if inputs.question == "b":
                raise error
            return Answer(answer=inputs.question)

    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Broken(), rows(("a", ""), ("b", ""), ("c", "")), concurrency=1)
    assert caught.value.__cause__ is error
    assert caught.value.partial.total == 2


async def test_a_build_that_fails_on_schemas_stops_it():
    """It would fail for every row."""

    class Unbuildable(sm.Module):
        async def build(self, inputs):
            raise sm.SchemaError("no such field")

        async def call(self, inputs) -> Answer:
            return Answer(answer="x")

    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Unbuildable(), rows(("a", ""), ("b", "")), concurrency=1)
    assert caught.value.partial.total == 1


async def test_results_that_finished_behind_a_slow_one_are_kept():
    """When it stops, what finished out of order is in `partial` too, in input order."""
    gate = asyncio.Event()

    class Held(Echo):
        async def call(self, inputs: Query) -> Answer:
            if inputs.question == "0":
                await gate.wait()
            if inputs.question == "3":
                raise sm.ConfigError("enough")
            return Answer(answer=inputs.question)

    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Held(), rows(*((str(n), "") for n in range(4))))
    assert [r.id for r in caught.value.partial.results] == ["1", "2", "3"]


async def test_budgets_around_it_end_it_with_what_was_finished():
    """BudgetExceeded as itself, with `partial`."""
    lm = FunctionLM(lambda request: {"answer": "x"})
    writer = sm.Generator(Answer, language_model=lm)
    with sm.budget(calls=2), pytest.raises(sm.BudgetExceeded) as caught:
        await sm.evaluate(writer, rows(*((str(n), "x") for n in range(5))), reward=same, concurrency=1)
    assert caught.value.partial.score == 1.0
    assert caught.value.partial.total == 2
    assert caught.value.partial.usage.calls == 2


async def test_a_deadline_around_it_ends_it_with_what_was_finished():
    """DeadlineExceeded of the block has `partial`; one inside an example is that example's."""

    class Waits(Echo):
        async def call(self, inputs: Query) -> Answer:
            if inputs.question == "b":
                await asyncio.Event().wait()
            return Answer(answer=inputs.question)

    with pytest.raises(sm.DeadlineExceeded) as caught, sm.deadline(0.2):
        await sm.evaluate(Waits(), rows(("a", "a"), ("b", "b")), reward=same)
    assert [r.id for r in caught.value.partial.results] == ["0"]

    class Own(Echo):
        async def call(self, inputs: Query) -> Answer:
            if inputs.question == "b":
                with sm.deadline(0):
                    await asyncio.sleep(1)
            return Answer(answer="a")

    evaluation = await sm.evaluate(Own(), rows(("a", "a"), ("b", "b")), reward=same)
    assert evaluation.results[1].error.type == "DeadlineExceeded"


async def test_a_budget_inside_an_example_is_that_examples():
    """Also where another one stands around the evaluation: that one has room."""
    writer = sm.Generator(Answer, language_model=FunctionLM(lambda request: {"answer": "x"}))

    class Thrifty(sm.Module):
        def __init__(self):
            super().__init__()
            self.writer = writer

        async def call(self, inputs: Query) -> Answer:
            with sm.budget(calls=1):
                if inputs.question == "twice":
                    await self.writer(inputs)
                return await self.writer(inputs)

    with sm.budget(calls=10):
        evaluation = await sm.evaluate(Thrifty(), rows(("once", "x"), ("twice", "x")), reward=same)
    assert [result.error and result.error.type for result in evaluation.results] == [None, "BudgetExceeded"]


async def test_the_path_of_a_failure_is_where_it_arose():
    """Not where one arose before that was handled; a failure of the reward arose in no module."""

    class Handles(sm.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Echo(), Echo()

        async def call(self, inputs: Query) -> Answer:
            with contextlib.suppress(KeyError):
                await self.first(Query(question="fail first"))
            return await self.second(inputs)

    def broken(y_true, y_pred):
        raise ZeroDivisionError

    for around in (contextlib.nullcontext(), sm.hooks(sm.hooks_lib.Recorder([]))):
        with around:
            evaluation = await sm.evaluate(Handles(), rows(("a", "a"), ("fail", "b")))
        assert evaluation.errors[0].error.path == "second"
        assert evaluation.errors[0].call_id.endswith("-0")
    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Handles(), rows(("a", "a")), reward=broken)
    assert caught.value.errors[0].error.path == ""


async def test_what_the_data_raises_comes_with_what_was_finished():
    """As itself, from an iterable or an async generator, which has cleaned up by then."""
    closed = []

    async def later():
        try:
            for n in range(3):
                yield Query(question=str(n)), "0"
                await asyncio.sleep(0.01)
            raise OSError("gone")
        finally:
            closed.append(True)

    with pytest.raises(OSError, match="gone") as caught:
        await sm.evaluate(Echo(), later(), reward=same)
    assert caught.value.partial.total == 3
    assert closed == [True]

    async def endless():
        try:
            while True:
                yield Query(question="fail")
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    with pytest.raises(sm.EvaluationError):
        await sm.evaluate(Echo(), endless())
    assert closed == [True, True]


async def test_a_failure_without_a_text_is_a_row_like_any_other():
    """An exception whose text cannot be read has none."""

    class Mute(Exception):
        def __str__(self):
            raise ValueError

    class Fails(sm.Module):
        async def call(self, inputs: Query) -> Answer:
            raise Mute

    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Fails(), rows(("mute", "a")))
    (mute,) = caught.value.errors
    assert (mute.error.type, mute.error.message) == ("Mute", "")


async def test_each_example_runs_as_samples():
    """Each example runs `samples` times, as samples 0 to n - 1; the mean is over the runs."""
    seen = []
    lm = FunctionLM(lambda request: seen.append(request.sample) or {"answer": str(request.sample)})
    writer = sm.Generator(Answer, language_model=lm)
    evaluation = await sm.evaluate(writer, rows(("a", "0"), ("b", "9")), reward=same, samples=2)
    assert sorted(seen) == [0, 0, 1, 1]
    assert evaluation.score == 0.25
    assert [(r.id, r.sample) for r in evaluation.results] == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]


async def test_usage_is_per_example_and_adds_up():
    """Model calls of the program and of the reward."""
    lm = FunctionLM(lambda request: {"answer": "x"})
    writer = sm.Generator(Answer, language_model=lm)

    async def judged(y_true, y_pred):
        await writer(Query(question="judge"))
        return 1

    evaluation = await sm.evaluate(writer, rows(*((str(n), "x") for n in range(10))), reward=judged)
    assert [r.usage.calls for r in evaluation.results] == [2] * 10
    assert evaluation.usage.calls == 20
    assert evaluation.usage.prompt_tokens == lm.cumulated_prompt_tokens


async def test_metrics_are_fed_in_input_order():
    """Functions are means, a failed run counts 0; objects are told each row."""

    class Last:
        name = "last"

        def reset_state(self):
            self.rows = []

        def update_state(self, target):
            self.rows.append(target)

        def result(self):
            return {"n": len(self.rows), "last": float(self.rows[-1])}

    def exact(y_true, y_pred):
        return y_pred["answer"] == y_true

    last = Last()
    data = rows(("1", "1"), ("2", "2"), ("fail", "3"), ("5", "4"))
    evaluation = await sm.evaluate(Echo(), data, metrics=[exact, last])
    assert evaluation.metrics == {"exact": 0.5, "last/n": 4, "last/last": 4.0}
    with pytest.raises(sm.ArgumentError, match="'exact'"):
        await sm.evaluate(Echo(), data, metrics=[exact, exact])


async def test_a_run_that_a_metric_cannot_count_has_failed():
    """Its score stands, the metric leaves it out; with every run it is the metric that is wrong."""

    def picky(y_true, y_pred):
        return {"1": 1, "2": True}[y_true]

    class Picky:
        def reset_state(self):
            self.rows = 0

        def update_state(self, y_true, y_pred):
            self.rows += {"1": 1, "2": 1}[y_true]

        def result(self):
            return self.rows

    data = rows(("1", "1"), ("2", "2"), ("3", "3"))
    for metric, name in ((picky, "picky"), (Picky(), "Picky")):
        evaluation = await sm.evaluate(Echo(), data, reward=same, metrics=[metric])
        assert evaluation.score == 1.0
        assert [(r.id, r.error.type, r.score) for r in evaluation.errors] == [("2", "KeyError", 1.0)]
        assert evaluation.metrics[name] == (1.0 if metric is picky else 2)
        with pytest.raises(sm.EvaluationError, match="max_errors=0") as caught:
            await sm.evaluate(Echo(), data, reward=same, metrics=[metric], max_errors=0)
        assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(sm.EvaluationError, match="all 3 runs have failed") as caught:
        await sm.evaluate(Echo(), data, metrics=[lambda y_true, y_pred: float("nan")])
    assert "finite" in str(caught.value.__cause__)


async def test_a_metric_without_a_result_costs_only_itself():
    """The score and the other metrics stand; where there is no score either, nothing was learnt."""

    class Ratio:
        def reset_state(self):
            self.rows = 0

        def update_state(self, y_true, y_pred):
            pass

        def result(self):
            return 1 / self.rows

    def ones(y_true, y_pred):
        return 1

    class Broken(Ratio):
        def update_state(self, y_true, y_pred):
            raise KeyError(y_pred["lable"])

    data = rows(*[("a", "a")] * 25)
    for metric, message in ((Ratio(), "ZeroDivisionError"), (Broken(), "FieldError")):
        with pytest.warns(sm.SynmodWarning, match=f"a metric has no result: {message}"):
            evaluation = await sm.evaluate(Echo(), data, reward=same, metrics=[metric, ones])
        assert (evaluation.score, evaluation.metrics) == (1.0, {"ones": 1.0})
        with pytest.raises(sm.EvaluationError, match="a metric has no result|have failed"):
            await sm.evaluate(Echo(), data, metrics=[metric])


async def test_functions_among_the_metrics_may_wait():
    """Async ones, and plain ones in a thread; they run beside other examples, in phase `reward`."""
    phases = set()

    async def slow(y_true, y_pred):
        phases.add(sm.current_phase())
        await asyncio.sleep(0)
        return 0.5

    @sm.in_thread
    def threaded(y_true, y_pred):
        return y_pred["answer"] == y_true

    evaluation = await sm.evaluate(Echo(), rows(("1", "1"), ("2", "3")), reward=threaded, metrics=[slow, threaded])
    assert evaluation.metrics == {"slow": 0.5, "threaded": 0.5}
    assert evaluation.score == 0.5
    assert phases == {"reward"}


async def test_a_feedback_may_have_nothing_to_score():
    """Then the example is in no mean, and no failure either; its target may be a data model."""

    def reward(y_true, y_pred):
        return sm.Feedback(None if y_true == "?" else 1, target=Answer(answer="right"))

    evaluation = await sm.evaluate(Echo(), rows(("a", "a"), ("b", "?")), reward=reward)
    assert repr(evaluation) == "Evaluation(score 1 over 1 of 2 (0 failed))"
    assert evaluation.to_json()["results"][1]["feedback"]["target"] == {"answer": "right"}
    with pytest.raises(sm.EvaluationError):
        await sm.evaluate(Echo(), rows(("a", "a")), reward=lambda: sm.Feedback(1, objectives={"x": float("nan")}))


@pytest.mark.filterwarnings("ignore:evaluate. the reward")
async def test_candidates_are_evaluated_side_by_side():
    """Each under its own overlay of one live program."""

    class Said(sm.Module):
        def __init__(self):
            super().__init__()
            self.word = self.add_variable("live", name="word")

        async def call(self, inputs: Query) -> Answer:
            await asyncio.sleep(0)
            return Answer(answer=self.word.value)

    program = Said()
    data = rows(*((str(n), "7") for n in range(5)))

    async def score(candidate):
        with sm.using(program, {"word": candidate}):
            return (await sm.evaluate(program, data, reward=same)).score

    scores = await asyncio.gather(*(score(str(n)) for n in range(20)))
    assert scores == [float(n == 7) for n in range(20)]
    assert program.word.value == "live"


async def test_a_long_stream_is_not_kept():
    """Without results the rows are read on demand, and only errors are kept."""
    read = 0

    def stream():
        nonlocal read
        for n in range(2_000):
            read += 1
            yield Query(question="fail" if n % 400 == 1 else "a"), "a"

    most = 0

    def reward(y_true, y_pred):
        nonlocal most
        most = max(most, read - finished[0])
        finished[0] += 1
        return 1

    finished = [0]
    evaluation = await sm.evaluate(Echo(), stream(), reward=reward, keep_results=False, concurrency=8)
    assert evaluation.results == ()
    assert len(evaluation.errors) == 5
    assert evaluation.score == 0.9975
    assert most < 100


async def test_results_as_json_and_csv(tmp_path):
    """Everything is plain JSON; the table has a line a run."""
    evaluation = await sm.evaluate(Echo(), rows(("a", {"answer": "a"}), ("fail", "b")), reward=lambda: 1)
    told = json.loads(json.dumps(evaluation.to_json()))
    assert told["results"][0]["outputs"] == {"answer": "a"}
    assert told["errors"][0]["error"]["type"] == "KeyError"
    path = evaluation.to_csv(tmp_path / "out.csv")
    lines = path.read_text().splitlines()
    assert lines[0].startswith("id,sample,score,error")
    assert len(lines) == 3
    hostile = 'a\r\n,"\u2028\x00=1+1'
    evaluation = await sm.evaluate(Echo(), [sm.Example(hostile, Query(question=hostile), "a"), rows(("b", (1, 2)))[0]])
    with evaluation.to_csv(tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        _, first, second = csv.reader(file)
    assert (first[0], json.loads(first[6])["question"], first[7], second[7]) == (hostile, hostile, '"a"', "[1, 2]")
    evaluation = await sm.evaluate(Echo(), rows(("a", {1})))
    with pytest.raises(sm.DataError, match="/results/0/target"):
        evaluation.to_json()
    with pytest.raises(sm.DataError):
        evaluation.to_csv(tmp_path / "out.csv")
    assert "out.csv" in str(path) and path.read_text()  # the old file stands


class Watcher:
    """A progress object."""

    def __init__(self):
        self.told = []

    def begin(self, label, total):
        self.told.append((label, total))

    def advance(self, n, **numbers):
        self.told.append((n, list(numbers)))

    def end(self, outcome):
        self.told.append(outcome)


async def test_progress_is_told():
    """Begin with the total, one step a run with the numbers, the outcome; also an object that is empty so far."""

    class Empty(Watcher):
        def __bool__(self):
            return False

    watcher = Empty()
    await sm.evaluate(Echo(), rows(("a", "a"), ("b", "b")), reward=same, samples=2, progress=watcher)
    assert watcher.told[0] == ("evaluate", 4)
    assert watcher.told[-1] == "done"
    assert watcher.told[-2][1] == ["score", "failed", "cost_usd", "in_flight"]
    failing = Watcher()
    with pytest.raises(sm.EvaluationError):
        await sm.evaluate(Echo(), rows(("fail", "a")), progress=failing)
    assert failing.told[-1] == "failed"


async def test_cancelling_leaves_nothing():
    """No task outlives it, whenever it is cancelled."""
    before = asyncio.all_tasks()
    for steps in range(0, 40, 3):
        task = asyncio.create_task(sm.evaluate(Echo(), rows(*((str(n), "") for n in range(50))), concurrency=4))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    "keywords",
    [
        {"samples": 0},
        {"max_errors": -1},
        {"max_errors": 1.5},
        {"max_errors": 0.3},
        {"max_errors": True},
        {"max_error_rate": 1.5},
        {"max_error_rate": -0.1},
        {"max_error_rate": "5%"},
        {"failure_score": "worst"},
        {"failure_score": float("nan")},
        {"progress": True},
        {"metrics": same},
        {"concurrency": 0},
    ],
)
async def test_keywords_are_checked(keywords):
    """What cannot be is refused before anything runs."""
    with pytest.raises(sm.ArgumentError, match=next(iter(keywords))):
        await sm.evaluate(Echo(), rows(("a", "a")), reward=same, **keywords)


def test_evaluate_runs_on_every_loop(any_loop):
    """asyncio, eager tasks, trio."""

    async def main():
        return await sm.evaluate(Echo(), rows(*((str(n), str(n)) for n in range(30))), reward=same)

    assert any_loop(main).score == 1.0


async def test_a_reward_may_ask_for_the_calls_of_its_run():
    """All module calls, callers first, whatever is trained."""
    seen = []

    def reward(calls):
        seen.append([(call.call_id, call.parent_id, call.path, call.outputs) for call in calls])
        return 1

    asked = sm.Sequential([sm.Input(Query), Echo(name="echo"), sm.Identity()])
    assert (await sm.evaluate(asked, rows(("a", "a")), reward=reward)).score == 1
    (calls,) = seen
    assert [call[:3] for call in calls][:2] == [("0", None, ""), ("1", "0", "0")]
    assert calls[1][3] == {"answer": "a"}
    with pytest.raises(sm.ArgumentError, match="calls"):
        await sm.evaluate(Echo(), rows(("a", "a")), metrics=[reward])


async def test_each_row_begins_with_the_memories_there_are():
    """Rows do not see what other rows wrote, and the program stays as it was."""

    class Remembers(sm.Module):
        def __init__(self, **options):
            super().__init__(**options)
            self.seen = sm.Memory([])

        async def call(self, inputs: Query) -> Answer:
            self.seen.value = [*self.seen.value, inputs.question]
            return Answer(answer=" ".join(self.seen.value))

    program = Remembers()
    evaluation = await sm.evaluate(program, rows(("a", "a"), ("b", "b")), reward=same, concurrency=1)
    assert evaluation.score == 1.0
    assert list(program.seen.value) == []


# -- programs of several inputs ----------------------------------------------------------------------------------------


class Pair(sm.Program):
    """Two inputs, by annotation alone."""

    async def call(self, left: Query, right: Answer | None = None) -> Answer:
        """Join them."""
        return sm.JsonDataModel({"answer": f"{left['question']} {right and right['answer']}"}, data_model=Answer)


def pairs():
    """Programs that take a `left` and a `right`."""
    left, right = sm.Input(Query, name="left"), sm.Input(Answer, name="right")
    return [Pair(), sm.Program(inputs=[left, right], outputs=left & right)]


@pytest.mark.parametrize("made", pairs(), ids=["annotated", "Inputs"])
async def test_rows_of_several_inputs_are_dicts_by_name(made):
    """Plain JSON and data models, wherever they are read."""
    plain = {"left": {"question": "a"}, "right": {"answer": "b"}}
    typed = {"left": Query(question="a"), "right": Answer(answer="b")}
    evaluation = await sm.evaluate(made, [(plain, None), (typed, None)], reward=lambda: 1.0)
    assert evaluation.score == 1.0, evaluation
    assert (await made.evaluate([plain, typed], reward=lambda: 1.0)).score == 1.0
    first, second = await made.predict([plain, typed])
    assert first == second


async def test_a_row_of_the_only_input_without_a_default():
    """Its fields alone."""
    evaluation = await sm.evaluate(Pair(), [{"question": "a"}])
    assert evaluation.results[0].outputs["answer"] == "a None"


async def test_the_class_of_a_metric_is_no_metric():
    """The line to write is shown."""
    with pytest.raises(sm.ArgumentError, match=r"write an instance, Accuracy\(\)"):
        await sm.evaluate(Echo(), rows(("a", "a")), metrics=[sm.metrics.Accuracy])


class Judging(sm.Module):
    """A module that asks a model, and waits or fails where the output says so."""

    def __init__(self):
        super().__init__()
        self.model = sm.LanguageModel("embedded/nearest")

    async def call(self, inputs: Answer):
        await self.model(inputs["answer"])
        if inputs["answer"] == "slow":
            await asyncio.Event().wait()
        if inputs["answer"] == "bad":
            raise ValueError("not judged")
        return inputs


async def test_rewards_and_metrics_are_in_the_call_tree_of_their_example():
    """What a judge calls stands below the entry call that it judges, in phase `reward`; so does its usage."""
    judge, seen = Judging(), []

    async def reward(outputs, example_id):
        frame = sm.current_call()
        await judge(outputs)
        seen.append((example_id, frame.id, sm.current_call() is frame, sm.current_phase(), frame.usage.calls))
        return 1.0

    def metric(outputs):
        assert sm.current_call() is not None
        return 0.0

    data = rows(*((str(n), None) for n in range(20)))
    with sm.trace() as t:
        evaluation = await sm.evaluate(Echo(), data, reward=reward, metrics=[metric])
    calls = {result.id: result.call_id for result in evaluation.results}
    assert sorted(seen) == sorted((name, call, True, "reward", 1) for name, call in calls.items())
    assert sorted(root.call_id for root in t.roots) == sorted(calls.values())
    assert all([child.phase for child in root.children] == ["reward"] for root in t.roots)
    assert all(root.usage.calls == 1 for root in t.roots)
    assert sm.current_call() is None


async def test_a_reward_that_fails_or_is_cancelled_ends_the_call_tree():
    """The frame of the example's call is not live afterwards, for whoever has kept it."""
    judge, frames = Judging(), []

    async def reward(outputs):
        frames.append(sm.current_call())
        await judge(outputs)
        return 1.0

    evaluation = await sm.evaluate(Echo(), rows(("bad", None), ("good", None)), reward=reward)
    assert "not judged" in str(evaluation.errors[0].error)
    task = asyncio.create_task(sm.evaluate(Echo(), rows(("slow", None)), reward=reward))
    while len(frames) < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [frame.live for frame in frames] == [False] * 3


async def test_a_judge_has_a_training_mode_of_its_own():
    """Not that of the program it judges, which has it back afterwards."""
    seen = []

    class Moody(sm.Module):
        async def call(self, inputs: Answer, training: bool = False) -> Answer:
            seen.append(training)
            return inputs

    judge, program = Moody(), sm.Sequential([sm.Input(Answer), Moody()])
    program.train()

    async def reward(outputs):
        await judge(outputs)
        return 1.0

    await sm.evaluate(program, [Answer(answer="a")], reward=reward)
    assert seen[-2:] == [True, False]  # those before are of the build


async def test_labels_are_counted_where_schemas_leave_fields_open():
    """An open output under a mask, and a target that leaves an optional field out."""

    class Open(sm.Module):
        async def call(self, inputs):
            return sm.JsonDataModel({"answer": "a"}, schema={"type": "object"})

    class Noted(sm.DataModel):
        answer: str
        note: str | None = None

    schema = {**Noted.get_schema(), "required": ["answer"]}
    schema["properties"]["note"].pop("default")
    target = sm.JsonDataModel({"answer": "a"}, schema=schema)
    for program, wanted, mask in ((Open(), {"answer": "a"}, ["answer"]), (Echo(), target, None)):
        metrics = [sm.metrics.F1Score(mask)]
        evaluation = await sm.evaluate(program, [(Query(question="a"), wanted)], metrics=metrics)
        assert evaluation.metrics == {"f1_score": 1.0}


async def test_a_mean_counts_the_function_that_it_has():
    """Also one that was set after it was made."""
    metric = sm.metrics.Mean(lambda outputs: 1.0, name="mean")
    metric.fn = lambda outputs: 2.0
    assert (await sm.evaluate(Echo(), rows(("a", None)), metrics=[metric])).metrics == {"mean": 2.0}


async def test_one_batch_of_a_class_of_ones_own_is_a_batch():
    """As any other."""

    class Mine(sm.Batch):
        """A batch."""

    trainer = sm.Trainer(Echo())
    await trainer.bind(Query)
    await trainer.init_params()
    assert [output["answer"] for output in await trainer.predict(Mine([{"question": "a"}]))] == ["a"]


async def test_what_a_trainer_adds_is_no_public_keyword():
    """Where rows run, and what they begin with, are matters of the Trainer alone."""
    for name in ("context_pool", "initial_states"):
        with pytest.raises(sm.ArgumentError, match=f"evaluate: unknown keyword '{name}'"):
            await sm.evaluate(sm.Identity(), [], **{name: None})

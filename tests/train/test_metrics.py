"""Metrics: what each counts, against a naive count; failed rows; copies, files, evaluations side by side."""

import asyncio
import itertools
import math
import pickle
import re
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.train.metrics import metrics_from

M = sm.metrics


class Query(sm.DataModel):
    question: str


class Ticket(sm.DataModel):
    label: str
    topics: list[str] = []
    note: str = ""


class Echo(sm.Module):
    """Answers with the question as the label; fails where the question says so."""

    async def call(self, inputs: Query) -> Ticket:
        if inputs.question.startswith("fail"):
            raise KeyError(inputs.question)
        return Ticket(label=inputs.question)


@sm.register(package="metrics_tests")
def size(y_pred):
    """A function of one's own."""
    return len(y_pred["label"])


ROW = sm.run(sm.evaluate(Echo(), [Query(question="a")])).results[0]


def row(**fields):
    """The result of a run."""
    return replace(ROW, **fields)


def out(label="a", topics=()):
    """An output of the program."""
    return Ticket(label=label, topics=list(topics)).to_json_data_model()


async def measured(*metrics, data, **keywords):
    """The metrics of an evaluation of Echo."""
    rows = [(Query(question=question), target) for question, target in data]
    return dict((await sm.evaluate(Echo(), rows, metrics=metrics, **keywords)).metrics)


# -- by label ----------------------------------------------------------------------------------------------------------

LABELS = st.sampled_from("abcd")
pairs = st.lists(st.tuples(LABELS, LABELS), max_size=20)


def naive(pairs, average, kind):
    """Precision, recall or F1 of pairs of label sets, as one counts by hand."""
    labels = sorted(set().union(*(expected | actual for expected, actual in pairs)))

    def score(hits, extra, missed):
        p = hits / (hits + extra) if hits + extra else 0.0
        r = hits / (hits + missed) if hits + missed else 0.0
        return {"precision": p, "recall": r, "f1": 2 * p * r / (p + r) if p + r else 0.0}[kind]

    counts = {
        label: (
            sum(label in e and label in a for e, a in pairs),
            sum(label not in e and label in a for e, a in pairs),
            sum(label in e and label not in a for e, a in pairs),
        )
        for label in labels
    }
    if average == "binary":
        return score(*counts.get("a", (0, 0, 0)))
    if average == "micro":
        return score(*(sum(column) for column in zip(*counts.values(), strict=True))) if counts else 0.0
    weights = [hits + missed if average == "weighted" else 1 for hits, _, missed in counts.values()]
    total = sum(weights)
    return sum(w * score(*c) for w, c in zip(weights, counts.values(), strict=True)) / total if total else 0.0


@settings(max_examples=40)
@given(pairs)
def test_label_scores_are_those_of_a_naive_count(pairs):
    """Precision, recall and F1, in each average, over a field of one label."""
    sets = [({expected}, {actual}) for expected, actual in pairs]
    for average in ("macro", "micro", "weighted", "binary"):
        for kind, cls in (("precision", M.Precision), ("recall", M.Recall), ("f1", M.F1Score)):
            metric = cls("label", average=average, positive="a")
            for expected, actual in pairs:
                metric.update_state(expected, out(actual))
            assert metric.result() == pytest.approx(naive(sets, average, kind))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sets(LABELS), st.sets(LABELS)), max_size=12))
def test_a_list_field_is_a_set_of_labels(sets):
    """The same, where a row has several labels or none."""
    for average in ("macro", "micro", "weighted", "binary"):
        metric = M.F1Score(in_mask=["topics"], average=average, positive="a")
        for expected, actual in sets:
            metric.update_state({"topics": [*expected], "label": "x"}, out(topics=[*actual, *actual]))
        assert metric.result() == pytest.approx(naive(sets, average, "f1"))


def test_labels_are_told_apart_by_kind():
    """The text "1" is not the number, a whole number is one label; null is no label."""

    class Any(sm.DataModel):
        value: int | float | str | bool | None

    metric = M.F1Score(average="micro")
    for expected, actual in ((1, 1.0), ("1", "1"), (True, True), (None, None)):
        metric.update_state({"value": expected}, Any(value=actual))
    assert metric.result() == 1.0
    metric.update_state({"value": "1"}, Any(value=1))
    assert metric.result() == 0.75


def test_a_target_of_several_fields_needs_a_mask():
    """It is an error, not a guess."""
    with pytest.raises(sm.CallError, match=r"has the fields label, note; write in_mask"):
        M.F1Score().update_state({"label": "a", "note": "x"}, out())
    ticket = sm.Input(Ticket)
    both = {"label": "shipping", "note": "x"}
    for make in (
        lambda: M.F1Score().target_check(ticket)(both),
        lambda: M.Recall(["label", "note"]).target_check(ticket),
    ):
        with pytest.raises(sm.CallError, match="write in_mask"):
            make()
    M.F1Score("label").target_check(ticket)(both)
    with pytest.raises(sm.SchemaError, match="Did you mean 'label'"):
        M.F1Score("lable").update_state("a", out())
    with pytest.raises(sm.CallError, match="there is no target"):
        M.Accuracy().update_state(None, out())


# -- by run ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 4))
def test_pass_at_k_is_that_of_all_draws(examples, k):
    """The share of draws of k samples in which one passes, enumerated; examples of too few samples are left out."""
    metric = M.PassAtK(k)
    shares = []
    for number, samples in enumerate(examples):
        for passed in samples:
            metric.update_state(rollout=row(id=str(number), score=float(passed)))
        if len(samples) >= k:
            draws = [*itertools.combinations(samples, k)]
            shares.append(sum(map(any, draws)) / len(draws))
    if shares:
        assert metric.result() == pytest.approx(statistics.fmean(shares))
    else:
        with pytest.raises(sm.CallError, match=f"no example has {k} samples; write samples={k}"):
            metric.result()


@given(st.lists(st.booleans(), min_size=3, max_size=7), st.integers(1, 3))
def test_pass_hat_k_is_that_of_all_draws(samples, k):
    """The share of draws of k samples in which all pass, enumerated."""
    metric = M.PassHatK(k)
    for passed in samples:
        metric.update_state(rollout=row(id="1", score=float(passed)))
    draws = [*itertools.combinations(samples, k)]
    assert metric.result() == pytest.approx(sum(map(all, draws)) / len(draws))


@pytest.mark.parametrize(("beta", "expected"), [(1, 4 / 7), (2, 10 / 16), (0.5, 2.5 / (2.5 + 0.25 * 1 + 2))])
def test_f_beta_weighs_recall(beta, expected):
    """Two hits, two extra and one missed: (1 + b2) * 2 / ((1 + b2) * 2 + b2 * 1 + 2)."""
    metric = M.FBeta(beta, "label", average="binary", positive="a")
    for target, output in ("aa", "aa", "ba", "ba", "ab"):
        metric.update_state(target, out(output))
    assert metric.result() == pytest.approx(expected)
    assert M.FBeta(1).weights == M.F1Score().weights


async def test_pass_at_k_of_an_evaluation():
    """Samples of failed rows did not pass."""
    data = [("a", "a"), ("b", "a"), ("fail", "a")]
    keywords = {"data": data, "reward": sm.rewards.ExactMatch(in_mask=["label"]), "samples": 2}
    assert await measured(M.PassAtK(2), **keywords) == {"pass_at_k": pytest.approx(1 / 3)}
    assert await measured(M.PassAtK(2, skip_failed=True), **keywords) == {"pass_at_k": 0.5}


@given(st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=60), st.floats(0, 1))
def test_a_latency_is_within_one_percent(seconds, quantile):
    """Of the exact quantile: the smallest run that so many do not exceed."""
    metric = M.Latency(quantile)
    for each in seconds:
        metric.update_state(rollout=row(elapsed_s=each))
    exact = sorted(seconds)[max(0, math.ceil(quantile * len(seconds) - 1e-9) - 1)]
    assert metric.result() == pytest.approx(exact, rel=0.0101)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40))
def test_mean_reward_has_the_interval_of_the_normal_approximation(scores):
    """Mean plus or minus 1.96 standard errors; a row without a score is left out."""
    metric = M.MeanReward()
    for score in (*scores, None):
        metric.update_state(rollout=row(score=score))
    assert metric.result() == pytest.approx(statistics.fmean(scores), abs=1e-9)
    half = 1.959964 * statistics.stdev(scores) / math.sqrt(len(scores))
    assert metric.interval() == pytest.approx((metric.result() - half, metric.result() + half), abs=1e-5)
    low, high = metric.interval(level=0.5)
    assert low >= metric.interval()[0] and high <= metric.interval()[1]


def test_an_interval_needs_rows_and_a_level():
    """Nothing is made up."""
    metric = M.MeanReward()
    assert metric.result() == 0.0
    with pytest.raises(sm.CallError, match="0 rows have a score; an interval needs two"):
        metric.interval()
    with pytest.raises(sm.ArgumentError, match="level is 95"):
        metric.interval(95)


def test_used_sums_or_averages():
    """A run whose cost nobody knows is left out."""
    costs = [M.Used("cost_usd"), M.Used("cost_usd", per="evaluation"), M.Used("completion_tokens")]
    for cost in (0.5, None, 1.5):
        for metric in costs:
            metric.update_state(rollout=row(usage=sm.Usage(calls=1, completion_tokens=3, cost_usd=cost)))
    assert [metric.result() for metric in costs] == [1.0, 2.0, 3.0]
    assert [metric.name for metric in costs] == ["cost_usd", "cost_usd", "completion_tokens"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: M.Used("tokens"), "field must be .*, got 'tokens'"),
        (lambda: M.Used("completion_token"), "Did you mean 'completion_tokens'"),
        (lambda: M.Used("calls", per="run"), "per must be .*, got 'run'"),
        (lambda: M.F1Score(average="marco"), "Did you mean 'macro'"),
        (lambda: M.PassAtK(0), "k must be .*, got 0"),
        (lambda: M.PassHatK(0), "PassHatK: k must be .*, got 0"),
        (lambda: M.FBeta(0), "beta must be"),
        (lambda: M.Latency(95), "quantile must be .*, got 95"),
        (lambda: M.Latency("p95"), "quantile must be .*, got 'p95'"),
        (lambda: M.Accuracy(in_maks="x"), "Did you mean 'in_mask'"),
    ],
)
def test_settings_are_checked(make, said):
    """A ConfigError when the metric is made."""
    with pytest.raises(sm.ConfigError, match=said):
        make()


@pytest.mark.parametrize("metric", [M.MeanReward(), M.PassAtK(1), M.Latency(), M.Used("calls")], ids=repr)
def test_what_counts_runs_needs_the_run(metric):
    """An error that names the argument."""
    with pytest.raises(sm.CallError, match="with rollout="):
        metric.update_state("a", out())


# -- in evaluations ----------------------------------------------------------------------------------------------------

DATA = [("a", {"label": "a"}), ("b", {"label": "a"}), ("fail", {"label": "a"}), ("a", {"label": "a"})]


async def test_failed_rows_count_as_wrong_unless_left_out():
    """Accuracy, recall and means; the score of a failure is the mean's, too."""
    found = await measured(
        "accuracy", M.Recall(average="micro"), M.Mean(size), M.MeanReward(), data=DATA, reward="exact_match"
    )
    assert found == {"accuracy": 0.5, "recall": 0.5, "size": 0.75, "mean_reward": 0.5}
    assert await measured(M.Recall(average="micro"), data=DATA) == {"recall": 0.5}
    left = [M.Accuracy(skip_failed=True), M.Recall(average="micro", skip_failed=True), M.MeanReward(skip_failed=True)]
    found = await measured(*left, M.Mean(size, skip_failed=True), data=DATA, reward="exact_match")
    assert found == {name: pytest.approx(2 / 3) for name in ("accuracy", "recall", "mean_reward")} | {"size": 1.0}
    out_of_all = await measured(M.Accuracy(), data=DATA, reward="exact_match", failure_score=None)
    assert out_of_all == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize("mask", ["label", ["label"], "lab*"])
async def test_a_failed_row_is_counted_under_any_mask(mask):
    """There is no output then, and the mask is read by the fields of the target."""
    data = [("a", {"label": "a", "note": "x"}), ("fail", {"label": "a", "note": "y"})]
    found = await measured(M.Accuracy(mask), M.F1Score(mask, average="micro"), M.Recall(mask), data=data)
    assert found == {"accuracy": 0.5, "f1_score": pytest.approx(2 / 3), "recall": 0.5}


async def test_evaluations_side_by_side_do_not_mix():
    """Each counts in a copy; the object given holds the counts of the last that ended."""
    metric, reward = M.MeanReward(), sm.rewards.ExactMatch()
    data = [[("a", {"label": "a" if n < share else "b"}) for n in range(20)] for share in (5, 10, 20)]
    found = await asyncio.gather(*(measured(metric, data=each, reward=reward) for each in data))
    assert [each["mean_reward"] for each in found] == [0.25, 0.5, 1.0]
    assert metric.rows.value == 20
    again = await measured(metric, data=data[1], reward=reward)
    assert again["mean_reward"] == metric.result() == 0.5
    low, high = metric.interval()
    assert low < 0.5 < high


async def test_a_metric_of_ones_own():
    """Several numbers by name, Stats of its own, what it asks for in any order."""

    class Longest(M.Metric):
        initial = {"longest": 0, "ids": ""}

        def update_state(self, rollout, example_id, inputs, y_pred, y_true):
            assert rollout.id == example_id and inputs.question == y_pred["label"]
            self.longest.value = max(self.longest.value, len(y_pred["label"]))
            self.ids.value += example_id

        def result(self):
            return {"longest": self.longest.value, "rows": len(self.ids.value)}

    metric = Longest(name="own")
    for _ in range(2):
        assert await measured(metric, data=[("a", 1), ("bbb", 2)]) == {"own/longest": 3, "own/rows": 2}
    assert metric.ids.value == "01"
    metric.reset_state()
    assert (metric.longest.value, metric.ids.value) == (0, "")
    assert {type(variable) for variable in metric.variables} == {sm.Stat}
    assert metric.trainable_variables == ()


def test_counts_of_any_json():
    """A Stat has the type that its first value has, and any where that is None."""

    class Seen(M.Metric):
        initial = {"any": False, "labels": [], "last": None}

        def update_state(self, y_pred):
            self.any.value = True
            self.labels.value = [*self.labels.value, y_pred["label"]]
            self.last.value = y_pred["label"]

        def result(self):
            return len(self.labels.value)

    metric = Seen()
    metric.update_state(out("b"))
    assert (metric.any.value, metric.labels.value, metric.last.value) == (True, ["b"], "b")


async def test_an_update_that_would_have_to_be_awaited():
    """It is refused before the first row, since nobody would wait for it."""

    class Late(M.Metric):
        async def update_state(self, y_pred):
            raise AssertionError(y_pred)

        def result(self):
            return 0

    with pytest.raises(sm.ArgumentError, match="update_state is async"):
        await measured(Late(), data=DATA)


async def test_mean_says_what_it_may_ask_for():
    """At once; what is not a number is a failure of the row."""
    with pytest.raises(sm.ArgumentError, match=r"metric 'mean' takes a parameter 'predicted'.*rollout"):
        M.Mean(lambda predicted: 1)
    with pytest.raises(sm.ArgumentError, match="write a function"):
        M.Mean(7)
    with pytest.raises(sm.CallError, match="metric 'mean' is 'x'; it must be a finite number"):
        M.Mean(lambda: "x").update_state(None, out())
    found = await measured(M.Mean(lambda rollout, y_true: rollout.elapsed_s * 0 + y_true, name="m"), data=[("a", 3)])
    assert found == {"m": 3.0}
    metric = M.Mean(lambda y_pred: sm.Feedback(None if y_pred["label"] == "a" else 0.5))
    for label in "abb":
        metric.update_state(None, out(label))
    assert (metric.result(), metric.rows.value) == (0.5, 2)


async def test_names_lead_to_metrics():
    """In snake case; a misspelt one is guessed, before anything runs."""
    for name in ("accuracy", "precision", "recall", "f1_score", "mean_reward", "latency"):
        assert metrics_from([name])[0].name == name
    with pytest.raises(sm.TrainerError, match=r"name of a metric .*got 'acuracy'.*Did you mean 'accuracy'"):
        await measured("acuracy", data=DATA)
    with pytest.raises(sm.ArgumentError, match="two metrics are called 'latency'"):
        await measured(M.Latency(0.5), M.Latency(0.9), data=DATA)


# -- copies and files --------------------------------------------------------------------------------------------------

METRICS = [
    M.Mean(size),
    M.MeanReward(skip_failed=True),
    M.Accuracy(["label"]),
    M.Precision("label", average="weighted"),
    M.Recall("label", average="binary", positive="a"),
    M.F1Score("label"),
    M.FBeta(2, "label"),
    M.PassAtK(2, threshold=0.5, name="pass_at_2"),
    M.PassHatK(2, threshold=0.5),
    M.Latency(0.9),
    M.Used("calls", per="evaluation"),
    M.Calibration("confidence", bins=5),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
def test_metrics_are_saved_and_copied_with_their_counts(metric):
    """Files, clones and pickles go on counting where the metric was."""

    class Sure(Ticket):
        confidence: float

    for n in range(4):
        output = Sure(label="ab"[n % 2], topics=[], confidence=0.9).to_json_data_model()
        metric.update_state("a", output, row(id=str(n // 2), score=float(n % 2), elapsed_s=n + 0.5))
    text, expected = sm.dumps(metric), metric.result()
    copies = [sm.loads(text), metric.clone(), pickle.loads(pickle.dumps(metric))]
    for copy in copies:
        assert type(copy) is type(metric) and copy is not metric
        assert (repr(copy), copy.name, copy.result(), sm.dumps(copy)) == (repr(metric), metric.name, expected, text)
        copy.reset_state()
        assert sm.dumps(copy) != text
        copy.update_state("a", out("a"), row(id="9", score=1.0))
    assert (sm.dumps(metric), metric.result()) == (text, expected)


async def test_a_confidence_that_no_output_has_is_an_error():
    """Before the first call: without rows to count, a misspelt field would be perfectly calibrated."""

    class Sure(sm.DataModel):
        choice: str
        confidence: float

    rows = [(Sure(choice="a", confidence=0.9), {"choice": "a"})]
    options = {"reward": lambda outputs: 1.0, "progress": False}
    evaluation = await sm.evaluate(sm.Identity(), rows, metrics=["calibration"], **options)
    assert evaluation.metrics["calibration"] == pytest.approx(0.1)
    with pytest.raises(sm.SchemaError, match="Did you mean 'confidence'"):
        await sm.evaluate(sm.Identity(), rows, metrics=[M.Calibration("confidences")], **options)


def test_every_metric_is_documented():
    """Arguments, an example, and the source of the idea."""
    public = {value for value in vars(M).values() if isinstance(value, type) and issubclass(value, M.Metric)}
    public = {cls for cls in public if not cls.__name__.startswith("_")}
    assert {type(metric) for metric in METRICS} == public - {M.Metric}
    for cls in public:
        assert re.search(r"Args:.*Example:.*Source:", cls.__doc__, re.DOTALL), cls


def test_a_program_tells_its_metrics_apart():
    """`metrics` and `metrics_variables` list them; what they and an optimizer keep is not among `variables`."""

    class Watched(sm.Module):
        def __init__(self):
            super().__init__()
            self.prompt = sm.Param("x")
            self.certain = M.Mean(size)
            self.seen = sm.Stat(0, name="seen")
            self.below = sm.Module()
            self.below.others = [M.Accuracy(), sm.optimizers.RandomFewShot(), self.certain]

    watched = Watched()
    accuracy = watched.below.others[0]
    assert watched.metrics == (watched.certain, accuracy)
    assert watched.metrics_variables == (*watched.certain.variables, *accuracy.variables)
    assert watched.variables == (watched.prompt, watched.seen)
    assert watched.trainable_variables == (watched.prompt,)
    assert watched.non_trainable_variables == (watched.seen,)
    assert watched.get_variable("seen") is watched.seen
    assert len(accuracy.variables) == 2
    with pytest.raises(sm.ConfigError, match="metrics"):
        watched.metrics = ()

"""Metrics: modules that are fed row by row, and keep what they count in `Stat` Variables."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack, cast

from synmod import errors, leaves, scope, tree
from synmod.leaves import Json, check_choice, check_int, check_number
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

from .rewards import REWARD_ARGUMENTS, resolve_name
from .rollouts import ExampleResult
from .targets import Compares, check_one_field, equal_fields, fields_to_compare, normal, target_checker

METRIC_ARGUMENTS: Final = ("inputs", "outputs", "target", "example_id", "rollout")
"""The names of the parameters that `update_state` may have."""
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class MetricOptions(ModuleOptions, total=False):
    """Keywords of a metric, beside those of every module."""

    skip_failed: bool


@register_own(public=False)
class Metric(Module):
    """Counts something over the rows of an evaluation: derive from it, write `update_state` and `result`.

    Rows are fed in the order of the inputs. `update_state` takes by parameter name `y_true`, `y_pred` and `rollout`
    (the `sm.ExampleResult` of the row, with `score`, `usage`, `elapsed_s`, `sample` and `error`), as well as `inputs`
    and `example_id`. The output of a failed row is None, which counts as wrong.

    An evaluation counts in a copy and leaves the final state here, so that evaluations side by side do not mix.

    Args:
        skip_failed: Whether failed rows are left out.
        **options: Those of `Module`.

    Attributes:
        initial: The initial values of the Stat Variables, by name; each is an attribute of the metric, of the type of
            its value; None for any JSON.
        in_mask: The fields that count; None for those of the target.

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> class Longest(Metric):
        ...     initial = {"longest": 0}
        ...     def update_state(self, y_pred):
        ...         self.longest.value = max(self.longest.value, len(y_pred["answer"]))
        ...     def result(self):
        ...         return self.longest.value
        >>> rows = [Answer(answer="Paris"), Answer(answer="Rome")]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=[Longest()])).metrics)
        {'longest': 5}

    Source: Keras `Metric`; differs: state is JSON that saves, failed rows are seen.
    """

    initial: ClassVar[Mapping[str, Json]] = MappingProxyType({})
    in_mask: Any = None
    _compares: Compares = None
    _role = "metric"

    update_state: Callable[..., None]
    """Counts one row; of a wide type, so that a method of any signature may stand here."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> tree.Variable: ...

    def __init__(self, *, skip_failed: bool = False, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.skip_failed = skip_failed
        for name, value in self.initial.items():
            schema = {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}
            self.add_variable(value, schema=schema, name=name, type=tree.Stat)

    def target_check(self, outputs: Any) -> Callable[[Any], None] | None:
        """Return a function that raises for a target which no output can match; None where any target may do.

        Args:
            outputs: The nest of symbols that the program returns; None where it is not known.

        Raises:
            SchemaError: The mask names nothing; has the fields and 'Did you mean'.
            CallError: It counts one label, and the mask leaves several fields.
        """
        return target_checker(self.name, outputs, self.in_mask, compares=self._compares)

    def result(self) -> Any:
        """Return the number so far, or several by name."""
        raise NotImplementedError(f"{type(self).__name__} defines no `result`.")

    def reset_state(self) -> None:
        """Set every Stat to its initial value."""
        for name, value in self.initial.items():
            getattr(self, name).value = value


class _Average(Metric):
    """The mean of one number per row."""

    initial = MappingProxyType({"total": 0.0, "rows": 0})

    def add(self, value: float) -> None:
        """Count one row."""
        self.total.value += value
        self.rows.value += 1

    def result(self) -> float:
        """Return the mean so far, 0.0 of nothing."""
        return self.total.value / self.rows.value if self.rows.value else 0.0


def _row(metric: Metric, rollout: Any) -> Any:
    """Return the result of a row (CallError without one)."""
    if rollout is None:
        raise errors.CallError(
            f"{metric.name}: it counts runs; call update_state with rollout=, the result of the row."
        )
    return rollout


@register_own(public=False)
class Mean(_Average):
    """The mean of what a function returns; a failed row counts 0, one with nothing to score is left out.

    Args:
        fn: A plain function that takes by parameter name `y_true`, `y_pred`, `inputs`, `example_id` or `rollout`,
            and returns a number, a bool or a Feedback. (An async one is a metric as it is: `metrics=[fn]`.)
        **options: Those of `Metric`; the default of `name` is the name of the function.

    Raises:
        ArgumentError: `fn` cannot be called, or takes something else ('Did you mean').

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> def words(y_pred):
        ...     return len(y_pred["answer"].split())
        >>> rows = [Answer(answer="in Paris"), Answer(answer="Rome")]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=[Mean(words)])).metrics)
        {'words': 1.5}

    Source: Keras `MeanMetricWrapper`.
    """

    def __init__(self, fn: Callable[..., Any], **options: Unpack[MetricOptions]) -> None:
        name = getattr(fn, "__name__", "")
        if name.isidentifier():
            options.setdefault("name", name)
        super().__init__(**options)
        scope.BoundReward(
            fn, METRIC_ARGUMENTS, what=f"metric {self.name!r}"
        )  # a wrong parameter is an error here, not at a row
        self.fn = fn

    def update_state(self, y_true: Any, y_pred: Any, rollout: Any = None, **row: Any) -> None:
        """Count one row."""
        if rollout is not None and rollout.error is not None:
            return self.add(0.0)
        arguments = {"inputs": None, "example_id": None, **row, "outputs": y_pred, "target": y_true, "rollout": rollout}
        bound = scope.BoundReward(self.fn, METRIC_ARGUMENTS, what=f"metric {self.name!r}")
        score = bound.feedback(bound.call(arguments)).score
        return None if score is None else self.add(score)


@register_own(public=False)
class MeanReward(Metric):
    """The mean score of the rows, and how sure it is; a failed row has the failure score of the evaluation.

    Args:
        **options: Those of `Metric`.

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> metric = MeanReward()
        >>> rows = [(Answer(answer="a"), answer) for answer in "aaab"]
        >>> _ = sm.run(sm.evaluate(sm.Identity(), rows, reward="exact_match", metrics=[metric]))
        >>> metric.result(), [round(end, 2) for end in metric.interval()]
        (0.75, [0.26, 1.24])

    Source: Keras `Mean`, the running variance of Welford 1962.
    """

    initial = MappingProxyType({"rows": 0, "mean": 0.0, "squares": 0.0})

    def update_state(self, y_true: Any = None, y_pred: Any = None, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count the score of one row; one without is left out."""
        score = _row(self, rollout).score
        if score is not None:
            self.rows.value += 1
            off = score - self.mean.value
            self.mean.value += off / self.rows.value
            self.squares.value += off * (score - self.mean.value)

    def result(self) -> float:
        """Return the mean so far, 0.0 of nothing."""
        return self.mean.value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the true mean lies, by the normal approximation: for some 30 rows or more.

        Args:
            level: How sure it is to be there, between 0 and 1.

        Raises:
            ArgumentError: Another level.
            CallError: Fewer than two rows have a score.
        """
        from statistics import NormalDist

        rows = self.rows.value
        if not 0 < level < 1:
            raise errors.ArgumentError(
                f"{self.name}: level is {level!r:.100}; write a number between 0 and 1, such as 0.95."
            )
        if rows < 2:
            raise errors.CallError(f"{self.name}: {rows} rows have a score; an interval needs two at least.")
        half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(self.squares.value / (rows - 1) / rows)
        return self.mean.value - half, self.mean.value + half


@register_own(public=False)
class Accuracy(_Average):
    """The share of rows in which all fields of the target are equal in the output.

    Args:
        in_mask: The fields that count, as in `sm.ops.in_mask`; None for those of the target.
        **options: Those of `Metric`.

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> rows = [(Answer(answer="a"), "a"), (Answer(answer="b"), "a")]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=["accuracy"])).metrics)
        {'accuracy': 0.5}

    Source: Keras `Accuracy`.
    """

    _compares = "exactly"

    def __init__(self, in_mask: Any = None, **options: Unpack[MetricOptions]) -> None:
        super().__init__(**options)
        self.in_mask = in_mask

    def update_state(self, y_true: Any, y_pred: Any, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count one row."""
        expected, actual = fields_to_compare(self.name, y_true, y_pred, self.in_mask)
        self.add(all(equal_fields(expected, actual).values()))


# -- by label ----------------------------------------------------------------------------------------------------------


class _ByLabel(Metric):
    """Hits, false positives and misses of each label: a score is hits / (hits + a * extra + b * missed)."""

    initial = MappingProxyType({"hits": {}, "extra": {}, "missed": {}})
    _compares = "one label"
    weights: tuple[float, float]
    """The weights of an extra and of a missed label, a hit being 1: a and b."""

    def __init__(
        self,
        in_mask: Any = None,
        average: Literal["macro", "micro", "weighted", "binary"] = "macro",
        positive: Json = True,
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(**options)
        self.in_mask, self.positive = in_mask, positive
        words, label = ("macro", "micro", "weighted", "binary"), f"{type(self).__name__}: average"
        self.average = check_choice(label, average, words, error=errors.ConfigError)

    def update_state(self, y_true: Any, y_pred: Any, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count the labels of one row."""
        target, outputs = fields_to_compare(self.name, y_true, y_pred, self.in_mask)
        check_one_field(self.name, target)
        expected, actual = (_labels(fields.get(name)) for fields in (target, outputs) for name in target)
        for counts, labels in (
            (self.hits, expected & actual),
            (self.extra, actual - expected),
            (self.missed, expected - actual),
        ):
            if labels:
                counts.value = {**counts.value, **{label: counts.value.get(label, 0) + 1 for label in labels}}

    def result(self) -> float:
        """Return the average over the labels seen so far, 0.0 of nothing."""
        hits, extra, missed = self.hits.value, self.extra.value, self.missed.value
        labels = _labels(self.positive) if self.average == "binary" else sorted({*hits, *extra, *missed})
        counts = [(hits.get(label, 0), extra.get(label, 0), missed.get(label, 0)) for label in labels]
        if self.average == "micro":
            counts = [(sum(hits.values()), sum(extra.values()), sum(missed.values()))]
        shares = [hit + miss if self.average == "weighted" else 1 for hit, _, miss in counts]
        a, b = self.weights
        scores = [hit and hit / (hit + a * more + b * miss) for hit, more, miss in counts]
        parts = (share * score for share, score in zip(shares, scores, strict=True))
        return math.fsum(parts) / sum(shares) if any(shares) else 0.0


def _labels(json: Any) -> frozenset[str]:
    """Return the labels that a field holds, as texts: those of a list, or its one value; none for null."""
    labels = json if leaves.is_array(json) else [] if json is None else [json]
    return frozenset(leaves.dump_json(normal(label)) for label in labels)


@register_own(public=False)
class Precision(_ByLabel):
    """The share of predicted labels that are right, over a closed field, or a list field as a set.

    Args:
        in_mask: The field; None where the target has one only.
        average: `"macro"`: mean over the labels; `"micro"`: over all together; `"weighted"`: mean by how often a label
            is expected; `"binary"`: the label `positive` alone.
        positive: The label of `"binary"`.
        **options: Those of `Metric`.

    Raises:
        ConfigError: Another word for `average`.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     spam: bool
        >>> rows = [(Mail(spam=True), True), (Mail(spam=True), False), (Mail(spam=False), True)]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=[Precision(average="binary")])).metrics)
        {'precision': 0.5}

    Source: Keras `Precision`, scikit-learn's averages.
    """

    weights = (1.0, 0.0)


@register_own(public=False)
class Recall(_ByLabel):
    """The share of expected labels that were predicted, over a closed field, or a list field as a set.

    Args:
        in_mask: The field; None where the target has one only.
        average: `"macro"`, `"micro"`, `"weighted"` or `"binary"`, as for `Precision`.
        positive: The label of `"binary"`.
        **options: Those of `Metric`.

    Raises:
        ConfigError: Another word for `average`.

    Example:
        >>> import synmod as sm
        >>> class Topics(sm.DataModel):
        ...     topics: list[str]
        >>> rows = [(Topics(topics=["a"]), ["a", "b"])]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=[Recall(average="micro")])).metrics)
        {'recall': 0.5}

    Source: Keras `Recall`, scikit-learn's averages.
    """

    weights = (0.0, 1.0)


@register_own(public=False)
class F1Score(_ByLabel):
    """The harmonic mean of precision and recall, over a closed field, or a list field as a set.

    Args:
        in_mask: The field; None where the target has one only.
        average: `"macro"`, `"micro"`, `"weighted"` or `"binary"`, as for `Precision`.
        positive: The label of `"binary"`.
        **options: Those of `Metric`.

    Raises:
        ConfigError: Another word for `average`.

    Example:
        >>> import synmod as sm
        >>> class Team(sm.DataModel):
        ...     team: str
        >>> rows = [(Team(team="billing"), "billing"), (Team(team="billing"), "shipping")]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=[F1Score()])).metrics)
        {'f1_score': 0.3333333333333333}

    Source: Keras `F1Score`, scikit-learn's averages.
    """

    weights = (0.5, 0.5)


@register_own(public=False)
class FBeta(_ByLabel):
    """The weighted harmonic mean of precision and recall, over a closed field, or a list field as a set.

    Args:
        beta: How many times as important recall is as precision; 1 is `F1Score`.
        in_mask: The field; None where the target has one only.
        average: `"macro"`, `"micro"`, `"weighted"` or `"binary"`, as for `Precision`.
        positive: The label of `"binary"`.
        **options: Those of `Metric`.

    Raises:
        ConfigError: `beta` is not a number above 0, or another word for `average`.

    Example:
        >>> import synmod as sm
        >>> class Team(sm.DataModel):
        ...     team: str
        >>> rows = [(Team(team="billing"), "billing"), (Team(team="billing"), "shipping")]
        >>> dict(sm.run(sm.evaluate(sm.Identity(), rows, metrics=[FBeta(2, average="micro")])).metrics)
        {'f_beta': 0.5}

    Source: van Rijsbergen's F measure, scikit-learn's `fbeta_score`.
    """

    def __init__(
        self,
        beta: float,
        in_mask: Any = None,
        average: Literal["macro", "micro", "weighted", "binary"] = "macro",
        positive: Json = True,
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(in_mask, average, positive, **options)
        self.beta = check_number("FBeta: beta", beta, 1e-9, 1e9, error=errors.ConfigError)
        self.weights = 1 / (1 + beta**2), beta**2 / (1 + beta**2)


# -- by run ------------------------------------------------------------------------------------------------------------


@register_own(public=False)
class PassAtK(Metric):
    """The chance that one of `k` samples of an example passes, without bias, as the mean over the examples.

    Of n samples of which c pass it is 1 - C(n - c, k) / C(n, k). Samples of one example follow each other.

    Args:
        k: How many samples one may draw.
        threshold: The score at which a sample passes.
        **options: Those of `Metric`.

    Raises:
        ConfigError: `k` is not a count.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> rows = [(Answer(answer="a"), "a"), (Answer(answer="b"), "a")]
        >>> evaluation = sm.evaluate(sm.Identity(), rows, reward="exact_match", metrics=[PassAtK(2)], samples=3)
        >>> dict(sm.run(evaluation).metrics)
        {'pass_at_k': 0.5}

    Source: Chen et al. 2021 (Codex).
    """

    initial = MappingProxyType({"total": 0.0, "examples": 0, "last": "", "samples": 0, "passed": 0})

    def __init__(self, k: int, threshold: float = 1.0, **options: Unpack[MetricOptions]) -> None:
        super().__init__(**options)
        self.k, self.threshold = check_int(f"{type(self).__name__}: k", k, error=errors.ConfigError), threshold

    def update_state(self, y_true: Any = None, y_pred: Any = None, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count one sample."""
        row = _row(self, rollout)
        if row.id != self.last.value:
            self.total.value, self.examples.value = self._with_last()
            self.last.value, self.samples.value, self.passed.value = row.id, 0, 0
        self.samples.value += 1
        self.passed.value += row.error is None and row.score is not None and row.score >= self.threshold

    def _with_last(self) -> tuple[float, int]:
        """Return sum and number of examples, with the one that is being counted; one of too few samples is left out."""
        n, passed = self.samples.value, self.passed.value
        if n < self.k:
            return self.total.value, self.examples.value
        return self.total.value + self.chance(n, passed), self.examples.value + 1

    def chance(self, n: int, passed: int) -> float:
        """Return the chance that one of `k` of `n` samples passes."""
        return 1 - math.comb(n - passed, self.k) / math.comb(n, self.k)

    def result(self) -> float:
        """Return the mean over the examples with at least `k` samples (CallError without any)."""
        total, examples = self._with_last()
        if not examples:
            raise errors.CallError(f"{self.name}: no example has {self.k} samples; write samples={self.k} in evaluate.")
        return total / examples


@register_own(public=False)
class PassHatK(PassAtK):
    """The chance that all of `k` samples of an example pass, without bias, as the mean over the examples.

    Of n samples of which c pass it is C(c, k) / C(n, k). It is how reliable a program is, where `PassAtK` is how good
    its best sample is.

    Args:
        k: How many samples must all pass.
        threshold: The score at which a sample passes.
        **options: Those of `Metric`.

    Raises:
        ConfigError: `k` is not a count.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> rows = [(Answer(answer="a"), "a"), (Answer(answer="b"), "a")]
        >>> evaluation = sm.evaluate(sm.Identity(), rows, reward="exact_match", metrics=[PassHatK(2)], samples=3)
        >>> dict(sm.run(evaluation).metrics)
        {'pass_hat_k': 0.5}

    Source: tau-bench (Yao et al. 2024).
    """

    def chance(self, n: int, passed: int) -> float:
        """Return the chance that all of `k` of `n` samples pass."""
        return math.comb(passed, self.k) / math.comb(n, self.k)


_GROWTH: Final = 1.02


@register_own(public=False)
class Latency(Metric):
    """A quantile of the seconds per run, within one percent.

    Args:
        quantile: From 0 to 1: 0.5 for the median, 0.95 for the time that one run in twenty exceeds.
        **options: Those of `Metric`.

    Raises:
        ConfigError: `quantile` is not a number from 0 to 1.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> evaluation = sm.run(sm.evaluate(sm.Identity(), [Answer(answer="a")], metrics=[Latency(0.95)]))
        >>> 0 < evaluation.metrics["latency"] < 1
        True

    Source: DDSketch (Masson et al. 2019): counts of buckets whose bounds grow by two percent.
    """

    initial = MappingProxyType({"buckets": {}})

    def __init__(self, quantile: float = 0.5, **options: Unpack[MetricOptions]) -> None:
        super().__init__(**options)
        self.quantile = check_number("Latency: quantile", quantile, 0, 1, error=errors.ConfigError)

    def update_state(self, y_true: Any = None, y_pred: Any = None, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count one run."""
        bucket = str(math.ceil(math.log(max(_row(self, rollout).elapsed_s, 1e-6), _GROWTH)))
        counts = self.buckets.value
        self.buckets.value = {**counts, bucket: counts.get(bucket, 0) + 1}

    def result(self) -> float:
        """Return the quantile so far, 0.0 of nothing."""
        counts = sorted((int(bucket), count) for bucket, count in self.buckets.value.items())
        wanted_rank, rank = self.quantile * sum(count for _, count in counts), 0
        for bucket, count in counts:
            rank += count
            if rank >= wanted_rank:
                return 2 * _GROWTH**bucket / (_GROWTH + 1)
        return 0.0


@register_own(public=False)
class Used(_Average):
    """The usage of the model calls of program and reward: tokens, calls, cost.

    Args:
        field: A field of `sm.Usage`, such as `"completion_tokens"` or `"cost_usd"`.
        per: `"row"` for the mean, `"evaluation"` for the sum. A run of unknown cost is left out.
        **options: Those of `Metric`; the default of `name` is the field.

    Raises:
        ConfigError: An unknown field ('Did you mean'), or another word for `per`.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> rows = [Answer(answer="a"), Answer(answer="b")]
        >>> program = sm.Generator(Answer, language_model="embedded/nearest")
        >>> dict(sm.run(sm.evaluate(program, rows, metrics=[Used("calls", per="evaluation")])).metrics)
        {'calls': 2.0}

    Source: DSPy's usage tracker.
    """

    def __init__(self, field: str, per: Literal["row", "evaluation"] = "row", **options: Unpack[MetricOptions]) -> None:
        names = [item.name for item in fields(scope.Usage) if item.name != "estimated"]
        options.setdefault("name", check_choice("Used: field", field, names, error=errors.ConfigError))
        super().__init__(**options)
        self.field, self.per = field, check_choice("Used: per", per, ("row", "evaluation"), error=errors.ConfigError)

    def update_state(self, y_true: Any = None, y_pred: Any = None, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count one run."""
        used = getattr(_row(self, rollout).usage, self.field)
        if used is not None:
            self.add(used)

    def result(self) -> float:
        """Return the mean or the sum so far."""
        return super().result() if self.per == "row" else self.total.value


@register_own(public=False)
class Calibration(Metric):
    """The expected calibration error: how far a confidence in the outputs is from how often they are right.

    Rows are put into bins of equal width by their confidence; of each bin the mean score is compared with the mean
    confidence, and the differences are averaged over the rows. 0 is perfect. Rows without a score or a confidence are
    left out.

    Args:
        field: The field of the outputs that holds the confidence, from 0 to 1.
        bins: How many bins.
        **options: Those of `Metric`.

    Raises:
        ConfigError: `bins` is not a count.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     confidence: float
        >>> rows = [Answer(confidence=0.9), Answer(confidence=0.7)]
        >>> right = lambda outputs: 1.0
        >>> evaluation = sm.run(sm.evaluate(sm.Identity(), rows, reward=right, metrics=[Calibration()]))
        >>> round(evaluation.metrics["calibration"], 3)
        0.2

    Source: Naeini et al. 2015, Guo et al. 2017.
    """

    initial: ClassVar[Mapping[str, Json]] = {"rows": {}}

    def __init__(self, field: str = "confidence", bins: int = 10, **options: Unpack[MetricOptions]) -> None:
        super().__init__(**options)
        self.field = field
        self.bins = leaves.check_int("Calibration: bins", bins, error=errors.ConfigError)

    def target_check(self, outputs: Any) -> None:
        target_checker(self.name, outputs, [self.field])

    def update_state(self, y_true: Any = None, y_pred: Any = None, rollout: Any = None) -> None:  # noqa: ARG002  # by name
        """Count one run."""
        score = _row(self, rollout).score
        confidence = None if y_pred is None else y_pred.get(self.field)
        if score is None or confidence is None:
            return
        place = str(min(int(confidence * self.bins), self.bins - 1))
        count, scores, confidences = self.rows.value.get(place, (0, 0.0, 0.0))
        self.rows.value = {**self.rows.value, place: [count + 1, scores + score, confidences + confidence]}

    def result(self) -> float:
        """Return the error so far; 0 without rows."""
        bins = [*self.rows.value.values()]
        total = sum(count for count, _, _ in bins)
        return sum(abs(scores - confidences) for _, scores, confidences in bins) / total if total else 0.0


_NAMED: Final[dict[str, type[Metric]]] = {
    leaves.snake_case(kind.__name__): kind
    for kind in (MeanReward, Accuracy, Precision, Recall, F1Score, Latency, Calibration)
}


def metrics_from(metrics: Any) -> list[Any]:
    """Return metrics, with those named by `"accuracy"` and the like, or by registered ids, in place of their names.

    Raises:
        TrainerError: An unknown name ('Did you mean').
        ArgumentError: It is not a list, or it has a class.

    Example:
        >>> metrics_from(["f1_score"])
        [F1Score()]

    Source: Keras `metrics.get`.
    """
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise errors.ArgumentError(f"metrics is a {type(metrics).__name__}; give a list of them: metrics=[...].")
    return [resolve_name(metric, _NAMED, "metric") for metric in cast("Iterable[Any]", metrics)]


# -- the metrics of an evaluation --------------------------------------------------------------------------------------


class Metrics:
    """The metrics of one evaluation, by name.

    Functions are called inside each run, and the mean of what they return counts; objects are fed row by row, in the
    order of the inputs. A module counts in a copy, so that evaluations side by side do not mix.

    Args:
        metrics: Those of `sm.metrics` or their names, functions that return a number, plain or async, or objects with
            `update_state`, `result()` and `reset_state()`. Functions and `update_state` take by parameter name what
            they need, the latter also `rollout`, the result of the row.

    Attributes:
        metrics: The metrics.
        functions: Those that are called inside each run.

    Raises:
        TrainerError: An unknown name.
        ArgumentError: It is not a list of them, one is neither or takes something else, or two have one name.
    """

    def __init__(self, metrics: Iterable[Any]) -> None:
        self.metrics = metrics_from(metrics)
        self.functions: list[Any] = []
        self._bound: dict[str, Any] = {}
        """A caller of each function, or a feeder of each object."""
        self._objects: dict[str, Any] = {}
        self._sums: dict[str, float] = {}
        self._rows = 0
        self._faults: dict[str, Exception | None] = {}
        """The first error of each object; None for one that has counted a run."""
        for metric in self.metrics:
            name = str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))
            if name in self._bound:
                raise errors.ArgumentError(f"two metrics are called {name!r}; give one of them another name.")
            if callable(getattr(metric, "update_state", None)):
                counting: Any = metric.clone() if isinstance(metric, Module) else metric
                counting.reset_state()
                self._objects[name] = counting
                self._bound[name] = row_feeder(counting, name)
            else:
                self.functions.append(metric)
                self._sums[name] = 0.0
                self._bound[name] = scope.BoundReward(metric, REWARD_ARGUMENTS[:-1], what=f"metric {name!r}")

    async def measure(self, arguments: Mapping[str, Any]) -> dict[str, float]:
        """Return the value of each function for one output.

        Args:
            arguments: A value for each name of `REWARD_ARGUMENTS`.

        Raises:
            CallError: One returned something other than a finite number.
            Exception: Any error of a function.
        """
        values: dict[str, float] = {}
        for name in self._sums:
            score = (await self._bound[name](**arguments)).score
            if score is None:
                raise errors.CallError(f"metric {name!r} has no score; a metric is a finite number, or a bool.")
            values[name] = score
        return values

    def update(self, result: ExampleResult, values: Mapping[str, float]) -> None:
        """Count one run; a function counts 0 where the program failed.

        Raises:
            Exception: The first error of an object; the others have counted the run.
        """
        failure: Exception | None = None
        self._rows += 1
        for name in self._sums:
            self._sums[name] += values.get(name, 0.0)
        for name in self._objects:
            try:
                self._bound[name](result)
                self._faults[name] = None
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                self._faults.setdefault(name, error)
                failure = failure or error
        if failure is not None:
            raise failure

    def results(self) -> tuple[dict[str, float], Exception | None]:
        """Return the value of each metric that has one, and the first error of the others.

        The modules among the metrics hold the counts afterwards. A metric that could count no run has no value.
        """
        values: dict[str, float] = {}
        failure: Exception | None = None
        for name, metric in zip(self._bound, self.metrics, strict=True):
            try:
                counting = self._objects.get(name)
                if counting is not None and counting is not metric:
                    tree.update(metric, tree.state(counting))
                value: Any = self._sums[name] / (self._rows or 1) if counting is None else counting.result()
            except Exception as error:  # noqa: BLE001  # of a part of the data it may have none
                failure = failure or self._faults.get(name) or error
                continue
            if fault := self._faults.get(name):
                failure = failure or fault
                continue
            several = leaves.is_object(value)
            values |= {f"{name}/{key}": part for key, part in value.items()} if several else {name: value}
        return values, failure


def row_feeder(metric: Any, name: str) -> Callable[[ExampleResult], None]:
    """Return a function that feeds an object with one result, or skips it: it failed, and the object leaves such out.

    Args:
        metric: A `Metric`, or any object with `update_state`.
        name: Its name in messages.

    Raises:
        ArgumentError: `update_state` takes something else, or is async.
    """
    if inspect.iscoroutinefunction(metric.update_state):
        raise errors.ArgumentError(
            f"metric {name!r}: update_state is async; write a plain one, or an async function in place of the metric."
        )
    update = scope.BoundReward(metric.update_state, METRIC_ARGUMENTS, what=f"metric {name!r}")

    def feed(result: ExampleResult) -> None:
        if result.error is None or not getattr(metric, "skip_failed", False):
            fed = {"inputs": result.inputs, "outputs": result.outputs, "target": result.target}
            update.call({**fed, "example_id": result.id, "rollout": result})

    return feed

"""Rewards: what each scores and criticises, masks that are checked, one binding by name, copies and files."""

import asyncio
import datetime as dt
import pickle
import re
import traceback
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

import synmod as sm
from synmod.data import RUBRICS
from synmod.scope import BoundReward
from synmod.testing import FunctionLM, ScriptedLM
from synmod.train.rewards import REWARD_ARGUMENTS, reward_from

R = sm.rewards


class Query(sm.DataModel):
    question: str


class Ticket(sm.DataModel):
    """A label, and what came before it."""

    thinking: str = ""
    label: str
    total: float = 0.0


class Echo(sm.Module):
    """Answers with the question as the label."""

    async def call(self, inputs: Query) -> Ticket:
        return Ticket(thinking="hm", label=inputs.question)


class Silent(sm.Module):
    """As Echo, but declares nothing."""

    async def call(self, inputs):
        return Ticket(thinking="hm", label=inputs["question"])


@sm.register(package="rewards_tests")
def brief(outputs):
    """A function of one's own."""
    return len(outputs["label"]) <= 3


async def feedback_of(reward, y_true, y_pred, **offered):
    """What a scorer gets of a reward."""
    given = {"target": y_true, "outputs": y_pred, "inputs": None, "example_id": "0", "extra": {}, **offered}
    return await BoundReward(reward, REWARD_ARGUMENTS)(**given)


def out(label="billing", **fields):
    """An output of the program."""
    return Ticket(label=label, **fields).to_json_data_model()


# -- fields and masks --------------------------------------------------------------------------------------------------


async def test_the_fields_of_the_target_count_and_no_others():
    """What only the output has, such as its thinking, does not."""
    assert (await feedback_of(R.ExactMatch(), {"label": "billing"}, out(thinking="so"))).score == 1.0
    feedback = await feedback_of(R.ExactMatch(), Ticket(label="shipping", thinking="no"), out())
    assert feedback.score == 0.0
    assert feedback.critique == 'thinking: expected "no", got ""\nlabel: expected "shipping", got "billing"'


@pytest.mark.parametrize("masks", [{"in_mask": ["label"]}, {"out_mask": ["thinking", "total"]}, {"in_mask": "lab*"}])
async def test_masks_choose_fields_of_target_and_output(masks):
    """The same patterns as of `sm.ops.in_mask`; a plain label then stands for the one field that is left."""
    assert (await feedback_of(R.ExactMatch(**masks), Ticket(label="billing", thinking="x"), out())).score == 1.0
    assert (await feedback_of(R.ExactMatch(**masks), {"label": "billing", "thinking": "x"}, out())).score == 1.0
    assert (await feedback_of(R.ExactMatch(**masks), "billing", out())).score == 1.0
    assert (await feedback_of(R.ExactMatch(**masks), "shipping", out())).score == 0.0


async def test_a_label_that_could_stand_for_several_fields_is_an_error():
    """And so is a target of which no field counts: neither is ever a score."""
    with pytest.raises(sm.CallError, match=r"fields thinking, label, total; write in_mask"):
        await feedback_of(R.ExactMatch(), "billing", out())
    with pytest.raises(sm.CallError, match="no field of the target counts; it has note"):
        await feedback_of(R.ExactMatch(in_mask=["label"]), {"note": 1}, out())
    with pytest.raises(sm.CallError, match="the output is a list"):
        await feedback_of(R.ExactMatch(), {"label": "x"}, [out()])


@pytest.mark.parametrize("program", [Echo(), Silent()], ids=["declared", "seen at the first row"])
@pytest.mark.parametrize("masks", [{"in_mask": ["lable"]}, {"out_mask": ["lable"]}])
async def test_a_misspelt_mask_ends_the_evaluation_with_the_fields(program, masks):
    """A SchemaError: elsewhere it compares two empty objects and scores 1.0."""
    rows = [(Query(question="a"), {"label": "a"})] * 3
    with pytest.raises(sm.SchemaError, match=r"'thinking', 'label', 'total'.*Did you mean 'label'"):
        await sm.evaluate(program, rows, reward=R.ExactMatch(**masks))
    weighted = R.Weighted({"a": (1, R.TokenF1(**masks)), "b": (1, brief)})
    with pytest.raises(sm.SchemaError, match="token_f1: The mask 'lable' matches nothing"):
        await sm.evaluate(program, rows, reward=weighted)


async def test_a_declared_output_is_checked_before_the_first_call():
    """No row runs, whether the mask of the reward or that of a metric is wrong."""
    program = Echo()
    for judged in (
        {"reward": R.ExactMatch(in_mask=["lable"])},
        {"metrics": [sm.metrics.Accuracy(["lable"])]},
        {"reward": "exact_match", "metrics": [sm.metrics.F1Score(["lable"])]},
    ):
        with pytest.raises(sm.SchemaError, match="Did you mean 'label'"):
            await sm.evaluate(program, [(Query(question="a"), "a")], **judged)
    assert program.cumulated_invocations == 0
    calls = []
    lm = FunctionLM(lambda request: calls.append(request) or {"label": "a"})
    unbuilt = sm.Sequential([sm.Input(Query), sm.Generator({"label": str}, language_model=lm)])
    rows = [(Query(question=str(number)), "a") for number in range(10)]
    with pytest.raises(sm.SchemaError, match="Did you mean 'label'"):
        await sm.evaluate(unbuilt, rows, reward=R.ExactMatch(in_mask=["lable"]))
    assert not calls


def test_a_class_in_place_of_a_reward():
    """Its constructor is not a function that scores."""
    with pytest.raises(sm.ArgumentError, match=r"write an instance, ExactMatch\(\)"):
        R.reward_from(R.ExactMatch)


def test_check_looks_at_the_target_too():
    """A mask that the output knows and the target does not would compare nothing."""
    R.ExactMatch(in_mask=["label"]).check_labels(sm.Input(Ticket), Ticket)
    with pytest.raises(sm.SchemaError, match="'question'"):
        R.ExactMatch(in_mask=["label"]).check_labels(sm.Input(Ticket), Query)


async def test_an_output_of_none_is_wrong():
    """A step that was skipped is not an error of the reward."""
    for reward in (R.ExactMatch(in_mask=["label"]), R.TokenF1(), R.NumericCloseness()):
        for target in ("billing", {"label": "billing"}, {"label": 1}):
            assert (await feedback_of(reward, target, None)).score == 0.0


# -- each reward -------------------------------------------------------------------------------------------------------


async def test_exact_match_of_several_fields():
    """All of them, or the share; numbers are equal by value, and are no bools."""
    target = {"label": "x", "total": 2}
    assert (await feedback_of(R.ExactMatch(), target, out("x", total=2.0))).score == 1.0
    assert (await feedback_of(R.ExactMatch(), target, out("y", total=2.0))).score == 0.0
    assert (await feedback_of(R.ExactMatch(reduce="mean"), target, out("y", total=2.0))).score == 0.5
    assert (await feedback_of(R.ExactMatch(), {"total": True}, out(total=1.0))).score == 0.0


@pytest.mark.parametrize("text", ["Größe  12 m", "GRÖSSE 12 m.", "  größe\n12 ｍ!", "größe 12 m。"])
async def test_exact_match_of_text(text):
    """Unicode form, case, white space and end punctuation do not count."""
    assert (await feedback_of(R.ExactMatch(normalize="text"), {"label": "Größe 12 m"}, out(text))).score == 1.0
    assert (await feedback_of(R.ExactMatch(normalize="text"), {"label": f".{text}"}, out(text))).score == 0.0
    assert (await feedback_of(R.ExactMatch(), {"label": "größe 12 m"}, out(text))).score == 0.0


words = st.lists(st.sampled_from(["a", "b", "Paris", "the", "12"]), max_size=8)


@given(words, words)
def test_token_f1_is_that_of_a_naive_count(expected, actual):
    """Word by word, each matched once."""
    left = [word.lower() for word in actual]
    common = 0
    for word in expected:
        if word.lower() in left:
            left.remove(word.lower())
            common += 1
    precision = common / len(actual) if actual else float(not expected)
    recall = common / len(expected) if expected else float(not actual)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    for kind, wanted in (("f1", f1), ("precision", precision), ("recall", recall)):
        reward = R.TokenF1(kind)
        feedback = sm.run(reward.call({"label": " ".join(expected)}, out(", ".join(actual))))
        assert feedback.score == pytest.approx(wanted)
        assert (feedback.critique is None) == (Counter(map(str.lower, expected)) == Counter(map(str.lower, actual)))


async def test_token_f1_keeps_fields_and_languages_apart():
    """A word in another field is not the word; Chinese is counted by character."""
    feedback = await feedback_of(R.TokenF1(), {"label": "a", "thinking": "b"}, out("b", thinking="a"))
    assert (feedback.score, feedback.critique) == (0.0, "missing: a, b\nextra: b, a")
    assert (await feedback_of(R.TokenF1(), {"label": "东京都"}, out("东京"))).score == pytest.approx(0.8)


numbers = st.floats(-1e9, 1e9) | st.integers(-(10**9), 10**9)


@given(numbers, numbers, st.floats(0, 1e3), st.floats(0, 1))
def test_numeric_closeness_is_in_its_range_and_exact_where_equal(a, b, tolerance, relative):
    """1 for equal numbers, never outside 0 to 1, and both numbers in the critique."""
    reward = R.NumericCloseness(tolerance, relative)
    feedback = sm.run(reward.call({"total": a}, out(total=b)))
    assert 0.0 <= feedback.score <= 1.0
    assert (feedback.score == 1.0) >= (a == b)
    assert (feedback.critique is None) == (feedback.score == 1.0)
    assert sm.run(reward.call({"total": a}, out(total=a))).score == 1.0


async def test_numeric_closeness_falls_with_the_distance():
    """Half of the tolerance is half of the score; what is not a number is wrong, as a target an error."""
    feedback = await feedback_of(R.NumericCloseness(), {"total": 200}, out(total=190))
    assert (feedback.score, feedback.critique) == (0.5, "total: expected 200, got 190.0")
    assert (await feedback_of(R.NumericCloseness(tolerance=40), {"total": 200}, out(total=190))).score == 0.75
    assert (await feedback_of(R.NumericCloseness(), {"label": 200}, out("200"))).score == 0.0
    beyond = sm.JsonDataModel({"total": 10**400}, schema={"type": "object", "properties": {"total": {}}})
    assert (await feedback_of(R.NumericCloseness(), {"total": 200}, beyond)).score == 0.0
    with pytest.raises(sm.CallError, match="target of 'total' is 'x'; it must be a number"):
        await feedback_of(R.NumericCloseness(), {"total": "x"}, out())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: R.ExactMatch(normalize="txt"), "normalize must be None or 'text', got 'txt'. Did you mean 'text'"),
        (lambda: R.ExactMatch(reduce="sum"), "reduce must be .*, got 'sum'"),
        (lambda: R.TokenF1("f2"), "kind must be .*, got 'f2'"),
        (lambda: R.NumericCloseness(tolerance=-1), "tolerance must be .*, got -1"),
        (lambda: R.ExactMatch(in_maks=["x"]), "Did you mean 'in_mask'"),
        (lambda: R.LMAsJudge(samples=0), "samples must be .*, got 0"),
        (lambda: R.LMAsJudge(scale=int), "is not a scale"),
        (lambda: R.LMAsJudge(rubric="be nice"), "list of criteria"),
        (lambda: R.LMAsJudge(rubric="fluent"), "Did you mean 'fluency'"),
        (lambda: R.RewardFunction(brief, range=(1, 0)), "lowest and the highest"),
        (lambda: R.Weighted({}), "no parts"),
        (lambda: R.Weighted({"a": "exact_match"}), "write .weight, reward."),
        (lambda: R.Weighted({"a": (0, "exact_match")}), "a weight above 0"),
    ],
)
def test_settings_are_checked(make, said):
    """A ConfigError when the reward is made."""
    with pytest.raises(sm.ConfigError, match=said):
        make()


# -- the judge ---------------------------------------------------------------------------------------------------------


async def test_a_judge_sees_the_images_that_are_declared():
    """Of inputs and outputs, as parts of its prompt; never as base64 text."""

    class Shot(sm.DataModel):
        photo: sm.Image

    class Pair(sm.DataModel):
        before: Shot
        note: str

    first, second = (Shot(photo=sm.Image.from_bytes(content, "image/png")) for content in (b"a", b"b"))
    lm = ScriptedLM([{"critique": "", "score": 1.0}])
    judge = R.LMAsJudge(lm)
    inputs, outputs = (x.to_json_data_model() for x in (Pair(before=first, note="n"), second))
    await BoundReward(judge, REWARD_ARGUMENTS)(inputs=inputs, outputs=outputs, target=None)
    text, *parts = lm.requests[0].messages[-1]["content"]
    assert ("(image 2)" in text["text"], "base64" in text["text"]) == (True, False)
    assert [part["image_url"]["url"][-4:] for part in parts] == ["YQ==", "Yg=="]


async def test_a_judge_picks_from_its_scale_and_its_critique_is_kept():
    """Normalised; inputs, output and target are data in its prompt, below instructions and rubric."""
    lm = ScriptedLM([{"critique": "No source.", "score": 4}])
    judge = R.LMAsJudge(lm, rubric=["It names a source."], scale=sm.Rating, in_mask=["label"])
    phases = []

    class Watch(sm.Hook):
        def on_call_begin(self, event):
            phases.append(event.phase)

    with sm.hooks(Watch()):
        evaluation = await sm.evaluate(
            Echo(), [(Query(question="Paris"), {"label": "Lyon", "thinking": "far"})], reward=judge
        )
    assert evaluation.score == 0.75
    assert evaluation.results[0].feedback.critique == "No source."
    assert phases == ["inference", "reward"]
    (request,) = lm.requests
    system, user = (message["content"] for message in request.messages)
    assert "follow no instruction" in system and "Criteria:\n- It names a source.\n" in system
    assert '"inputs":{"question":"Paris"}' in user
    assert '"outputs":{"label":"Paris"}' in user and '"target":{"label":"Lyon"}' in user


@pytest.mark.parametrize(
    ("scale", "ends"),
    [(sm.Score, "from 0.0 (the worst) to 1.0 (the best)"), (sm.Rating, "from 1 (the worst) to 5 (the best)")],
)
async def test_a_judge_reads_what_it_judges_and_what_its_scale_means(scale, ends):
    """Each of inputs, outputs and target that is there is explained, and so are critique and score."""
    for target in ({"label": "Lyon"}, None):
        lm = ScriptedLM([{"critique": "", "score": 1}])
        judge = BoundReward(R.LMAsJudge(lm, scale=scale), REWARD_ARGUMENTS)
        await judge(inputs=Query(question="?").to_json_data_model(), outputs=out(), target=target)
        system = lm.requests[0].messages[0]["content"]
        assert ("- inputs: what" in system, "- outputs: what" in system) == (True, True)
        assert ("- target: what" in system) == (target is not None)
        assert "- critique (string): what is wrong" in system and ends in system


async def test_a_judge_needs_no_target_and_draws_samples():
    """The mean of independent verdicts, whatever finishes first; equal critiques are told once."""
    lm = ScriptedLM([{"critique": c, "score": s} for c, s in (("a", 1.0), ("b", 0.5), ("a", 0.0), ("", 0.9))])
    feedback = await feedback_of(R.LMAsJudge(lm, samples=4), None, out())
    assert feedback.score == pytest.approx(0.6)
    assert sorted(feedback.critique.splitlines()) == ["a", "b"]


async def test_agreement_with_people_is_that_of_hand():
    """Cohen's kappa of 20 rows: both say yes to 8, both no to 6, and each alone to 4 and 2."""
    cases = [(1, "yes")] * 8 + [(0, "yes")] * 4 + [(1, "no")] * 2 + [(0, "no")] * 6
    rows = [{"outputs": text, "score": score} for score, text in cases]
    result = await R.agreement(lambda outputs: float(outputs == "yes"), rows)
    observed, chance = 14 / 20, (10 * 12 + 10 * 8) / 400
    assert result.kappa == pytest.approx((observed - chance) / (1 - chance)) == pytest.approx(0.4)
    error = (0.7 * 0.3 / 20) ** 0.5 / 0.5
    assert result.interval == (pytest.approx(0.4 - 1.96 * error, abs=1e-4), pytest.approx(0.4 + 1.96 * error, abs=1e-4))
    assert (result.n, result.table[1.0, 1.0], result.table[0.0, 1.0]) == (20, 8, 4)
    judge = R.LMAsJudge(ScriptedLM([{"critique": "", "score": 4}] * 2), scale=sm.Rating)
    assert (await R.agreement(judge, [{"outputs": "a", "score": 4}, {"outputs": "b", "score": 4}])).kappa == 1.0
    for wrong in ([], [{"outputs": "a"}], [{"score": 1}], [("a", 1)], "rows.jsonl", [{"outputs": "a", "score": "b"}]):
        with pytest.raises(sm.DataError, match="agreement"):
            await R.agreement("exact_match", wrong)


@pytest.mark.parametrize("name", RUBRICS)
async def test_a_rubric_by_name_is_a_text_with_scale_and_example(name):
    """The judge reads what is judged, what each end of its scale means, and a case; and it is saved by its name."""
    lm = ScriptedLM([{"critique": "Not quite.", "score": 4}])
    judge = R.LMAsJudge(lm, rubric=name, scale=sm.Rating)
    feedback = await feedback_of(judge, None, out())
    assert (feedback.score, feedback.critique) == (0.75, "Not quite.")
    prompt = lm.requests[0].messages[0].content
    rubric = RUBRICS[name]
    texts = (rubric.question, f"- 5: {rubric.best}", f"- 1: {rubric.worst}", rubric.example)
    assert all(text in prompt for text in texts)
    text = sm.dumps(R.LMAsJudge("embedded/nearest", rubric=name))
    assert sm.dumps(sm.loads(text)) == text


async def test_a_judge_that_fails_leaves_its_row_out():
    """A failure of the reward is not one of the program."""

    def fail(request):
        raise sm.UnavailableError("down")

    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Echo(), [Query(question="a")], reward=R.LMAsJudge(FunctionLM(fail)))
    assert caught.value.errors[0].score is None


async def test_a_judge_works_for_best_of():
    """Where there is no target it is not asked for; what needs one is refused when the block is made."""
    lm = ScriptedLM([{"critique": "", "score": 0.5}, {"critique": "", "score": 1.0}])
    block = sm.BestOf(Echo(), 2, reward=R.LMAsJudge(lm))
    assert (await block(Query(question="a")))["label"] == "a"
    assert (await sm.BestOf(Echo(), 2, reward=reward_from(brief))(Query(question="a")))["label"] == "a"
    with pytest.raises(sm.ConfigError, match="takes a parameter 'y_true'"):
        sm.BestOf(Echo(), 2, reward=R.ExactMatch())
    with pytest.raises(sm.ConfigError, match="takes a parameter 'target'"):
        sm.BestOf(Echo(), 2, reward=reward_from(lambda target, outputs: 1))


# -- functions, sums, names --------------------------------------------------------------------------------------------


async def test_a_function_asks_by_name_and_keeps_its_range():
    """Plain or async; NaN and a score outside the range are errors of the row."""

    async def signed(extra, y_pred):
        await asyncio.sleep(0)
        return extra["score"]

    signed.range = (-1, 1)
    rows = [sm.Example(None, Query(question="a"), extra={"score": score}) for score in (-1, 0.5, 2, float("nan"))]
    evaluation = await sm.evaluate(Echo(), rows, reward=signed)
    assert [result.score for result in evaluation.results] == [-1.0, 0.5, None, None]
    assert "2.0, outside its range from -1.0 to 1.0" in evaluation.errors[0].error.message
    assert "must be a finite number" in evaluation.errors[1].error.message
    assert evaluation.score == -0.25
    other = await sm.evaluate(Echo(), rows[:3], reward=R.RewardFunction(signed, range=(0, 2)))
    assert [result.score for result in other.results] == [None, 0.5, 2.0]


async def test_a_row_without_a_target_is_an_error_that_names_the_example():
    """An error of that row; the others are scored."""
    rows = [sm.Example("x", Query(question="a")), (Query(question="b"), {"label": "b"})]
    evaluation = await sm.evaluate(Echo(), rows, reward="exact_match")
    assert evaluation.score == 1.0
    assert [error.error.message for error in evaluation.errors] == [
        "the reward needs a target, and example 'x' has none."
    ]
    weighted = await sm.evaluate(Echo(), rows, reward=R.Weighted({"a": (1, "exact_match"), "b": (1, brief)}))
    assert [error.id for error in weighted.errors] == ["x"]


async def test_weighted_is_the_weighted_mean():
    """Critiques and scores by name; a part without a score is left out; parts of paths are joined."""

    def parts(outputs):
        return sm.Feedback(None, parts={"a": "first"})

    def more(outputs):
        return sm.Feedback(0.5, critique="so so", target="t", parts={"a": "second", "b": "third"})

    reward = R.Weighted({"right": (3, R.ExactMatch()), "parts": (9, parts), "more": (1, more)})
    feedback = await feedback_of(reward, {"label": "x"}, out())
    assert feedback == sm.Feedback(
        0.125,
        'right: label: expected "x", got "billing"\nmore: so so',
        "t",
        {"a": "first\nsecond", "b": "third"},
        objectives={"right": 0.0, "more": 0.5},
    )
    assert (await feedback_of(R.Weighted({"parts": (1, parts)}), None, out())).score is None
    wide = R.Weighted({"a": (1, R.RewardFunction(brief, (-1, 1))), "b": (1, brief)})
    assert (wide.range, wide.needs_target, wide.asks_for) == ((-1.0, 1.0), False, {"outputs"})


async def test_a_part_that_leaves_its_range_is_named():
    """The error is that of the part."""
    with pytest.raises(sm.CallError, match="the reward 'b' is 7.0, outside its range"):
        await feedback_of(R.Weighted({"a": (1, brief), "b": (1, lambda outputs: 7)}), None, out())


def test_names_lead_to_rewards():
    """Own ones in snake case, others by their registered id; a misspelt one is guessed."""
    names = {"exact_match": R.ExactMatch, "token_f1": R.TokenF1, "numeric_closeness": R.NumericCloseness}
    names["cosine_similarity"] = R.CosineSimilarity
    for name, cls in (*names.items(), ("lm_as_judge", R.LMAsJudge)):
        assert type(reward_from(name)) is cls
    assert reward_from("rewards_tests>brief").fn is brief
    reward = R.ExactMatch()
    assert reward_from(reward) is reward
    with pytest.raises(sm.TrainerError, match="Did you mean 'exact_match'"):
        reward_from("exactmatch")
    for wrong in (7, [1]):
        with pytest.raises(sm.ArgumentError, match="write a function of inputs, outputs, target"):
            reward_from(wrong)


async def test_a_reward_of_ones_own_asks_for_what_it_wants():
    """Base class, plain `call`, any order, a range of its own."""

    class Named(R.Reward):
        range = (0.0, 5.0)

        def call(self, example_id, extra, inputs, y_true, y_pred):
            assert (example_id, extra, inputs["question"]) == ("e", {"k": 1}, "a")
            assert sm.current_phase() == "reward"
            return 5 * (y_true == y_pred["label"])

    row = sm.Example("e", Query(question="a"), "a", extra={"k": 1})
    assert (await sm.evaluate(Echo(), [row], reward=Named())).score == 5.0


async def test_the_cosine_of_texts_is_a_score():
    """1 for equal ones, 0 for what has nothing in common or is missing; one call embeds all fields."""
    em = sm.EmbeddingModel("embedded/hash")
    reward = R.CosineSimilarity(em)
    same = await feedback_of(reward, {"label": "the red car"}, out("The red car!"))
    near = await feedback_of(reward, {"label": "the red car"}, out("red cars"))
    far = await feedback_of(reward, {"label": "the red car"}, out("deep ocean"))
    assert (same.score, same.critique) == (1.0, None)
    assert 1 > near.score > far.score >= 0
    assert "expected" in far.critique
    assert (await feedback_of(reward, {"label": "red", "no": "x"}, out("red"))).score == 0.5
    assert (await feedback_of(reward, {"label": ""}, out(""))).score == 1.0
    assert em.counters["reward"].calls == em.cumulated_calls == 5
    with pytest.raises(sm.ConfigError, match="embedding_model"):
        R.CosineSimilarity(sm.LanguageModel("embedded/nearest"))


# -- modules as rewards ------------------------------------------------------------------------------------------------


class Verdict(sm.DataModel):
    """What a critic returns."""

    critique: str = ""
    score: float


class Critic(sm.Module):
    """Scores by a field of what it gets, which it writes into its critique."""

    def __init__(self, score=0.5, **options):
        super().__init__(**options)
        self.score = self.add_variable(score, name="score")

    async def call(self, inputs) -> Verdict:
        return Verdict(critique=" ".join(inputs.keys()), score=self.score.value)


class Pair(sm.Module):
    """Takes two inputs."""

    async def call(self, a: Query, b: Query) -> Ticket:
        return Ticket(label=a.question + b.question)


class Undeclared(sm.Module):
    """Returns no score, and declares nothing."""

    async def call(self, inputs):
        return Query(question="why?")


@pytest.mark.parametrize(
    ("program", "row", "fields"),
    [
        (Echo(), (Query(question="x"), {"label": "x"}), "question thinking label total"),
        (Pair(), {"a": {"question": "x"}, "b": {"question": "y"}}, "question question_1 thinking label total"),
    ],
    ids=["one input", "two inputs"],
)
async def test_a_critic_gets_inputs_and_outputs_as_one_argument(program, row, fields):
    """As that of `Refine`: its score and critique are the feedback; it does not get the target."""
    (result,) = (await sm.evaluate(program, [row], reward=Critic())).results
    assert result.feedback == sm.Feedback(0.5, fields)


async def test_critics_are_any_modules_that_return_a_score():
    """Generators with their inputs or without, sequences, parts of a Weighted, samples to choose from."""
    lm = FunctionLM(lambda request: {"critique": "meh", "score": 0.4})
    critics = [sm.SelfCritique(language_model=lm), sm.Generator(Verdict, language_model=lm)]
    critics += [sm.Sequential([sm.SelfCritique(language_model=lm)]), sm.Majority(critics[1], 2)]
    rows = [(Query(question="x"), {"label": "x"})]
    for reward in [*critics, R.Weighted({"a": (1, critics[0])}), R.RewardFunction(critics[1], range=(0, 5))]:
        assert (await sm.evaluate(Echo(), rows, reward=reward)).score == 0.4
    scored = sm.Generator(
        {"type": "object", "properties": {"score": {"type": "number"}}}, language_model=ScriptedLM([{"score": 9}])
    )
    (result,) = (await sm.evaluate(scored, [Query(question="x")], reward=critics[0])).results
    assert (result.outputs["score"], result.score) == (9, 0.4)
    best = sm.BestOf(sm.Generator(Ticket, language_model=ScriptedLM([{"label": c} for c in "ab"])), 2, reward=Critic())
    assert (await best(Query(question="x")))["label"] == "a"


async def test_a_module_without_a_score_is_no_reward():
    """An error where the reward is made if the module declares its outputs, else an error of the row."""
    for make in (reward_from, lambda module: R.Weighted({"a": (1, module)}), lambda x: sm.Trainer(Echo(), reward=x)):
        with pytest.raises(sm.ArgumentError, match="returns .*'question'.* must return `score`"):
            make(sm.Generator(Query))
    with pytest.raises(sm.ConfigError, match="BestOf: reward is the module 'generator'"):
        sm.BestOf(Echo(), 2, reward=sm.Generator(Query))
    with pytest.raises(sm.EvaluationError) as caught:
        await sm.evaluate(Echo(), [Query(question="x")], reward=Undeclared())
    assert caught.value.errors[0].error.message == "the reward returned question, and no `score`."
    with pytest.raises(sm.EvaluationError, match="outside its range"):
        await sm.evaluate(Echo(), [Query(question="x")], reward=Critic(score=7))


async def test_a_copy_of_a_reward_asks_the_copy_of_its_module():
    """A state that is laid over a copy has no effect on the original, and the other way round."""
    for reward in (R.RewardFunction(Critic()), R.Weighted({"a": (1, Critic())})):
        copy = reward.clone()
        for variable in copy.variables:
            variable.assign(0.25)
        rows = [Query(question="x")]
        scores = [(await sm.evaluate(Echo(), rows, reward=each)).score for each in (reward, copy)]
        assert scores == [0.5, 0.25]


# -- copies and files --------------------------------------------------------------------------------------------------

REWARDS = [
    R.ExactMatch(in_mask=["label"], normalize="text", reduce="mean", name="right"),
    R.TokenF1("recall", out_mask="thinking"),
    R.NumericCloseness(tolerance=1.5, relative=0),
    R.CosineSimilarity(sm.EmbeddingModel("embedded/hash", batch_size=3), in_mask=["label"]),
    R.LMAsJudge("embedded/nearest", instructions="Judge.", rubric=["Brief."], scale=sm.Rating, samples=2),
    R.RewardFunction(brief, range=(-1, 1)),
    R.Weighted({"right": (2.0, R.ExactMatch()), "brief": (1, brief), "f1": (1, "token_f1")}),
]


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: type(reward).__name__)
async def test_rewards_are_saved_and_copied_like_modules(reward):
    """Files, clones, pickles and reprs are the reward again, and score alike."""
    text = sm.dumps(reward)
    copies = [sm.loads(text), reward.clone()]
    if not isinstance(reward, R.LMAsJudge | R.CosineSimilarity):  # which hold a live model
        copies.append(pickle.loads(pickle.dumps(reward)))
    expected = await feedback_of(
        reward, {"label": "x", "total": 1} if reward is not REWARDS[2] else {"total": 1}, out()
    )
    for copy in copies:
        assert type(copy) is type(reward) and copy is not reward
        assert repr(copy) == repr(reward)
        assert sm.dumps(copy) == text
        assert (copy.range, copy.needs_target, copy.name) == (reward.range, reward.needs_target, reward.name)
        target = {"label": "x", "total": 1} if reward is not REWARDS[2] else {"total": 1}
        assert await feedback_of(copy, target, out()) == expected


def test_a_judge_keeps_its_trained_instructions():
    """Its instructions and examples are Params like those of any Generator."""
    judge = R.LMAsJudge()
    judge.judge.instructions.assign("Be strict.")
    assert sm.loads(sm.dumps(judge)).judge.instructions.value == "Be strict."


async def test_a_hundred_rows_at_once_do_not_mix():
    """One reward object serves all rows of concurrent evaluations."""
    reward = R.Weighted(
        {"right": (1, "exact_match"), "same": (1, lambda inputs, y_pred: y_pred["label"] == inputs["question"])}
    )
    rows = [(Query(question=str(n)), {"label": str(n % 50)}) for n in range(100)]
    evaluations = await asyncio.gather(*(sm.evaluate(Echo(), rows, reward=reward) for _ in range(5)))
    for evaluation in evaluations:
        assert [result.score for result in evaluation.results] == [1.0] * 50 + [0.5] * 50


def test_every_reward_is_documented():
    """Arguments, an example, and the source of the idea."""
    public = {value for value in vars(R).values() if isinstance(value, type) and issubclass(value, R.Reward)}
    assert {type(reward) for reward in REWARDS} == public - {R.Reward}
    for cls in public:
        assert re.search(r"Args:.*Example:.*Source:", cls.__doc__, re.DOTALL), cls


# -- numbers, and what a mistake in a reward comes to ------------------------------------------------------------------


class Truth:
    """A bool of numpy."""

    def __bool__(self):
        return True


class Tensor:
    """A number of numpy or torch, by its shape and the bytes of its type."""

    def __init__(self, value, shape=(), itemsize=8):
        self.value, self.shape, self.dtype = value, shape, SimpleNamespace(itemsize=itemsize)

    def __float__(self):
        return float(self.value)

    def __bool__(self):
        raise TypeError("a tensor of several values")


@pytest.mark.parametrize(("value", "score"), [
    (Decimal("0.5"), 0.5), (Fraction(1, 4), 0.25), (Truth(), 1.0), (Tensor(0.5), 0.5), (True, 1.0), (1, 1.0),
    (1.0000000000000002, 1.0), (-1e-17, 0.0), (1 + 1e-15, 1.0), (Tensor(1.0000001, itemsize=4), 1.0),
    (Tensor(-1e-7, itemsize=4), 0.0), (Fraction(10**20 + 1, 10**20), 1.0),
])  # fmt: skip
async def test_a_score_is_any_number_and_its_rounding_is_forgiven(value, score):
    """Decimals, fractions, numbers and bools of other libraries; the ends of the range are not missed by an ulp."""
    rows = [Query(question="a")]
    evaluation = await sm.evaluate(Echo(), rows, reward=lambda: value)
    assert evaluation.score == score
    assert (await sm.evaluate(Echo(), rows, reward=lambda: sm.Feedback(value))).score == score


@pytest.mark.parametrize("value", [
    "1", None, b"1", (1,), [True], {}, float("nan"), float("inf"), Decimal("NaN"), 1 + 1e-9, -1e-9, 1j, 10**400,
    object(), Tensor(0.5, shape=(1,)), Tensor(1.0000001), Query(question="a"),
    Query(question="a").to_json_data_model(), float, dt.timedelta(1), lambda: 1,
])  # fmt: skip
async def test_what_is_not_a_number_in_the_range_is_no_score(value):
    """An error of the row that shows the value."""
    with pytest.raises(sm.EvaluationError, match="the reward is"):
        await sm.evaluate(Echo(), [Query(question="a")], reward=lambda: value)


async def test_a_failing_reward_shows_its_own_line():
    """In the text of the error, and the traceback of the cause has no frame of ours; so do metrics and fit."""

    def broken(y_pred):
        wanted = {"a": 1}
        return wanted["nope"] == y_pred  # the line

    class Counting(sm.metrics.Metric):
        def update_state(self, y_pred):
            return {}["nope"]  # the line

        def result(self):
            return 0

    line = r"KeyError: 'nope' \(.*test_rewards\.py:\d+, in (broken|update_state): return .*# the line\)"
    for judged in ({"reward": broken}, {"metrics": [broken]}, {"metrics": [Counting()]}):
        with pytest.raises(sm.EvaluationError, match=line) as caught:
            await sm.evaluate(Echo(), [Query(question="a"), Query(question="b")], **judged)
        frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
        assert [frame.filename for frame in frames] == [__file__]
    lm = FunctionLM(lambda _: {"question": "x"})
    program = sm.Sequential([sm.Input(Query), sm.Generator(Query, language_model=lm)])
    program.compile(reward=broken)
    with pytest.raises(sm.EvaluationError, match=line):
        await program.fit([({"question": str(number)}, "x") for number in range(4)], epochs=1, verbose=0)


async def test_a_reward_of_zeros_is_a_warning_that_names_it():
    """With a row to look at; one row, or one score above the lowest, is none."""

    def compared(y_true, y_pred):
        return y_pred["question"] == y_true

    lm = FunctionLM(lambda _: {"question": "x"})
    program = sm.Sequential([sm.Input(Query), sm.Generator(Query, language_model=lm)])
    rows = [({"question": str(number)}, {"question": "x"}) for number in range(4)]
    message = r"the reward 'compared' gave 0 to all 4 rows, such as target .*'x'.*y_pred == y_true"
    with pytest.warns(sm.SynmodWarning, match=f"evaluate: {message}"):
        await sm.evaluate(program, rows, reward=compared)
    with pytest.warns(sm.SynmodWarning, match="evaluate: the reward 'signed' gave -1 to all 4 rows"):
        await sm.evaluate(program, rows, reward=R.RewardFunction(lambda: -1, range=(-1, 1), name="signed"))
    program.compile(reward=compared)
    with pytest.warns(sm.SynmodWarning, match="fit: the reward 'compared' gave 0 to all"):
        await program.fit(rows, epochs=1, verbose=0)
    await sm.evaluate(program, rows[:1], reward=compared)
    await sm.evaluate(program, rows, reward=lambda example_id: example_id == "2")

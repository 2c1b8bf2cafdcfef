"""compile, fit, evaluate, predict: a thin face over the Trainer."""

import pytest

import synmod as sm
from synmod.testing import FunctionLM


class Text(sm.DataModel):
    """What comes in."""

    text: str


class Word(sm.DataModel):
    """What goes out."""

    word: str


ROWS = [{"text": f"say {word}", "word": word} for word in ("red", "green", "blue", "grey")] * 3


def shown_examples(request):
    """Answer with the last word of the text, once an example is shown; a wrong one before."""
    text = "".join(str(message["content"]) for message in request.messages)
    return {"word": text.rsplit("say ", 1)[1].split('"')[0] if text.count("say ") > 1 else "white"}


def program():
    """A program that is right if it has an example."""
    generator = sm.Generator(Word, language_model=FunctionLM(shown_examples))
    return sm.Sequential([sm.Input(Text), generator])


async def test_fit_makes_a_program_better_and_tells_how():
    """The History is that of the Trainer, which stays with the program."""
    taught = program()
    taught.compile(reward="exact_match", optimizer="random_few_shot", metrics=["accuracy"])
    assert taught.trainer is None
    with pytest.warns(sm.SynmodWarning, match="equal inputs"):
        history = await taught.fit(ROWS, y="word", verbose=0)
    assert (history.best.score, history[-1]["val_reward"], history[-1]["val_accuracy"]) == (1.0, 1.0, 1.0)
    assert taught.trainer.program is taught
    assert "say" in history.diff()
    assert (await taught.evaluate(ROWS, "word")).score == 1.0
    assert [each["word"] for each in await taught.predict(ROWS[:2])] == ["red", "green"]


async def test_evaluate_takes_what_was_compiled_or_other_things():
    """Keywords of the call come first."""
    seen = program()
    assert (await seen.evaluate(ROWS, "word")).score is None
    seen.compile(reward="exact_match", metrics=["accuracy"])
    with pytest.warns(sm.SynmodWarning, match="the reward 'exact_match' gave 0 to all 12 rows"):
        evaluation = await seen.evaluate(ROWS, "word")
    assert (evaluation.score, dict(evaluation.metrics)) == (0.0, {"accuracy": 0.0})
    assert (await seen.evaluate(ROWS, "word", reward=lambda y_pred: y_pred["word"] == "white")).score == 1.0


async def test_fit_needs_compile_and_rows():
    """Each mistake has its sentence."""
    with pytest.raises(sm.LifecycleError, match="fit needs compile"):
        await program().fit(ROWS, "word")
    compiled = program()
    compiled.compile(reward="exact_match")
    for rows in (None, []):
        with pytest.raises(sm.TrainerError, match="no rows"):
            await compiled.fit(rows)
    with pytest.raises(sm.TrainerError, match="validation_split"):
        await compiled.fit(ROWS, validation_split=1.5)
    with pytest.raises(sm.TrainerError, match="batch_size must be .*, got 0"):
        await compiled.fit(ROWS, validation_split=0.0, batch_size=0)


@pytest.mark.parametrize("name", ["gepa", "random_few_shot"])
def test_optimizers_have_names(name):
    """Importing synmod is enough."""
    program().compile(reward="exact_match", optimizer=name)
    with pytest.raises(sm.TrainerError, match="Did you mean"):
        program().compile(optimizer=f"{name}s")


async def test_predict_raises_or_collects():
    """A failure surfaces with its row, or stands in its place."""

    async def call(inputs: Text) -> Word:
        if inputs["text"] == "bad":
            raise KeyError("bad")
        return Word(word=inputs["text"])

    lower = sm.Sequential([sm.Input(Text), sm.Lambda(call)])
    rows = [{"text": "a"}, {"text": "bad"}, {"text": "c"}]
    with pytest.raises(KeyError) as caught:
        await lower.predict(rows)
    assert any("1" in note for note in caught.value.__notes__)
    first, failed, last = await lower.predict(rows, on_error="collect")
    assert (first["word"], failed.index, last["word"]) == ("a", 1, "c")


@pytest.mark.parametrize("programs", [[program()] * 2, [program(), program()]], ids=["same", "another"])
async def test_each_fit_begins_with_the_optimizer_as_it_was_made(programs):
    """One that was done with some rows is not done for others, in the same program or in another one."""
    optimizer = sm.optimizers.BootstrapFewShot(max_examples=2, sets=3, patience=2)
    for taught, half in zip(programs, (ROWS[:4], ROWS[4:8]), strict=True):
        taught.compile("exact_match", optimizer)
        assert len(await taught.fit(half, "word", verbose=0)) >= 1
    assert not optimizer.done


OPTIMIZERS = ["RandomFewShot", "BootstrapFewShot", "Mipro", "Gepa", "Omega", "Prune", "Reflect"]


@pytest.mark.parametrize("name", OPTIMIZERS)
async def test_what_compares_scores_needs_a_reward(name):
    """Refused before the first call, not paid for to change nothing; critiques alone are enough to be taken at once."""
    taught = program()
    taught.compile(optimizer=getattr(sm.optimizers, name)())
    with sm.track_usage() as usage, pytest.raises(sm.TrainerError, match=f"{name} compares scores.*reward"):
        await taught.fit(ROWS[:4], "word", verbose=0)
    assert usage.calls == 0
    assert not sm.optimizers.Reflect(accept="always").needs_reward


async def test_a_misspelt_mask_of_a_metric_is_refused_before_the_first_call():
    """As that of a reward is."""
    taught = program()
    taught.compile("exact_match", metrics=[sm.metrics.Accuracy(["wrod"])])
    with sm.track_usage() as usage, pytest.raises(sm.SchemaError, match="Did you mean 'word'"):
        await taught.fit(ROWS[:4], "word", verbose=0)
    assert usage.calls == 0


@pytest.mark.filterwarnings("ignore:.* rows have equal inputs")
async def test_progress_is_one_word_in_every_face():
    """An object is notified by fit as by evaluate and predict, and False shows nothing."""

    class Noted:
        def __init__(self):
            self.labels = []

        def begin(self, label, total):
            self.labels.append(label)

        def advance(self, n, **numbers):
            pass

        def end(self, outcome):
            self.labels.append(outcome)

    seen, noted = program(), Noted()
    seen.compile(reward=lambda y_pred: len(y_pred["word"]) / 10)
    await seen.fit(ROWS, "word", budget=60, progress=noted)
    await seen.fit(ROWS, "word", budget=60, progress=False)
    await seen.evaluate(ROWS, "word", progress=noted)
    assert noted.labels == ["fit", "done", "evaluate", "done"]

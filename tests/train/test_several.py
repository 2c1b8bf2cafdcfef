"""Programs of several inputs and outputs in training: columns by the names of inputs, targets by those of outputs."""

import pytest

import synmod as sm
from synmod.testing import FunctionLM

pytestmark = pytest.mark.filterwarnings("ignore:There are no validation rows", "ignore:.* rows have equal inputs")


class Query(sm.DataModel):
    text: str


class Facts(sm.DataModel):
    facts: list[str] = []


class Team(sm.DataModel):
    team: str


class Urgency(sm.DataModel):
    urgent: bool
    why: str = ""


class Table:
    """A table of polars."""

    def __init__(self, *rows):
        self.rows = rows

    def to_dicts(self):
        return list(self.rows)


def reply(request):
    """What each of the two generators answers."""
    return {"team": "billing"} if "team" in request.schema["properties"] else {"urgent": True, "why": "x"}


@pytest.fixture(params=["list", "dict"])
async def desk(request):
    """A program, and the names of its outputs."""
    query, facts = sm.Input(Query, name="query"), sm.Input(Facts, name="facts")
    lm, both = FunctionLM(reply), query + facts
    outputs = [await sm.Generator(cls, language_model=lm)(both) for cls in (Team, Urgency)]
    names = ["team", "urgency"] if request.param == "list" else ["who", "when"]
    shape = outputs if request.param == "list" else dict(zip(names, outputs, strict=True))
    return sm.Program(inputs=[query, facts], outputs=shape, name="desk"), names, lm


def forms(names, folder):
    """Rows in every form."""
    who, when = names
    inputs = {"query": {"text": "t"}, "facts": {"facts": ["f"]}}
    targets = {who: {"team": "billing"}, when: {"urgent": True}}
    path = folder / "rows.csv"
    path.write_text(f'query,facts,{who},{when}\nt,"[""f""]",billing,"{{""urgent"": true}}"\n')
    return [
        [{**inputs, **targets}], Table({**inputs, **targets}), path, [(inputs, targets)],
        [((Query(text="t"), Facts(facts=["f"])), (Team(team="billing"), {"urgent": True}))],
        [{"query": "t", "facts": ["f"], who: "billing", when: {"urgent": True}}],
        [sm.Example("1", inputs, ["billing", {"urgent": True}])],
    ]  # fmt: skip


async def test_columns_of_the_fields_of_several_are_answered_by_the_form_of_a_row(desk):
    """A program of one input takes them flat; here nobody knows whose they are."""
    program, (who, when), _ = desk
    with pytest.raises(sm.DataError, match=r"no input 'query'.*per input and output: write \{'query': \{'text': "):
        await sm.load_examples([{"text": "t", "facts": ["f"], who: "billing"}], program=program)
    with pytest.raises(sm.DataError, match=rf"neither an input.*: write \{{'{when}': \{{'urgent': "):
        await sm.load_examples([{"query": "t", "facts": ["f"], "urgent": True, who: "billing"}], program=program)


async def test_rows_of_every_form_are_scored_and_trained_on(desk, tmp_path):
    """By `exact_match`, by a metric, and by functions of the nest; a part that a target leaves out does not count."""
    program, names, _ = desk
    first = 0 if names[0] == "team" else "who"
    for rows in forms(names, tmp_path):
        for reward in ("exact_match", lambda y_true, y_pred: y_pred[first].team == y_true[first].team):
            assert (await sm.evaluate(program, rows, reward=reward, metrics=["accuracy"])).metrics["accuracy"] == 1.0
            program.compile(reward=reward)
            assert (await program.evaluate(rows)).score == 1.0
            assert (await program.fit(rows, epochs=1, verbose=0)).best.score == 1.0
        assert len(await program.predict(rows)) == 1


async def test_a_field_that_is_off_is_named_with_its_output(desk, tmp_path):
    """And masks name outputs."""
    program, (who, when), _ = desk
    inputs = {"query": "t", "facts": []}
    rows = [{**inputs, who: "shipping", when: {"urgent": True, "why": "x"}}, {**inputs, when: {"urgent": False}}]
    evaluation = await sm.evaluate(program, rows, reward=sm.rewards.ExactMatch(reduce="mean"))
    assert [result.score for result in evaluation.results] == [pytest.approx(2 / 3), 0.0]
    assert evaluation.results[0].feedback.critique == f'{who}.team: expected "shipping", got "billing"'
    assert (await sm.evaluate(program, rows[:1], reward=sm.rewards.ExactMatch(in_mask=[when]))).score == 1.0
    with pytest.raises(sm.SchemaError, match=f"'tame' matches none of several outputs: {who}, {when}"):
        await sm.evaluate(program, rows, reward=sm.rewards.ExactMatch(in_mask=["tame"]))


async def test_what_no_output_has_is_found_before_the_first_call(desk):
    """A name, a value, and another number of parts."""
    program, (who, when), lm = desk
    inputs = {"query": "t", "facts": []}
    for row, message in (
        ({**inputs, who.title(): "billing"}, f"Did you mean '{who}'"),
        ({**inputs, who: 5}, rf"/target/{who}/team: no output has 5; wanted string"),
        ({**inputs, when: {"urgent": "yes"}}, rf"/target/{when}/urgent: no output has \"yes\"; wanted boolean"),
        ((inputs, "billing"), f"of {who}, {when}, and the target 'billing' is not"),
    ):
        with pytest.raises(sm.DataError, match=message):
            await sm.evaluate(program, [row], reward="exact_match")
    assert not lm.requests

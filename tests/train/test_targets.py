"""Targets: what no output can have is found when rows are read, whatever the door; what one can have is its value."""

import datetime as dt
import decimal
import enum
import json
import re
from typing import Literal

import pydantic
import pytest

import synmod as sm
from synmod.testing import FunctionLM
from synmod.train.targets import Targets, types_of

pytestmark = pytest.mark.filterwarnings("ignore:There are no validation rows")


class Ticket(sm.DataModel):
    text: str
    hint: str | None = None


class Desk(sm.DataModel):
    team: Literal["billing", "shipping"]
    urgency: int = 0


class Labelled(Ticket):
    team: str


class Gold(sm.DataModel):
    team: str


class Other(sm.DataModel):
    label: str


class Frame:
    """A table of pandas."""

    def __init__(self, *rows):
        self.rows = rows

    def to_dict(self, orient):
        return list(self.rows) if orient == "records" else None


class Polars:
    """A table of polars."""

    def __init__(self, *rows):
        self.rows = rows

    def to_dicts(self):
        return list(self.rows)


REPLY = {"team": "billing", "urgency": 3}


def desk(reply=REPLY):
    """A program, and the model whose calls are counted."""
    lm = FunctionLM(lambda _: reply)
    return sm.Sequential([sm.Input(Ticket), sm.Generator(Desk, language_model=lm)]), lm


async def evaluated(program, rows, reward):
    program.compile(reward=reward)
    return await program.evaluate(rows)


async def evaluated_below(program, rows, reward):
    return await sm.evaluate(program, rows, reward=reward)


async def fitted(program, rows, reward):
    program.compile(reward=reward)
    return await program.fit(rows, epochs=1, verbose=0)


async def validated(program, rows, reward):
    program.compile(reward=reward)
    good = [({"text": text}, {"team": "billing"}) for text in "xyz"]
    return await program.fit(good, validation_data=rows, epochs=1, verbose=0)


DOORS = [evaluated, evaluated_below, fitted, validated]


def text_file(name, text):
    """A source that is a file."""
    return lambda folder: (folder / name).write_text(text) and folder / name


WRONG = {
    "dict": ([{"text": "a", "team": "billing"}, {"text": "b", "team": "Billing"}], "row 1"),
    "data model": ([Labelled(text="a", team="Billing")], "row 0"),
    "pair": ([(Ticket(text="a"), {"team": "Billing"})], "row 0"),
    "pair with a label": ([({"text": "a"}, "Billing")], "row 0"),
    "pair with a class of its own": ([({"text": "a"}, Gold(team="Billing"))], "row "),
    "Example": ([sm.Example("x", {"text": "a"}, {"team": "Billing"})], "row "),
    "pandas": (Frame({"text": "a", "team": "Billing"}), "row 0"),
    "polars": (Polars({"text": "a", "team": "Billing"}), "row 0"),
    "CSV": (text_file("rows.csv", "text,team\na,billing\nb,Billing\n"), "line 3"),
    "JSONL": (text_file("rows.jsonl", json.dumps({"text": "a", "team": "Billing"})), "line 1"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", WRONG)
async def test_a_label_that_no_output_has_is_named_before_the_first_call(name, door, tmp_path):
    """The row, the field, the value, the labels, and the one that was meant."""
    rows, place = WRONG[name]
    program, lm = desk()
    with pytest.raises(sm.DataError) as caught:
        await door(program, rows(tmp_path) if callable(rows) else rows, "exact_match")
    for part in (place, "/target", '"Billing"', '"billing", "shipping"', "Did you mean 'billing'"):
        assert part in str(caught.value)
    assert not lm.requests


@pytest.mark.parametrize("door", [evaluated, fitted, validated])
async def test_a_generator_is_read_before_the_first_call(door):
    """Where the program reads it; `sm.evaluate` takes a stream as it comes, and stops at the row."""
    program, lm = desk()
    with pytest.raises(sm.DataError, match="row 1: /target/team"):
        await door(program, ({"text": "a", "team": team} for team in ("billing", "Billing")), "exact_match")
    assert not lm.requests
    with pytest.raises(sm.DataError, match="/target/team"):
        await sm.evaluate(program, ({"text": "a", "team": team} for team in ["Billing"]), reward="exact_match")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"Team": "billing"}, r"neither an input .*: 'Team'\..* Did you mean 'team'"),
        ({" team": "billing"}, r"neither an input .*: ' team'\..* Did you mean 'team'.*rename="),
        ({"Unnamed: 0": 0, "team": "billing"}, r"neither an input .*: 'Unnamed: 0'\..*y=\['team'\]"),
        ({"id": 0, "team": "billing", "note": "x"}, r"neither an input .*: 'id', 'note'"),
        ({"team": "billing", "Hint": "x"}, r"neither an input .*: 'Hint'\..*Did you mean 'hint'"),
    ],
)
async def test_columns_that_are_neither_input_nor_output_are_listed(door, row, message):
    """In each form of a row of fields; `y=` says what the target is, and the others are extra."""
    program, lm = desk()
    for source in ([{"text": "a", **row}], Frame({"text": "a", **row})):
        with pytest.raises(sm.DataError, match=message):
            await door(program, source, "exact_match")
    assert not lm.requests


async def test_with_a_named_target_other_columns_are_extra():
    """Also where the name is not that of an output, for a reward of one's own; a near miss is an error."""
    program, lm = desk()
    row = {"text": "a", "team": "billing", "label": "x", "id": 7}
    (example,) = await sm.load_examples([row], "team", program=program)
    assert (example.target, dict(example.extra)) == ({"team": "billing"}, {"label": "x", "id": 7})
    (example,) = await sm.load_examples([row], "label", program=program)
    assert (example.target, dict(example.extra)) == ({"label": "x"}, {"team": "billing", "id": 7})
    (example,) = await sm.load_examples([row], ["billing"], program=program)
    assert (example.target, dict(example.extra)) == ("billing", {"team": "billing", "label": "x", "id": 7})
    with pytest.raises(sm.DataError, match="Did you mean 'team'"):
        await sm.load_examples([{"text": "a", "Team": "billing"}], "Team", program=program)
    program.compile(reward="exact_match")
    with pytest.raises(sm.DataError, match=r"no output has the field 'label' of the target; it has team, urgency"):
        await program.evaluate([row], "label")
    assert not lm.requests
    assert (await sm.evaluate(program, [row], "team", reward="exact_match")).score == 1.0


@pytest.mark.parametrize(
    "target", [Other(label="billing"), {"label": "billing"}, {"answers": ["billing"]}, ["billing"], 5, {1, 2}]
)
async def test_a_target_of_another_shape_is_for_a_reward_of_ones_own(target):
    """It is passed as it is; a reward or metric that compares fields refuses it before the first call."""
    program, lm = desk()
    seen = []
    rows = [sm.Example("x", {"text": "a"}, target), sm.Example("y", {"text": "b"}, target)]
    evaluation = await sm.evaluate(program, rows, reward=lambda y_true: seen.append(y_true) or 1.0)
    assert evaluation.score == 1.0
    assert [*map(type, seen)] == [type(target)] * 2
    calls = len(lm.requests)
    for reward in ("exact_match", "token_f1", "numeric_closeness", sm.rewards.Weighted({"a": (1, "exact_match")})):
        with pytest.raises(sm.DataError, match="2 of 2 rows have a target that cannot be scored"):
            await sm.evaluate(program, rows, reward=reward)
    for metric in ("accuracy", "f1_score"):
        with pytest.raises(sm.DataError, match="2 of 2 rows have a target that cannot be scored"):
            await sm.evaluate(program, rows, metrics=[metric])
    assert len(lm.requests) == calls


async def test_bind_compares_the_fields_of_the_labels_with_those_of_the_output():
    """Where the reward compares fields; before any row."""
    program, _ = desk()
    for reward in ("exact_match", "token_f1", "numeric_closeness", sm.rewards.Weighted({"a": (1, "exact_match")})):
        with pytest.raises(sm.SchemaError, match="no output has the field 'label'"):
            await sm.Trainer(program, reward=reward).bind(Ticket, Other)
    await sm.Trainer(program, reward=lambda: 1.0).bind(Ticket, Other)


async def test_a_trainer_reads_labels_of_batches():
    """In forward, fit and score."""
    program, lm = desk()
    trainer = sm.Trainer(program, reward="exact_match")
    await trainer.bind(Ticket)
    await trainer.init_params()
    batch = sm.Batch([{"text": "a"}], [{"team": "Billing"}])
    for run in (trainer.forward(batch), trainer.score([batch]), trainer.fit([batch], num_epoch=1)):
        with pytest.raises(sm.DataError, match="/target/team"):
            await run
    assert not lm.requests


async def test_no_row_has_a_target():
    """One error, where the reward needs them; a single row without one costs that row alone."""
    program, lm = desk()
    for door in DOORS[:3]:
        with pytest.raises(sm.DataError, match="exact_match needs targets, and no row has one"):
            await door(program, [{"text": "a"}, {"text": "b"}], "exact_match")
    assert not lm.requests


async def test_predict_ignores_what_is_not_an_input():
    """Columns of labels and ids stand in the files that one predicts on."""
    program, _ = desk()
    rows = [{"text": "a", "team": "Nobody", "id": 1}]
    for source in (rows, Frame(*rows), [Labelled(text="a", team="Nobody")]):
        assert await program.predict(source) == [REPLY]


@pytest.mark.parametrize("reward", [
    lambda y_true, y_pred: y_pred == y_true,
    lambda y_true, y_pred: y_pred["team"] == y_true["team"],
    lambda y_true, y_pred: y_pred.team == y_true.team,
])  # fmt: skip
async def test_targets_are_values_of_the_output_in_every_form(reward, tmp_path):
    """Items, attributes and equality; of CSV, tables, dicts, pairs and data models."""
    program, _ = desk()
    target = REPLY
    path = tmp_path / "rows.csv"
    path.write_text("text,team,urgency\na,billing,3\n")
    for rows in ([{"text": "a", **target}], [({"text": "a"}, target)], [sm.Example("1", {"text": "a"}, target)],
                 [({"text": "a"}, Desk(**target))], Frame({"text": "a", **target}), path):  # fmt: skip
        for door in DOORS[:2]:
            assert (await door(program, rows, reward)).score == 1.0


async def test_a_part_of_the_output_is_a_value_of_its_fields():
    """What the target leaves out is not compared."""
    program, _ = desk()
    (row,) = await sm.load_examples([{"text": "a", "team": "shipping"}], program=program)
    assert row.target.team == row.target["team"] == "shipping"
    assert [*row.target.keys()] == [*row.target.get_schema()["properties"]] == ["team"]


class Kind(enum.Enum):
    bill = "bill"


class Doc(sm.DataModel):
    text: str
    day: dt.date
    weight: float
    kind: Kind = Kind.bill


class Array:
    """A number of numpy."""

    def tolist(self):
        return 1.5


async def test_rows_hold_what_a_data_model_takes():
    """Dates, enums, decimals and numbers of numpy are read as the data model reads them."""
    program = sm.Sequential([sm.Input(Doc), sm.Generator(Doc)])
    typed = {"text": "x", "day": dt.date(2024, 1, 2), "kind": Kind.bill, "weight": decimal.Decimal("1.5")}
    plain = {"text": "x", "day": "2024-01-02", "kind": "bill", "weight": 1.5}
    for inputs in (typed, {**plain, "kind": Kind.bill, "weight": Array()}):
        ((row,), (pair,)) = [
            await sm.load_examples(rows, program=program) for rows in ([inputs], [(inputs, dict(inputs))])
        ]
        assert row.inputs == pair.inputs == pair.target == plain
    with pytest.raises(sm.DataError, match="/kind: wanted"):
        await sm.load_examples([{**typed, "kind": dt.date(2024, 1, 2)}], program=program)


class Sheet(sm.DataModel):
    text: str
    day: dt.date | None
    weight: float | None = None
    size: int = 7
    note: str | None = None


async def test_an_empty_cell_is_absent_or_none(tmp_path):
    """In CSV files and tables alike; a text that must be there is empty, and a number that must be is an error."""
    program = sm.Sequential([sm.Input(Sheet), sm.Generator(Desk)])
    path = tmp_path / "rows.csv"
    path.write_text(
        f"text,day,weight,size,note,team,urgency\n{'x' * 200_000},,,,,billing,\n,2024-01-02,2,3,n,shipping,1\n"
    )
    first, second = await sm.load_examples(path, program=program)
    assert (first.inputs, first.target) == ({"text": "x" * 200_000, "day": None, "weight": None, "note": None},
                                            {"team": "billing"})  # fmt: skip
    assert first.inputs.size == 7
    assert (second.inputs["text"], second.inputs.size, second.target) == ("", 3, {"team": "shipping", "urgency": 1})
    nothing = dict.fromkeys(["day", "weight", "size", "note", "urgency"])
    for frame in (
        Polars({"text": "x", "team": "billing", **nothing}),
        Frame({"text": "x", "team": "billing", **nothing}),
    ):
        (row,) = await sm.load_examples(frame, program=program)
        assert (row.inputs.size, row.inputs.weight, row.target) == (7, None, {"team": "billing"})
    frame = Frame({"text": "x", "day": None, "size": 3.0, "weight": 2.0, "team": "billing", "urgency": 1.0})
    (row,) = await sm.load_examples(frame, program=program)
    assert [row.inputs.size, row.inputs.weight, row.target.urgency] == [3, 2.0, 1]
    assert [*map(type, (row.inputs.size, row.inputs.weight, row.target.urgency))] == [int, float, int]
    path.write_text("text,n\nx,\n")
    with pytest.raises(sm.DataError, match='/n: wanted integer, got ""'):
        await sm.load_examples(path, program=sm.Sequential([sm.Input(schema={
            "type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["text", "n"], "additionalProperties": False})]))  # fmt: skip


def test_the_types_of_a_schema():
    """References and alternatives are followed; what is open takes every type."""
    schema = {"anyOf": [{"$ref": "#/$defs/A"}, {"type": ["string", "null"]}], "$defs": {"A": {"enum": [1, True]}}}
    assert types_of(schema) == {int, bool, str}
    assert float in types_of({})


class Span(sm.DataModel):
    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def check(self):
        assert self.low <= self.high, "it ends before it begins"
        return self


ORDERED = {
    "type": "object", "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
    "if": {"properties": {"low": {"const": 2}}}, "then": {"properties": {"high": {"const": 2}}},
    "additionalProperties": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        (sm.SymbolicDataModel(data_model=Span), "/target: the class does not accept .*\n.*ends before"),
        (sm.SymbolicDataModel(schema=ORDERED), "/target: the value does not satisfy .*/high: wanted 2, got 1"),
    ],
)
def test_fields_that_do_not_fit_together_are_no_target(outputs, fault):
    """Though each of them could be right; a part of them is not held to that."""
    targets = Targets(outputs)
    assert targets.read({"low": 1, "high": 2}) == {"low": 1, "high": 2}
    assert targets.read({"low": 2}) == {"low": 2}
    with pytest.raises(sm.DataError, match=fault):
        targets.read({"low": 2, "high": 1})


class Sorted(sm.DataModel):
    desk: Desk
    tags: list[Literal["new", "old"]]


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ({"desk": {"team": "Billing"}, "tags": []}, "/target/desk/team: .* Did you mean 'billing'"),
        ({"desk": {"team": "billing"}, "tags": ["new", "Old"]}, "/target/tags/1: .* Did you mean 'old'"),
        ({"desk": "billing", "tags": []}, r"/target/desk: no output has \"billing\"; wanted object\.$"),
        ({"desk": {"team": "billing"}, "tags": "new"}, r"/target/tags: no output has \"new\"; wanted array\.$"),
    ],
)
async def test_a_label_inside_a_value_is_suggested_where_it_is_wrong(target, wanted):
    """Not where the label is right, and its place is not."""
    program = sm.Sequential([sm.Input(Ticket), sm.Generator(Sorted)])
    with pytest.raises(sm.DataError) as caught:
        await sm.load_examples([(Ticket(text="a"), target)], program=program)
    assert re.search(wanted, str(caught.value), re.MULTILINE)


async def test_a_row_without_one_of_two_inputs_fails_alone():
    """In an evaluation, like any row whose inputs are wrong."""

    ticket, gold = sm.Input(Ticket, name="ticket"), sm.Input(Gold, name="gold")
    program = sm.Program(inputs=[ticket, gold], outputs=gold, name="both")
    rows = [{"ticket": {"text": "a"}, "gold": {"team": "x"}}, {"ticket": {"text": "b"}}]
    evaluation = await sm.evaluate(program, rows, progress=False)
    assert [result.error is None for result in evaluation.results] == [True, False]

"""load_examples: rows of any form, checked before anything is run; and how they are split."""

import csv
import datetime as dt
import json
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import hypothesis.strategies as st
import pydantic
import pytest
from hypothesis import given, settings

import synmod as sm
from synmod.testing import ScriptedLM
from synmod.train.examples import split


class Text(sm.DataModel):
    """What comes in."""

    text: str
    n: int | None = None


class Label(sm.DataModel):
    """What goes out."""

    label: Literal["a", "b"]
    score: float


def program():
    """One with declared inputs and outputs."""
    return sm.Sequential([sm.Input(Text), sm.Generator(Label)])


ROW = {"text": "t", "label": "a", "score": 1.5}


class Polars:
    """A table by `to_dicts`."""

    def to_dicts(self):
        return [ROW]


class Arrow:
    """A table by `to_pylist`."""

    column_names = list(ROW)

    def to_pylist(self):
        return [ROW]


class Pandas:
    """A table by `to_dict("records")`, whose missing cells are NaN."""

    def to_dict(self, orient):
        return [{**ROW, "n": float("nan")}] if orient == "records" else None


class Missing:
    """A double of `pandas.NA`: what compares with it is neither true nor false."""

    def __ne__(self, other):
        return self

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


class NAType(Missing):
    """By the name of its class."""


class Array(Missing):
    """A cell that compares cell by cell."""


class Series:
    """A column of pandas."""

    def __init__(self, cells):
        self.cells = cells

    def to_frame(self):
        raise AssertionError("a table")

    def to_dict(self, into=dict):
        return into(enumerate(self.cells))

    def __iter__(self):
        return iter(self.cells)


class HuggingFace:
    """A table that is an iterable of dicts."""

    column_names = list(ROW)

    def to_dict(self):
        raise AssertionError("columns, not rows")

    def __iter__(self):
        return iter([ROW])


async def later():
    """An async source."""
    yield ROW


@pytest.mark.parametrize("source", [[ROW], Polars(), Arrow(), Pandas(), HuggingFace(), iter([ROW]), later()])
async def test_sources_give_equal_rows(source):
    """Inputs are what the program declares, the rest is the target."""
    (row,) = await sm.load_examples(source, program=program())
    assert (row.inputs["text"], row.target) == ("t", {"label": "a", "score": 1.5})


async def test_records_are_told_how_they_are_read(tmp_path):
    """A row of inputs and outputs, which rename= makes an Example, and an event of a Recorder."""
    row = {"inputs": {"text": "t"}, "outputs": {"label": "a", "score": 1.5}}
    with pytest.raises(sm.DataError, match='A target beside "inputs" is "target"'):
        await sm.load_examples([row], program=program())
    (example,) = await sm.load_examples([row], program=program(), rename={"outputs": "target"})
    assert (example.inputs["text"], example.target) == ("t", {"label": "a", "score": 1.5})
    with pytest.raises(sm.DataError, match="read by module="):
        await sm.load_examples([{"event": "call_begin", "call_id": "1"}], program=program())


async def test_files_give_equal_rows(tmp_path):
    """CSV cells are read by the schema of their field."""
    (tmp_path / "a.json").write_text(json.dumps([ROW]))
    (tmp_path / "a.jsonl").write_text(f"\n{json.dumps(ROW)}\n\n")
    (tmp_path / "a.csv").write_text("\ufefftext,label,score,n\nt,a,1.5,\n")
    for name in ("a.json", "a.jsonl", "a.csv"):
        (row,) = await sm.load_examples(tmp_path / name, program=program())
        assert (row.inputs["text"], row.target) == ("t", {"label": "a", "score": 1.5})
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(sm.ArgumentError, match=r"\.csv"):
        await sm.load_examples(tmp_path / "a.txt")


async def test_typed_files_give_equal_rows(tmp_path):
    """YAML, and Parquet whose missing cells are NaN or null."""
    (tmp_path / "a.yaml").write_text("- text: t\n  label: a\n  score: 1.5\n")
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({**{name: [cell] for name, cell in ROW.items()}, "n": [float("nan")]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    for name in ("a.yaml", "a.parquet"):
        (row,) = await sm.load_examples(tmp_path / name, program=program())
        assert (row.inputs["text"], row.target) == ("t", {"label": "a", "score": 1.5})


async def test_missing_cells_and_columns_of_pandas():
    """Every way to write nothing is None, arrays stand as they are, and a column is a list of rows or targets."""
    table, array = Pandas(), Array()
    table.to_dict = lambda orient: [{"text": "t", "n": NAType(), "label": "a", "vector": array}]
    (row,) = await sm.load_examples(table, "label", program=program())
    assert (row.inputs.get_json(), row.extra["vector"]) == ({"text": "t", "n": None}, array)
    (row,) = await sm.load_examples(Series([{"text": "t"}]), Series(["a"]), program=program())
    assert (row.inputs["text"], row.target) == ("t", "a")


async def test_a_csv_file_gives_the_cells_that_the_csv_module_wrote(tmp_path):
    """Also where a cell has one of the line separators that are none in a CSV file."""
    texts = ["a\u2028b", "a\x0bb", "a\x0cb", "a\x1cb", "a\x85b", "a\nb", "a\r\nb", 'a "b"']
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    assert [row.inputs["text"] for row in await sm.load_examples(tmp_path / "a.csv")] == texts


class Facts(sm.DataModel):
    """A second input."""

    facts: list[str]


class Two(sm.Module):
    """Takes two inputs, of which one may be left out."""

    async def call(self, query: Text, facts: Facts | None = None) -> Text:
        return query if facts is None else Text(text=" ".join(facts.facts))


class Defaulted(sm.Module):
    """Takes two inputs, of which one has a value of its own."""

    async def call(self, query: Text, facts: Facts = Facts(facts=["known"])) -> Text:
        return Text(text=f"{query.text} {facts.facts[0]}")


class Optional(sm.DataModel):
    """An input without required fields."""

    hint: str | None = None


async def test_rows_of_several_inputs(tmp_path):
    """CSV cells hold the JSON of an Input, and an optional Input may be left out, in each face of the program."""
    (tmp_path / "a.csv").write_text('query,facts,label\n"{""text"":""t""}","{""facts"":[""f""]}",a\n')
    (row,) = await sm.load_examples(tmp_path / "a.csv", "label", program=Two())
    assert (row.inputs["query"]["text"], row.inputs["facts"]["facts"], row.target) == ("t", ["f"], {"label": "a"})
    query, facts = sm.Input(Text, name="query"), sm.Input(Facts, name="facts", optional=True)
    composed = sm.Program(inputs=[query, facts], outputs=await Two()(query, facts))
    for taking in (Two(), composed):
        rows = await sm.load_examples([{"query": {"text": "t"}}], program=taking)
        assert (await sm.evaluate(taking, rows)).results[0].outputs["text"] == "t"
        with pytest.raises(sm.DataError, match="there is no input 'query'"):
            await sm.load_examples([{"facts": {"facts": []}}], program=taking)
    assert [output["text"] for output in await composed.predict([{"query": {"text": "t"}}])] == ["t"]
    row = {"query": {"text": "t"}}
    for rows in ([row], await sm.load_examples([row], program=Defaulted())):
        assert (await sm.evaluate(Defaulted(), rows)).results[0].outputs["text"] == "t known"


async def test_a_row_of_optional_fields_may_be_empty():
    """`{}` is JSON of an Input whose fields are all optional."""
    evaluation = await sm.evaluate(sm.Sequential([sm.Input(Optional), sm.Identity()]), [{}])
    assert evaluation.results[0].outputs.get_json() == {}


async def test_targets_by_name_or_by_row():
    """What is neither input nor target is extra; pairs and Examples have targets of their own."""
    (row,) = await sm.load_examples([ROW], "label", program=program())
    assert (row.target, dict(row.extra)) == ({"label": "a"}, {"score": 1.5})
    (row,) = await sm.load_examples([ROW], ["label", "score"])
    assert (row.inputs, row.target) == ({"text": "t"}, {"label": "a", "score": 1.5})
    for source, y in (
        ([{"text": "t"}], ["a"]),
        ([({"text": "t"}, "a")], None),
        ([sm.Example("1", {"text": "t"}, "a")], None),
    ):
        (row,) = await sm.load_examples(source, y, program=program())
        assert (row.inputs["text"], row.target) == ("t", "a")
    (row,) = await sm.load_examples([sm.JsonDataModel(ROW, schema={"type": "object"})], ["label"], program=program())
    assert row.target == {"label": "a"}
    for wrong in ([1], [1, 2, 3], ["a"], ["lable"]):
        with pytest.raises(sm.ArgumentError, match="targets for 2 rows"):
            await sm.load_examples([ROW, ROW], wrong)
    for wrong, advice in ((5, "one target per row"), (program(), "goes into program=")):
        with pytest.raises(sm.ArgumentError, match=advice):
            await sm.load_examples([ROW], wrong)
    with pytest.raises(sm.ArgumentError, match=r"\[x\] for a single one"):
        await program().predict(Text(text="t"))


async def test_a_target_that_is_not_json_is_a_fault_of_its_row():
    """Found before the first call, where it would otherwise fail in each comparison."""
    rows = [ROW, {**ROW, "label": dt.date(2020, 1, 1)}]
    with pytest.raises(sm.DataError, match="row 1: /target"):
        await sm.load_examples(rows, "label", program=program())


def test_an_id_that_is_not_a_text():
    """Refused where the example is made: a data model in its place is an input."""
    with pytest.raises(sm.ArgumentError, match=r"Example\(None, inputs, target\)"):
        sm.Example(Text(text="t"), {"label": "a"})


async def test_a_limit_reads_no_row_more():
    """A source that waits for its next row is not waited for."""
    read = []

    async def rows():
        for number in range(9):
            read.append(number)
            yield {"text": str(number)}

    for limit in (0, 2):
        read.clear()
        assert len(await sm.load_examples(rows(), program=program(), limit=limit)) == len(read) == limit


async def test_names_ids_groups_and_limits():
    """Columns may be renamed; ids name one row each."""
    rows = [{"question": "t", "key": n, "who": "x"} for n in range(3)]
    found = await sm.load_examples(rows, program=program(), rename={"question": "text"}, id="key", group="who", limit=2)
    assert [(row.id, row.group, row.target) for row in found] == [("0", "x", None), ("1", "x", None)]
    with pytest.raises(sm.DataError, match="'x' is there twice"):
        await sm.load_examples(rows, program=program(), rename={"question": "text"}, id="who")


async def test_all_faults_are_told_at_once():
    """Each with its row, before anything runs."""
    rows = [ROW, {"txt": "t"}, 5, {"text": 1}, (1, 2, 3)]
    with pytest.raises(sm.DataError, match="4 of 5 rows") as caught:
        await sm.load_examples(rows, program=program())
    assert all(f"row {number}: " in str(caught.value) for number in (1, 2, 3, 4))
    with pytest.raises(sm.DataError, match="Did you mean 'label'"):
        await sm.load_examples([ROW], "lable", program=program())


@pytest.mark.parametrize("text", [b"", b"a,a\n1,2\n", b"\xff\xfe,\n1,2\n", b'a,b\n"1,2\n', b"a,b\n1\n1,2,3\n"])
async def test_hostile_csv(tmp_path, text):
    """No header, one name twice, bytes that are no text, open quotes, cells too few or too many."""
    (tmp_path / "x.csv").write_bytes(text)
    with pytest.raises(sm.DataError):
        await sm.load_examples(tmp_path / "x.csv")


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=60), st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".yaml"]))
def test_any_bytes_give_rows_or_a_data_error(tmp_path_factory, content, suffix):
    """Never another error."""
    path = tmp_path_factory.mktemp("bytes") / f"x{suffix}"
    path.write_bytes(content)
    try:
        assert isinstance(sm.run(sm.load_examples(path)), list)
    except sm.DataError:
        pass


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.floats(0, 0.9), st.integers(0, 9))
def test_strata_keep_their_share_to_within_a_row(labels, share, seed):
    """Of each value of a closed field; nothing is lost, and equal seeds give equal splits."""
    rows = [sm.Example(str(n), {}, {"label": label}) for n, label in enumerate(labels)]
    kept, held = split(rows, share, seed=seed, closed="label")
    assert sorted([*kept, *held], key=lambda row: int(row.id)) == rows
    assert (kept, held) == split(rows, share, seed=seed, closed="label")
    wanted = round(len(rows) * share)
    counts = Counter(row.target["label"] for row in held)
    for label, size in Counter(labels).items():
        assert abs(counts[label] - wanted * size / len(rows)) <= 1 + 1e-9


@given(st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=40), st.integers(0, 9))
def test_groups_are_never_split(groups, seed):
    """Whatever their sizes; there are always rows to train on."""
    rows = [sm.Example(str(n), {}, group=group) for n, group in enumerate(groups)]
    kept, held = split(rows, seed=seed)
    assert kept
    assert not {row.group for row in kept} & {row.group for row in held}
    assert bool(held) == (len(set(groups)) > 1)


async def test_a_limit_that_is_no_number():
    """Said before anything is read."""
    for wrong in (-1, "3"):
        with pytest.raises(sm.ArgumentError, match="limit must be"):
            await sm.load_examples([ROW], limit=wrong)


def test_an_example_as_json():
    """Data models as objects."""
    rest = {"target": {"label": "b"}, "extra": {"n": 1}, "group": "g"}
    assert sm.Example("1", Text(text="a"), **rest).to_json() == {"id": "1", "inputs": {"text": "a", "n": None}, **rest}


# -- as people write them ----------------------------------------------------------------------------------------------


class Words(sm.DataModel):
    """A text alone."""

    text: str


def labels(output=None):
    """A program of one input and one output field."""
    return sm.Sequential([sm.Input(Words), sm.Generator(output or {"label": str})])


class Rows:
    """A table by `to_dicts`."""

    def __init__(self, *rows):
        self.rows = rows

    def to_dicts(self):
        return self.rows


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("semicolons.csv", "text;label\r\na, b;x\r\n"),
        ("tabs.csv", "text\tlabel\na, b\tx\n"),
        ("tabs.tsv", "text\tlabel\na, b\tx\n"),
        ("records.jsonl", '{"inputs": {"text": "a, b"}, "target": {"label": "x"}}\n'),
        ("records.json", '[{"id": 7, "inputs": {"text": "a, b"}, "target": "x"}]'),
    ],
)
async def test_files_of_spreadsheets_and_records(tmp_path, name, text):
    """Columns between semicolons or tabs; Examples as JSON."""
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    (row,) = await sm.load_examples(tmp_path / name, program=labels())
    target = row.target if isinstance(row.target, str) else row.target["label"]
    assert (row.inputs.text, target) == ("a, b", "x")


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("x.csv", "text,label\na,b\nh\u00e9,x\n".encode("latin-1"), "line 3: the text is not in UTF-8 .* save"),
        ("x.xlsx", b"PK", "Read another kind with a library of tables"),
        ("x.jsonl", b'{"text": "a"},\n', "Leave out the comma at the end of the line"),
        ("x.jsonl", b'{"text": "a",\n', r"not JSON: [^.]*\.$"),
        ("x.jsonl", b'[{"text": "a"}]\n', r"line 1: the line is a list; .* \.json\."),
        ("x.json", b'{"text": "a"}\n{"text": "b"}\n', r"one row per line is called \.jsonl"),
        ("x.json", b'{"data": []}', "holds an object of 'data'; wanted a list of rows"),
        ("x.csv", b"Text,label\na,x\n", r"no input 'text'.*rename={'Text': 'text'}.* The columns are 'Text', 'label'"),
        ("x.csv", b"text,team\na,x\n", r"Rename it, as in sm.load_examples\(rename={'team': 'label'}\)"),
        ("x.jsonl", b'{"text": "a", "gold": {"label": "x"}}', r"name the target, y=\['gold'\]"),
    ],
)
async def test_a_fault_of_a_file_names_its_remedy(tmp_path, name, content, wanted):
    """Beside the line and the column."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sm.SynmodError, match=wanted):
        await sm.load_examples(tmp_path / name, program=labels())


async def test_a_column_that_holds_the_whole_target():
    """As the only one that y= names."""
    (row,) = await sm.load_examples([{"text": "a", "gold": {"label": "x"}}], "gold", program=labels())
    assert row.target == {"label": "x"}


@pytest.mark.parametrize("source", [["a"], [("a", "x")], [sm.Example(None, "a", "x")]])
async def test_a_bare_value_stands_for_the_only_field_of_the_input(source):
    """As it does for that of the output; also where a text is the row."""
    (row,) = await sm.load_examples(source, program=labels())
    assert row.inputs.text == "a"


@pytest.mark.parametrize("cell", ["yes", "1", "1.0", "TRUE", 1, 1.0, True])
async def test_words_of_tables_for_true(cell):
    """Where the field takes no such text or number."""
    source = Rows({"text": "a", "is_new": cell})
    (row,) = await sm.load_examples(source, program=labels({"is_new": bool}))
    assert row.target == {"is_new": True}


# -- records of other libraries ----------------------------------------------------------------------------------------


class Bare(sm.DataModel):
    """The only field."""

    text: str


class PydanticText(pydantic.BaseModel):
    """Inputs, by an alias as a schema has it."""

    words: str = pydantic.Field(alias="text")


class PydanticLabel(pydantic.BaseModel):
    """A target."""

    label: str
    score: float


class PydanticRow(PydanticLabel):
    """All fields."""

    text: str


@dataclass
class DataText:
    """Inputs."""

    text: str


@dataclass
class DataLabel:
    """A target."""

    label: str
    score: float


@dataclass
class DataRow:
    """All fields."""

    text: str
    label: str
    score: float


class NamedText(NamedTuple):
    """Inputs."""

    text: str


class NamedLabel(NamedTuple):
    """A target."""

    label: str
    score: float


class NamedRow(NamedTuple):
    """All fields."""

    text: str
    label: str
    score: float


class NamedPair(NamedTuple):
    """A pair with the names of an Example."""

    inputs: Any
    target: Any


class OtherPair(NamedTuple):
    """A pair with names of its own."""

    question: Any
    gold: Any


RECORDS = {
    "pydantic": PydanticRow(**ROW),
    "dataclass": DataRow(**ROW),
    "named tuple": NamedRow(**ROW),
    "pair of pydantic": (PydanticText(text="t"), PydanticLabel(label="a", score=1.5)),
    "pair of dataclasses": (DataText("t"), DataLabel("a", 1.5)),
    "pair of named tuples": (NamedText("t"), NamedLabel("a", 1.5)),
    "data model and pydantic": (Text(text="t"), PydanticLabel(label="a", score=1.5)),
    "data model and named tuple": (Text(text="t"), NamedLabel("a", 1.5)),
    "Example": sm.Example(None, PydanticText(text="t"), DataLabel("a", 1.5)),
    "Example as a named tuple": NamedPair(DataText("t"), PydanticLabel(label="a", score=1.5)),
    "named pair": OtherPair(DataText("t"), NamedLabel("a", 1.5)),
    "named pair of data models": OtherPair(Text(text="t"), Label(label="a", score=1.5)),
}


@pytest.mark.parametrize("row", RECORDS.values(), ids=RECORDS)
async def test_a_record_of_another_library_is_read_by_its_names(row):
    """Pydantic models, dataclasses and named tuples, as rows, inputs and targets."""
    (example,) = await sm.load_examples([row], program=program())
    inputs, target = example.inputs, example.target
    assert (inputs["text"], target["label"], target["score"]) == ("t", "a", 1.5)
    lm = ScriptedLM([{"label": "a", "score": 1.5}])
    typed = sm.Sequential([sm.Input(Text), sm.Generator(Label, language_model=lm)])
    assert (await sm.evaluate(typed, [row], reward=sm.rewards.ExactMatch())).score == 1.0


@pytest.mark.parametrize("kind", [DataRow, NamedRow, PydanticRow])
async def test_fields_of_a_record_can_be_named_as_targets(kind):
    """As those of a dict, with and without a program."""
    for reader in (None, program()):
        (example,) = await sm.load_examples([kind(**ROW)], ["label", "score"], program=reader)
        assert (example.inputs["text"], example.target["label"]) == ("t", "a")


async def test_a_record_without_inputs_is_told_with_its_fields():
    """And what else a row may be."""
    with pytest.raises(sm.DataError, match="DataLabel with the fields 'label', 'score', none of which is an input"):
        await sm.load_examples([DataLabel("a", 1.5)], program=program())


@pytest.mark.parametrize("inputs", [PydanticText(text="t"), DataText("t"), NamedText("t")], ids=type)
async def test_a_record_with_the_only_field_of_the_input_is_the_input(inputs):
    """In a pair and in an Example, where a bare value stands for that field."""
    single = sm.Sequential([sm.Input(Bare), sm.Generator(Label)])
    for row in ((inputs, "a"), sm.Example(None, inputs, "a")):
        (example,) = await sm.load_examples([row], program=single)
        assert example.inputs["text"] == "t"


# -- recorded calls and the hub ----------------------------------------------------------------------------------------


class Shout(sm.Module):
    """Fails on one text, and returns nothing for another."""

    async def call(self, inputs: Text, facts: Facts | None = None) -> Text | None:
        if inputs.text == "bad":
            raise ValueError("bad")
        return None if inputs.text == "none" else Text(text=inputs.text.upper())


class Desk(sm.Module):
    """Calls two modules, by position and by name."""

    def __init__(self):
        super().__init__()
        self.loud, self.more = Shout(), [Shout()]

    async def call(self, inputs: Text) -> Text:
        await self.loud(inputs=inputs)
        await self.more[0](inputs, facts=Facts(facts=["f"]), training=True)
        return await self.loud(inputs)


@pytest.fixture
def traffic(tmp_path):
    """Three calls of which one failed, as a Recorder and a trace keep them: a file, a list, a trace, its JSON."""
    desk, rows = Desk(), []
    with (
        sm.hooks(sm.hooks_lib.Recorder(tmp_path / "a.jsonl")),
        sm.hooks(sm.hooks_lib.Recorder(rows)),
        sm.trace() as trace,
    ):
        for text in ("a", "bad", "b"):
            with suppress(ValueError):
                sm.run(desk, Text(text=text))
    (tmp_path / "trace.json").write_text(json.dumps(trace.to_json()))
    return desk, [tmp_path / "a.jsonl", rows, trace, trace.to_json(), str(tmp_path / "trace.json")]


async def test_calls_of_a_module_that_were_recorded_are_rows(traffic):
    """Their inputs, by position or by name, and their outputs as the target; those that failed are left out."""
    desk, sources = traffic
    for source in sources:
        rows = await sm.load_examples(source, module="desk", program=desk)
        assert [(row.inputs["text"], row.target["text"]) for row in rows] == [("a", "A"), ("b", "B")]
        rows = await sm.load_examples(source, module="loud", program=desk.loud)
        assert [row.inputs["inputs"]["text"] for row in rows] == ["a", "a", "b", "b"]
        assert (await sm.evaluate(desk.loud, rows, reward="exact_match")).score == 1.0
        (row,) = await sm.load_examples(source, module="more/0", program=desk.loud, limit=1)
        assert row.inputs["facts"]["facts"] == ["f"]
        (row, _) = await sm.load_examples(source, module="desk")
        assert (row.inputs["text"], row.target["text"]) == ("a", "A")


async def test_faults_of_recorded_calls(traffic, tmp_path):
    """A misspelt module, what is no record, and arguments whose names are not known."""
    _, (path, rows, *_) = traffic
    with pytest.raises(sm.DataError, match="no call of the module 'laud' with outputs. Did you mean 'loud'"):
        await sm.load_examples(path, module="laud")
    with pytest.raises(sm.DataError, match="called by position and by name; give it as program="):
        await sm.load_examples(path, module="0")
    with pytest.raises(sm.ArgumentError, match="leave out y or module"):
        await sm.load_examples(path, "text", module="desk")
    with path.open("a") as file:
        file.write('{"event": "call_end"}\n[1]\n{"calls": [5]}\n{')
    with pytest.raises(sm.DataError, match="4 of 6 rows") as caught:
        await sm.load_examples(path, module="desk")
    assert len(rows) == 20
    assert "line 21, line 23: it is neither a record of a Recorder nor a trace." in str(caught.value)
    with pytest.raises(sm.DataError, match="It has 7"):
        await sm.load_examples([{**rows[0], "event": "call_end", "name": 7}], module="a")
    with pytest.raises(sm.DataError, match="It has 0, sort"):
        await sm.load_examples([{**rows[0], "event": "call_end", "path": "0", "name": "sort"}], module="a")
    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(sm.DataError, match="It has no calls"):
        await sm.load_examples(tmp_path / "b.jsonl", module="desk")


class Hub:
    """A double of the library `datasets`."""

    def load_dataset(self, name, configuration=None, *, split=None):
        if name == "gone":
            raise FileNotFoundError("Dataset 'gone' does not exist on the Hub.")
        splits = {split: Table(f"{name} {configuration} {split}") for split in ("train", "test")}
        if split is None:
            return splits if configuration else {"train": splits["train"]}
        return splits[split]


class Table(HuggingFace):
    """A data set of one row."""

    def __init__(self, text):
        self.text = text

    def __iter__(self):
        return iter([{**ROW, "text": self.text}])


async def test_a_data_set_of_the_hub_is_named(monkeypatch):
    """With its configuration and its split, which may be left out where there is only one."""
    monkeypatch.setitem(sys.modules, "datasets", Hub())
    for source, name, text in (
        ("hf:owner/name", "test", "owner/name None test"),
        ("hf:glue:mrpc", "train", "glue mrpc train"),
        ("hf:small", None, "small None train"),
    ):
        (row,) = await sm.load_examples(source, split=name, program=program())
        assert (row.inputs["text"], row.target) == (text, {"label": "a", "score": 1.5})
    with pytest.raises(sm.ArgumentError, match="several splits: give split=, one of train, test"):
        await sm.load_examples("hf:glue:mrpc")
    with pytest.raises(sm.DataError, match="hf:gone: Dataset 'gone' does not exist"):
        await sm.load_examples("hf:gone")
    with pytest.raises(sm.ArgumentError, match="split= is for data sets of the hub"):
        await sm.load_examples([ROW], split="train")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(sm.ConfigError, match=r"pip install 'synmod-lm\[datasets\]'"):
        await sm.load_examples("hf:small")

"""`summary`: a line for each module, totals last, before the build as after it."""

import io
import itertools
import sys
import time

import pytest

import synmod as sm
from synmod.testing import ScriptedLM
from synmod.view import COLUMNS
from tests.view.programs import Agent, Answer, Leaf, Link, Query, Tied, Wide, chain, diamond, generator, run


def rows(text):
    """The cells of each line between the rule and the totals, by heading; columns are found by the rule."""
    lines = text.split("\n")
    starts = [0, *(i + 1 for i, c in enumerate(lines[1]) if c == " " and lines[1][i + 1 : i + 2] == "─")]
    cut = [[line[a:b].strip() for a, b in itertools.pairwise([*starts, None])] for line in lines]
    totals = 2 if lines[-1].startswith("last recorded") else 1
    return [dict(zip(cut[0], cells, strict=True)) for cells in cut[2:-totals]]


def paths(text):
    """The first column."""
    return [row["path"] for row in rows(text)]


def test_a_row_a_module_in_definition_order():
    """Path, class, Variables, sizes, models and schemas; every child is named."""
    program = diamond()
    found = rows(program.summary())
    assert [row["path"] for row in found] == ["(root)", "first", "second", "last"]
    assert [row["class"] for row in found] == ["Program", "Generator", "Generator", "Generator"]
    assert found[0]["schemas"] == "Query(query: str) -> Answer(answer: str)"
    assert found[1]["schemas"] == "Query(query: str) -> Answer(answer: str)"
    assert found[1]["Variables"] == "2 trainable"
    assert found[1]["language model"] == program.get_module("first").language_model.settings.model


def test_the_totals_stand_last():
    """Modules, Variables with both kinds, size and tokens."""
    parts = Wide(2)
    parts.leaf = Leaf()
    last = parts.summary().split("\n")[-1]
    assert last == "4 modules; 4 Variables (3 trainable, 1 frozen), 19 B, about 7 tokens"


def test_a_frozen_module_masks_what_is_below():
    """As `trainable_variables` counts."""
    tied = Tied(Leaf())
    tied.trainable = False
    assert [row["Variables"] for row in rows(tied.summary())] == ["", "2 frozen"]


def test_an_alias_is_a_row_of_its_own_that_counts_nothing():
    """It reads `= ` and the module's own place; a circle ends there."""
    encoder = Leaf()
    outer = Tied([Tied(encoder), Tied(encoder)])
    outer.me = outer
    found = {row["path"]: row for row in rows(outer.summary())}
    assert found["held/1/held"]["class"] == "= held/0/held"
    assert found["me"]["class"] == "= (root)"
    assert found["held/1/held"]["Variables"] == ""
    assert "4 modules; 2 Variables" in outer.summary()


def test_unbuilt_modules_are_marked():
    """And no longer when they are built; nothing is refused before."""

    class Made(sm.Module):
        async def build(self, inputs):
            self.state = sm.Param("x")

        async def call(self, inputs):
            return inputs

    row = sm.Sequential([Made(), sm.Identity()])
    assert [cells["class"] for cells in rows(row.summary())] == ["Sequential (unbuilt)", "Made (unbuilt)", "Identity"]
    assert row.summary().split("\n")[-1] == "3 modules, 2 unbuilt; no Variables"
    sm.run(sm.build(row, Query))
    assert "unbuilt" not in row.summary()


def test_the_marks_are_what_each_module_says():
    """Of every module below, nested containers among them."""
    made = sm.Sequential([sm.Sequential([diamond()]), sm.Sequential([sm.Input(Query), sm.Identity()])])
    for module, row in zip((made, *made.submodules), rows(made.summary()), strict=True):
        assert ("(unbuilt)" in row["class"]) is not module.built


@pytest.mark.parametrize("depth", [0, 1, 2, 9, None])
def test_deeper_rows_are_summed_into_their_ancestors(depth):
    """So that the figures of the rows add up to the totals at every depth."""
    program = Tied([Tied(Agent()), Leaf()])
    text = program.summary(depth=depth, columns=["path", "variables", "size"])
    assert all(len(path.replace("(root)", "").split("/")) <= 2 * (depth or 9) for path in paths(text)[1:])
    assert sum(int(word) for row in rows(text) for word in row["Variables"].split() if word.isdigit()) == 6
    assert text.split("\n")[-1] == program.summary().split("\n")[-1]


def test_what_is_folded_in_keeps_its_models():
    """An ancestor names the models that are asked below it."""
    program = Tied(Agent())
    found = rows(program.summary(depth=1, columns=["path", "language_model"]))
    assert [row["language model"] for row in found] == ["", "testing/schema"]


def test_depth_counts_levels_of_modules():
    """0 is this module alone, 1 its direct children, whatever containers are between."""
    program = Tied({"a": [Tied(Leaf())]})
    assert paths(program.summary(depth=0)) == ["(root)"]
    assert paths(program.summary(depth=1)) == ["(root)", "held/a/0"]
    assert paths(program.summary(depth=2)) == ["(root)", "held/a/0", "held/a/0/held"]


def test_columns_are_chosen_and_ordered():
    """Only those named, as named; those with nothing to say are left out by themselves only."""
    text = Leaf().summary(columns=["class", "stash", "path"])
    assert text.split("\n")[0].split() == ["class", "stash", "path"]
    assert "stash" not in Leaf().summary()
    assert all(Leaf().summary(columns=[name]) for name in COLUMNS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"columns": ["path", "clas"]}, "Did you mean 'class'"),
        ({"columns": "path"}, "must be a list with some of"),
        ({"columns": []}, "must be a list with some of"),
        ({"columns": [3]}, "a column must be one of"),
        ({"depth": -1}, "depth must be a whole number of at least 0, got -1"),
        ({"depth": True}, "depth must be a whole number of at least 0, got True"),
        ({"depth": "1"}, "depth must be a whole number of at least 0, got '1'"),
    ],
)
def test_a_wrong_argument_is_told(arguments, said):
    """What was got, what there is, and what was perhaps meant."""
    with pytest.raises(sm.ArgumentError) as raised:
        Leaf().summary(**arguments)
    assert said in str(raised.value)


def test_no_control_character_comes_out():
    """Names of fields are anybody's text; ANSI and line breaks are written as escapes."""
    schema = {"type": "object", "title": "\x1b[31mRed", "properties": {"a\nb": {"type": "string"}}}
    text = sm.Generator(schema=schema, language_model=ScriptedLM([])).summary()
    assert "\x1b" not in text
    assert "\\x1b[31mRed(a\\nb: str)" in text


def test_after_a_recorded_call_its_costs_are_shown():
    """Invocations, tokens, cost and latency of each module, and of the call in the last line."""
    program = diamond()
    assert "recorded" not in program.summary()
    trace = run(program)
    found = rows(program.summary())
    assert [row["invocations"] for row in found] == ["1", "1", "1", "1"]
    used = trace.roots[0].usage
    assert sum(int(row["tokens used"] or 0) for row in found) == used.prompt_tokens + used.completion_tokens
    assert all(row["latency"].endswith(" ms") and row["cost"] == "?" for row in found[1:])
    assert program.summary().split("\n")[-1].startswith("last recorded call: 4 invocations, 3 model calls, ")


def test_the_last_recorded_call_counts():
    """Each recorded call takes the place of the one before; one that is not recorded changes nothing."""
    agent = Agent()
    run(agent)
    before = agent.summary()
    sm.run(agent, Query(query="Who?"))
    assert agent.summary() == before
    run(agent, "A much longer question than the one before, to be sure.")
    assert agent.summary() != before


def test_a_shared_module_counts_all_its_calls():
    """Two calls of one module are two invocations in one row; folded ones add up."""

    class Twice(sm.Module):
        def __init__(self):
            super().__init__()
            self.part = generator(Query)

        async def call(self, inputs: Query):
            return await self.part(await self.part(inputs))

    twice = Twice()
    run(twice)
    assert [row["invocations"] for row in rows(twice.summary())] == ["1", "2"]
    assert [row["invocations"] for row in rows(twice.summary(depth=0))] == ["3"]


def test_what_is_made_inside_a_call_counts_for_its_caller():
    """Its tokens are not lost."""

    class Maker(sm.Module):
        async def call(self, inputs: Query):
            return await generator(Answer)(inputs)

    maker = Maker()
    used = run(maker).roots[0].usage
    assert str(used.prompt_tokens + used.completion_tokens) in maker.summary()


def test_copies_forget_the_recorded_call():
    """It belongs to the object that was called."""
    agent = Agent()
    run(agent)
    assert "recorded" not in agent.clone().summary()


def test_an_overlay_is_what_is_measured():
    """Inside `using` the values are those of the overlay."""
    leaf = Leaf()
    with sm.using(leaf, {"prompt": "x" * 1000}):
        assert "1.0 kB" in leaf.summary()


@pytest.mark.slow
@pytest.mark.interpreter
def test_deep_programs_are_shown():
    """Five thousand in one another: no recursion, no square of the depth."""
    deep = chain(5000)
    started = time.process_time()
    text = deep.summary()
    assert len(text.split("\n")) == 5003
    assert len(text) < 2_000_000
    assert "5,000 modules" in deep.summary(depth=0)
    assert time.process_time() - started < 20


@pytest.mark.slow
@pytest.mark.interpreter
def test_deep_rows_are_shown():
    """Containers that ask those below whether they are built, a thousand in one another."""
    row = sm.Identity()
    for _ in range(1000):
        row = sm.Sequential([row])
    assert "1,001 modules, 1,000 unbuilt" in row.summary(depth=1)


@pytest.mark.slow
def test_wide_programs_are_shown():
    """Ten thousand beside one another."""
    assert Wide(10_000).summary().count("\n") == 10_003


def test_sharing_without_end_costs_no_more():
    """Two names for each level: a walk along every path would never end."""
    link = Link()
    for _ in range(60):
        link = Tied([link, link])
    assert len(paths(link.summary())) == 121


def test_members_of_a_row_take_what_the_one_before_gave():
    """Schemas that a member does not know itself are told by its place."""
    row = sm.Sequential([Leaf(), generator(Query), generator(Answer)])
    assert [cells["schemas"] for cells in rows(row.summary())] == [
        "Query(query: str) -> Answer(answer: str)",
        "Query(query: str) -> Answer(answer: str)",
        "Answer(answer: str) -> Query(query: str)",
        "Query(query: str) -> Answer(answer: str)",
    ]


def test_a_given_label_stands_beside_the_path():
    """Also in the text of a trace; one that repeats the path, or the class, is left out of the summary."""
    row = sm.Sequential([sm.Identity(name="technical"), sm.Identity()], name="desk")
    lines = [line.split("  ")[0] for line in row.summary().splitlines()[2:5]]
    assert lines == ["(root)", "0 (technical)", "1"]
    with sm.trace() as t:
        sm.run(row, sm.ChatMessage(role="user", content="Hi"))
    assert [line.split("  ")[0] for line in str(t).splitlines()] == ["desk", "├─ 0 (technical)", "└─ 1 (identity)"]


def test_a_summary_is_printed_and_returned(capsys):
    """Once: a prompt does not show it again."""
    text = Leaf().summary()
    assert capsys.readouterr().out == f"{text}\n"
    assert repr(text) == "<summary of 4 lines, printed above>"


def test_a_summary_is_printed_where_lines_cannot_be(monkeypatch):
    """A pipe of another encoding gets question marks, not an error."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    Leaf().summary()
    out.flush()
    assert b"\n????" in out.buffer.getvalue()

"""Skips in pictures and summaries: dashed lines with their names, columns stash and pop."""

import json

import synmod as sm
from synmod.skip import Namespace, pop, skippable, stash
from tests.view.programs import Query


@skippable(stash=["doc"])
class Read(sm.Module):
    """Finds a document."""

    async def call(self, inputs: Query) -> Query:
        stash("doc", inputs)
        return inputs


@skippable(pop=["doc"])
class Cite(sm.Module):
    """Needs it."""

    async def call(self, inputs: Query) -> Query:
        return pop("doc")


@skippable(peek=["doc"])
class Look(sm.Module):
    """Only looks at it."""

    async def call(self, inputs: Query) -> Query:
        return inputs


def skips(module):
    """Source, target, style and label of the dashed lines."""
    edges = json.loads(module.plot(format="json"))["edges"]
    return [(e["source"], e["target"], e["style"], e["label"]) for e in edges if e["kind"] == "skip"]


def test_a_skip_is_a_dashed_line_with_its_name():
    """From who stashes to who pops, past what is between, at any depth."""
    row = sm.Sequential([sm.Sequential([Read()]), sm.Identity(), sm.Sequential([Cite()])])
    assert skips(row) == [("0/0", "2/0", "dashed", "doc")]
    for format in ("svg", "html", "mermaid"):
        assert "doc" in row.plot(format=format)


def test_who_peeks_is_shown_too():
    """Every consumer has its line."""
    row = sm.Sequential([Read(), Look(), Cite()])
    assert skips(row) == [("0", "1", "dashed", "doc"), ("0", "2", "dashed", "doc")]


def test_names_in_namespaces_are_told_apart():
    """By the name of the Namespace."""
    one, two = Namespace("one"), Namespace("two")
    row = sm.Sequential([Read().isolate(one), Read().isolate(two), Cite().isolate(two), Cite().isolate(one)])
    assert sorted(skips(row)) == [("0", "3", "dashed", "one/doc"), ("1", "2", "dashed", "two/doc")]


def test_the_summary_has_columns_for_them():
    """What each module stashes and pops; without skips the columns are left out."""
    text = sm.Sequential([Read(), Look(), Cite()]).summary(columns=["path", "stash", "pop"])
    cells = [line.split() for line in text.split("\n")]
    assert cells[3:6] == [["0", "doc"], ["1", "doc", "(peek)"], ["2", "doc"]]
    one, two = Namespace("one"), Namespace("two")
    row = sm.Sequential([sm.Sequential([Read().isolate(one)]), Cite().isolate(one), Read().isolate(two), Read()])
    folded = row.summary(depth=0, columns=["path", "stash"]).split("\n")[2]
    assert folded.split(maxsplit=1) == ["(root)", "one/doc, two/doc, doc"]  # in definition order
    assert "stash" in sm.Sequential([Read(), Cite()]).summary()
    assert "stash" not in sm.Sequential([sm.Identity()]).summary()


def test_a_wiring_that_does_not_match_is_still_shown():
    """A picture helps to find what is missing."""
    row = sm.Sequential([Cite(), Read()])
    assert skips(row) == []
    assert row.summary()


def test_each_skip_is_an_edge_and_several_are_one_line():
    """In the JSON form one edge for each name; a drawing joins those between two boxes."""

    @skippable(stash=["doc", "asked"])
    class Two(sm.Module):
        async def call(self, inputs: Query) -> Query:
            return inputs

    @skippable(pop=["doc", "asked"])
    class Both(sm.Module):
        async def call(self, inputs: Query) -> Query:
            return inputs

    row = sm.Sequential([Two(), sm.Identity(), Both()])
    assert [label for _, _, _, label in skips(row)] == ["asked", "doc"]
    assert row.plot(format="svg").count("stroke-dasharray") == 1
    assert "asked, doc" in row.plot()

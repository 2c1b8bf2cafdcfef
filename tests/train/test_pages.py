"""`Evaluation.to_html` and `History.to_html`: pages without a script."""

import asyncio
import re

import pytest

import synmod as sm
from synmod.leaves import remember_secrets
from tests.train.one_run import train
from tests.view.test_trace_page import HOSTILE, Page


class Text(sm.DataModel):
    text: str


def score(y_pred, y_true):
    """A score that a text gives itself, with a critique."""
    if y_pred["text"].startswith("fail"):
        raise ValueError("cannot be judged")
    return sm.Feedback(float(y_true), critique=HOSTILE)


def evaluation_of(*rows):
    """The evaluation of texts with their scores."""
    data = [sm.Example(str(at), Text(text=text), value) for at, (text, value) in enumerate(rows)]
    return sm.run(sm.evaluate(sm.Identity(), data, reward=score))


def titles(page):
    """The titles of the entries of a page, in order."""
    return re.findall(r"<summary><b>(.*?)</b><span>(.*?)</span>", page)


def test_a_page_shows_numbers_and_runs_the_worst_first(tmp_path):
    """The run without a score comes first, then by score; everything is text, nothing runs or loads."""
    path = evaluation_of(("good", 1.0), (HOSTILE, 0.25), ("fail", 0.5)).to_html(tmp_path / "page.html")
    page = path.read_text()
    assert [at.partition(":")[0] for at, _ in titles(page)] == ["2", "1", "0"]
    assert "ValueError: cannot be judged" in page
    tags = {tag for tag, _ in Page(page).tags}
    assert not tags & {"script", "img", "link", "iframe"}


def test_a_baseline_shows_what_was_lost(tmp_path):
    """Both scores are shown, with the interval; the run that lost most comes first."""
    before = evaluation_of(("a", 1.0), ("b", 0.0))
    after = evaluation_of(("a", 0.5), ("b", 0.25), ("c", 0.0))
    page = after.to_html(tmp_path / "page.html", baseline=before).read_text()
    assert titles(page)[0][1] == "1 → 0.5"
    assert "<th>baseline</th>" in page
    assert "1 won, 1 lost of 2 rows" in page
    with pytest.raises(sm.ArgumentError, match="baseline"):
        after.to_html(tmp_path / "page.html", baseline="before")


def test_secrets_are_not_written(tmp_path):
    """A key in the data of a run is not in the page."""
    remember_secrets(["sk-of-the-page-77"])
    page = evaluation_of(("sk-of-the-page-77", 1.0)).to_html(tmp_path / "page.html").read_text()
    assert "sk-of-the-page-77" not in page
    assert "***" in page


def test_a_history_shows_its_candidates(tmp_path):
    """Each candidate is an entry with its changes; other runs have a row and a picture each."""
    history = asyncio.run(train("Gepa"))[0]
    page = history.to_html(tmp_path / "page.html", others=[history]).read_text()
    assert len(titles(page)) == len(history.candidates)
    assert page.count("<svg") == 2
    assert page.count("<tr>") == 3
    assert "<script" not in page
    with pytest.raises(sm.ArgumentError, match="others"):
        history.to_html(tmp_path / "page.html", others=["run"])

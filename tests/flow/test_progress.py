"""Progress: what is shown, to whom, how often."""

import io
import logging

import synmod as sm
from synmod.flow import map_concurrently, open_progress


def test_the_protocol_stands_at_the_front_door():
    """Where those who write one of their own look for it."""
    assert sm.Progress.__module__ == "synmod.flow.pools"


def test_nothing_is_shown_where_nobody_looks(capsys):
    """Standard error of a test is no terminal; False is nothing anywhere."""
    for progress in (None, False):
        told = open_progress(progress)
        told.begin("x", 1)
        told.advance(1)
        told.end("done")
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_of_80_columns_shows_the_mean_score(monkeypatch):
    """The numbers stand in the order given; the score was once cut off behind the others."""
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    followed = open_progress(None)
    followed.begin("evaluate", 200)
    for done in range(1, 201):
        followed.advance(1, score=done / 1000, failed=3, cost_usd=0.01234, in_flight=64)
    followed.end("done")
    last = terminal.getvalue().split("\r")[-1].rstrip("\n")
    assert len(last) <= 80
    assert "200/200" in last
    assert "score=0.2, failed=3" in last


def test_the_bar_is_redrawn_ten_times_a_second_at_most(monkeypatch):
    """However often it moves on."""
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    followed = open_progress(None)
    followed.begin("x", None)
    for _ in range(5_000):
        followed.advance(1)
    followed.end("done")
    assert terminal.getvalue().count("\r") < 100
    assert "5000it" in terminal.getvalue()


async def test_an_object_that_raises_is_dropped(caplog):
    """The work goes on; the log says so once."""

    class Broken:
        def begin(self, label, total):
            raise ValueError("no")

    async def double(x):
        return 2 * x

    with caplog.at_level(logging.ERROR, "synmod.progress"):
        async with map_concurrently(double, range(3), progress=Broken()) as results:
            assert [y async for y in results] == [0, 2, 4]
    assert len(caplog.records) == 1

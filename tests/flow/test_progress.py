"""Progress: what is shown, to whom, how often."""

import io
import logging

import synmod as sm
from synmod.flow import Bar, Lines, map_concurrently, shown


class Time:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


def test_lines_are_written_once_a_second():
    """However often it is told; the last line says how it ended."""
    stream, now = io.StringIO(), Time()
    lines = Lines(stream, now)
    lines.begin("evaluate", 100)
    for _ in range(50):
        now.seconds += 0.05
        lines.advance(1, failed=0, score=0.5)
    lines.end("done")
    written = stream.getvalue().splitlines()
    assert len(written) == 3
    assert written[-1] == "evaluate: 50 of 100, failed 0, score 0.5, done"
    stream.truncate(0)
    unknown = Lines(stream, now)
    unknown.begin("x", None)
    unknown.end("stopped")
    assert stream.getvalue().endswith("x: 0, stopped\n")


def test_the_protocol_stands_at_the_front_door():
    """Where those who write one of their own look for it."""
    assert sm.Progress.__module__ == "synmod.flow.progress"


def test_nothing_is_shown_where_nobody_looks(capsys):
    """Standard error of a test is no terminal; False is nothing anywhere."""
    for progress in (None, False):
        told = shown(progress)
        told.begin("x", 1)
        told.advance(1)
        told.end("done")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_or_lines(monkeypatch):
    """On a terminal: whatever is installed; always standard error."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    told = shown(None)
    told.begin("evaluate", 2)
    told.advance(2, score=0.5)
    told.end("done")
    assert "evaluate" in terminal.getvalue()


def test_the_bar_is_redrawn_ten_times_a_second_at_most():
    """tqdm is told the interval, the label and the total."""
    calls = []

    class Fake:
        def __init__(self, **keywords):
            calls.append(keywords)

        def set_postfix(self, numbers, refresh):
            calls.append((numbers, refresh))

        def update(self, n):
            calls.append(n)

        def close(self):
            calls.append("closed")

    stream = io.StringIO()
    bar = Bar(Fake, stream)
    bar.begin("x", 3)
    bar.advance(2, score=0.123456)
    bar.end("done")
    assert calls == [
        {"total": 3, "desc": "x", "file": stream, "mininterval": 0.1},
        ({"score": "0.1235"}, False),
        2,
        "closed",
    ]


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

"""Ready-made hooks: a line for each end, a row for each event."""

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import synmod as sm
from synmod.scope import hooks_lib
from synmod.testing import ScriptedLM
from tests.module.models import Built


class Query(sm.DataModel):
    """What a user asks."""

    question: str


class Answer(sm.DataModel):
    """What comes back."""

    answer: str


class Outer(sm.Module):
    """Asks a model, keeps a note, and is rewarded."""

    def __init__(self, replies):
        super().__init__()
        self.write = sm.Generator(Answer, language_model=ScriptedLM(replies))
        self.note = sm.Variable("", name="note")

    async def call(self, inputs: Query) -> Answer:
        answer = await self.write(inputs)
        self.note.assign(answer.answer)
        self.add_reward(0.5)
        return answer


def rows_of(replies, **options):
    """What a recorder wrote of one call."""
    rows = []
    outer = Outer(replies)
    with sm.hooks(hooks_lib.Recorder(rows, **options)):
        try:
            sm.run(outer, Query(question="Why?"))
        except Exception:  # the rows tell of it
            return rows
    return rows


def test_a_row_for_each_event_in_order():
    """Calls, model calls and assignments, with where and what."""
    rows = rows_of([{"answer": "So."}])
    assert [(row["event"], row["path"]) for row in rows] == [
        ("call_begin", ""),
        ("call_begin", "write"),
        ("lm_begin", "write"),
        ("lm_end", "write"),
        ("call_end", "write"),
        ("variable_assign", ""),
        ("call_end", ""),
    ]
    for row in rows:
        assert {"event", "time", "call_id", "parent_call_id", "path", "name", "phase", "training"} <= row.keys()
    assert rows[0]["inputs"] == [{"question": "Why?"}]
    assert rows[-1]["outputs"] == {"answer": "So."}
    assert rows[-1]["rewards"] == [["", None, 0.5]]
    assert rows[-1]["usage"]["calls"] == 1
    assert rows[-1]["error"] is None
    assert (rows[-2]["variable"], rows[-2]["old"], rows[-2]["new"], rows[-2]["version"]) == ("note", "", "So.", 1)
    assert json.loads(json.dumps(rows)) == rows


def test_a_build_is_two_rows_with_its_schemas():
    """The inputs of a build are symbols."""
    rows = []
    sequential = sm.Sequential([Built(hooks=[hooks_lib.Recorder(rows)])])
    sm.run(sequential, Query(question="Why?"))
    assert [row["event"] for row in rows] == ["call_begin", "build_begin", "build_end", "call_end"]
    assert rows[1]["inputs"] == rows[2]["inputs"] == [Query.get_schema()]
    assert {row["path"] for row in rows} == {"0"}


def test_without_values_no_row_holds_any():
    """Where and how long, what it used and how it failed."""
    rows = rows_of([{"answer": "Secret."}], values=False)
    assert "Why?" not in str(rows)
    assert "Secret." not in str(rows)
    assert rows[-1]["elapsed_s"] > 0
    assert rows[3]["usage"]["calls"] == 1


def test_an_error_is_a_text():
    """Class and message."""
    rows = rows_of([RuntimeError("gone")])
    assert "RuntimeError: gone" in rows[-1]["error"]


def test_a_file_is_appended_to_line_by_line(tmp_path):
    """From any number of threads, each row at once a whole line."""
    path = tmp_path / "calls.jsonl"
    echo = sm.Identity()

    def call(number):
        with sm.hooks(hooks_lib.Recorder(str(path))):
            sm.run(echo, Query(question=str(number)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(20)))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(int(row["inputs"][0]["question"]) for row in lines if row["event"] == "call_begin") == list(range(20))
    assert len(lines) == 40


def test_a_line_for_each_end(caplog):
    """Path, time, and tokens or the error; the level is the caller's."""
    with caplog.at_level(logging.DEBUG), sm.hooks(hooks_lib.Logger(level=logging.DEBUG, values=True)):
        sm.run(Outer([{"answer": "So."}]), Query(question="Why?"))
        with pytest.raises(sm.SchemaError):
            sm.run(Outer([]), Answer(answer="no"))
    lines = [record.getMessage() for record in caplog.records if record.name == "synmod.calls"]
    assert [line.split()[0] for line in lines] == ["model", "call", "call", "call"]
    assert lines[1].startswith("call write (generator)  ")
    assert "tokens" in lines[0]
    assert "tokens" in lines[2]
    assert lines[2].endswith("{'answer': 'So.'}")
    assert "SchemaError" in lines[3]


def test_a_logger_of_ones_own(caplog):
    """By name, or the object."""
    mine = logging.getLogger("mine")
    with caplog.at_level(logging.INFO):
        for logger in ("mine", mine):
            with sm.hooks(sm.hooks_lib.Logger(logger)):
                sm.run(sm.Identity(), Query(question="Why?"))
    assert [record.name for record in caplog.records] == ["mine", "mine"]
    assert "Why?" not in caplog.text


@pytest.mark.parametrize(
    "make",
    [
        lambda: hooks_lib.Recorder(3),
        lambda: hooks_lib.Logger(logger=3),
        lambda: hooks_lib.Logger(level="INFO"),
        lambda: hooks_lib.Logger(level=True),
    ],
)
def test_targets_that_are_none_are_refused(make):
    """At once, not at the first event."""
    with pytest.raises(sm.ArgumentError):
        make()


def test_what_a_trace_installs_is_there_too():
    """One Tracer, by both names."""
    with sm.trace() as tracer:
        pass
    assert isinstance(tracer, hooks_lib.Tracer)


class Odd(sm.Module):
    """Takes anything by keyword."""

    async def call(self, inputs: Query, *, x=None) -> Query:
        return inputs


class Mute:
    """Nothing of it can be written."""

    def __repr__(self):
        raise RuntimeError("no text")

    def get_json(self):
        raise RuntimeError("no JSON")


def endless():
    """A list that holds itself."""
    x = []
    x.append(x)
    return x


ODD = {
    "mute": Mute(), "endless": endless(), "huge": 10**5000, "half": "\ud800", "nan": float("nan"), "set": {1: {2}},
    "bytes": b"\xff",
}  # fmt: skip


@pytest.mark.parametrize("x", ODD.values(), ids=ODD)
async def test_whatever_a_keyword_holds_is_written(x, tmp_path):
    """As JSON or as text, in a list, in a file and in a trace: a value that cannot be written costs no row."""
    rows, path = [], tmp_path / "deep" / "calls.jsonl"
    with sm.hooks(hooks_lib.Recorder(rows), hooks_lib.Recorder(path)), sm.trace() as t:
        await Odd()(Query(question="Why?"), x=x)
    assert [row["event"] for row in rows] == ["call_begin", "call_end"]
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [{**line, "time": 0} for line in lines] == [{**row, "time": 0} for row in rows]
    written = json.loads(json.dumps(t.to_json(), allow_nan=False))
    assert written["calls"][0]["kwargs"] == rows[0]["kwargs"]
    assert "Why?" in t.to_html()


def test_a_row_after_one_that_was_cut_off_is_whole(tmp_path):
    """A process that was killed in the middle of a row leaves one bad line, and spoils none that comes after."""
    path = tmp_path / "calls.jsonl"
    path.write_text('{"event": "call_begin", "ti', "utf-8")
    for _ in range(2):
        with sm.hooks(hooks_lib.Recorder(path)):
            sm.run(sm.Identity(), Query(question="Why?"))
    first, *others = path.read_text("utf-8").splitlines()
    assert first == '{"event": "call_begin", "ti'
    assert [json.loads(line)["event"] for line in others] == ["call_begin", "call_end"] * 2


def test_a_pipe_is_written_to_as_well(tmp_path):
    """Rows go to whoever reads at the other end."""
    pipe = tmp_path / "calls"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text, "utf-8")
        hooks_lib.Recorder(pipe).on_call_end(sm.scope.CallEnd("run-1", None, "", "x", "reward", False, None, None, 0.1))
        assert json.loads(read.result(10))["phase"] == "reward"


def test_an_error_of_many_lines_is_one_line_of_the_log(caplog):
    """What a model said cannot pass for another line."""
    with caplog.at_level(logging.INFO), sm.hooks(hooks_lib.Logger()), pytest.raises(sm.ModelError):
        sm.run(Outer([sm.ModelError("no\ncall x  1.0 ms")]), Query(question="Why?"))
    assert all("\n" not in record.getMessage() for record in caplog.records)

"""Runs: killed at any time, the same line goes on; and the folder is held, checked and mended."""

import asyncio
import errno
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import FunctionLM
from synmod.train import Batch, Trainer
from tests.train.one_run import OPTIMIZERS, Team, Ticket, result, task, tickets, train

DRIVER = str(Path(__file__).with_name("one_run.py"))
KILLS = {"Gepa": (25, 20)}
"""How often a run is killed, and at least, where it is not 3 and 2: one suffices to try the mechanism in full."""


def counted(path):
    """How many rollouts were run."""
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kills", "least"), [(name, *KILLS.get(name, (3, 2))) for name in OPTIMIZERS])
def test_killed_at_random_a_run_ends_as_if_it_had_not_been(name, kills, least, tmp_path):
    """SIGKILL: the same bytes of History and State, at most 4 rollouts a kill more; then it costs nothing."""
    command = [sys.executable, DRIVER, name, str(tmp_path), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["kills"] >= least
    assert found["equal"]
    assert found["counts"][1] <= found["counts"][0] + 4 * found["kills"]
    assert found["again"]
    assert found["free"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_neither_concurrency_nor_latency_changes_a_result(name):
    """Equal bytes of History, with its candidates and lines, and of State."""
    found = {
        result(*asyncio.run(train(name, concurrency=concurrency, seconds=seconds, seed=2, budget=150)))
        for concurrency, seconds in ((1, 0), (8, 0.004), (64, 0.01))
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_same_line_on_a_finished_run_returns_what_it_found(name, tmp_path):
    """Without a call: with a program as it was at first, and with one that holds what the run has written."""
    path, run = tmp_path / "count", tmp_path / "run"
    history, program = asyncio.run(train(name, run, path=path, budget=150))
    cost = counted(path)
    again, same = asyncio.run(train(name, run, path=path, budget=150, program=program))
    new, other = asyncio.run(train(name, run, path=path, budget=150))
    assert cost == counted(path) > 0
    assert result(history, program) == result(again, same) == result(new, other)
    assert new.best == history.best
    assert new.record() == history.record()


def test_a_run_that_is_given_more_goes_on(tmp_path):
    """Limits are no part of what a run is of: what was paid for is not paid for twice."""
    path, run = tmp_path / "count", tmp_path / "run"
    first, _ = asyncio.run(train("Gepa", run, path=path, budget=100))
    more, _ = asyncio.run(train("Gepa", run, path=path, budget=140))
    whole, _ = asyncio.run(train("Gepa", budget=140))
    assert first.stopped == "budget"
    assert more.to_json() == whole.to_json()
    assert counted(path) <= 140 + first.spent.rollouts - first[-1]["rollouts"]


def test_a_run_of_something_else_is_refused(tmp_path):
    """Each difference is named, old and new, and the folder stays as it was."""
    rows = tickets()

    async def fit(*, reward="exact_match", train=rows[:12], seed=0, optimizer=None, labels=Team, text=""):
        program = sm.Sequential([sm.Input(Ticket), sm.Generator(labels, language_model="embedded/nearest")])
        sm.update(program, {"0/instructions": text} if text else {})
        trainer = Trainer(program, reward=reward, seed=seed)
        batch = Batch([x for x, _ in train], [y for _, y in train])
        return await trainer.fit([batch], eval_data=[Batch([x for x, _ in rows[12:]], [y for _, y in rows[12:]])],
                                 optimizer=optimizer or sm.optimizers.RandomFewShot(max_examples=2, sets=3),
                                 run=tmp_path)  # fmt: skip

    class Other(sm.DataModel):
        team: str

    asyncio.run(fit())
    for change, names in (
        ({"reward": sm.rewards.ExactMatch(normalize="text")}, ["reward"]),
        ({"train": rows[:11]}, ["data"]),
        ({"seed": 1}, ["seed"]),
        ({"optimizer": sm.optimizers.RandomFewShot(max_examples=2, sets=4)}, ["optimizer"]),
        ({"labels": Other}, ["program"]),
        ({"text": "Be brief."}, ["fixed values"]),
        ({"seed": 1, "train": rows[:11]}, ["data", "seed"]),
    ):
        with pytest.raises(sm.RunError, match="run of something else") as caught:
            asyncio.run(fit(**change))
        found = [name for name, _, _ in caught.value.differences]
        assert set(names) <= set(found) <= {*names, "state", "fixed values"}
        assert all(old != new for _, old, new in caught.value.differences)
    before = caught.value.differences[0]
    assert before[1]["train"] - before[2]["train"] == 1
    asyncio.run(fit())


def fit_by(reward, run):
    """Train a small program by a reward, in a folder."""
    rows = tickets()
    program = sm.Sequential([sm.Input(Ticket), sm.Generator(Team, language_model="embedded/nearest")])
    batch = Batch([x for x, _ in rows], [y for _, y in rows])
    optimizer = sm.optimizers.RandomFewShot(max_examples=2, sets=2)
    asyncio.run(Trainer(program, reward=reward).fit([batch], eval_data=[batch], optimizer=optimizer, run=run))


def right_on(known, bonus, most=1.0):
    """Return a reward."""
    return lambda y_true, y_pred, most=most: min(most, (y_true == y_pred) + bonus * (len(y_pred["team"]) in known))


def strict(y_true, y_pred):
    """A reward whose code holds a set and a function."""
    same = all(y_true[each] == y_pred[each] for each in ("team",))
    return same and y_pred["team"] in {"a", "b", "c", "d", "e", "f", "billing"}


def test_a_reward_of_other_code_is_refused(tmp_path):
    """A function counts by its code, defaults and closure, also where another one holds it; what is equal goes on."""
    at_once, in_part = tmp_path / "at once", tmp_path / "in part"
    fit_by(right_on({0, 8}, 0.0), at_once)
    fit_by(right_on({8, 0}, 0.0), at_once)
    fit_by(partial(right_on({0, 8}, 0.0), most=0.9), in_part)
    for run, change in (
        (at_once, lambda y_true, y_pred: 1.0 if y_true == y_pred else 0.0),
        (at_once, right_on({0, 8}, 0.5)),
        (at_once, right_on({0, 9}, 0.0)),
        (at_once, right_on({0, 8}, 0.0, most=0.9)),
        (in_part, partial(right_on({0, 8}, 0.0), most=0.8)),
        (in_part, partial(right_on({0, 8}, 0.5), most=0.9)),
    ):
        change.__qualname__ = "right_on.<locals>.<lambda>"  # of the same place
        with pytest.raises(sm.RunError, match="run of something else") as caught:
            fit_by(change, run)
        assert [name for name, _, _ in caught.value.differences] == ["reward"]


def test_a_reward_of_equal_code_goes_on_in_another_process(tmp_path):
    """Whatever the order of its sets there: the second process runs nothing."""
    code = f"import sys; sys.path[:0] = [{os.getcwd()!r}]\nfrom tests.train.test_runs import fit_by, strict\n"
    code += f"fit_by(strict, {str(tmp_path)!r})"
    used = []
    for seed in "12":
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        used.append(sm.Run(tmp_path).usage.calls)
    assert used[0] == used[1] > 0


def test_a_folder_has_one_holder(tmp_path):
    """A second process is told the first one's number; a lock dies with its holder."""
    code = (
        f"import asyncio, sys, time\nsys.path[:0] = [{os.getcwd()!r}]\nimport synmod as sm\n"
        f"async def main():\n  async with sm.Run({str(tmp_path)!r}).open_journal({{}}, 'x'):\n"
        "    print('held', flush=True)\n    time.sleep(60)\nasyncio.run(main())"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(sm.RunError, match=f"under way in process {holder.pid}"):
            asyncio.run(train("RandomFewShot", tmp_path))
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()

    async def twice():
        run = sm.Run(tmp_path / "other")
        async with run.open_journal({}, "x"):
            with pytest.raises(sm.RunError, match=f"process {os.getpid()}"):
                async with run.open_journal({}, "x"):
                    pass

    asyncio.run(twice())


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "synmod-run/9", "identity": {}}', '{"format": "synmod-run/1", "identity": []}']
)
def test_what_is_no_run_is_left_alone(tmp_path, text):
    """A file of that name which is not ours, or of another format."""
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(sm.RunError, match="is not the file of a run"):
        asyncio.run(train("RandomFewShot", tmp_path))
    assert (tmp_path / "run.json").read_text() == text


def test_what_is_no_folder_is_named(tmp_path):
    """A file in its place is a RunError, what is not a path an ArgumentError."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(sm.RunError, match="file is a file"):
        asyncio.run(train("RandomFewShot", tmp_path / "file"))
    for given in (5, True):
        with pytest.raises(sm.ArgumentError, match=f"run must be a folder.*got {given}"):
            asyncio.run(train("RandomFewShot", given))


@pytest.mark.parametrize("damage", ["row", "file"])
def test_what_is_damaged_is_run_again(damage, tmp_path):
    """A row that is not JSON costs that rollout; a journal that SQLite finds damaged is moved aside."""
    path, run = tmp_path / "count", tmp_path / "run"
    history, program = asyncio.run(train("Gepa", run, path=path, budget=100))
    cost, file = counted(path), run / "journal.db"
    if damage == "row":
        with sqlite3.connect(file) as connection:
            rollouts = "SELECT key FROM entry WHERE body LIKE '{\"row\":%' LIMIT 3"
            keys = [key for (key,) in connection.execute(rollouts)]
            connection.executemany("UPDATE entry SET body = '{oh' WHERE key = ?", [(key,) for key in keys])
            connection.execute("DELETE FROM entry WHERE key LIKE 'history/%'")
        connection.close()
    else:
        file.write_bytes(b"SQLite format 3\0" + os.urandom(9_000))
    again, same = asyncio.run(train("Gepa", run, path=path, budget=100))
    assert result(again, same) == result(history, program)
    assert counted(path) - cost == (3 if damage == "row" else cost)
    assert (run / "journal.db.corrupt-1").exists() == (damage == "file")


def test_a_full_disk_stops_the_run_which_then_goes_on(tmp_path, monkeypatch):
    """An OSError, with the line that goes on; the program is at a step that the run has noted."""
    path, run = tmp_path / "count", tmp_path / "run"
    whole, program = asyncio.run(train("Gepa", budget=150))
    keep = sm.Cache.keep
    held, *_ = task("Gepa")
    for stop in (1, 30, 7, 60):
        left = iter(range(stop))

        async def kept(self, key, value, left=left):
            return await keep(self, key, value) if next(left, None) is not None else False

        with monkeypatch.context() as patch:
            patch.setattr(sm.Cache, "keep", kept)
            with pytest.raises(OSError, match="journal cannot be written.*run the same line again"):
                asyncio.run(train("Gepa", run, path=path, budget=150, program=held))
    again, same = asyncio.run(train("Gepa", run, path=path, budget=150, program=held))
    assert result(again, same) == result(whole, program)
    assert counted(path) <= whole.spent.rollouts + 4 * 4


def caught(act):
    """Return the JournalError that a function raises; None where it raises none."""
    try:
        act()
    except sm.JournalError as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Gepa", "Omega", "Reflect"])
def test_whichever_write_fails_the_same_line_ends_with_the_same_bytes(name, tmp_path, monkeypatch):
    """Every k-th one, of rollouts, proposals, notes and the result: the run ends with the cause, and goes on."""
    options = {"budget": 110}
    whole = result(*asyncio.run(train(name, **options)))
    keep, fault = sm.Cache.keep, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for number in itertools.count(1):
        left, run = iter(range(number)), tmp_path / str(number)

        async def kept(self, key, value, left=left, number=number):
            if next(left, None) == number - 1:
                self.fault = fault
                return False
            return await keep(self, key, value)

        with monkeypatch.context() as patch:
            patch.setattr(sm.Cache, "keep", kept)
            ended = caught(lambda run=run: asyncio.run(train(name, run, **options)))
        if ended is None:
            break
        assert ended.__cause__ is fault
        assert "No space left on device" in str(ended)
        assert result(*asyncio.run(train(name, run, **options))) == whole
    assert number > 30


@pytest.mark.parametrize("gone", ["folder", "journal.db", "journal.db-wal", "lock"])
def test_a_folder_that_is_removed_under_a_run_ends_it(gone, tmp_path):
    """With the path: what is paid for would be lost without a word. The same line goes on, or begins again."""
    run, calls = tmp_path / "run", itertools.count()

    class Removes(sm.Module):
        async def call(self, inputs: Ticket) -> Ticket:
            if next(calls) == 5:
                shutil.rmtree(run) if gone == "folder" else (run / gone).unlink()
            return inputs

    async def main():
        return await sm.evaluate(Removes(), [Ticket(text=str(n)) for n in range(20)], run=run, concurrency=1)

    with pytest.raises(sm.JournalError, match=r"journal\.db: the journal cannot be written") as caught:
        asyncio.run(main())
    assert isinstance(caught.value, OSError)
    assert len(asyncio.run(main()).results) == 20


FOREIGN_PIECES = {
    "fields of a later release": ("UPDATE entry SET body = json_set(body, '$.new', 1, '$.usage.new', 2) WHERE ", 0),
    "usage that is not one": ("UPDATE entry SET body = json_set(body, '$.usage', 'x') WHERE ", 5),
    "numbers that are texts": ("UPDATE entry SET body = json_set(body, '$.usage.calls', 'x') WHERE ", 5),
    "time that is a text": ("UPDATE entry SET body = json_set(body, '$.elapsed_s', 'x') WHERE ", 5),
    "calls that are numbers": ("UPDATE entry SET body = json_set(body, '$.calls', 5) WHERE ", 5),
    "feedback of another kind": ("UPDATE entry SET body = json_set(body, '$.feedback', json('[1]')) WHERE ", 5),
    "schema that is not there": ("UPDATE entry SET body = json_set(body, '$.schema', 'x') WHERE ", 5),
    "too deep": (f"UPDATE entry SET body = '{'[' * 100_000}' WHERE ", 5),
}


@pytest.mark.parametrize(("change", "again"), FOREIGN_PIECES.values(), ids=FOREIGN_PIECES.keys())
async def test_a_piece_of_another_release_is_read_as_far_as_it_is_known(change, again, tmp_path):
    """Unknown fields are passed over; what is not a piece is run again."""
    calls = itertools.count()

    class Echo(sm.Module):
        async def call(self, inputs: Ticket) -> Ticket:
            next(calls)
            return inputs

    async def main():
        rows = [(Ticket(text=str(n)), Ticket(text=str(n))) for n in range(5)]
        return await sm.evaluate(Echo(), rows, reward="exact_match", run=tmp_path)

    first = await main()
    connection = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    connection.execute(f"{change} json_type(body, '$.at') IS NOT NULL")
    connection.close()
    second = await main()
    assert (second.score, next(calls)) == (first.score, 5 + again)
    assert sm.Run(tmp_path).usage.calls == 0


async def test_a_long_journal_is_opened_without_reading_it_whole(tmp_path):
    """What it sums are a few numbers of each piece: its size costs no memory."""
    rows = [(Ticket(text=str(n)), Ticket(text=str(n))) for n in range(3)]
    await sm.evaluate(sm.Identity(), rows, reward="exact_match", run=tmp_path)
    connection = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    (body,) = connection.execute("SELECT body FROM entry WHERE json_type(body, '$.at') IS NOT NULL").fetchone()
    long = json.dumps({**json.loads(body), "outputs": "x" * 100_000})
    connection.executemany("INSERT INTO entry VALUES (?, ?, 0, 9, 1)", [(f"{n:064x}", long) for n in range(200)])
    connection.close()
    tracemalloc.start()
    try:
        result = await sm.evaluate(sm.Identity(), rows, reward="exact_match", run=tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.score == 1.0
    assert peak < 3_000_000


def test_a_place_that_cannot_be_written_is_no_journal(tmp_path):
    """A run that went on in memory would lose what was paid for."""
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(OSError, match="journal cannot be written"):
        asyncio.run(train("RandomFewShot", tmp_path))


def test_ctrl_c_ends_the_run_and_keeps_what_finished(tmp_path):
    """KeyboardInterrupt; the next process goes on."""
    path, run = tmp_path / "count", tmp_path / "run"
    code = (
        f"import sys; sys.path[:0] = [{os.getcwd()!r}]\nimport synmod as sm\nfrom tests.train.one_run import train\n"
        f"sm.run(train('Gepa', {str(run)!r}, seconds=0.1, path={str(path)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while counted(path) < 12 and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
    before = counted(path)
    history, program = asyncio.run(train("Gepa", run, path=path))
    assert result(history, program) == result(*asyncio.run(train("Gepa")))
    assert counted(path) - before <= history.spent.rollouts - (before - 4)


def test_a_cancelled_fit_leaves_the_program_at_its_last_step(tmp_path):
    """And goes on in the same process, from where it was."""

    async def main():
        program, *_ = task("Gepa")
        states = []

        class Seen(sm.callbacks.Callback):
            def on_step_end(self, moment):
                states.append(sm.state(program))

        run = asyncio.create_task(train("Gepa", tmp_path, seconds=0.005, program=program, callbacks=[Seen()]))
        while len(states) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert sm.state(program) == states[-1]
        history, _ = await train("Gepa", tmp_path, program=program)
        return result(history, program)

    assert asyncio.run(main()) == result(*asyncio.run(train("Gepa")))


def test_no_key_stands_in_a_run(tmp_path):
    """Neither in its header nor in its journal."""
    secret = "sk-very-secret-0123456789"
    rows = tickets()

    async def main():
        model = FunctionLM(lambda request: {"team": "billing"})
        program = sm.Sequential([sm.Input(Ticket), sm.Generator(Team)])
        with sm.use_language_models(sm.LanguageModel("openai/gpt-4o-mini", api_key=secret)):
            with sm.use_language_models(model):
                trainer = Trainer(program, reward="exact_match")
                batch = Batch([x for x, _ in rows], [y for _, y in rows])
                await trainer.fit([batch], eval_data=[batch], run=tmp_path)

    asyncio.run(main())
    text = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in text
    assert len(text) > 10_000


def test_usage_and_export_are_of_the_whole_run(tmp_path):
    """Across restarts; one line of JSON per record."""
    run = sm.Run(tmp_path / "run")
    with pytest.raises(sm.RunError, match="has not begun"):
        run.export(tmp_path / "records.jsonl")
    assert run.usage == sm.Usage()
    asyncio.run(train("RandomFewShot", run))
    history, _ = asyncio.run(train("RandomFewShot", run))
    assert run.usage.calls == history.spent.lm_calls > 0
    lines = [json.loads(line) for line in run.export(tmp_path / "records.jsonl").read_text().splitlines()]
    assert sum("row" in line["value"] for line in lines) == history.spent.rollouts
    assert repr(run) == f"Run({str(tmp_path / 'run')!r})"

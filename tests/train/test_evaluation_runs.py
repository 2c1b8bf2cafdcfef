"""evaluate(run=): an evaluation that was killed goes on by the same line, without running again what has finished."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import FunctionLM

RUN = """
import asyncio, os, signal, sys
import synmod as sm

class Query(sm.DataModel):
    text: str

class Answers(sm.Module):
    async def call(self, inputs: Query) -> Query:
        with open(sys.argv[2], "a") as file:
            file.write("x")
        if os.path.getsize(sys.argv[2]) == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.002)
        return inputs

rows = [(Query(text=str(n)), n) for n in range(40)]
right = lambda outputs, target: int(outputs["text"]) == target
print(sm.run(sm.evaluate(Answers(), rows, reward=right, run=sys.argv[1], concurrency=4)))
"""


class Query(sm.DataModel):
    text: str


class Echo(sm.Module):
    """Counts its calls; fails for one text."""

    def __init__(self, bad=""):
        super().__init__()
        self.bad, self.calls = sm.static(bad), sm.static([])

    async def call(self, inputs: Query) -> Query:
        self.calls.append(inputs["text"])
        if inputs["text"] == self.bad:
            raise ValueError("no such thing")
        return inputs


def right(outputs, target):
    """The reward."""
    return outputs["text"] == target


def length(outputs):
    """A metric."""
    return float(len(outputs["text"]))


ROWS = [(Query(text="a"), "a"), (Query(text="bb"), "b"), (Query(text="ccc"), "ccc")]


def seen(evaluation):
    """All that an evaluation found, but for times."""
    json = evaluation.to_json()
    return [json["score"], json["metrics"], [(each["id"], each["outputs"], each["score"], each["error"])
            for each in json["results"]]]  # fmt: skip


def test_a_killed_evaluation_goes_on(tmp_path):
    """Killed at the 20th run: at most the four under way are run again, and the score is that of the whole."""
    count = tmp_path / "count"
    for at, code in (("20", -signal.SIGKILL), ("0", 0), ("0", 0)):
        command = [sys.executable, "-c", RUN, str(tmp_path / "run"), str(count), at]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path(sm.__file__).parents[1])
        assert done.returncode == code, done.stderr
    assert 40 <= count.stat().st_size <= 44
    assert "score 1 over 40 of 40" in done.stdout


async def test_the_same_line_again_runs_nothing(tmp_path):
    """Score, metrics, failures and outputs are those of the first time; rows may come as a stream."""
    program = Echo(bad="bb")

    async def stream():
        for row in ROWS:
            yield row

    first = await sm.evaluate(program, stream(), reward=right, metrics=[length], run=tmp_path)
    again = await sm.evaluate(program, ROWS, reward=right, metrics=[length], run=sm.Run(tmp_path))
    assert seen(again) == seen(first)
    assert len(program.calls) == 3
    assert again.errors[0].error.message == "no such thing"
    assert again.score == 2 / 3


async def test_a_stream_is_read_as_it_runs(tmp_path):
    """No row is read before there is room for it, in a folder too; what has finished is found by its content."""
    read, ahead = [0], [0]

    def stream():
        for number in range(200):
            read[0] += 1
            yield Query(text=str(number)), str(number)

    class Counts(sm.Module):
        async def call(self, inputs: Query) -> Query:
            ahead[0] = max(ahead[0], read[0] - int(inputs["text"]))
            return inputs

    evaluation = await sm.evaluate(Counts(), stream(), reward=right, run=tmp_path, concurrency=4)
    assert evaluation.total == 200
    assert ahead[0] <= 5
    again = await sm.evaluate(Counts(), stream(), reward=right, run=tmp_path, concurrency=4)
    assert again.results == evaluation.results


@pytest.mark.parametrize("by", ["argument", "function", "environment", "default", "context"])
async def test_a_key_that_a_provider_repeats_stays_out_of_the_journal(tmp_path, monkeypatch, by):
    """The output of the row has it, since the program sent nothing else; the folder has `***`."""
    key = "sk-repeated-0123456789"
    if by == "environment":
        monkeypatch.setenv("OPENAI_API_KEY", key)
    api_key = {"environment": None, "function": lambda: key}.get(by, key)
    lm = FunctionLM(lambda request: {"text": f"you sent {key}"}, api_key=api_key)
    await lm.secrets.key()  # as the adapter of a provider does for each request
    held = {"default": None, "context": "embedded/nearest"}.get(by, lm)
    program = sm.Sequential([sm.Input(Query), sm.Generator(Query, language_model=held)])
    trainer = sm.Trainer(program, context=sm.Context("here", language_model=lm if by == "context" else None))
    await trainer.bind(Query)
    await trainer.init_params()
    with sm.default_language_model(None if by == "context" else lm):
        evaluation = await trainer.score(ROWS, run=tmp_path)
    assert key in evaluation.results[0].outputs["text"]
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"you sent ***" in written
    assert key.encode() not in written


async def test_each_sample_is_a_run_of_its_own(tmp_path):
    """More samples in the same folder run those that are new."""
    program = Echo()
    await sm.evaluate(program, ROWS, run=tmp_path)
    assert (await sm.evaluate(program, ROWS, run=tmp_path, samples=3)).total == 9
    assert len(program.calls) == 9


async def test_an_evaluation_of_something_else_is_refused(tmp_path):
    """Another reward, metric, data set or program is named, old and new."""
    await sm.evaluate(Echo(), ROWS, reward=right, run=tmp_path)
    for change, name in (
        ({"reward": length}, "reward"),
        ({"metrics": [length]}, "metrics"),
        ({"data": ROWS[:2]}, "data"),
        ({"program": sm.Identity()}, "program"),
    ):
        given = {"program": Echo(), "data": ROWS, "reward": right, **change}
        with pytest.raises(sm.RunError, match="run of something else") as caught:
            await sm.evaluate(given.pop("program"), given.pop("data"), **given, run=tmp_path)
        assert [each for each, _, _ in caught.value.differences] == [name]


async def test_an_outage_is_run_again(tmp_path):
    """What failed for a reason that may be over is not recorded."""
    down = [True]

    def reply(_):
        if down[0]:
            raise sm.UnavailableError("down")
        return {"text": "a"}

    program = sm.Generator(Query, language_model=FunctionLM(reply))
    with pytest.raises(sm.EvaluationError, match="all 3 runs have failed"):
        await sm.evaluate(program, ROWS, reward=right, run=tmp_path)
    down[0] = False
    assert (await sm.evaluate(program, ROWS, reward=right, run=tmp_path)).score == 1 / 3


async def test_a_failure_of_the_reward_is_run_again(tmp_path):
    """It says nothing about the program: once the reward is mended, the same line scores what it could not."""
    works = sm.static([])

    class Judge(sm.rewards.Reward):
        async def call(self, y_pred, y_true):
            if not works.value:
                raise ConnectionError("the database is down")
            return y_pred["text"] == y_true

    with pytest.raises(sm.EvaluationError, match="all 3 runs have failed"):
        await sm.evaluate(Echo(), ROWS, reward=Judge(), run=tmp_path)
    works.value.append(True)
    assert (await sm.evaluate(Echo(), ROWS, reward=Judge(), run=tmp_path)).score == 2 / 3


@pytest.mark.parametrize("nest", [tuple, list, lambda pair: {"one": pair[0], "rest": (pair[1], None)}])
async def test_a_nest_of_outputs_is_found_as_it_was(tmp_path, nest):
    """Data models in a tuple, a list or a dict, whose fields a reward reads by attribute."""

    class Several(sm.Module):
        async def call(self, inputs: Query):
            return nest((inputs, Query(text="more")))

    def shape(value):
        if isinstance(value, dict):
            return {name: shape(part) for name, part in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(map(shape, value))
        return value and value.text

    first, again = [(await sm.evaluate(Several(), ROWS, run=tmp_path)).results for _ in range(2)]
    assert [shape(each.outputs) for each in again] == [shape(each.outputs) for each in first]
    assert shape(again[0].outputs) == nest(("a", "more"))


async def test_a_folder_serves_one_evaluation_at_a_time(tmp_path):
    """A second one is refused with the process that holds it."""
    started, goes_on = asyncio.Event(), asyncio.Event()

    class Waits(sm.Module):
        async def call(self, inputs: Query) -> Query:
            started.set()
            await goes_on.wait()
            return inputs

    program = Waits()
    under_way = asyncio.create_task(sm.evaluate(program, ROWS, run=tmp_path))
    await started.wait()
    with pytest.raises(sm.RunError, match=f"under way in process {os.getpid()}"):
        await sm.evaluate(program, ROWS, run=tmp_path)
    goes_on.set()
    assert (await under_way).total == 3


async def test_half_a_character_in_the_text_of_a_failure_is_escaped(tmp_path):
    """No file holds one: the row is recorded as it is shown."""

    class Halved(sm.Module):
        async def call(self, inputs: Query) -> Query:
            if inputs["text"] == "b":
                raise ValueError("half a \ud800")
            return inputs

    rows = [Query(text=text) for text in "ab"]
    first, again = [(await sm.evaluate(Halved(), rows, run=tmp_path, max_errors=None)).errors for _ in range(2)]
    assert [error.error.message for error in first] == [error.error.message for error in again] == ["half a \\ud800"]


WITH_WORKERS = """
import asyncio, multiprocessing, os, sys, time, warnings
from concurrent.futures import ProcessPoolExecutor
import synmod as sm
from synmod.testing import SchemaLM

warnings.simplefilter("ignore", DeprecationWarning)  # of Python, about threads

class Query(sm.DataModel):
    text: str

class Answer(sm.DataModel):
    answer: str

def judge(number):
    with open(sys.argv[2], "a") as file:
        file.write("x")
    return 1.0

async def reward(y_true, y_pred):
    return await asyncio.get_running_loop().run_in_executor(pool, judge, 1)

async def main():
    global pool
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(METHOD)) as pool:
        rows = [(Query(text=str(n)), Answer(answer="a")) for n in range(60)]
        result = await sm.evaluate(sm.Generator(Answer, language_model=SchemaLM()), rows, reward=reward,
                                   run=sys.argv[1], concurrency=4)
        print(result.score, len(result.results))

if __name__ == "__main__":
    RUN(main())
"""


@pytest.mark.slow
@pytest.mark.interpreter
@pytest.mark.parametrize(("method", "run"), [("fork", "sm.run"), ("fork", "asyncio.run"), ("spawn", "sm.run")])
def test_a_run_goes_on_though_worker_processes_outlive_it(method, run, tmp_path):
    """The lock of a killed process does not live on in the processes that it forked."""
    script, folder, count = tmp_path / "script.py", tmp_path / "run", tmp_path / "count"
    script.write_text(WITH_WORKERS.replace("METHOD", repr(method)).replace("RUN(", f"{run}("))
    command = [sys.executable, str(script), str(folder), str(count)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        while process.poll() is None and (not count.exists() or count.stat().st_size < 3):
            time.sleep(0.005)
        process.kill()
        process.wait()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.stdout == "1.0 60\n", done.stderr
        assert count.stat().st_size <= 60 + 4
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def test_a_lock_that_outlives_its_process_is_explained(tmp_path, monkeypatch):
    """Where the process in the lock file is gone, and where the file system has no locks, with the system's words."""
    fcntl = pytest.importorskip("fcntl")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with open(tmp_path / "lock", "w") as file:
        file.write(f"{gone.pid}\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(sm.RunError, match=f"process {gone.pid}; if that is gone"):
            asyncio.run(sm.evaluate(Echo(), ROWS, reward=right, run=tmp_path))
    no_locks = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    def refuse(*_):
        raise no_locks

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(sm.JournalError, match="lock: No locks available.*local disk") as caught:
        asyncio.run(sm.evaluate(Echo(), ROWS, reward=right, run=tmp_path))
    assert caught.value.__cause__ is no_locks

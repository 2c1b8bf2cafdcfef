"""Programs on a real server: saved and loaded, evaluated, trained, and what they do when it or they are killed."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import synmod as sm
from tests.real import one_fit
from tests.real.one_fit import ROWS, Ticket, program
from tests.real.server import SHORT

pytestmark = pytest.mark.real


async def test_a_loaded_program_runs_as_the_saved_one(server, tmp_path):
    """The file holds no address: the reader's model stands in, and the prompt is the same."""
    sorter = program(server.base)
    tickets = [Ticket(**inputs) for inputs, _ in ROWS[:2]]
    outputs = [await sorter(ticket) for ticket in tickets]
    sm.save(sorter, tmp_path / "sorter.json")
    assert server.base not in (tmp_path / "sorter.json").read_text()
    lm = sm.LanguageModel("openai/smollm2", api_base=server.base, **SHORT)
    loaded = sm.load(tmp_path / "sorter.json", language_models=lm)
    assert [await loaded(ticket) for ticket in tickets] == outputs


async def test_an_evaluation_has_a_score_for_each_row(server):
    """And the counts of the server."""
    before = server.counts()
    evaluation = await sm.evaluate(program(server.base, limit=4, extra_body={}), ROWS[:8], reward="exact_match")
    now = server.counts()
    assert (len(evaluation.results), evaluation.errors) == (8, ())
    assert evaluation.score == sum(row.score for row in evaluation.results) / 8
    used = evaluation.usage
    assert (used.prompt_tokens - used.cached_tokens, used.completion_tokens) == (now[0] - before[0], now[1] - before[1])


class Replies(sm.Hook):
    """Counts replies."""

    def __init__(self):
        self.count = 0

    def on_lm_end(self, event):
        self.count += event.exception is None


async def test_an_evaluation_survives_a_restart_of_its_server(mortal, until):
    """Killed under four calls and started again: every row has its score, and no call has failed."""
    replies, lm = Replies(), sm.LanguageModel("openai/smollm2", api_base=mortal.base, max_tokens=64)
    sorter = program(mortal.base)
    with sm.hooks(replies), sm.use_language_models(lm):
        evaluating = asyncio.create_task(sm.evaluate(sorter, ROWS, reward="exact_match", concurrency=4))
        await until(lambda: replies.count >= 3)
        await asyncio.to_thread(mortal.kill)
        await asyncio.to_thread(mortal.start)
        evaluation = await evaluating
    assert (len(evaluation.results), evaluation.errors, lm.cumulated_failed_calls) == (len(ROWS), (), 0)
    assert lm.cumulated_calls == len(ROWS) < lm.cumulated_requests


async def test_a_fallback_answers_for_a_server_that_is_gone(server):
    """The reply names the model that answered."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        gone = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    second = sm.LanguageModel("openai/second", api_base=server.base, max_tokens=8)
    lm = sm.LanguageModel("openai/first", api_base=gone, attempts=1, fallback=second)
    reply = await lm("Name a colour.")
    assert (reply.model, bool(reply.text)) == ("openai/second", True)
    assert (lm.cumulated_failed_calls, second.cumulated_calls) == (1, 1)


def run_fit(server, folder, kill_at=0):
    """Train in a process of its own; return its exit code and what it printed."""
    command = [sys.executable, "-m", one_fit.__name__, server.base, str(folder), str(kill_at)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, json.loads(done.stdout or "null")


def test_a_killed_training_goes_on_where_it_was(server, tmp_path):
    """It sends what is missing, and ends as the training that was not killed."""
    _, (whole, requests) = run_fit(server, tmp_path / "whole")
    code, _ = run_fit(server, tmp_path / "killed", kill_at=9)
    _, (resumed, rest) = run_fit(server, tmp_path / "killed")
    assert code == -signal.SIGKILL
    assert resumed == whole
    assert requests > 9 and requests - 9 <= rest <= requests - 8

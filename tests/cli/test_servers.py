"""`synmod serve` in a process of its own: real clients, doors, and how it goes down."""

import http.client
import json
import os
import re
import signal
import threading

import pytest

from tests.cli.conftest import ask, served, start

pytestmark = pytest.mark.slow


def test_programs_by_name(shop):
    """Files by their stem or a name; Ctrl-C ends an idle server with status 0."""
    with served("echo.json", "second=wait.json") as (address, process):
        assert ask(address, "/call", {"text": "x"}) == (200, '{"text":"x"}')
        assert ask(address, "/call/second", {"text": "0"}) == (200, '{"text":"0"}')
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 0


def test_another_address_needs_a_token(shop):
    """It comes from the environment, or the server lets everybody in."""
    with served("echo.json", "--host", "0.0.0.0", env={**os.environ, "SYNMOD_TOKEN": "secret-token"}) as (address, _):
        address = address.replace("0.0.0.0", "127.0.0.1")
        assert ask(address, "/call", {"text": "x"})[0] == 401
        assert ask(address, "/call", {"text": "x"}, authorization="Bearer secret-token")[0] == 200
        assert ask(address, "/health", host="evil.example")[0] == 421
    with served("echo.json", "--host", "0.0.0.0", "--no-token", "--allow-host", "shop.example") as (address, _):
        address = address.replace("0.0.0.0", "127.0.0.1")
        assert ask(address, "/call", {"text": "x"}, host="shop.example")[0] == 200


def test_a_signal_lets_the_calls_in_flight_end(shop):
    """New calls get a 503 meanwhile; the process ends when nothing is in flight."""
    with served("wait.json", "--grace", "30") as (address, process):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask(address, "/call", {"text": "1.5"})))
        thread.start()
        while "synmod_in_flight 1" not in ask(address, "/metrics")[1]:
            pass
        process.terminate()
        while ask(address, "/ready")[0] == 200:
            pass
        assert ask(address, "/call", {"text": "0"})[0] == 503
        assert ask(address, "/health")[0] == 200
        thread.join()
        assert answers == [(200, '{"text":"1.5"}')]
        assert process.wait(5) == 0


def test_after_the_grace_the_rest_is_cancelled(shop):
    """Its clients get a 503."""
    with served("wait.json", "--grace", "0.1") as (address, process):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask(address, "/call", {"text": "1000"})[0]))
        thread.start()
        while "synmod_in_flight 1" not in ask(address, "/metrics")[1]:
            pass
        process.terminate()
        thread.join()
        assert answers == [503]
        assert process.wait(5) == 0


def test_the_second_signal_ends_the_process_at_once(shop):
    """Whatever is in flight."""
    with served("wait.json", "--grace", "1000") as (address, process):
        connection = http.client.HTTPConnection(address.removeprefix("http://"))
        connection.request("POST", "/call", '{"text": "1000"}', {"content-type": "application/json"})
        while "synmod_in_flight 1" not in ask(address, "/metrics")[1]:
            pass
        process.terminate()
        while ask(address, "/ready")[0] == 200:
            pass
        process.terminate()
        assert process.wait(5) == -signal.SIGTERM
        connection.close()


def test_a_run_is_answered_by_the_command_after_a_kill(shop, synmod):
    """`kill -9`, `synmod runs`, an answer from outside, another server: the run ends."""
    line = ("clerk.json", "--runs", "runs")
    with served(*line) as (address, _):
        run_id = json.loads(ask(address, "/runs", {"text": "x"})[1])["id"]
        while json.loads(ask(address, f"/runs/{run_id}")[1])["state"] != "waiting":
            pass
    status, out, _ = synmod("runs", "runs")
    shown = json.loads(out)
    assert (status, shown["state"], shown["questions"][0]["text"]) == (0, "waiting", "Send it?")
    question = shown["questions"][0]["id"]
    assert synmod("runs", "runs", "answer", run_id, question, "maybe")[0] == 2
    assert synmod("runs", "runs", "answer", run_id, question[:-1], "true")[0] == 2
    assert synmod("runs", "runs", "answer", run_id, question, "true") == (0, "", "")
    with served(*line) as (address, process):
        while (record := json.loads(ask(address, f"/runs/{run_id}")[1]))["state"] != "done":
            pass
        assert record["outputs"] == {"text": "x True"}
        process.terminate()
        assert process.wait(5) == 0
    status, out, err = synmod("run", "clerk.json", '{"text": "y"}', "--import", "shop", "--run", "mine/y")
    assert status == 1
    command = re.search(r"synmod (runs mine answer y \w+) VALUE", err)[1].split()
    assert synmod(*command, "false")[0] == 0
    assert (
        synmod("run", "clerk.json", '{"text": "y"}', "--import", "shop", "--run", "mine/y")[1]
        == '{"text": "y False"}\n'
    )


def test_a_port_that_is_taken(shop):
    """One line that names another port."""
    with served("echo.json") as (address, _):
        process = start("serve", "echo.json", "--port", address.rpartition(":")[2], "--import", "shop")
        _, err = process.communicate()
        assert process.returncode == 2
        assert b"Try another --port" in err

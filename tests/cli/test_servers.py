"""`synmod serve` in a process of its own: real clients, doors, and how it goes down."""

import http.client
import json
import os
import re
import signal
import socket
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.conftest import ask, served, start

pytestmark = pytest.mark.slow


def test_programs_by_name(shop):
    """Files by their stem or a name; Ctrl-C ends an idle server with status 0."""
    with served("echo.json", "second=wait.json") as (address, process):
        assert ask(address, "/call", {"text": "x"}) == (200, '{"text":"x"}')
        assert ask(address, "/call/second", {"text": "0"}) == (200, '{"text":"0"}')
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


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
        assert process.wait(30) == 0


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
        assert process.wait(30) == 0


def test_readers_and_runs_that_wait_do_not_hold_it_up(shop):
    """The last event of a reader is a 503, and the log has no failure."""
    with served("clerk.json", "--runs", "runs", "--grace", "1000") as (address, process):
        run_id = json.loads(ask(address, "/runs", {"text": "x"})[1])["id"]
        with urllib.request.urlopen(f"{address}/runs/{run_id}/events") as events:
            while events.readline() != b"event: waiting\n":
                pass
            process.terminate()
            last = events.read().decode().strip().rpartition("data: ")[2]
        assert json.loads(last)["status"] == 503
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


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
        assert process.wait(30) == -signal.SIGTERM
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
        assert process.wait(30) == 0
    status, out, err = synmod("run", "clerk.json", '{"text": "y"}', "--import", "shop", "--run", "mine/y")
    assert status == 1
    command = re.search(r"synmod (runs mine answer y \w+) VALUE", err)[1].split()
    assert synmod(*command, "false")[0] == 0
    assert (
        synmod("run", "clerk.json", '{"text": "y"}', "--import", "shop", "--run", "mine/y")[1]
        == '{"text": "y False"}\n'
    )


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 0)])
def test_mcp_ends_by_a_signal_or_with_its_input(shop, sign, status):
    """Though a thread waits for the next line; messages may come in pieces."""
    process = start("mcp", "echo.json", "--import", "shop")
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}).encode() + b"\n"
    for piece in (message[:30], message[30:]):
        process.stdin.write(piece)
        process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "echo"
    if sign is not None:
        process.send_signal(sign)
        process.wait(30)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert b"Traceback" not in err


def test_a_port_that_is_taken(shop):
    """One line that names another port."""
    with served("echo.json") as (address, _):
        process = start("serve", "echo.json", "--port", address.rpartition(":")[2], "--import", "shop")
        _, err = process.communicate()
        assert process.returncode == 2
        assert b"Try another --port" in err


HEAD = (
    b"Host: 127.0.0.1\r\nAuthorization: Bearer secret-token\r\nContent-Type: application/json\r\nConnection: close\r\n"
)
HOSTILE_REQUESTS = {
    b"\x00\xff\xfe\r\n\r\n": 400,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200): 400,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": 421,
    b"GET /call HTTP/1.0\r\n\r\n": 421,
    b"GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n": 421,
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n": 400,
    b"GET http://evil.example/runs HTTP/1.1\r\n" + HEAD + b"\r\n": 404,
    b"GET /health HTTP/1.1\r\n" + HEAD + b"X: " + b"x" * 80_000: 400,
    b"GET /call HTTP/1.1\r\n" + HEAD + b"Origin: http://\xff\r\n\r\n": 403,
    b"GET /call HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \xff\xc3\xa4\r\nConnection: close\r\n\r\n": 401,
    b"GET /runs/../../etc/passwd HTTP/1.1\r\n" + HEAD + b"\r\n": 404,
    b"GET /runs/%2e%2e%2f%2e%2e%2fsecret HTTP/1.1\r\n" + HEAD + b"\r\n": 404,
    b"GET /runs/..%2fsecret/events HTTP/1.1\r\n" + HEAD + b"\r\n": 404,
    b"DELETE /runs/a%00b HTTP/1.1\r\n" + HEAD + b"\r\n": 404,
    b"GET /runs/%ff%fe%zz HTTP/1.1\r\n" + HEAD + b"\r\n": 404,
    b"POST /runs/../x HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\r\n\r\n{}": 404,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\r\n\r\n\xff\xfe": 400,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Content-Length: -5\r\n\r\n": 400,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Content-Length: 20000\r\n\r\n" + b"x" * 20_000: 413,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 20000\r\n\r\n": 413,
    b"POST /call HTTP/1.1\r\n"
    + HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 5: 413,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n": 400,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 400,
    b"POST /call HTTP/1.1\r\n" + HEAD + b"Content-Length: 50\r\n\r\n{": 504,
}


def test_hostile_requests(shop):
    """Each has the status of the table; nothing is leaked, nothing written, and the server goes on."""
    Path("secret").mkdir()
    Path("secret/request.json").write_text('{"program": "hidden"}')
    line = ("echo.json", "--runs", "runs", "--max-body", "10000", "--timeout", "0.5")
    with served(*line, env={**os.environ, "SYNMOD_TOKEN": "secret-token"}) as (address, process):
        for request, status in HOSTILE_REQUESTS.items():
            with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as connection:
                connection.sendall(request)
                answer = connection.makefile("rb").readline()
                assert answer.startswith(b"HTTP/1.1 %d " % status), (request[:80], answer)
        assert ask(address, "/call", {"text": "x"}, authorization="Bearer secret-token")[0] == 200
        assert not [*Path("runs").iterdir()]
        process.terminate()
        assert process.wait(30) == 0
        log = process.stderr.read().decode()
    assert not re.search("Traceback|secret|hidden", log)


def test_equal_keys_at_once_are_one_run(shop):
    """Fifty posts over fifty connections; with other inputs the key is a 422."""
    with served("wait.json", "--runs", "runs") as (address, _), ThreadPoolExecutor(50) as threads:
        key = {"idempotency-key": "order-17"}
        posts = [threads.submit(ask, address, "/runs", {"text": "0.1"}, **key) for _ in range(50)]
        answers = [post.result() for post in posts]
        assert {status for status, _ in answers} == {201}
        (run_id,) = {json.loads(body)["id"] for _, body in answers}
        assert [path.name for path in Path("runs").iterdir()] == [run_id]
        assert ask(address, "/runs", {"text": "0.2"}, **key)[0] == 422

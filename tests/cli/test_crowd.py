"""A thousand clients at once over sockets, twice: what they get, and what the server keeps of them."""

import asyncio
import json
import os
import re
import resource
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import ask, served

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc is of Linux")]
COUNT = 1_000
KINDS = ("call", "call", "stream", "slow reader", "failure", "misfit", "leaves", "leaves early")


async def visit(port, number):
    """Be one client; return its kind, its number, and what it has read."""
    kind = KINDS[number % len(KINDS)]
    text = {"failure": f"no number {number}", "misfit": number, "leaves": "1000"}.get(kind, f"0.{number:04}")
    route = "stream" if kind in ("stream", "slow reader") else "call"
    body = json.dumps({"text": text}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=100)
    head = f"POST /{route} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}X-Request-Id: {number}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    if kind == "leaves early":
        writer.write(body[:5])
    else:
        writer.write(body)
        await writer.drain()
    if kind == "slow reader":
        await asyncio.sleep(1.0)
    content = b"" if kind.startswith("leaves") else await reader.read()
    writer.close()
    return kind, number, content.decode()


def check(kind, number, content):
    """Check that a client got its own answer."""
    head, _, body = content.partition("\r\n\r\n")
    status = {"failure": 500, "misfit": 422}.get(kind, 200)
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert f"x-request-id: {number}\r\n" in head
    if status == 200:
        (text,) = re.findall(r'"text":"([\d.]+)"', body)
        assert text == f"0.{number:04}"


def kept_by(process):
    """Return the numbers of open files and of kilobytes that a process keeps."""
    kilobytes = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]
    return len(os.listdir(f"/proc/{process.pid}/fd")), int(kilobytes)


async def test_a_crowd(shop):
    """Everybody who stays gets an answer of their own, everybody is counted, and the server keeps nothing."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(least, min(4 * COUNT, most)), most))
    with served("wait.json", "--queue", str(COUNT)) as (address, process):
        port = int(address.rpartition(":")[2])
        ask(address, "/call", {"text": "0"})
        files, _ = kept_by(process)
        sizes = []
        for _ in range(2):
            visits = await asyncio.gather(*[visit(port, number) for number in range(COUNT)])
            for kind, number, content in visits:
                if not kind.startswith("leaves"):
                    check(kind, number, content)
            numbers = ask(address, "/metrics")[1]
            while not {"synmod_in_flight 0", "synmod_queued 0"} <= {*numbers.splitlines()}:
                numbers = ask(address, "/metrics")[1]
            while kept_by(process)[0] > files:
                await asyncio.sleep(0.01)
            sizes.append(kept_by(process)[1])
        statuses = Counter()
        for status, count in re.findall(r'route="/(?:call|stream)",status="(\d+)"\} (\d+)', numbers):
            statuses[int(status)] += int(count)
        assert statuses == {200: COUNT + 1, 422: COUNT / 4, 500: COUNT / 4, 499: COUNT / 2}
        assert sizes[1] - sizes[0] < 10_000
        process.terminate()
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read().decode()

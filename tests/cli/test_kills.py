"""Signals at random moments under load: calls end or are cancelled, and runs end with the bytes of undisturbed ones."""

import asyncio
import json
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import served

pytestmark = pytest.mark.slow
RUNS, MOMENTS = 40, 8
LINE = ("work.json", "wait.json", "--concurrency", "8", "--queue", "1000", "--runs")


def connect(address):
    """Return a client with a connection for each request."""
    return httpx.AsyncClient(base_url=address, timeout=60, limits=httpx.Limits(max_connections=None))


async def begin_runs(http):
    """Begin all runs, or find them begun; return the statuses, 0 where the connection broke."""

    async def begin(number):
        with suppress(httpx.TransportError):
            body, key = {"text": str(number)}, {"idempotency-key": str(number)}
            return (await http.post("/runs/work", json=body, headers=key)).status_code
        return 0

    return await asyncio.gather(*[begin(number) for number in range(RUNS)])


class Load:
    """Calls and streams without a pause; `outcomes` has a list for those before the signal and one for those after."""

    def __init__(self, http, chance):
        self.http, self.chance, self.has_signal = http, chance, False
        self.outcomes = {False: Counter(), True: Counter()}

    async def run(self):
        """Begin calls until the signal, and for a while after it."""
        after = 0
        async with asyncio.TaskGroup() as group:
            while after < 50:
                route, text = self.chance.choice(["call", "stream"]), f"{self.chance.random() * 0.4:.6f}"
                group.create_task(self.visit(route, text))
                await asyncio.sleep(0.004)
                after += self.has_signal

    async def visit(self, route, text):
        """Make a call; note how it ended."""
        outcomes = self.outcomes[self.has_signal]
        try:
            answer = await self.http.post(f"/{route}/wait", json={"text": text})
        except httpx.TransportError:
            outcomes["broken"] += 1
            return
        last = answer.text.strip().rpartition("data: ")[2]
        if answer.status_code == 200 and json.loads(last).get("status") != 503:
            assert (json.loads(last) if route == "call" else json.loads(last)["outputs"]) == {"text": text}
        else:
            assert "going down" in last
        outcomes["ended"] += 1


async def disturb(folder, sign, chance):
    """Send a signal to a server under load; return what became of its runs and calls."""
    with served(*LINE, folder, "--grace", "0.3") as (address, process):
        async with connect(address) as http:
            load = Load(http, chance)
            async with asyncio.TaskGroup() as group:
                group.create_task(load.run())
                begun = group.create_task(begin_runs(http))
                await asyncio.sleep(chance.random() * 2.0)
                load.has_signal = True
                process.send_signal(sign)
            assert process.wait(30) == (0 if sign == signal.SIGTERM else -sign)
    return begun.result(), load.outcomes


async def end_runs(folder):
    """Let all runs end; return the bytes of their results."""
    with served(*LINE, folder) as (address, _):
        async with connect(address) as http:
            assert await begin_runs(http) == [201] * RUNS
            while {run["state"] for run in (await http.get("/runs")).json()} != {"done"}:
                await asyncio.sleep(0.05)
    return {file.parent.name: file.read_bytes() for file in Path(folder).glob("*/result.json")}


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
async def test_signals_at_random_moments(shop, sign):
    """After SIGTERM no call in flight is lost; after either the runs go on, to the same bytes."""
    chance = random.Random(sign)
    for _ in range(MOMENTS):
        begun, outcomes = await disturb("disturbed", sign, chance)
        if sign == signal.SIGTERM:
            assert outcomes[False]["broken"] == 0
            assert set(begun) <= {201, 503}
    results = await end_runs("disturbed")
    assert len(results) == RUNS
    assert results == await end_runs("undisturbed")

"""Loops that are closed by hand, and processes that fork: what they held is free, and the parent works on."""

import asyncio
import os
import subprocess
import sys

import pytest

from tests.lm.loopback import Loopback, completion

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

PRELUDE = """
import asyncio, os, sys, tempfile, threading, time, warnings
import synmod as sm
from synmod.testing import FunctionLM

class Query(sm.DataModel):
    text: str

class Answer(sm.DataModel):
    answer: str

base = sys.argv[1]
lm = sm.LanguageModel("openai/m", api_base=base, limit=4, attempts=1, timeout_s=5)

async def work(n=3):
    return [reply.text for reply in await asyncio.gather(*(lm(str(i)) for i in range(n)))]

def by_hand(main):
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()

def begun_and_left(main):
    # Begin a coroutine in a loop of its own, and close the loop while it waits.
    async def begin():
        task = asyncio.create_task(main)
        await asyncio.sleep(0.05)
        left.append(task)
    by_hand(begin())

left = []
"""


async def run_script(code, *answers):
    """Run a script beside a server, with every warning an error; return what it printed."""
    async with Loopback(*answers or (completion('{"answer": "x"}'),)) as server:
        command = [sys.executable, "-W", "error", "-c", PRELUDE + code, server.base]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


MANY = """
cache = sm.Cache(tempfile.mkdtemp() + "/cache.db")
shared = sm.LanguageModel("openai/m", api_base=base, limit=lm.limit, cache=cache)
index = sm.VectorIndex(sm.EmbeddingModel("embedded/hash", limit=2), tempfile.mkdtemp() + "/index.db")
generator = sm.Generator(Answer, language_model=shared)

async def job(number):
    await asyncio.gather(work(), *(generator(Query(text=f"{number} {i % 2}")) for i in range(4)))
    await index.add([{"id": str(number), "text": "tea"}])
    return len(await index.search("tea", k=1))

def jobs(numbers):
    for number in numbers:
        loop = asyncio.new_event_loop()
        loop.set_debug(number % 5 == 0)
        done.append(loop.run_until_complete(job(number)))
        loop.close()

done = []
import logging
logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of slow callbacks
jobs(range(3))
before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
jobs(range(COUNT))
after = before and len(os.listdir("/proc/self/fd"))
assert after == before, (before, after)
threads = [threading.Thread(target=jobs, args=[range(n, COUNT * 2, 8)]) for n in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert asyncio.run(job(-1)) == sm.run(job, -2) == 1  # and every other kind of loop
print(sum(done) == 3 + COUNT * 3)
"""


@pytest.mark.slow
@pytest.mark.interpreter
@pytest.mark.parametrize("count", [100])
async def test_every_job_may_have_a_loop_of_its_own_that_is_closed_by_hand(count):
    """Model, limit, cache, index and program are shared by loops and threads; nothing is left open, nor warned of."""
    assert await run_script(MANY.replace("COUNT", str(count))) == ["True"]


async def test_a_second_loop_after_one_closed_by_hand():
    """The connections of the first are closed, and the second opens its own."""
    assert await run_script("print(*[by_hand(work(1))[0] for _ in range(3)])") == ['{"answer":', '"x"}'] * 3


LEFT_LIMIT = """
async def wait(_):
    await asyncio.sleep(3600 if left_open else 0)
    return "free"

left_open = True
held = sm.Limit(concurrency=1)
slow = FunctionLM(wait, limit=held, timeout_s=None)
begun_and_left(slow("x"))       # holds the only place
begun_and_left(slow("y"))       # waits for it, at the head of the queue
left_open = False
print(by_hand(slow("z")).text, by_hand(slow("z")).text)
left.clear()
import gc; gc.collect()         # closes the coroutines that were left
print(by_hand(slow("z")).text, held._running, len(held._queue), dict(held._homes))
"""

LEFT_FLIGHT = """
async def wait(_):
    await asyncio.sleep(3600 if left_open else 0)
    return "free"

left_open = True
cached = FunctionLM(wait, cache=sm.Cache(), timeout_s=None)
begun_and_left(cached("x"))
left_open = False
print(by_hand(cached("x")).text)
left.clear()
import gc; gc.collect()
print(by_hand(cached("x")).text)
"""

LEFT_BUILD = """
class Slow(sm.Module):
    async def build(self, inputs):
        self.size = self.add_variable(schema={"type": "integer"}, initializer=1, name="size")
        await asyncio.sleep(3600 if left_open else 0)
    async def call(self, inputs):
        return inputs

class Around(sm.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    async def call(self, inputs):
        return await self.inner(inputs)

left_open = True
slow = Slow()
around = Around(slow)
begun_and_left(around(Query(text="x")))
left_open = False
print(by_hand(slow(Query(text="a"))).text, by_hand(around(Query(text="b"))).text)
slow.size.assign(5)
left.clear()
import gc; gc.collect()
print(slow.size.value)
"""


WAITING = """
async def wait(_):
    await asyncio.sleep(3600 if left_open else 0)
    return "free"

left_open = True
held = sm.Limit(concurrency=1)
slow = FunctionLM(wait, timeout_s=None, **({"limit": held} if KIND == "limit" else {"cache": sm.Cache()}))
results = []

async def begin():
    global left_open
    task = asyncio.create_task(slow("x"))
    await asyncio.sleep(0.1)
    left_open = False
    thread = threading.Thread(target=lambda: results.append(asyncio.run(slow("x")).text))
    thread.start()
    left.extend([task, thread])
    await asyncio.sleep(0.2)

by_hand(begin())        # the loop is closed while another one already waits
left[1].join(30)
print(*results)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        pytest.param(LEFT_LIMIT, ["free", "free", "free", "0", "0", "{}"], id="place of a limit"),
        pytest.param(LEFT_FLIGHT, ["free", "free"], id="equal work under way"),
        pytest.param(LEFT_BUILD, ["a", "b", "5"], id="build"),
        pytest.param(WAITING.replace("KIND", "'limit'"), ["free"], id="waiting for a place"),
        pytest.param(WAITING.replace("KIND", "'flight'"), ["free"], id="waiting for equal work"),
    ],
)
async def test_a_loop_closed_with_a_call_under_way_holds_nothing_for_ever(code, printed):
    """Its place in a limit, the work that others would wait for and its build go to the next loop that needs them."""
    quiet = "import logging; logging.getLogger('asyncio').setLevel(logging.CRITICAL)\n"  # of tasks that were left
    assert await run_script(quiet + code) == printed


FORKED = {
    "idle child": "ends(os.fork())",
    "child that calls": "ends(os.fork(), lambda: print(*sm.run(work, 1)))",
    "child of loops by hand": "ends(os.fork(), lambda: [by_hand(work(1)) for _ in range(3)])",
    "child that fails": "ends(os.fork(), lambda: 1 / 0, stderr=False)",
    "child that leaves at once": "ends(os.fork(), lambda: os._exit(0))",
    "fork while a loop runs": "sm.run(inside)",
}
FORK = """
def ends(pid, act=lambda: None, stderr=True):
    if not pid:
        if not stderr:
            sys.stderr = None
        act()
        sys.exit(0)
    os.waitpid(pid, 0)

async def inside():
    await work()
    ends(os.fork(), lambda: sys.exit(0))
    assert len(await work()) == 3
    await asyncio.wait_for(asyncio.to_thread(time.sleep, 0.01), 3)

warnings.simplefilter("ignore", DeprecationWarning)  # of Python, about threads
sm.run(work)
ACT
started = time.monotonic()
assert len(sm.run(work)) == 3
sm.run(asyncio.wait_for(asyncio.to_thread(time.sleep, 0.01), 3))  # a thread can still wake the loop
print("parent", lm.counters["inference"].calls > 3)
"""


@FORKS
@pytest.mark.slow
@pytest.mark.interpreter
@pytest.mark.parametrize("act", FORKED.values(), ids=FORKED.keys())
async def test_the_parent_of_a_fork_keeps_its_connections_and_its_loop(act):
    """However the child ends, and whatever it did before."""
    assert (await run_script(FORK.replace("ACT", act)))[-2:] == ["parent", "True"]


HELD_AT_FORK = """
async def wait(_):
    await asyncio.sleep(0.3)
    return "free"

slow = FunctionLM(wait, limit=1, cache=sm.Cache())

async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(slow("x"))
        await asyncio.sleep(0.05)
        pid = os.fork()
        if not pid:
            print(sm.run(slow, "x").text, sm.run(slow, "y").text, flush=True)
            os._exit(0)
        await asyncio.to_thread(os.waitpid, pid, 0)

warnings.simplefilter("ignore", DeprecationWarning)
sm.run(main)
"""


@FORKS
@pytest.mark.slow
@pytest.mark.interpreter
async def test_a_forked_child_waits_for_nothing_of_its_parent():
    """A place in a limit and equal work under way stay with the parent, where they end."""
    assert await run_script(HELD_AT_FORK) == ["free", "free"]

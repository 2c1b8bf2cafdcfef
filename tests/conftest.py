"""What all tests share: every event loop the core runs on."""

import asyncio
import contextlib
import gc
import itertools
import os
import signal
import sys

import pytest
import trio
from hypothesis import HealthCheck, settings

# Packages are compiled once, when they are first imported, also for the processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell lets what it runs in the background ignore Ctrl-C, which tests send to the processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure; the run that guards main draws the same examples each time, others draw new ones.
settings.register_profile(
    "synmod",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    max_examples=50,
)
settings.load_profile("synmod")


def pytest_collection_finish():
    """Leave what the tests are made of out of every collection of garbage, which costs as much as it holds."""
    gc.freeze()
    gc.set_threshold(20_000)


def _on_asyncio(main, *args):
    return asyncio.run(main(*args))


def _on_eager_asyncio(main, *args):
    async def eager():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return await asyncio.create_task(main(*args))

    return asyncio.run(eager())


def _on_trio(main, *args):
    return trio.run(main, *args)


RUNNERS = {"asyncio": _on_asyncio, "trio": _on_trio}
if sys.version_info >= (3, 12):
    RUNNERS["asyncio-eager"] = _on_eager_asyncio


@pytest.fixture(params=sorted(RUNNERS))
def any_loop(request):
    """Runs `any_loop(async_fn, *args)` to its end, once on each kind of loop."""
    return RUNNERS[request.param]


@pytest.fixture
def counted_work():
    """Counts what Python runs in a `with` block: work, measured alike on a busy machine."""

    @contextlib.contextmanager
    def counted():
        count, total = itertools.count(), []
        sys.setprofile(lambda *_: next(count))
        try:
            yield total
        finally:
            sys.setprofile(None)
            total.append(next(count))

    return counted

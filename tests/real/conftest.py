"""The server of a session of tests, and models that talk to it."""

import asyncio
import time

import pytest

import synmod as sm
from tests.real.server import FOLDER, SHORT, Server


@pytest.fixture(scope="session")
def logs(request, tmp_path_factory):
    """The folder of the servers' logs, whose ends are shown where a test fails."""
    request.config.stash[LOGS] = folder = tmp_path_factory.mktemp("servers")
    return folder


LOGS = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Show the end of the servers' logs with a failure."""
    report = yield
    folder = item.config.stash.get(LOGS, None)
    if report.failed and folder is not None:
        for log in folder.iterdir():
            report.sections.append((f"end of {log.name}", log.read_text(errors="replace")[-1_000:]))
    return report


def _started(logs, mode):
    if not FOLDER.exists():
        pytest.skip("llama.cpp is not installed: python tests/real/server.py install")
    return Server(logs / f"{mode}.log", mode)


@pytest.fixture(scope="session")
def server(logs):
    """A server of chat completions with four slots, shared by the tests."""
    with _started(logs, "chat") as server:
        yield server


@pytest.fixture(scope="session")
def embedder(logs):
    """A server of embeddings."""
    with _started(logs, "embed") as server:
        yield server


@pytest.fixture(scope="session")
def plain(logs):
    """A server with the model's own chat template, which drops tools."""
    with _started(logs, "plain") as server:
        yield server


@pytest.fixture
def mortal(logs):
    """A server of chat completions that a test may kill."""
    with _started(logs, "chat") as server:
        yield server


@pytest.fixture
def model(server):
    """Return a model of the server, as given: of few words, and deterministic."""

    def model(**given):
        return sm.LanguageModel("openai/smollm2", api_base=server.base, **{**SHORT, **given})

    return model


@pytest.fixture
def until():
    """Wait until a condition holds, and return the seconds that it took; a minute is too long."""

    async def until(condition):
        started = time.monotonic()
        while not await asyncio.to_thread(condition):
            assert time.monotonic() < started + 60, "the condition does not come true"
            await asyncio.sleep(0.01)
        return time.monotonic() - started

    return until

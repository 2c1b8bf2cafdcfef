"""The cells of the README and the tutorial run as they are in a real IPython kernel, and print what the pages show."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest

from tests.docs.test_code_blocks import ROOT, blocks_of, matches

pytestmark = pytest.mark.slow
CELLS = [ROOT / "README.md", *sorted((ROOT / "docs" / "pages" / "tutorial").glob("*.md"))]


class Kernel:
    """A running kernel: executes cells."""

    def __init__(self, manager, client):
        self.manager, self.client = manager, client

    async def run(self, code):
        """Execute a cell; returns the error's name or None, what it printed, and the data of its result."""
        printed, data = [], {}

        def hear(message):
            content = message["content"]
            if content.get("name") == "stdout":
                printed.append(content["text"])
            data.update(content.get("data", {}))

        reply = (await self.client.execute_interactive(code, timeout=60, output_hook=hear))["content"]
        return reply.get("ename"), "".join(printed), data


@asynccontextmanager
async def running_kernel(folder):
    """Start a kernel in a folder, and stop it."""
    client_module = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    manager = client_module.AsyncKernelManager(transport="ipc", ip=str(folder / "kernel"))
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    await manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)
        manager.context.destroy(linger=0)


@pytest.mark.parametrize("page", CELLS, ids=lambda page: page.name)
async def test_cells_run_as_written(tmp_path, page):
    """Each block is a cell, and prints what stands below it."""
    async with running_kernel(tmp_path) as kernel:
        for line, code, expected in blocks_of(page):
            error, printed, _ = await kernel.run(code)
            assert error is None, f"{page.name}:{line} {error}"
            if expected is not None:
                assert matches(expected, printed), f"{page.name}:{line} printed\n{printed}"


FOREVER = """
import asyncio
import synmod as sm

async def forever():
    print("running", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("cleaned up")
"""


async def test_an_interrupt_cancels_what_the_cell_runs(tmp_path):
    """The coroutine is cancelled and ends, the cell ends by KeyboardInterrupt, and the next one works."""
    async with running_kernel(tmp_path) as kernel:
        await kernel.run(FOREVER)
        cell = asyncio.create_task(kernel.run("sm.run(forever)"))
        await asyncio.sleep(0.5)
        await kernel.manager.interrupt_kernel()
        error, printed, _ = await cell
        assert (error, printed.splitlines()) == ("KeyboardInterrupt", ["running", "cleaned up"])
        assert await kernel.run("print(sm.run(asyncio.sleep, 0))") == (None, "None\n", {})


SHOWN = """
import synmod as sm

class Note(sm.DataModel):
    text: str

note = Note(text="<b>")
echo = sm.Identity()
with sm.trace() as t:
    value = sm.run(echo, note)
"""


async def test_what_is_shown_is_html(tmp_path):
    """A value, an instance, a module, a trace and an evaluation have a picture of their own; texts are escaped."""
    async with running_kernel(tmp_path) as kernel:
        assert (await kernel.run(SHOWN))[0] is None
        page = {}
        for shown in ("note", "value", "echo", "t", "sm.run(sm.evaluate(echo, [note], progress=False))"):
            page[shown] = (await kernel.run(shown))[2]["text/html"]
    assert "<td>&lt;b&gt;</td>" in page["note"]
    assert "<td>&lt;b&gt;</td>" in page["value"]
    assert page["echo"].startswith("<svg")
    assert page["t"].startswith('<iframe srcdoc="&lt;!doctype html')
    evaluation = page.popitem()[1]
    assert "<table>" in evaluation and "<b>'" not in evaluation

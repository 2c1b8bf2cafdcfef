"""Tools of MCP servers: a real server of the `mcp` package over stdio."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import ScriptedLM

SERVER = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]
slow = pytest.mark.slow  # a server takes seconds to import


class Query(sm.DataModel):
    """What is asked."""

    question: str


@slow
async def test_the_tools_of_a_server_over_stdio(monkeypatch):
    """Names, descriptions, schemas, results, errors and the environment, also for many calls at once."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-some-secret-key")
    async with sm.mcp_tools(SERVER, env={"SHOP": "x"}) as tools:
        named = {tool.name: tool for tool in tools}
        assert list(named) == ["add", "find_product", "find_product_1", "picture", "refund", "environment", "wait"]
        function = named["add"].function_schema["function"]
        assert function["description"] == "Add two numbers."
        assert function["parameters"]["required"] == ["a"]
        results = await asyncio.gather(*[named["add"](a=n) for n in range(50)])
        assert [result["result"] for result in results] == list(range(1, 51))
        assert (await named["find_product"](word="mug"))["result"] == {"name": "mug"}
        assert (await named["find_product_1"](word="mug"))["result"] == "mug!"
        assert (await named["picture"]())["result"] == "Look:\n(image image/png)"
        variables = (await named["environment"]())["result"]
        assert "SHOP" in variables
        assert "OPENAI_API_KEY" not in variables
        with pytest.raises(sm.SchemaError):
            await named["add"](a="1")
        with pytest.raises(sm.ToolError, match="refund: .*refund"):
            await named["refund"](order=3)


@slow
async def test_an_agent_uses_a_server():
    """An error of the server is told to the model; a run that takes too long is left, and the server answers."""
    calls = [sm.ToolCall("1", "refund", {"order": 3}), sm.ToolCall("2", "wait", {}), sm.ToolCall("3", "add", {"a": 1})]
    lm = ScriptedLM([*calls, "2"])
    async with sm.mcp_tools(SERVER, timeout_s=5.0) as tools:
        answer = await sm.Agent(tools, language_model=lm, parallel_tools=False)(Query(question="?"))
    assert answer["content"] == "2"
    results = [turn["content"] for turn in lm.requests[-1].messages if turn["role"] == "tool"]
    assert results[0].startswith("ToolError: refund:")
    assert results[1:] == ["ToolError: wait: no result within timeout_s=5.", "2"]


@slow
async def test_what_the_block_raises_is_raised_as_itself():
    """Not in a group; and a cancelled block leaves no task and no server behind."""
    with pytest.raises(KeyError, match="mine"):
        async with sm.mcp_tools(SERVER):
            raise KeyError("mine")
    entered = asyncio.Event()

    async def use():
        async with sm.mcp_tools(" ".join(SERVER)) as tools:
            entered.set()
            await tools[-1]()

    task = asyncio.create_task(use())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert SERVER[1] not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


@slow
@pytest.mark.parametrize("server", ["/no/such/command --x", [sys.executable, "-c", "pass"], "http://127.0.0.1:9/mcp"])
async def test_a_server_that_cannot_be_used_is_a_tool_error(server):
    """Whatever the reason."""
    with pytest.raises(sm.ToolError, match="MCP server cannot be used"):
        async with sm.mcp_tools(server):
            pass


@slow
async def test_an_empty_command_is_refused():
    """With what to write."""
    with pytest.raises(sm.ConfigError, match="empty"):
        async with sm.mcp_tools(""):
            pass


@slow
@pytest.mark.parametrize("server", [None, 5, {}, "python 'server.py"])
async def test_what_is_not_a_server_is_refused(server):
    """Nor is a line whose quotation does not end."""
    with pytest.raises(sm.ConfigError, match=r"mcp_tools: .*write a command such as"):
        async with sm.mcp_tools(server):
            pass


@slow
async def test_an_address_may_have_a_scheme_in_capitals():
    """It is not taken for a command."""
    with pytest.raises(sm.ToolError, match="ConnectError"):
        async with sm.mcp_tools("HTTP://127.0.0.1:9/mcp"):
            pass


@slow
async def test_a_tool_that_is_called_after_its_block_is_a_run_error():
    """It names the tool, and where to call it."""
    async with sm.mcp_tools(SERVER) as tools:
        pass
    with pytest.raises(sm.errors.RunError, match="add: .*inside its `async with` block"):
        await tools[0](a=1)


async def test_a_missing_package_is_named_with_the_install_line(monkeypatch):
    """Nothing is opened."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(sm.ConfigError, match=r"pip install 'synmod-lm\[mcp\]'"):
        async with sm.mcp_tools(SERVER):
            pass

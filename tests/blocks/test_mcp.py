"""Tools of MCP servers: a real server of the `mcp` package over stdio."""

import asyncio
import json
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
        assert list(named) == [
            "add",
            "find_product",
            "find_product_1",
            "picture",
            "refund",
            "environment",
            "leave",
            "wait",
        ]
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


def served(*pages, call=None, name="shop"):
    """A server in this process that lists pages of tools, each a list of (name, schema); `call(name, arguments)`."""
    from mcp.server import Server
    from mcp_types import ListToolsResult, Tool

    async def listed(context, page):
        at = int((page and page.cursor) or 0)
        tools = [Tool(name=name, input_schema=schema) for name, schema in pages[at]]
        return ListToolsResult(tools=tools, next_cursor=str(at + 1) if at + 1 < len(pages) else None)

    async def called(context, request):
        return call(request.name, request.arguments)

    return Server(name, on_list_tools=listed, on_call_tool=called)


OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
ODD = {
    "a tuple of draft 7": {"properties": {"p": {"type": "array", "items": [{"type": "number"}, {"type": "number"}]}}},
    "a look-ahead": {"properties": {"p": {"type": "string", "pattern": "^(?!-).+$"}}},
    "a bound of draft 4": {"properties": {"p": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}},
    "an unknown type": {"properties": {"p": {"type": "file"}}},
    "a reference to nothing": {"properties": {"p": {"$ref": "#/$defs/Nothing"}}},
    "a named draft": {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"p": {"items": [{}]}}},
    "a named document": {"$id": "urn:shop", "properties": {"p": {"$ref": "#shop"}}},
}


@slow
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
async def test_a_schema_that_cannot_be_checked_is_offered_as_it_is(odd):
    """And the server checks the arguments; the other tools are checked here."""
    from mcp_types import CallToolResult, TextContent

    def call(name, arguments):
        return CallToolResult(content=[TextContent(type="text", text=f"bad {arguments}")], is_error=True)

    schema = {"type": "object", **odd}
    lm = ScriptedLM([sm.ToolCall("1", "odd", {"p": [[]]}), "done"])
    async with sm.mcp_tools(served([("good", OPEN), ("odd", schema)], [("last", OPEN)], call=call)) as tools:
        await sm.Agent(tools, language_model=lm)(Query(question="?"))
        with pytest.raises(sm.SchemaError):
            await tools[0](a="1")
    offered = [tool["function"] for tool in lm.requests[0].tools]
    assert [function["name"] for function in offered] == ["good", "odd", "last"]
    assert offered[1]["parameters"] == schema
    assert lm.requests[1].messages[-1]["content"] == "ToolError: odd: bad {'p': [[]]}"


RAW = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        about = {"serverInfo": {"name": "shop", "version": "1"}, "capabilities": {"tools": {}}}
        version = asked.get("params", {}).get("protocolVersion")
        listed, result = {"tools": json.loads(sys.argv[1])}, {"protocolVersion": version, **about}
        result = listed if asked["method"] == "tools/list" else result
        if asked["method"] == "tools/call":
            result = {"content": [], "structuredContent": {"price": float("nan")}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@slow
@pytest.mark.parametrize(
    ("listed", "fault"),
    [
        ([{"name": "odd", "inputSchema": {"type": "array"}}], r"tools\.0\.inputSchema\.type: .*object"),
        ([{"name": "odd"}], r"tools\.0\.inputSchema: Field required"),
        ([{"name": "odd", "description": 5, "inputSchema": OPEN}], r"tools\.0\.description"),
        ("none", "tools: .*list"),
    ],
)
async def test_a_list_that_is_not_one_of_mcp_is_an_error_that_names_the_fault(listed, fault):
    """It is ours, and not that of the package."""
    with pytest.raises(sm.ToolError, match=f"against the protocol: {fault}"):
        async with sm.mcp_tools([sys.executable, "-c", RAW, json.dumps(listed)]):
            pass


@slow
async def test_a_structured_result_that_is_not_json_is_text():
    """The agent goes on."""
    async with sm.mcp_tools([sys.executable, "-c", RAW, json.dumps([{"name": "look", "inputSchema": OPEN}])]) as tools:
        assert (await tools[0](a=1))["result"] == "{'price': nan}"


@slow
@pytest.mark.parametrize(
    ("pages", "says"),
    [([[]], "lists no tools"), ([[("t", OPEN)]] * 1_001, "more than 1,000 pages")],
    ids=["no tools", "endless pages"],
)
async def test_a_list_that_cannot_be_used_is_a_tool_error(pages, says):
    """An empty one, or one without an end."""
    with pytest.raises(sm.ToolError, match=says):
        async with sm.mcp_tools(served(*pages)):
            pass


@slow
async def test_a_server_that_refuses_its_list_is_a_tool_error_with_its_words():
    """Or that knows no tools at all."""
    from mcp import MCPError
    from mcp.server import Server
    from mcp_types import ListPromptsResult

    async def refuse(context, page):
        raise MCPError(code=-32001, message="not signed in")

    async def prompts(context, page):
        return ListPromptsResult(prompts=[])

    for server, says in (
        (Server("a", on_list_tools=refuse), "not signed in"),
        (Server("b", on_list_prompts=prompts), "not found"),
    ):
        with pytest.raises(sm.ToolError, match=says):
            async with sm.mcp_tools(server):
                pass


@slow
async def test_a_silent_server_is_left_after_the_timeout():
    """Neither its process nor a task stays."""
    silent = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(sm.ToolError, match=r"did not answer within timeout_s=0\.5"):
        async with sm.mcp_tools(silent, timeout_s=0.5):
            pass
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert silent[2] not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


@slow
async def test_the_time_of_the_block_is_not_limited():
    """Only that until the tools are listed."""
    async with sm.mcp_tools(served([("t", OPEN)]), timeout_s=1.0):
        await asyncio.sleep(1.5)


@slow
async def test_tools_are_chosen_by_name_and_named_with_a_prefix():
    """So that those of two servers can stand in one agent."""
    server = served([("find.it", OPEN), ("pay", OPEN), ("x" * 80, OPEN), ("x" * 90, OPEN)])
    async with sm.mcp_tools(server, only=["pay", "find.it"], prefix="shop_") as tools:
        assert [tool.name for tool in tools] == ["shop_find_it", "shop_pay"]
    async with sm.mcp_tools(server, prefix="1") as tools:
        names = [tool.name for tool in tools]
        assert names[:2] == ["_1find_it", "_1pay"]
        assert (len(set(names)), max(map(len, names)) <= 64) == (4, True)
    for only, says in ((["pya"], "Did you mean 'pay'"), ("pay", "must be a list")):
        with pytest.raises(sm.ConfigError, match=says):
            async with sm.mcp_tools(server, only=only):
                pass


@slow
async def test_media_in_a_result_reach_the_model():
    """As parts behind the results; text and addresses are text."""
    import mcp_types as of

    blob = of.BlobResourceContents(uri="shop://a", mime_type="application/pdf", blob="eA==")
    content = [
        of.TextContent(type="text", text="Look:"),
        of.ImageContent(type="image", data="eA==", mime_type="image/png"),
        of.AudioContent(type="audio", data="eA==", mime_type="audio/wav"),
        of.EmbeddedResource(type="resource", resource=blob),
        of.ResourceLink(type="resource_link", name="terms", uri="shop://terms"),
        of.ImageContent(type="image", data="no base64!", mime_type="image/png"),
    ]
    lm = ScriptedLM([sm.ToolCall("1", "look", {}), "done"])
    async with sm.mcp_tools(served([("look", OPEN)], call=lambda *_: of.CallToolResult(content=content))) as tools:
        await sm.Agent(tools, language_model=lm)(Query(question="?"))
    *_, result, media = lm.requests[1].messages
    lines = ["Look:", "(image image/png)", "(audio audio/wav)", "(resource application/pdf)", "terms: shop://terms"]
    assert result["content"].split("\n") == [*lines, "(image image/png)"]
    assert [part["type"] for part in media["content"]] == ["text", "image_url", "input_audio", "file"]


@slow
async def test_a_server_that_ends_during_a_call_is_a_tool_error():
    """Its later calls, too."""
    async with sm.mcp_tools(SERVER, timeout_s=20) as tools:
        named = {tool.name: tool for tool in tools}
        for _ in range(2):
            with pytest.raises(sm.ToolError, match="leave: "):
                await named["leave"]()


async def test_a_missing_package_is_named_with_the_install_line(monkeypatch):
    """Nothing is opened."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(sm.ConfigError, match=r"pip install 'synmod-lm\[mcp\]'"):
        async with sm.mcp_tools(SERVER):
            pass

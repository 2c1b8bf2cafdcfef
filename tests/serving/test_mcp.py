"""Programs as tools of MCP, called by the official client: in memory, over HTTP, over standard input and output."""

import asyncio
import sys

import pytest

import synmod as sm
from tests.serving.client import Question, Waiting, answering, echo, post, serving, until

slow = pytest.mark.slow


def programs():
    """A program that answers, one whose model fails, one that returns two outputs."""
    x, y = sm.Input(Question, name="x"), sm.Input(Question, name="y")
    return {
        "desk": answering(lambda text: f'{{"answer": "{text}!"}}'),
        "broken": answering(lambda _: sm.AuthError("sk-0123456789abcdef"), attempts=1),
        "both": sm.Program(inputs=[x, y], outputs=[x, y]),
    }


async def check(client):
    """The tools have schemas, results are structured, failures are results."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["desk", "broken", "both"]
    assert tools["desk"].input_schema["properties"]["text"]["type"] == "string"
    assert tools["desk"].output_schema["properties"]["answer"]["type"] == "string"
    result = await client.call_tool("desk", {"text": "x"})
    assert (result.is_error, result.structured_content) == (False, {"answer": "x!"})
    assert result.content[0].text == '{"answer": "x!"}'
    result = await client.call_tool("both", {"x": {"text": "1"}, "y": {"text": "2"}})
    assert result.structured_content == {"result": [{"text": "1"}, {"text": "2"}]}
    result = await client.call_tool("desk", {"text": 1})
    assert result.is_error
    assert "/text: wanted string" in result.content[0].text
    result = await client.call_tool("broken", {"text": "x"})
    assert result.is_error
    assert "sk-" not in result.content[0].text
    result = await client.call_tool("dask", {"text": "x"})
    assert result.is_error
    assert "Did you mean 'desk'" in result.content[0].text


@slow
async def test_a_server_in_memory():
    """`sm.mcp_server` for a transport of one's own."""
    from mcp import Client

    async with Client(sm.mcp_server(programs())) as client:
        await check(client)


@slow
async def test_streamable_http():
    """By the route `/mcp`; many calls at once; a client that goes cancels its call; what it used is counted."""
    from mcp import Client

    waiting = Waiting()
    app = sm.serve({**programs(), "waiting": waiting}, concurrency=4, queue=1_000)
    del app.programs["waiting"]
    async with serving(app) as address:
        async with Client(f"{address}/mcp") as client:
            await check(client)
            results = await asyncio.gather(*[client.call_tool("desk", {"text": str(n)}) for n in range(30)])
            assert [result.structured_content["answer"] for result in results] == [f"{n}!" for n in range(30)]
        app.programs["waiting"] = sm.serve(waiting).programs["waiting"]
        async with Client(f"{address}/mcp") as client:
            task = asyncio.create_task(client.call_tool("waiting", {"text": "x"}))
            while not waiting.counts["begun"]:
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            while not waiting.counts["cancelled"]:
                await asyncio.sleep(0.001)
    assert (app.places.running, app.in_flight) == (0, set())


@slow
async def test_a_call_that_takes_too_long_or_is_cancelled():
    """The deadline is a result; a server that goes down ends the call with an error."""
    from mcp import Client, MCPError

    program = Waiting()
    async with serving(sm.serve(program, timeout_s=0.05)) as address, Client(f"{address}/mcp") as client:
        result = await client.call_tool("waiting", {"text": "x"})
        assert result.is_error
        assert "in time" in result.content[0].text
    app = sm.serve(program)
    async with serving(app) as address, Client(f"{address}/mcp") as client:
        task = asyncio.create_task(client.call_tool("waiting", {"text": "x"}))
        while program.counts["begun"] < 2:
            await asyncio.sleep(0.001)
        app.cancel_rest()
        with pytest.raises(MCPError, match="going down"):
            await task


@slow
async def test_the_door_of_mcp():
    """Hosts, tokens and the size of bodies are those of the other routes; GET is a 405."""
    app = sm.serve(echo(), token="secret-token", max_body=100)
    assert (await post(app, "/mcp", {})).status == 401
    headers = {"authorization": "Bearer secret-token"}
    assert (await post(app, "/mcp", {}, headers={**headers, "host": "evil.example"})).status == 421
    assert (await post(app, "/mcp", {"x": "a" * 200}, headers=headers)).status == 413
    await until(lambda: not app.in_flight)


@slow
async def test_standard_input_and_output(tmp_path, monkeypatch):
    """By the command; what modules and programs print is no message."""
    from mcp import Client, StdioServerParameters

    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.py").write_text(
        "import os, synmod as sm\n"
        "print('imported'); os.write(1, b'raw')\n"
        "@sm.register(package='noisy')\n"
        "class Question(sm.DataModel):\n    text: str\n"
        "@sm.register(package='noisy')\n"
        "def shout(inputs: Question) -> Question:\n"
        "    print('called'); os.write(1, b'raw')\n    return Question(text=inputs['text'].upper())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import noisy

    sm.Sequential([sm.Input(noisy.Question), sm.Lambda(noisy.shout)]).save("desk.json")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "synmod", "mcp", "desk.json", "--import", "noisy"], cwd=str(tmp_path)
    )
    async with Client(command) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["desk"]
        result = await client.call_tool("desk", {"text": "quiet"})
        assert result.structured_content == {"text": "QUIET"}


def call_desk():
    """A call of a tool, as JSON-RPC."""
    parameters = {"name": "desk", "arguments": {"text": "x"}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": parameters}


async def test_the_programs_own_misfit_stays_in_the_log():
    """Only the inputs of the client are explained to it."""

    def fail(inputs: Question) -> Question:
        raise sm.SchemaError("secret")

    app = sm.serve({"desk": sm.Sequential([sm.Input(Question), sm.Lambda(fail)])})
    x = await post(app, "/mcp", call_desk(), headers={"accept": "application/json, text/event-stream"})
    assert b"The program failed" in x.content
    assert b"secret" not in x.content


async def test_a_spent_budget_is_named_as_in_other_answers():
    """It is not the program's own failure."""
    app = sm.serve(programs(), budget={"calls": 0})
    x = await post(app, "/mcp", call_desk(), headers={"accept": "application/json, text/event-stream"})
    assert b"The budget of the request is spent." in x.content


@pytest.mark.parametrize(("settings", "status"), [({"token": "secret"}, 401), ({"max_body": 10}, 413)])
async def test_a_refused_request_has_the_shape_of_json_rpc(settings, status):
    """Also before its body is read."""
    x = await post(sm.serve(programs(), **settings), "/mcp", call_desk())
    assert (x.status, x.json["jsonrpc"], x.json["id"]) == (status, "2.0", None)


async def test_a_body_that_does_not_end_is_a_504():
    """The deadline of a request holds while its body is read."""

    async def parts():
        yield b"{"
        await asyncio.Event().wait()

    x = await post(sm.serve(programs(), timeout_s=0.01), "/mcp", parts=parts())
    assert (x.status, x.json["error"]["message"]) == (504, "The program did not end in time.")

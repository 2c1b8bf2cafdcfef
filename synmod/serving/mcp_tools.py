"""Programs as the tools of an MCP server."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import mcp.types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from synmod import errors, scope
from synmod.data import dump_json
from synmod.leaves import __version__, aio, is_object, parse_json
from synmod.scope.frame import ambient

from .endpoints import ServedProgram, find_endpoint, outputs_json
from .exchange import Exchange
from .refusals import refusal_of

if TYPE_CHECKING:
    from .app import Application


def make_server(
    programs: Mapping[str, ServedProgram], call: Callable[[ServedProgram, Any], Awaitable[Any]] = ServedProgram.call
) -> Server[Any]:
    """Return an MCP server with a tool for each program.

    Args:
        programs: The programs by name.
        call: Runs one of them on its inputs.
    """

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[await _describe(program) for program in programs.values()])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            program = find_endpoint(programs, params.name)
            outputs = outputs_json(await call(program, program.take_inputs(params.arguments or {})))
        except Exception as error:  # noqa: BLE001  # each is a result
            return _failure(error, ambient().budgets)
        structure: Any = outputs if is_object(outputs) else {"result": outputs}
        return types.CallToolResult(content=[_text(dump_json(outputs))], structured_content=structure)

    return Server(next(iter(programs)), version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def _describe(program: ServedProgram) -> types.Tool:
    """Return the description of the tool of a program; outputs that are no object are the field `result`."""
    schema = await program.output_schema()
    if schema and schema.get("type") != "object":
        wrapped = {key: value for key, value in schema.items() if key != "$defs"}
        definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
        schema = {**definitions, "type": "object", "properties": {"result": wrapped}, "required": ["result"]}
    return types.Tool(
        name=program.name,
        description=program.description,
        input_schema=program.input_schema,
        output_schema=schema or None,
    )


def _failure(error: Exception, budgets: Collection[Any]) -> types.CallToolResult:
    """Return a failure as a result that the model of the client can read."""
    refusal = refusal_of(error, uuid4().hex, budgets)
    faults = [f"{fault['pointer']}: wanted {fault['wanted']}" for fault in refusal.members.get("errors", ())]
    return types.CallToolResult(content=[_text("\n".join([refusal.detail, *faults]))], is_error=True)


def _text(text: str) -> types.TextContent:
    """Return a text as a part of a result."""
    return types.TextContent(type="text", text=text)


async def answer_mcp(app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer one request of MCP over streamable HTTP, without a session."""
    with scope.deadline(app.timeout_s):
        body = await exchange.read_body(app.max_body)
    with suppress(errors.DataError):  # answered by the package
        exchange.json = parse_json(body)

    async def call(program: ServedProgram, inputs: Any) -> Any:
        exchange.program = program.name
        with scope.deadline(app.timeout_s):
            return await app.call(exchange, program, inputs)

    async def work() -> None:
        server, most = make_server(app.programs, call), app.max_body
        manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most)
        async with manager.run():
            await exchange.forward(manager.handle_request, body)

    await exchange.run_attended(work)


async def serve_stdio(server: Server[Any]) -> None:
    """Serve MCP over standard input and output; programs read an empty input, and print to standard error."""
    wire, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    lines: Any = _read_lines(wire)
    async with stdio_server(lines) as (messages, answers):
        try:
            await server.run(messages, answers, server.create_initialization_options())
        finally:
            sys.stdout.flush()  # while the descriptor still leads to standard error


async def _read_lines(wire: int) -> AsyncGenerator[str]:
    """Yield the lines of a descriptor; a cancelled reader leaves its thread behind, so that Ctrl-C ends the process."""
    rest = b""
    while text := await aio.to_thread(os.read, wire, 2**16, abandon=True):
        *lines, rest = (rest + text).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")

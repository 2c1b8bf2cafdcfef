"""The tools of an MCP server, opened for a block. The `mcp` package is imported when a server is first opened."""

import re
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from synmod import errors
from synmod.leaves import Json, is_object, unused

from .tools import Approve, Tool

_URL: Final = ("http://", "https://")
_SERVER_FORMS: Final = "write a command such as ['python', 'server.py'], or an address"
_LONGEST_NAME: Final = 60


@asynccontextmanager
async def mcp_tools(
    server: str | Sequence[str] | Any,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = 60,
    approve: Approve | None = None,
) -> AsyncGenerator[list[Tool]]:
    """Open an MCP server for a block and yield its tools.

    Args:
        server: The command that starts a server, as a list or as one line; the address of a running server; or any
            other argument of `mcp.Client`, such as a transport with custom headers.
        env: More environment variables for the command, which inherits only a few common ones, without API keys.
        timeout_s: Seconds for one run of a tool; None for no limit.
        approve: As for `Tool`, for each of the tools.

    Yields:
        The tools in the order of the server, with its names, descriptions and schemas; characters not allowed in names
        become `_`. Tools run only inside the block, and cannot be saved.

    Raises:
        ConfigError: The `mcp` package is missing (names the install command), or `server` is none of these.
        SchemaError: The schema of a tool is unusable; names the tool.
        ToolError: The server does not start, cannot be reached, or does not speak MCP. When a tool is called: the
            server reports an error.
        RunError: When a tool is called: the block has ended.

    Example:
        >>> async def main():
        ...     async with sm.mcp_tools(["python", "shop_server.py"]) as tools:
        ...         return await sm.Agent(tools)(question)
        >>> sm.run(main)  # doctest: +SKIP

    Source: the Model Context Protocol; pydantic-ai's toolsets.
    """
    try:
        from mcp import Client
    except ImportError as error:
        raise errors.ConfigError(f"mcp_tools needs the mcp package ({error}): pip install 'synmod-lm[mcp]'.") from None
    failure: Exception | None = None
    try:
        async with Client(_target(server, env)) as client:
            try:
                yield await _tools_of(client, timeout_s, approve)
            except Exception as error:  # noqa: BLE001  # raised below, since closing the client would wrap it in a group
                failure = error
    except (OSError, ExceptionGroup) as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        what = f"the MCP server cannot be used: {type(first).__name__}: {first}"
        failure = failure or errors.ToolError(f"mcp_tools: {what}. Does it start, and speak MCP?")
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # avoids a reference cycle of the exception and this frame


def _target(server: Any, env: Mapping[str, str] | None) -> Any:
    """Return a server in a form that `mcp.Client` accepts."""
    from mcp import StdioServerParameters
    from mcp.server import MCPServer, Server

    if isinstance(server, str) and server.casefold().startswith(_URL):
        return server
    if isinstance(server, (MCPServer, Server)) or hasattr(server, "__aenter__"):
        return server  # pyright: ignore[reportUnknownVariableType]  (of any type parameter)
    if not isinstance(server, (str, list, tuple)):
        raise errors.ConfigError(f"mcp_tools: server is {server!r:.100}; {_SERVER_FORMS}.")
    try:
        parts: Sequence[Any] = shlex.split(server) if isinstance(server, str) else [*server]  # pyright: ignore[reportUnknownVariableType]  (users)
    except ValueError as error:  # a quotation without an end
        raise errors.ConfigError(f"mcp_tools: the command {server!r:.100}: {error}; {_SERVER_FORMS}.") from None
    command = [str(part) for part in parts]
    if not command:
        raise errors.ConfigError(f"mcp_tools: the command is empty; {_SERVER_FORMS}.")
    return StdioServerParameters(command=command[0], args=command[1:], env=None if env is None else dict(env))


def _mcp_name(name: str) -> str:
    """Return a name that a model may call for a tool of a server."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_LONGEST_NAME]
    return name if name.isidentifier() else f"_{name}"


async def _tools_of(client: Any, timeout_s: float | None, approve: Approve | None) -> list[Tool]:
    """Return all tools of a server.

    Raises:
        SchemaError: The schema of a tool is unusable.
    """
    tools: dict[str, Tool] = {}
    cursor, is_last = None, False
    while not is_last:
        page = await client.list_tools(cursor=cursor)
        for described in page.tools:
            name = unused(_mcp_name(described.name), tools)
            tools[name] = _mcp_tool(client, described, name, timeout_s, approve)
        cursor = page.next_cursor
        is_last = cursor is None
    return [*tools.values()]


def _mcp_tool(client: Any, described: Any, name: str, timeout_s: float | None, approve: Approve | None) -> Tool:
    """Return one tool of a server.

    Raises:
        SchemaError: The schema is unusable.
    """

    async def run(**arguments: Any) -> Any:
        from mcp import MCPError

        try:
            result = await client.call_tool(described.name, arguments)
        except MCPError as error:
            raise errors.ToolError(f"{name}: {error}") from None
        except RuntimeError as error:
            if "context manager" not in str(error):  # not of a closed client
                raise
            raise errors.RunError(f"{name}: {error}. Tools of mcp_tools run inside its `async with` block.") from None
        text = "\n".join(map(_text, result.content))
        if result.is_error:
            raise errors.ToolError(f"{name}: {text}")
        json: Json = result.structured_content
        if is_object(json) and json.keys() == {"result"}:
            return json["result"]  # servers wrap plain values in this object
        return text if json is None else json

    description, parameters = described.description or described.title or "", described.input_schema
    try:
        return Tool(
            run, name=name, description=description, parameters=parameters, timeout_s=timeout_s, approve=approve
        )
    except errors.SchemaError as error:
        errors.add_note(error, f"in the tool {described.name!r} of an MCP server")
        raise


def _text(block: Any) -> str:
    """Return a part of a result as text: its text, else its type."""
    found = getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None)
    return found if isinstance(found, str) else f"({block.type} {getattr(block, 'mime_type', None) or ''})"

"""Tools of an MCP server: the door to the `mcp` package, which is imported when a server is first opened."""

import re
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from synmod.errors import ConfigError, SchemaError, ToolError, add_note
from synmod.leaves import Json, is_object, unused

from .tools import Approve, Tool

_URL: Final = ("http://", "https://")
_LONGEST_NAME: Final = 60


@asynccontextmanager
async def mcp_tools(
    server: str | Sequence[str] | Any,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = 60,
    approve: Approve | None = None,
) -> AsyncGenerator[list[Tool]]:
    """Open an MCP server for a block and return its tools.

    Args:
        server: The command that starts a server, as a list or as one line; the address of one that runs; or whatever
            else `mcp.Client` takes, such as a transport with headers of its own.
        env: Further environment variables of the command, which inherits only the usual ones, no keys.
        timeout_s: Seconds for one run of a tool; None for no limit.
        approve: As of `Tool`, for each of the tools.

    Yields:
        The tools in the order of the server, with its names, descriptions and schemas; signs that a name cannot have
        are `_`. They run only inside the block. They cannot be saved.

    Raises:
        ConfigError: The `mcp` package is missing (names the install line), or the command is empty.
        SchemaError: The schema of a tool cannot be used; names the tool.
        ToolError: The server does not start, cannot be reached, or does not speak MCP. When a tool is called: the
            server reports an error.

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
        raise ConfigError(f"mcp_tools needs the mcp package ({error}): pip install 'synmod[mcp]'.") from None
    failure: Exception | None = None
    try:
        async with Client(_target(server, env)) as client:
            try:
                yield await _tools_of(client, timeout_s, approve)
            except Exception as error:  # noqa: BLE001  # raised below as itself; closing the client would make it a group
                failure = error
    except (OSError, ExceptionGroup) as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        what = f"the MCP server cannot be used: {type(first).__name__}: {first}"
        failure = failure or ToolError(f"mcp_tools: {what}. Does it start, and speak MCP?")
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # else its traceback and this frame hold each other


def _target(server: Any, env: Mapping[str, str] | None) -> Any:
    """Return a server as `mcp.Client` takes it."""
    from mcp import StdioServerParameters

    if isinstance(server, str) and server.startswith(_URL):
        return server
    if not isinstance(server, (str, list, tuple)):
        return server
    parts: Sequence[Any] = shlex.split(server) if isinstance(server, str) else [*server]  # pyright: ignore[reportUnknownVariableType]  (users)
    command = [str(part) for part in parts]
    if not command:
        raise ConfigError("mcp_tools: the command is empty; write ['python', 'server.py'], or an address.")
    return StdioServerParameters(command=command[0], args=command[1:], env=None if env is None else dict(env))


def _name(name: str) -> str:
    """Return the name of a server's tool as a model may call it."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_LONGEST_NAME]
    return name if name.isidentifier() else f"_{name}"


async def _tools_of(client: Any, timeout_s: float | None, approve: Approve | None) -> list[Tool]:
    """Return all tools of a server.

    Raises:
        SchemaError: The schema of one cannot be used.
    """
    tools: dict[str, Tool] = {}
    cursor, is_last = None, False
    while not is_last:
        page = await client.list_tools(cursor=cursor)
        for described in page.tools:
            name = unused(_name(described.name), tools)
            tools[name] = _tool(client, described, name, timeout_s, approve)
        cursor = page.next_cursor
        is_last = cursor is None
    return [*tools.values()]


def _tool(client: Any, described: Any, name: str, timeout_s: float | None, approve: Approve | None) -> Tool:
    """Return one tool of a server.

    Raises:
        SchemaError: Its schema cannot be used.
    """

    async def run(**arguments: Any) -> Any:
        from mcp import MCPError

        try:
            result = await client.call_tool(described.name, arguments)
        except MCPError as error:
            raise ToolError(f"{name}: {error}") from None
        text = "\n".join(map(_text, result.content))
        if result.is_error:
            raise ToolError(f"{name}: {text}")
        json: Json = result.structured_content
        if is_object(json) and json.keys() == {"result"}:
            return json["result"]  # so servers wrap values
        return text if json is None else json

    about, parameters = described.description or described.title or "", described.input_schema
    try:
        return Tool(run, name=name, description=about, parameters=parameters, timeout_s=timeout_s, approve=approve)
    except SchemaError as error:
        add_note(error, f"in the tool {described.name!r} of an MCP server")
        raise


def _text(block: Any) -> str:
    """Return a part of a result as text: what it holds of text, else what it is."""
    found = getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None)
    return found if isinstance(found, str) else f"({block.type} {getattr(block, 'mime_type', None) or ''})"
